//! The mark, under all that can happen to a sequence, a transaction, a session
//! that moves it, and the disk it is written to.
//!
//! The mark is what keeps IDs apart across restarts, so where a move was
//! disturbed, the test then kills the server and starts it with the
//! clock back at the first of the IDs, which leave no gaps ([`ONE_SLOW_SLOT`]). In a
//! full run, a server that doesn't obey the mark (`snowflake.unprotected = 'mark'`)
//! must show duplicates after the same.

use std::error::Error as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, io};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use postgres::CancelToken;
use rand::RngExt;
use snowflake_tests::ids::{ONE_SLOT, ONE_SLOW_SLOT};
use snowflake_tests::workload::{Mode, Workload};

use crate::support::*;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

const MODES: [Mode; 8] = [Mode::Calls(300); 8];

/// Two slots with 32 IDs a second each, of which a session stays in its own.
const TWO_SLOTS: Fields = Fields {
    layout: "timestamp:32 node:6 sequence:5 backend:1 tick:1s",
    bits: &[("node", 6), ("sequence", 5), ("backend", 1)],
    ..ONE_SLOW_SLOT
};

/// One slot of 1,600 IDs a second: even few sessions on a slow machine request
/// more.
const SHORT_SLOT: Fields = Fields {
    layout: "timestamp:39 node:6 sequence:4 tick:10ms",
    bits: &[("node", 6), ("sequence", 4)],
    tick_us: 10_000,
    ..DEFAULT
};

/// How far ahead of the true time a mark may be left, milliseconds: a burst of
/// `snowflake.max_borrow` and the lease.
const USUAL_LEAD_MS: i64 = 3_000;

/// A server of one slot, so that IDs made at the same time are the same ones.
fn builder() -> ClusterBuilder {
    Cluster::node(1)
        .conf("snowflake.layout", ONE_SLOT.layout)
        .movable_clock()
}

/// A server with a layout of few IDs a second, which its sessions may use far ahead of
/// the clock: however fast they are, none waits for time, and after a crash they
/// continue however far that is.
pub(crate) fn dense(builder: ClusterBuilder, fields: &Fields) -> ClusterBuilder {
    builder
        .conf("snowflake.layout", fields.layout)
        .conf("snowflake.max_borrow", "20d")
        .conf("snowflake.max_clock_step", -1)
        // For a process that moves the mark on a busy machine.
        .conf("snowflake.max_wait", "1min")
}

/// Ends the server as a power cut does, sets its clock back to the first of the IDs
/// that were received, and adds the IDs that several sessions get then. Those received
/// leave no gaps for more than a minute from the first on.
pub(crate) fn crash_and_repeat(
    cluster: &mut Cluster,
    received: &mut Vec<i64>,
    fields: &Fields,
) -> Result<()> {
    const SESSIONS: usize = 8;
    let first = *received.iter().min().context("no IDs")?;
    cluster.kill9_all()?;
    set_clock(cluster, fields.time_us(first))?;
    cluster.start()?;
    // However long the start took.
    set_clock(cluster, fields.time_us(first))?;
    received.extend(in_sessions(cluster, "postgres", SESSIONS, |client| {
        let ids = ids::nextval(client, 500)?;
        assert_increasing(&ids, "a session after the crash");
        Ok(ids)
    })?);
    Ok(())
}

/// Sets the server's clock to a time, microseconds since 1970.
pub(crate) fn set_clock(cluster: &Cluster, to: i64) -> Result<()> {
    let by = to - cluster.true_us();
    let distance = Duration::from_micros(by.unsigned_abs());
    cluster.clock().set_offset(if by < 0 {
        Offset::back(distance)
    } else {
        Offset::forward(distance)
    })
}

