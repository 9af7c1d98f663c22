//! No ID is repeated after its row has moved to another server: by
//! replication and promotion, `pg_rewind`, a base backup with point-in-time
//! recovery, `pg_upgrade`. Dumps have tests of their own.
//!
//! The fault this guards against: the new server issues IDs by its own clock,
//! and the rows it took over have IDs that this clock has not come to yet. It
//! is worst where the two carry the same node number, as a standby does that
//! has its primary's settings. So here the old server's IDs fill every second
//! from the first on ([`SLOW_SLOTS`]), and the new server's clock is set to the
//! time of that first ID. A new server that went by its clock would pass through
//! all of them: it is kept issuing IDs until it has passed the highest, and where
//! the mark is not obeyed (`snowflake.unprotected = 'mark'`) each of these tests
//! must find duplicates.
//!
//! Replication is asynchronous, so the old server may have issued IDs that the
//! new one never heard of. No generator without a third party can know those;
//! what must not be repeated is what was replicated.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use snowflake_tests::replica::Archive;

use super::mark::{dense, set_clock};
use crate::support::*;

/// Enough for every slot of the layout, twice.
const SESSIONS: usize = 8;

/// How many rows each of them writes at least before a fault: together four minutes
/// of IDs, so that the new server's clock is still among them when it comes into
/// service.
const ROWS_BEFORE: usize = 2_000;

/// How long a session pauses between later rows: IDs run no further ahead.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the sessions may take for a gate.
const PATIENCE: Duration = Duration::from_secs(120);

/// What a session of a new server inserts: rows one at a time, then rows by
/// the statement.
const ROWS_ONE_BY_ONE: usize = 50;
const ROWS_AT_ONCE: usize = 500;

/// How many more a session inserts at most, to pass the highest ID that the
/// server took over. Far more than lie in between.
const MOST: usize = 300_000;

const ONE_ROW: &str = "INSERT INTO rows (note) VALUES ('one') RETURNING id";

/// The server that the rows come from, which has its protection anyway.
fn source() -> ClusterBuilder {
    let builder = Cluster::node(1)
        .conf("snowflake.lease", "20s")
        .can_be_copied()
        .movable_clock();
    dense(builder, &SLOW_SLOTS)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protection {
    On,
    MarkTakenAway,
}

impl Protection {
    /// The server with this protection.
    fn of(self, server: ClusterBuilder) -> ClusterBuilder {
        match self {
            Self::On => server,
            Self::MarkTakenAway => server.without_protection("mark"),
        }
    }

    /// A server that takes rows over. Where it is a copy, its settings are the
    /// source's.
    fn taker(self) -> ClusterBuilder {
        self.of(Cluster::builder().movable_clock())
    }

    /// The table that is written to. A duplicate is to be counted where
    /// duplicates are expected, and to be refused where they are not.
    fn create_table(self, client: &mut Client) -> Result<()> {
        let key = match self {
            Self::On => "PRIMARY KEY",
            Self::MarkTakenAway => "NOT NULL",
        };
        client.batch_execute(&format!(
            "CREATE TABLE rows (id bigint {key} DEFAULT snowflake_nextval(), note text)"
        ))?;
        Ok(())
    }

    /// Lets a server that has taken rows over come into service, with its clock at
    /// the time of the ID `from`, and judges what it makes.
    fn judge(
        self,
        what: &str,
        server: &Cluster,
        database: &str,
        taken: &Taken,
    ) -> Result<Vec<i64>> {
        set_clock(server, SLOW_SLOTS.time_us(taken.from))?;
        let after = serve(server, database, highest(&taken.ids)?)?;
        let build = match self {
            Self::On => "",
            Self::MarkTakenAway => " WITHOUT the mark",
        };
        // What was there before was judged before.
        let known: HashSet<i64> = taken.ids.iter().copied().collect();
        let mut all: Vec<i64> = known.into_iter().collect();
        all.extend(&after.ids);
        let tally = Tally::of(all);
        println!(
            "failover{build}, {what}: 1 fault, {} IDs taken over, {} made after it: {tally}; service back after {:.0} ms, longest call {:.1} ms",
            grouped(taken.ids.len()),
            grouped(after.ids.len()),
            taken.unavailable.as_secs_f64() * 1e3,
            after.longest.as_secs_f64() * 1e3,
        );
        assert!(taken.ids.len() > 10_000, "too few IDs were taken over");
        assert!(after.ids.len() >= 1_000, "too few IDs after the fault");
        match self {
            Self::On => tally.assert_unique(),
            Self::MarkTakenAway => tally.assert_found_duplicates(),
        }
        Ok(after.ids)
    }
}

/// What a server has taken over.
struct Taken {
    /// The IDs of the rows.
    ids: Vec<i64>,
    /// The first ID of those that were made right before.
    from: i64,
    /// How long taking over took.
    unavailable: Duration,
}

/// What a server made after a fault.
struct After {
    ids: Vec<i64>,
    /// The longest that one row took.
    longest: Duration,
}

/// Eight sessions of a server that has just come into service: rows with the
/// column's default, and more IDs until each session has passed `highest`.
fn serve(server: &Cluster, database: &str, highest: i64) -> Result<After> {
    let lists = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..SESSIONS)
            .map(|_| scope.spawn(move || serve_one(server, database, highest)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a session's thread"))
            .collect::<Result<Vec<After>>>()
    })?;
    Ok(After {
        longest: lists
            .iter()
            .map(|one| one.longest)
            .max()
            .unwrap_or_default(),
        ids: lists.into_iter().flat_map(|one| one.ids).collect(),
    })
}

