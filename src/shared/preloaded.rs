//! Shared memory of a library that is preloaded: requested and made at the server's start.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use parking_lot::Mutex;
use pgrx::{pg_guard, pg_sys};

use super::{lengths, locks};
use crate::settings;

/// The hooks that other libraries have set before; ours call them.
struct PreviousHooks {
    request: pg_sys::shmem_request_hook_type,
    startup: pg_sys::shmem_startup_hook_type,
}

static PREVIOUS: Mutex<PreviousHooks> = Mutex::new(PreviousHooks {
    request: None,
    startup: None,
});

/// Set in the postmaster; every process inherits it.
static IS_PRELOADED: AtomicBool = AtomicBool::new(false);

/// Whether the library is preloaded.
pub fn is_preloaded() -> bool {
    IS_PRELOADED.load(Relaxed)
}

/// Requests the memory; only while `shared_preload_libraries` is loaded.
pub fn init() {
    IS_PRELOADED.store(true, Relaxed);
    // SAFETY: the postmaster is single-threaded and runs this once; the hooks
    // are called later, by Postgres, with the previous ones kept in the chain.
    unsafe {
        *PREVIOUS.lock() = PreviousHooks {
            request: pg_sys::shmem_request_hook,
            startup: pg_sys::shmem_startup_hook,
        };
        pg_sys::shmem_request_hook = Some(request);
        pg_sys::shmem_startup_hook = Some(startup);
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn request() {
    // Not held while the hook runs.
    let previous = PREVIOUS.lock().request;
    // SAFETY: this is the hook in which both requests are allowed.
    unsafe {
        if let Some(previous) = previous {
            previous();
        }
        pg_sys::RequestAddinShmemSpace(lengths(settings::layout()).size());
        locks::request();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn startup() {
    let previous = PREVIOUS.lock().startup;
    // SAFETY: runs in the postmaster when shared memory has been created, before
    // any backend exists; `AddinShmemInitLock` (number 21 in every supported
    // version) guards the arrays' creation, as Postgres' manual asks.
    unsafe {
        if let Some(previous) = previous {
            previous();
        }
        let init_lock = &raw mut (*pg_sys::MainLWLockArray.add(21)).lock;
        pg_sys::LWLockAcquire(init_lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        create();
        pg_sys::LWLockRelease(init_lock);
    }
}

/// Creates the arrays, fills them, and keeps where they are.
///
/// # Safety
/// In `shmem_startup_hook`, with `AddinShmemInitLock` held.
unsafe fn create() {
    let mut found = false;
    // SAFETY: per this function's contract; the tranche was requested. No process uses what is
    // new yet.
    unsafe {
        let arrays = lengths(settings::layout()).arrays(locks::requested(), |name, size| {
            let start = pg_sys::ShmemInitStruct(name.as_ptr(), size, &mut found).cast::<u8>();
            if !found && !start.is_null() {
                start.write_bytes(0, size);
            }
            start
        });
        if !found {
            arrays.fill(settings::identity());
        }
        arrays.keep();
    }
}
