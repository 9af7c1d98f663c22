//! A server that is given another layout continues above the IDs that are out,
//! or issues nothing.
//!
//! The fault this guards against: IDs of the new layout are smaller numbers
//! than those of the old one (fewer bits below the timestamp, a later epoch),
//! and run through what has been issued already as time passes. The mark is an
//! ID, not a time, so it holds whatever the layout was. What would have to
//! start below it is refused, unless that takes IDs no further ahead of the
//! clock than a clock step may be that is slewed.
//!
//! Where duplicates are to be found without the mark, layouts differ in the
//! epoch only, by seconds, IDs leave no gaps ([`SLOW_SLOTS`]), and the clock is set
//! to where the new layout's IDs begin with the old one's: they must pass through
//! them.

use crate::faults::mark::set_clock;
use crate::support::*;

/// Enough for every slot of [`SLOW_SLOTS`], twice.
const SESSIONS: usize = 8;

/// How many IDs a session takes after a change at most, to pass the highest. Far
/// more than lie in between.
const MOST: usize = 100_000;

/// What a session that is refused might try.
const CALLS: [&str; 4] = [
    "SELECT snowflake_nextval()",
    "SELECT * FROM snowflake_nextvals(100)",
    "INSERT INTO rows (note) VALUES ('refused')",
    "SELECT snowflake_nextval() FROM generate_series(1, 10)",
];

const TABLE: &str =
    "CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)";

/// Eight sessions that each take IDs, `least` and more until the last one is `enough`.
fn take(cluster: &Cluster, least: usize, enough: impl Fn(i64) -> bool + Sync) -> Result<Vec<i64>> {
    in_sessions(cluster, "postgres", SESSIONS, |client| {
        let mut ids = ids::nextval(client, least)?;
        while ids.last().is_some_and(|&last| !enough(last)) && ids.len() < MOST {
            ids.extend(ids::nextval(client, 100)?);
        }
        assert_increasing(&ids, "a session");
        Ok(ids)
    })
}

/// Restarts with another layout.
fn change_to(cluster: &mut Cluster, layout: &str) -> Result<()> {
    cluster.set_conf("snowflake.layout", layout)?;
    cluster.restart()
}

fn mark(client: &mut Client) -> Result<i64> {
    Ok(client
        .query_one("SELECT last_value FROM snowflake_internal.mark", &[])?
        .get(0))
}

/// Tries everything in several sessions; returns how often it was refused, and
/// the longest time that took. Nothing may change by it, and no call may wait.
fn refused_everywhere(cluster: &Cluster) -> Result<(usize, Duration)> {
    let before = mark(&mut cluster.connect()?)?;
    let (mut refusals, mut longest) = (0, Duration::ZERO);
    for _ in 0..4 {
        let mut client = cluster.connect()?;
        for sql in CALLS {
            let begun = Instant::now();
            let refused = client.refused(sql, "58000")?;
            longest = longest.max(begun.elapsed());
            assert!(!refused.detail.is_empty(), "{sql}: {refused}");
            assert!(!refused.hint.is_empty(), "{sql}: {refused}");
            refusals += 1;
        }
        // Nothing was issued.
        client.refused("SELECT snowflake_currval()", "55000")?;
    }
    let mut client = cluster.connect()?;
    client.answers("SELECT waits FROM snowflake_status", 0)?;
    assert_eq!(mark(&mut client)?, before, "the mark was moved");
    Ok((refusals, longest))
}

