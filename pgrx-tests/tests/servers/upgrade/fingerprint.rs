//! A database that was updated has the objects of a fresh one, with the same
//! texts, privileges, comments and dependencies, whatever was granted before.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::attack::{ATTACK_FUNCTIONS, ROLES};
use snowflake_tests::query::value;

use super::{
    EARLIER, UPDATE, create_database, create_earlier, create_extension, earlier_in_use, granted,
};
use crate::rights::planted::{PLANT, PLANT_TYPES, STRANGE};
use crate::support::column;

const FINGERPRINT: &str = include_str!("fingerprint.sql");

/// What the catalog of a database has of the extension.
pub(crate) fn fingerprint(client: &mut Client) -> Result<Vec<String>> {
    column(client, FINGERPRINT)
}

/// The lines that only one of two has, with a sign that tells which.
pub(crate) fn difference(fresh: &[String], upgraded: &[String]) -> Vec<String> {
    let mut count: BTreeMap<&str, i64> = BTreeMap::new();
    for line in fresh {
        *count.entry(line).or_default() -= 1;
    }
    for line in upgraded {
        *count.entry(line).or_default() += 1;
    }
    count
        .into_iter()
        .filter(|&(_, count)| count != 0)
        .map(|(line, count)| format!("{} {line}", if count < 0 { "-" } else { "+" }))
        .collect()
}

/// Fails unless both databases have the same fingerprint and psql shows the same
/// objects. Returns the number of descriptions.
pub(crate) fn assert_same(
    cluster: &Cluster,
    (fresh, upgraded): (&str, &str),
    when: &str,
) -> Result<usize> {
    let wanted = fingerprint(&mut cluster.connect_to(fresh)?)?;
    let found = fingerprint(&mut cluster.connect_to(upgraded)?)?;
    let differences = difference(&wanted, &found);
    assert!(
        differences.is_empty(),
        "{when}: {} differences, - only fresh, + only upgraded:\n{}",
        differences.len(),
        differences.join("\n")
    );
    let objects = |database| -> Result<String> {
        let output = cluster
            .client_command("psql", database)
            .args(["-X", "-c", "\\dx+ snowflake"])
            .output()
            .context("running psql")?;
        ensure!(output.status.success(), "\\dx+ failed");
        Ok(String::from_utf8(output.stdout)?)
    };
    let listed = objects(fresh)?;
    assert_eq!(listed, objects(upgraded)?, "{when}");
    assert!(listed.lines().count() > 200, "{listed}");
    assert!(wanted.len() > 1_000, "{}", wanted.len());
    println!(
        "upgrade: {when}: {} lines of \\dx+ and {} descriptions of objects compared, 0 differ",
        listed.lines().count(),
        wanted.len()
    );
    Ok(wanted.len())
}

#[test]
fn an_upgraded_database_has_the_objects_of_a_fresh_one() -> Result<()> {
    let (cluster, mut old, _app) = earlier_in_use()?;
    let mut fresh = cluster.connect_to_new_database("fresh")?;
    fresh.batch_execute(&granted("snowflake_internal.mark"))?;
    old.batch_execute(UPDATE)?;
    assert_same(&cluster, ("fresh", "old"), "in use")?;
    Ok(())
}

/// [`compare_from`] the earliest version.
fn compare(
    cluster: &Cluster,
    name: &str,
    before: &str,
    create: &str,
    after: &str,
    update: &str,
) -> Result<usize> {
    compare_from(EARLIER, cluster, name, before, create, after, update)
}

/// Sets up two databases by the same statements, with the extension of an earlier
/// version in one, and compares them after the update.
pub(super) fn compare_from(
    version: &str,
    cluster: &Cluster,
    name: &str,
    before: &str,
    create: &str,
    after: &str,
    update: &str,
) -> Result<usize> {
    let (upgraded, fresh) = (format!("{name}_upgraded"), format!("{name}_fresh"));
    let mut old = create_database(cluster, &upgraded)?;
    let mut new = create_database(cluster, &fresh)?;
    old.batch_execute(before)?;
    new.batch_execute(before)?;
    old.batch_execute(&format!("{create} VERSION '{version}'"))?;
    new.batch_execute(create)?;
    old.batch_execute(after)?;
    new.batch_execute(after)?;
    old.batch_execute(update)?;
    assert_same(
        cluster,
        (&fresh, &upgraded),
        &format!("from {version}, {name}"),
    )
}

