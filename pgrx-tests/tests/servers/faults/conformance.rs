//! A real server and the simulator play the same histories, step by step, and end each step
//! with the same: the same IDs, the same answers to readers, the same errors
//! (`crates/snowflake-sim/src/played.rs`). What both end with is judged by the simulator's
//! checks. Time stands still between two steps, so nothing is left to chance but the numbers of
//! processes, which the simulator gets.
//!
//! The simulator proves the protocol; this shows that a server's sequence, files, log, shared
//! memory, settings and processes are what the simulator takes them for.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use snowflake_id::protocol::ServerSettings;
use snowflake_sim::played::{self, Outcome, Play, Step, Who};
use snowflake_sim::protection::Protection;
use snowflake_sim::session::CallError;
use snowflake_tests::ids::IdSet;

use crate::support::*;

const DATABASES: [&str; 2] = ["first", "second"];

/// A server that plays histories, one after the other.
struct Real {
    /// The server; before it those whose standbys were promoted, of which the first has the
    /// clock.
    clusters: Vec<Cluster>,
    sessions: BTreeMap<(usize, usize), (Client, u32)>,
}

impl Real {
    fn cluster(&mut self) -> &mut Cluster {
        self.clusters.last_mut().expect("a server")
    }

    /// A new server at the beginning of a history.
    fn start(seed: u64) -> Result<(Self, played::Beginning)> {
        let mut cluster = Cluster::builder()
            .can_be_copied()
            .movable_clock()
            .conf("snowflake.max_wait", 0)
            // One that waits all the same is not to wait for ever: time stands still.
            .conf("statement_timeout", "20s")
            // A transaction of its own that ends between a snapshot and the answer keeps that back.
            .conf("autovacuum", "off")
            .prepare()?;
        let boot = cluster.clock().stop()?;
        let beginning = played::beginning(
            seed,
            cluster.clock().true_us(),
            boot,
            tier::is_without_preload(),
        );
        cluster.set_conf("snowflake.layout", beginning.layout)?;
        cluster.set_conf("snowflake.node_id", beginning.node)?;
        set(&cluster, beginning.settings)?;
        cluster.start()?;
        for database in DATABASES {
            cluster.connect_to_new_database(database)?;
        }
        // As the simulator begins: with shared memory in which nothing has happened.
        cluster.restart()?;
        let real = Self {
            clusters: vec![cluster],
            sessions: BTreeMap::new(),
        };
        Ok((real, beginning))
    }

    fn clock(&self) -> &snowflake_tests::clock::Clock {
        self.clusters[0].clock()
    }

    /// The session's client, and the number of its process.
    fn session(&mut self, who: Who) -> Result<&mut (Client, u32)> {
        let key = (who.database, who.number);
        if !self.sessions.contains_key(&key) {
            let mut client = self.cluster().connect_to(DATABASES[who.database])?;
            let process = ids::backend_pid(&mut client)?;
            self.sessions.insert(key, (client, u32::try_from(process)?));
        }
        self.sessions.get_mut(&key).context("a session")
    }

