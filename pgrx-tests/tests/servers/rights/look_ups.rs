//! What the library looks up in the catalog, and a superuser's statements that depend on
//! it: for the attacks of [`super::members`].

use std::io::Write;

use crate::support::*;

const DATABASE: &str = "members";

/// The functions that the library looks up: name, argument types, result, and whether
/// [`READS`] or COPY call it by name.
pub(super) const FUNCTIONS: [(&str, &str, &str, bool); 11] = [
    ("saturated", "anyelement, bigint", TIME, false),
    ("saturated", "anyelement, bigint, text", TIME, false),
    ("snowflake_timestamp", "bigint", TIME, true),
    ("snowflake_timestamp", "bigint, text", TIME, true),
    ("snowflake_decode", "bigint", TIME, true),
    ("snowflake_decode", "bigint, text", TIME, true),
    ("snowflake_max_id", TIME, "bigint", false),
    ("snowflake_max_id", "timestamptz, text", "bigint", false),
    ("snowflake_max_id_before", TIME, "bigint", false),
    (
        "snowflake_max_id_before",
        "timestamptz, text",
        "bigint",
        false,
    ),
    ("copy_nextval", "", "bigint", false),
];
const TIME: &str = "timestamptz";

/// The relations that the library looks up.
pub(super) const RELATIONS: [(&str, &str); 7] = [
    ("snowflake", "mark"),
    ("snowflake", "accepted_layout"),
    ("snowflake", "restore"),
    ("snowflake_migrate", "origins"),
    ("snowflake_migrate", "progress"),
    ("snowflake_migrate", "pace"),
    ("snowflake_migrate", "restore"),
];

