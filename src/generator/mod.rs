//! How an ID comes about.
//!
//! ```text
//! next        the fast path: an ID of this session's slot
//! next_slow   the slow path
//! session     what this process has resolved
//! open_transaction   from which ID on this transaction has drawn
//! process     carries out what the protocol asks for (`crates/snowflake-id/src/protocol`)
//! storage     the pages of the mark and the floor, and the log
//! watched     the same in the test build: traces, places to stop at, protections taken away
//! node_conflict   a second server with this one's node number
//! admin       what superusers set right: the start and the clock
//! ```

pub mod accepted_layout;
mod admin;
mod counter;
mod last_id;
pub mod log;
mod next;
mod next_slow;
pub mod node_conflict;
pub mod open_transaction;
pub mod process;
pub mod session;
pub mod stats;
pub mod storage;
#[cfg(feature = "testing")]
mod watched;

pub use admin::{accept_clock, restore_mark, start_after};
pub use last_id::get as last_id;
pub use next::{Batch, forget_last_id, issued, next, next_batch};
pub use next_slow::reserve_present;
