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
//! | `own_clock_1ms` | 1 | each crate's own reading of the system's clock, in ticks of 1 ms (`sonyflake`: 10 ms). |
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
//! `sonyflake`, which has 256 IDs in 10 ms, makes 100. No generator uses a tick up, none waits, none borrows. Where ticks
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

/// For `sonyflake`.
const OF_10_MS: Bursts = Bursts {
    ids: 100,
    tick_micros: 10_000,
};

/// An epoch a millisecond ago, for ticks of a microsecond: no tick is 0, and the 25 days of 41 bits are ahead.
fn recent_epoch() -> u64 {
    clock::unix_micros() - 1_000
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> Group<'a> {
    let mut group = criterion.benchmark_group(name);
    group.sampling_mode(SamplingMode::Flat);
    group
}

/// Measures a generator that `threads` threads share.
fn measure(
    group: &mut Group,
    name: &str,
    threads: u64,
    bursts: Bursts,
    next: impl Fn() -> u64 + Sync,
) {
    // A generator is in memory; without this the compiler might see that nothing else uses it.
    let next = black_box(next);
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|ids| threads::time(threads, ids, bursts, |_thread| &next));
    });
}

fn given_time(criterion: &mut Criterion) {
    let steps = clock::steps;
    let group = &mut group(criterion, "given_time");
    let (ours, tick) = (Ours::new(), steps());
    measure(group, OURS, 1, LONG, move || ours.next(&tick));
    measure(
        group,
        "ferroid_atomic",
        1,
        LONG,
        peers::ferroid_atomic(steps()),
    );
    measure(group, "ferroid_lock", 1, LONG, peers::ferroid_lock(steps()));
    measure(group, "snowflake_me", 1, LONG, peers::snowflake_me(steps()));
    measure(group, "snowflake-ng", 1, LONG, peers::snowflake_ng(steps()));
}

fn clock_1us(criterion: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    for (name, threads) in [
        ("clock_1us", 1),
        ("clock_1us_2_threads", 2),
        ("clock_1us_4_threads", 4),
    ] {
        let group = &mut group(criterion, name);
        let ours = Ours::new();
        measure(group, OURS, threads, LONG, move || ours.next(tick));
        measure(
            group,
            "ferroid_atomic",
            threads,
            LONG,
            peers::ferroid_atomic(tick),
        );
        measure(
            group,
            "ferroid_lock",
            threads,
            LONG,
            peers::ferroid_lock(tick),
        );
        measure(
            group,
            "snowflake_me",
            threads,
            LONG,
            peers::snowflake_me(tick),
        );
        measure(
            group,
            "snowflake-ng",
            threads,
            LONG,
            peers::snowflake_ng(tick),
        );
    }
}

fn own_slots(criterion: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    let mut group = group(criterion, "own_slots");
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
    let group = &mut group(criterion, "coarse_clock_1ms");
    let (ours, time) = (Ours::new(), clock.clone());
    measure(group, OURS, 1, OF_1_MS, move || {
        ours.next(|| time.current_millis())
    });
    measure(
        group,
        "ferroid_atomic",
        1,
        OF_1_MS,
        peers::ferroid_atomic_of(clock.clone()),
    );
    measure(
        group,
        "ferroid_lock",
        1,
        OF_1_MS,
        peers::ferroid_lock_of(clock),
    );
}

fn own_clock(criterion: &mut Criterion) {
    let millis = clock::unix_millis;
    for (name, threads) in [("own_clock_1ms", 1), ("own_clock_1ms_2_threads", 2)] {
        let group = &mut group(criterion, name);
        let ours = Ours::new();
        measure(group, OURS, threads, OF_1_MS, move || ours.next(millis));
        let ours = Ours::new();
        measure(group, "snowflake-id_tick_at", threads, OF_1_MS, move || {
            ours.next(|| ours.tick())
        });
        measure(
            group,
            "ferroid_atomic",
            threads,
            OF_1_MS,
            peers::ferroid_atomic(millis),
        );
        measure(
            group,
            "ferroid_lock",
            threads,
            OF_1_MS,
            peers::ferroid_lock(millis),
        );
        measure(
            group,
            "snowflake_me",
            threads,
            OF_1_MS,
            peers::snowflake_me_system(),
        );
        measure(
            group,
            "snowflake-ng",
            threads,
            OF_1_MS,
            peers::snowflake_ng_system(),
        );
        measure(group, "snowflaked", threads, OF_1_MS, peers::snowflaked());
        measure(group, "idgen_rs", threads, OF_1_MS, peers::idgen_rs());
        measure(
            group,
            "snowdon_lock_free",
            threads,
            OF_1_MS,
            peers::snowdon_lock_free(),
        );
        measure(
            group,
            "snowdon_blocking",
            threads,
            OF_1_MS,
            peers::snowdon_blocking(),
        );
        measure(group, "snowcloud", threads, OF_1_MS, peers::snowcloud());
        measure(group, "scru64", threads, OF_1_MS, peers::scru64());
        measure(group, "sonyflake", threads, OF_10_MS, peers::sonyflake());
    }
}

fn clock_alone(criterion: &mut Criterion) {
    let mut group = group(criterion, "clock_alone");
    measure(&mut group, "unix_micros", 1, LONG, clock::unix_micros);
    measure(&mut group, "unix_millis", 1, LONG, clock::unix_millis);
}

/// Four threads share each generator and get no ID twice, or the comparison is of something else.
fn check(_: &mut Criterion) {
    let tick = clock::micros_since(recent_epoch());
    let ours = Ours::new();
    unique(OURS, 5_000, move || ours.next(tick));
    unique("ferroid_atomic", 5_000, peers::ferroid_atomic(tick));
    unique("ferroid_lock", 5_000, peers::ferroid_lock(tick));
    unique("snowflake_me", 5_000, peers::snowflake_me(tick));
    unique("snowflake_me", 5_000, peers::snowflake_me_system());
    unique("snowflake-ng", 5_000, peers::snowflake_ng(tick));
    unique("snowflaked", 5_000, peers::snowflaked());
    unique("idgen_rs", 5_000, peers::idgen_rs());
    unique("snowdon_lock_free", 5_000, peers::snowdon_lock_free());
    unique("snowdon_blocking", 5_000, peers::snowdon_blocking());
    unique("snowcloud", 5_000, peers::snowcloud());
    unique("scru64", 5_000, peers::scru64());
    unique("sonyflake", 500, peers::sonyflake());
}

fn unique(name: &str, ids_per_thread: usize, next: impl Fn() -> u64 + Sync) {
    const THREADS: usize = 4;
    let ids: Vec<u64> = std::thread::scope(|scope| {
        let make = || scope.spawn(|| (0..ids_per_thread).map(|_| next()).collect::<Vec<_>>());
        let threads: Vec<_> = (0..THREADS).map(|_| make()).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|ids| ids.expect("no thread panics"))
            .collect()
    });
    let distinct: HashSet<_> = ids.iter().collect();
    assert_eq!(
        distinct.len(),
        THREADS * ids_per_thread,
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