/// Of the superuser, whose schema of the extension is `#`.
const TABLES: &str = "
    CREATE SCHEMA safe;
    CREATE TABLE safe.t (id bigint PRIMARY KEY, n int);
    INSERT INTO safe.t SELECT #.snowflake_min_id(timestamptz '2025-03-01 00:00+00' + n * interval '12 hours'), n FROM generate_series(0, 47) AS n;
    CREATE TABLE safe.c (id bigint PRIMARY KEY DEFAULT #.snowflake_nextval(), n int); INSERT INTO safe.c (n) VALUES (0);
    CREATE TABLE safe.s (id serial PRIMARY KEY, n int); INSERT INTO safe.s (n) VALUES (1), (2);
    CREATE TABLE safe.m (id serial PRIMARY KEY, n int); INSERT INTO safe.m (n) VALUES (1), (2);
    CALL snowflake_migrate.run('safe.m');
    CREATE VIEW safe.dated AS SELECT t.*, #.snowflake_timestamp(t.id) AS created_at FROM safe.t AS t;
    CREATE VIEW safe.audited AS SELECT a.finding, a.ids FROM #.snowflake_audit('safe.t') AS a;
    CREATE TABLE safe.p (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
    CREATE VIEW safe.parts AS SELECT count(*) FROM snowflake_partitions.ddl('safe.p'::regclass, timestamptz '2025-01-01', timestamptz '2025-02-01', interval '1 day') AS d;
    CREATE VIEW safe.first AS SELECT #.snowflake_id_boundary('safe.m') AS id;
    CREATE VIEW safe.status AS SELECT s.layout, s.node_id, s.database_layout FROM #.snowflake_status AS s;";

/// Conditions on the time of an ID, with `@` for a time of this type.
#[rustfmt::skip]
const READS: [(&str, &str); 12] = [
    (TIME, "safe.t WHERE #.snowflake_timestamp(t.id) >= @"),
    ("date", "safe.t WHERE #.snowflake_timestamp(t.id) >= @"),
    ("timestamp", "safe.t WHERE #.snowflake_timestamp(t.id) < @"),
    ("date", "safe.t WHERE #.snowflake_timestamp(t.id)::date = @"),
    ("timestamp", "safe.t WHERE #.snowflake_timestamp(t.id) AT TIME ZONE 'Asia/Tokyo' < @"),
    (TIME, "safe.t WHERE #.snowflake_timestamp(t.id, 'default') < @"),
    ("date", "safe.t WHERE #.snowflake_timestamp(t.id, 'default') >= @"),
    (TIME, "safe.t WHERE extract(epoch FROM #.snowflake_timestamp(t.id)) >= extract(epoch FROM @)"),
    (TIME, "safe.t WHERE (#.snowflake_decode(t.id)).created_at > @"),
    ("date", "safe.t WHERE (#.snowflake_decode(t.id, 'default')).created_at <= @"),
    ("date", "safe.t, #.snowflake_decode(t.id) AS d WHERE d.created_at >= @"),
    (TIME, "safe.dated AS t WHERE t.created_at >= @"),
];

/// What else depends on the look-ups.
const CALLS: [&str; 13] = [
    "SELECT #.snowflake_nextval() > max(id) FROM safe.c",
    "SELECT id FROM safe.first",
    "SELECT #.snowflake_id_boundary('safe.m'::regclass)",
    "SELECT * FROM safe.status",
    "SELECT * FROM safe.audited",
    "SELECT * FROM safe.parts",
    "SELECT count(*) FROM snowflake_migrate.plan('safe.s'::regclass)",
    "CALL snowflake_migrate.run('safe.s'::regclass)",
    "CALL snowflake_migrate.revert('safe.s'::regclass)",
    "SELECT count(*) FROM snowflake_migrate.plan('safe.m'::regclass)",
    "SELECT count(*) FROM snowflake_migrate.audit('safe.m'::regclass)",
    "SELECT count(*) FROM snowflake_migrate.survey()",
    "SELECT (SELECT count(*) FROM snowflake_migrate.columns), (SELECT count(*) FROM snowflake_migrate.progress)",
];

/// Whether a statement succeeded, and its answer.
pub(super) type Answer = (bool, String);

/// What a superuser sees.
#[derive(Default)]
pub(super) struct Answers {
    pub(super) plans: Vec<Answer>,
    pub(super) rows: Vec<Answer>,
}

/// A superuser's session; nothing but the attacker's objects could run other code in it.
pub(super) fn superuser(cluster: &Cluster) -> Result<Session> {
    let mut session = Session::connect(cluster, "postgres", DATABASE)?;
    session.run(
        "SET statement_timeout = '60s'; SET search_path = pg_catalog; SET client_min_messages = warning; SET timezone = 'America/New_York'",
    )?;
    Ok(session)
}

/// Reads by times, and copies rows into a table whose default generates IDs.
pub(super) fn reads(session: &mut Session, schema: &str) -> Result<Answers> {
    let mut answers = Answers::default();
    session.run(
        "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off",
    )?;
    for (kind, read) in READS {
        let read = format!("SELECT count(*), sum(t.n) FROM {read}").replace('#', schema);
        let literal = read.replace('@', &format!("CAST('2025-03-10' AS {kind})"));
        let prepare = format!(
            "DEALLOCATE ALL; PREPARE p ({kind}) AS {}",
            read.replace('@', "$1")
        );
        for plan in [
            format!("EXPLAIN (COSTS off) {literal}"),
            format!("{prepare}; EXPLAIN (COSTS off) EXECUTE p ('2025-03-10')"),
        ] {
            answers.plans.push(session.attempt(&plan)?);
        }
        answers.rows.push(session.attempt(&literal)?);
        answers
            .rows
            .push(session.attempt("EXECUTE p ('2025-03-10')")?);
    }
    session.run("DELETE FROM safe.c")?;
    let mut writer = session.client.copy_in("COPY safe.c (n) FROM STDIN")?;
    writer.write_all(b"1\n2\n3\n4\n5\n")?;
    writer.finish()?;
    answers.rows.push(session.attempt(&format!(
        "SELECT count(*), count(DISTINCT id), bool_and({schema}.snowflake_timestamp(id) > now() - interval '1 hour'), {schema}.snowflake_nextval() > max(id) FROM safe.c"
    ))?);
    Ok(answers)
}

/// Generates an ID, reads what is recorded, and migrates a table there and back.
pub(super) fn calls(session: &mut Session, schema: &str) -> Result<Vec<Answer>> {
    let mut answers = Vec::new();
    session.run("RESET plan_cache_mode; RESET enable_seqscan; RESET enable_bitmapscan")?;
    for call in CALLS {
        let (worked, answer) = session.attempt(&call.replace('#', schema))?;
        let is_told = !worked || !call.starts_with("CALL");
        answers.push((worked, if is_told { answer } else { String::new() }));
    }
    Ok(answers)
}

/// An error, or NULL where nothing is recorded.
fn is_unknown((worked, answer): &Answer) -> bool {
    !worked || answer.contains("NULL ")
}

/// Counts each answer that is another one than before, unless it may be unknown.
pub(super) fn compare(
    attacks: &mut Attacks<'_>,
    what: &str,
    before: &[Answer],
    after: &[Answer],
    may_be_unknown: bool,
) {
    assert_eq!(before.len(), after.len(), "{what}");
    for (right, answer) in before.iter().zip(after) {
        let is_wrong = answer != right && !(may_be_unknown && is_unknown(answer));
        attacks.record(is_wrong, format!("{what}: {answer:?} instead of {right:?}"));
    }
}

/// A database with the extensions of an attacker who owns no more than them, and the
/// tables of a superuser. Returns the superuser's session and the attacker's.
pub(super) fn begin(cluster: &Cluster, schema: &str, creator: &str) -> Result<(Session, Session)> {
    cluster.run(&format!("CREATE DATABASE {DATABASE}"))?;
    let mut admin = superuser(cluster)?;
    admin.run(ATTACK_FUNCTIONS)?;
    admin.run(&format!("CREATE SCHEMA {schema} AUTHORIZATION {creator}"))?;
    let mut mallory = Session::connect(cluster, "mallory", DATABASE)?;
    mallory.run(&format!(
        "SET statement_timeout = '60s'; CREATE EXTENSION snowflake SCHEMA {schema}; CREATE EXTENSION snowflake_migrate; CREATE EXTENSION snowflake_partitions; CREATE SCHEMA later"
    ))?;
    admin.client.run([TABLES.replace('#', schema)])?;
    let owner = admin.client.value(
        "SELECT string_agg(DISTINCT extowner::regrole::text, ' ') FROM pg_extension WHERE extname LIKE 'snowflake%'",
    )?;
    ensure!(owner == "mallory", "the extensions belong to {owner}");
    // Reverting a migration leaves the column wide.
    calls(&mut admin, schema)?;
    Ok((admin, mallory))
}

/// What the answers are while nothing is planted: with ranges, and the same without.
pub(super) fn undisturbed(session: &mut Session, schema: &str) -> Result<Answers> {
    let before = reads(session, schema)?;
    ensure!(before.rows.iter().all(|it| it.0), "{:?}", before.rows);
    let ranges = |it: &&Answer| it.1.contains("Index Cond");
    let ranges = before.plans.iter().filter(ranges).count();
    ensure!(ranges > READS.len(), "{ranges} ranges: {:?}", before.plans);
    session.run("SET snowflake.enable_time_ranges = off")?;
    assert_eq!(before.rows, reads(session, schema)?.rows);
    session.run("RESET snowflake.enable_time_ranges")?;
    Ok(before)
}