fn serve_one(server: &Cluster, database: &str, highest: i64) -> Result<After> {
    let mut client = server.connect_to(database)?;
    let mut ids = Vec::new();
    let mut longest = Duration::ZERO;
    for _ in 0..ROWS_ONE_BY_ONE {
        let begun = Instant::now();
        ids.push(client.query_one(ONE_ROW, &[])?.get(0));
        longest = longest.max(begun.elapsed());
    }
    ids::fetch_into(&mut client, &rows(ROWS_AT_ONCE), &mut ids)?;
    ids.extend(ids::nextval(&mut client, 1_000)?);
    while ids.last().is_some_and(|&last| last <= highest) && ids.len() < MOST {
        ids.extend(ids::nextval(&mut client, 1_000)?);
    }
    assert_increasing(&ids, "a session of the new server");
    Ok(After { ids, longest })
}

fn rows(count: usize) -> String {
    format!(
        "INSERT INTO rows (note) SELECT 'row ' || n FROM generate_series(1, {count}) AS n RETURNING id"
    )
}

fn table(server: &Cluster, database: &str) -> Result<Vec<i64>> {
    ids::fetch(&mut server.connect_to(database)?, "SELECT id FROM rows")
}

fn highest(ids: &[i64]) -> Result<i64> {
    ids.iter().max().copied().context("there are no rows")
}

fn lowest(ids: &[i64]) -> Result<i64> {
    ids.iter().min().copied().context("there are no rows")
}

/// Writes to a server from eight sessions, from before `event` begins until
/// after it has ended: it begins when every session has written [`ROWS_BEFORE`],
/// and each writes more when it is over. Returns what the event returned, and all
/// IDs of the rows that were committed.
fn while_written_to<T>(
    server: &Cluster,
    event: impl FnOnce() -> Result<T>,
) -> Result<(T, Vec<i64>)> {
    let stop = AtomicBool::new(false);
    let written: [AtomicUsize; SESSIONS] = Default::default();
    let write = |number: usize| -> Result<Vec<i64>> {
        let mut client = server.connect()?;
        let mut ids = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            if ids.len() < ROWS_BEFORE {
                ids::fetch_into(&mut client, &rows(200), &mut ids)?;
            } else {
                ids::fetch_into(&mut client, &rows(1), &mut ids)?;
                std::thread::sleep(PAUSE);
            }
            written[number].store(ids.len(), Ordering::SeqCst);
        }
        assert_increasing(&ids, "a session of the old server");
        Ok(ids)
    };
    let write = &write;
    std::thread::scope(|scope| {
        let over = SetOnDrop(&stop);
        let threads: Vec<_> = (0..SESSIONS)
            .map(|number| scope.spawn(move || write(number)))
            .collect();
        let wait_for = |least: [usize; SESSIONS]| {
            wait::until("rows of each session", PATIENCE, || {
                let has =
                    |(count, &least): (&AtomicUsize, &usize)| count.load(Ordering::SeqCst) >= least;
                let is_reached = written.iter().zip(&least).all(has);
                // It says why when it is joined.
                ensure!(
                    is_reached || !threads.iter().any(|thread| thread.is_finished()),
                    "a session has failed"
                );
                Ok(is_reached)
            })
        };
        let outcome = wait_for([ROWS_BEFORE; SESSIONS])
            .and_then(|()| event())
            .and_then(|value| {
                // Two more: the first may have been committed before the end.
                let more = written
                    .each_ref()
                    .map(|count| count.load(Ordering::SeqCst) + 2);
                wait_for(more)?;
                Ok(value)
            });
        drop(over);
        let mut ids = Vec::new();
        for thread in threads {
            ids.extend(thread.join().expect("a session's thread")?);
        }
        Ok((outcome?, ids))
    })
}

