//! One library for all minor releases of a version. A server is upgraded by
//! exchanging its programs; the library stays, and a standby is often a minor
//! release ahead of its primary. So here a standby of another minor release takes
//! over, with the same library, from a primary that is killed.
//!
//! Where only one minor release can be had, it is both servers, and the test says
//! so.

use std::io::Write;

use snowflake_tests::ids::SLOW_TICK;

use crate::support::*;

/// The library that a server loads, byte for byte.
fn library(installation: &Installation) -> Result<Vec<u8>> {
    let directory = std::process::Command::new(installation.bin.join("pg_config"))
        .arg("--pkglibdir")
        .output()?;
    let directory = String::from_utf8(directory.stdout)?;
    let path = std::path::Path::new(directory.trim()).join("snowflake.so");
    std::fs::read(&path).with_context(|| path.display().to_string())
}

/// IDs by single calls, by runs and by COPY; then what was copied is read back.
fn generate(cluster: &Cluster) -> Result<Vec<i64>> {
    let mut client = cluster.connect()?;
    let mut received = ids::nextval(&mut client, 20_000)?;
    ids::fetch_into(
        &mut client,
        "SELECT * FROM snowflake_nextvals(20000)",
        &mut received,
    )?;
    client
        .batch_execute("CREATE TEMP TABLE copied (id bigint DEFAULT snowflake_nextval(), n int)")?;
    let mut writer = client.copy_in("COPY copied (n) FROM STDIN")?;
    for n in 0..20_000 {
        writeln!(writer, "{n}")?;
    }
    writer.finish()?;
    ids::fetch_into(
        &mut client,
        "SELECT id FROM copied ORDER BY n",
        &mut received,
    )?;
    // Decoded by the library, and by separate arithmetic.
    let last = *received.last().context("no IDs")?;
    client.answers(
        &format!("SELECT snowflake_sequence({last})"),
        SLOW_TICK.field(last, "sequence"),
    )?;
    Ok(received)
}

/// Everything that is received from a primary, and from its standby of another
/// minor release after it was promoted.
fn take_over(from: &Installation, to: &Installation) -> Result<()> {
    let mut primary = Cluster::builder()
        .installation(from.clone())
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", SLOW_TICK.layout)
        .conf("snowflake.max_borrow", "10min")
        .can_be_copied()
        .start_with_migrate()?;
    let mut client = primary.connect()?;
    let mut standby = Cluster::builder()
        .installation(to.clone())
        .prepare_standby_of(&primary)?;
    standby.start()?;

    let mut received = generate(&primary)?;
    // A migration that one server begins and the other finishes.
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY, x text);
         INSERT INTO t (x) SELECT 'x' || n FROM generate_series(1, 500) AS n",
    )?;
    let steps = online::plan(&mut client, "'t'")?;
    client.run(online::statements(&steps[..steps.len() / 2]))?;
    received.extend(generate(&primary)?);
    let lead = SLOW_TICK.lead_ms(*received.iter().max().context("no IDs")?);
    assert!(
        lead > 1_000,
        "IDs are {lead} ms ahead: the clock alone would do"
    );

    standby.catch_up_with(&primary)?;
    primary.kill9_all()?;
    standby.promote()?;
    received.extend(generate(&standby)?);
    let mut client = standby.connect()?;
    online::migrate(&mut client, "'t'")?;
    client.answers(
        "SELECT count(*) || ' ' || max(length(id::text)) || ' ' || pg_typeof(max(id)) FROM t",
        "500 3 bigint",
    )?;
    ids::fetch_into(
        &mut client,
        "INSERT INTO t (x) SELECT 'y' FROM generate_series(1, 100) RETURNING id",
        &mut received,
    )?;
    let tally = Tally::of(received);
    tally.assert_unique();
    println!(
        "minor releases: one library, {} taken over by {}, IDs {lead} ms ahead: {tally}{}",
        from.version,
        to.version,
        if from.version == to.version {
            "; no other minor release can be had"
        } else {
            ""
        }
    );
    Ok(())
}

#[test]
fn a_library_works_with_all_minor_releases_of_its_version() -> Result<()> {
    let (tested, other) = (Installation::under_test()?, Installation::other_minor()?);
    assert!(
        library(&tested)? == library(&other)?,
        "not the same library"
    );
    take_over(&other, &tested)?;
    if tested.version != other.version {
        take_over(&tested, &other)?;
    }
    Ok(())
}
