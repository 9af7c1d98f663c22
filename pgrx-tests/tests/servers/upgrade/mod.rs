//! A database that was upgraded has the objects of a fresh one, and migrations
//! that were begun with the earlier version are finished with the new one.
//!
//! The earlier version's install script is in the tree under test only: see
//! scripts/test.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use postgres::Client;
use snowflake_tests::attack::{ATTACK_FUNCTIONS, ROLES};
use snowflake_tests::ids::{self, Tally};
use snowflake_tests::online;
use snowflake_tests::query::{number, value};
use snowflake_tests::{Cluster, Installation};

use crate::migration::run_before;
use crate::rights::planted::{PLANT, PLANT_TYPES, STRANGE};
use crate::support::{column, run};

const EARLIER: &str = "0.1.0";

/// Members of the extension, and relations among them.
const MEMBER: &str = "
    WITH member AS (
        SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
        WHERE e.extname = 'snowflake' AND d.deptype = 'e'
    ), relation AS (
        SELECT c.* FROM member AS m JOIN pg_class AS c ON m.classid = 'pg_class'::regclass AND c.oid = m.objid
    ) ";

/// What is compared, each a list of texts.
const COMPARED: &[(&str, &str)] = &[
    ("version", "SELECT extversion FROM pg_extension WHERE extname = 'snowflake'"),
    ("members", "SELECT pg_describe_object(classid, objid, 0) FROM member"),
    (
        "functions",
        "SELECT concat_ws(E'\\n', pg_get_functiondef(p.oid), 'cost ' || p.procost, 'rows ' || p.prorows, 'support ' || p.prosupport::text,
                p.proleakproof::text, p.prosecdef::text, p.proowner::regrole::text, p.prokind::text)
         FROM member AS m JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid",
    ),
    (
        "privileges of functions",
        "SELECT format('%s: %s', p.oid::regprocedure, (SELECT string_agg(a::text, ', ' ORDER BY a::text)
                FROM unnest(coalesce(p.proacl, acldefault('f', p.proowner))) AS a))
         FROM member AS m JOIN pg_proc AS p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid",
    ),
    (
        "privileges of relations",
        "SELECT format('%s, of %s: %s; columns: %s', r.oid::regclass, r.relowner::regrole, (SELECT string_agg(a::text, ', ' ORDER BY a::text)
                FROM unnest(coalesce(r.relacl, acldefault(CASE r.relkind WHEN 'S' THEN 's' ELSE 'r' END::\"char\", r.relowner))) AS a),
                (SELECT string_agg(format('%s %s', a.attname, a.attacl), ', ') FROM pg_attribute AS a WHERE a.attrelid = r.oid AND a.attacl IS NOT NULL))
         FROM relation AS r WHERE r.relkind IN ('r', 'v', 'S')",
    ),
    (
        "privileges that pg_dump takes for the extension's",
        "SELECT format('%s: %s', pg_describe_object(i.classoid, i.objoid, i.objsubid), (SELECT string_agg(a::text, ', ' ORDER BY a::text) FROM unnest(i.initprivs) AS a))
         FROM pg_init_privs AS i WHERE (i.classoid, i.objoid) IN (TABLE member)",
    ),
    (
        "comments",
        "SELECT format('%s: %s', pg_describe_object(c.classoid, c.objoid, c.objsubid), c.description)
         FROM pg_description AS c WHERE (c.classoid, c.objoid) IN (TABLE member)",
    ),
    ("views", "SELECT format('%s %s: %s', r.oid::regclass, r.reloptions, pg_get_viewdef(r.oid)) FROM relation AS r WHERE r.relkind = 'v'"),
    (
        "relations",
        "SELECT format('%s %s %s %s %s %s %s', r.oid::regclass, r.relkind, r.relpersistence, r.reloptions, r.relrowsecurity, r.relforcerowsecurity,
                (SELECT amname FROM pg_am WHERE oid = r.relam)) FROM relation AS r",
    ),
    (
        "columns",
        "SELECT format('%s.%s, the %s.: %s %s %s %s %s %s %s', r.oid::regclass, a.attname, row_number() OVER (PARTITION BY r.oid ORDER BY a.attnum),
                format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage, a.attcollation::regcollation, a.attidentity, a.attgenerated,
                pg_get_expr(f.adbin, f.adrelid))
         FROM relation AS r JOIN pg_attribute AS a ON a.attrelid = r.oid AND a.attnum > 0 AND NOT a.attisdropped
         LEFT JOIN pg_attrdef AS f ON f.adrelid = a.attrelid AND f.adnum = a.attnum WHERE r.relkind IN ('r', 'v')",
    ),
    (
        "constraints",
        "SELECT format('%s %s: %s %s', c.conrelid::regclass, c.conname, pg_get_constraintdef(c.oid), c.convalidated)
         FROM pg_constraint AS c WHERE c.conrelid IN (SELECT oid FROM relation)",
    ),
    ("indexes", "SELECT format('%s %s', pg_get_indexdef(i.indexrelid), i.indisvalid) FROM pg_index AS i WHERE i.indrelid IN (SELECT oid FROM relation)"),
    (
        "triggers",
        "SELECT format('%s %s %s', pg_get_triggerdef(t.oid), t.tgenabled, t.tgfoid::regprocedure) FROM pg_trigger AS t
         WHERE t.tgrelid IN (SELECT oid FROM relation) AND NOT t.tgisinternal",
    ),
    ("rules", "SELECT format('%s %s', pg_get_ruledef(w.oid), w.ev_enabled) FROM pg_rewrite AS w WHERE w.ev_class IN (SELECT oid FROM relation)"),
    (
        "policies",
        "SELECT format('%s %s %s %s %s %s', p.polrelid::regclass, p.polname, p.polcmd, p.polroles::regrole[],
                pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid))
         FROM pg_policy AS p WHERE p.polrelid IN (SELECT oid FROM relation)",
    ),
    (
        "sequences",
        "SELECT format('%s %s %s %s %s %s %s %s', s.seqrelid::regclass, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax, s.seqmin, s.seqcache, s.seqcycle)
         FROM pg_sequence AS s WHERE s.seqrelid IN (SELECT oid FROM relation)",
    ),
    (
        "what pg_dump takes along",
        "SELECT format('%s %s', c.relation::regclass, c.condition) FROM pg_extension AS e,
         LATERAL ROWS FROM (unnest(e.extconfig), unnest(e.extcondition)) AS c (relation, condition) WHERE e.extname = 'snowflake'",
    ),
    (
        "what members depend on",
        "SELECT DISTINCT format('%s on %s (%s)', pg_describe_object(d.classid, d.objid, 0), pg_describe_object(d.refclassid, d.refobjid, 0), d.deptype)
         FROM pg_depend AS d WHERE (d.classid, d.objid) IN (TABLE member) AND pg_describe_object(d.refclassid, d.refobjid, 0) !~ 'toast'",
    ),
];

