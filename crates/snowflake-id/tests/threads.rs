//! Real threads on one slot. Loom tries every interleaving of a few calls; this tries a few
//! interleavings of millions, on the machine's own memory model.

#![cfg(not(loom))]

use std::num::NonZeroU32;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use snowflake_id::{Allowance, Answer, Borrow, Identity, Layout, Run, Slot, SnowflakeId, Tick};

const THREADS: u32 = 8;
const IDS_PER_THREAD: usize = 500_000;

/// Has every thread take its IDs by `next` and gives back what each got, in the order it got it.
fn hammer(next: impl Fn(Allowance, NonZeroU32) -> Answer + Sync) -> Vec<Vec<SnowflakeId>> {
    let identity = Identity::new(Layout::DEFAULT, 1).unwrap();
    let started = Instant::now();
    let together = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (next, together) = (&next, &together);
                scope.spawn(move || {
                    let mut ids = Vec::with_capacity(IDS_PER_THREAD);
                    // Each thread's clock is a little off, as backends see the clock at different
                    // moments; and half of the threads take runs.
                    let ahead = u64::from(thread) % 3;
                    let count = if thread % 2 == 0 { 1 } else { 1 + thread };
                    together.wait();
                    while ids.len() < IDS_PER_THREAD {
                        let now = 1_000_000 + ahead + started.elapsed().as_millis() as u64;
                        let allowance = Allowance {
                            now: Tick::new(now),
                            max_borrow: 10,
                            reserved: Layout::DEFAULT.end_tick(),
                        };
                        match next(allowance, NonZeroU32::new(count).unwrap()) {
                            Answer::Issued(run) => ids.extend(identity.ids(1, run)),
                            Answer::Wait { .. } => std::thread::yield_now(),
                            Answer::Reserve { tick } => panic!("{tick} is within the layout"),
                            Answer::Closed => panic!("no slot is closed"),
                        }
                    }
                    ids
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn duplicates(ids_of_threads: &[Vec<SnowflakeId>]) -> (usize, usize) {
    let mut all = ids_of_threads.concat();
    let total = all.len();
    all.sort_unstable();
    all.dedup();
    (total, total - all.len())
}

#[test]
fn one_slot_eight_threads() {
    let slot = Slot::new();
    let bits = Layout::DEFAULT.sequence_bits();
    let ids = hammer(|allowance, count| match count.get() {
        1 => slot.next(bits, allowance),
        _ => slot.next_run(bits, allowance, count, Borrow::Yes),
    });
    for of_one_thread in &ids {
        assert!(
            of_one_thread.is_sorted_by(|a, b| a < b),
            "each thread's IDs ascend"
        );
    }
    let (total, duplicates) = duplicates(&ids);
    println!("{THREADS} threads on one slot: {total} IDs, {duplicates} duplicates");
    assert!(total >= THREADS as usize * IDS_PER_THREAD);
    assert_eq!(duplicates, 0);
}

/// The same with the compare-and-swap replaced by a load and a store must fail, or the test above
/// shows nothing. Where only one processor is free a thread is seldom interrupted between the two,
/// so now and then it lets the others go first.
#[test]
fn without_the_swap_there_are_duplicates() {
    let word = AtomicU64::new(0);
    let bits = Layout::DEFAULT.sequence_bits();
    let ids = hammer(|allowance, count| {
        let first = (word.load(Relaxed) + 1).max(allowance.now.get() << bits);
        let tick = first >> bits;
        if tick > allowance.now.get() + allowance.max_borrow {
            return Answer::Wait {
                until: allowance.now,
            };
        }
        let sequence = (first & u64::from(Layout::DEFAULT.max_sequence())) as u32;
        let count = count
            .get()
            .min(Layout::DEFAULT.max_sequence() - sequence + 1);
        if sequence.is_multiple_of(512) {
            std::thread::yield_now();
        }
        word.store(first + u64::from(count - 1), Relaxed);
        Answer::Issued(Run {
            tick: Tick::new(tick),
            first: sequence,
            count,
        })
    });
    let (total, duplicates) = duplicates(&ids);
    println!("{THREADS} threads, load and store: {total} IDs, {duplicates} duplicates");
    assert!(duplicates > 0);
}
