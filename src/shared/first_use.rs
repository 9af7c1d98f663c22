//! Shared memory of a library that is not preloaded: made by the first call that issues an ID,
//! in PostgreSQL's registry of named segments ([`crate::pg::dsm`]).
//!
//! There is one memory, whatever happens: two would be two generators. So the segment
//! [`Control`] has a name and a size that never change, in any version of the library, and
//! starts with [`FORM`]. A process whose library has another form issues no IDs. What cannot
//! be made is an error; no failure is answered by another name.
//!
//! The first call that issues an ID decides what IDs are made of ([`crate::settings::read`]),
//! makes the second segment, whose size follows from that, and keeps the decision in the first
//! one. All of it is done while the lock of the first one is held, so others find nothing, or
//! all. A crash of a backend ends both segments; then it is done anew, as after a start.
#![allow(unsafe_code)] // shared memory

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use pgrx::pg_sys;

use super::locks::{LOCKS, LwLock};
use super::{Arrays, CACHE_LINE, Header, NAME, Shared, lengths};
use crate::error::Error;
use crate::pg;
use crate::pg::dsm::{self, Names, NotMade};
use crate::settings::{self, AtStart};

/// The form of both segments, and of what the processes that share them do. Another version
/// of the library with the same form can meet this one in a running server. Any change of
/// [`Control`] after its first two fields, of the types in [`super`], or of the protocol, is
/// a new form.
const FORM: u32 = 1;

// A change of the sizes is noticed; one of the meaning is not.
const _: () = assert!(size_of::<Header>() == 9_664 && size_of::<Control>() == 35_632);
const _: () = assert!(size_of::<Control>() <= CONTROL_SIZE);

const CONTROL: Names = Names {
    segment: c"snowflake",
    sign: c"SnowflakeControlMade",
};

const MEMORY: Names = Names {
    segment: c"snowflake memory",
    sign: c"SnowflakeMemoryMade",
};

/// The size of the first segment in every version, bytes.
const CONTROL_SIZE: usize = 40_960;

/// The most processes that can have a transaction at a time, in every PostgreSQL.
const MAX_BACKENDS: usize = 1 << 18;

/// The longest text of what was decided, bytes.
const LONGEST_TEXT: usize = 2_048;

/// The first segment. `form` and `build` are the same in every version.
#[repr(C)]
struct Control {
    form: AtomicU32,
    /// The version of the library that has made it, nul-terminated.
    build: [u8; 28],
    tranche: c_int,
    locks: [UnsafeCell<pg_sys::LWLockPadded>; LOCKS as usize],
    /// Held while the second segment is made.
    making: UnsafeCell<pg_sys::LWLockPadded>,
    /// Whether the second segment was made. Stored last.
    is_made: AtomicBool,
    /// What was decided, and how long that text is; written while `making` is held, before
    /// `is_made`.
    length: AtomicU32,
    decided: UnsafeCell<[u8; LONGEST_TEXT]>,
    /// A bit for each backend that has loaded the library: it clears what its transaction, its
    /// parallel workers included, has published.
    watching: [AtomicU64; MAX_BACKENDS / 64],
}

/// Where this process has the first segment; null if it has not, or if that has another form.
static CONTROL_OF_PROCESS: AtomicPtr<Control> = AtomicPtr::new(ptr::null_mut());

fn control() -> Option<&'static Control> {
    // SAFETY: null, or what `init` has stored, which is mapped until the process ends.
    unsafe { CONTROL_OF_PROCESS.load(Ordering::Acquire).as_ref() }
}

/// Finds or makes the first segment; when a session loads the library, before anything else
/// is set up: after an error, the next call loads it again.
pub fn init() {
    let control = segment(CONTROL, CONTROL_SIZE, fill).cast::<Control>();
    // SAFETY: mapped until the process ends, aligned to a page, and filled by the process that
    // has made it. Other forms have the same first field.
    if unsafe { (*control).form.load(Ordering::Acquire) } != form() {
        return;
    }
    CONTROL_OF_PROCESS.store(control, Ordering::Release);
    // SAFETY: as above.
    let control = unsafe { &*control };
    dsm::name_tranche(control.tranche, NAME);
    if let Some(number) = pg::process::backend_number() {
        control.watching[number / 64].fetch_or(1 << (number % 64), Ordering::AcqRel);
        pg::callbacks::before_exit(stop_watching);
    }
    find();
}

fn form() -> u32 {
    // A test has another version of the library installed.
    #[cfg(feature = "testing")]
    if std::fs::exists("snowflake.other_form").unwrap_or(false) {
        return FORM + 1;
    }
    FORM
}