/// To layouts of smaller IDs, and back each time.
#[test]
fn a_layout_with_smaller_ids_issues_nothing() -> Result<()> {
    let layouts = [
        // A later epoch.
        "timestamp:41 node:6 backend:4 sequence:12 epoch:2026-01-01T00:00:00Z",
        // Fewer bits below the timestamp.
        "timestamp:41 node:6 sequence:12",
        // No ID that is out even fits into it.
        "js53",
    ];
    let mut cluster = Cluster::with_extension()?;
    cluster.run(TABLE)?;
    let mut received = take(&cluster, 1_000, |_| true)?;
    let (mut refusals, mut longest) = (0, Duration::ZERO);
    for (round, layout) in layouts.iter().enumerate() {
        let highest = *received.iter().max().context("no IDs")?;
        change_to(&mut cluster, layout)?;
        let (count, took) = refused_everywhere(&cluster)?;
        refusals += count;
        longest = longest.max(took);
        if round == 0 {
            // Nor later, nor after a crash.
            cluster.kill9_all()?;
            cluster.start()?;
            refusals += refused_everywhere(&cluster)?.0;
        }
        let mut client = cluster.connect()?;
        let decoded = format!(
            "SELECT (snowflake_decode({highest}, 'default')).node_id FROM snowflake_status"
        );
        client.answers(&decoded, "1")?;

        change_to(&mut cluster, "default")?;
        let begun = Instant::now();
        let first = ids::one(&mut cluster.connect()?)?;
        longest = longest.max(begun.elapsed());
        assert!(first > highest, "{first} came after {highest}");
        // The lease of 2 s, reserved at most 1 s of max_borrow ahead; starts
        // that follow each other faster than that add up. Those that issued
        // nothing, and had the mark decades ahead, add nothing.
        let lead_ms = DEFAULT.lead_ms(first);
        let most = 3_000 * (i64::try_from(round)? + 1);
        assert!(lead_ms <= most, "{lead_ms} ms ahead");
        received.push(first);
        received.extend(take(&cluster, 1_000, |_| true)?);
    }
    let rows: i64 = cluster
        .connect()?
        .query_one("SELECT count(*) FROM rows", &[])?
        .get(0);
    assert_eq!(rows, 0, "a refused INSERT left a row");
    let tally = Tally::of(received);
    println!(
        "layout: {} changes to a layout of smaller IDs and back: {tally}, {} calls refused, longest call {:.1} ms",
        layouts.len(),
        grouped(refusals),
        longest.as_secs_f64() * 1e3
    );
    tally.assert_unique();
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    On,
    MarkTakenAway,
}

/// A layout whose IDs are the old one's of some seconds earlier or later.
struct Shift {
    what: &'static str,
    epoch: &'static str,
    /// By how many seconds the epoch is later.
    seconds: i64,
    /// More than `max_clock_step`, which is 5 min here.
    too_much: bool,
}

const SHIFTS: [Shift; 3] = [
    Shift {
        what: "greater IDs by 5 s, which are out already",
        epoch: "2024-12-31T23:59:55Z",
        seconds: -5,
        too_much: false,
    },
    Shift {
        what: "smaller IDs by 15 s, which is slewed",
        epoch: "2025-01-01T00:00:15Z",
        seconds: 15,
        too_much: false,
    },
    Shift {
        what: "smaller IDs by 10 min, which is refused",
        epoch: "2025-01-01T00:10:00Z",
        seconds: 600,
        too_much: true,
    },
];

/// How many IDs each session takes before a change: together 20 s of the layout's
/// time. With that and the smaller shift, IDs stay far below `max_clock_step`.
const BEFORE: usize = 160;

/// How many after it.
const AFTER: usize = 50;

fn builder() -> ClusterBuilder {
    Cluster::node(1)
        .conf("snowflake.layout", SLOW_SLOTS.layout)
        .conf("snowflake.max_borrow", "1h")
        .conf("snowflake.max_clock_step", "5min")
        .movable_clock()
}

fn shift_the_epoch(shift: &Shift, protection: Protection) -> Result<()> {
    let (mut cluster, build) = match protection {
        Protection::On => (builder().start_with_extension()?, ""),
        Protection::MarkTakenAway => (
            builder()
                .without_protection("mark")
                .start_with_extension()?,
            " WITHOUT the mark",
        ),
    };
    cluster.run(TABLE)?;
    let before = take(&cluster, BEFORE, |_| true)?;
    let highest = *before.iter().max().context("no IDs")?;
    let first = *before.iter().min().context("no IDs")?;

    // Back to the first ID; without the mark, to where the new layout begins with it.
    let mut back_to = SLOW_SLOTS.time_us(first);
    if protection == Protection::MarkTakenAway {
        back_to += shift.seconds * 1_000_000;
    }
    cluster.stop(Stop::Fast)?;
    let layout = format!("{} epoch:{}", SLOW_SLOTS.layout, shift.epoch);
    cluster.set_conf("snowflake.layout", &layout)?;
    set_clock(&cluster, back_to)?;
    cluster.start()?;
    // However long the start took.
    set_clock(&cluster, back_to)?;
    let mut all = before.clone();
    let mut refusals = 0;
    let mut longest;
    if shift.too_much && protection == Protection::On {
        (refusals, longest) = refused_everywhere(&cluster)?;
    } else {
        let begun = Instant::now();
        all.push(ids::one(&mut cluster.connect()?)?);
        longest = begun.elapsed();
        all.extend(take(&cluster, AFTER, |last| last > highest)?);
    }
    // And back.
    change_to(&mut cluster, SLOW_SLOTS.layout)?;
    let begun = Instant::now();
    all.push(ids::one(&mut cluster.connect()?)?);
    longest = longest.max(begun.elapsed());
    all.extend(take(&cluster, AFTER, |_| true)?);

    let after = all.len() - before.len();
    let tally = Tally::of(all);
    println!(
        "layout{build}: a change to {} and back: 2 faults, {} IDs before, {} after: {tally}, {refusals} calls refused, longest first call or refusal {:.1} ms",
        shift.what,
        grouped(before.len()),
        grouped(after),
        longest.as_secs_f64() * 1e3
    );
    assert!(after >= SESSIONS * AFTER);
    match protection {
        Protection::On => tally.assert_unique(),
        Protection::MarkTakenAway => tally.assert_found_duplicates(),
    }
    Ok(())
}