/// Runs `case` with the mark, and in a full run without it.
pub(crate) fn with_and_without_the_mark(
    name: &str,
    case: impl Fn(ClusterBuilder, bool) -> Result<Vec<i64>>,
) -> Result<()> {
    let tally = Tally::of(case(builder(), true)?);
    println!("mark: {name}, then kill -9 and the clock back: {tally}");
    tally.assert_unique();
    if tier::is_full() {
        let tally = Tally::of(case(builder().without_protection("mark"), false)?);
        println!("mark: {name}, WITHOUT the mark: {tally}");
        tally.assert_found_duplicates();
    }
    Ok(())
}

fn last_value(client: &mut Client) -> Result<i64> {
    let value = client.text("SELECT last_value FROM snowflake_internal.mark")?;
    Ok(value.context("no mark")?.parse()?)
}

/// IDs of several sessions, taken one after another.
fn take(clients: &mut [Client], received: &mut Vec<i64>) -> Result<()> {
    for client in clients {
        let ids = ids::nextval(client, 500)?;
        assert_increasing(&ids, "a session");
        received.extend(ids);
    }
    Ok(())
}

/// Dropped and created again the extension has a new mark, which knows nothing
/// of the old one. As long as the server runs its slots do, also when the
/// clock is set back. (Over a restart with a clock that is set back they
/// don't: the documentation says so.)
fn dropped_and_created(builder: ClusterBuilder) -> Result<Vec<i64>> {
    let cluster = dense(builder, &ONE_SLOW_SLOT).start_with_extension()?;
    let mut clients: Vec<Client> = (0..4).map(|_| cluster.connect()).collect::<Result<_>>()?;
    let mut received = Vec::new();
    for _ in 0..3 {
        let began = cluster.clock().now_us();
        for _ in 0..2 {
            take(&mut clients, &mut received)?;
        }
        clients[0].batch_execute("DROP EXTENSION snowflake; CREATE EXTENSION snowflake")?;
        set_clock(&cluster, began)?;
        // Old sessions and new ones.
        for _ in 0..2 {
            take(&mut clients, &mut received)?;
        }
        clients.push(cluster.connect()?);
        clients[1].batch_execute(
            "BEGIN; DROP EXTENSION snowflake; CREATE EXTENSION snowflake; \
             SELECT snowflake_nextval(); ROLLBACK",
        )?;
        take(&mut clients, &mut received)?;
    }
    Ok(received)
}

#[test]
fn no_id_repeats_after_the_extension_is_dropped_and_created() -> Result<()> {
    let tally = Tally::of(dropped_and_created(builder())?);
    println!("mark: dropped and created again 3 times, each with the clock back: {tally}");
    tally.assert_unique();
    if tier::is_full() {
        let unprotected = builder().without_protection("clock");
        let tally = Tally::of(dropped_and_created(unprotected)?);
        println!("mark: dropped and created again, WITHOUT protection: {tally}");
        tally.assert_found_duplicates();
    }
    Ok(())
}

/// With `wal_level = minimal` what a transaction does to a sequence that it
/// has created itself is not logged at all.
#[test]
fn no_id_repeats_after_its_creation_is_rolled_back() -> Result<()> {
    let case = |builder: ClusterBuilder, _| {
        let mut cluster = dense(builder, &ONE_SLOW_SLOT)
            .conf("wal_level", "minimal")
            .conf("max_wal_senders", 0)
            .start()?;
        let mut received = Vec::new();
        let mut client = cluster.connect()?;
        for (end, rounds) in [("ROLLBACK", 3), ("COMMIT", 3)] {
            client.batch_execute("BEGIN; CREATE EXTENSION snowflake")?;
            for _ in 0..rounds {
                received.extend(ids::nextval(&mut client, 2_000)?);
            }
            client.batch_execute(end)?;
        }
        assert_increasing(&received, "the session");
        crash_and_repeat(&mut cluster, &mut received, &ONE_SLOW_SLOT)?;
        Ok(received)
    };
    with_and_without_the_mark(
        "created in a transaction that is rolled back, then in one that is committed",
        case,
    )
}

