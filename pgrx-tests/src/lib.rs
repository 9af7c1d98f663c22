//! Real PostgreSQL servers for the tests and the benchmarks of the
//! snowflake extension, and what a client needs to check the IDs they generate.
//!
//! A server:
//! - [`installation`]: the PostgreSQL tree that it is started from
//! - [`os_user`]: the OS user that it runs as
//! - [`scratch`]: its private directory, which is always removed
//! - [`processes`]: its processes, and how to kill them
//! - [`server`]: its data directory: configuration, start, stop, crash
//! - [`cluster`]: a throwaway server for one test
//! - [`time_limit`]: its time limit
//! - [`clock`]: its clock, which a test sets
//! - [`forgetful_disk`]: its disk, which loses what was not flushed
//! - [`tier`]: how much a run is to prove
//! - [`program`]: programs beside servers
//! - [`patroni`]: a cluster that Patroni manages
//! - [`replica`]: standbys, base backups, point-in-time recovery, dumps, `pg_upgrade`
//!
//! What clients do and receive:
//! - [`ids`]: fetching IDs, their fields, duplicates
//! - [`query`]: statements of a session and their answers
//! - [`server_error`]: errors of the server
//! - [`workload`]: sessions that request IDs without a pause
//! - [`soak`]: a random mix of faults against such sessions
//! - [`peers`]: other functions that make IDs, under the same check
//! - [`new_rows`]: readers of new rows beside writers and faults
//! - [`range_fuzz`]: statements with and without the planner's ranges
//! - [`attack`]: roles that try to gain privileges
//! - [`document`]: what the documents print
//!
//! Migrations:
//! - [`migration`]: plans, dumps of the schema, checksums of the rows
//! - [`online`]: the steps of online migrations
//! - [`online_load`]: online migrations beside writers
//! - [`corpus`]: tables with the patterns of real schemas, and what depends on their keys
//!
//! Updates of the extension:
//! - [`next_version`]: a made-up version to update to
//!
//! - [`threads`], [`wait`]: stopping threads, and waiting
//! - [`prelude`]: what most tests use
//!
//! `PG_CONFIG` names the `pg_config` of the tree under test, in which the extension
//! is installed, in the test build (the cargo feature `testing`). With
//! `SNOWFLAKE_EARLIER_PG_CONFIG`, `pg_upgrade` starts from that tree, of an earlier
//! version. Nothing is written into any of these trees. The tests print what they
//! counted if `--nocapture` is given.
//!
//! Nothing here uses the extension's own code, but for the comparison of a server with the
//! simulator. The fields of an ID are decoded by separate arithmetic, which would reveal a
//! mistake in the algorithm crate.

pub mod attack;
pub mod clock;
pub mod cluster;
pub mod corpus;
pub mod document;
pub mod forgetful_disk;
pub mod ids;
pub mod installation;
pub mod migration;
pub mod new_rows;
pub mod next_version;
pub mod online;
pub mod online_load;
pub mod os_user;
pub mod patroni;
pub mod peers;
pub mod prelude;
pub mod processes;
pub mod program;
pub mod query;
pub mod range_fuzz;
pub mod replica;
pub mod scratch;
pub mod server;
pub mod server_error;
pub mod soak;
pub mod threads;
pub mod tier;
pub mod time_limit;
pub mod wait;
pub mod workload;

pub use cluster::{Cluster, ClusterBuilder};
pub use installation::Installation;
pub use server::{Server, Stop};