#[test]
fn no_id_repeats_after_a_layout_change() -> Result<()> {
    SHIFTS
        .iter()
        .try_for_each(|shift| shift_the_epoch(shift, Protection::On))
}

#[test]
fn no_id_repeats_after_a_layout_change_is_able_to_fail() -> Result<()> {
    SHIFTS
        .iter()
        .try_for_each(|shift| shift_the_epoch(shift, Protection::MarkTakenAway))
}

/// The rows of a database keep the layout that they were made with, so a server
/// that has another one reports it: in its log, in the status, to the audit, and to
/// those who read an ID. Until a superuser accepts it.
#[test]
fn another_layout_is_reported_until_it_is_accepted() -> Result<()> {
    const STATUS: &str = "SELECT database_layout IS NOT DISTINCT FROM layout FROM snowflake_status";
    const READ: &str = "SELECT snowflake_timestamp(id) FROM rows ORDER BY id LIMIT 1";
    const LINE: &str = "IDs of this database were generated with another layout";
    let same = |cluster: &Cluster| cluster.connect()?.text(STATUS);
    let mut cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    // Not known before the first ID, nor in a transaction that cannot write.
    assert_eq!(same(&cluster)?.as_deref(), Some("f"));
    client.batch_execute("BEGIN READ ONLY; SELECT snowflake_nextval(); COMMIT")?;
    assert_eq!(same(&cluster)?.as_deref(), Some("f"));
    cluster.run(TABLE)?;
    cluster.run("INSERT INTO rows DEFAULT VALUES")?;
    assert_eq!(same(&cluster)?.as_deref(), Some("t"));
    let (mut reader, notices) = listening(&cluster, "postgres")?;
    reader.query(READ, &[])?;
    assert_eq!(notices(), Vec::<String>::new());

    change_to(&mut cluster, "twitter")?;
    for _ in 0..3 {
        cluster.run("INSERT INTO rows DEFAULT VALUES")?;
    }
    let lines = cluster.log_since_start()?.matches(LINE).count();
    assert_eq!(lines, 1, "once a start");
    assert_eq!(same(&cluster)?.as_deref(), Some("f"));
    let (mut reader, notices) = listening(&cluster, "postgres")?;
    for _ in 0..3 {
        reader.query(READ, &[])?;
    }
    let said = notices();
    assert_eq!(said.len(), 1, "once a session: {said:?}");
    assert!(said[0].contains("another layout"), "{said:?}");
    // Naming the layout, there is nothing to say.
    let (mut reader, notices) = listening(&cluster, "postgres")?;
    reader.query("SELECT snowflake_timestamp(id, 'default') FROM rows", &[])?;
    assert_eq!(notices(), Vec::<String>::new());
    let audit = "SELECT ids FROM snowflake_audit('rows') WHERE finding = 'IDs of another layout'";
    cluster.connect()?.answers(audit, "4")?;

    // A dump carries it to a server with yet another layout, or with the same.
    let dump = cluster.dump("postgres", &["--format=plain"])?;
    for (layout, is_same) in [("twitter", "f"), ("default", "t")] {
        let target = Cluster::node(1)
            .conf("snowflake.layout", layout)
            .conf("snowflake.max_clock_step", "-1")
            .start()?;
        target.run("CREATE DATABASE restored")?;
        let output = target.restore(&dump, "psql", "postgres", "restored", &[])?;
        ensure!(output.status.success(), "the restore failed");
        target.connect_to("restored")?.answers(STATUS, is_same)?;
    }

    let mut ordinary = {
        cluster.run("CREATE ROLE app LOGIN")?;
        cluster.connect_as("app", "postgres")?
    };
    ordinary.refused("SELECT snowflake_accept_layout()", "42501")?;
    let mut client = cluster.connect()?;
    client.batch_execute("SELECT snowflake_accept_layout()")?;
    assert_eq!(same(&cluster)?.as_deref(), Some("t"));
    let (mut reader, notices) = listening(&cluster, "postgres")?;
    reader.query(READ, &[])?;
    assert_eq!(notices(), Vec::<String>::new());
    cluster.restart()?;
    ids::one(&mut cluster.connect()?)?;
    assert_eq!(cluster.log_since_start()?.matches(LINE).count(), 0);
    Ok(())
}
