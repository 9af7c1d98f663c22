//! What happens to clocks, processes, disks and servers repeats no ID.

mod clock_steps;
mod conformance;
mod crash;
mod crash_points;
mod databases;
mod disk;
pub(crate) mod failover;
pub(crate) mod mark;
mod memory;
mod soak;
mod synchronization;
mod without_library;
