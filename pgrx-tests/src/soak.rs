//! A random mix of faults against eight sessions that request IDs without a pause.
//! All IDs that clients received are compared.
//!
//! The clock stays within ten hours of the true time. So no clock step exceeds
//! `snowflake.max_clock_step`, and no statement may fail because of one.

mod fault;
mod report;
mod sqlsmith;
mod steps;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::clock::Offset;
use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::{IdSet, Tally, grouped};
use crate::processes;
use crate::server::Stop;
use crate::time_limit;
use crate::workload::{FOUR_SLOTS, Mode, ROWS, Window, Workload};

pub use fault::Fault;
pub use report::{Count, Report};
use sqlsmith::Sqlsmith;
pub use sqlsmith::Statements;
use steps::{step_back, step_forward};
use trace::Trace;

const DATABASES: [&str; 2] = ["first", "second"];

/// In both databases. Half of the sessions insert rows, as an application does.
const MODES: [Mode; 8] = [
    Mode::Calls(1_000),
    Mode::Calls(1_000),
    Mode::Calls(1_000),
    Mode::Runs(1_000),
    Mode::Commit(50),
    Mode::Commit(50),
    Mode::RollBack(50),
    Mode::RollBack(50),
];

/// How many IDs must arrive after a fault before the next one.
const ENOUGH: usize = 1_000;

/// How many faults a soak causes at least, however long they take.
const LEAST_FAULTS: usize = 10;

/// How many IDs must arrive at the times to which [`revisit`] returns: so many that
/// sessions meet hundreds of milliseconds again, and still dozens on a busy machine.
const VISIT: usize = 200_000;

/// How far before these times the clock is when the fault comes: longer than a
/// restart takes, on a busy machine too.
const MARGIN: Duration = Duration::from_secs(30);

const NODE: u32 = 1;

/// A server with its databases.
fn start(builder: ClusterBuilder, limit: Duration) -> Result<(Cluster, Trace)> {
    let mut cluster = builder
        .conf("snowflake.node_id", NODE)
        .conf("snowflake.layout", FOUR_SLOTS.layout)
        .movable_clock()
        .time_limit(limit)
        .prepare()?;
    let trace = Trace::of(&mut cluster, &FOUR_SLOTS, NODE)?;
    cluster.start()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute(ROWS)?;
    }
    Ok((cluster, trace))
}

/// Has the sessions of a soak work at the same time again after a fault that sets the
/// clock back, and counts the IDs. Unlike with random faults, the same milliseconds
/// always come again: a server that does not survive this fault repeats IDs.
///
/// The clock is set back to well before that time. When all sessions are back, time is
/// made to pass up to there, and they work for as long as before.
///
/// # Errors
/// If it cannot be run to its end. A duplicate is no error.
pub fn revisit(builder: ClusterBuilder, fault: Fault) -> Result<Tally> {
    ensure!(fault.sets_the_clock_back(), "{} does not", fault.name());
    // Time passes many times faster than processes work. A process that reserves time
    // while it has no processor keeps the others waiting for a long time by this clock.
    let builder = builder.conf("snowflake.max_wait", "1h");
    let (mut cluster, _) = start(builder, time_limit::DEFAULT)?;
    let workload = Workload::start_with_clock(&cluster, &DATABASES, &MODES, &FOUR_SLOTS)?;
    let began = cluster.clock().now_us();
    workload.begin_window();
    workload.wait_for(VISIT)?;
    let ended = cluster.clock().now_us();

    let elapsed = Duration::from_micros(u64::try_from(ended - began)?);
    let back = Some(Offset::back(elapsed + MARGIN));
    let mut random = StdRng::seed_from_u64(1);
    strike(&mut cluster, &workload, fault, back, &mut random)?;
    workload.begin_window();
    workload.wait_for(ENOUGH)?;
    workload.revisit(cluster.clock(), began, ended)?;
    Ok(workload.end()?.tally())
}

/// What a soak is like.
#[derive(Debug, Clone)]
pub struct Options {
    /// The duration.
    pub length: Duration,
    /// The seed of the choice of faults.
    pub seed: u64,
    /// How long it is until the next fault at most; mostly far less.
    pub longest_pause: Duration,
    /// The program SQLsmith, to run beside it.
    pub sqlsmith: Option<PathBuf>,
}

