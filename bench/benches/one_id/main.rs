//! What one ID costs, beside the other crates that keep IDs unique across threads.
//!
//! `cargo bench -p snowflake-bench --no-default-features`, about a minute; `make bench` runs it several times, because what a machine
//! does beside it changes from minute to minute. The peers, what each does and which were left out: `peers.rs`.
//!
//! # What is compared
//!
//! The target is: one ID costs no more than with the fastest peer. It is met in a group if `snowflake-id` is not slower
//! than the fastest other function of that group, which has the work and the clock in common:
//!
//! | group | threads | time |
//! |---|---|---|
//! | `given_time` | 1 | given; a new tick after every 1,024 IDs. The generator alone. |
//! | `clock_1us` | 1 | the system's clock, read for every ID, in ticks of 1 µs. |
//! | `clock_1us_2_threads`, `clock_1us_4_threads` | 2, 4, sharing one generator | the same |
//! | `coarse_clock_1ms` | 1 | `ferroid`'s own clock: a thread that writes down the millisecond. |
//! | `own_clock_1ms` | 1 | each crate's own reading of the system's clock, in ticks of 1 ms. |
//! | `own_clock_1ms_2_threads` | 2, sharing one generator | the same |
//!
//! The first three lines have the peers that can be given a time source, which get the same one as ours. The fourth is
//! the cheapest clock a peer brings. The last two have all of them, as they come.
//!
//! Two groups are for reading the others: `clock_alone`, what of an ID's time is the clock's; and `own_slots`, threads of
//! which each has a slot of its own and the clock is the one of `clock_1us`: so backends work until there are more of
//! them than backend numbers.
//!
//! `snowflake-id` is given ticks, as the peers with a time source are: a caller who knows that a tick is a millisecond asks the
//! clock for milliseconds. `snowflake-id_tick_at` doesn't: it asks for microseconds and lets `Layout::tick_at` divide them by
//! a tick that is a setting.
//!
//! Times are per ID. With several threads they are the wall clock's, from the first thread's start to the last one's end,
//! divided by the IDs of all threads: two threads that don't disturb each other halve it. They need the machine for
//! themselves: where a thread has to wait for a core, that is what is measured, and so it is with four threads on two
//! cores.
//!
//! Results for programs: `target/criterion/<group>/<function>/new/estimates.json` (with
//! `--save-baseline NAME`, `NAME` in place of `new`), nanoseconds per ID, of which `median.point_estimate` is the one to
//! compare.
//!
//! # Bursts
//!
//! With ticks of a millisecond and 4,096 IDs in each, a generator that is always busy uses its ticks up and then waits, in
//! a loop or asleep: 244 ns an ID, whatever the code. Ours would first borrow ticks and look fast. So where ticks are of
//! a millisecond, every thread makes 1,000 IDs in one go and then waits for the next tick; only the making is timed.
//! No generator uses a tick up, none waits, none borrows. Where ticks
//! are shorter, bursts are of 10,000 IDs. A sample is the burst in the middle, so that other work on the machine, which
//! makes some bursts much longer, changes little.
//!
//! # What is not equal
//!
//! Ours does more for an ID than any peer: the bound of what is reserved, the limit of what is borrowed, a clock that
//! steps back (which makes peers wait, fail or panic), the spread of the first sequence number of a tick, a layout that
//! is known only at run time, and a check that the tick and the sequence are within it. `ferroid` and `snowdon` know their
//! layouts at compile time.

mod clock;
mod peers;
mod threads;

use std::collections::HashSet;
use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, criterion_group, criterion_main};
use ferroid::time::{MonotonicClock, TimeSource};

use peers::Ours;
use threads::Bursts;

const OURS: &str = "snowflake-id";

/// Where no tick can be used up: long enough that starting together doesn't matter, short enough that most bursts are not
/// interrupted.
const LONG: Bursts = Bursts {
    ids: 10_000,
    tick_micros: 1_000,
};

/// A quarter of what a tick of a millisecond holds: two threads stay within it, and so does one whose clock is a few
/// ticks late.
const OF_1_MS: Bursts = Bursts {
    ids: 1_000,
    tick_micros: 1_000,
};

/// An epoch a millisecond ago, for ticks of a microsecond: no tick is 0, and the 25 days of 41 bits are ahead.
fn recent_epoch() -> u64 {
    clock::unix_micros() - 1_000
}

/// Generators that are compared, with as many threads as share each.
struct Group<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    threads: u64,
    bursts: Bursts,
}

impl<'a> Group<'a> {
    fn new(criterion: &'a mut Criterion, name: &str, threads: u64, bursts: Bursts) -> Self {
        let mut group = criterion.benchmark_group(name);
        group.sampling_mode(SamplingMode::Flat);
        Self {
            group,
            threads,
            bursts,
        }
    }

