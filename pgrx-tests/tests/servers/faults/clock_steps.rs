//! A clock that steps while IDs are issued: no ID is repeated, no session's IDs
//! descend, no session waits for the step, and times are off by no more than it.
//!
//! A clock that is set back shows times again at which IDs were made already.
//! Generators that go by the wall clock repeat them there, wait the step out,
//! or set sequence bits aside that are used up after a few steps. Here the step
//! is slewed: time for IDs runs at half speed until the clock has caught
//! up. So each of these tests takes the clock to times that it has shown
//! before, with sessions at work; on a build whose IDs follow the clock
//! (`snowflake.unprotected = 'clock'`) the same must show duplicates.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use postgres::Client;
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{self, DEFAULT, Fields, Tally, grouped};
use snowflake_tests::query::{number, value};
use snowflake_tests::server_error::{ServerError, expect_error};
use snowflake_tests::workload::{Mode, Received, Window, Workload};
use snowflake_tests::{Cluster, ClusterBuilder, processes};

use crate::support::{refused, wait_event};

/// Eight sessions, most of which ask for each ID on its own: the more often
/// the clock is looked at the better.
const MODES: [Mode; 8] = [
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Runs(300),
    Mode::Runs(300),
];

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// `snowflake.max_borrow` and `snowflake.lease` as they come, microseconds.
const MAX_BORROW: i64 = 1_000_000;
const LEASE: i64 = 2_000_000;
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(3);

/// Two ticks: one that had begun, and the clock's own.
const ROUNDING: i64 = 2_000;

/// A statement of 300 IDs that took longer has waited for something.
const TOO_LONG: Duration = Duration::from_secs(15);

fn builder() -> ClusterBuilder {
    Cluster::builder()
        .conf("snowflake.node_id", 1)
        .movable_clock()
}

fn workload(cluster: &Cluster) -> Result<Workload> {
    Workload::start(cluster, &["postgres"], &MODES, &DEFAULT)
}

/// The leads of a window's IDs over the machine's clock, microseconds.
fn leads(window: &Window) -> Result<(i64, i64)> {
    window
        .lowest_lead_us
        .zip(window.highest_lead_us)
        .with_context(|| format!("no IDs: {window:?}"))
}

fn seconds(micros: i64) -> String {
    format!("{:.3} s", micros as f64 / 1e6)
}

/// How many calls of the server have waited for time.
fn waits(client: &mut Client) -> Result<i64> {
    number(client, "SELECT waits FROM snowflake_status")
}

/// How many lines of the log since the start have this text.
fn lines(cluster: &Cluster, text: &str) -> Result<usize> {
    Ok(cluster
        .log_since_start()?
        .lines()
        .filter(|line| line.contains(text))
        .count())
}

fn millis(duration: Duration) -> String {
    format!("{} ms", duration.as_millis())
}

/// How long the parts of [`step_twice`] take.
struct Times {
    before: Duration,
    stepped: Duration,
    right: Duration,
    again: Duration,
}

/// Together more than the half minute for which sessions are to be at work.
const LONG: Times = Times {
    before: Duration::from_secs(2),
    stepped: Duration::from_secs(22),
    right: Duration::from_secs(4),
    again: Duration::from_secs(4),
};

const SHORT: Times = Times {
    before: Duration::from_secs(2),
    stepped: Duration::from_secs(4),
    right: Duration::from_secs(2),
    again: Duration::from_secs(3),
};