fn describe(client: &mut Client, query: &str) -> Result<BTreeSet<String>> {
    let query = if query.contains("member") || query.contains("relation") {
        format!("{MEMBER} {query}")
    } else {
        query.to_owned()
    };
    Ok(column(client, &query)?.into_iter().collect())
}

/// A database with the earlier version.
fn create_earlier(cluster: &Cluster, database: &str) -> Result<Client> {
    let script = Installation::under_test()?
        .extensions
        .join(format!("snowflake--{EARLIER}.sql"));
    ensure!(
        script.exists(),
        "the install script of {EARLIER} is not in the tree under test: {} (`make test` puts it there, from sql/)",
        script.display()
    );
    let mut client = cluster.connect()?;
    client.batch_execute(&format!("CREATE DATABASE {database}"))?;
    let mut client = cluster.connect_to(database)?;
    client.batch_execute(&format!("CREATE EXTENSION snowflake VERSION '{EARLIER}'"))?;
    Ok(client)
}

/// Creates tables as `app`, of which `t` and `i` are migrated, and `o` is half
/// migrated online.
fn use_earlier(app: &mut Client) -> Result<()> {
    app.batch_execute(
        "CREATE TABLE own.t (id serial PRIMARY KEY, n int); INSERT INTO own.t (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.i (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int); INSERT INTO own.i (n) SELECT 1 FROM generate_series(1, 10);
         CREATE TABLE own.o (id serial PRIMARY KEY, n int); INSERT INTO own.o (n) SELECT 1 FROM generate_series(1, 1000);
         CREATE TABLE own.r (o_id int REFERENCES own.o); INSERT INTO own.r SELECT id FROM own.o;
         CREATE VIEW own.decoded AS SELECT * FROM snowflake_decode(1000000000000000000);
         CALL snowflake_migrate('own.t'); CALL snowflake_migrate('own.i');
         INSERT INTO own.t (n) VALUES (1); INSERT INTO own.i (n) VALUES (1)",
    )?;
    let (steps, backfill) = run_before(app, "'own.o'", online::Step::is_backfill)?;
    run(app, [&steps[backfill].statement])
}

