//! IDs as data: their fields, ranges of time, partitions, the audit of a table.

mod audit;
mod decode;
mod fields;
mod fuzz;
mod partition_calls;
mod partitions;
mod ranges;
mod retention;
mod time_ranges;
