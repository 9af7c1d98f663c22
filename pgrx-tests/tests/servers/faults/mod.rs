//! What happens to clocks, processes, disks and servers repeats no ID.

mod clock_restarts;
mod clock_steps;
mod crash;
mod databases;
pub(crate) mod failover;
pub(crate) mod mark;
mod memory;
mod soak;
