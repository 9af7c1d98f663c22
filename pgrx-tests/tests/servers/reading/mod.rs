//! IDs as data: their bits, ranges of time, partitions, the audit of a table.

mod audit;
mod fields;
mod fuzz;
mod partition_calls;
mod partitions;
mod retention;
mod time_ranges;
