//! Scripts for servers without the extension, of each schema of the corpus: made from a dump of the
//! schema, and run by the owner's login in a database that has nothing of ours. They leave what the
//! plan of the extension leaves in a twin.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use snowflake_tests::corpus::{Entry, OWNER, entries};
use snowflake_tests::migration::{psql, schema};
use snowflake_tests::query::Ask;
use snowflake_tests::server_error::ServerError;
use snowflake_tests::{Cluster, online, tier};

use super::corpus::{Trial, left_out, roles, same, template};
use super::script::{self, ends};
use super::{kill_and_start, script_online, signal, waits};

/// What became of a schema. The last ones are listed with their reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Equal,
    RefusedByBoth,
    NothingToWiden,
    LeftOut,
    /// The plan is refused to the owner's login, too: it takes a superuser.
    BySuperuser,
    RefusedByScript,
    Failed,
}

/// The schema that the plan of the extension leaves, and whether the owner's login could run it; or
/// why it is refused.
type Planned = Result<(String, bool), String>;

/// The beginning of what is said of an error.
fn reason(errors: &str) -> String {
    let lines = errors
        .lines()
        .skip_while(|line| !line.contains("ERROR:"))
        .take_while(|line| !line.contains("HINT:") && !line.contains("CONTEXT:"));
    let text = lines.collect::<Vec<_>>().join(" ");
    text.chars().take(240).collect()
}

/// The server, and what the databases of entries are copied from.
fn cluster() -> Result<Cluster> {
    let cluster = Cluster::builder()
        .without_preload()
        .conf("max_locks_per_transaction", 256)
        .conf("wal_level", "logical")
        .time_limit(Duration::from_secs(1800))
        .start_with_migrate()?;
    roles(&cluster)?;
    // As the script, the plan then keeps triggers from firing by conditions.
    cluster.run(&format!(
        "REVOKE SET ON PARAMETER session_replication_role FROM {OWNER}"
    ))?;
    template(cluster.connect_to_new_database("corpus")?)?;
    cluster.run("CREATE DATABASE bare TEMPLATE template0")?;
    template(cluster.connect_to("bare")?)?;
    Ok(cluster)
}

/// A copy of a database, in which the owner may create schemas.
fn copy(cluster: &Cluster, from: &str, name: &str) -> Result<()> {
    let mut client = cluster.connect()?;
    for statement in [
        format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        format!("CREATE DATABASE {name} TEMPLATE {from}"),
        format!("GRANT CREATE ON DATABASE {name} TO {OWNER}"),
    ] {
        client.batch_execute(&statement)?;
    }
    Ok(())
}

/// The script from a copy of the schema, or why there is none.
fn script(
    cluster: &Cluster,
    dump: &str,
    (arguments, online): (&str, bool),
    name: &str,
) -> Result<Result<String, String>> {
    copy(cluster, "template0", name)?;
    let loaded = psql(cluster, "postgres", name, dump, false)?;
    let mut client = cluster.connect_to(name)?;
    client.batch_execute(
        "CREATE EXTENSION snowflake_migrate CASCADE; SET search_path = shop, public",
    )?;
    let made = client.value(&format!(
        "SELECT snowflake_migrate.script({arguments}, online => {online})"
    ));
    made.map(|script| Ok(script + "\n")).or_else(|error| {
        let refused = ServerError::in_chain(&error).ok_or(error)?;
        let refused = format!("{} {}", refused.message, refused.detail);
        Ok(Err(if loaded.errors.contains("ERROR:") {
            format!("{refused} (loaded: {})", reason(&loaded.errors))
        } else {
            refused
        }))
    })
}