/// What the server said to statements that take IDs until one is refused, while time
/// passes.
fn until_refused(
    cluster: &Cluster,
    client: &mut Client,
    received: &mut Vec<i64>,
) -> Result<ServerError> {
    let begun = Instant::now();
    loop {
        ensure!(begun.elapsed() < PATIENCE, "no statement was refused");
        cluster.clock().pass(Duration::from_millis(100))?;
        let rows = client.query(
            "SELECT snowflake_nextval() FROM generate_series(1, 300)",
            &[],
        );
        match rows {
            Ok(rows) => received.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => return ServerError::from_error(error),
        }
    }
}

/// A superuser's unfinished `ALTER SEQUENCE` blocks a session that moves the
/// mark. This session can be cancelled, runs into `statement_timeout`,
/// and afterwards nothing is left behind.
#[test]
fn a_blocked_move_of_the_mark_can_be_cancelled() -> Result<()> {
    let case = |builder: ClusterBuilder, check: bool| {
        let mut cluster = dense(builder, &ONE_SLOW_SLOT)
            .conf("snowflake.lease", "200ms")
            .start_with_extension()?;
        let mut received = Vec::new();
        let mut blocker = cluster.connect()?;
        let mut cancelled = cluster.connect()?;
        let mut timed_out = cluster.connect()?;
        received.extend(ids::nextval(&mut cancelled, 3_000)?);
        received.extend(ids::nextval(&mut timed_out, 3_000)?);

        blocker.batch_execute("BEGIN; ALTER SEQUENCE snowflake_internal.mark CACHE 1")?;
        let token = cancelled.cancel_token();
        let pid = ids::backend_pid(&mut cancelled)?;
        let mut watcher = cluster.connect()?;
        let said = std::thread::scope(|scope| -> Result<ServerError> {
            let refused = scope.spawn(|| until_refused(&cluster, &mut cancelled, &mut received));
            let waits = "SELECT 1 FROM pg_stat_activity \
                         WHERE pid = $1 AND wait_event_type = 'Lock' AND wait_event = 'relation'";
            wait::until("the mover to wait", PATIENCE, || {
                Ok(watcher.query_opt(waits, &[&pid])?.is_some())
            })?;
            token.cancel_query(NoTls)?;
            refused.join().expect("the mover's thread")
        })?;
        timed_out.batch_execute("SET statement_timeout = '300ms'")?;
        let late = until_refused(&cluster, &mut timed_out, &mut received)?;
        if check {
            assert_eq!(said.sqlstate, "57014", "{said}");
            assert_eq!(late.sqlstate, "57014", "{late}");
            assert!(late.message.contains("statement timeout"), "{late}");
        }
        blocker.batch_execute("ROLLBACK")?;
        timed_out.batch_execute("RESET statement_timeout")?;
        // No session holds a lock: both, and others, continue.
        for client in [&mut cancelled, &mut timed_out, &mut blocker] {
            received.extend(ids::nextval(client, 1_000)?);
        }
        crash_and_repeat(&mut cluster, &mut received, &ONE_SLOW_SLOT)?;
        Ok(received)
    };
    with_and_without_the_mark(
        "a blocked move that is cancelled and one that times out",
        case,
    )
}

/// Asks the server to cancel; says whether it could be asked. The client
/// doesn't wait for an answer, so its requests pile up in the socket's queue
/// where the postmaster gets little of the processor, until the queue is full.
fn cancel(token: &CancelToken) -> Result<bool> {
    let Err(error) = token.cancel_query(NoTls) else {
        return Ok(true);
    };
    let cause = error.source().and_then(|cause| cause.downcast_ref());
    let full = cause.is_some_and(|cause: &io::Error| cause.kind() == io::ErrorKind::WouldBlock);
    ensure!(full, error);
    Ok(false)
}