/// The clock steps back, is set right, and steps back once more, to times that
/// it has shown after the first step.
fn step_twice(cluster: &Cluster, step: Duration, times: &Times, check: bool) -> Result<Received> {
    let clock = cluster.clock();
    let mut client = cluster.connect()?;
    let step_us = i64::try_from(step.as_micros())?;
    let workload = workload(cluster)?;
    std::thread::sleep(times.before);
    workload.wait_for(1_000)?;
    let before = workload.begin_window();

    let began = clock.now_us() - step_us;
    let stepped_at = Instant::now();
    clock.set_offset(Offset::back(step))?;
    workload.wait_for(1_000)?;
    std::thread::sleep(times.stepped * 3 / 4);
    let during = workload.begin_window();
    std::thread::sleep(times.stepped / 4);
    workload.wait_for(1_000)?;
    let late = workload.begin_window();
    let slewed_for = i64::try_from(stepped_at.elapsed().as_micros())?;

    clock.set_offset(Offset::NONE)?;
    workload.begin_window();
    std::thread::sleep(times.right);
    workload.wait_for(1_000)?;
    let right = workload.begin_window();

    // To where it was just after the first step.
    let back = Duration::from_micros(u64::try_from(clock.now_us() - began - 200_000)?);
    clock.set_offset(Offset::back(back))?;
    std::thread::sleep(times.again);
    workload.wait_for(1_000)?;
    let again = workload.begin_window();
    clock.set_offset(Offset::NONE)?;
    workload.begin_window();
    workload.wait_for(1_000)?;
    let end = workload.begin_window();
    let collected = workload.end()?;
    if !check {
        return Ok(collected);
    }

    for (name, window) in [
        ("before", &before),
        ("during", &during),
        ("late", &late),
        ("right", &right),
        ("again", &again),
        ("end", &end),
    ] {
        let (low, high) = leads(window).with_context(|| name.to_owned())?;
        println!(
            "clock_steps: {}, {name}: {} IDs, {} to {} off the true time, longest statement {}",
            Offset::back(step),
            grouped(window.ids),
            seconds(low),
            seconds(high),
            millis(window.longest),
        );
        assert_eq!(window.errors(), 0, "{name}: {window:?}");
        assert!(window.longest < TOO_LONG, "{name}: {window:?}");
        assert!(high <= MAX_BORROW + LEASE, "{name}: {window:?}");
    }
    // While the clock is wrong times are off by less than the step, and, as
    // time runs at half speed, by no more than half of the time passed.
    let slewed = (slewed_for / 2 + SECOND.as_micros() as i64).min(step_us);
    assert!(leads(&during)?.0 >= -slewed - ROUNDING, "{during:?}");
    assert!(leads(&late)?.0 >= -slewed - ROUNDING, "{late:?}");
    let back = i64::try_from(back.as_micros())?;
    assert!(leads(&again)?.0 >= -back - ROUNDING, "{again:?}");
    if slewed_for > 4 * step_us {
        // It has caught up by itself: IDs have the wrong clock's time.
        let (low, high) = leads(&late)?;
        assert!(low + step_us >= -ROUNDING, "{late:?}");
        assert!(high + step_us <= MAX_BORROW, "{late:?}");
    }
    for window in [&before, &right, &end] {
        let (low, high) = leads(window)?;
        assert!(low >= -ROUNDING && high <= MAX_BORROW, "{window:?}");
    }
    // No session has waited, for a step or for anything.
    assert_eq!(waits(&mut client)?, 0, "calls waited");
    // The log has a line for each step, not for each call that saw it. The
    // steps here: back, right, back, right.
    let (steps_back, steps_forward) = (
        lines(cluster, "snowflake: the clock was set back by")?,
        lines(cluster, "snowflake: the clock was set forward by")?,
    );
    let half_speed = lines(cluster, "ID timestamps advance at half speed")?;
    let caught_up = lines(cluster, "snowflake: the clock has caught up")?;
    println!(
        "clock_steps: {}: log lines: {steps_back} back, {steps_forward} forward, {half_speed} half speed, {caught_up} caught up",
        Offset::back(step)
    );
    assert_eq!((steps_back, steps_forward), (2, 2));
    // A step that is shorter than the lease is no news of that kind.
    let news = if step_us > LEASE { 2 } else { 1 };
    assert_eq!((half_speed, caught_up), (news, news));
    Ok(collected)
}