/// An entry: what the plan of the extension leaves, the database without the extension, and the
/// script.
fn prepared<'a>(
    cluster: &'a Cluster,
    entry: &'static Entry,
    online: bool,
    place: usize,
) -> Result<(Planned, Trial<'a>, Result<String, String>)> {
    let mut planned = Err(String::new());
    let users = [OWNER, "postgres"];
    for user in &users[..if entry.by_superuser { 2 } else { 1 }] {
        cluster.run(&format!(
            "DROP DATABASE IF EXISTS corpus_{place} WITH (FORCE)"
        ))?;
        let mut twin = Trial::new(cluster, entry, (online, true), ("corpus", place))?;
        twin.apply("before, in the twin")?;
        twin.cure()?;
        let run = if online {
            format!(
                "SELECT statement FROM snowflake_migrate.plan({}, online => true) WHERE statement IS NOT NULL ORDER BY step \\gexec",
                twin.arguments()
            )
        } else {
            format!("CALL snowflake_migrate.run({});", twin.arguments())
        };
        let path = "SET search_path = shop, public;";
        let done = psql(
            cluster,
            user,
            &twin.database,
            &format!("{path}\n{run}\n"),
            true,
        )?;
        if done.success {
            twin.superuser
                .batch_execute("DROP EXTENSION snowflake_migrate; DROP EXTENSION snowflake")?;
            planned = Ok((schema(cluster, &twin.database)?, *user == OWNER));
            break;
        }
        if planned == Err(String::new()) {
            planned = Err(reason(&done.errors));
        }
    }
    let mut target = Trial::new(cluster, entry, (online, true), ("bare", place))?;
    target.superuser.batch_execute(&format!(
        "GRANT CREATE ON DATABASE {} TO {OWNER}",
        target.database
    ))?;
    target.apply("before")?;
    target.cure()?;
    let script = script(
        cluster,
        &schema(cluster, &target.database)?,
        (&entry.arguments(), online),
        &format!("copy_{place}"),
    )?;
    Ok((planned, target, script))
}

/// What becomes of an entry, and why.
fn outcome(
    cluster: &Cluster,
    entry: &'static Entry,
    online: bool,
    place: usize,
) -> Result<(Kind, String)> {
    if let Some(reason) = left_out(cluster, entry)? {
        return Ok((Kind::LeftOut, reason.to_owned()));
    }
    let (planned, mut target, script) = prepared(cluster, entry, online, place)?;
    let database = target.database.clone();
    let refused = |why: String| match &planned {
        _ if why.contains("has to be widened for") => (Kind::NothingToWiden, why),
        Err(_) => (Kind::RefusedByBoth, why),
        Ok((_, true)) => (Kind::RefusedByScript, why),
        Ok((_, false)) => (Kind::BySuperuser, why),
    };
    let script = match script {
        Ok(script) => script,
        Err(why) => return Ok(refused(why)),
    };
    // What is filled, and how far the sequences are.
    let state = "SELECT concat((SELECT count(*) FROM pg_class WHERE relkind = 'm' AND relispopulated),
                               (SELECT string_agg(concat_ws(' ', '', schemaname, sequencename, last_value), ',' ORDER BY schemaname, sequencename) FROM pg_sequences))";
    let columns = online::columns(&mut target.superuser)?;
    let before = (
        schema(cluster, &database)?,
        target.facts()?,
        online::contents(&mut target.superuser, &columns)?,
        target.superuser.value(state)?,
    );
    let ran = psql(cluster, OWNER, &database, &script, true)?;
    let found = schema(cluster, &database)?;
    if !ran.success {
        ensure!(found == before.0, "failed after a yes: {}", ran.errors);
        return Ok(refused(format!("stopped: {}", reason(&ran.errors))));
    }
    let (expected, _) = planned.map_err(|why| anyhow!("it ran, but the plan: {why}"))?;
    same(&expected, &found, "by the script, not by the plan", |_| {
        false
    })?;
    ensure!(expected == found, "the same lines in another order");
    same(&before.1, &target.facts()?, "by the script", |_| false)?;
    ensure!(
        online::contents(&mut target.superuser, &columns)? == before.2
            && target.superuser.value(state)? == before.3,
        "the rows have changed"
    );
    target.apply("widened")?;
    Ok((Kind::Equal, String::new()))
}