    fn add(&mut self, name: &str, next: impl Fn() -> u64 + Sync) {
        // A generator is in memory; without this the compiler might see that nothing else uses it.
        let next = black_box(next);
        let (threads, bursts) = (self.threads, self.bursts);
        self.group.bench_function(name, |bencher| {
            bencher.iter_custom(|ids| threads::time(threads, ids, bursts, |_thread| &next));
        });
    }

    /// Those that can be given a time source; each gets one of its own.
    fn add_given<F: Fn() -> u64 + Send + Sync + 'static>(&mut self, tick: impl Fn() -> F) {
        let (ours, time) = (Ours::new(), tick());
        self.add(OURS, move || ours.next(&time));
        self.add("ferroid_atomic", peers::ferroid_atomic(tick()));
        self.add("ferroid_lock", peers::ferroid_lock(tick()));
        self.add("snowflake_me", peers::snowflake_me(tick()));
        self.add("snowflake-ng", peers::snowflake_ng(tick()));
    }
}

fn given_time(criterion: &mut Criterion) {
    Group::new(criterion, "given_time", 1, LONG).add_given(clock::steps);
}

fn clock_1us(criterion: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    for (name, threads) in [
        ("clock_1us", 1),
        ("clock_1us_2_threads", 2),
        ("clock_1us_4_threads", 4),
    ] {
        Group::new(criterion, name, threads, LONG).add_given(|| tick);
    }
}

fn own_slots(criterion: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    let mut group = Group::new(criterion, "own_slots", 1, LONG).group;
    for threads in [1, 2, 4] {
        let slots: Vec<Ours> = (0..threads).map(|_| Ours::new()).collect();
        let slots = black_box(slots.as_slice());
        group.bench_function(format!("{threads}_threads"), |bencher| {
            bencher.iter_custom(|ids| {
                threads::time(threads, ids, LONG, |thread| {
                    let ours = &slots[thread as usize];
                    move || ours.next(tick)
                })
            });
        });
    }
}

fn coarse_clock(criterion: &mut Criterion) {
    let clock = MonotonicClock::<1>::with_epoch(Duration::ZERO);
    let mut group = Group::new(criterion, "coarse_clock_1ms", 1, OF_1_MS);
    let (ours, time) = (Ours::new(), clock.clone());
    group.add(OURS, move || ours.next(|| time.current_millis()));
    group.add("ferroid_atomic", peers::ferroid_atomic_of(clock.clone()));
    group.add("ferroid_lock", peers::ferroid_lock_of(clock));
}

fn own_clock(criterion: &mut Criterion) {
    let millis = clock::unix_millis;
    for (name, threads) in [("own_clock_1ms", 1), ("own_clock_1ms_2_threads", 2)] {
        let mut group = Group::new(criterion, name, threads, OF_1_MS);
        let ours = Ours::new();
        group.add(OURS, move || ours.next(millis));
        let ours = Ours::new();
        group.add("snowflake-id_tick_at", move || ours.next(|| ours.tick()));
        group.add("ferroid_atomic", peers::ferroid_atomic(millis));
        group.add("ferroid_lock", peers::ferroid_lock(millis));
        group.add("snowflake_me", peers::snowflake_me_system());
        group.add("snowflake-ng", peers::snowflake_ng_system());
        group.add("snowflaked", peers::snowflaked());
        group.add("idgen_rs", peers::idgen_rs());
        group.add("snowdon_lock_free", peers::snowdon_lock_free());
    }
}

fn clock_alone(criterion: &mut Criterion) {
    let mut group = Group::new(criterion, "clock_alone", 1, LONG);
    group.add("unix_micros", clock::unix_micros);
    group.add("unix_millis", clock::unix_millis);
}

/// Four threads share each generator and get no ID twice, or the comparison is of something else.
fn check(_: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    let ours = Ours::new();
    unique(OURS, move || ours.next(tick));
    unique("ferroid_atomic", peers::ferroid_atomic(tick));
    unique("ferroid_lock", peers::ferroid_lock(tick));
    unique("snowflake_me", peers::snowflake_me(tick));
    unique("snowflake_me", peers::snowflake_me_system());
    unique("snowflake-ng", peers::snowflake_ng(tick));
    unique("snowflaked", peers::snowflaked());
    unique("idgen_rs", peers::idgen_rs());
    unique("snowdon_lock_free", peers::snowdon_lock_free());
}

fn unique(name: &str, next: impl Fn() -> u64 + Sync) {
    const THREADS: usize = 4;
    const IDS: usize = 5_000;
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let make = || scope.spawn(|| (0..IDS).map(|_| next()).collect::<Vec<_>>());
        let threads: Vec<_> = (0..THREADS).map(|_| make()).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|ids| ids.expect("no thread panics"))
            .collect()
    });
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(
        distinct.len(),
        THREADS * IDS,
        "{name} keeps IDs unique across threads"
    );
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .nresamples(10_000)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(600));
    targets = check, given_time, clock_1us, own_slots, coarse_clock, own_clock, clock_alone
}
criterion_main!(benches);
