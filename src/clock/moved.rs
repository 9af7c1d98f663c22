//! Only in builds for tests: two numbers from a mapped file are added to what the
//! kernel's clocks show, so that a test can set the wall clock, and let time pass
//! for both clocks, while the server runs. The file is named by the environment
//! variable `SNOWFLAKE_TEST_CLOCK`; without it the clocks are the kernel's.
//!
//! The file has five signed 64-bit numbers, microseconds in native byte order: the
//! time that was made to pass, which is added to both clocks; the offset of the
//! wall clock; and what the kernel's boot clock and wall clock showed when a test had
//! both stand still, or 0; and the offset when the server was started. Each is written by one store. So a process that reads the boot
//! clock before and after the wall clock notices a change of the first.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

use libc::{CLOCK_REALTIME, MAP_FAILED, MAP_SHARED, PROT_READ, clockid_t, mmap};
use snowflake_id::ClockOffset;

/// The environment variable that names the file.
const VARIABLE: &str = "SNOWFLAKE_TEST_CLOCK";

/// The file's numbers.
struct Moved {
    passed: AtomicI64,
    offset: AtomicI64,
    stopped_boot: AtomicI64,
    stopped_wall: AtomicI64,
    offset_at_start: AtomicI64,
}

/// Set in the postmaster; every process inherits it with the mapping.
static MOVED: OnceLock<&'static Moved> = OnceLock::new();

/// What was the offset of the clocks when the server was started, if it is this one now; `None`
/// if no test moves the clocks.
pub fn at_start(now: ClockOffset) -> Option<ClockOffset> {
    let moved = MOVED.get()?;
    let since = moved.offset.load(SeqCst) - moved.offset_at_start.load(SeqCst);
    Some(ClockOffset::from_micros(now.micros() - since))
}

/// Maps the file; called once, in the postmaster or in a session that loads the library.
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
    // SAFETY: the mapping is aligned to a page, and as long as the structure. Its
    // fields are only ever accessed atomically, by the test that writes them too.
    let _ = MOVED.set(unsafe { &*address.cast::<Moved>() });
}

/// What a clock shows instead of the kernel's reading, microseconds.
pub fn instead_of(reading: i64, clock: clockid_t) -> i64 {
    let Some(moved) = MOVED.get() else {
        return reading;
    };
    let (stopped, offset) = if clock == CLOCK_REALTIME {
        (&moved.stopped_wall, moved.offset.load(SeqCst))
    } else {
        (&moved.stopped_boot, 0)
    };
    let base = match stopped.load(SeqCst) {
        0 => reading,
        stopped => stopped,
    };
    base + moved.passed.load(SeqCst) + offset
}
