//! Servers that issue snowflake IDs, with everything around them simulated: clocks, disks, the
//! scheduler, crashes, promotions, backups, dumps.
//!
//! The sessions run [the protocol](snowflake_id::protocol) itself, the code that the extension runs.
//! Each of its questions is a point at which other sessions continue, or the server ends. Whatever
//! happens is a [choice](choices::Choices), and a history is the list of its choices: the same seed is
//! the same history, and one that fails is made shorter by leaving choices out
//! ([`shrink`](shrink::shrink)).
//!
//! ```text
//! choices     the choices of a history: from a seed, or given
//! world       true time, steps, sleep; what happened
//! server      a data directory and what runs on it: pages, log, shared memory, recovery
//! session     a session's view of its server: what the protocol asks for
//! transactions  the numbers of transactions, and what a snapshot sees
//! work        what sessions do: transactions, readers, heartbeats, administration
//! faults      what happens to servers
//! lineage     what has been issued
//! checks      what must hold
//! history     one history from its beginning to its end
//! instance    small instances, all of whose histories are explored
//! played      histories that a real server plays, too
//! protection  what can be taken away, to see that it is missed
//! traced      what a real server did, step by step, as the simulator would
//! shrink      the shortest history that still fails
//! without_library   the generator of `sql/without_library.sql`, by a model of its own
//! ```

pub mod checks;
pub mod choices;
pub mod fault;
pub mod faults;
pub mod fleet;
pub mod history;
pub mod instance;
pub mod lineage;
pub mod played;
pub mod protection;
pub mod server;
pub mod session;
pub mod shrink;
pub mod traced;
pub mod transactions;
pub mod without_library;
pub mod work;
pub mod world;
