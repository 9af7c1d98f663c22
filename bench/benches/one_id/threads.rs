//! Threads that make IDs at the same time, and how long they take.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread::{available_parallelism, yield_now};
use std::time::{Duration, Instant};

/// How many IDs a thread makes in one go, and when.
#[derive(Clone, Copy)]
pub struct Bursts {
    /// IDs that one thread makes in one go.
    pub ids: u64,
    /// A burst begins with a tick of this many microseconds since 1970, each burst with another.
    pub tick_micros: u64,
}

/// How long `threads` threads take to make `ids` IDs together.
///
/// They make them in bursts, all starting at the same time. A burst takes from the first thread's start to the last one's
/// end; the waiting between bursts is not counted. What is returned is the burst in the middle, scaled to `ids`: one that
/// was interrupted by something else on the machine takes a hundred times as long and would spoil a mean.
///
/// `generator` gives the thread of a number what it makes its IDs with.
pub fn time<F: Fn() -> u64>(
    threads: u64,
    ids: u64,
    bursts: Bursts,
    generator: impl Fn(u64) -> F + Sync,
) -> Duration {
    let rounds = ids.div_ceil(threads * bursts.ids);
    let gate = Gate::new(threads, bursts.tick_micros);
    let times: Vec<Vec<(Instant, Instant)>> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads)
            .map(|thread| {
                let (generator, gate) = (&generator, &gate);
                scope.spawn(move || {
                    let next = generator(thread);
                    let burst = |round| {
                        gate.wait(round);
                        let start = Instant::now();
                        for _ in 0..bursts.ids {
                            black_box(next());
                        }
                        (start, Instant::now())
                    };
                    (0..rounds).map(burst).collect()
                })
            })
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|times| times.expect("no thread panics"))
            .collect()
    });
    let mut elapsed: Vec<Duration> = (0..rounds as usize)
        .map(|round| {
            let start = times.iter().map(|times| times[round].0).min();
            let end = times.iter().map(|times| times[round].1).max();
            end.expect("there is a thread") - start.expect("there is a thread")
        })
        .collect();
    elapsed.sort_unstable();
    elapsed[elapsed.len() / 2].mul_f64(ids as f64 / (threads * bursts.ids) as f64)
}

/// Starts all threads at the beginning of the next tick. It spins: waking a thread up takes longer than a burst.
struct Gate {
    threads: u64,
    /// More threads than cores: one that waits must let the one run that it waits for.
    crowded: bool,
    tick_micros: u64,
    arrived: AtomicU64,
    /// How often it was opened, and the tick at which the threads may start.
    opened: AtomicU64,
    start: AtomicU64,
}

impl Gate {
    fn new(threads: u64, tick_micros: u64) -> Self {
        Self {
            threads,
            crowded: available_parallelism().is_ok_and(|cores| (cores.get() as u64) < threads),
            tick_micros,
            arrived: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            start: AtomicU64::new(0),
        }
    }

    fn tick(&self) -> u64 {
        crate::clock::unix_micros() / self.tick_micros
    }

    /// Waits until all threads have come here for the `round`-th time (from 0) and the next tick has begun.
    fn wait(&self, round: u64) {
        let arrived = self.arrived.fetch_add(1, SeqCst) + 1;
        if arrived == self.threads * (round + 1) {
            self.start.store(self.tick() + 1, SeqCst);
            self.opened.store(round + 1, SeqCst);
        }
        while self.opened.load(SeqCst) <= round {
            if self.crowded {
                yield_now();
            } else {
                spin_loop();
            }
        }
        let start = self.start.load(SeqCst);
        while self.tick() < start {
            spin_loop();
        }
    }
}