    /// Takes a step; returns what it ended with, and the number of the session's process.
    fn step(&mut self, step: Step, play: &Play) -> Result<(Outcome, u32)> {
        let mut process = 0;
        let outcome = match step {
            Step::Draw(who, count) => {
                let query = format!("SELECT snowflake_nextval() FROM generate_series(1, {count})");
                let session = self.session(who)?;
                process = session.1;
                drawn(ids::fetch(&mut session.0, &query))?
            }
            Step::DrawRun(who, count) => {
                let query = format!("SELECT * FROM snowflake_nextvals({count})");
                let session = self.session(who)?;
                process = session.1;
                drawn(ids::fetch(&mut session.0, &query))?
            }
            Step::Ask(who) | Step::AskAndReserve(who) => {
                let function = match step {
                    Step::Ask(_) => "snowflake_resolved_id",
                    _ => "snowflake_advance_resolved_id",
                };
                let (client, number) = self.session(who)?;
                process = *number;
                // A statement may be answered what another one was at the same moment: so a
                // transaction ends in between.
                client.batch_execute("SELECT pg_current_xact_id()")?;
                let row = client.query_one(&format!("SELECT {function}()"), &[]);
                Outcome::Answer(row?.get(0))
            }
            Step::Reconnect(who) => {
                self.sessions.remove(&(who.database, who.number));
                Outcome::Done
            }
            Step::Pass(micros) => {
                self.clock()
                    .jump(Duration::from_micros(u64::try_from(micros)?))?;
                Outcome::Done
            }
            Step::SetClock(ahead) => {
                let distance = Duration::from_micros(ahead.unsigned_abs());
                self.clock().set_offset(match ahead {
                    ..0 => Offset::back(distance),
                    _ => Offset::forward(distance),
                })?;
                Outcome::Done
            }
            Step::SetMark(database, ahead) => {
                if let Some(bound) = play.bound(ahead) {
                    let mut client = self.cluster().connect_to(DATABASES[database])?;
                    let set = format!("SELECT setval('snowflake_internal.mark', {bound})");
                    client.number(&set)?;
                }
                Outcome::Done
            }
            Step::Settings(settings) => {
                set(self.cluster(), settings)?;
                self.cluster().reload()?;
                Outcome::Done
            }
            Step::AcceptClock(who) => {
                let wall = play.wall();
                let accept = format!(
                    "SELECT snowflake_accept_clock(to_timestamp({wall}::numeric / 1000000))"
                );
                let session = self.session(who)?;
                process = session.1;
                let done = session.0.batch_execute(&accept);
                drawn(done.map(|()| Vec::new()).map_err(Into::into)).map(
                    |outcome| match outcome {
                        Outcome::Ids(_) => Outcome::Done,
                        failed => failed,
                    },
                )?
            }
            Step::KillBackend(who) => {
                let (_, process) = *self.session(who)?;
                self.cluster().kill9_backend(i32::try_from(process)?)?;
                self.sessions.clear();
                Outcome::Done
            }
            Step::Kill => {
                self.sessions.clear();
                self.cluster().kill9_all()?;
                self.cluster().start()?;
                Outcome::Done
            }
            Step::Restart => {
                self.sessions.clear();
                self.cluster().restart()?;
                Outcome::Done
            }
            Step::OtherNode(node) => {
                self.sessions.clear();
                self.cluster().set_conf("snowflake.node_id", node)?;
                self.cluster().restart()?;
                Outcome::Done
            }
            Step::Promote => {
                self.sessions.clear();
                let mut standby = Cluster::builder().prepare_standby_of(self.cluster())?;
                self.clock().drive(&mut standby);
                standby.start()?;
                standby.catch_up_with(self.cluster())?;
                self.cluster().kill9_all()?;
                standby.promote()?;
                self.clusters.push(standby);
                Outcome::Done
            }
        };
        Ok((outcome, process))
    }
}

fn set(cluster: &Cluster, settings: ServerSettings) -> Result<()> {
    let millis = |micros: u64| format!("{}ms", micros / 1_000);
    cluster.set_conf("snowflake.lease", millis(settings.lease))?;
    cluster.set_conf("snowflake.max_borrow", millis(settings.max_borrow))?;
    let step = settings.max_clock_step.map_or(-1, |micros| micros / 1_000);
    cluster.set_conf("snowflake.max_clock_step", step)
}

/// What a statement that draws, or one that accepts the clock, ended with.
fn drawn(ids: Result<Vec<i64>>) -> Result<Outcome> {
    const ERRORS: [(&str, CallError); 4] = [
        ("no snowflake ID will be available", CallError::WaitTooLong),
        ("the clock has jumped forward", CallError::Ahead),
        (
            "the clock is behind",
            CallError::Behind(snowflake_id::WallTime::MIN),
        ),
        (
            r#"sequence "snowflake_internal.mark" was set ahead"#,
            CallError::Behind(snowflake_id::WallTime::MIN),
        ),
    ];
    let error = match ids {
        Ok(ids) => return Ok(Outcome::Ids(ids)),
        Err(error) => error,
    };
    let Some(refusal) = ServerError::in_chain(&error) else {
        return Err(error);
    };
    let known = ERRORS
        .into_iter()
        .find(|(message, _)| refusal.message.starts_with(message));
    match known {
        Some((_, known)) => Ok(Outcome::Failed(known)),
        None => bail!("an error that the simulator does not know: {refusal}"),
    }
}

/// Whether both ended with the same. Until when a clock is behind is in the DETAIL only.
fn is_same(real: &Outcome, simulated: &Outcome) -> bool {
    match (real, simulated) {
        (Outcome::Failed(CallError::Behind(_)), Outcome::Failed(CallError::Behind(_))) => true,
        _ => real == simulated,
    }
}

/// A short form of what a step ended with.
fn short(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ids(ids) if ids.len() > 4 => {
            format!("{} IDs, {} to {}", ids.len(), ids[0], ids[ids.len() - 1])
        }
        other => format!("{other:?}"),
    }
}

/// What was played.
#[derive(Default)]
struct Played {
    steps: BTreeMap<&'static str, usize>,
    failed: usize,
    ids: usize,
}

