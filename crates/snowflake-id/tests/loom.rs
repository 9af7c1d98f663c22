//! Every interleaving of two and three callers on one slot, with every value a relaxed load may
//! return.
//!
//! `RUSTFLAGS='--cfg loom' cargo test -p pg-snowflake-id --release --test loom`

#![cfg(loom)]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use loom::sync::atomic::AtomicU64;
use loom::thread;
use snowflake_id::{Allowance, Answer, Borrow, Layout, Run, Slot, SlotWalk, Tick};

/// Four sequence numbers a tick, so that callers also meet where a tick is used up.
const BITS: u32 = 2;

/// A caller: what it asks for, one after the other.
type Calls = &'static [Call];

#[derive(Clone, Copy)]
enum Call {
    /// One sequence number at this time.
    Next(u64),
    /// Up to so many at this time.
    Run(u64, u32),
    /// All later ones belong to this tick or a later one.
    Raise(u64),
}
use Call::{Next, Raise, Run as Take};

fn allowance(now: u64) -> Allowance {
    Allowance {
        now: Tick::new(now),
        max_borrow: 2,
        reserved: Tick::new(9),
    }
}

/// The words, `tick << BITS | sequence`, that a caller was given, in its order.
fn call(slot: &Slot, calls: Calls) -> Vec<u64> {
    let mut words = Vec::new();
    let mut raised = 0;
    for &call in calls {
        let (now, answer) = match call {
            Next(now) => (now, slot.next(BITS, allowance(now))),
            Take(now, count) => {
                let count = NonZeroU32::new(count).unwrap();
                (now, slot.next_run(BITS, allowance(now), count, Borrow::Yes))
            }
            Raise(tick) => {
                slot.raise_to(BITS, Tick::new(tick));
                raised = raised.max(tick);
                continue;
            }
        };
        match answer {
            Answer::Issued(Run { tick, first, count }) => {
                let tick = tick.get();
                assert!(count >= 1 && first + count <= 1 << BITS, "one tick only");
                assert!(tick >= now && tick <= now + 2 && tick < 9 && tick >= raised);
                words.extend((0..count).map(|n| tick << BITS | u64::from(first + n)));
            }
            Answer::Wait { until } => assert!(until.get() > now),
            Answer::Closed => panic!("no slot is closed"),
            Answer::Reserve { tick } => assert!(tick.get() >= 9 && tick.get() <= now + 2),
        }
    }
    words
}

/// Runs the callers in every interleaving; each gets `calls` of its own, the last one on the
/// model's main thread.
fn explore(name: &str, callers: &'static [Calls]) {
    let executions = explore_with(loom::model::Builder::new(), callers);
    println!("{name}: {executions} interleavings");
}

/// More calls than can be tried in full: every interleaving in which a thread is interrupted at
/// most `preemptions` times in all (waiting for another thread to end doesn't count).
fn explore_bounded(name: &str, preemptions: usize, callers: &'static [Calls]) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    let executions = explore_with(model, callers);
    println!("{name}: {executions} interleavings of at most {preemptions} preemptions");
}

fn explore_with(model: loom::model::Builder, callers: &'static [Calls]) -> usize {
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&executions);
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        let slot = loom::sync::Arc::new(Slot::new());
        let (here, elsewhere) = callers.split_last().unwrap();
        let threads: Vec<_> = elsewhere
            .iter()
            .map(|calls| {
                let slot = loom::sync::Arc::clone(&slot);
                thread::spawn(move || call(&slot, calls))
            })
            .collect();
        let mut all = vec![call(&slot, here)];
        all.extend(threads.into_iter().map(|thread| thread.join().unwrap()));

        for words in &all {
            assert!(
                words.is_sorted_by(|a, b| a < b),
                "each caller's ascend: {words:?}"
            );
        }
        let mut words = all.concat();
        let issued = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), issued, "issued twice: {all:?}");
        // Nothing is issued behind the slot's back.
        let (tick, sequence) = slot.last(BITS);
        let last = tick.get() << BITS | u64::from(sequence);
        assert!(words.last().is_none_or(|&word| word <= last));
    });
    executions.load(Relaxed)
}

#[test]
fn two_callers() {
    explore(
        "two callers, two IDs each",
        &[&[Next(1), Next(1)], &[Next(1), Next(1)]],
    );
    explore(
        "two callers, three IDs each, until the tick is used up",
        &[&[Next(1), Next(1), Next(1)], &[Next(1), Next(1), Next(1)]],
    );
    explore(
        "two callers whose clocks disagree and step back",
        &[&[Next(3), Next(1)], &[Next(2), Next(4)]],
    );
}

