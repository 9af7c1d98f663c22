//! A random mix of faults against eight sessions that request IDs without a pause.
//! All IDs that clients received are compared.
//!
//! The clock stays within ten hours of the true time. So no clock step exceeds
//! `snowflake.max_clock_step`, and no statement may fail because of one.

mod fault;
mod report;
mod steps;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::grouped;
use crate::processes;
use crate::server::Stop;
use crate::time_limit;
use crate::workload::{FOUR_SLOTS, Mode, ROWS, Window, Workload};

pub use fault::Fault;
pub use report::{Count, Report};
use steps::{step_back, step_forward};

const DATABASES: [&str; 2] = ["first", "second"];

/// In both databases. Half of the sessions insert rows, as an application does.
const MODES: [Mode; 8] = [
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Calls(300),
    Mode::Runs(300),
    Mode::Commit(50),
    Mode::Commit(50),
    Mode::RollBack(50),
    Mode::RollBack(50),
];

/// How many IDs must arrive after a fault before the next one.
const ENOUGH: usize = 1_000;

/// Runs a soak on a server of its own.
///
/// # Errors
/// If it cannot be run to its end. A duplicate is no error, but in the report.
pub fn run(
    builder: ClusterBuilder,
    length: Duration,
    seed: u64,
    mut progress: impl FnMut(&str),
) -> Result<Report> {
    let mut cluster = builder
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", FOUR_SLOTS.layout)
        .movable_clock()
        .time_limit(length + time_limit::DEFAULT)
        .start()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute(ROWS)?;
    }
    let mut random = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<Fault, Count> = BTreeMap::new();
    let mut errors = 0;
    let begun = Instant::now();
    let workload = Workload::start(&cluster, &DATABASES, &MODES, &FOUR_SLOTS)?;
    while begun.elapsed() < length {
        let fault = *Fault::ALL.choose(&mut random).context("no faults")?;
        let (outage, window) = cause(&mut cluster, &workload, fault, &mut random)
            .with_context(|| format!("{} with seed {seed}", fault.name()))?;
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
        if fault.ends_sessions() {
            // Otherwise the rows would fill the disk in the end.
            for database in DATABASES {
                cluster
                    .connect_to(database)?
                    .batch_execute("TRUNCATE rows")?;
            }
        }
    }
    let collected = workload.end()?;
    Ok(Report {
        seed,
        took: begun.elapsed(),
        counts,
        decreases: collected.decreases,
        errors,
        longest: collected.longest,
        tally: collected.into_tally(),
    })
}

/// Causes one fault. Returns the time until the first ID after it (or until the
/// sessions had reconnected), and the window that followed.
fn cause(
    cluster: &mut Cluster,
    workload: &Workload,
    fault: Fault,
    random: &mut StdRng,
) -> Result<(Duration, Window)> {
    let back = fault
        .sets_the_clock_back()
        .then(|| step_back(cluster.clock().offset(), random));
    let step = |cluster: &Cluster| match back {
        Some(offset) => cluster.clock().set_offset(offset),
        None => Ok(()),
    };
    workload.begin_window();
    let begun = Instant::now();
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
        workload.until(|workload| workload.window().connections >= MODES.len())?;
    }
    workload.begin_window();
    workload.wait_for(1)?;
    let outage = begun.elapsed();
    workload.wait_for(ENOUGH)?;
    // The pause until the next fault is often short.
    let pause: f64 = random.random();
    std::thread::sleep(Duration::from_secs_f64(pause * pause * 2.0));
    Ok((outage, workload.begin_window()))
}