/// Promotes a standby while its primary is being written to, and judges what
/// comes after. Returns what it has taken over, and the IDs that it made.
fn promote(
    what: &str,
    primary: &Cluster,
    standby: &Cluster,
    protection: Protection,
) -> Result<(Vec<i64>, Vec<i64>)> {
    let ((unavailable, took_over), written) = while_written_to(primary, || {
        standby.catch_up_with(primary)?;
        Ok((standby.promote()?, table(standby, "postgres")?))
    })?;
    let known: HashSet<i64> = took_over.iter().copied().collect();
    let replicated = written.iter().filter(|id| known.contains(id)).count();
    ensure!(replicated > 10_000, "the standby had not followed");
    ensure!(
        replicated < written.len(),
        "the primary was not written to when the standby was promoted"
    );
    let taken = Taken {
        ids: took_over,
        from: lowest(&written)?,
        unavailable,
    };
    let after = protection.judge(what, standby, "postgres", &taken)?;
    Ok((taken.ids, after))
}

/// A promotion, a restart of the promoted server, a promotion of that one's
/// standby, and back to the server that was promoted first, which was written to in
/// the meantime: each with the clock back at the first of the IDs that were made
/// right before.
fn one_promotion_after_another(protection: Protection) -> Result<()> {
    let first = source().start_with_extension()?;
    protection.create_table(&mut first.connect()?)?;

    let mut second = protection.taker().prepare_standby_of(&first)?;
    second.start()?;
    let (mut known, made) = promote("promotion", &first, &second, protection)?;
    drop(first);

    second.stop(Stop::Fast)?;
    let from = lowest(&made)?;
    known.extend(made);
    set_clock(&second, SLOW_SLOTS.time_us(from))?;
    let begun = Instant::now();
    second.start()?;
    let taken = Taken {
        ids: known,
        from,
        unavailable: begun.elapsed(),
    };
    protection.judge("restart of the promoted", &second, "postgres", &taken)?;

    let mut third = protection.taker().prepare_standby_of(&second)?;
    third.start()?;
    promote(
        "promotion of a standby of the promoted",
        &second,
        &third,
        protection,
    )?;

    // The second was written to after the third had left it.
    second.stop(Stop::Fast)?;
    second.rewind_to(&third)?;
    second.follow(&third)?;
    second.start()?;
    promote("fail-back through pg_rewind", &third, &second, protection)?;
    Ok(())
}

#[test]
fn no_replicated_id_repeats_after_a_promotion() -> Result<()> {
    one_promotion_after_another(Protection::On)
}

#[test]
fn promotions_are_able_to_fail() -> Result<()> {
    one_promotion_after_another(Protection::MarkTakenAway)
}

/// A standby issues nothing, and reads everything.
#[test]
fn a_standby_refuses_and_decodes() -> Result<()> {
    let primary = Cluster::node(1).can_be_copied().start_with_extension()?;
    let mut writer = primary.connect()?;
    Protection::On.create_table(&mut writer)?;
    let id = ids::fetch(&mut writer, &rows(1_000))?[0];
    let mut standby = Cluster::builder().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let mut client = standby.connect()?;
    let calls = [
        "SELECT snowflake_nextval()",
        "SELECT * FROM snowflake_nextvals(10)",
        "SELECT snowflake_start_after(1)",
        "BEGIN; SELECT snowflake_nextval() FROM rows; COMMIT",
    ];
    for sql in calls {
        let refused = client.expect_error(sql)?;
        assert_eq!(refused.sqlstate, "25006", "{sql}: {refused}");
        assert!(!refused.hint.is_empty(), "{sql}: {refused}");
        client.batch_execute("ROLLBACK")?;
    }
    let readings = [
        format!("SELECT snowflake_decode({id})"),
        format!("SELECT snowflake_decode({id}, 'twitter')"),
        "SELECT max((snowflake_decode(id)).created_at) FROM rows".to_owned(),
        "SELECT layout FROM snowflake_status".to_owned(),
        "SELECT node_id FROM snowflake_status".to_owned(),
    ];
    for sql in &readings {
        let (here, there) = (client.text(sql)?, writer.text(sql)?);
        assert_eq!(here, there, "{sql}");
        assert!(here.is_some_and(|value| !value.is_empty()), "{sql}");
    }
    // The same session, once it is promoted.
    standby.promote()?;
    assert!(ids::one(&mut client)? > id);
    Ok(())
}

