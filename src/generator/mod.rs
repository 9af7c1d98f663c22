//! How an ID comes about.

pub mod accepted_layout;
mod counter;
pub mod floor;
mod log;
pub mod mark;
mod next;
pub mod stats;
mod wait;

pub use next::{Batch, accept_clock, next, next_batch, start_after};
