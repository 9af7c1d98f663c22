//! Generated IDs do not repeat, in whatever statement and at whatever rate.

mod bulk;
mod copy;
mod exhaustion;
mod statements;
mod uniqueness;