/// Does something with each entry, three at a time, and removes its databases.
fn each<T: Send>(
    cluster: &Cluster,
    chosen: &[&'static Entry],
    work: impl Fn(&'static Entry, usize) -> Result<T> + Sync,
) -> Vec<(&'static str, Result<T>)> {
    let one = |(place, entry): (usize, &&'static Entry)| {
        let answer = work(entry, place).and_then(|answer| {
            let mut client = cluster.connect()?;
            for name in ["corpus", "bare", "copy", "cut"] {
                client.batch_execute(&format!(
                    "DROP DATABASE IF EXISTS {name}_{place} WITH (FORCE)"
                ))?;
            }
            Ok(answer)
        });
        (entry.name, answer)
    };
    thread::scope(|scope| {
        let workers = [0, 1, 2].map(|first| {
            let own = chosen.iter().enumerate().skip(first).step_by(3);
            scope.spawn(|| own.map(&one).collect::<Vec<_>>())
        });
        let join = |worker: thread::ScopedJoinHandle<'_, _>| worker.join().expect("a panic");
        workers.into_iter().flat_map(join).collect()
    })
}

/// Each entry in one way, with the counts.
fn run_corpus(online: bool) -> Result<()> {
    let begun = Instant::now();
    let cluster = cluster()?;
    let chosen: Vec<_> = entries()
        .filter(|entry| entry.is_pushed || tier::is_full())
        .collect();
    let found: Vec<(Kind, &str, String)> = each(&cluster, &chosen, |entry, place| {
        outcome(&cluster, entry, online, place)
    })
    .into_iter()
    .map(|(name, answer)| match answer {
        Ok((kind, why)) => (kind, name, why),
        Err(error) => (Kind::Failed, name, format!("{error:#}")),
    })
    .collect();
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    for (kind, ..) in &found {
        *counts.entry(*kind).or_default() += 1;
    }
    let count = |kind| counts.get(&kind).copied().unwrap_or_default();
    println!(
        "\nscripts of {} schemas, online: {online}, PostgreSQL {}, {:.0?}: {counts:?}",
        found.len(),
        cluster.installation().version,
        begun.elapsed()
    );
    for (kind, name, why) in &found {
        if *kind > Kind::Equal {
            println!("  {kind:?}: {name}: {why}");
        }
    }
    assert!(found.len() >= tier::size(25, 95), "{} schemas", found.len());
    assert_eq!(count(Kind::Failed), 0, "see above");
    let accepted = count(Kind::Equal) + count(Kind::RefusedByScript);
    assert!(
        count(Kind::Equal) * 100 >= accepted * 95,
        "of {accepted} schemas that the plan accepts, the script accepts {}",
        count(Kind::Equal)
    );
    Ok(())
}

#[test]
fn each_schema_is_widened_in_a_window_as_by_the_plan() -> Result<()> {
    run_corpus(false)
}

#[test]
fn each_schema_is_widened_online_as_by_the_plan() -> Result<()> {
    run_corpus(true)
}

/// psql, killed behind each statement in turn, and started again. Returns how many of them were
/// reached: others are in branches that are not taken.
fn continued(
    cluster: &Cluster,
    entry: &'static Entry,
    online: bool,
    place: usize,
) -> Result<(usize, usize)> {
    let (planned, target, script) = prepared(cluster, entry, online, place)?;
    drop(target);
    let (expected, _) = planned.map_err(|why| anyhow!(why))?;
    let script = script.map_err(|why| anyhow!(why))?;
    let (from, name) = (format!("bare_{place}"), format!("cut_{place}"));
    let mut observer = cluster.connect()?;
    let gone = format!("SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = '{name}'");
    let lines: Vec<&str> = script.lines().collect();
    let ends = ends(&lines)?;
    let (mut killed, mut cuts) = (0, 0);
    // The units of an online script are ended otherwise, too.
    let step = tier::size(12, if online { 4 } else { 1 });
    for end in ends[..ends.len() - 1].iter().step_by(step) {
        copy(cluster, &from, &name)?;
        let part = lines[..*end].join("\n") + "\n\\! kill -9 $PPID\n";
        let first = psql(cluster, OWNER, &name, &part, true)?;
        ensure!(!first.errors.contains("ERROR:"), "to line {end}: {first:?}");
        observer.wait_until(&gone)?;
        let again = psql(cluster, OWNER, &name, &script, true)?;
        ensure!(again.success, "after line {end}: {again:?}");
        let when = format!("after line {end}: {}", lines[end - 1]);
        same(&expected, &schema(cluster, &name)?, &when, |_| false)?;
        cuts += 1;
        killed += usize::from(!first.success);
    }
    Ok((killed, cuts))
}

/// The processes of clients are killed, which no session shows.
fn run_kills(online: bool, names: &[&str]) -> Result<()> {
    let cluster = cluster()?;
    let chosen: Vec<_> = entries()
        .filter(|entry| names.contains(&entry.name))
        .collect();
    ensure!(chosen.len() == names.len(), "{} entries", chosen.len());
    for (name, answer) in each(&cluster, &chosen, |entry, place| {
        continued(&cluster, entry, online, place)
    }) {
        let (killed, cuts) = answer.with_context(|| name)?;
        println!(
            "psql killed behind {killed} statements, ended behind {} that are not reached, and started again; online: {online}: {name}",
            cuts - killed
        );
        ensure!(killed > 0, "psql was never killed: {name}");
    }
    Ok(())
}

#[test]
fn a_script_continues_after_psql_was_killed_behind_any_statement() -> Result<()> {
    run_kills(
        false,
        &[
            "a materialized view with indexes, and a view on it",
            "names with quotes and statements in them",
            "a schema, a table and a key with names of 63 bytes",
        ],
    )
}

#[test]
fn an_online_script_continues_after_psql_was_killed_behind_any_statement() -> Result<()> {
    run_kills(
        true,
        &[
            "names with quotes and statements in them",
            "counters kept by a trigger's function with integer parameters",
            "expression indexes",
        ],
    )
}

/// What is changed in a database after the script was made for it, and what the script says, in a window
/// and, where that differs, online. `-` is not there; what is `kept` does not stop it.
#[rustfmt::skip]
const DRIFT: &[(&str, &str, &str)] = &[
    ("CREATE OR REPLACE VIEW v AS SELECT o.id, l.id AS lid FROM o JOIN l ON l.o_id = o.id AND l.q IS NULL", "view shop.v", ""),
    ("CREATE OR REPLACE VIEW w AS SELECT id, 1 AS one FROM v", "view shop.w", ""),
    ("CREATE OR REPLACE VIEW noted AS SELECT id FROM o WHERE t::varchar IN ('x', 'z')", "view shop.noted", ""),
    ("CREATE VIEW later AS SELECT id FROM l", "view shop.later", ""),
    ("CREATE VIEW later AS SELECT lid FROM v", "view shop.later", ""),
    ("DROP VIEW w", "\"w\" does not exist", ""),
    ("GRANT SELECT ON v TO reader", "privileges of view shop.v", ""),
    ("COMMENT ON VIEW v IS 'later'", "comments of view shop.v", ""),
    ("CREATE TRIGGER later INSTEAD OF DELETE ON v FOR EACH ROW EXECUTE FUNCTION fire()", "trigger later", ""),
    ("ALTER VIEW w ALTER COLUMN id SET DEFAULT 7", "default value for shop.w.id", ""),
    ("ALTER VIEW v SET (security_barrier)", "options of view shop.v", ""),
    ("RESET ROLE; ALTER VIEW w OWNER TO reporter", "owner of view", ""),
    ("CREATE INDEX later ON m (count)", "index shop.later is new", "-"),
    ("DROP INDEX mi; CREATE INDEX mi ON m (id DESC)", "definition of index shop.mi", "-"),
    ("ALTER TABLE o ADD later int", "type of column later", ""),
    ("ALTER TABLE o DROP n", "column n", ""),
    ("ALTER TABLE l ALTER q TYPE bigint", "type of column q", ""),
    ("ALTER TABLE o ALTER n SET NOT NULL", "column n: not null", ""),
    ("ALTER TABLE o ALTER n SET DEFAULT 4", "column n: default", ""),
    ("CREATE TRIGGER later BEFORE UPDATE ON l FOR EACH ROW EXECUTE FUNCTION fire()", "trigger later", ""),
    ("ALTER TABLE o DISABLE TRIGGER firing", "trigger firing", ""),
    ("RESET ROLE; ALTER TABLE l DISABLE TRIGGER ALL", "disabled triggers of foreign keys", ""),
    ("CREATE TABLE later PARTITION OF p FOR VALUES IN (2)", "shop.later", "-"),
    ("CREATE TABLE later () INHERITS (o)", "shop.later", ""),
    ("CREATE TABLE later (o_id int REFERENCES o)", "foreign key later_o_id_fkey", ""),
    ("CREATE TABLE later (x o)", "shop.later", ""),
    ("ALTER TABLE l DROP CONSTRAINT l_o_id_fkey", "l_o_id_fkey", ""),
    ("ALTER TABLE l RENAME TO later", "shop.l", ""),
    ("ALTER TABLE o ADD CONSTRAINT later CHECK (id < 2000000000)", "constraint later", ""),
    ("ALTER TABLE l ADD CONSTRAINT later CHECK (q > 1) NOT VALID", "constraint later", ""),
    ("ALTER TABLE o DROP CONSTRAINT o_n_check, ADD CONSTRAINT o_n_check CHECK (n < 98)", "o_n_check", ""),
    ("ALTER TABLE o DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (id > 0 AND t::varchar IN ('x', 'z'))", "constraint known", ""),
    ("CREATE INDEX later ON o (n)", "index later", ""),
    ("GRANT SELECT ON o TO reader", "privileges", ""),
    ("RESET ROLE; ALTER TABLE o OWNER TO reporter", "owner: reporter", ""),
    ("CREATE RULE later AS ON DELETE TO o DO ALSO SELECT 1", "rule later", ""),
    ("CREATE POLICY later ON o", "policy later", ""),
    ("ALTER TABLE o ENABLE ROW LEVEL SECURITY", "row security", ""),
    ("ALTER SEQUENCE o_id_seq MAXVALUE 1000", "maximum: 1000", ""),
    ("ALTER SEQUENCE o_id_seq INCREMENT 2", "increment: 2", ""),
    ("ALTER SEQUENCE o_id_seq CACHE 50", "cache: 50", ""),
    ("RESET ROLE; CREATE PUBLICATION later FOR TABLE o (id, n) WHERE (id > 10)", "publication later", ""),
    ("ALTER SEQUENCE o_id_seq AS bigint", "o_id_seq, data type: bigint", ""),
    ("CREATE FUNCTION later() RETURNS bigint LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM o WHERE id = 1; END", "function shop.later", ""),
    ("COMMENT ON TABLE o IS 'later'", "kept COMMENT ON TABLE shop.o", ""),
    ("CREATE STATISTICS later ON n, t FROM o", "kept CREATE STATISTICS shop.later", "statistics later"),
    ("ALTER TABLE o ALTER t SET DEFAULT 'y'", "kept DEFAULT 'y'", "column t: default"),
];

const DRIFTING: &str = "
    CREATE TABLE o (id serial PRIMARY KEY, n int CHECK (n < 99), t text DEFAULT 'x', CONSTRAINT known CHECK (id > 0 AND t::varchar IN ('x', 'y')));
    CREATE TABLE l (id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, o_id int REFERENCES o, q int);
    CREATE VIEW v AS SELECT o.id, l.id AS lid FROM o JOIN l ON l.o_id = o.id; CREATE VIEW w AS SELECT id FROM v;
    CREATE VIEW noted AS SELECT id FROM o WHERE t::varchar IN ('x', 'y');
    CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
    CREATE TRIGGER firing BEFORE INSERT ON o FOR EACH ROW EXECUTE FUNCTION fire();
    INSERT INTO o (n) SELECT 1 FROM generate_series(1, 5); INSERT INTO l (o_id) SELECT 1;";
const DRIFTING_IN_A_WINDOW: &str = "
    CREATE MATERIALIZED VIEW m AS SELECT id, count(*) FROM o GROUP BY id; CREATE INDEX mi ON m (id);
    CREATE TABLE p (id serial, k int, PRIMARY KEY (id, k)) PARTITION BY LIST (k); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);";

/// It depends on what a database has by the time that the owner's login runs the script.
fn run_drift(online: bool) -> Result<()> {
    let cluster = cluster()?;
    let (more, tables) = if online {
        ("", "{l}")
    } else {
        (DRIFTING_IN_A_WINDOW, "{l,p}")
    };
    let path = format!("SET search_path = shop; SET ROLE {OWNER};");
    copy(&cluster, "bare", "dumped")?;
    cluster
        .connect_to("dumped")?
        .batch_execute(&format!("{path} {DRIFTING} {more}"))?;
    let dump = schema(&cluster, "dumped")?;
    let arguments = format!("'o', also => '{tables}'");
    let script = script(&cluster, &dump, (&arguments, online), "planned")?;
    let script = script.map_err(|why| anyhow!(why))?;
    let (mut stopped, mut kept, mut problems) = (0, 0, Vec::new());
    for (change, window, other) in DRIFT {
        let named = if online && !other.is_empty() {
            *other
        } else {
            *window
        };
        if named == "-" {
            continue;
        }
        copy(&cluster, "dumped", "changed")?;
        cluster
            .connect_to("changed")?
            .batch_execute(&format!("{path} {change}"))?;
        let before = schema(&cluster, "changed")?;
        let ran = psql(&cluster, OWNER, "changed", &script, true)?;
        let after = schema(&cluster, "changed")?;
        let is_right = if let Some(kept) = named.strip_prefix("kept ") {
            ran.success && after.contains(kept)
        } else {
            !ran.success && ran.errors.contains(named) && after == before
        };
        if !is_right {
            problems.push(format!("{change}: {}", ran.errors));
        }
        stopped += usize::from(!ran.success);
        kept += usize::from(ran.success);
    }
    println!("changes since the dump, online: {online}: {stopped} stopped and named, {kept} kept");
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
    Ok(())
}

#[test]
fn changes_since_the_dump_are_named_in_a_window() -> Result<()> {
    run_drift(false)
}

#[test]
fn changes_since_the_dump_are_named_online() -> Result<()> {
    run_drift(true)
}

/// What happens to a script in the middle of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// psql is killed; its backend continues.
    Psql,
    Terminated,
    Cancelled,
    Server,
}

