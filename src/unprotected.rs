//! For tests only: takes a protection away, so that a test can show that it
//! would notice. The cargo feature `unprotected` is never in an installed build.
//!
//! | `snowflake.unprotected` | what then happens, as in other generators      |
//! |-------------------------|------------------------------------------------|
//! | `slot`                  | each process has a slot of its own             |
//! | `mark`                  | the mark raises no slot after a start          |
//! | `clock`                 | IDs follow the wall clock wherever it goes     |

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicPtr};

use snowflake_id::Slot;

use crate::settings;

/// Whether this protection was taken away.
pub fn is(what: &str) -> bool {
    static TAKEN: OnceLock<String> = OnceLock::new();
    TAKEN.get_or_init(settings::unprotected) == what
}

/// Whether [`slot`] has one: the session then goes to no other.
pub fn has_own_slot() -> bool {
    is("slot") || is("clock")
}

/// The slot to use in the place of the shared one.
pub fn slot(wall: i64) -> Option<&'static Slot> {
    static MINE: Slot = Slot::new();
    if is("slot") {
        return Some(&MINE);
    }
    is("clock").then(|| forgetful_slot(wall))
}

/// A slot that forgets what it issued whenever the clock steps back.
fn forgetful_slot(wall: i64) -> &'static Slot {
    static CURRENT: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());
    static SEEN: AtomicI64 = AtomicI64::new(i64::MIN);
    let before = SEEN.swap(wall, Relaxed);
    let current = CURRENT.load(Relaxed);
    if current.is_null() || wall < before - 1_000 {
        let fresh: &'static mut Slot = Box::leak(Box::new(Slot::new()));
        CURRENT.store(fresh, Relaxed);
        return fresh;
    }
    // SAFETY: leaked above and never freed.
    #[allow(unsafe_code)]
    unsafe {
        &*current
    }
}
