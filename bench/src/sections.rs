//! The sections of the documents, one module for each.

pub mod algorithm;
pub mod calls;
pub mod clients;
pub mod contention;
pub mod copy;
pub mod index;
pub mod inserts;
pub mod large_tables;
pub mod latency;
pub mod new_rows;
pub mod reading;
pub mod servers;
pub mod steady;
pub mod wal;