#[test]
fn an_upgraded_database_has_those_objects_in_any_setting() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    cluster.connect()?.batch_execute(
        "CREATE ROLE app LOGIN; CREATE ROLE other LOGIN; CREATE ROLE admin LOGIN SUPERUSER; CREATE ROLE tenant LOGIN",
    )?;
    let create = "CREATE EXTENSION snowflake";
    compare(
        &cluster,
        "another_schema",
        "CREATE SCHEMA \"An App\"",
        "CREATE EXTENSION snowflake SCHEMA \"An App\"",
        "",
        UPDATE,
    )?;
    // The privileges that a restrictive or a generous administrator has made the
    // rule for whatever is created.
    compare(
        &cluster,
        "no_default_privileges",
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES REVOKE USAGE ON TYPES FROM PUBLIC",
        create,
        "",
        UPDATE,
    )?;
    compare(
        &cluster,
        "default_privileges",
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app; ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;
         ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO app",
        create,
        "",
        UPDATE,
    )?;
    // Whoever updates it is not who created it.
    compare(
        &cluster,
        "trusted",
        "DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO tenant; GRANT CREATE ON SCHEMA public TO tenant', current_database()); END$$; SET ROLE tenant",
        create,
        "",
        UPDATE,
    )?;
    Ok(())
}

/// Changes that the comparison has to find, one for each kind.
const CHANGES: &[&str] = &[
    "ALTER EXTENSION snowflake DROP FUNCTION snowflake_nextval()",
    "COMMENT ON FUNCTION snowflake_nextval() IS NULL",
    "COMMENT ON COLUMN snowflake_status.layout IS 'x'",
    "COMMENT ON EXTENSION snowflake IS 'x'",
    "COMMENT ON SCHEMA snowflake_internal IS NULL",
    "GRANT EXECUTE ON FUNCTION snowflake_stat_reset() TO PUBLIC",
    "REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC",
    "REVOKE SELECT ON snowflake_status FROM PUBLIC",
    "REVOKE USAGE ON SCHEMA snowflake_internal FROM PUBLIC",
    "GRANT SELECT (target) ON snowflake_internal.origins TO PUBLIC",
    "GRANT SELECT ON snowflake_internal.origins TO PUBLIC",
    "REVOKE SELECT ON snowflake_internal.mark FROM PUBLIC",
    "DELETE FROM pg_init_privs WHERE objoid = 'snowflake_internal.mark'::regclass",
    "ALTER FUNCTION snowflake_nextval() COST 7",
    "ALTER FUNCTION snowflake_nextval() PARALLEL RESTRICTED",
    "ALTER FUNCTION snowflake_nextval() STABLE",
    "ALTER FUNCTION snowflake_nextval() SECURITY DEFINER",
    "ALTER FUNCTION snowflake_nextval() LEAKPROOF",
    "ALTER FUNCTION snowflake_nextval() CALLED ON NULL INPUT",
    "ALTER FUNCTION snowflake_nextval() SET work_mem = '1MB'",
    "ALTER FUNCTION snowflake_nextval() OWNER TO pg_monitor",
    "ALTER FUNCTION snowflake_nextvals(int) ROWS 7",
    "UPDATE pg_proc SET prosupport = 0 WHERE oid = 'snowflake_nextval()'::regprocedure",
    "UPDATE pg_proc SET prosrc = prosrc || ' ' WHERE proname = 'snowflake_audit'",
    "UPDATE pg_proc SET proargnames[1] = 'x' WHERE proname = 'snowflake_nextvals'",
    "ALTER TABLE snowflake_internal.pace ALTER is_paused DROP DEFAULT",
    "ALTER TABLE snowflake_internal.pace ALTER is_paused DROP NOT NULL",
    "ALTER TABLE snowflake_internal.pace ALTER batch_size TYPE bigint",
    "ALTER TABLE snowflake_internal.pace ADD COLUMN x int",
    "ALTER TABLE snowflake_internal.pace SET (fillfactor = 51)",
    "ALTER TABLE snowflake_internal.pace DROP CONSTRAINT pace_pause_check",
    "ALTER TABLE snowflake_internal.pace RENAME CONSTRAINT pace_pkey TO x",
    "ALTER TABLE snowflake_internal.pace DISABLE TRIGGER pace_guard",
    "ALTER TABLE snowflake_internal.pace OWNER TO pg_monitor",
    "DROP TRIGGER pace_stay ON snowflake_internal.pace",
    "ALTER TABLE snowflake_internal.pace ENABLE ROW LEVEL SECURITY",
    "CREATE RULE x AS ON DELETE TO snowflake_internal.pace DO INSTEAD NOTHING",
    "CREATE POLICY x ON snowflake_internal.pace",
    "CREATE INDEX x ON snowflake_internal.pace (pause)",
    "ALTER TABLE snowflake_internal.progress ALTER key_targets SET STORAGE MAIN",
    "ALTER TABLE snowflake_internal.progress ALTER key_targets SET STATISTICS 7",
    "ALTER SEQUENCE snowflake_internal.mark CACHE 7",
    "ALTER SEQUENCE snowflake_internal.mark INCREMENT 7",
    "ALTER VIEW snowflake_status SET (security_barrier)",
    "ALTER VIEW snowflake_status ALTER layout SET DEFAULT 'x'",
    "ALTER VIEW snowflake_status RENAME layout TO x",
    "CREATE OR REPLACE VIEW snowflake_layouts AS SELECT *, 1 AS x FROM snowflake_internal.get_layouts()",
    "ALTER TYPE snowflake_internal.scanned_ids ADD ATTRIBUTE x int",
    "UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'snowflake'",
    "UPDATE pg_extension SET extconfig = extconfig[2:], extcondition = extcondition[2:] WHERE extname = 'snowflake'",
    "ALTER EXTENSION snowflake ADD TABLE public.stray",
    "ALTER FUNCTION snowflake_nextval() DEPENDS ON EXTENSION plpgsql",
];

