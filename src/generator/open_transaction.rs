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
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};

use pgrx::pg_sys;
use snowflake_id::resolved::Opening;
use snowflake_id::{SnowflakeId, Tick};

#[cfg(feature = "testing")]
use crate::crash_points;
use crate::generator::session::Session;
use crate::pg;
use crate::shared::{self, Shared, Transaction};

/// Whether this process has drawn an ID in the current transaction.
static HAS_DRAWN: AtomicBool = AtomicBool::new(false);

/// Starts to watch how transactions end, the present one included. Also
/// processes that draw nothing watch it: their parallel workers may.
pub fn init() {
    pg::callbacks::on_transaction_end(at_end);
}

/// Whether this process has drawn an ID in the current transaction.
#[inline]
pub fn has_drawn() -> bool {
    HAS_DRAWN.load(Relaxed)
}

/// Called before the first ID of a transaction is drawn, when the clock shows the tick
/// `now`. Returns the tick at or after which the ID has to be. Called again if drawing
/// failed.
#[inline]
pub fn begin(session: &Session, now: Tick) -> (DrawingTransaction, Tick) {
    let layout = session.layout();
    let present = layout.first_id_of(now.min(layout.last_tick()));
    let Some(own) = of_leader() else {
        return (DrawingTransaction(None), now);
    };
    let opening = own.open.begin(
        session.shared.promise(),
        pg::session::database().to_u32(),
        present,
        pg::transaction::is_in_parallel_mode(),
    );
    let opened = DrawingTransaction(Some((own, opening)));
    (opened, now.max(layout.tick_of(opening.least)))
}

/// A transaction that is about to draw its first ID.
#[must_use]
pub struct DrawingTransaction(Option<(&'static Transaction, Opening)>);

impl DrawingTransaction {
    /// Called with the first ID that was drawn.
    #[inline]
    pub fn drew(self, id: SnowflakeId) {
        if let Some((own, opening)) = self.0 {
            own.open.drew(opening, id);
        }
        HAS_DRAWN.store(true, Relaxed);
    }
}

/// The word of the backend whose transaction this process takes part in.
#[inline]
fn of_leader() -> Option<&'static Transaction> {
    static OF_LEADER: OnceLock<Option<&'static Transaction>> = OnceLock::new();
    *OF_LEADER.get_or_init(|| {
        shared::known()?
            .backends()
            .get(pg::process::leader_number()?)
    })
}

/// This process's own word; `None` before it has found shared memory.
#[inline]
fn own() -> Option<&'static Transaction> {
    static OWN: OnceLock<Option<&'static Transaction>> = OnceLock::new();
    let shared = shared::known()?;
    *OWN.get_or_init(|| shared.backends().get(pg::process::backend_number()?))
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
            if has_drawn() {
                crash_points::at(match event {
                    XACT_EVENT_PREPARE => c"snowflake-prepared",
                    _ => c"snowflake-ended",
                });
            }
            HAS_DRAWN.store(false, Relaxed);
            if let Some(own) = own() {
                own.open.end();
            }
        }
        XACT_EVENT_PARALLEL_COMMIT | XACT_EVENT_PARALLEL_ABORT => {
            HAS_DRAWN.store(false, Relaxed);
        }
        // A parallel worker may have made the memory, and published here. An error is possible
        // only now. (If the transaction fails, what was published is cleared after the next one.)
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

/// Gives the bound of this transaction a place among the prepared ones. The backend's word
/// is cleared later, when the transaction is prepared. A transaction without IDs is known
/// too: that it has none.
fn hand_on(shared: Shared, own: &Transaction) {
    /// Where the last free place was found.
    static LAST: AtomicUsize = AtomicUsize::new(0);
    let places = shared.prepared();
    let xid = pg::transaction::id();
    let _lock = shared.lock_prepared();
    let start = LAST.load(Relaxed);
    let free = (0..places.len())
        .map(|offset| (start + offset) % places.len())
        .find(|&number| {
            let xid = places[number].xid.load(Relaxed);
            xid == 0 || !pg::transaction::is_running(xid)
        });
    // There are as many as can be prepared or on the way there.
    let Some(number) = free else { return };
    LAST.store(number + 1, Relaxed);
    let place = &places[number];
    // A reader that has seen the former transaction ID finds that it has changed.
    place.xid.store(0, Release);
    place.open.end();
    if let Some(bound) = own.open.first_id(pg::session::database().to_u32()) {
        place.open.take(pg::session::database().to_u32(), bound);
    }
    place.xid.store(xid, Release);
}
