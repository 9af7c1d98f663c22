//! The faults, one after another, in rounds in which each occurs once.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};

use super::shared::{self, Shared};
use super::{Size, Spec, TIMEOUT};
use crate::clock::Offset;
use crate::cluster::Cluster;
use crate::ids::{grouped, now_us};
use crate::processes;
use crate::server::Stop;
use crate::wait;

/// How far the clock may be ahead. No step may exceed
/// `snowflake.max_clock_step`, also not between two processes.
const FURTHEST: Duration = Duration::from_secs(10 * 3_600);

/// How often the sessions are looked at.
const INTERVAL: Duration = Duration::from_millis(20);

/// What is done to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A writer's statement is cancelled.
    Cancel,
    /// A writer's session is terminated.
    Terminate,
    /// SIGKILL of a writer's backend: the server reinitializes its shared memory.
    KillBackend,
    /// SIGKILL of the postmaster and all its processes.
    KillAll,
    /// The same. The clock is set back by up to an hour before the restart, and
    /// again to the time before when the server runs.
    KillAllClockBack,
    /// `pg_ctl stop -m fast`.
    StopFast,
    /// The same, with the clock set back as above.
    StopFastClockBack,
    /// `pg_ctl stop -m immediate`.
    StopImmediate,
    /// The clock is set back by up to a second.
    ClockBack,
    /// The clock is set forward by up to a second.
    ClockForward,
    /// The clock is set forward by up to an hour.
    ClockFarForward,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 11] = [
        Self::Cancel,
        Self::Terminate,
        Self::KillBackend,
        Self::KillAll,
        Self::KillAllClockBack,
        Self::StopFast,
        Self::StopFastClockBack,
        Self::StopImmediate,
        Self::ClockBack,
        Self::ClockForward,
        Self::ClockFarForward,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancel => "cancelled statement",
            Self::Terminate => "terminated session",
            Self::KillBackend => "kill -9 of a backend",
            Self::KillAll => "kill -9 of all processes",
            Self::KillAllClockBack => "kill -9 of all processes, clock back for a while",
            Self::StopFast => "stop -m fast",
            Self::StopFastClockBack => "stop -m fast, clock back for a while",
            Self::StopImmediate => "stop -m immediate",
            Self::ClockBack => "clock back",
            Self::ClockForward => "clock forward",
            Self::ClockFarForward => "clock far forward",
        }
    }
}

/// How often each fault occurred.
pub(super) fn counted(faults: &[(i64, Fault)]) -> BTreeMap<Fault, usize> {
    let mut counts = BTreeMap::new();
    for (_, fault) in faults {
        *counts.entry(*fault).or_default() += 1;
    }
    counts
}

/// What causes the faults.
pub(super) struct Faults<'a> {
    size: &'a Size,
    shared: &'a Shared,
    readers: &'a [Spec],
    a_session_ended: &'a dyn Fn() -> bool,
    random: StdRng,
    begun: Instant,
    caused: Vec<(i64, Fault)>,
}

impl<'a> Faults<'a> {
    pub(super) fn new(
        size: &'a Size,
        shared: &'a Shared,
        readers: &'a [Spec],
        a_session_ended: &'a dyn Fn() -> bool,
    ) -> Self {
        Self {
            size,
            shared,
            readers,
            a_session_ended,
            random: StdRng::seed_from_u64(size.seed),
            begun: Instant::now(),
            caused: Vec::new(),
        }
    }

    /// Causes faults, at least one, until the run is long enough and has enough rows. Returns
    /// them with their times.
    pub(super) fn run(
        mut self,
        cluster: &mut Cluster,
        progress: &mut impl FnMut(&str),
    ) -> Result<Vec<(i64, Fault)>> {
        let mut round: Vec<Fault> = Vec::new();
        self.at_work(cluster)?;
        // However long the sessions took to start.
        self.begun = Instant::now();
        while !self.is_over() {
            let Some(pause) = self.size.pause else {
                self.check_sessions()?;
                sleep(INTERVAL);
                continue;
            };
            self.pause(pause)?;
            if round.is_empty() {
                round = Fault::ALL.to_vec();
                round.shuffle(&mut self.random);
            }
            let Some(fault) = round.pop().filter(|_| !self.is_over()) else {
                break;
            };
            self.caused.push((now_us(), fault));
            self.cause(cluster, fault)
                .and_then(|()| self.at_work(cluster))
                .with_context(|| format!("{} with seed {}", fault.name(), self.size.seed))?;
            progress(&format!(
                "{:>4} s: {}; clock now {} off; {} rows committed",
                self.begun.elapsed().as_secs(),
                fault.name(),
                cluster.clock().offset(),
                grouped(self.shared.committed())
            ));
        }
        Ok(self.caused)
    }

    fn is_over(&self) -> bool {
        let had_a_fault = self.size.pause.is_none() || !self.caused.is_empty();
        had_a_fault
            && self.begun.elapsed() >= self.size.length
            && self.shared.committed() >= self.size.rows
    }

