//! Only in builds for tests: two numbers from a mapped file are added to what the
//! kernel's clocks show, so that a test can set the wall clock, and let time pass
//! for both clocks, while the server runs. The file is named by the environment
//! variable `SNOWFLAKE_TEST_CLOCK`; without it the clocks are the kernel's.
//!
//! The file has two signed 64-bit numbers, microseconds in native byte order: the
//! time that was made to pass, which is added to both clocks, and the offset of the
//! wall clock. Each is written by one store. So a process that reads the boot clock
//! before and after the wall clock notices a change of the first.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

use libc::{CLOCK_REALTIME, MAP_FAILED, MAP_SHARED, PROT_READ, clockid_t, mmap};

/// The environment variable that names the file.
const VARIABLE: &str = "SNOWFLAKE_TEST_CLOCK";

/// The file's two numbers.
struct Moved {
    passed: AtomicI64,
    offset: AtomicI64,
}

/// Set in the postmaster; every process inherits it with the mapping.
static MOVED: OnceLock<&'static Moved> = OnceLock::new();

/// Maps the file; called once, in the postmaster.
pub fn init() {
    let Some(path) = std::env::var_os(VARIABLE) else {
        return;
    };
    let file = File::open(&path).unwrap_or_else(|error| panic!("{VARIABLE}: {error}"));
    // SAFETY: a new mapping at an address of the kernel's choice. It is never
    // unmapped.
    let address = unsafe {
        mmap(
            ptr::null_mut(),
            size_of::<Moved>(),
            PROT_READ,
            MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert!(
        address != MAP_FAILED,
        "{VARIABLE}: {path:?} cannot be mapped"
    );
    // SAFETY: the mapping is aligned to a page, and as long as the structure. Both
    // fields are only ever accessed atomically, by the test that writes them too.
    let _ = MOVED.set(unsafe { &*address.cast::<Moved>() });
}

/// What is to be added to the reading of a clock, microseconds.
pub fn by(clock: clockid_t) -> i64 {
    let Some(moved) = MOVED.get() else {
        return 0;
    };
    let passed = moved.passed.load(SeqCst);
    if clock == CLOCK_REALTIME {
        passed + moved.offset.load(SeqCst)
    } else {
        passed
    }
}
