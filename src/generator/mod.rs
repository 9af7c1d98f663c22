//! How an ID comes about.
//!
//! ```text
//! next        the fast path: an ID of this session's slot
//! next_slow   the slow path: resolves, reserves, waits
//! session     what this process has resolved
//! open_transaction   from which ID on this transaction has drawn
//! reading     what time it is for generating IDs
//! reserve     what is reserved, and how to reserve more
//! mark        the reservation in the write-ahead log, for a database
//! floor       the same for the server
//! heartbeat   a reservation without an ID
//! node_conflict   a second server with this one's node number
//! admin       what superusers set right: the start and the clock
//! ```

pub mod accepted_layout;
mod admin;
mod counter;
pub mod floor;
mod heartbeat;
mod last_id;
pub mod log;
pub mod mark;
mod next;
mod next_slow;
pub mod node_conflict;
pub mod open_transaction;
mod reading;
mod reserve;
pub mod session;
pub mod stats;
mod wait;

pub use admin::{accept_clock, restore_mark, start_after};
pub use heartbeat::reserve_present;
pub use last_id::get as last_id;
pub use next::{Batch, forget_last_id, issued, next, next_batch};
