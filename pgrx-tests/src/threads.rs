//! Threads of a test, and how they learn that it is over.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set when it is dropped: whichever way a scope is left, its threads see it.
/// Without, an error between their start and their end would wait for ever.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