/// Cancels at any moment, with a lease so short that sessions spend much of
/// their time in moves: no lock or flag stays behind, and no ID below the mark
/// is repeated.
#[test]
fn no_id_repeats_after_cancelled_moves_of_the_mark() -> Result<()> {
    let enough = tier::size(100, 400);
    let case = |builder: ClusterBuilder, check: bool| {
        // A move for every 64 or 128 IDs.
        let mut cluster = dense(builder, &ONE_SLOW_SLOT)
            .conf("snowflake.lease", "2ms")
            .start_with_extension()?;
        let mut received = ids::nextval(&mut cluster.connect()?, 5_000)?;
        let stop = AtomicBool::new(false);
        let mut sessions: Vec<Client> = (0..4).map(|_| cluster.connect()).collect::<Result<_>>()?;
        let tokens: Vec<_> = sessions.iter().map(Client::cancel_token).collect();
        let (mut cancels, hits) = (0, AtomicUsize::new(0));
        std::thread::scope(|scope| -> Result<()> {
            let over = SetOnDrop(&stop);
            let threads: Vec<_> = sessions
                .iter_mut()
                .map(|client| {
                    let (stop, hits) = (&stop, &hits);
                    scope.spawn(move || -> Result<Vec<i64>> {
                        let mut ids = Vec::new();
                        while !stop.load(Ordering::SeqCst) {
                            let query = "SELECT snowflake_nextval() FROM generate_series(1, 300)";
                            match client.query(query, &[]) {
                                Ok(rows) => ids.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
                                Err(error) => {
                                    let refusal = ServerError::from_error(error)?;
                                    ensure!(refusal.sqlstate == "57014", "{refusal}");
                                    hits.fetch_add(1, Ordering::SeqCst);
                                }
                            }
                        }
                        assert_increasing(&ids, "a session that is cancelled now and then");
                        Ok(ids)
                    })
                })
                .collect();
            let begun = Instant::now();
            // A session that has given up says why when it is joined.
            while !threads.iter().any(|thread| thread.is_finished())
                && hits.load(Ordering::SeqCst) < enough
                && begun.elapsed() < PATIENCE
            {
                let pause = rand::rng().random_range(0..4_000);
                std::thread::sleep(Duration::from_micros(pause));
                if cancel(&tokens[cancels % tokens.len()])? {
                    cancels += 1;
                } else {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
            drop(over);
            for thread in threads {
                received.extend(thread.join().expect("a session's thread")?);
            }
            Ok(())
        })?;
        let hits = hits.into_inner();
        if check {
            println!(
                "mark: {cancels} cancels, {hits} of which hit a statement, among {} IDs with a lease of 2 ms",
                grouped(received.len())
            );
        }
        assert!(hits >= enough, "{hits} cancels hit a statement");
        received.extend(ids::nextval(&mut cluster.connect()?, 2_000)?);
        crash_and_repeat(&mut cluster, &mut received, &ONE_SLOW_SLOT)?;
        Ok(received)
    };
    with_and_without_the_mark("cancels at any moment", case)
}

/// In a parallel worker, in a transaction that is read-only and rolled back.
#[test]
fn parallel_workers_move_the_mark() -> Result<()> {
    // The processes of one query have both backend numbers.
    let fields = &TWO_SLOTS;
    let case = |builder: ClusterBuilder, check: bool| {
        let mut cluster = dense(builder, fields)
            .conf("snowflake.lease", "10ms")
            .start_with_extension()?;
        let mut client = cluster.connect()?;
        client.batch_execute(
            "CREATE TABLE big AS SELECT g FROM generate_series(1, 20000) AS g; ANALYZE big; \
             SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
             SET min_parallel_table_scan_size = 0; SET max_parallel_workers_per_gather = 4; \
             SET parallel_leader_participation = off; \
             BEGIN READ ONLY",
        )?;
        let query = "SELECT snowflake_nextval() FROM big";
        let plan = client
            .text(&format!("EXPLAIN {query}"))?
            .context("no plan")?;
        assert!(plan.contains("Gather"), "{plan}");
        let own = ids::one(&mut client)?;
        let mut received = vec![own];
        let before = last_value(&mut client)?;
        ids::fetch_into(&mut client, query, &mut received)?;
        let after = last_value(&mut client)?;
        // The leader has made none of them.
        let current: i64 = client.query_one("SELECT snowflake_currval()", &[])?.get(0);
        assert_eq!(current, own, "the leader's last ID");
        client.batch_execute("ROLLBACK")?;
        let moved = fields.tick(after) - fields.tick(before);
        if check {
            println!(
                "mark: parallel workers: {} IDs; the mark was moved by {moved} s, two at a time",
                grouped(received.len())
            );
        }
        // 20,000 IDs of at most 64 a second.
        assert!(moved > 200, "the mark was moved by {moved} s only");
        let highest = received.iter().max().context("no IDs")?;
        assert!(*highest < after, "{highest} is above the mark {after}");
        crash_and_repeat(&mut cluster, &mut received, fields)?;
        Ok(received)
    };
    with_and_without_the_mark("moved in parallel workers, read-only, rolled back", case)
}

/// The write-ahead log on a disk that fills up. In a mount namespace of this
/// thread and of the server it starts: no other process sees the file system, and
/// it is gone with them, however they end.
fn full_disk(builder: ClusterBuilder, check: bool) -> Result<Vec<i64>> {
    let mut cluster = dense(builder, &ONE_SLOW_SLOT)
        // No segment is freed in the meantime.
        .conf("max_wal_size", "10GB")
        .conf("checkpoint_timeout", "1h")
        .prepare()?;
    let log_directory = cluster.data().join("pg_wal");
    mount_small(&cluster, &log_directory, "40m")
        .context("a small file system for the write-ahead log could not be mounted: this test has to run as root")?;
    cluster.start()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE EXTENSION snowflake")?;

    let began = cluster.clock().now_us();
    let workload = Workload::start(&cluster, &["postgres"], &MODES, &ONE_SLOW_SLOT)?;
    workload.wait_for(5_000)?;
    let before = workload.begin_window().ids;
    let fill = "SELECT pg_logical_emit_message(false, 'filler', repeat('x', 1000000))";
    let mut filled = 0;
    while client.simple_query(fill).is_ok() {
        filled += 1;
        ensure!(filled < 100, "the disk does not fill up");
    }
    // Until there is no room for a move of the mark either.
    wait::until("the server to notice", PATIENCE, || {
        let log = cluster.log()?;
        Ok(log.contains("PANIC") && log.contains("No space left on device"))
    })?;
    set_clock(&cluster, began)?;
    let log = cluster.log()?;
    let faults = log.matches("No space left on device").count();
    ensure!(faults > 0, "the disk was not full:\n{log}");

    remount(&log_directory, "400m")?;
    let outage = Instant::now();
    workload.begin_window();
    while workload.window().ids < 1_000 {
        ensure!(outage.elapsed() < PATIENCE, "the server did not come back");
        if !cluster.is_running() {
            cluster.wait_for_end()?;
            cluster.start()?;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let after = workload.begin_window();
    let collected = workload.end()?;
    if check {
        println!(
            "mark: write-ahead log on a full disk ({faults} errors): {} IDs before, {} after, longest statement {} ms",
            grouped(before),
            grouped(after.ids),
            collected.longest.as_millis()
        );
        collected.assert_in_order();
    }
    let mut received = collected.ids.concat();
    crash_and_repeat(&mut cluster, &mut received, &ONE_SLOW_SLOT)?;
    Ok(received)
}

/// Puts what is in `directory` on a file system of its own.
fn mount_small(cluster: &Cluster, directory: &Path, size: &str) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace")?;
    let (nothing, private) = (None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE);
    mount(nothing, "/", nothing, private, nothing).context("making mounts private")?;
    let aside = directory.with_extension("aside");
    fs::rename(directory, &aside)?;
    fs::create_dir(directory)?;
    let options = format!("size={size},mode=700");
    let (source, kind) = (Some("tmpfs"), Some("tmpfs"));
    mount(
        source,
        directory,
        kind,
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .with_context(|| format!("mounting a file system of {size}"))?;
    cluster.os_user().own(directory)?;
    let copied = std::process::Command::new("cp")
        .arg("-aT")
        .args([&aside, directory])
        .status()?;
    ensure!(copied.success(), "copying the write-ahead log failed");
    fs::remove_dir_all(aside)?;
    Ok(())
}

fn remount(directory: &Path, size: &str) -> Result<()> {
    let nothing = None::<&str>;
    let options = format!("size={size}");
    mount(
        nothing,
        directory,
        nothing,
        MsFlags::MS_REMOUNT,
        Some(options.as_str()),
    )
    .context("making the file system larger")
}

#[test]
fn no_id_repeats_after_a_full_disk_of_the_write_ahead_log() -> Result<()> {
    let case = |builder, check| {
        // A thread of its own: it is the thread that gets a mount namespace.
        std::thread::scope(|scope| scope.spawn(|| full_disk(builder, check)).join())
            .expect("the thread with the full disk")
    };
    with_and_without_the_mark("a full disk", case)
}

/// More IDs than are free: calls wait, the log reports it once, and the
/// statistics how often and how long.
#[test]
fn waits_are_counted_and_logged_once() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("snowflake.layout", SHORT_SLOT.layout)
        .conf("snowflake.max_borrow", "100ms")
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    let begun = Instant::now();
    let workload = Workload::start(&cluster, &["postgres"], &MODES, &SHORT_SLOT)?;
    wait::until("a hundred waits", PATIENCE, || {
        let sql = "SELECT sum(waits)::int8 FROM snowflake_stat_slots";
        let waits: i64 = client.query_one(sql, &[])?.get(0);
        Ok(waits > 100)
    })?;
    let collected = workload.end()?;
    let row = client.query_one(
        "SELECT sum(waits)::int8, sum(wait_time) FROM snowflake_stat_slots",
        &[],
    )?;
    let (waits, wait_time): (i64, f64) = (row.get(0), row.get(1));
    let log = cluster.log()?;
    let lines = log
        .matches("IDs are requested faster than they can be generated")
        .count();
    let tally = collected.tally();
    println!(
        "mark: {} waits of {wait_time:.0} ms in all, {lines} line in the log: {tally}, longest statement {} ms",
        grouped(u64::try_from(waits)?),
        collected.longest.as_millis()
    );
    assert!(waits > 100, "{waits}");
    // Eight sessions; none waits for longer than it exists.
    let most = 8.0 * begun.elapsed().as_secs_f64() * 1e3;
    assert!(wait_time > 0.0 && wait_time <= most, "{wait_time} ms");
    // Once an episode, which lasts a minute.
    let episodes = 1 + begun.elapsed().as_secs() / 60;
    assert!(
        (1..=episodes).contains(&u64::try_from(lines)?),
        "{lines} lines"
    );
    tally.assert_unique();
    collected.assert_in_order();
    let furthest = collected
        .ids
        .iter()
        .flatten()
        .max()
        .map(|&id| SHORT_SLOT.lead_ms(id));
    assert!(
        furthest.is_some_and(|lead| lead < USUAL_LEAD_MS),
        "{furthest:?}"
    );
    Ok(())
}

/// What is reserved is over when it is durable, if the disk takes longer than that. Each
/// call then reserves as much as the disk takes. By the clock of the machine: the server
/// waits before it flushes (`commit_delay`).
///
/// No cheaper test sees it: the simulator has shown that the protocol ends, this shows
/// that a call of a server does, and can be cancelled.
#[test]
fn a_disk_slower_than_the_lease_delays_ids_and_does_not_end_them() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("snowflake.lease", "1ms")
        .conf("snowflake.max_borrow", 0)
        .conf("fsync", "on")
        .conf("commit_delay", 30_000)
        .conf("commit_siblings", 0)
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute("SET statement_timeout = '60s'")?;
    let mut last = 0;
    for _ in 0..20 {
        let id = client.number("SELECT snowflake_nextval()")?;
        assert!(id > last, "{id} after {last}");
        last = id;
        client.batch_execute("SELECT pg_sleep(0.01)")?;
    }
    println!("mark: 20 IDs with a lease of 1 ms and a disk that takes 30 ms");
    Ok(())
}
