//! Node numbers: where they come from, and servers that have the same one.

mod conflicts;
mod copies;
mod sources;