impl Played {
    fn count(&mut self, step: Step) {
        let kind = match step {
            Step::Draw(..) => "calls",
            Step::DrawRun(..) => "runs",
            Step::Ask(_) => "readers",
            Step::AskAndReserve(_) => "readers that reserve",
            Step::Reconnect(_) => "new sessions",
            Step::Pass(_) => "pauses",
            Step::SetClock(_) => "clock steps",
            Step::SetMark(..) => "setval",
            Step::Settings(_) => "other settings",
            Step::KillBackend(_) => "kill -9 of a backend",
            Step::Kill => "kill -9 of all",
            Step::Restart => "restarts",
            Step::OtherNode(_) => "other node numbers",
            Step::AcceptClock(_) => "clocks accepted",
            Step::Promote => "promotions",
        };
        *self.steps.entry(kind).or_default() += 1;
    }

    fn report(&self, histories: usize) -> String {
        let mut text = format!(
            "conformance: {} histories, {} steps, {} of them refused, {} IDs, no difference:",
            grouped(histories),
            grouped(self.steps.values().sum::<usize>()),
            grouped(self.failed),
            grouped(self.ids)
        );
        for (kind, count) in &self.steps {
            let _ = write!(text, " {kind} {count}");
        }
        text
    }
}

/// A simulated server, which may lack a protection.
struct Simulated {
    lacks: Option<Protection>,
    play: Play,
    /// The first step with which it differs from the real server.
    difference: Option<String>,
}

impl Simulated {
    fn step(&mut self, step: Step, process: u32, really: &Outcome) -> Outcome {
        let outcome = self.play.step(step, process);
        if !is_same(really, &outcome) {
            self.difference = Some(format!("a real server: {}", short(really)));
        } else if let Some(violation) = self.play.violation() {
            self.difference = Some(violation);
        }
        outcome
    }
}

/// Plays the history of a seed on a server and on simulated ones that lack a protection, or
/// none. Returns what differs: the protection and the history up to there.
fn play(
    seed: u64,
    promotes: bool,
    lack: &[Option<Protection>],
    all: &mut Played,
) -> Result<Vec<(Option<Protection>, String)>> {
    let (mut real, beginning) = Real::start(seed)?;
    let mut simulated: Vec<_> = lack
        .iter()
        .map(|&lacks| Simulated {
            lacks,
            play: Play::new(&beginning, lacks),
            difference: None,
        })
        .collect();
    let mut differences = Vec::new();
    let mut ids = IdSet::default();
    let mut story = format!("seed {seed}, {beginning:?}\n");
    for step in played::steps(seed, STEPS, promotes) {
        let Some(first) = simulated.first() else {
            break;
        };
        let (really, process) = real
            .step(step, &first.play)
            .with_context(|| format!("{step:?} after\n{story}"))?;
        let mut last = String::new();
        simulated.retain_mut(|one| {
            let outcome = one.step(step, process, &really);
            last = format!("{step:?} in process {process}: {}", short(&outcome));
            let Some(difference) = one.difference.take() else {
                return true;
            };
            differences.push((one.lacks, format!("{story}{last}\n{difference}")));
            false
        });
        let _ = writeln!(story, "{last}");
        all.count(step);
        match really {
            Outcome::Ids(new) => {
                ids.add(&new);
                all.ids += new.len();
            }
            Outcome::Failed(_) => all.failed += 1,
            Outcome::Done | Outcome::Answer(_) => {}
        }
    }
    ids.tally().assert_unique();
    Ok(differences)
}

/// How many steps a history has.
const STEPS: usize = 60;

#[test]
fn a_server_and_the_simulator_play_the_same_histories() -> Result<()> {
    let histories = tier::size(4, 60);
    let mut all = Played::default();
    for seed in 0..histories as u64 {
        let differences = play(seed, tier::is_full(), &[None], &mut all)?;
        if let Some((_, difference)) = differences.first() {
            bail!("{difference}");
        }
    }
    println!("{}", all.report(histories));
    Ok(())
}

/// What a server has and the simulator lacks is a difference.
#[test]
fn histories_that_both_play_are_able_to_fail() -> Result<()> {
    const MOST: u64 = 200;
    let mut lack = vec![
        Some(Protection::Mark),
        Some(Protection::Floor),
        Some(Protection::FloorWritten),
        Some(Protection::StartNumber),
        Some(Protection::SlewedClock),
        Some(Protection::ClockAhead),
        Some(Protection::Promise),
        Some(Protection::Slot),
    ];
    let mut all = Played::default();
    for seed in 0..MOST {
        for (found, _) in play(seed, false, &lack, &mut all)? {
            lack.retain(|&it| it != found);
        }
        if lack.is_empty() {
            return Ok(());
        }
    }
    bail!("not missed in {MOST} histories: {lack:?}");
}