/// Runs a soak on a server of its own.
///
/// # Errors
/// If it cannot be run to its end. A duplicate is no error, but in the report.
pub fn run(
    builder: ClusterBuilder,
    options: Options,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let Options { length, seed, .. } = options;
    let builder = match options.sqlsmith {
        Some(_) => sqlsmith::settings(builder),
        None => builder,
    };
    let (mut cluster, mut trace) = start(builder, length + time_limit::DEFAULT)?;
    let smith = options
        .sqlsmith
        .map(|program| Sqlsmith::start(program, &cluster, DATABASES[0], seed));
    let mut smith = smith.transpose()?;
    let mut random = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<Fault, Count> = BTreeMap::new();
    let (mut faults, mut errors) = (0, 0);
    let mut received = IdSet::default();
    let begun = Instant::now();
    // Beside SQLsmith there are few, which leaves time to it.
    let modes = if smith.is_some() {
        &MODES[3..5]
    } else {
        &MODES[..]
    };
    let workload = Workload::start(&cluster, &DATABASES, modes, &FOUR_SLOTS)?;
    while begun.elapsed() < length || faults < LEAST_FAULTS {
        faults += 1;
        let fault = *Fault::ALL.choose(&mut random).context("no faults")?;
        let (outage, window) = cause(
            &mut cluster,
            &workload,
            fault,
            options.longest_pause,
            &mut random,
        )
        .with_context(|| format!("{} with seed {seed}", fault.name()))?;
        received.add(&workload.take());
        trace.read()?;
        if let Some(smith) = &mut smith {
            smith.read(&cluster)?;
        }
        errors += window.errors();
        let count = counts.entry(fault).or_default();
        count.faults += 1;
        count.ids_after += window.ids;
        count.longest_outage = count.longest_outage.max(outage);
        progress(&format!(
            "soak: {:>4} s: {}; clock now {} off; {} IDs after it",
            begun.elapsed().as_secs(),
            fault.name(),
            cluster.clock().offset(),
            grouped(window.ids)
        ));
        if faults.is_multiple_of(20) {
            // Otherwise the rows would fill the disk in the end.
            for database in DATABASES {
                cluster
                    .connect_to(database)?
                    .batch_execute("TRUNCATE rows")?;
            }
        }
    }
    let statements = smith.map(|smith| smith.end(&cluster)).transpose()?;
    let collected = workload.end()?;
    received.add(&collected.ids.concat());
    trace.read()?;
    Ok(Report {
        seed,
        statements,
        trace: trace.report(),
        took: begun.elapsed(),
        counts,
        decreases: collected.decreases,
        errors,
        longest: collected.longest,
        tally: received.tally(),
    })
}

/// Causes one fault. Returns the time until the first ID after it (or until the
/// sessions had reconnected), and the window that followed.
fn cause(
    cluster: &mut Cluster,
    workload: &Workload,
    fault: Fault,
    longest_pause: Duration,
    random: &mut StdRng,
) -> Result<(Duration, Window)> {
    let back = fault
        .sets_the_clock_back()
        .then(|| step_back(cluster.clock().offset(), random));
    let begun = Instant::now();
    strike(cluster, workload, fault, back, random)?;
    workload.begin_window();
    workload.wait_for(1)?;
    let outage = begun.elapsed();
    workload.wait_for(ENOUGH)?;
    // The pause until the next fault is mostly short.
    let pause: f64 = random.random();
    std::thread::sleep(longest_pause.mul_f64(pause.powi(4)));
    Ok((outage, workload.begin_window()))
}

/// Causes one fault, with the clock set back to this offset if it does that. Returns
/// when the sessions have reconnected, if it ends them.
fn strike(
    cluster: &mut Cluster,
    workload: &Workload,
    fault: Fault,
    back: Option<Offset>,
    random: &mut StdRng,
) -> Result<()> {
    let step = |cluster: &Cluster| match back {
        Some(offset) => cluster.clock().set_offset(offset),
        None => Ok(()),
    };
    workload.begin_window();
    match fault {
        Fault::ClockBack => step(cluster)?,
        Fault::ClockForward => {
            let offset = step_forward(cluster.clock().offset(), random);
            cluster.clock().set_offset(offset)?;
        }
        Fault::KillBackend | Fault::KillBackendClockBack => {
            // The number of a session that has just connected may not be known yet.
            workload.until(|workload| workload.pids().iter().all(|&pid| pid != 0))?;
            let before = workload.pids();
            let victim = *before.choose(random).context("no session")?;
            ensure!(victim != 0, "a session has no connection");
            processes::send(victim, Signal::SIGKILL)?;
            step(cluster)?;
            workload.until(|workload| {
                let now = workload.pids();
                now.iter().all(|pid| *pid != 0 && !before.contains(pid))
            })?;
        }
        Fault::KillAll | Fault::KillAllClockBack => {
            cluster.kill9_all()?;
            step(cluster)?;
            cluster.start()?;
        }
        Fault::StopFast | Fault::StopFastClockBack => {
            cluster.stop(Stop::Fast)?;
            step(cluster)?;
            cluster.start()?;
        }
        Fault::StopImmediate | Fault::StopImmediateClockBack => {
            cluster.stop(Stop::Immediate)?;
            step(cluster)?;
            cluster.start()?;
        }
    }
    if fault.ends_sessions() {
        workload.until(|workload| workload.window().connections >= workload.pids().len())?;
    }
    Ok(())
}
