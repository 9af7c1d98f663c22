//! What a new row meets: each thing that can refuse a new number, and a harmless twin of it,
//! in each way to each goal. A plan says no before anything changes, or each INSERT works
//! afterwards. Only inserts of a server show that.

use crate::support::*;

/// A table `t` with the key `id KEY`, which is `serial` or `bigserial`. Rows are inserted into
/// `t (note)`; where `r` exists, they are referenced from `r (t_id)`.
struct Shape {
    name: &'static str,
    /// Without the part that refuses new numbers, and with it.
    tables: &'static [&'static str],
    /// For snowflake IDs and for numbers above those of an integer: whether they fit.
    fits: [bool; 2],
    /// Whether a narrow key can have it at all.
    narrow: bool,
}

const fn shape(name: &'static str, tables: &'static [&'static str], fits: [bool; 2]) -> Shape {
    Shape {
        name,
        tables,
        fits,
        narrow: true,
    }
}

const fn wide(name: &'static str, tables: &'static [&'static str], fits: [bool; 2]) -> Shape {
    Shape {
        name,
        tables,
        fits,
        narrow: false,
    }
}

const PLAIN: &str = "CREATE TABLE t (id KEY PRIMARY KEY, note text)";

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    shape("a check of a bound", &["CREATE TABLE t (id KEY PRIMARY KEY CHECK (id < 2147483648), note text)"], [false, false]),
    shape("a check of a bound between", &["CREATE TABLE t (id KEY PRIMARY KEY CHECK (id < 1000000000000), note text)"], [false, true]),
    shape("a check that is not valid", &[PLAIN, "ALTER TABLE t ADD CHECK (id < 2147483648) NOT VALID"], [false, false]),
    shape("a check with another column", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, n integer DEFAULT 1, CHECK (id + n < 2147483600))"], [false, false]),
    shape("a harmless check", &["CREATE TABLE t (id KEY PRIMARY KEY CHECK (id > 0), note text, CHECK (id > 0 AND coalesce(note, '') <> ''))"], [true, true]),
    shape("a harmless check of two keys", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, parent integer REFERENCES t, CHECK (parent < id), CHECK (parent <> id))"],
        [true, true]),
    shape("an index on integers", &[PLAIN, "CREATE INDEX ON t ((id::text::integer % 64))"], [false, false]),
    shape("a harmless index", &[PLAIN, "CREATE INDEX ON t ((id % 64))"], [true, true]),
    shape("the predicate of an index", &[PLAIN, "CREATE INDEX ON t (note) WHERE id::text::integer > 5"], [false, false]),
    shape("a harmless predicate", &[PLAIN, "CREATE INDEX ON t (note) WHERE id > 5"], [true, true]),
    wide("a generated column", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, part integer GENERATED ALWAYS AS (id::integer % 64) STORED)"], [false, true]),
    wide("a short generated column", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, part varchar(12) GENERATED ALWAYS AS (id::text) STORED)"], [false, true]),
    wide("a harmless generated column", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, part integer GENERATED ALWAYS AS ((id % 64)::integer) STORED)"],
        [true, true]),
    wide("a domain", &["CREATE DOMAIN small AS bigint CHECK (VALUE < 3000000000)", PLAIN, "ALTER TABLE t ALTER id TYPE small"], [false, true]),
    wide("a harmless domain", &["CREATE DOMAIN small AS bigint CHECK (VALUE > 0)", PLAIN, "ALTER TABLE t ALTER id TYPE small"], [true, true]),
    shape("a reference's check", &[PLAIN, "CREATE TABLE r (t_id bigint REFERENCES t CHECK (t_id < 2147483648))"], [false, false]),
    shape("a reference's domain", &["CREATE DOMAIN small AS bigint CHECK (VALUE < 2147483648)", PLAIN, "CREATE TABLE r (t_id small REFERENCES t)"], [false, false]),
    shape("a reference's index", &[PLAIN, "CREATE TABLE r (t_id bigint REFERENCES t)", "CREATE INDEX ON r ((t_id::integer))"], [false, false]),
    shape("a harmless reference", &[PLAIN, "CREATE TABLE r (t_id bigint REFERENCES t CHECK (t_id > 0))", "CREATE INDEX ON r ((t_id % 8))"], [true, true]),
    shape("a policy", &[PLAIN, "ALTER TABLE t ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON t FOR INSERT WITH CHECK (id < 2147483648)"], [false, false]),
    shape("a restrictive policy", &[PLAIN, "ALTER TABLE t ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON t FOR INSERT WITH CHECK (true)",
        "CREATE POLICY q ON t AS RESTRICTIVE FOR INSERT WITH CHECK (id < 2147483648)"], [false, false]),
    shape("a policy of others", &[PLAIN, "ALTER TABLE t ENABLE ROW LEVEL SECURITY", "CREATE POLICY p ON t FOR INSERT WITH CHECK (note = current_user)",
        "CREATE POLICY q ON t FOR ALL USING (id > 0)"], [true, true]),
    wide("ranges of the key", &["CREATE TABLE t (id KEY PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (3000000000)"], [false, true]),
    wide("a list of the key", &["CREATE TABLE t (id KEY PRIMARY KEY, note text) PARTITION BY LIST (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES IN (1, 2, 3, 2147483648, 2147483649)"], [false, true]),
    wide("ranges below ranges", &["CREATE TABLE t (id KEY, note text DEFAULT 'a', PRIMARY KEY (note, id)) PARTITION BY LIST (note)",
        "CREATE TABLE t1 PARTITION OF t DEFAULT PARTITION BY RANGE (id)", "CREATE TABLE t2 PARTITION OF t1 FOR VALUES FROM (0) TO (3000000000)"], [false, true]),
    wide("a DEFAULT partition", &["CREATE TABLE t (id KEY PRIMARY KEY, note text) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (1000)", "CREATE TABLE td PARTITION OF t DEFAULT"], [true, true]),
    wide("hashes of the key", &["CREATE TABLE t (id KEY PRIMARY KEY, note text) PARTITION BY HASH (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)"], [true, true]),
    shape("an exclusion constraint", &["CREATE TABLE t (id KEY PRIMARY KEY, note text, EXCLUDE (((id::text::integer)) WITH =))"], [false, false]),
    shape("a statistics object", &[PLAIN, "CREATE STATISTICS s ON (id::text::integer % 8), note FROM t"], [false, false]),
];