/// A server with a database `old` of the earlier version in use, and a session
/// of `app` in it.
fn earlier_in_use() -> Result<(Cluster, Client, Client)> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    cluster.connect()?.batch_execute("CREATE ROLE app LOGIN")?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute(&granted(EARLIER_MARK))?;
    let mut app = cluster.connect_as("app", "old")?;
    use_earlier(&mut app)?;
    Ok((cluster, old, app))
}

/// What `app` may do in a database whose mark has this name.
fn granted(mark: &str) -> String {
    format!(
        "GRANT EXECUTE ON FUNCTION snowflake_nextval() TO app; GRANT SELECT ON {mark} TO app;
         CREATE SCHEMA own AUTHORIZATION app"
    )
}

/// The mark in a database of the earlier version.
const EARLIER_MARK: &str = "snowflake_mark";

#[test]
fn an_upgraded_database_has_the_objects_of_a_fresh_one() -> Result<()> {
    let (cluster, mut old, _app) = earlier_in_use()?;
    let mut fresh = cluster.connect_to_new_database("fresh")?;
    fresh.batch_execute(&granted("snowflake_internal.mark"))?;
    old.batch_execute("ALTER EXTENSION snowflake UPDATE")?;
    let (mut compared, mut differences) = (0, Vec::new());
    for (what, query) in COMPARED {
        let (upgraded, wanted) = (describe(&mut old, query)?, describe(&mut fresh, query)?);
        compared += wanted.len();
        for missing in wanted.difference(&upgraded) {
            differences.push(format!("{what}: only fresh: {missing}"));
        }
        for excess in upgraded.difference(&wanted) {
            differences.push(format!("{what}: only upgraded: {excess}"));
        }
    }
    assert!(compared > 500, "{compared}");
    println!("upgrade: from {EARLIER}: {compared} descriptions of objects compared");
    let report = differences.join("\n");
    assert!(
        differences.is_empty(),
        "{} differences:\n{report}",
        differences.len()
    );
    Ok(())
}

#[test]
fn no_id_repeats_after_an_upgrade_of_the_extension() -> Result<()> {
    let (cluster, mut old, mut app) = earlier_in_use()?;
    let mut received = ids::nextval(&mut app, 20_000)?;
    old.batch_execute("ALTER EXTENSION snowflake UPDATE")?;
    // A session from before and a new one.
    let mut new = cluster.connect_as("app", "old")?;
    for _ in 0..3 {
        received.extend(ids::nextval(&mut app, 10_000)?);
        received.extend(ids::nextval(&mut new, 10_000)?);
    }
    let tally = Tally::of(received);
    println!("upgrade: IDs before and after: {tally}");
    tally.assert_unique();
    Ok(())
}

