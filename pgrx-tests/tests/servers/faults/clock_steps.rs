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
//!
//! The clock is that of the test build. Tests let time pass and do not wait for it,
//! so "longer" and "later" are by true time as this clock has it. No test judges by
//! the machine's time: calls that waited are counted by the server. The tests of
//! [`faketime`] show that the kernel's own readings behave the same.

use nix::sys::signal::Signal;
use snowflake_tests::workload::{Mode, Received, Window, Workload};

use crate::support::*;

/// Eight sessions, most of which request each ID on its own: the more often the
/// clock is read the better.
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

/// More IDs than the statements that are under way return: after these, some
/// session has begun and ended a statement.
const ENOUGH: usize = 3_000;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// The defaults of `snowflake.max_borrow` and `snowflake.lease`, microseconds.
const MAX_BORROW: i64 = 1_000_000;
const LEASE: i64 = 2_000_000;
const LONGER_THAN_A_LEASE: Duration = Duration::from_secs(3);

/// Two ticks: one that had begun, and the clock's own.
const ROUNDING: i64 = 2_000;

fn builder() -> ClusterBuilder {
    Cluster::node(1)
        // Time passes many times faster than processes work. A process that reserves
        // time while it has no processor keeps the others waiting for a long time by
        // this clock. It is still less than what these tests expect to be refused.
        .conf("snowflake.max_wait", "1h")
        .movable_clock()
}

/// The strict generator: no borrowing, and no step is slewed. A step is waited for if
/// `snowflake.max_wait` is enough.
fn strict_builder() -> ClusterBuilder {
    Cluster::node(1)
        .conf("snowflake.max_borrow", 0)
        .conf("snowflake.max_clock_step", 0)
        // More than the step that is waited for, and less than those that are refused.
        .conf("snowflake.max_wait", "10min")
        .movable_clock()
}

fn workload(cluster: &Cluster) -> Result<Workload> {
    Workload::start_with_clock(cluster, &["postgres"], &MODES, &DEFAULT)
}

/// Lets time pass, until a session has worked after that.
fn pass(cluster: &Cluster, workload: &Workload, time: Duration) -> Result<()> {
    cluster.clock().pass(time)?;
    let so_far = workload.window().ids;
    workload.wait_for(so_far + ENOUGH)?;
    Ok(())
}

/// The leads of a window's IDs over true time, microseconds.
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
    client.number("SELECT coalesce(waits, 0) FROM snowflake_status")
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

/// How much time passes in the parts of [`step_twice`].
struct Times {
    before: Duration,
    stepped: Duration,
    right: Duration,
    again: Duration,
}

/// Long enough for the shorter steps to be caught up with.
const LONG: Times = Times {
    before: Duration::from_secs(2),
    stepped: Duration::from_secs(22),
    right: Duration::from_secs(4),
    again: Duration::from_secs(4),
};

/// The clock steps back, is set right, and steps back once more, to times that
/// it has shown after the first step.
fn step_twice(cluster: &Cluster, step: Duration, times: &Times) -> Result<Received> {
    let clock = cluster.clock();
    let mut client = cluster.connect()?;
    let step_us = i64::try_from(step.as_micros())?;
    let workload = workload(cluster)?;
    pass(cluster, &workload, times.before)?;
    let before = workload.begin_window();

    let began = clock.now_us() - step_us;
    let stepped_at = clock.true_us();
    clock.set_offset(Offset::back(step))?;
    workload.begin_window();
    // Before a short step is caught up with, the log has to have it.
    workload.wait_for(ENOUGH)?;
    pass(cluster, &workload, times.stepped * 3 / 4)?;
    let during = workload.begin_window();
    pass(cluster, &workload, times.stepped / 4)?;
    let late = workload.begin_window();
    let slewed_for = clock.true_us() - stepped_at;

    clock.set_offset(Offset::NONE)?;
    workload.begin_window();
    pass(cluster, &workload, times.right)?;
    let right = workload.begin_window();

    // To where it was just after the first step.
    let back = Duration::from_micros(u64::try_from(clock.now_us() - began - 200_000)?);
    clock.set_offset(Offset::back(back))?;
    pass(cluster, &workload, times.again)?;
    let again = workload.begin_window();
    clock.set_offset(Offset::NONE)?;
    workload.begin_window();
    workload.wait_for(ENOUGH)?;
    let end = workload.begin_window();
    let collected = workload.end()?;

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
    assert_eq!((steps_back, steps_forward), (2, 2));
    assert_eq!((half_speed, caught_up), (2, 2));
    Ok(collected)
}

