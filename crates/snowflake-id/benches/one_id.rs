//! What one ID costs, beside `ferroid`'s atomic generator, the nearest thing there is: one 64-bit word that is changed
//! by a compare-and-swap, with the time from outside.
//!
//! Both members of a pair do the same work, in the same run, on one thread: a complete ID with its node number in
//! Twitter's layout (41 bits of time, 10 of node, 12 of sequence), all types known at compile time. `ferroid` answers
//! `Poll::Pending` where a swap is lost or a tick used up, and its `next_id` loops; ours loops inside. Neither happens here.
//!
//! - `given time`: the tick is given, the same to both: a counter that begins a new tick after every 1,024 IDs, so that
//!   neither uses up its 4,096. This is the generator alone.
//! - `clock`: `SystemTime::now()` is read for each ID and made into a tick. A tick is a microsecond for both (`ferroid` takes
//!   any unit for its milliseconds). With ticks of a millisecond both would use them up and this would measure the
//!   waiting: 4,096 IDs a millisecond are 244 ns each, whatever the code.
//!
//! Ours does more in both: the bound of what is reserved, the limit of what is borrowed, a clock that steps back, and the
//! spread of the first sequence number of a tick.
//!
//! `cargo bench -p snowflake-id --bench one_id`

use std::cell::Cell;
use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use criterion::{Criterion, criterion_group, criterion_main};
use ferroid::generator::AtomicSnowflakeGenerator;
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::TimeSource;
use snowflake_id::{Answer, Horizon, Layout, Origin, Slot, SnowflakeId, Tick, Time};

const NODE: u32 = 33;

/// Microseconds since 1970.
fn clock() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is later than 1970")
        .as_micros() as u64
}

/// A tick that begins anew after every 1,024 IDs.
#[derive(Default)]
struct Steps(Cell<u64>);

impl Steps {
    fn tick(&self) -> u64 {
        let calls = self.0.get() + 1;
        self.0.set(calls);
        1 + (calls >> 10)
    }
}

impl TimeSource<u64> for Steps {
    fn current_millis(&self) -> u64 {
        self.tick()
    }
}

/// Microseconds since an epoch.
struct Clock {
    epoch: u64,
}

impl TimeSource<u64> for Clock {
    fn current_millis(&self) -> u64 {
        clock() - self.epoch
    }
}

/// What a backend has at hand.
struct Ours {
    slot: Slot,
    origin: Origin,
    max_borrow: u64,
    reserved: Tick,
}

impl Ours {
    fn new(layout: Layout) -> Self {
        Self {
            slot: Slot::new(),
            origin: Origin::new(layout, NODE, 0).expect("10 bits hold it"),
            max_borrow: 1_000,
            reserved: layout.end_tick(),
        }
    }

    // The compiler inlines `ferroid`'s generator, which it compiles anew for each time source; this one, used more than
    // once, it would call.
    #[inline(always)]
    fn next(&self, now: Tick) -> SnowflakeId {
        let horizon = Horizon {
            now,
            max_borrow: self.max_borrow,
            reserved: self.reserved,
        };
        match self
            .slot
            .next(self.origin.layout().sequence_bits(), horizon)
        {
            Answer::Issued(run) => self.origin.id(run.tick, run.first),
            other => unreachable!("{other:?}: the tick is not used up"),
        }
    }
}

fn one_id(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("given time");
    {
        let steps = Steps::default();
        // A layout that the compiler doesn't know: it is a setting.
        let layout: Layout = "timestamp:41 node:10 sequence:12".parse().unwrap();
        let ours = black_box(Ours::new(layout));
        group.bench_function("snowflake-id", |bencher| {
            bencher.iter(|| ours.next(Tick::new(steps.tick())));
        });
    }
    {
        let generator = black_box(AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(
            NODE.into(),
            Steps::default(),
        ));
        group.bench_function("ferroid", |bencher| {
            bencher.iter(|| generator.next_id(|_| unreachable!("the tick is not used up")));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("clock");
    {
        let epoch = Time::from_unix_micros(clock().into());
        let layout: Layout = format!("timestamp:41 node:10 sequence:12 tick:1us epoch:{epoch}")
            .parse()
            .unwrap();
        let ours = black_box(Ours::new(layout));
        group.bench_function("snowflake-id", |bencher| {
            bencher.iter(|| {
                let now = Time::from_unix_micros(clock().into());
                ours.next(ours.origin.layout().tick_at(now).expect("25 days"))
            });
        });
    }
    {
        let generator = black_box(AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(
            NODE.into(),
            Clock { epoch: clock() },
        ));
        group.bench_function("ferroid", |bencher| {
            bencher.iter(|| generator.next_id(|_| std::hint::spin_loop()));
        });
    }
    group.bench_function("the clock alone", |bencher| bencher.iter(clock));
    group.finish();
}

/// Both make an ID with the node it was told, or the comparison is of something else.
fn check(_: &mut Criterion) {
    let layout: Layout = "timestamp:41 node:10 sequence:12".parse().unwrap();
    let ours = Ours::new(layout);
    let generator =
        AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(NODE.into(), Steps::default());
    let theirs: SnowflakeTwitterId = generator.next_id(|_| unreachable!());
    assert_eq!(layout.decode(ours.next(Tick::new(1))).unwrap().node, NODE);
    assert_eq!(theirs.machine_id(), u64::from(NODE));
}

criterion_group!(benches, check, one_id);
criterion_main!(benches);
