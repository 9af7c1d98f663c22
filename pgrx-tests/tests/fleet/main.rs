//! Several servers at once, with the programs that people run them with: these
//! tests take minutes, and `make test-servers` runs them. What takes seconds is
//! among the tests of one server.
//!
//! Each part names the version of PostgreSQL that it is run on
//! (scripts/test-servers).

mod logical;
mod monitoring;
mod new_rows;
mod patroni;
mod shards;
mod support;
