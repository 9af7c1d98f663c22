//! A random mix of faults against eight sessions that never stop asking for
//! IDs. Every ID that a client received goes into one set.
//!
//! The clock stays within ten hours of the true time, so that no step is more
//! than `snowflake.max_clock_step` and none may be refused.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use crate::clock::Offset;
use crate::cluster::{Cluster, ClusterBuilder};
use crate::demand::{Demand, FOUR_SLOTS, Habit, ROWS, Window};
use crate::ids::{Tally, grouped};
use crate::processes;
use crate::server::Stop;
use crate::watchdog;

const DATABASES: [&str; 2] = ["first", "second"];

/// In both databases; half of them as an application does it.
const HABITS: [Habit; 8] = [
    Habit::Calls(300),
    Habit::Calls(300),
    Habit::Calls(300),
    Habit::Runs(300),
    Habit::Commit(50),
    Habit::Commit(50),
    Habit::RollBack(50),
    Habit::RollBack(50),
];

/// How many IDs have to arrive after a fault for it to count.
const ENOUGH: usize = 1_000;

/// How far the clock may be off.
const FURTHEST: Duration = Duration::from_secs(10 * 3_600);

/// What is done to the server, in the ways a bystander can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The clock is set while the server runs.
    ClockBack,
    /// The same, forward.
    ClockForward,
    /// SIGKILL of one backend: the server initialises its memory anew.
    KillBackend,
    /// The same, with the clock set back meanwhile.
    KillBackendClockBack,
    /// SIGKILL of the postmaster and all its processes.
    KillAll,
    /// The same, with the clock set back meanwhile.
    KillAllClockBack,
    /// `pg_ctl stop -m fast`.
    StopFast,
    /// The same, with the clock set back meanwhile.
    StopFastClockBack,
    /// `pg_ctl stop -m immediate`.
    StopImmediate,
    /// The same, with the clock set back meanwhile.
    StopImmediateClockBack,
}

impl Fault {
    /// All there are.
    pub const ALL: [Self; 10] = [
        Self::ClockBack,
        Self::ClockForward,
        Self::KillBackend,
        Self::KillBackendClockBack,
        Self::KillAll,
        Self::KillAllClockBack,
        Self::StopFast,
        Self::StopFastClockBack,
        Self::StopImmediate,
        Self::StopImmediateClockBack,
    ];

    fn sets_the_clock_back(self) -> bool {
        matches!(
            self,
            Self::ClockBack
                | Self::KillBackendClockBack
                | Self::KillAllClockBack
                | Self::StopFastClockBack
                | Self::StopImmediateClockBack
        )
    }

    fn ends_sessions(self) -> bool {
        !matches!(self, Self::ClockBack | Self::ClockForward)
    }

    fn name(self) -> &'static str {
        match self {
            Self::ClockBack => "clock back",
            Self::ClockForward => "clock forward",
            Self::KillBackend => "kill -9 of a backend",
            Self::KillBackendClockBack => "kill -9 of a backend, clock back",
            Self::KillAll => "kill -9 of all processes",
            Self::KillAllClockBack => "kill -9 of all processes, clock back",
            Self::StopFast => "stop -m fast",
            Self::StopFastClockBack => "stop -m fast, clock back",
            Self::StopImmediate => "stop -m immediate",
            Self::StopImmediateClockBack => "stop -m immediate, clock back",
        }
    }
}

/// What one kind of fault showed.
#[derive(Debug, Clone, Default)]
pub struct Count {
    /// How often it was caused, with enough IDs after it.
    pub faults: usize,
    /// IDs that arrived between service resuming and the next fault.
    pub ids_after: usize,
    /// The longest time until service resumed.
    pub longest_outage: Duration,
}

/// What a soak showed.
#[derive(Debug, Clone)]
pub struct Report {
    /// What the faults were chosen by.
    pub seed: u64,
    /// How long it took.
    pub took: Duration,
    /// By kind of fault.
    pub counts: BTreeMap<Fault, Count>,
    /// Over all IDs.
    pub tally: Tally,
    /// How often an ID of a connection was not above the one before it.
    pub decreases: usize,
    /// Statements that were refused, which none should be.
    pub refusals: usize,
    /// The longest statement.
    pub longest: Duration,
}

impl Report {
    /// How many faults there were.
    pub fn faults(&self) -> usize {
        self.counts.values().map(|count| count.faults).sum()
    }