/// The library may be newer than the extension of a database for as long as the
/// administrator likes: it finds the mark where that version has it.
#[test]
fn no_id_repeats_with_the_catalog_of_the_earlier_version() -> Result<()> {
    let mut cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut old = create_earlier(&cluster, "old")?;
    old.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int)")?;
    let mut received = Vec::new();
    let mut reserved = 0;
    for _ in 0..3 {
        let mut session = cluster.connect_to("old")?;
        let ids = ids::nextval(&mut session, 10_000)?;
        assert!(ids[0] > reserved, "{} is below the mark {reserved}", ids[0]);
        received.extend(ids);
        session.batch_execute("COPY t (n) FROM PROGRAM 'seq 5000'")?;
        reserved = number(
            &mut session,
            &format!("SELECT last_value FROM {EARLIER_MARK}"),
        )?;
        let state = "SELECT count(*) FROM snowflake_status WHERE reserved_until > now()";
        assert_eq!(number(&mut session, state)?, 1);
        cluster.kill9_all()?;
        cluster.start()?;
    }
    let mut session = cluster.connect_to("old")?;
    session.batch_execute("ALTER EXTENSION snowflake UPDATE")?;
    received.extend(ids::nextval(&mut session, 10_000)?);
    received.extend(ids::fetch(&mut session, "SELECT id FROM t")?);
    let tally = Tally::of(received);
    println!("upgrade: IDs with the catalog of {EARLIER}, 3 x kill -9: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn migrations_of_the_earlier_version_are_finished_and_reverted() -> Result<()> {
    let (cluster, mut old, _app) = earlier_in_use()?;
    old.batch_execute("ALTER EXTENSION snowflake UPDATE")?;
    let mut new = cluster.connect_as("app", "old")?;
    let new = &mut new;
    assert!(online::migrate(new, "'own.o'")? > 0);
    let kind = value(
        new,
        "SELECT string_agg(format_type(atttypid, atttypmod), ',') FROM pg_attribute WHERE attname IN ('id', 'o_id') AND attrelid IN ('own.o'::regclass, 'own.r'::regclass)",
    )?;
    assert_eq!(kind, "bigint,bigint");
    assert!(number(new, "INSERT INTO own.o (n) VALUES (1) RETURNING id")? > 1 << 40);
    let findings: Vec<String> = column(
        new,
        "SELECT finding FROM snowflake_audit('own.o', first_id => 1000000)",
    )?;
    assert_eq!(findings, ["IDs below first_id"]);
    for table in ["own.t", "own.i"] {
        new.batch_execute(&format!("CALL snowflake_migrate_revert('{table}')"))?;
        let insert = format!("INSERT INTO {table} (n) VALUES (1) RETURNING id");
        assert_eq!(number(new, &insert)?, 11, "{table}");
    }
    let identity = "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 'own.i'::regclass AND attname = 'id'";
    assert_eq!(value(new, identity)?, "a");
    old.batch_execute("DROP VIEW own.decoded; DROP TABLE own.o CASCADE; DROP EXTENSION snowflake")?;
    Ok(())
}

/// Where operators and types were planted before the earlier version was
/// created, its views use them. They don't after the upgrade.
#[test]
fn an_upgraded_database_uses_no_planted_object() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut admin = cluster.connect()?;
    admin.batch_execute(ROLES)?;
    admin.batch_execute("CREATE DATABASE planted OWNER mallory")?;
    let mut admin = cluster.connect_to("planted")?;
    admin.batch_execute(ATTACK_FUNCTIONS)?;
    let mut owner = cluster.connect_as("mallory", "planted")?;
    owner.batch_execute("SET statement_timeout = 0; SET search_path = pg_catalog")?;
    owner.batch_execute(PLANT_TYPES)?;
    owner.batch_execute(PLANT)?;
    owner.batch_execute(&format!(
        "RESET search_path; CREATE EXTENSION snowflake VERSION '{EARLIER}'"
    ))?;
    let before = admin.query(STRANGE, &[])?.len();
    assert!(before > 0, "nothing of {EARLIER} took what was planted");
    owner.batch_execute("ALTER EXTENSION snowflake UPDATE")?;
    let after: Vec<String> = column(&mut admin, STRANGE)?;
    println!(
        "upgrade: {before} dependencies on what was planted before, {} afterwards",
        after.len()
    );
    assert!(after.is_empty(), "{after:#?}");
    Ok(())
}
