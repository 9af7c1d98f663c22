//! One history, from its beginning to its end.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use clap::ValueEnum as _;

use crate::checks;
use crate::choices::Choices;
use crate::fault::Fault;
use crate::fleet::Fleet;
use crate::protection::Protection;
use crate::work;
use crate::world::World;

/// How a history has ended.
#[derive(Debug)]
pub struct Outcome {
    /// What must not have been.
    pub violation: Option<String>,
    /// Its choices.
    pub choices: Vec<u32>,
    /// How many IDs were issued.
    pub ids: u64,
    /// How many answers readers got.
    pub answers: u64,
    /// How often each kind of fault happened.
    pub faults: BTreeMap<Fault, u64>,
    /// What happened, if it was told.
    pub story: Vec<String>,
}

/// Runs a history to its end, or to the first violation.
pub fn run(choices: Choices, removed: Option<Protection>, told: bool) -> Outcome {
    let world = World::new(choices, removed, told);
    let mut fleet = Fleet::new(&world);
    go_on(&mut fleet);
    drop(fleet);
    Outcome {
        violation: world.violation(),
        ids: world.ids.get(),
        answers: world.answers.get(),
        faults: world.faults.take(),
        story: world.story(),
        choices: world.into_choices().unwrap_or_default(),
    }
}

fn go_on(fleet: &mut Fleet) {
    let world = Rc::clone(&fleet.world);
    let choices = &world.choices;
    let turns = 100 + choices.below(1_500);
    let fault_in = choices.of(&[100, 12, 40]);
    let most_steps = choices.of(&[100, 1, 5, 25]);
    let kinds = kinds(choices);
    for _ in 0..turns {
        if choices.one_in(fault_in) {
            let server = choices.below(fleet.servers.len() as u32) as usize;
            let fault = choices.of(&kinds);
            fleet.strike(server, fault);
        }
        fleet.turn(most_steps);
        if world.violation().is_some() {
            return;
        }
    }
    recover(fleet, most_steps);
}

/// All kinds of faults, or a few, which then meet each other often ("swarm testing").
fn kinds(choices: &Choices) -> Vec<Fault> {
    match choices.of(&[0, 2, 6]) {
        0 => Fault::value_variants().to_vec(),
        few => (0..few)
            .map(|_| choices.of(Fault::value_variants()))
            .collect(),
    }
}

/// When all faults have ended, IDs are issued again.
fn recover(fleet: &mut Fleet, most_steps: u32) {
    fleet.world.is_ending.set(true);
    for server in &fleet.servers {
        server.disk_is_full.set(false);
        server.floor_fails.set(false);
        server.marks_are_locked_until.set(0);
        server.stopped_until.set(0);
        let mut machine = server.machine.get();
        machine.frozen = None;
        machine.ahead = 0;
        server.follow_clock(&fleet.world, &mut server.lineage.borrow_mut());
        server.set_machine(machine);
    }
    for number in 0..fleet.servers.len() {
        let server = Rc::clone(&fleet.servers[number]);
        if server.memory.borrow().is_none() || server.follows.get().is_some() {
            continue;
        }
        // Those that are busy finish first.
        loop {
            for database in work::databases() {
                fleet.leave(number, database);
            }
            if !fleet.has_sessions(number) || fleet.world.violation().is_some() {
                break;
            }
            fleet.turn_of(number, most_steps);
        }
        for database in work::databases() {
            let recovered = Rc::new(Cell::new(0));
            fleet.disconnect_all(number);
            let done = Rc::clone(&recovered);
            fleet.spawn_admin_of(number, database, |session| {
                Box::pin(work::recover(session, done))
            });
            while fleet.has_sessions(number) && fleet.world.violation().is_none() {
                fleet.turn_of(number, most_steps);
            }
            checks::recovered(&fleet.world, &server, database, recovered.get() > 0);
        }
    }
}
