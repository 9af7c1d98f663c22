//! Decisions about the mark, each by a history of one server (`docs/design.md`, "The mark and the
//! floor"). Its sessions take turns step by step, so each is the same history each time.

use std::cell::{Cell, RefCell};
use std::num::NonZeroU32;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use snowflake_id::protocol::{MarkPage, ServerSettings};
use snowflake_id::{Identity, Layout, SnowflakeId};
use snowflake_sim::choices::Choices;
use snowflake_sim::lineage::Ranges;
use snowflake_sim::server::{ADMIN, Config, Record, Server};
use snowflake_sim::session::{CallError, Session};
use snowflake_sim::work;
use snowflake_sim::world::World;

const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000 * MILLISECOND;

struct Lab {
    world: Rc<World>,
    server: Rc<Server>,
}

type Task<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

impl Lab {
    /// A server that has just started.
    fn new(lease_ms: u64, max_clock_step: Option<i64>) -> Self {
        let world = World::new(Choices::given(Vec::new()), None, false);
        let config = Config {
            identity: Identity::new(Layout::DEFAULT, 1).expect("a small number"),
            settings: ServerSettings {
                lease: lease_ms * 1_000,
                max_borrow: 10_000,
                max_clock_step,
            },
            max_wait_ms: 0,
            at_first_use: false,
        };
        let server = Rc::new(Server::new('a', config, &world));
        server.start(&world, false, 2);
        Lab { world, server }
    }

    fn session(&self, number: usize) -> Session {
        let memory = self.server.memory.borrow().clone().expect("it runs");
        Session::new(&self.world, &self.server, &memory, 0, number)
    }

    /// Runs them beside each other; time passes when all of them sleep.
    fn run<T>(&self, tasks: Vec<Task<'_, T>>) -> Vec<T> {
        let mut ended: Vec<Option<T>> = tasks.iter().map(|_| None).collect();
        let mut tasks: Vec<_> = tasks.into_iter().map(|task| (0, task)).collect();
        while ended.iter().any(Option::is_none) {
            let mut soonest = i64::MAX;
            for (place, (wakes_at, task)) in ended.iter_mut().zip(&mut tasks) {
                if place.is_none() && *wakes_at <= self.world.now() {
                    self.world.begin_turn(0);
                    let mut context = Context::from_waker(Waker::noop());
                    if let Poll::Ready(output) = task.as_mut().poll(&mut context) {
                        *place = Some(output);
                    }
                    *wakes_at = self.world.end_turn();
                }
                if place.is_none() {
                    soonest = soonest.min(*wakes_at);
                }
            }
            let left = soonest - self.world.now();
            if (1..i64::MAX / 2).contains(&left) {
                self.world.pass(left);
            }
        }
        assert_eq!(self.world.violation(), None);
        ended.into_iter().flatten().collect()
    }

    fn draw(&self, session: &Session) -> Result<i64, CallError> {
        let mut drawn = self.run(vec![Box::pin(draw(session))]);
        drawn.remove(0)
    }

    /// How long the clock may go on until all that is reserved has passed.
    fn reserved(&self) -> i64 {
        let layout = Layout::DEFAULT;
        let bound = SnowflakeId::new(self.server.durable_bound(0)).expect("a mark");
        layout.time_of(layout.tick_of(bound)).unix_micros()
            - self.server.wall(&self.world).unix_micros()
    }

    /// An ID that is further ahead than a mark may raise slots.
    fn far_ahead(&self) -> i64 {
        let layout = Layout::DEFAULT;
        let ahead = self.server.wall(&self.world).plus_micros(1_000 * SECOND);
        let tick = layout.tick_at(ahead.into()).expect("a tick");
        layout.first_id_of(tick).get()
    }

    fn step_clock(&self, by: i64) {
        let mut machine = self.server.machine.get();
        machine.ahead += by;
        self.server.set_machine(machine);
    }
}

async fn draw(session: &Session) -> Result<i64, CallError> {
    let drawn = session.next(NonZeroU32::MIN).await;
    session.end_transaction();
    drawn.map(|(slot, run)| session.identity().id(slot, run.tick, run.first).get())
}

/// An ID each millisecond, for ten seconds; `issued` has their times.
async fn draws(lab: &Lab, session: &Session, issued: &RefCell<Vec<i64>>) {
    let until = lab.world.now() + 10 * SECOND;
    while lab.world.now() < until {
        if draw(session).await.is_ok() {
            issued.borrow_mut().push(lab.world.now());
        }
        session.sleep_micros(MILLISECOND).await.expect("no cancel");
    }
}

