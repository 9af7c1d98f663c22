//! Tests on real servers, as a client sees them, in a folder for each subject.
//!
//! One program, so that `initdb` runs once for each tree and all tests share
//! the threads. `cargo test -p snowflake-tests migration::` runs a folder,
//! `mark::` a module.

mod faults;
mod first_use;
mod ids;
mod migration;
mod new_rows;
mod nodes;
mod reading;
mod rights;
mod settings;
mod sql;

mod documents;
mod dumps;
mod harness;
mod support;
mod upgrade;
