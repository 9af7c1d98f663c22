//! 64-bit, time-ordered IDs (Snowflake IDs) without a database, a clock or a thread of their own.
//!
//! - [`Layout`]: what the bits of an ID mean, parsed from one line of text or taken from a [preset](presets()); reads IDs
//!   ([`Layout::decode`]), makes single ones ([`Layout::compose`]) and the bounds of a range of time
//!   ([`Layout::min_id`], [`Layout::max_id`], [`Layout::last_id_before`]).
//! - [`Slot`]: one atomic word that hands out sequence numbers, each once, to any number of threads or processes.
//! - [`Session`]: which slot generates a session's next ID: its own, or in bulk the one that all sessions share.
//! - [`Origin`]: a layout with node and backend number filled in; turns what a slot issued into IDs.
//! - [`Encoding`]: an ID as text of fixed width that sorts as the IDs do, and back.
//!
//! The caller brings the time and does the waiting. A slot never sleeps and never reads a clock: it is told the time and
//! answers with sequence numbers, or with the time until which to wait, or with the tick that has to be
//! [reserved](Horizon::reserved) first. So all of it can be tested by arithmetic, and model-checked with loom.
//!
//! ```
//! use snowflake_id::{Answer, Horizon, Layout, Origin, Slot, Time};
//!
//! let layout: Layout = "timestamp:41 node:10 sequence:12 tick:1ms epoch:2025-01-01".parse()?;
//! let origin = Origin::new(layout, 7, 0)?;
//! let slot = Slot::new();
//!
//! // 2025-06-01T12:00:00.5Z, as a clock would say it.
//! let clock = Time::from_unix_micros(1_748_779_200_500_000);
//! let horizon = Horizon {
//!     now: layout.tick_at(clock)?,
//!     max_borrow: 1_000,
//!     reserved: layout.tick_above(layout.last_id()),
//! };
//! let id = match slot.next(layout.sequence_bits(), horizon) {
//!     Answer::Issued(run) => origin.id(run.tick, run.first),
//!     Answer::Wait { until } => panic!("ask again at {}", layout.time_of(until)),
//!     Answer::Reserve { tick } => panic!("reserve {} first", layout.time_of(tick)),
//! };
//!
//! let parts = layout.decode(id)?;
//! assert_eq!(parts.time, clock);
//! assert_eq!(parts.node, 7);
//! assert_eq!(
//!     layout.to_string(),
//!     "timestamp:41 node:10 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What keeps IDs apart
//!
//! Two IDs of the same slot differ because the slot's word only grows ([`Slot`] has the table). Two IDs of different
//! slots differ in their backend number, two of different servers in their node number. A slot forgets when its memory
//! goes: whoever makes IDs across restarts keeps a bound on disk and never passes a [`Horizon::reserved`] above it
//! ([`Layout::first_id_of`], [`Layout::tick_of`]), and raises the slots to it at the start
//! ([`Slot::raise_to`], [`Layout::tick_above`]).

#![forbid(unsafe_code)]

mod bounds;
mod id;
mod layout;
mod pace;
mod session;
mod slot;
mod text;
mod time;

pub use bounds::{Bound, Bounds, BoundsError};
pub use id::SnowflakeId;
pub use layout::{
    ComposeError, DecodeError, FieldBits, FieldError, Layout, LayoutError, Origin, Parts, Preset,
    TimeError, presets,
};
pub use pace::{Limits, Now, Pace};
pub use session::{Place, Session};
pub use slot::{Answer, Horizon, Run, Slot};
pub use text::{Encoding, IdText, TextError, UnknownEncoding};
pub use time::{Tick, Time};
