//! How the threads of a test learn that it has ended.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets the flag when it is dropped. Threads of a scope then stop whichever way
/// the scope is left. Otherwise the scope would wait forever for its threads
/// after an error.
#[derive(Debug)]
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}