fn insert(client: &mut Client, has_references: bool) -> Result<()> {
    client.run([
        "BEGIN",
        "SET LOCAL ROLE writer",
        "INSERT INTO t (note) VALUES ('new')",
        "COMMIT",
    ])?;
    if has_references {
        client.run(["INSERT INTO r (t_id) SELECT max(id) FROM t"])?;
    }
    client.run(["ANALYZE t"])
}

/// Migrates, and inserts. Returns whether the plan said yes.
fn try_cell(
    client: &mut Client,
    shape: &Shape,
    key: &str,
    online: bool,
    keep_sequence: bool,
) -> Result<bool> {
    client.run([
        "DROP SCHEMA public CASCADE",
        "CREATE SCHEMA public",
        "GRANT ALL ON SCHEMA public TO PUBLIC",
    ])?;
    client.run(
        shape
            .tables
            .iter()
            .map(|table| table.replace("id KEY", &format!("id {key}"))),
    )?;
    client.run([
        "GRANT ALL ON ALL TABLES IN SCHEMA public TO writer",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO writer",
    ])?;
    let has_references = client.number("SELECT count(*) FROM pg_class WHERE relname = 'r'")? == 1;
    insert(client, has_references)?;
    let arguments = format!("'t', online => {online}, keep_sequence => {keep_sequence}");
    let before = client.number("SELECT last_value FROM t_id_seq")?;
    let steps = match client.query(
        &format!("SELECT statement FROM snowflake_migrate.plan({arguments}) WHERE statement IS NOT NULL ORDER BY step"),
        &[],
    ) {
        Ok(steps) => steps,
        Err(error) => {
            let error = ServerError::from_error(error)?;
            ensure!(error.detail.contains("new numbers") || error.detail.contains("is generated from"), "{error}");
            ensure!(error.sqlstate == "55000", "{error}");
            ensure!(client.number(
                "SELECT last_value FROM t_id_seq",
            )? == before, "a number was drawn");
            // Nothing has changed.
            insert(client, has_references)?;
            return Ok(false);
        }
    };
    client.run(steps.iter().map(|step| step.get::<_, String>(0)))?;
    if keep_sequence {
        client.run(["SELECT setval('t_id_seq', 2147483647)"])?;
    }
    for _ in 0..2 {
        insert(client, has_references)?;
    }
    Ok(true)
}