    /// Fails where anything is wrong with the IDs.
    pub fn verdict(&self) -> Result<()> {
        ensure!(
            self.tally.duplicates == 0,
            "an ID came twice: {}",
            self.tally
        );
        ensure!(self.decreases == 0, "IDs of a session went down");
        ensure!(self.refusals == 0, "statements were refused");
        ensure!(self.faults() > 0, "there was no fault");
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (fault, count) in &self.counts {
            writeln!(
                formatter,
                "soak: {:>4} x {}: {} IDs after it, service back within {} ms",
                count.faults,
                fault.name(),
                grouped(count.ids_after),
                count.longest_outage.as_millis()
            )?;
        }
        write!(
            formatter,
            "soak: {} faults in {} s, seed {}: {}, {} out of order, {} refused, longest statement {} ms",
            self.faults(),
            self.took.as_secs(),
            self.seed,
            self.tally,
            self.decreases,
            self.refusals,
            self.longest.as_millis()
        )
    }
}

/// Runs a soak on a server of its own.
///
/// # Errors
/// What keeps it from being run. A duplicate is in the report.
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
        .time_limit(length + watchdog::USUAL_LIMIT)
        .start()?;
    for database in DATABASES {
        cluster
            .connect_to_new_database(database)?
            .batch_execute(ROWS)?;
    }
    let mut random = StdRng::seed_from_u64(seed);
    let mut counts: BTreeMap<Fault, Count> = BTreeMap::new();
    let mut refusals = 0;
    let begun = Instant::now();
    let demand = Demand::start(&cluster, &DATABASES, &HABITS, &FOUR_SLOTS)?;
    while begun.elapsed() < length {
        let fault = *Fault::ALL.choose(&mut random).context("no faults")?;
        let (outage, window) = cause(&mut cluster, &demand, fault, &mut random)
            .with_context(|| format!("{} with seed {seed}", fault.name()))?;
        refusals += window.refusals();
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
            // The rows have served: they would fill the disk in the end.
            for database in DATABASES {
                cluster
                    .connect_to(database)?
                    .batch_execute("TRUNCATE rows")?;
            }
        }
    }
    let harvest = demand.end()?;
    Ok(Report {
        seed,
        took: begun.elapsed(),
        counts,
        decreases: harvest.decreases,
        refusals,
        longest: harvest.longest,
        tally: harvest.into_tally(),
    })
}

/// One fault, and what came after it. Returns how long nobody got an ID (or
/// the sessions were gone) and the window that followed.
fn cause(
    cluster: &mut Cluster,
    demand: &Demand,
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
    demand.begin_window();
    let begun = Instant::now();
    match fault {
        Fault::ClockBack => step(cluster)?,
        Fault::ClockForward => {
            let offset = step_forward(cluster.clock().offset(), random);
            cluster.clock().set_offset(offset)?;
        }
        Fault::KillBackend | Fault::KillBackendClockBack => {
            // One that has just connected may not have said its number yet.
            demand.until(|demand| demand.pids().iter().all(|&pid| pid != 0))?;
            let before = demand.pids();
            let victim = *before.choose(random).context("no session")?;
            ensure!(victim != 0, "a session has no connection");
            processes::send(victim, Signal::SIGKILL)?;
            step(cluster)?;
            demand.until(|demand| {
                let now = demand.pids();
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
        demand.until(|demand| demand.window().connections >= HABITS.len())?;
    }
    demand.begin_window();
    demand.wait_for(1)?;
    let outage = begun.elapsed();
    demand.wait_for(ENOUGH)?;
    // Until the next fault; often soon.
    let pause: f64 = random.random();
    std::thread::sleep(Duration::from_secs_f64(pause * pause * 2.0));
    Ok((outage, demand.begin_window()))
}

/// Half of the time by as little as the server has been running for, so that
/// the clock shows the very times again at which IDs were made.
fn step_back(now: Offset, random: &mut StdRng) -> Offset {
    let by = if random.random_bool(0.5) {
        random.random_range(1_000..5_000_000)
    } else {
        log_uniform(random)
    };
    let furthest = Offset::back(FURTHEST).micros();
    offset((now.micros() - by).max(furthest))
}

/// Half of the time to where the clock is right.
fn step_forward(now: Offset, random: &mut StdRng) -> Offset {
    if now < Offset::NONE && random.random_bool(0.5) {
        return Offset::NONE;
    }
    let furthest = Offset::forward(FURTHEST).micros();
    offset((now.micros() + log_uniform(random)).min(furthest))
}

/// A millisecond to five hours, each order of magnitude as often, in
/// microseconds.
fn log_uniform(random: &mut StdRng) -> i64 {
    let exponent: f64 = random.random_range(3.0..10.25);
    10_f64.powf(exponent) as i64
}

fn offset(micros: i64) -> Offset {
    let length = Duration::from_micros(micros.unsigned_abs());
    if micros < 0 {
        Offset::back(length)
    } else {
        Offset::forward(length)
    }
}