#[test]
fn three_callers() {
    explore(
        "three callers, one ID each",
        &[&[Next(1)], &[Next(1)], &[Next(1)]],
    );
    explore(
        "three callers, two IDs and one each",
        &[&[Next(1), Next(1)], &[Next(2)], &[Next(1)]],
    );
    explore_bounded(
        "three callers, two IDs each",
        3,
        &[
            &[Next(1), Next(1)],
            &[Next(1), Next(2)],
            &[Next(2), Next(1)],
        ],
    );
}

#[test]
fn runs() {
    explore(
        "two callers, runs against single IDs",
        &[&[Take(1, 3), Take(1, 3)], &[Next(1), Next(1), Next(1)]],
    );
    explore(
        "three callers, runs",
        &[&[Take(1, 2), Take(1, 3)], &[Take(1, 4)], &[Take(2, 3)]],
    );
}

#[test]
fn a_raise_at_the_same_time() {
    explore(
        "one caller, one raise",
        &[&[Next(1), Next(1), Next(1)], &[Raise(2), Next(1)]],
    );
    explore(
        "two callers, one of them with a run, and one raise",
        &[&[Take(1, 3), Next(1)], &[Next(2)], &[Raise(3)]],
    );
    explore_bounded(
        "two callers with runs, one raise and an ID",
        3,
        &[
            &[Take(1, 3), Next(1)],
            &[Next(2), Take(1, 2)],
            &[Raise(3), Next(1)],
        ],
    );
}

#[test]
fn the_reserved_time_at_the_same_time() {
    explore(
        "two callers at the end of the reserved time",
        &[&[Take(8, 3), Next(8)], &[Next(8), Next(7), Next(9)]],
    );
}

/// What a session asks for: at this time, so many.
type Asks = &'static [(u64, u32)];

/// Sessions in every interleaving that interrupts one at most three times: each asks as the
/// extension does, in the slot in which it is as long as it may stay there, and goes from one slot
/// to another.
fn explore_sessions(
    name: &str,
    backend_bits: u32,
    sequence_bits: u32,
    sessions: &'static [(u32, Asks)],
) {
    let executions = Arc::new(AtomicUsize::new(0));
    let moved = Arc::new(AtomicUsize::new(0));
    let (counted, counted_moves) = (Arc::clone(&executions), Arc::clone(&moved));
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        counted.fetch_add(1, Relaxed);
        let layout: Layout =
            format!("timestamp:41 backend:{backend_bits} sequence:{sequence_bits}")
                .parse()
                .unwrap();
        let slots: Vec<Slot> = (0..1 << backend_bits).map(|_| Slot::new()).collect();
        let slots = loom::sync::Arc::new(slots);
        let ask = move |slots: &[Slot], home: u32, asks: Asks| {
            let walk = SlotWalk::new(&layout, slots, home);
            let mut position = walk.start();
            let mut words = Vec::new();
            for &(now, count) in asks {
                let allowance = allowance(now);
                let at_once = Some(position)
                    .filter(|position| count == 1 && position.may_stay(allowance.now))
                    .and_then(|position| {
                        let slot = &slots[position.slot() as usize];
                        let bits = layout.sequence_bits();
                        match slot.next_run(bits, allowance, NonZeroU32::MIN, Borrow::No) {
                            answer @ Answer::Issued(run) => Some((position.after(run), answer)),
                            _ => None,
                        }
                    });
                let (after, answer) = at_once.unwrap_or_else(|| {
                    walk.next_run(position, allowance, NonZeroU32::new(count).unwrap())
                });
                position = after;
                // Two ticks may be borrowed: there is enough for all.
                let Answer::Issued(run) = answer else {
                    panic!("{answer:?}");
                };
                let tick = run.tick.get();
                assert!(tick >= now && tick <= now + 2 && tick < 9);
                let numbers = run.first..run.first + run.count;
                words.extend(numbers.map(|number| (tick, position.slot(), number)));
            }
            words
        };
        let (&(home, asks), elsewhere) = sessions.split_last().unwrap();
        let threads: Vec<_> = elsewhere
            .iter()
            .map(|&(home, asks)| {
                let slots = loom::sync::Arc::clone(&slots);
                thread::spawn(move || ask(&slots[..], home, asks))
            })
            .collect();
        let mut all = vec![ask(&slots[..], home, asks)];
        all.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        for words in &all {
            assert!(
                words.is_sorted_by(|a, b| a < b),
                "each session's ascend: {words:?}"
            );
            let slots = words.iter().map(|word| word.1);
            counted_moves.fetch_add(
                slots.collect::<std::collections::HashSet<_>>().len() - 1,
                Relaxed,
            );
        }
        let mut words = all.concat();
        let issued = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), issued, "issued twice: {all:?}");
    });
    let moved = moved.load(Relaxed);
    println!(
        "{name}: {} interleavings of at most 3 preemptions, {moved} times into another slot",
        executions.load(Relaxed)
    );
    assert!(moved > 0);
}