    fn check_sessions(&self) -> Result<()> {
        ensure!(!(self.a_session_ended)(), "a session has failed");
        Ok(())
    }

    /// Between half of the usual pause and one and a half of it.
    fn pause(&mut self, usual: Duration) -> Result<()> {
        let end = Instant::now() + usual.mul_f64(self.random.random_range(0.5..1.5));
        while Instant::now() < end && !self.is_over() {
            self.check_sessions()?;
            sleep(INTERVAL);
        }
        Ok(())
    }

    /// Waits until each writer commits and each reader sees a row. Then updates the
    /// statistics of the table.
    fn at_work(&self, cluster: &Cluster) -> Result<()> {
        let counts = || (self.shared.commits(), self.shared.seen());
        let (commits, seen) = counts();
        let all_grew =
            |before: &[u64], now: &[u64]| before.iter().zip(now).all(|(before, now)| now > before);
        let resumed = wait::until("each session to resume", TIMEOUT, || {
            self.check_sessions()?;
            let now = counts();
            Ok(all_grew(&commits, &now.0) && all_grew(&seen, &now.1))
        });
        // As autovacuum does after a minute. Without statistics a read may sort all
        // rows up to the bound, and the readers would stay behind.
        let analyzed = resumed.and_then(|()| {
            let mut client = cluster.connect()?;
            Ok(client.batch_execute("ANALYZE events")?)
        });
        analyzed.map_err(|error| {
            let state = match cluster.connect() {
                Ok(mut client) => shared::describe(&mut client, self.shared, self.readers),
                Err(error) => format!("{error:#}"),
            };
            error.context(state)
        })
    }

    /// Waits until some writer commits.
    fn some_commit(&self) -> Result<()> {
        let before = self.shared.commits();
        wait::until("a commit", TIMEOUT, || {
            self.check_sessions()?;
            Ok(self.shared.commits() != before)
        })
    }

    fn cause(&mut self, cluster: &mut Cluster, fault: Fault) -> Result<()> {
        match fault {
            Fault::Cancel => self.signal_some("pg_cancel_backend", cluster)?,
            Fault::Terminate => self.signal_some("pg_terminate_backend", cluster)?,
            Fault::KillBackend => {
                let mut victim = self.victim()?;
                while !processes::works_in(victim, cluster.data()) {
                    victim = self.victim()?;
                }
                processes::send(victim, Signal::SIGKILL)?;
            }
            Fault::KillAll => {
                cluster.kill9_all()?;
                cluster.start()?;
            }
            Fault::StopFast => cluster.restart()?,
            Fault::StopImmediate => {
                cluster.stop(Stop::Immediate)?;
                cluster.start()?;
            }
            Fault::KillAllClockBack => {
                cluster.kill9_all()?;
                self.start_in_the_past(cluster)?;
            }
            Fault::StopFastClockBack => {
                cluster.stop(Stop::Fast)?;
                self.start_in_the_past(cluster)?;
            }
            Fault::ClockBack => {
                let by = self.length(1e3, 1e6);
                cluster.clock().step(Offset::back(by))?;
            }
            Fault::ClockForward => {
                let by = self.length(1e3, 1e6);
                cluster.clock().step(Offset::forward(by))?;
            }
            Fault::ClockFarForward => {
                let by = self.length(1e6, 3.6e9);
                let furthest = Offset::forward(FURTHEST - by);
                if cluster.clock().offset() < furthest {
                    cluster.clock().step(Offset::forward(by))?;
                } else {
                    cluster.clock().set_offset(Offset::NONE)?;
                }
            }
        }
        Ok(())
    }

    /// A length between two numbers of microseconds. Every order of magnitude is
    /// equally likely.
    fn length(&mut self, least: f64, most: f64) -> Duration {
        let exponent = self.random.random_range(least.log10()..most.log10());
        Duration::from_secs_f64(10_f64.powf(exponent) / 1e6)
    }

    /// Starts the server with an earlier clock, and sets the clock again when
    /// there was a commit. With that clock, `pg_sleep` must not see a step back.
    fn start_in_the_past(&mut self, cluster: &mut Cluster) -> Result<()> {
        let by = self.length(1e6, 3.6e9);
        cluster.clock().step(Offset::back(by))?;
        cluster.start()?;
        self.some_commit()?;
        self.pause(Duration::from_secs(1))?;
        cluster.clock().step(Offset::forward(by))
    }

    /// The process of a writer.
    fn victim(&mut self) -> Result<i32> {
        wait::until("a writer with a connection", TIMEOUT, || {
            self.check_sessions()?;
            Ok(!self.shared.pids().is_empty())
        })?;
        let pids = self.shared.pids();
        Ok(*pids.choose(&mut self.random).context("no writer")?)
    }

    /// Signals several writers, one of which is likely to be in a transaction.
    fn signal_some(&mut self, function: &str, cluster: &Cluster) -> Result<()> {
        let mut client = cluster.connect()?;
        for _ in 0..5 {
            let victim = self.victim()?;
            client.query(&format!("SELECT {function}($1)"), &[&victim])?;
        }
        Ok(())
    }
}
