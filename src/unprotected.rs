//! For tests only: takes a protection away, so that a test can show that it
//! would notice. The cargo feature `testing` is never in an installed build.
//!
//! | `snowflake.unprotected` | what then happens, as in other generators      |
//! |-------------------------|------------------------------------------------|
//! | `slot`                  | each process has a slot of its own             |
//! | `mark`                  | the mark raises no slot after a start          |
//! | `clock`                 | IDs follow the wall clock wherever it goes     |
//! | `flush`                 | the mark's record is written, and not flushed  |
//! | `range_side`            | a range ends on the wrong side of a time       |
//! | `range_nulling`         | a range takes no part in outer joins           |
//! | `range_zone`            | a range is as if clocks were never changed     |
//! | `range_children`        | no one looks how children are arranged         |
//! | `query_id`              | a statement that may get a range is another one |
//! | `extra_query`           | a table is read while a query of it is planned |
//! | `range_index`           | an index gets a range only if it exists        |

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicI64};

use parking_lot::Mutex;
use pgrx::Spi;
use snowflake_id::Slot;

use crate::clock;
use crate::pg::catalog::Class;
use crate::pg::plan_tree::BaseRelation;
use crate::settings;

/// Whether this protection was taken away.
pub fn is(what: &str) -> bool {
    static TAKEN: Mutex<Option<String>> = Mutex::new(None);
    TAKEN.lock().get_or_insert_with(settings::unprotected) == what
}

/// What other extensions have to notice; whether the relation gets no range.
pub fn disturbs_neighbours(relation: BaseRelation<'_>) -> bool {
    static IS_READING: AtomicBool = AtomicBool::new(false);
    if is("query_id") {
        relation.change_query_id();
    }
    if is("extra_query") && !IS_READING.swap(true, Relaxed) {
        let name =
            Class::of(relation.table()).map(|class| class.name.to_string_lossy().into_owned());
        if let Some(name) = name {
            Spi::run(&format!("SELECT FROM {name} LIMIT 0")).expect("a query");
        }
        IS_READING.store(false, Relaxed);
    }
    is("range_index") && !relation.indexes().any(|index| Class::of(index).is_some())
}

/// Whether [`slots`] has some: the session then stays in its own.
pub fn has_own_slot() -> bool {
    is("slot") || is("clock")
}

/// The slots to use in the place of the shared ones.
pub fn slots(count: usize) -> Option<&'static [Slot]> {
    static MINE: OnceLock<Vec<Slot>> = OnceLock::new();
    if is("slot") {
        return Some(MINE.get_or_init(|| new_slots(count)));
    }
    is("clock").then(|| forgetful_slots(clock::wall().unix_micros(), count))
}

/// Slots that forget what they issued whenever the clock steps back.
fn forgetful_slots(wall: i64, count: usize) -> &'static [Slot] {
    static CURRENT: Mutex<Option<&'static [Slot]>> = Mutex::new(None);
    static SEEN: AtomicI64 = AtomicI64::new(i64::MIN);
    let before = SEEN.swap(wall, Relaxed);
    let mut current = CURRENT.lock();
    match *current {
        Some(slots) if wall >= before - 1_000 => slots,
        _ => current.insert(new_slots(count).leak()),
    }
}

fn new_slots(count: usize) -> Vec<Slot> {
    (0..count).map(|_| Slot::new()).collect()
}