fn steps_back(step: Duration) -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let begun = cluster.true_us();
    let collected = step_twice(&cluster, step, &LONG)?;
    let tally = collected.tally();
    println!(
        "clock_steps: clock {} twice, {} sessions for {}: {tally}, {} out of order, longest statement {}",
        Offset::back(step),
        MODES.len(),
        seconds(cluster.true_us() - begun),
        collected.decreases,
        millis(collected.longest)
    );
    collected.assert_in_order();

    // The same as in `clock_steps_back_are_able_to_fail`.
    let at = cluster.true_us() - i64::try_from(step.as_micros())?;
    let revisits = revisit(&cluster, at)?;
    revisits.assert_in_order();
    let all = Tally::of([collected.ids.concat(), revisits.ids.concat()].concat());
    println!(
        "clock_steps: clock {} seven times: {all}",
        Offset::back(step)
    );
    all.assert_unique();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_three_seconds() -> Result<()> {
    steps_back(3 * SECOND)
}

#[test]
fn no_id_repeats_after_a_clock_step_back_of_an_hour() -> Result<()> {
    steps_back(HOUR)
}

/// What sessions receive while the clock shows the same time five times. No time is
/// made to pass: each time the clock shows the same milliseconds, and none is left
/// out. Eight sessions meet many of them again, also with little of the processors,
/// and a generator that follows the clock begins each with the same ID.
fn revisit(cluster: &Cluster, at: i64) -> Result<Received> {
    const VISITS: usize = 5;
    const IDS: usize = 20_000;
    let workload = workload(cluster)?;
    for _ in 0..VISITS {
        let by = at - cluster.true_us();
        let length = Duration::from_micros(by.unsigned_abs());
        cluster.clock().set_offset(if by < 0 {
            Offset::back(length)
        } else {
            Offset::forward(length)
        })?;
        workload.begin_window();
        workload.wait_for(IDS)?;
        cluster.clock().set_offset(Offset::NONE)?;
        workload.begin_window();
        workload.wait_for(ENOUGH)?;
    }
    workload.end()
}

/// Without protection the clock is believed, a year back, too.
#[test]
fn clock_steps_back_are_able_to_fail() -> Result<()> {
    let cluster = builder()
        .without_protection("clock")
        .start_with_extension()?;
    for step in [3 * SECOND, HOUR] {
        let at = cluster.true_us() - i64::try_from(step.as_micros())?;
        let tally = revisit(&cluster, at)?.tally();
        println!(
            "clock_steps WITHOUT protection: clock {}: {tally}",
            Offset::back(step)
        );
        tally.assert_found_duplicates();
    }
    Ok(())
}

/// A call that must be refused, and at once: it must not have waited.
fn refusal_at_once(cluster: &Cluster) -> Result<ServerError> {
    let mut client = cluster.connect()?;
    let before = waits(&mut client)?;
    let refusal = client.expect_error("SELECT snowflake_nextval()")?;
    assert_eq!(waits(&mut client)?, before, "it waited first: {refusal}");
    Ok(refusal)
}

/// Waits until every session was refused, and makes sure that from then on no
/// session receives an ID, while time passes.
fn nothing_is_issued(cluster: &Cluster, workload: &Workload) -> Result<Window> {
    // When a session is refused a second time, it has begun the statement since the
    // beginning of the window.
    let every_session_is_refused = |workload: &Workload| {
        let refusals = workload.window().errors_by_session;
        refusals.len() == MODES.len() && refusals.values().all(|&count| count >= 2)
    };
    workload.begin_window();
    workload.until(every_session_is_refused)?;
    workload.begin_window();
    cluster.clock().pass(2 * SECOND)?;
    workload.until(every_session_is_refused)?;
    let window = workload.begin_window();
    assert_eq!(window.ids, 0, "{window:?}");
    assert_eq!(window.errors_with("58000"), window.errors(), "{window:?}");
    Ok(window)
}

