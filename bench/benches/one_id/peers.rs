//! The generators that are compared: ours, and those of other crates that one can share between threads.
//!
//! Every function makes a generator and gives it back as a closure that makes one complete ID: time, node, sequence. Any
//! number of threads may call it; `check` in `main.rs` lets four do so and looks for duplicates. Where a crate answers
//! "not now" (a tick used up, a swap lost, a clock that seems to step back because another thread was faster), the
//! closure asks again until there is an ID, as a caller would have to.
//!
//! | crate | shared state | clock | sequence used up |
//! |---|---|---|---|
//! | `ferroid`, atomic | one word, compare-and-swap; a lost swap is the caller's to repeat | given | the caller waits |
//! | `ferroid`, lock | `std::sync::Mutex` | given, read before the lock | the caller waits |
//! | `snowflake_me` | one word, compare-and-swap | its own or given (a boxed closure) | spins, then yields |
//! | `snowflake-ng` | one word, compare-and-swap | given | sleeps (a future) |
//! | `snowflaked` | one word, compare-and-swap | its own | spins |
//! | `idgen_rs` | one word, compare-and-swap | its own | spins |
//! | `snowdon`, lock-free | one word, compare-and-swap | its own | an error |
//!
//! `ferroid` is built with its feature `cache-padded`, which gives its state a cache line of its own as ours has one.
//! `snowflake-ng` has a function that isn't async too, which enters an executor for every ID; here its future is polled
//! directly, which is faster.
//!
//! Left out: `snowcloud`, `scru64`, `sonyflake` and the blocking function of `snowdon`, which never were the fastest;
//! crates whose generator takes `&mut self`, so that the mutex would be the benchmark's (`snowgen`,
//! `snowflake-rs`, `rsnowflake`); `snowflake-id-generator`, which takes an async mutex for every ID; and
//! `snowflake-rs-impl`, which takes criterion 0.3 and clap 2 with it as ordinary dependencies.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ferroid::generator::{AtomicSnowflakeGenerator, LockSnowflakeGenerator};
use ferroid::id::SnowflakeTwitterId;
use ferroid::time::TimeSource;
use snowflake_id::{Allowance, Answer, Identity, Layout, Slot, Tick, Time};

use crate::clock;

/// Every generator is this node.
pub const NODE: u16 = 33;

/// What a backend of ours has at hand.
pub struct Ours {
    slot: Slot,
    identity: Identity,
    max_borrow: u64,
    reserved: Tick,
}

impl Ours {
    /// A slot in Twitter's layout, with ticks of a millisecond since 1970. The compiler doesn't know the layout: it is
    /// parsed.
    pub fn new() -> Self {
        let layout: Layout = "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01"
            .parse()
            .expect("it is a layout");
        Self {
            slot: Slot::new(),
            identity: Identity::new(layout, NODE.into()).expect("10 bits hold it"),
            max_borrow: 1_000,
            reserved: layout.end_tick(),
        }
    }

    /// One ID at the tick that `tick` says, asked again where the slot is too far ahead of it: a thread that was
    /// interrupted between the two comes with an old one.
    // The compiler inlines the peers' generators, each of which is used once for every time source; this one it would
    // call.
    #[inline(always)]
    pub fn next(&self, tick: impl Fn() -> u64) -> u64 {
        loop {
            let allowance = Allowance {
                now: Tick::new(tick()),
                max_borrow: self.max_borrow,
                reserved: self.reserved,
            };
            match self
                .slot
                .next(self.identity.layout().sequence_bits(), allowance)
            {
                Answer::Issued(run) => {
                    return self.identity.id(0, run.tick, run.first).get() as u64;
                }
                Answer::Wait { .. } => std::hint::spin_loop(),
                Answer::Reserve { tick } => unreachable!("{tick} is within the layout"),
                Answer::Closed => unreachable!("no slot is closed"),
            }
        }
    }

    /// The tick of the system's clock, by [`Layout::tick_at`].
    #[inline(always)]
    pub fn tick(&self) -> u64 {
        let now = Time::from_unix_micros(clock::unix_micros() as i64);
        let tick = self.identity.layout().tick_at(now);
        tick.expect("41 bits of milliseconds end in 2039").get()
    }
}

/// A function as the peers' kinds of time source.
struct Source<F>(F);

impl<F: Fn() -> u64> TimeSource<u64> for Source<F> {
    fn current_millis(&self) -> u64 {
        (self.0)()
    }
}