#[test]
fn after_a_yes_each_insert_works() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    // The extensions are not in the schema that is made anew.
    client.run([
        "DROP EXTENSION snowflake CASCADE",
        "CREATE SCHEMA ids",
        "CREATE EXTENSION snowflake SCHEMA ids",
        "CREATE EXTENSION snowflake_migrate SCHEMA ids",
        "CREATE ROLE writer",
        "GRANT USAGE ON SCHEMA ids TO PUBLIC",
        "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA ids TO writer",
        "SET client_min_messages = error",
    ])?;
    for shape in SHAPES {
        for key in ["serial", "bigserial"] {
            for online in [false, true] {
                for keep_sequence in [false, true] {
                    if key == "serial" && !shape.narrow {
                        continue;
                    }
                    // Nothing to widen: numbers above an integer are those of the application.
                    if key == "bigserial" && keep_sequence {
                        continue;
                    }
                    let cell = format!(
                        "{}: {key}, online {online}, keep_sequence {keep_sequence}",
                        shape.name
                    );
                    let said_yes = try_cell(&mut client, shape, key, online, keep_sequence)
                        .with_context(|| cell.clone())?;
                    let fits = shape.fits[usize::from(keep_sequence)];
                    ensure!(
                        said_yes == fits,
                        "{cell}: the plan said {}",
                        if said_yes { "yes" } else { "no" }
                    );
                }
            }
        }
    }
    Ok(())
}

/// What the expressions of a trial do: they count their calls by the role that they run as,
/// and try to become more.
const GRASPING: &str = "LANGUAGE plpgsql IMMUTABLE AS $f$
    DECLARE wanted text;
    BEGIN
        PERFORM nextval('public.ran_as_' || current_user);
        FOREACH wanted IN ARRAY ARRAY['ALTER ROLE planter SUPERUSER', 'ALTER ROLE mallory SUPERUSER', 'ALTER ROLE keeper SUPERUSER',
                                      'RESET ROLE', 'SET ROLE postgres', 'RESET SESSION AUTHORIZATION', 'GRANT postgres TO planter',
                                      'CREATE TABLE public.made ()', 'INSERT INTO t DEFAULT VALUES', 'DELETE FROM public.kept'] LOOP
            BEGIN
                EXECUTE wanted;
                PERFORM nextval('public.succeeded');
            EXCEPTION WHEN OTHERS THEN NULL;
            END;
        END LOOP;
        RETURN $1 IS NOT NULL;
    END $f$";