#[test]
fn sessions_at_the_same_time() {
    explore_sessions(
        "two sessions in bulk",
        1,
        3,
        &[
            (1, &[(1, 4), (1, 1), (1, 1)]),
            (1, &[(1, 1), (1, 3), (1, 1)]),
        ],
    );
    explore_sessions(
        "two sessions in slots that are used up",
        1,
        1,
        &[
            (1, &[(1, 1), (1, 1), (1, 1)]),
            (0, &[(1, 1), (1, 1), (1, 1)]),
        ],
    );
    explore_sessions(
        "a session in bulk, one of single IDs, one whose clock is ahead",
        2,
        2,
        &[
            (2, &[(1, 4), (1, 1)]),
            (0, &[(1, 1), (2, 1)]),
            (3, &[(2, 4), (1, 1)]),
        ],
    );
}

/// What a raise is for: a caller that sees the flag set after it gets nothing below it, although
/// the slot's own orderings are relaxed.
#[test]
fn a_raise_that_is_announced_by_a_flag() {
    use loom::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::{Acquire, Release};

    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    loom::model(move || {
        let shared = loom::sync::Arc::new((Slot::new(), AtomicBool::new(false)));
        let other = loom::sync::Arc::clone(&shared);
        let raiser = thread::spawn(move || {
            other.0.raise_to(BITS, Tick::new(3));
            other.1.store(true, Release);
        });
        let (slot, flag) = &*shared;
        if flag.load(Acquire) {
            counted.fetch_add(1, Relaxed);
            assert!(call(slot, &[Next(1)]).iter().all(|word| *word >= 3 << BITS));
            assert!(slot.last(BITS).0 >= Tick::new(2));
        }
        raiser.join().unwrap();
    });
    let seen = seen.load(Relaxed);
    println!("a raise announced by a flag: seen in {seen} interleavings");
    assert!(seen > 0);
}

/// A slot without its protection: a load and a store in place of the compare-and-swap. Loom must
/// find its duplicates, or the tests above show nothing.
#[test]
fn without_the_swap_loom_finds_duplicates() {
    fn next(word: &AtomicU64) -> u64 {
        let following = word.load(Relaxed) + 1;
        word.store(following, Relaxed);
        following
    }
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let counted = Arc::clone(&counts);
    loom::model(move || {
        let word = loom::sync::Arc::new(AtomicU64::new(0));
        let other = loom::sync::Arc::clone(&word);
        let thread = thread::spawn(move || next(&other));
        let mine = next(&word);
        let theirs = thread.join().unwrap();
        counted.0.fetch_add(1, Relaxed);
        counted.1.fetch_add(usize::from(mine == theirs), Relaxed);
    });
    let (executions, duplicates) = (counts.0.load(Relaxed), counts.1.load(Relaxed));
    println!("load and store: {executions} interleavings, {duplicates} with a duplicate");
    assert!(duplicates > 0);
}

/// Once a slot was closed, nothing is issued, whatever callers were doing; opened, it continues
/// where it was.
#[test]
fn nothing_is_issued_between_close_and_open() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(|| {
        let slot = loom::sync::Arc::new(Slot::new());
        let callers: Vec<_> = [(1, 1), (2, 3)]
            .into_iter()
            .map(|(now, count)| {
                let slot = loom::sync::Arc::clone(&slot);
                thread::spawn(move || {
                    let count = NonZeroU32::new(count).unwrap();
                    slot.raise_to(BITS, Tick::new(now));
                    match slot.next_run(BITS, allowance(now), count, Borrow::Yes) {
                        Answer::Issued(run) => {
                            run.tick.get() << BITS | u64::from(run.first + run.count - 1)
                        }
                        Answer::Closed => 0,
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        slot.close();
        let word = |slot: &Slot| {
            let (tick, sequence) = slot.last(BITS);
            tick.get() << BITS | u64::from(sequence)
        };
        let closed_at = word(&slot);
        assert_eq!(slot.next(BITS, allowance(3)), Answer::Closed);
        let last = callers
            .into_iter()
            .map(|caller| caller.join().unwrap())
            .max()
            .unwrap();
        assert!(last <= closed_at, "{last} was issued after {closed_at}");
        assert_eq!(slot.next(BITS, allowance(3)), Answer::Closed);
        let raised_to = word(&slot);
        assert!(
            raised_to >= closed_at && raised_to >= (2 << BITS) - 1,
            "raised while it was closed"
        );
        slot.open();
        match slot.next(BITS, allowance(3)) {
            Answer::Issued(run) => {
                assert!(run.tick.get() << BITS | u64::from(run.first) > raised_to)
            }
            other => panic!("{other:?}"),
        }
    });
}
