//! Tests on real servers, as a client sees them; a module for each thing that
//! is promised.
//!
//! One program, so that `initdb` runs once for each tree and all tests share
//! the threads; a module's are `cargo test -p snowflake-tests MODULE::`.

mod harness;

// IDs are made, and none comes twice.
mod bulk;
mod copy;
mod exhaustion;
mod fields;
mod footprint;
mod statements;
mod uniqueness;

// Whatever happens to the clock, the server, the mark.
mod clock_restarts;
mod clock_steps;
mod crash;
mod databases;
mod failover;
mod layout_change;
mod mark;
mod soak;

// What people set, get wrong and read.
mod documents;
mod errors;
mod settings;

// The ID as data.
mod partitions;
mod ranges;
mod reading;

// Replacing serial columns, in a maintenance window and online.
mod audit;
mod migration;
mod migration_interrupted;
mod migration_refusals;
mod migration_rights;
mod migration_servers;
mod online_interrupted;
mod online_load;
mod online_migration;
mod online_servers;
mod online_zoo;

// Nobody gains a right by it.
mod rights;
mod rights_grants;
mod rights_mark;
mod rights_owner;
mod rights_planted;
mod upgrade;