#[test]
fn a_strict_server_waits_or_refuses() -> Result<()> {
    let cluster = strict_builder().start_with_extension()?;
    let workload = workload(&cluster)?;
    pass(&cluster, &workload, 2 * SECOND)?;
    let mut observer = cluster.connect()?;
    workload.begin_window();
    cluster.clock().step(Offset::back(MINUTE))?;
    workload.begin_window();
    // Seen from outside while all of them wait.
    observer.wait_until(&format!(
        "SELECT count(*) = {} FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND state = 'active' AND wait_event_type = 'Extension'",
        MODES.len()
    ))?;
    let waiting = wait_event(&mut observer, None)?;
    // A part of the step is not enough.
    cluster.clock().pass(MINUTE / 4)?;
    let window = workload.window();
    assert_eq!(window.ids, 0, "the step was not waited for: {window:?}");
    cluster.clock().pass(MINUTE)?;
    workload.wait_for(ENOUGH)?;
    let window = workload.begin_window();
    assert_eq!(window.errors(), 0, "{window:?}");
    let own_event = cluster.installation().major >= 17;
    assert_eq!(
        waiting,
        if own_event {
            "Extension SnowflakeWaitForTime"
        } else {
            "Extension Extension"
        }
    );
    assert!(waits(&mut observer)? > 0);

    for back in [HOUR, YEAR] {
        cluster.clock().step(Offset::back(back))?;
        workload.begin_window();
        nothing_is_issued(&cluster, &workload)?;
        let refusal = refusal_at_once(&cluster)?;
        assert_eq!(refusal.sqlstate, "58000");
        cluster.clock().step(Offset::forward(back))?;
        workload.begin_window();
        workload.wait_for(ENOUGH)?;
    }
    // Forward, too, beyond the lease, which is tolerated.
    cluster.clock().step(Offset::forward(HOUR))?;
    workload.begin_window();
    nothing_is_issued(&cluster, &workload)?;
    cluster.clock().step(Offset::back(HOUR))?;
    workload.begin_window();
    workload.wait_for(ENOUGH)?;
    let collected = workload.end()?;
    let tally = collected.tally();
    println!("clock_steps: strict: 1 h ahead: refused; in all {tally}");
    tally.assert_unique();
    collected.assert_in_order();
    let furthest = furthest_ahead(&cluster, &collected, &DEFAULT);
    assert!(furthest <= LEASE, "an ID {} ahead", seconds(furthest));
    Ok(())
}

/// What a reader was promised does not let a strict server draw there.
#[test]
fn a_strict_server_refuses_beside_a_reader() -> Result<()> {
    let cluster = strict_builder().start_with_extension()?;
    let mut writer = cluster.connect()?;
    let mut reader = cluster.connect()?;
    // Time is reserved for longer than the next statements take: they need not look at the
    // clocks for that.
    writer.number("SELECT snowflake_nextval()")?;
    cluster.clock().pass(LONGER_THAN_A_LEASE)?;
    for _ in 0..3 {
        writer.number("SELECT snowflake_nextval()")?;
    }
    let answer = reader.number("SELECT snowflake_resolved_id()")?;
    cluster.clock().step(Offset::back(HOUR))?;
    writer.refused("SELECT snowflake_nextval()", "58000")?;
    cluster.clock().step(Offset::forward(HOUR))?;
    let id = writer.number("SELECT snowflake_nextval()")?;
    assert!(id >= answer, "{id}, {answer}");
    Ok(())
}

/// How far the highest ID is ahead of the true time now, microseconds.
fn furthest_ahead(cluster: &Cluster, collected: &Received, fields: &Fields) -> i64 {
    let highest = collected.ids.iter().flatten().max().copied().unwrap_or(0);
    fields.time_us(highest) - cluster.true_us()
}