#[test]
fn the_fingerprint_names_every_kind_of_difference() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE TABLE public.stray (n int)")?;
    let before = fingerprint(&mut client)?;
    for change in CHANGES {
        client.batch_execute("BEGIN")?;
        client
            .batch_execute(change)
            .with_context(|| (*change).to_owned())?;
        let found = difference(&before, &fingerprint(&mut client)?);
        assert!(!found.is_empty(), "not found: {change}");
        assert!(found.len() < 20, "{change}: {found:#?}");
        client.batch_execute("ROLLBACK")?;
    }
    assert_eq!(before, fingerprint(&mut client)?);
    println!(
        "upgrade: {} changes of the catalog made and found",
        CHANGES.len()
    );
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
    owner.batch_execute("RESET search_path")?;
    create_extension(&mut owner)?;
    let before = admin.query(STRANGE, &[])?.len();
    assert!(before > 0, "nothing of {EARLIER} took what was planted");
    owner.batch_execute(UPDATE)?;
    let after: Vec<String> = column(&mut admin, STRANGE)?;
    println!(
        "upgrade: {before} dependencies on what was planted before, {} afterwards",
        after.len()
    );
    assert!(after.is_empty(), "{after:#?}");
    Ok(())
}

/// The extension is trusted: its owner updates it, whose objects belong to the
/// superuser who created the server. A superuser may update another one's too.
#[test]
fn whoever_may_update_the_extension_gets_the_same_objects() -> Result<()> {
    let cluster = Cluster::builder().conf("snowflake.node_id", 1).start()?;
    let mut admin = cluster.connect()?;
    admin.batch_execute(
        "CREATE ROLE tenant LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE admin LOGIN SUPERUSER",
    )?;
    admin.batch_execute("CREATE DATABASE theirs OWNER tenant")?;
    let mut tenant = cluster.connect_as("tenant", "theirs")?;
    create_extension(&mut tenant)?;
    let mut stranger = cluster.connect_as("stranger", "theirs")?;
    let refused = crate::support::refused(&mut stranger, UPDATE, "42501")?;
    assert!(
        refused.message.contains("must be owner of extension"),
        "{refused}"
    );
    tenant.batch_execute(UPDATE)?;
    admin.batch_execute("CREATE DATABASE fresh OWNER tenant")?;
    let mut fresh = cluster.connect_as("tenant", "fresh")?;
    fresh.batch_execute("CREATE EXTENSION snowflake")?;
    assert_same(
        &cluster,
        ("fresh", "theirs"),
        "by an owner who is not a superuser",
    )?;
    let owners = "SELECT string_agg(DISTINCT nspowner::regrole::text, ',') FROM pg_namespace WHERE nspname = 'snowflake_internal'";
    assert_eq!(value(&mut tenant, owners)?, "postgres");

    // New objects belong to the superuser who updates, as with any extension.
    create_earlier(&cluster, "mixed")?;
    let mut other = cluster.connect_as("admin", "mixed")?;
    other.batch_execute(UPDATE)?;
    other.batch_execute(
        "CREATE SCHEMA own AUTHORIZATION tenant; SET ROLE tenant;
         CREATE TABLE own.t (id serial PRIMARY KEY); INSERT INTO own.t DEFAULT VALUES; CALL snowflake_migrate('own.t');
         INSERT INTO own.t DEFAULT VALUES; CALL snowflake_migrate_revert('own.t')",
    )?;
    Ok(())
}