/// Expressions run with the rights of the table's owner, whose code they are: what golden
/// files show has one role.
#[test]
fn trials_give_no_right() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.run([
            "CREATE ROLE planter LOGIN; CREATE ROLE mallory; CREATE ROLE keeper; GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC",
            "GRANT ALL ON DATABASE postgres TO keeper; DROP EXTENSION snowflake CASCADE; SET ROLE keeper; CREATE EXTENSION snowflake_migrate CASCADE; RESET ROLE",
            "CREATE TABLE kept AS SELECT 1 AS n; CREATE SEQUENCE succeeded; CREATE SEQUENCE ran_as_planter; CREATE SEQUENCE ran_as_mallory; CREATE SEQUENCE ran_as_keeper; CREATE SEQUENCE ran_as_postgres",
            "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC; GRANT ALL ON kept TO postgres",
            "SET client_min_messages = error",
        ],
    )?;
    let uses = [
        "ALTER TABLE s.t ADD CHECK (s.grasp(id))",
        "CREATE INDEX ON s.t (s.grasp(id))",
        "CREATE INDEX ON s.t (note) WHERE s.grasp(id)",
        "ALTER TABLE s.t ADD COLUMN g boolean GENERATED ALWAYS AS (s.grasp(id)) STORED",
        "ALTER TABLE s.t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON s.t WITH CHECK (s.grasp(id))",
        "ALTER TABLE s.t ADD EXCLUDE ((s.grasp(id)::text || id) WITH =)",
        "CREATE DOMAIN s.d AS bigint CHECK (s.grasp(VALUE)); ALTER TABLE s.t ALTER COLUMN id TYPE s.d",
    ];
    for author in ["planter", "mallory", "keeper"] {
        for expression in uses {
            client.run([
                    "CREATE SCHEMA s; GRANT ALL ON SCHEMA s TO PUBLIC; SET ROLE planter; CREATE TABLE s.t (id bigserial PRIMARY KEY, note text); RESET ROLE".to_owned(),
                    format!("SET ROLE {author}; CREATE FUNCTION s.grasp(bigint) RETURNS boolean {GRASPING}; RESET ROLE"),
                    format!("SET ROLE planter; INSERT INTO s.t (note) VALUES ('old'); {expression}; RESET ROLE"),
                    "CREATE TABLE s.fired (); CREATE FUNCTION s.fires() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO s.fired DEFAULT VALUES; RETURN NEW; END'; CREATE TRIGGER fires BEFORE INSERT OR UPDATE ON s.t FOR EACH ROW EXECUTE FUNCTION s.fires()".to_owned(),
                    "SELECT setval('succeeded', 1, false), setval('ran_as_planter', 1, false), setval('ran_as_mallory', 1, false), setval('ran_as_keeper', 1, false), setval('ran_as_postgres', 1, false)".to_owned(),
                ],
            )
            .with_context(|| format!("{author}: {expression}"))?;
            let drawn = client.number("SELECT last_value FROM s.t_id_seq")?;
            for statement in [
                "SELECT count(*) FROM snowflake_migrate.survey()",
                "SELECT count(*) FROM snowflake_migrate.survey(keep_sequence => true)",
                "SELECT count(*) FROM snowflake_migrate.plan('s.t')",
                "SELECT count(*) FROM snowflake_migrate.plan('s.t', online => true)",
            ] {
                client
                    .simple_query(statement)
                    .with_context(|| format!("{author}: {expression}: {statement}"))?;
            }
            let seen = client.value(
                "SELECT concat_ws(' ', (SELECT is_called FROM ran_as_planter), (SELECT is_called FROM ran_as_mallory), (SELECT is_called FROM ran_as_keeper),
                        (SELECT is_called FROM ran_as_postgres), (SELECT is_called FROM succeeded),
                        (SELECT count(*) FROM pg_roles WHERE rolsuper), (SELECT count(*) FROM s.fired), (SELECT count(*) FROM kept), (SELECT last_value FROM s.t_id_seq) - $1)"
                    .replace("$1", &drawn.to_string()).as_str(),
            )?;
            ensure!(
                seen == "t f f f f 1 0 1 0",
                "{author}: {expression}: {seen}"
            );
            client.run(["DROP SCHEMA s CASCADE"])?;
        }
    }
    Ok(())
}

/// Code that does not end with new numbers: its trial ends, and the session's own time limit
/// is as it was. Golden files would wait as long, and see no limit.
#[test]
fn a_trial_that_takes_too_long_is_a_finding() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE FUNCTION slow(bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN IF $1 > 4294967296 THEN PERFORM pg_sleep(3600); END IF; RETURN true; END';
         CREATE TABLE t (id bigserial PRIMARY KEY CHECK (public.slow(id)), note text);
         INSERT INTO t (note) VALUES ('old'); SET client_min_messages = error",
    )?;
    let findings = "SELECT concat_ws(' ', cardinality(window_obstacles), cardinality(online_obstacles),
                        array_to_string(findings, '; ') LIKE '%check constraint t_id_check of public.t was not tried with new IDs%')
                    FROM snowflake_migrate.survey() WHERE table_name = 't'::regclass";
    ensure!(client.value(findings)? == "0 0 t");
    // The session's limit ends the statement, before a trial does or in the middle of the next one.
    for limit in ["300ms", "2500ms"] {
        client.batch_execute(&format!("SET statement_timeout = '{limit}'"))?;
        client.refused(findings, "57014")?;
    }
    client.batch_execute("SET statement_timeout = '1h'")?;
    ensure!(client.value(findings)? == "0 0 t");
    client.batch_execute("SET statement_timeout = '100ms'")?;
    client.refused("SELECT pg_sleep(60)", "57014")?;
    Ok(())
}
