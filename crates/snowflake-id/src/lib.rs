//! 64-bit, time-ordered IDs (Snowflake IDs) without a database, a clock or a thread of their own.
//!
//! - [`Layout`]: what the bits of an ID mean, parsed from one line of text or taken from a
//!   [preset](presets()); reads IDs ([`Layout::decode`]), composes single ones
//!   ([`Layout::compose`]) and the bounds of a range of time ([`Layout::min_id`],
//!   [`Layout::max_id`], [`Layout::last_id_before`]).
//! - [`Slot`]: one atomic word that issues sequence numbers, each once, to any number of threads or
//!   processes.
//! - [`SlotWalk`]: which slot issues a session's next ID: its own, or in bulk the one that all
//!   sessions share.
//! - [`Identity`]: a layout with the node number filled in; turns what a slot issued into IDs.
//! - [`node_conflict`]: whether an ID was issued by a second server with the same node number.
//! - [`node_source`]: the node number in a host name, an environment variable or an address.
//! - [`resolved`]: below which ID no open transaction will add a row.
//! - [`SlewedClock`]: what time it is after the wall clock was set back.
//! - [`Encoding`]: an ID as text of fixed width that sorts as the IDs do, and back.
//!
//! The caller provides the time and does the waiting. A slot never sleeps and never reads a clock:
//! it is given the time, and answers with sequence numbers, with the time until which to wait, or
//! with the tick that has to be [reserved](Allowance::reserved) first. So all of it can be tested
//! by arithmetic, and model-checked with loom.
//!
//! ```
//! use snowflake_id::{Allowance, Answer, Identity, Layout, Slot, Time};
//!
//! let layout: Layout = "timestamp:41 node:10 sequence:12 tick:1ms epoch:2025-01-01".parse()?;
//! let identity = Identity::new(layout, 7)?;
//! let slot = Slot::new();
//!
//! // 2025-06-01T12:00:00.5Z, as a clock would show it.
//! let clock = Time::from_unix_micros(1_748_779_200_500_000);
//! let allowance = Allowance {
//!     now: layout.tick_at(clock)?,
//!     max_borrow: 1_000,
//!     reserved: layout.tick_above(layout.last_id()),
//! };
//! let id = match slot.next(layout.sequence_bits(), allowance) {
//!     Answer::Issued(run) => identity.id(0, run.tick, run.first),
//!     Answer::Wait { until } => panic!("call again at {}", layout.time_of(until)),
//!     Answer::Reserve { tick } => panic!("reserve {} first", layout.time_of(tick)),
//!     Answer::Closed => panic!("nothing is issued any more"),
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
//! Two IDs of the same slot differ because the slot's word only grows ([`Slot`] has the table). Two
//! IDs of different slots differ in their backend number, two of different servers in their node
//! number. A slot is lost with its memory. So a server that issues IDs across restarts keeps a
//! bound on disk and never passes an [`Allowance::reserved`] above it ([`Layout::first_id_of`],
//! [`Layout::tick_of`]). At the start it raises the slots to that bound ([`Slot::raise_to`],
//! [`Layout::tick_above`]).

#![forbid(unsafe_code)]

mod bounds;
mod id;
mod identity;
mod layout;
pub mod node_conflict;
pub mod node_source;
#[cfg(not(loom))]
pub mod protocol;
pub mod resolved;
mod slewed_clock;
mod slot;
mod slot_walk;
mod text;
mod time;

pub use bounds::{Bound, Bounds, BoundsError};
pub use id::SnowflakeId;
pub use identity::Identity;
pub use layout::{
    ComposeError, DecodeError, FieldBits, FieldError, Layout, LayoutError, Parts, Preset,
    TimeError, presets,
};
pub use slewed_clock::{Limits, Now, SlewedClock};
pub use slot::{Allowance, Answer, Borrow, Run, Slot};
pub use slot_walk::{Position, SlotWalk};
pub use text::{Encoding, IdText, TextError};
pub use time::{BootTime, ClockOffset, Tick, Time, WallTime};

/// The code of the README is tested, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