/// IDs from the future would prevent others for as long as the step was.
#[test]
fn a_clock_step_of_two_days_is_refused() -> Result<()> {
    let cluster = builder().start_with_extension()?;
    let workload = workload(&cluster)?;
    workload.wait_for(ENOUGH)?;
    cluster.clock().set_offset(Offset::forward(2 * DAY))?;
    workload.begin_window();
    let first = nothing_is_issued(&cluster, &workload)?;
    let refusal = refusal_at_once(&cluster)?;
    assert_eq!(refusal.sqlstate, "58000");
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
    let second = nothing_is_issued(&cluster, &workload)?;

    cluster.clock().set_offset(Offset::NONE)?;
    workload.begin_window();
    let resumed = workload.wait_for(ENOUGH)?;
    pass(&cluster, &workload, SECOND)?;
    let right = workload.begin_window();
    let (low, high) = leads(&right)?;
    assert!(low >= -ROUNDING && high <= MAX_BORROW + LEASE, "{right:?}");
    let collected = workload.end()?;
    let tally = collected.tally();
    let furthest = furthest_ahead(&cluster, &collected, &DEFAULT);
    println!(
        "clock_steps: two days ahead: 0 IDs at {} refusals, after the crash of a backend 0 at {}; right again: {} IDs, the first thousands after {}; in all {tally}",
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
    Ok(())
}

/// The same with libfaketime in the place of the test build's clock: the extension
/// reads the kernel's clocks by its ordinary code, and the server's `now()` follows.
mod faketime {
    use super::*;

    /// Time passes as it does for the machine.
    const SHORT: Times = Times {
        before: Duration::from_millis(500),
        stepped: Duration::from_secs(3),
        right: Duration::from_millis(500),
        again: Duration::from_millis(1_500),
    };

    /// With the default `snowflake.max_wait`.
    fn builder() -> ClusterBuilder {
        Cluster::node(1).faketime()
    }

    /// An ID that is not older than `now()`.
    fn id_not_before_now(client: &mut Client) -> Result<i64> {
        let row = client.query_one(
            "SELECT id, snowflake_timestamp(id) >= date_trunc('milliseconds', now())
             FROM (SELECT snowflake_nextval() AS id OFFSET 0) AS made",
            &[],
        )?;
        let (id, is_not_before): (i64, bool) = (row.get(0), row.get(1));
        assert!(is_not_before, "{id} is older than now()");
        Ok(id)
    }

    #[test]
    fn no_id_repeats_after_a_clock_step_back_of_three_seconds() -> Result<()> {
        let cluster = builder().start_with_extension()?;
        let collected = step_twice(&cluster, 3 * SECOND, &SHORT)?;
        let tally = collected.tally();
        println!("clock_steps: libfaketime, 3 s back twice: {tally}");
        tally.assert_unique();
        collected.assert_in_order();
        Ok(())
    }

    #[test]
    fn a_clock_step_back_of_a_year_is_refused() -> Result<()> {
        let cluster = builder().start_with_extension()?;
        let mut client = cluster.connect()?;
        let before = id_not_before_now(&mut client)?;
        cluster.clock().set_offset(Offset::back(YEAR))?;
        let today = |client: &mut Client| client.value("SELECT now()::date::text");
        let first = today(&mut client)?;
        let refusal = refusal_at_once(&cluster)?;
        let dates = [first, today(&mut client)?];
        assert_eq!(refusal.sqlstate, "58000");
        assert!(
            refusal.hint.contains("snowflake.max_clock_step"),
            "{refusal}"
        );
        // At midnight they differ.
        let named = dates
            .iter()
            .any(|date| refusal.detail.contains(date.as_str()));
        assert!(named, "{dates:?}: {refusal}");
        client.refused("SELECT snowflake_nextval()", "58000")?;

        cluster.clock().set_offset(Offset::back(HOUR))?;
        let slewed = id_not_before_now(&mut client)?;
        cluster.clock().set_offset(Offset::NONE)?;
        let after = id_not_before_now(&mut client)?;
        assert!(
            before < slewed && slewed < after,
            "{before} {slewed} {after}"
        );
        Ok(())
    }

    #[test]
    fn a_wrong_clock_is_accepted_only_with_the_servers_own_time() -> Result<()> {
        let cluster = builder().start_with_extension()?;
        let mut client = cluster.connect()?;
        let before = id_not_before_now(&mut client)?;
        let accept = |time: &str| format!("SELECT snowflake_accept_clock({time})");
        cluster.clock().set_offset(Offset::forward(10 * YEAR))?;
        assert_eq!(refusal_at_once(&cluster)?.sqlstate, "58000");
        let pasted = accept("clock_timestamp() + interval '2 min'");
        client.refused(&pasted, "22023")?;
        client.refused("SELECT snowflake_nextval()", "58000")?;
        client.batch_execute(&accept("clock_timestamp()"))?;
        let ahead = id_not_before_now(&mut client)?;
        assert!(ahead > before, "{ahead}, {before}");
        cluster.clock().set_offset(Offset::NONE)?;
        client.refused("SELECT snowflake_nextval()", "58000")?;
        Ok(())
    }
}