/// Back to a restore point that was set while the server was written to.
fn point_in_time(protection: Protection) -> Result<()> {
    let archive = Archive::new()?;
    let source = self::source()
        .archived_in(&archive)
        .start_with_extension()?;
    protection.create_table(&mut source.connect()?)?;
    ids::fetch(&mut source.connect()?, &rows(1_000))?;
    let mut restored = protection.taker().prepare_copy_of(&source)?;
    let (_, written) = while_written_to(&source, || {
        source.run("SELECT pg_create_restore_point('before_the_mistake')")?;
        Ok(())
    })?;
    archive.complete(&source)?;

    restored.recover_to(&archive, "before_the_mistake")?;
    let from = lowest(&written)?;
    set_clock(&restored, SLOW_SLOTS.time_us(from))?;
    let begun = Instant::now();
    restored.start()?;
    restored.wait_for_end_of_recovery()?;
    let taken = Taken {
        unavailable: begun.elapsed(),
        ids: table(&restored, "postgres")?,
        from,
    };
    let there: HashSet<_> = taken.ids.iter().collect();
    ensure!(
        written.iter().any(|id| !there.contains(id)),
        "rows from after the restore point are there"
    );
    protection.judge("point-in-time recovery", &restored, "postgres", &taken)?;
    Ok(())
}

#[test]
fn no_recovered_id_repeats_after_point_in_time_recovery() -> Result<()> {
    point_in_time(Protection::On)
}

#[test]
fn point_in_time_recovery_is_able_to_fail() -> Result<()> {
    point_in_time(Protection::MarkTakenAway)
}

/// A mark that came by `setval`, as dumps and `pg_upgrade` have it, and that is
/// more than a lease ahead of the clock, is not believed until a superuser says
/// so: it would take the IDs of the server's other databases along. Where it is
/// ahead of the clock depends on the clocks; here the target's is back at the ID
/// `from`, minutes before it.
fn accept_the_mark(target: &Cluster, database: &str, from: i64) -> Result<()> {
    let mut client = target.connect_to(database)?;
    set_clock(target, SLOW_SLOTS.time_us(from))?;
    let refused = client.expect_error("SELECT snowflake_nextval()")?;
    assert_eq!(refused.sqlstate, "58000", "{refused}");
    assert!(
        refused.message.contains("snowflake_internal.mark"),
        "{refused}"
    );
    client.batch_execute(
        "SELECT snowflake_start_after(last_value - 1) FROM snowflake_internal.mark",
    )?;
    Ok(())
}

/// Stopped, and taken over with its files by a server of the same or a later
/// version.
fn upgrade(protection: Protection) -> Result<()> {
    let earlier = match protection {
        Protection::On => Installation::earlier()?,
        Protection::MarkTakenAway => Installation::under_test()?,
    };
    let mut source = self::source()
        .installation(earlier)
        .start_with_extension()?;
    protection.create_table(&mut source.connect()?)?;
    while_written_to(&source, || Ok(()))?;
    let written = table(&source, "postgres")?;
    source.stop(Stop::Fast)?;

    let from = lowest(&written)?;
    let mut target = protection.of(self::source()).prepare()?;
    let begun = Instant::now();
    target.upgrade_from(&source)?;
    set_clock(&target, SLOW_SLOTS.time_us(from))?;
    target.start()?;
    let taken = Taken {
        unavailable: begun.elapsed(),
        ids: table(&target, "postgres")?,
        from,
    };
    assert_eq!(taken.ids, written);
    if protection == Protection::On {
        accept_the_mark(&target, "postgres", from)?;
    }
    let what = format!(
        "pg_upgrade from {} to {}",
        source.installation().version,
        target.installation().version
    );
    protection.judge(&what, &target, "postgres", &taken)?;
    Ok(())
}

#[test]
fn no_id_repeats_after_pg_upgrade() -> Result<()> {
    upgrade(Protection::On)
}

#[test]
fn upgrades_are_able_to_fail() -> Result<()> {
    upgrade(Protection::MarkTakenAway)
}
