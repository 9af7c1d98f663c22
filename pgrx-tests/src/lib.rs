//! Real PostgreSQL servers for the tests of the snowflake extension, and what
//! a client needs to count the IDs that come out of them.
//!
//! - [`installation`]: the PostgreSQL tree a server is started from
//! - [`account`]: the operating-system account it runs as
//! - [`attack`]: roles that try to gain rights
//! - [`scratch`]: the private directory it lives in, removed whatever happens
//! - [`processes`]: its processes, and how to kill them
//! - [`server`]: one data directory and its server: start, stop, crash
//! - [`watchdog`]: an end for servers that live too long
//! - [`clock`]: a server's clock that a test moves
//! - [`cluster`]: a throwaway server for one test
//! - [`replica`]: standbys, base backups, point-in-time recovery, dumps, `pg_upgrade`
//! - [`demand`]: sessions that never stop asking for IDs
//! - [`soak`]: a random mix of faults against sessions that never stop
//! - [`threads`]: how a test's threads learn that it is over
//! - [`ids`]: IDs as a client receives them: fetching, fields, duplicates
//! - [`migration`]: plans, dumps of the schema, checksums of the rows
//! - [`online`]: the steps of online migrations
//! - [`online_load`]: an online migration beside writers
//! - [`zoo`]: tables that a sequence feeds, of many kinds
//! - [`outcome`]: what a statement answered, as SQLSTATE, message, detail, hint
//!
//! `PG_CONFIG` names the `pg_config` of the tree under test, in which the
//! extension is installed, and `SNOWFLAKE_UNPROTECTED_PG_CONFIG` that of a
//! tree with the build for tests whose protections can be taken away. Nothing
//! is written into either. `make test` sets both; `SNOWFLAKE_EARLIER_PG_CONFIG`
//! may name one of an earlier version, for `pg_upgrade`; the tests print what they
//! counted with `--nocapture`.
//!
//! Nothing here uses the extension's own code: the fields of an ID are taken
//! apart with arithmetic written down a second time, so that a mistake in the
//! algorithm crate can't hide itself.

pub mod account;
pub mod attack;
pub mod clock;
pub mod cluster;
pub mod demand;
pub mod ids;
pub mod installation;
pub mod migration;
pub mod online;
pub mod online_load;
pub mod outcome;
pub mod processes;
pub mod query;
pub mod replica;
pub mod scratch;
pub mod server;
pub mod soak;
pub mod threads;
pub mod wait;
pub mod watchdog;
pub mod zoo;

pub use cluster::{Cluster, ClusterBuilder};
pub use installation::Installation;
pub use server::{Server, Stop};