impl<F: Fn() -> u64> snowflake_ng::TimeProvider for Source<F> {
    fn timestamp(&self) -> u64 {
        (self.0)()
    }
}

pub fn ferroid_atomic(tick: impl Fn() -> u64 + Sync) -> impl Fn() -> u64 + Sync {
    ferroid_atomic_of(Source(tick))
}

pub fn ferroid_atomic_of(time: impl TimeSource<u64> + Sync) -> impl Fn() -> u64 + Sync {
    let generator = AtomicSnowflakeGenerator::<SnowflakeTwitterId, _>::new(NODE.into(), time);
    move || generator.next_id(|_| std::hint::spin_loop()).to_raw()
}

pub fn ferroid_lock(tick: impl Fn() -> u64 + Sync) -> impl Fn() -> u64 + Sync {
    ferroid_lock_of(Source(tick))
}

pub fn ferroid_lock_of(time: impl TimeSource<u64> + Sync) -> impl Fn() -> u64 + Sync {
    let generator = LockSnowflakeGenerator::<SnowflakeTwitterId, _>::new(NODE.into(), time);
    move || {
        let id = generator.try_next_id(|_| std::hint::spin_loop());
        id.expect("the lock is not poisoned").to_raw()
    }
}

pub fn snowflake_me(tick: impl Fn() -> u64 + Send + Sync + 'static) -> impl Fn() -> u64 + Sync {
    let builder = snowflake_me::Snowflake::builder().clock_source(move || tick() as i64);
    snowflake_me_of(builder.start_time(0))
}

/// With its own clock.
pub fn snowflake_me_system() -> impl Fn() -> u64 + Sync {
    snowflake_me_of(snowflake_me::Snowflake::builder())
}

fn snowflake_me_of(builder: snowflake_me::Builder) -> impl Fn() -> u64 + Sync {
    let generator = builder
        .bit_len_time(41)
        .bit_len_data_center_id(0)
        .bit_len_machine_id(10)
        .bit_len_sequence(12)
        .data_center_id(&|| Ok(0))
        .machine_id(&|| Ok(NODE))
        .finalize()
        .expect("63 bits");
    move || generator.next_id().expect("the clock is right").as_u64()
}

pub fn snowflake_ng(tick: impl Fn() -> u64 + Send + Sync) -> impl Fn() -> u64 + Sync {
    snowflake_ng_of(Source(tick))
}

/// With the clock it brings.
pub fn snowflake_ng_system() -> impl Fn() -> u64 + Sync {
    snowflake_ng_of(snowflake_ng::provider::StdProvider)
}

fn snowflake_ng_of(time: impl snowflake_ng::TimeProvider + Send + Sync) -> impl Fn() -> u64 + Sync {
    let node = snowflake_ng::SnowflakeConfiguration::with_identifier(NODE.into());
    let generator = snowflake_ng::SnowflakeGenerator::with_cfg(node);
    move || {
        let mut id = pin!(generator.assign(&time));
        loop {
            match id.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(id) => return i64::from(id) as u64,
                Poll::Pending => std::hint::spin_loop(),
            }
        }
    }
}

pub fn snowflaked() -> impl Fn() -> u64 + Sync {
    let generator = snowflaked::sync::Generator::new(NODE);
    move || generator.generate()
}

pub fn idgen_rs() -> impl Fn() -> u64 + Sync {
    let options = idgen_rs::IGOptions::builder(NODE)
        .worker_id_bit_length(10)
        .seq_bit_length(12)
        .build();
    let generator = idgen_rs::FastIdGenerator::new(&options);
    move || generator.next_id()
}

struct Snowdon;

impl snowdon::MachineId for Snowdon {
    fn machine_id() -> u64 {
        NODE.into()
    }
}

impl snowdon::Epoch for Snowdon {
    fn millis_since_unix() -> u64 {
        1_735_689_600_000 // 2025-01-01T00:00:00Z
    }
}

type SnowdonGenerator = snowdon::Generator<snowdon::ClassicLayout<Snowdon>, Snowdon>;

pub fn snowdon_lock_free() -> impl Fn() -> u64 + Sync {
    let generator = SnowdonGenerator::default();
    move || {
        loop {
            match generator.generate_lock_free() {
                Ok(id) => return id.into_inner(),
                Err(_) => std::hint::spin_loop(),
            }
        }
    }
}