/// A restored mark that is further ahead than it may raise slots makes all sessions read the mark. The
/// restore waits for a process that moves the mark, which would announce its own bound afterwards, and
/// sessions would draw IDs that the dump has (`scripts/breaks mark/beside-mover`).
#[test]
fn a_restored_mark_waits_for_a_process_that_moves_the_mark() {
    let lab = Lab::new(2_000, None);
    let (moves, other) = (lab.session(0), lab.session(2));
    lab.draw(&moves).expect("an ID");
    lab.draw(&other).expect("an ID");
    lab.world.pass(3 * SECOND / 2);
    lab.server.flush_micros.set(SECOND);
    let bound = lab.far_ahead();
    let ends: RefCell<Vec<&str>> = RefCell::default();
    lab.run(vec![
        Box::pin(async {
            draw(&moves).await.expect("an ID");
            ends.borrow_mut().push("moved");
        }),
        Box::pin(async {
            // While the other waits for the disk.
            lab.world
                .sleep_until(lab.world.now() + 100 * MILLISECOND)
                .await;
            lab.server.flush_micros.set(0);
            work::restore(lab.session(ADMIN), Ranges::default(), bound).await;
            ends.borrow_mut().push("restored");
        }),
    ]);
    assert_eq!(ends.into_inner(), ["moved", "restored"]);
    for session in [&moves, &other] {
        assert!(matches!(lab.draw(session), Err(CallError::Behind(_))));
    }
}

/// The same at whatever step the restore comes, beside two sessions that reserve more: one of them finds
/// the mark locked by the other, and may not go on with what it has kept (`scripts/breaks
/// kept/closed-again`).
#[test]
fn a_restored_mark_is_noticed_at_whatever_step_it_comes() {
    let mut ids = 0;
    for (begins, apart) in (0..240).flat_map(|begins| (0..24).map(move |apart| (begins, apart))) {
        let lab = Lab::new(2_000, None);
        let sessions = [lab.session(0), lab.session(2)];
        for session in &sessions {
            lab.draw(session).expect("an ID");
        }
        lab.world.pass(3 * SECOND / 2);
        lab.server.flush_micros.set(0);
        let bound = lab.far_ahead();
        let at = |micros| lab.world.sleep_until(lab.world.now() + micros);
        lab.run(vec![
            Box::pin(work::restore(lab.session(ADMIN), Ranges::default(), bound)),
            Box::pin(async {
                at(begins).await;
                let _ = draw(&sessions[0]).await;
            }),
            Box::pin(async {
                at(begins + apart).await;
                let _ = draw(&sessions[1]).await;
            }),
        ]);
        for session in &sessions {
            let drawn = lab.draw(session);
            assert!(
                matches!(drawn, Err(CallError::Behind(_))),
                "{drawn:?} with {begins} and {apart}"
            );
            ids += 1;
        }
    }
    println!("{ids} calls, none below a restored mark");
}

/// A restore that finds its bound written by another one, which waits for the disk, ends when that is flushed, too
/// (`scripts/breaks mark/restored`).
#[test]
fn a_restore_that_finds_its_bound_flushes_it() {
    let lab = Lab::new(2_000, None);
    lab.draw(&lab.session(0)).expect("an ID");
    lab.server.flush_micros.set(SECOND);
    let bound = lab.far_ahead();
    let restore = || work::restore(lab.session(ADMIN), Ranges::default(), bound);
    lab.run(vec![
        Box::pin(restore()),
        Box::pin(async {
            lab.world.sleep_until(lab.world.now() + SECOND / 10).await;
            restore().await;
            assert!(lab.server.durable_bound(0) >= bound);
        }),
    ]);
}

/// The bound in the entry of a dropped database is none of the next one with its OID before what that one has
/// written above it is flushed: the floor, which has it, does not apply to another node number (`scripts/breaks
/// mark/confirmed`).
#[test]
fn a_bound_of_a_dropped_database_is_used_when_the_next_one_has_it_durable() {
    let lab = Lab::new(2_000, None);
    lab.draw(&lab.session(0)).expect("an ID");
    lab.server.incarnations[0].set(1);
    let end = lab.server.write(Record::Mark(0, MarkPage::NEW));
    lab.server.pages.borrow_mut().marks[0] = (MarkPage::NEW, end);
    lab.server.flush_all();
    lab.server.flush_micros.set(SECOND);
    let durable = Cell::new(0);
    let drawn = lab.run(vec![
        Box::pin(async { draw(&lab.session(0)).await }) as Task<'_, _>,
        Box::pin(async {
            lab.world.sleep_until(lab.world.now() + SECOND / 10).await;
            let drawn = draw(&lab.session(2)).await;
            durable.set(lab.server.log.borrow().flushed);
            drawn
        }),
    ]);
    lab.server.end(durable.get());
    lab.server.start(&lab.world, false, 2);
    let (page, _) = lab.server.pages.borrow().marks[0];
    assert!(page.bound_id.get() > drawn[1].expect("an ID"));
}