/// Ends a script in each of its units, while the unit waits for a lock, and starts it again.
fn run_ends(
    cluster: &mut Cluster,
    (script, expected): (&str, &str),
    target: impl Fn(&Cluster) -> Result<()>,
    least: usize,
) -> Result<()> {
    let mut parts = script_online::parts(script);
    parts.push(script.to_owned());
    let ways = [End::Psql, End::Terminated, End::Cancelled, End::Server];
    let mut seen: BTreeMap<(&str, End), usize> = BTreeMap::new();
    for (place, part) in parts[..parts.len() - 1].iter().enumerate() {
        let unit = &parts[place + 1][part.len()..];
        let kind = unit
            .split_once(") begins")
            .and_then(|(head, _)| head.rsplit_once('('))
            .map_or("", |(_, kind)| kind);
        let chosen = tier::size(place % 4..place % 4 + 1, 0..4);
        for way in &ways[chosen] {
            let when = format!("{way:?} in unit {} ({kind})", place + 1);
            target(cluster)?;
            let is_waiting =
                end_within(cluster, part, unit, *way, script).with_context(|| when.clone())?;
            *seen.entry((kind, *way)).or_default() += usize::from(is_waiting);
            let again = script_online::start(cluster, script)?;
            ensure!(again.success, "{when}: {again:?}");
            same(expected, &schema(cluster, "target")?, &when, |_| false)?;
        }
    }
    println!("ended while it waited for a lock, and started again: {seen:?}");
    let number: usize = seen.values().sum();
    ensure!(number >= least, "{number} ends within units");
    Ok(())
}

