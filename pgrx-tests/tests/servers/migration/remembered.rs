//! What sessions remember of a sequence from before the switch: several sessions at once,
//! of which golden files have one.

use std::collections::BTreeMap;

use crate::support::*;

/// What a session asks for the number of its new row with, and what that is prepared as.
const PROBES: [(&str, &str); 6] = [
    ("currval", "SELECT currval('t_id_seq')"),
    (
        "currval of the column",
        "SELECT currval(pg_get_serial_sequence('t', 'id'))",
    ),
    ("prepared currval", "EXECUTE last"),
    ("cached PL/pgSQL", "SELECT last_of_t()"),
    ("cached regclass", "SELECT last_by_regclass()"),
    ("lastval", "SELECT lastval()"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Run,
    Steps,
    Online,
}

/// Asks each probe. Old numbers are counted by probe.
fn ask(client: &mut Client, when: &str, silent: &mut BTreeMap<String, usize>) -> Result<()> {
    for (name, probe) in PROBES {
        match client.simple_query(probe) {
            Ok(_) => *silent.entry(format!("{name} {when}")).or_default() += 1,
            Err(error) => {
                let error = ServerError::from_error(error)?;
                ensure!(error.sqlstate == "55000", "{name}: {error}");
            }
        }
    }
    Ok(())
}

/// Runs the statements that switch, and lets a waiting nextval() and a transaction that has
/// drawn a number before finish beside it.
fn switch(cluster: &Cluster, owner: &mut Client, way: Way) -> Result<()> {
    let mut drawn = cluster.connect()?;
    let mut drawing = drawn.transaction()?;
    drawing.batch_execute("SELECT nextval('t_id_seq')")?;
    let mut observer = cluster.connect()?;
    let pid = owner.number("SELECT pg_backend_pid()")?;
    let statements: Vec<String> = if way == Way::Run {
        vec!["CALL snowflake_migrate.run('t')".to_owned()]
    } else {
        online::plan_for(owner, "'t'", way == Way::Online)?
            .into_iter()
            .map(|step| step.statement)
            .collect()
    };
    let is_switch = |statement: &String| {
        ["run('t')", "renew_sequence", "_internal.swap("]
            .iter()
            .any(|text| statement.contains(text))
    };
    let has_renewal = statements.iter().any(is_switch);
    ensure!(has_renewal, "{statements:#?}");
    let place = statements
        .iter()
        .position(is_switch)
        .context("no switch in the plan")?;
    owner.run(statements[..place].iter().cloned())?;
    thread::scope(|scope| -> Result<()> {
        let switching = scope.spawn(|| -> Result<()> {
            owner.batch_execute("BEGIN")?;
            Ok(owner.batch_execute(&statements[place])?)
        });
        observer.wait_until(&format!(
            "SELECT bool_or(state = 'active') FROM pg_stat_activity WHERE pid = {pid}"
        ))?;
        // The switch waits for the sequence, which this transaction has used, and not with a
        // lock on the table that it writes to.
        drawing.batch_execute("INSERT INTO t (id) SELECT currval('t_id_seq')")?;
        drawing.commit()?;
        switching.join().expect("the switch")
    })?;
    // Whoever draws meanwhile waits, and gets a number.
    let waiting = {
        let mut client = cluster.connect()?;
        let waiter = client.number("SELECT pg_backend_pid()")?;
        let thread =
            thread::spawn(move || -> Result<i64> { client.number("SELECT nextval('t_id_seq')") });
        observer.wait_until(&format!(
            "SELECT wait_event_type IS NOT DISTINCT FROM 'Lock' FROM pg_stat_activity WHERE pid = {waiter}"
        ))?;
        thread
    };
    owner.batch_execute("COMMIT")?;
    let drawn = waiting.join().expect("the waiting session")?;
    ensure!(drawn < 10_000, "{drawn}");
    owner.run(statements[place + 1..].iter().cloned())
}

#[test]
fn what_sessions_remember_fails_loudly() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut admin = cluster.connect()?;
    admin.run([
        "CREATE ROLE planter LOGIN",
        "CREATE SCHEMA app",
        "GRANT USAGE ON SCHEMA app TO planter",
    ])?;
    let mut silent = BTreeMap::new();
    let mut expected = BTreeMap::<String, usize>::new();
    for (key, way) in [
        ("serial", Way::Run),
        ("serial", Way::Steps),
        ("serial", Way::Online),
        ("bigserial", Way::Run),
        ("bigserial", Way::Steps),
    ] {
        for may_create in [true, false] {
            for cache in [1, 50] {
                let cell = format!("{key}, {way:?}, CREATE {may_create}, CACHE {cache}");
                admin.run([
                    format!("CREATE TABLE app.t (id {key} PRIMARY KEY)"),
                    "ALTER TABLE app.t OWNER TO planter".to_owned(),
                    format!("ALTER SEQUENCE app.t_id_seq CACHE {cache}"),
                    format!(
                        "{} CREATE ON SCHEMA app {} planter",
                        if may_create { "GRANT" } else { "REVOKE" },
                        if may_create { "TO" } else { "FROM" }
                    ),
                    "ALTER ROLE ALL SET search_path = app, public".to_owned(),
                ])?;
                let mut sessions = [cluster.connect()?, cluster.connect()?];
                for (session, has_used) in sessions.iter_mut().zip([true, false]) {
                    session.run([
                            "CREATE OR REPLACE FUNCTION public.last_of_t() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN currval(''t_id_seq''); END'",
                            "CREATE OR REPLACE FUNCTION public.last_by_regclass() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN currval(''t_id_seq''::regclass); END'",
                            "PREPARE last AS SELECT currval('t_id_seq')",
                        ],
                    )?;
                    if has_used {
                        session.run(["INSERT INTO t DEFAULT VALUES"])?;
                        for (_, probe) in PROBES {
                            session.simple_query(probe)?;
                        }
                    }
                }
                let mut owner = cluster.connect_as("planter", "postgres")?;
                // The rest of the matrix is about the refusal, which has its own tests.
                if may_create {
                    switch(&cluster, &mut owner, way).with_context(|| cell.clone())?;
                } else {
                    owner.batch_execute("CALL snowflake_migrate.run('t')")?;
                }
                let when = if may_create { "" } else { "without CREATE" };
                for session in &mut sessions {
                    ask(session, when, &mut silent).with_context(|| cell.clone())?;
                }
                if way == Way::Run && may_create {
                    // Until the former sequence is dropped.
                    *expected.entry("lastval ".to_owned()).or_default() += 1;
                    owner.batch_execute("CALL snowflake_migrate.run('t')")?;
                    ask(&mut sessions[0], "after the drop", &mut silent)?;
                } else if !may_create {
                    for (name, _) in PROBES {
                        *expected.entry(format!("{name} {when}")).or_default() += 1;
                    }
                }
                ensure!(
                    admin.value(
                        "SELECT string_agg(relname, ' ') FROM pg_class WHERE relname LIKE 't_id_seq%'",
                    )? == "t_id_seq",
                    "{cell}: a sequence is left"
                );
                // A session that goes on to draw gets numbers above, and its own.
                let drawn = sessions[0].number("SELECT nextval('t_id_seq')")?;
                ensure!(
                    sessions[0].number("SELECT currval('t_id_seq')")? == drawn
                        && admin.number(
                            "SELECT count(*) FROM app.t WHERE id = (SELECT last_value FROM app.t_id_seq)",
                        )? == 0,
                    "{cell}: {drawn}"
                );
                owner.batch_execute("CALL snowflake_migrate.revert('t')")?;
                sessions[1].run(["INSERT INTO t DEFAULT VALUES"])?;
                ensure!(
                    sessions[1].number("SELECT max(id) FROM t WHERE id < 2147483648")?
                        == sessions[1].number("SELECT lastval()")?,
                    "{cell}"
                );
                admin.run(["DROP TABLE app.t"])?;
            }
        }
    }
    ensure!(silent == expected, "expected only {expected:?}");
    Ok(())
}