fn steps_back(step: Duration) -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let begun = Instant::now();
    let collected = step_twice(&cluster, step, &LONG, true)?;
    let tally = collected.tally();
    println!(
        "clock_steps: clock {} twice, {} sessions for {} s: {tally}, {} out of order, longest statement {}",
        Offset::back(step),
        MODES.len(),
        begun.elapsed().as_secs(),
        collected.decreases,
        millis(collected.longest)
    );
    tally.assert_unique();
    collected.assert_in_order();
    drop(cluster);

    let cluster = builder()
        .without_protection("clock")?
        .start_with_extension()?;
    let tally = step_twice(&cluster, step, &SHORT, false)?.tally();
    println!(
        "clock_steps WITHOUT protection: clock {}: {tally}",
        Offset::back(step)
    );
    tally.assert_found_duplicates();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_half_a_second() -> Result<()> {
    steps_back(Duration::from_millis(500))
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_three_seconds() -> Result<()> {
    steps_back(3 * SECOND)
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_an_hour() -> Result<()> {
    steps_back(HOUR)
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_twenty_hours() -> Result<()> {
    steps_back(20 * HOUR)
}

/// Schemes that set sequence bits aside for steps have none left after a few.
fn five_steps(builder: ClusterBuilder, name: &str) -> Result<(Received, usize, i64)> {
    let cluster = builder.start_with_extension()?;
    let workload = workload(&cluster)?;
    let mut least = usize::MAX;
    for milliseconds in [300, 1_000, 2_000, 3_600_000, 7_200_000] {
        std::thread::sleep(2 * SECOND);
        workload.begin_window();
        let step = Offset::back(Duration::from_millis(milliseconds));
        cluster.clock().step(step)?;
        workload.begin_window();
        workload.wait_for(1_000)?;
        std::thread::sleep(SECOND);
        let window = workload.begin_window();
        assert_eq!(window.errors(), 0, "{window:?}");
        least = least.min(window.ids);
    }
    cluster.clock().set_offset(Offset::NONE)?;
    workload.begin_window();
    workload.wait_for(1_000)?;
    let collected = workload.end()?;
    println!(
        "{name}: 5 steps back in a row: {}, at least {} IDs after each, {} out of order, longest statement {}",
        collected.tally(),
        grouped(least),
        collected.decreases,
        millis(collected.longest)
    );
    let waits = waits(&mut cluster.connect()?)?;
    Ok((collected, least, waits))
}

#[test]
fn no_id_repeats_after_five_clock_steps_back_in_a_row() -> Result<()> {
    let (collected, _, waits) = five_steps(builder(), "clock_steps")?;
    assert_eq!(waits, 0, "calls waited");
    collected.tally().assert_unique();
    collected.assert_in_order();
    assert!(collected.longest < TOO_LONG, "{:?}", collected.longest);
    let unprotected = builder().without_protection("clock")?;
    let (collected, ..) = five_steps(unprotected, "clock_steps WITHOUT protection")?;
    collected.tally().assert_found_duplicates();
    Ok(())
}

/// A call that must be refused, and how long it took to say so.
fn timed_refusal(cluster: &Cluster) -> Result<(ServerError, Duration)> {
    let mut client = cluster.connect()?;
    let begun = Instant::now();
    let refusal = expect_error(&mut client, "SELECT snowflake_nextval()")?;
    Ok((refusal, begun.elapsed()))
}

/// Waits until every session was refused, and sees to it that from then on
/// no session receives an ID for two seconds.
fn nothing_is_issued(workload: &Workload) -> Result<Window> {
    workload.until(|workload| workload.window().errors() >= 4 * MODES.len())?;
    // A statement of before has ended by now in every session.
    std::thread::sleep(SECOND);
    workload.begin_window();
    std::thread::sleep(2 * SECOND);
    let window = workload.begin_window();
    assert_eq!(window.ids, 0, "{window:?}");
    assert!(window.errors_with("58000") > MODES.len(), "{window:?}");
    Ok(window)
}

#[test]
fn a_clock_step_back_of_a_year_is_refused() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let workload = workload(&cluster)?;
    workload.wait_for(1_000)?;
    workload.begin_window();
    cluster.clock().set_offset(Offset::back(YEAR))?;
    let window = nothing_is_issued(&workload)?;
    let (refusal, took) = timed_refusal(&cluster)?;
    println!(
        "clock_steps: back by a year: refused after {}: {refusal}",
        millis(took)
    );
    assert_eq!(refusal.sqlstate, "58000");
    assert!(took < 2 * SECOND, "max_wait cannot be enough: {took:?}");
    let year_before = &value(&mut cluster.connect()?, "SELECT now()::date::text")?;
    assert!(refusal.detail.contains(year_before.as_str()), "{refusal}");
    assert!(
        refusal.hint.contains("snowflake.max_clock_step"),
        "{refusal}"
    );

    cluster.clock().set_offset(Offset::NONE)?;
    workload.begin_window();
    let resumed = workload.wait_for(1_000)?;
    std::thread::sleep(SECOND);
    let right = workload.begin_window();
    let (low, high) = leads(&right)?;
    assert!(low >= -ROUNDING && high <= MAX_BORROW, "{right:?}");
    let collected = workload.end()?;
    let tally = collected.tally();
    println!(
        "clock_steps: back by a year: {} refusals in 2 s, 0 IDs; right again: {} IDs, the first thousand after {}; in all {tally}",
        window.errors(),
        grouped(right.ids),
        millis(resumed)
    );
    tally.assert_unique();
    collected.assert_in_order();

    // Without protection the clock is believed: IDs of the year before.
    let cluster = builder()
        .without_protection("clock")?
        .start_with_extension()?;
    let collected = step_twice(&cluster, YEAR, &SHORT, false)?;
    println!(
        "clock_steps WITHOUT protection: back by a year: {}",
        collected.tally()
    );
    collected.tally().assert_found_duplicates();
    Ok(())
}

/// The strict generator: no borrowing, and no step is slewed. A step is
/// waited for, where `snowflake.max_wait` is enough.
#[test]
fn a_strict_server_waits_or_refuses() -> Result<()> {
    let cluster = builder()
        .conf("snowflake.max_borrow", 0)
        .conf("snowflake.max_clock_step", 0)
        .start_with_extension()?;
    // At the start, a second or two of what the mark reserves is waited for.
    let workload = workload(&cluster)?;
    std::thread::sleep(2 * SECOND);
    let mut observer = cluster.connect()?;
    workload.begin_window();
    let stepped = Instant::now();
    cluster.clock().step(Offset::back(3 * SECOND))?;
    workload.begin_window();
    // Seen from outside while they wait.
    let waiting = wait_event(&mut observer, None)?;
    workload.wait_for(1_000)?;
    let waited = stepped.elapsed();
    let window = workload.begin_window();
    println!(
        "clock_steps: strict, back by 3 s: IDs again after {}, longest statement {}, {} refusals; wait event {waiting}",
        millis(waited),
        millis(window.longest),
        window.errors()
    );
    assert_eq!(window.errors(), 0, "{window:?}");
    assert!(
        waited > 2 * SECOND,
        "the step was not waited for: {waited:?}"
    );
    assert!(window.longest > 2 * SECOND, "{window:?}");
    assert!(window.longest < TOO_LONG, "{window:?}");
    let own_event = cluster.installation().major >= 17;
    assert_eq!(
        waiting,
        if own_event {
            "Extension SnowflakeWaitForTime"
        } else {
            "Extension Extension"
        }
    );
    assert!(waits(&mut cluster.connect()?)? > 0);

    let mut lines = Vec::new();
    for back in [HOUR, YEAR] {
        cluster.clock().step(Offset::back(back))?;
        workload.begin_window();
        nothing_is_issued(&workload)?;
        let (refusal, took) = timed_refusal(&cluster)?;
        assert_eq!(refusal.sqlstate, "58000");
        assert!(took < 2 * SECOND, "max_wait cannot be enough: {took:?}");
        lines.push(format!(
            "{}: refused after {}",
            Offset::back(back),
            millis(took)
        ));
        cluster.clock().step(Offset::forward(back))?;
        workload.begin_window();
        workload.wait_for(1_000)?;
    }
    // Forward, too, beyond the lease, which is tolerated.
    cluster.clock().step(Offset::forward(HOUR))?;
    workload.begin_window();
    nothing_is_issued(&workload)?;
    cluster.clock().step(Offset::back(HOUR))?;
    workload.begin_window();
    workload.wait_for(1_000)?;
    let collected = workload.end()?;
    let tally = collected.tally();
    println!(
        "clock_steps: strict: {}; 1 h ahead: refused; in all {tally}",
        lines.join("; ")
    );
    tally.assert_unique();
    collected.assert_in_order();
    let furthest = furthest_ahead(&collected, &DEFAULT);
    assert!(furthest <= LEASE, "an ID {} ahead", seconds(furthest));
    Ok(())
}

/// What a reader was promised does not let a strict server draw there.
#[test]
fn a_strict_server_refuses_beside_a_reader() -> Result<()> {
    let cluster = builder()
        .conf("snowflake.max_borrow", 0)
        .conf("snowflake.max_clock_step", 0)
        .start_with_extension()?;
    let mut writer = cluster.connect()?;
    let mut reader = cluster.connect()?;
    // Time is reserved for longer than the next statements take: they need not look at the
    // clocks for that.
    number(&mut writer, "SELECT snowflake_nextval()")?;
    std::thread::sleep(LONGER_THAN_A_LEASE);
    for _ in 0..3 {
        number(&mut writer, "SELECT snowflake_nextval()")?;
    }
    let answer = number(&mut reader, "SELECT snowflake_resolved_id()")?;
    cluster.clock().step(Offset::back(HOUR))?;
    let refusal = refused(&mut writer, "SELECT snowflake_nextval()", "58000")?;
    cluster.clock().step(Offset::forward(HOUR))?;
    let id = number(&mut writer, "SELECT snowflake_nextval()")?;
    println!("clock_steps: strict, beside a reader: {refusal}");
    assert!(id >= answer, "{id}, {answer}");
    Ok(())
}

/// How far the highest ID is ahead of the true time now, microseconds.
fn furthest_ahead(collected: &Received, fields: &Fields) -> i64 {
    let highest = collected.ids.iter().flatten().max().copied().unwrap_or(0);
    fields.time_us(highest) - ids::now_us()
}

/// Within `snowflake.max_clock_step` a step forward is believed: a clock that
/// was behind is set right. Back from there is a step back like any other.
#[test]
fn a_clock_step_forward_of_an_hour_is_believed() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let workload = workload(&cluster)?;
    workload.wait_for(1_000)?;
    cluster.clock().set_offset(Offset::forward(HOUR))?;
    workload.begin_window();
    std::thread::sleep(2 * SECOND);
    workload.wait_for(1_000)?;
    let ahead = workload.begin_window();
    let hour = i64::try_from(HOUR.as_micros())?;
    let (low, high) = leads(&ahead)?;
    assert!(
        low >= hour - ROUNDING && high <= hour + MAX_BORROW,
        "{ahead:?}"
    );
    workload.begin_window();
    cluster.clock().set_offset(Offset::NONE)?;
    std::thread::sleep(4 * SECOND);
    workload.wait_for(1_000)?;
    let back = workload.begin_window();
    let (low, high) = leads(&back)?;
    assert!(low >= -ROUNDING && high <= hour + MAX_BORROW, "{back:?}");
    let collected = workload.end()?;
    let tally = collected.tally();
    println!(
        "clock_steps: forward by an hour ({} IDs) and back ({} IDs, up to {} ahead): {tally}, longest statement {}",
        grouped(ahead.ids),
        grouped(back.ids),
        seconds(high),
        millis(collected.longest)
    );
    assert_eq!(waits(&mut cluster.connect()?)?, 0, "calls waited");
    tally.assert_unique();
    collected.assert_in_order();
    assert!(collected.longest < TOO_LONG, "{:?}", collected.longest);
    Ok(())
}

/// IDs from the future would prevent others for as long as the step was.
#[test]
fn a_clock_step_of_two_days_is_refused() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let workload = workload(&cluster)?;
    workload.wait_for(1_000)?;
    cluster.clock().set_offset(Offset::forward(2 * DAY))?;
    workload.begin_window();
    let first = nothing_is_issued(&workload)?;
    let (refusal, took) = timed_refusal(&cluster)?;
    println!(
        "clock_steps: two days ahead: refused after {}: {refusal}",
        millis(took)
    );
    assert_eq!(refusal.sqlstate, "58000");
    assert!(took < 2 * SECOND, "{took:?}");
    assert!(
        refusal.hint.contains("SELECT snowflake_accept_clock('"),
        "{refusal}"
    );

    // What the clock should say outlives the shared memory.
    let before = workload.pids();
    processes::send(before[0], Signal::SIGKILL)?;
    workload.until(|workload| {
        let now = workload.pids();
        now.iter().all(|pid| *pid != 0 && !before.contains(pid))
    })?;
    workload.begin_window();
    let second = nothing_is_issued(&workload)?;

    cluster.clock().set_offset(Offset::NONE)?;
    workload.begin_window();
    let resumed = workload.wait_for(1_000)?;
    std::thread::sleep(SECOND);
    let right = workload.begin_window();
    let (low, high) = leads(&right)?;
    assert!(low >= -ROUNDING && high <= MAX_BORROW + LEASE, "{right:?}");
    let collected = workload.end()?;
    let tally = collected.tally();
    let furthest = furthest_ahead(&collected, &DEFAULT);
    println!(
        "clock_steps: two days ahead: 0 IDs at {} refusals, after the crash of a backend 0 at {}; right again: {} IDs, the first thousand after {}; in all {tally}",
        first.errors(),
        second.errors(),
        grouped(right.ids),
        millis(resumed)
    );
    assert!(
        furthest <= MAX_BORROW + LEASE,
        "an ID {} ahead",
        seconds(furthest)
    );
    tally.assert_unique();
    collected.assert_in_order();

    let cluster = builder()
        .without_protection("clock")?
        .start_with_extension()?;
    let workload = self::workload(&cluster)?;
    cluster.clock().set_offset(Offset::forward(2 * DAY))?;
    workload.begin_window();
    workload.wait_for(1_000)?;
    let furthest = furthest_ahead(&workload.end()?, &DEFAULT);
    println!(
        "clock_steps WITHOUT protection: two days ahead: IDs {} ahead",
        seconds(furthest)
    );
    assert!(furthest > DAY.as_micros() as i64, "{furthest}");
    Ok(())
}