/// The owner of a database may restore its dump again and again. The IDs of the others on the server
/// move ahead by a lease at most.
#[test]
fn a_dump_that_is_restored_again_and_again_moves_ids_by_a_lease() {
    let lab = Lab::new(2_000, None);
    let session = lab.session(0);
    for _ in 0..100 {
        let _ = lab.draw(&session);
        let bound = work::dumped_mark(&session, 0);
        let admin = lab.session(ADMIN);
        lab.run(vec![Box::pin(work::restore(
            admin,
            Ranges::default(),
            bound,
        ))]);
    }
    let memory = lab.server.memory.borrow().clone().expect("it runs");
    let reached = memory.slewed_clock().reached();
    let ahead = reached.micros_since(lab.server.wall(&lab.world));
    println!("100 dumps restored: {ahead} us ahead");
    assert!(ahead <= 2 * SECOND + 10 * MILLISECOND);
}

/// A session reserves more when half is left of what it would reserve now, which after slow flushes is
/// more than it has: so others go on while it waits for the disk (`scripts/breaks kept/half`).
#[test]
fn after_slow_flushes_more_is_reserved_before_others_have_to_wait() {
    let lab = Lab::new(100, None);
    lab.server.flush_micros.set(300 * MILLISECOND);
    let issued: RefCell<Vec<i64>> = RefCell::default();
    let sessions = [lab.session(0), lab.session(2)];
    lab.run(vec![
        Box::pin(draws(&lab, &sessions[0], &issued)),
        Box::pin(draws(&lab, &sessions[1], &issued)),
    ]);
    let issued = issued.into_inner();
    // Without the first and the last ones: how slow the disk is, is not known yet; one has ended.
    let gaps = issued
        .windows(2)
        .skip(issued.len() / 10)
        .map(|at| at[1] - at[0]);
    let longest = gaps.take(issued.len() * 7 / 10).max().expect("IDs");
    println!("{} IDs, none for {longest} us at most", issued.len());
    assert!(longest < 50 * MILLISECOND);
}

/// How much is reserved follows the slowest of the last flushes, not the last one: that may have found
/// nothing to do. It decays, so one slow flush is forgotten (`scripts/breaks mark/slowest`).
#[test]
fn a_flush_that_finds_nothing_to_do_does_not_shorten_what_is_reserved() {
    let lab = Lab::new(100, None);
    let session = lab.session(0);
    let flush = |micros| {
        lab.server.flush_micros.set(micros);
        lab.world.pass(5 * SECOND);
        let before = lab.server.log.borrow().changes().len();
        let drawn = lab.draw(&session);
        // A mark and a floor for each time that it reserves.
        (
            drawn,
            (lab.server.log.borrow().changes().len() - before) / 2,
        )
    };
    let (drawn, _) = flush(SECOND);
    drawn.expect("an ID");
    assert_eq!(flush(0).1, 1);
    let (drawn, times) = flush(SECOND);
    drawn.expect("an ID");
    assert_eq!(
        times, 2,
        "before the ID, and after it: half is used up by then"
    );
    for _ in 0..40 {
        flush(0).0.expect("an ID");
    }
    assert!(lab.reserved() <= 110 * MILLISECOND);
}

/// A jump of the clock within the lease is followed, whatever `max_clock_step` is: up to there time is
/// reserved, and a session with reserved time compares no clocks. After slow flushes more than a lease
/// is reserved, and a jump within that is followed by such sessions and refused by the others. No ID
/// is repeated: what they draw is reserved (`scripts/breaks mark/unseen`).
#[test]
fn a_jump_within_what_is_reserved_repeats_no_id() {
    let lab = Lab::new(1_000, Some(100 * MILLISECOND));
    let (one, other) = (lab.session(0), lab.session(2));
    lab.draw(&one).expect("an ID");
    lab.step_clock(900 * MILLISECOND);
    lab.draw(&other).expect("a jump within the lease");

    let lab = Lab::new(1_000, Some(100 * MILLISECOND));
    let (one, other) = (lab.session(0), lab.session(2));
    lab.server.flush_micros.set(3 * SECOND);
    lab.draw(&one).expect("an ID");
    lab.server.flush_micros.set(0);
    lab.world.pass(10 * SECOND);
    let mut last = lab.draw(&one).expect("an ID");
    assert!(lab.reserved() > 4 * SECOND);
    lab.step_clock(2 * SECOND);
    for _ in 0..10 {
        lab.world.pass(2 * MILLISECOND);
        let id = lab.draw(&one).expect("an ID, as time is reserved");
        assert!(last < id && id < lab.server.durable_bound(0));
        last = id;
    }
    assert_eq!(lab.draw(&other), Err(CallError::Ahead));
    // After a crash, with the right clock, IDs begin above all of them.
    lab.step_clock(-2 * SECOND);
    let flushed = lab.server.log.borrow().flushed;
    lab.server.end(flushed);
    lab.server.start(&lab.world, false, 2);
    let first = lab.session(0);
    assert!(matches!(lab.draw(&first), Err(CallError::Behind(_))));
    lab.world.pass(lab.reserved());
    assert!(lab.draw(&first).expect("an ID") > last);
}
