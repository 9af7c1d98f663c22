//! Compares what the catalogs of two databases have of the extension: the same texts,
//! privileges, comments and dependencies.

use std::collections::BTreeMap;

use crate::support::*;

/// What the catalog of a database has of the extension, a line for each description.
pub(super) fn fingerprint(client: &mut Client) -> Result<Vec<String>> {
    client.column(include_str!("fingerprint.sql"))
}

/// The lines that only one of two has, with a sign for which one.
pub(super) fn difference(fresh: &[String], updated: &[String]) -> Vec<String> {
    let mut count: BTreeMap<&str, i64> = BTreeMap::new();
    for line in fresh {
        *count.entry(line).or_default() -= 1;
    }
    for line in updated {
        *count.entry(line).or_default() += 1;
    }
    count
        .into_iter()
        .filter(|&(_, count)| count != 0)
        .map(|(line, count)| format!("{} {line}", if count < 0 { "-" } else { "+" }))
        .collect()
}

/// Fails unless both databases have the same fingerprint.
pub(super) fn assert_same(
    cluster: &Cluster,
    (fresh, updated): (&str, &str),
    when: &str,
) -> Result<()> {
    let wanted = fingerprint(&mut cluster.connect_to(fresh)?)?;
    let found = fingerprint(&mut cluster.connect_to(updated)?)?;
    let differences = difference(&wanted, &found);
    assert!(
        differences.is_empty(),
        "{when}: {} differences, - only fresh, + only updated:\n{}",
        differences.len(),
        differences.join("\n")
    );
    assert!(wanted.len() > 1_000, "{}", wanted.len());
    Ok(())
}

/// Changes that the comparison has to find.
const CHANGES: &[&str] = &[
    "ALTER EXTENSION snowflake DROP FUNCTION snowflake_nextval()",
    "COMMENT ON COLUMN snowflake_status.layout IS 'x'",
    "GRANT EXECUTE ON FUNCTION snowflake_stat_reset() TO PUBLIC",
    "DELETE FROM pg_init_privs WHERE objoid = 'snowflake_internal.mark'::regclass",
    "UPDATE pg_proc SET prosrc = prosrc || ' ' WHERE proname = 'snowflake_audit'",
    "ALTER FUNCTION snowflake_nextval() PARALLEL RESTRICTED",
    "ALTER TABLE snowflake_migrate_internal.origins ADD COLUMN x int",
    "ALTER TABLE snowflake_migrate_internal.pace DISABLE TRIGGER guard",
    "CREATE OR REPLACE VIEW snowflake_layouts AS SELECT *, 1 AS x FROM snowflake_internal.get_layouts()",
    "UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'snowflake'",
    "UPDATE pg_extension SET extcondition[1] = 'WHERE false' WHERE extname = 'snowflake_migrate'",
];

#[test]
fn the_fingerprint_finds_every_planted_change() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
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
    Ok(())
}
