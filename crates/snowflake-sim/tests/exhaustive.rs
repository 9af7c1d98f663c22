//! Every history of small instances, by the model checker `stateright`: what is random elsewhere is
//! complete here. The instances run the protocol itself.
//!
//! Histories from seeds see more sessions and more faults; these leave none out.

use snowflake_sim::instance::{Action, Instance, Job, State};
use snowflake_sim::protection::Protection;
use stateright::{Checker, Model, Property};

/// An instance for the checker, which asks for the next states of each state.
struct Explored(Instance);

impl Model for Explored {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.0.beginning()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        actions.extend(&state.next);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.0.after(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nothing is violated", |_, state: &State| {
                state.violation.is_none()
            }),
            Property::sometimes("all is done", |_, state: &State| state.is_done()),
        ]
    }
}

/// How many states there are, and a history with a violation.
fn explore(instance: &Instance) -> (usize, Option<State>) {
    let checker = Explored(instance.clone())
        .checker()
        .threads(2)
        .spawn_bfs()
        .join();
    let failed = checker.discovery("nothing is violated");
    (
        checker.unique_state_count(),
        failed.map(|path| path.last_state().clone()),
    )
}

/// Nothing is violated in any history, and each of these protections that is taken away is missed in
/// some history.
fn holds(name: &str, instance: &Instance, protections: &[Protection]) {
    for &removed in protections {
        misses(name, instance, removed);
    }
    let (states, failed) = explore(instance);
    if let Some(state) = failed {
        let story = instance.story(&state.history).join("\n");
        panic!("{name}: {:?}\n{story}", state.violation);
    }
    println!("{name}: {states} states, all of them, nothing violated");
}

/// Something is violated in some history without this protection.
fn misses(name: &str, instance: &Instance, removed: Protection) {
    let (states, failed) = explore(&Instance {
        removed: Some(removed),
        ..instance.clone()
    });
    let state = failed.unwrap_or_else(|| panic!("{name}: {removed:?} is not missed"));
    println!(
        "{name}, without {removed:?}: in {states} states, {} steps to: {}",
        state.history.len(),
        state.violation.unwrap_or_default()
    );
}

const fn draw(database: usize) -> Job {
    Job::Draw {
        database,
        transactions: 1,
    }
}

const fn read(questions: u32) -> Job {
    Job::Read {
        database: 0,
        questions,
    }
}

#[test]
fn two_sessions_share_slots_and_a_mark() {
    let instance = Instance {
        jobs: vec![draw(0), draw(0)],
        ..Instance::default()
    };
    let protections = [Protection::Slot, Protection::EntryLock];
    holds("two sessions", &instance, &protections);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimization")]
fn a_mark_and_an_answer_outlive_a_crash() {
    let instance = Instance {
        jobs: vec![draw(0), read(2)],
        crashes: 1,
        ticks_back: 10_000,
        ticks: 1,
        ..Instance::default()
    };
    let protections = [
        Protection::Flush,
        Protection::StartNumber,
        Protection::Published,
        Protection::UntilVisible,
        Protection::AnswerBelowMark,
        Protection::AnswerDurable,
    ];
    holds("a session, a reader and a crash", &instance, &protections);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimization")]
fn two_sessions_draw_beside_a_reader() {
    let instance = Instance {
        jobs: vec![draw(0), draw(0), read(1)],
        ..Instance::default()
    };
    holds("two sessions and a reader", &instance, &[]);
}

/// With a tick, all histories would take hours.
#[test]
#[ignore = "minutes: scripts/simulate --exhaustive"]
fn a_session_draws_below_an_answer_without_the_promise() {
    let instance = Instance {
        jobs: vec![draw(0), draw(0), read(1)],
        ticks: 1,
        ..Instance::default()
    };
    misses(
        "two sessions, a reader and a tick",
        &instance,
        Protection::Promise,
    );
}

#[test]
#[ignore = "ten minutes: scripts/simulate --exhaustive"]
fn databases_of_one_server_share_a_floor() {
    let instance = Instance {
        jobs: vec![draw(0), draw(1)],
        crashes: 1,
        ..Instance::default()
    };
    let protections = [Protection::Floor, Protection::FloorWritten];
    holds("two databases and a crash", &instance, &protections);
}