#[test]
fn a_script_continues_after_any_end_within_a_unit() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN")?;
    let script = script::script(&cluster)? + "\n";
    let expected = schema(&cluster, "planned")?;
    let target = |cluster: &Cluster| script::target(cluster, "target");
    run_ends(
        &mut cluster,
        (&script, &expected),
        target,
        tier::size(3, 12),
    )
}

#[test]
fn an_online_script_continues_after_any_end_within_a_unit() -> Result<()> {
    let mut cluster = Cluster::with_migrate()?;
    let (script, expected) = script_online::made(&cluster)?;
    let least = tier::size(12, 60);
    run_ends(
        &mut cluster,
        (&script, &expected),
        script_online::target,
        least,
    )
}

/// Starts a unit that has to wait for a lock, and ends it. Returns whether it waited; a second start
/// is refused while it does.
fn end_within(
    cluster: &mut Cluster,
    part: &str,
    unit: &str,
    way: End,
    script: &str,
) -> Result<bool> {
    let mut child = cluster
        .client_command("psql", "target")
        .args(["-X", "-At"])
        .env("PGUSER", OWNER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().context("no pipe")?;
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(child.stdout.take().context("no pipe")?);
    let reader = thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    input.write_all(format!("{part}\\echo reached\n").as_bytes())?;
    while lines.recv().context("psql has ended")? != "reached" {}
    let mut observer = cluster.connect()?;
    let own =
        "FROM pg_stat_activity WHERE application_name = 'widening script' AND datname = 'target'";
    let pid = i32::try_from(observer.number(&format!("SELECT pid {own}"))?)?;
    let mut holder = cluster.connect_to("target")?;
    holder.batch_execute("BEGIN; LOCK TABLE orders, lines IN SHARE MODE")?;
    input.write_all(format!("{unit}\\echo passed\n").as_bytes())?;
    let is_waiting = waits(&mut observer, pid, || {
        lines.try_iter().any(|line| line == "passed")
    })?;
    match way {
        End::Psql => {
            child.kill()?;
            if is_waiting {
                let second = psql(cluster, OWNER, "target", script, true)?;
                ensure!(
                    second.errors.contains("another session runs this script")
                        && second.errors.contains(&format!("It is backend {pid}.")),
                    "{second:?}"
                );
            }
        }
        End::Terminated => signal("pg_terminate_backend")(&mut observer, pid)?,
        End::Cancelled => signal("pg_cancel_backend")(&mut observer, pid)?,
        End::Server => observer = kill_and_start(cluster)?,
    }
    drop(holder);
    drop(input);
    child.wait()?;
    let _ = reader.join();
    observer.wait_until(&format!("SELECT count(*) = 0 {own}"))?;
    Ok(is_waiting)
}