fn clock_says(cluster: &Cluster) -> Result<String> {
    value(&mut cluster.connect()?, "SELECT clock_timestamp()::text")
}

fn accept(time: &str) -> String {
    format!("SELECT snowflake_accept_clock('{time}')")
}

/// IDs of two seconds with the clock ahead by `step`, which is then set right.
fn ahead_for_a_while(cluster: &Cluster, workload: &Workload, step: Duration) -> Result<Window> {
    cluster.clock().set_offset(Offset::forward(step))?;
    workload.begin_window();
    workload.wait_for(1_000)?;
    std::thread::sleep(2 * SECOND);
    let window = workload.begin_window();
    cluster.clock().set_offset(Offset::NONE)?;
    Ok(window)
}

/// IDs with the clock right, after another node number has taken over. Returns
/// them with those that were received before.
fn take_over(cluster: &mut Cluster, mut received: Vec<i64>) -> Result<Vec<i64>> {
    cluster.set_conf("snowflake.node_id", 2)?;
    let bound = ((ids::now_us() - DEFAULT.epoch * 1_000_000) / DEFAULT.tick_us) << 22;
    cluster.connect()?.batch_execute(&format!(
        "SELECT setval('snowflake_internal.mark', {bound})"
    ))?;
    cluster.restart()?;
    let workload = workload(cluster)?;
    workload.wait_for(1_000)?;
    std::thread::sleep(SECOND);
    let after = workload.begin_window();
    let (low, high) = leads(&after)?;
    assert!(low >= -ROUNDING && high <= MAX_BORROW + LEASE, "{after:?}");
    let collected = workload.end()?;
    println!(
        "clock_steps: another node number took over: {} IDs, {} to {} off the true time",
        grouped(after.ids),
        seconds(low),
        seconds(high)
    );
    collected.assert_in_order();
    received.extend(collected.ids.concat());
    Ok(received)
}

