//! `snowflake`: 64-bit, time-ordered, decodable primary keys that do not repeat.
//!
//! A thin SQL surface over the crate `snowflake-id`, which has the algorithm. The
//! functions in [`sql`] get IDs from [`generator`], which combines the settings,
//! the shared slots, the clocks, the mark in the write-ahead log, and the wait.
//! [`pg`] has safe wrappers of Postgres' C interface.

use pgrx::pg_guard;

mod boundary;
mod catalog;
mod clock;
mod copy;
#[cfg(feature = "testing")]
mod crash_points;
mod encoding;
mod error;
mod generator;
mod migrate;
mod node_number;
mod owner;
mod pg;
mod ranges;
mod records;
mod resolved;
mod restore;
mod server_file;
mod settings;
mod shared;
mod sql;
#[cfg(feature = "testing")]
mod trace;
#[cfg(feature = "testing")]
mod unprotected;
mod utility;

pgrx::pg_module_magic!(name, version);

/// Called when the library is loaded: by the postmaster if it is preloaded, otherwise by each
/// session with its first call. Before PostgreSQL 17, decoding works in such a session, and
/// generating fails with a hint.
#[allow(non_snake_case)]
#[pg_guard]
pub extern "C-unwind" fn _PG_init() {
    pg::server::forgo_backtraces();
    let is_preloading = pg::server::is_preloading();
    if !is_preloading && cfg!(not(feature = "dsm_registry")) {
        return;
    }
    #[cfg(feature = "testing")]
    {
        crash_points::init();
        trace::init();
    }
    clock::init();
    if is_preloading {
        #[cfg(feature = "testing")]
        pgrx::log!("snowflake: this library was built for tests, its IDs are not to be kept");
        settings::init();
        shared::init_preloaded();
    } else {
        // First: it may raise an error, and then nothing was set up.
        shared::init_in_session();
        generator::open_transaction::clear_at_exit();
        #[cfg(feature = "dsm_registry")]
        settings::init_in_session();
    }
    ranges::init();
    generator::open_transaction::init();
    copy::init();
    utility::init();
}
