//! From which ID on this transaction has drawn: what `snowflake_resolved_id()` reads of
//! every backend.
//!
//! With the first ID of a transaction, a process publishes a lower bound in its backend's
//! word ([`snowflake_id::resolved`]). The word is cleared when the transaction has ended
//! for all others. So a transaction with IDs pays two writes to a cache line of its own and
//! a fence, and each further ID one comparison.
//!
//! A parallel worker publishes in its leader's word: what it draws, its leader inserts. A
//! prepared transaction gets a place of its own, which it leaves when it has ended. A
//! restart forgets all of them, and those that are still prepared then are not known
//! ([`crate::resolved`]).

use std::sync::OnceLock;
use std::sync::atomic::AtomicUsize;

use pgrx::pg_sys;
use snowflake_id::protocol::now;
use snowflake_id::resolved::OpenTransaction;

#[cfg(feature = "testing")]
use crate::crash_points;
use crate::generator::session::MEMORY;
use crate::pg;
use crate::shared::{self, Shared};

/// Starts to watch how transactions end, the present one included. Also
/// processes that draw nothing watch it: their parallel workers may.
pub fn init() {
    pg::callbacks::on_transaction_end(at_end);
}

/// For a session that has loaded the library. A parallel worker of it may have made the memory, and its
/// transaction may have failed since, before the session knew of it: what was published is then cleared
/// at the end of its next transaction, or now.
pub fn clear_at_exit() {
    pg::callbacks::before_exit(|| {
        if shared::get().is_some() {
            MEMORY.transaction_ended(own());
        }
    });
}

/// The word of the backend whose transaction this process takes part in.
#[inline]
pub fn of_leader() -> Option<&'static OpenTransaction> {
    static OF_LEADER: OnceLock<Option<&'static OpenTransaction>> = OnceLock::new();
    *OF_LEADER.get_or_init(|| {
        let number = pg::process::leader_number()?;
        Some(&shared::known()?.transactions().backends.get(number)?.open)
    })
}

/// This process's own word; `None` before it has found shared memory.
#[inline]
fn own() -> Option<&'static OpenTransaction> {
    static OWN: OnceLock<Option<&'static OpenTransaction>> = OnceLock::new();
    let shared = shared::known()?;
    *OWN.get_or_init(|| {
        let number = pg::process::backend_number()?;
        Some(&shared.transactions().backends.get(number)?.open)
    })
}

/// Both ends are reported after other processes see that the transaction has ended. A
/// parallel worker's end is not the transaction's.
fn at_end(event: pg_sys::XactEvent::Type) {
    use pg_sys::XactEvent::{
        XACT_EVENT_ABORT, XACT_EVENT_COMMIT, XACT_EVENT_PARALLEL_ABORT, XACT_EVENT_PARALLEL_COMMIT,
        XACT_EVENT_PRE_COMMIT, XACT_EVENT_PRE_PREPARE, XACT_EVENT_PREPARE,
    };
    match event {
        XACT_EVENT_COMMIT | XACT_EVENT_ABORT | XACT_EVENT_PREPARE => {
            #[cfg(feature = "testing")]
            if MEMORY.has_drawn() {
                crash_points::at(match event {
                    XACT_EVENT_PREPARE => c"snowflake-prepared",
                    _ => c"snowflake-ended",
                });
            }
            MEMORY.transaction_ended(own());
        }
        XACT_EVENT_PARALLEL_COMMIT | XACT_EVENT_PARALLEL_ABORT => {
            MEMORY.transaction_ended(None);
        }
        // A parallel worker may have made the memory, and published here. An error is possible
        // only now. (If the transaction fails: [`clear_at_exit`].)
        XACT_EVENT_PRE_COMMIT => drop(shared::get()),
        XACT_EVENT_PRE_PREPARE => {
            if let Some((shared, own)) = shared::get().zip(own()) {
                hand_on(shared, own);
                #[cfg(feature = "testing")]
                crash_points::at(c"snowflake-prepare");
            }
        }
        _ => {}
    }
}

/// This transaction is being prepared.
fn hand_on(shared: Shared, own: &OpenTransaction) {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let (database, xid) = (pg::session::database().to_u32(), pg::transaction::id());
    let _lock = shared.lock_prepared();
    let transactions = shared.transactions();
    now(transactions.hand_on(&shared, own, database, xid, &LAST));
}