/// A time is accepted only by an administrator, and only if it is the clock's.
#[test]
fn a_wrong_clock_is_accepted_only_with_its_own_time() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let mut client = cluster.connect()?;
    let workload = workload(&cluster)?;
    workload.wait_for(1_000)?;
    let right = clock_says(&cluster)?;
    cluster.clock().set_offset(Offset::forward(10 * YEAR))?;
    workload.begin_window();
    nothing_is_issued(&workload)?;
    // A line that was pasted from another day does no harm.
    refused(&mut client, &accept(&right), "22023")?;
    let pasted = "SELECT snowflake_accept_clock(clock_timestamp() + interval '2 min')";
    refused(&mut client, pasted, "22023")?;
    // Nor does a role without the right to, whatever was granted.
    client.batch_execute(
        "CREATE ROLE somebody LOGIN; \
         GRANT EXECUTE ON FUNCTION snowflake_accept_clock(timestamptz) TO somebody",
    )?;
    let mut somebody = cluster.connect_as("somebody", "postgres")?;
    refused(&mut somebody, &accept(&clock_says(&cluster)?), "42501")?;
    nothing_is_issued(&workload)?;
    workload.end()?;
    Ok(())
}

/// A wrong clock that was accepted: IDs of 2036 are out. Back in the present
/// nothing is issued, until a node number that was never used takes over.
#[test]
fn no_id_repeats_after_a_clock_ten_years_ahead_was_accepted() -> Result<()> {
    let mut cluster = builder().start_with_extension()?;
    let mut client = cluster.connect()?;
    let workload = workload(&cluster)?;
    workload.wait_for(1_000)?;
    cluster.clock().set_offset(Offset::forward(10 * YEAR))?;
    workload.begin_window();
    nothing_is_issued(&workload)?;
    client.batch_execute(&accept(&clock_says(&cluster)?))?;
    let reached = cluster.clock().now_us();
    let ahead = ahead_for_a_while(&cluster, &workload, 10 * YEAR)?;
    let ten_years = i64::try_from(10 * YEAR.as_micros())?;
    assert!(leads(&ahead)?.0 >= ten_years - ROUNDING, "{ahead:?}");

    workload.begin_window();
    nothing_is_issued(&workload)?;
    let (behind, _) = timed_refusal(&cluster)?;
    assert_eq!(behind.sqlstate, "58000");
    // Accepting changes nothing here: IDs that are out prevent it.
    refused(&mut client, &accept(&clock_says(&cluster)?), "58000")?;

    // The same wrong time again repeats nothing.
    let again = Duration::from_micros(u64::try_from(reached - cluster.clock().now_us())?);
    let once_more = ahead_for_a_while(&cluster, &workload, again)?;
    let collected = workload.end()?;
    let tally = collected.tally();
    println!(
        "clock_steps: ten years ahead: refused; accepted: {} IDs; back: refused ({behind}); ahead once more: {} IDs; in all {tally}",
        grouped(ahead.ids),
        grouped(once_more.ids)
    );
    tally.assert_unique();
    collected.assert_in_order();

    // A restart in order changes nothing: the mark is in 2036.
    cluster.restart()?;
    let (still, _) = timed_refusal(&cluster)?;
    assert_eq!(still.sqlstate, "58000", "{still}");
    let tally = Tally::of(take_over(&mut cluster, collected.ids.concat())?);
    println!("clock_steps: in all {tally}");
    tally.assert_unique();
    Ok(())
}

/// Without protection the second visit to the wrong time repeats its IDs.
#[test]
fn a_clock_ten_years_ahead_is_able_to_fail() -> Result<()> {
    let cluster = builder()
        .without_protection("clock")?
        .start_with_extension()?;
    let workload = workload(&cluster)?;
    let mut reached = None;
    for _ in 0..2 {
        let ahead = match reached {
            None => 10 * YEAR,
            Some(at) => Duration::from_micros(u64::try_from(at - ids::now_us())?),
        };
        cluster.clock().set_offset(Offset::forward(ahead))?;
        reached.get_or_insert(cluster.clock().now_us());
        workload.begin_window();
        std::thread::sleep(2 * SECOND);
        workload.wait_for(1_000)?;
        cluster.clock().set_offset(Offset::NONE)?;
        std::thread::sleep(SECOND);
    }
    let tally = workload.end()?.tally();
    println!("clock_steps WITHOUT protection: ten years ahead twice: {tally}");
    tally.assert_found_duplicates();
    Ok(())
}
