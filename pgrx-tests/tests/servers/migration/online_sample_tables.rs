//! The sample tables, each migrated online by its owner, or refused with the
//! reason. The result is compared with the rows and columns from before; with
//! the same sample tables migrated in a maintenance window, as `pg_dump` writes it; and,
//! once reverted, with the schema from before.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::migration::{
    assert_same_schema, foreign_keys, plan as offline_plan, psql, schema, widened,
};
use snowflake_tests::online;
use snowflake_tests::query::number;
use snowflake_tests::sample_tables::{self, OWNER, SAMPLE_TABLES, SampleTable, check_violations};

use super::sample_tables::{insert_new, insert_old};
use crate::support::{self, run};

/// The samples that are refused, by their schemas, and parts of the DETAIL.
const REFUSED: &[(&str, &[&str])] = &[
    ("a19", &["a19.t is a partitioned table", "online => false"]),
    (
        "a21",
        &[
            "a21.r is a partitioned table",
            "a21.one is a partitioned table",
        ],
    ),
    ("a22", &["a22.t is a partitioned table"]),
    ("a23", &["a23.t has inheritance children or parents"]),
    (
        "a31",
        &["exclusion constraint alone of a31.t uses column id"],
    ),
];

fn refused(sample: &SampleTable) -> Option<&'static (&'static str, &'static [&'static str])> {
    REFUSED.iter().find(|it| it.0 == sample.schema)
}

/// What a dump does not show: indexes that are not valid, constraints that are
/// not validated, columns without statistics, things that are left over.
fn loose_ends(client: &mut Client) -> Result<BTreeMap<&'static str, i64>> {
    let mut found = BTreeMap::new();
    for (what, query) in [
        ("invalid indexes", "SELECT count(*) FROM pg_index WHERE NOT (indisvalid AND indisready AND indislive)"),
        ("unvalidated constraints", "SELECT count(*) FROM pg_constraint WHERE NOT convalidated"),
        ("triggers", "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal"),
        ("disabled triggers of foreign keys", "SELECT count(*) FROM pg_trigger WHERE tgenabled <> 'O'"),
        ("functions", "SELECT count(*) FROM pg_proc WHERE pronamespace NOT IN (SELECT oid FROM pg_namespace WHERE nspname LIKE 'pg\\_%')"),
        (
            "names of the migration's",
            "SELECT (SELECT count(*) FROM pg_attribute WHERE attname LIKE '%snowflake\\_%' AND attrelid IN (SELECT oid FROM pg_class WHERE relname NOT LIKE 'snowflake%'))
                  + (SELECT count(*) FROM pg_constraint WHERE conname LIKE '%snowflake\\_%' AND conrelid IN (SELECT oid FROM pg_class WHERE relname NOT LIKE 'snowflake%'))
                  + (SELECT count(*) FROM pg_class AS c WHERE relname LIKE '%snowflake\\_%'
                       AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.deptype = 'e' AND d.objid = coalesce((SELECT indrelid FROM pg_index WHERE indexrelid = c.oid), c.oid)))",
        ),
    ] {
        found.insert(what, number(client, query).context(what)?);
    }
    Ok(found)
}

/// Refused samples are left as they are, and the reason is named.
fn assert_refused(keeper: &mut Client, samples: &[&SampleTable]) -> Result<()> {
    for sample in samples {
        let name = sample.name;
        let (_, parts) = refused(sample).context("not refused")?;
        let query = format!(
            "SELECT * FROM snowflake_migration_plan({}, online => true)",
            sample.arguments
        );
        let answer = support::refused(keeper, &query, "55000").context(name)?;
        for part in *parts {
            assert!(
                answer.detail.contains(part),
                "{name}: no {part:?} in {answer}"
            );
        }
    }
    Ok(())
}

/// Migrates samples, every other one through psql, each statement on its own,
/// as the guide has it. Returns the number of steps.
fn migrate(cluster: &Cluster, keeper: &mut Client, samples: &[&SampleTable]) -> Result<usize> {
    let mut steps = 0;
    for (position, sample) in samples.iter().enumerate() {
        let name = sample.name;
        let arguments = format!("{}, online => true", sample.arguments);
        steps += offline_plan(keeper, &arguments).context(name)?.len();
        if position % 2 == 0 {
            let script = format!(
                "SELECT statement FROM snowflake_migration_plan({arguments}) ORDER BY step \\gexec\n"
            );
            let written = psql(cluster, OWNER, "samples", &script, true)?;
            ensure!(
                written.success && !written.errors.contains("ERROR"),
                "{name}: {}",
                written.errors
            );
            let left = offline_plan(keeper, &arguments)?;
            assert!(left.is_empty(), "{name}: left to do: {left:#?}");
        } else {
            online::migrate(keeper, sample.arguments).context(name)?;
        }
    }
    Ok(steps)
}

#[test]
fn tables_of_all_kinds_are_migrated_online_and_reverted() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut keeper = sample_tables::populate(&cluster, "samples")?;
    let mut client = cluster.connect_to("samples")?;
    let client = &mut client;
    let (migrated, left): (Vec<&SampleTable>, Vec<&SampleTable>) = SAMPLE_TABLES
        .iter()
        .partition(|sample| refused(sample).is_none());
    let columns = online::columns(client)?;
    let before = schema(&cluster, "samples")?;
    let rows = online::contents(client, &columns)?;
    let keys = foreign_keys(client)?;
    let ends = loose_ends(client)?;
    let widening: Vec<_> = migrated.iter().flat_map(|it| it.widened).copied().collect();
    assert_refused(&mut keeper, &left)?;
    assert_same_schema(&before, &schema(&cluster, "samples")?, "refused");

    let steps = migrate(&cluster, &mut keeper, &migrated)?;
    assert_eq!(online::contents(client, &columns)?, rows, "rows changed");
    assert_eq!(foreign_keys(client)?, keys);
    let moved = online::check_order(&columns, &online::columns(client)?, &widening)?;
    assert_eq!(loose_ends(client)?, ends);
    let violations = check_violations(&mut keeper, "migrated")?;
    println!(
        "online sample tables: {} kinds of tables migrated by their owner in {steps} steps, {} refused with the reason; the same rows; \
         {} columns widened, which are the last of their tables now ({moved} columns have another place); \
         {} foreign keys, {violations} violating rows refused",
        migrated.len(),
        left.len(),
        widening.len(),
        keys.0
    );

    // The same in a maintenance window: privileges, comments, statistics
    // targets, defaults, triggers, replica identities, options.
    let mut window = sample_tables::populate(&cluster, "in_a_window")?;
    let calls = migrated
        .iter()
        .map(|it| format!("CALL snowflake_migrate({})", it.arguments));
    run(&mut window, calls)?;
    assert_same_schema(
        &online::unordered(&schema(&cluster, "in_a_window")?),
        &online::unordered(&schema(&cluster, "samples")?),
        "migrated online, not in a window",
    );
    for sample in &migrated {
        insert_new(&mut keeper, sample)?;
    }
    for sample in &migrated {
        run(
            &mut keeper,
            [format!(
                "CALL snowflake_migrate_revert({})",
                sample.arguments
            )],
        )?;
        insert_old(&mut keeper, sample, 0)?;
    }
    assert_same_schema(
        &online::unordered(&widened(&before, &widening)?),
        &online::unordered(&schema(&cluster, "samples")?),
        "reverted",
    );
    check_violations(&mut keeper, "reverted")?;
    Ok(())
}