/// Fills a new first segment.
fn fill(start: *mut c_void) {
    let control = start.cast::<Control>();
    // SAFETY: zeroed memory of at least this size, which no other process uses yet.
    unsafe {
        let tranche = dsm::new_tranche(NAME);
        (*control).tranche = tranche;
        for lock in &(*control).locks {
            pg_sys::LWLockInitialize(&raw mut (*lock.get()).lock, tranche);
        }
        let making = (*control).making.get();
        pg_sys::LWLockInitialize(&raw mut (*making).lock, tranche);
        let build = env!("CARGO_PKG_VERSION").as_bytes();
        let length = build.len().min((*control).build.len() - 1);
        (&mut (*control).build)[..length].copy_from_slice(&build[..length]);
        (*control).form.store(form(), Ordering::Release);
    }
}

/// The next process with this number may not have loaded the library.
fn stop_watching() {
    if let Some((control, number)) = control().zip(pg::process::backend_number()) {
        control.watching[number / 64].fetch_and(!(1 << (number % 64)), Ordering::AcqRel);
    }
}

/// Whether the process that this one works for clears what is published for it: it has loaded
/// the library, too.
pub fn leader_is_watched() -> bool {
    let Some((control, number)) = control().zip(pg::process::leader_number()) else {
        return true;
    };
    control.watching[number / 64].load(Ordering::Acquire) & 1 << (number % 64) != 0
}

/// The memory, if it was made. May raise an error of Postgres.
#[cold]
pub fn find() -> Option<Shared> {
    let control = control().filter(|control| control.is_made.load(Ordering::Acquire))?;
    // SAFETY: written before `is_made`, and never changed.
    let text: &[u8; LONGEST_TEXT] = unsafe { &*control.decided.get() };
    let text = &text[..control.length.load(Ordering::Relaxed) as usize];
    let decided = AtStart::from_text(std::str::from_utf8(text).ok()?)?;
    let arrays = map(control, &decided);
    settings::take_over(decided);
    Some(arrays.keep())
}

/// Makes the memory, if no other process has.
///
/// # Errors
/// [`Error::OtherLibrary`], [`Error::NodeNotSet`], [`Error::ConfigurationUnreadable`]
#[cold]
pub fn make() -> Result<Shared, Error> {
    let Some(control) = control() else {
        return Err(Error::OtherLibrary);
    };
    let making = LwLock::exclusive(control.making.get());
    if !control.is_made.load(Ordering::Acquire) {
        let decided = settings::read()?;
        let text = decided.to_text().ok_or(Error::NodeNotSet)?;
        if text.len() > LONGEST_TEXT {
            return Err(Error::ConfigurationUnreadable);
        }
        let arrays = map(control, &decided);
        // SAFETY: no other process uses the second segment, nor the text, before `is_made`.
        unsafe {
            arrays.fill(decided.identity.as_ref());
            (&mut (*control.decided.get()))[..text.len()].copy_from_slice(text.as_bytes());
        }
        // During recovery, transactions of the primary draw by its memory.
        let first = if pg::server::is_in_recovery() {
            super::MADE_IN_RECOVERY
        } else {
            pg::transaction::next_full_id()
        };
        arrays.header.first_xid.store(first, Ordering::Relaxed);
        control.length.store(text.len() as u32, Ordering::Relaxed);
        control.is_made.store(true, Ordering::Release);
    }
    drop(making);
    super::get().ok_or(Error::OtherLibrary)
}

/// Finds or makes the second segment, which is zero until it was filled.
fn map(control: &'static Control, decided: &AtStart) -> &'static Arrays {
    let lengths = lengths(Some(&decided.layout));
    let size = lengths.size();
    let mut next = segment(MEMORY, size, |_| {}).cast::<u8>();
    if !control.is_made.load(Ordering::Acquire) {
        // A process may have failed here before.
        // SAFETY: of this size, and used by no other process yet.
        unsafe { next.write_bytes(0, size) };
    }
    let locks = control.locks.as_ptr().cast_mut().cast();
    // SAFETY: the segment has the size of all arrays, which come in the same order in every
    // process, and is aligned to a page. New segments are zero.
    unsafe {
        lengths.arrays(locks, |_, size| {
            let start = next;
            next = next.add(size.next_multiple_of(CACHE_LINE));
            start
        })
    }
}

/// The segment; raises an error if there is none.
fn segment(names: Names, size: usize, init: fn(*mut c_void)) -> *mut c_void {
    dsm::named(names, size, init)
        .unwrap_or_else(|NotMade { code, message }| Error::MemoryNotMade { code, message }.report())
}
