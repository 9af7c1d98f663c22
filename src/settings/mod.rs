//! The settings (GUCs), and those of them that decide an ID's bits.
//!
//! With another layout or node number than configured, IDs would be wrong. So these are
//! decided once, from what the server's configuration has, and stay until it ends
//! ([`AtStart`]):
//!
//! - A preloaded library decides them at the server's start. Postgres only warns about an
//!   invalid value of an extension's setting there, and continues with the default. So
//!   [`init`] reads the configured texts before it defines the settings, and stops the
//!   start if one of them is not valid ([`configured`]).
//! - A library that a session loads defines the settings with `init_in_session`. They
//!   are decided by the first call that issues an ID ([`crate::shared`]), from the
//!   configuration files and the command line (`configured::read`): what is not valid is that call's
//!   error. From then on, every process takes over what was decided ([`take_over`]).
//!
//! Before, and on 15 and 16 without preload, no ID is issued, and decoding reads the text of
//! `snowflake.layout` ([`layout_for_reading`]).
#![allow(unsafe_code)] // Postgres' configuration API

mod configured;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{
    GucContext, GucFlags, GucRegistry, GucSetting, PgLogLevel, PgSqlErrorCode, PostgresGucEnum,
    pg_guard, pg_sys,
};
use snowflake_id::node_source::{self, NodeSource};
use snowflake_id::protocol::ServerSettings;
use snowflake_id::{Identity, Layout};

use crate::encoding;
use crate::error::Error;
use crate::pg;
use crate::shared;

pub use configured::AtStart;
use configured::Texts;
#[cfg(feature = "dsm_registry")]
pub use configured::read;

/// What happens when a row with this server's node number comes from another
/// server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PostgresGucEnum)]
pub enum OnNodeConflict {
    /// It is logged.
    #[name = c"log"]
    Log,
    /// It is logged, and no more IDs are issued.
    #[name = c"stop"]
    Stop,
}

static LAYOUT: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c"default"));
static NODE_ID: GucSetting<i32> = GucSetting::<i32>::new(-1);
static NODE_ID_SOURCE: GucSetting<Option<CString>> =
    GucSetting::<Option<CString>>::new(Some(c"setting"));
static NODE_NETWORK: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));
static ON_NODE_CONFLICT: GucSetting<OnNodeConflict> =
    GucSetting::<OnNodeConflict>::new(OnNodeConflict::Log);
static MAX_BORROW: GucSetting<i32> = GucSetting::<i32>::new(1_000);
static MAX_CLOCK_STEP: GucSetting<i32> = GucSetting::<i32>::new(24 * 60 * 60 * 1_000);
static MAX_WAIT: GucSetting<i32> = GucSetting::<i32>::new(5_000);
static LEASE: GucSetting<i32> = GucSetting::<i32>::new(2_000);
static LOG_UNRESOLVED: GucSetting<i32> = GucSetting::<i32>::new(60_000);
static COPY_MULTI_INSERT: GucSetting<bool> = GucSetting::<bool>::new(true);
static ENABLE_TIME_RANGES: GucSetting<bool> = GucSetting::<bool>::new(true);
#[cfg(feature = "testing")]
static UNPROTECTED: GucSetting<Option<CString>> = GucSetting::<Option<CString>>::new(Some(c""));

static AT_START: OnceLock<AtStart> = OnceLock::new();

/// Set when `snowflake.max_borrow` or `snowflake.lease` changes, until
/// [`take_changed`] is called. So the way to an ID need not read them.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// An integer setting, for its definition and its check.
struct Integer {
    name: &'static CStr,
    about: &'static CStr,
    more: &'static CStr,
    setting: &'static GucSetting<i32>,
    min: i32,
    max: i32,
    /// A function, because `GucContext` can be neither copied nor cloned.
    context: fn() -> GucContext,
    flags: GucFlags,
    watched: bool,
}

fn integers() -> [Integer; 6] {
    [
        Integer {
            name: c"snowflake.node_id",
            about: c"Sets the node number of this server, which its IDs contain.",
            more: c"Servers whose IDs are stored together need different numbers. -1 means \
                    not set: no IDs are issued. A single server can use 0. With another \
                    snowflake.node_id_source, this is added to the number that is found.",
            setting: &NODE_ID,
            min: -1,
            max: i32::MAX,
            context: at_start,
            flags: GucFlags::empty(),
            watched: false,
        },
        Integer {
            name: c"snowflake.max_borrow",
            about: c"Sets how far IDs may run ahead of the clock.",
            more: c"A session that starts to generate in bulk uses the next tick. When every \
                    slot has used a tick, sessions continue in later ticks, at most this far \
                    ahead; then calls wait.",
            setting: &MAX_BORROW,
            min: 0,
            max: i32::MAX,
            context: || GucContext::Sighup,
            flags: GucFlags::UNIT_MS,
            watched: true,
        },
        Integer {
            name: c"snowflake.max_clock_step",
            about: c"Sets the largest clock step that does not interrupt IDs.",
            more: c"After a smaller step backward, IDs continue above the last one. After a \
                    larger step, no IDs are issued until the clock is right. -1 means no limit.",
            setting: &MAX_CLOCK_STEP,
            min: -1,
            max: i32::MAX,
            context: || GucContext::Sighup,
            flags: GucFlags::UNIT_MS,
            watched: false,
        },
        Integer {
            name: c"snowflake.max_wait",
            about: c"Sets how long a call may wait for an available ID.",
            more: c"A call that would wait longer fails at once.",
            setting: &MAX_WAIT,
            min: 0,
            max: i32::MAX,
            context: || GucContext::Userset,
            flags: GucFlags::UNIT_MS,
            watched: false,
        },
        Integer {
            name: c"snowflake.lease",
            about: c"Sets how far ahead time is reserved in the write-ahead log.",
            more: c"After a crash, IDs start at most this far ahead of the clock. A longer \
                    lease means fewer reservations.",
            setting: &LEASE,
            min: 1,
            max: 60 * 60 * 1_000,
            context: || GucContext::Sighup,
            flags: GucFlags::UNIT_MS,
            watched: true,
        },
        Integer {
            name: c"snowflake.log_unresolved_min_duration",
            about: c"Sets for how long a transaction may hold back the resolved ID before it is logged.",
            more: c"snowflake_resolved_id() logs the transaction, once a minute. 0 logs each one; -1 disables \
                    logging.",
            setting: &LOG_UNRESOLVED,
            min: -1,
            max: i32::MAX,
            context: || GucContext::Sighup,
            flags: GucFlags::UNIT_MS,
            watched: false,
        },
    ]
}

/// The context of a setting that is decided once. It is PGC_POSTMASTER if the library is
/// preloaded. A session cannot define such a setting; there, only the configuration files
/// can change its value, which has no effect on what was decided.
fn at_start() -> GucContext {
    if pg::server::is_preloading() {
        GucContext::Postmaster
    } else {
        GucContext::Sighup
    }
}

/// Defines the settings and decides what IDs are made of; only while
/// `shared_preload_libraries` is loaded. Ends the start (FATAL) if a configured value is
/// invalid.
pub fn init() {
    let configured = pg::guc::placeholders();
    define();
    take_over(configured::decide(&configured));
}

/// Defines the settings in a session that loads the library.
#[cfg(feature = "dsm_registry")]
pub fn init_in_session() {
    let is_hidden = pg::guc::placeholders()
        .iter()
        .any(|it| configured::is_known(&it.name) && it.source.is_none());
    define();
    // What the client, the role or the database has set hides what is configured. If it may
    // not be set so, it was refused with a warning, and the setting has its default.
    if is_hidden {
        for line in pg::guc::configuration().into_iter().flatten() {
            if configured::is_known(&line.name) {
                pg::guc::apply(&line);
            }
        }
    }
}

/// The value of a setting that is a text.
fn text(setting: &'static GucSetting<Option<CString>>) -> String {
    setting
        .get()
        .map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}

fn define() {
    define_texts();
    define_booleans();
    define_on_node_conflict();
    integers().iter().for_each(Integer::define);
    // SAFETY: a static string; called while libraries are preloaded.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"snowflake".as_ptr()) };
}

/// This process takes over what was decided for the server.
pub fn take_over(decided: AtStart) {
    let _ = AT_START.set(decided);
}

/// Warns, once a session, if the server would start with another layout or node number.
pub fn warn_if_pending() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // What the session has is as of the last reload: the files are read only if that differs.
    let differs = AT_START.get().is_some_and(|decided| {
        decided.differs_from(&Texts {
            layout: text(&LAYOUT),
            source: text(&NODE_ID_SOURCE),
            network: text(&NODE_NETWORK),
            node_id: NODE_ID.get(),
        })
    });
    if !differs || is_pending() != Some(true) || WARNED.swap(true, Ordering::Relaxed) {
        return;
    }
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        "the layout or the node number of this server was changed in its configuration",
        "snowflake",
    )
    .set_detail("Until the next restart, IDs are as they were decided with the first one.")
    .set_hint("Restart the server, or undo the change.")
    .report(PgLogLevel::WARNING);
}

/// Whether the configuration files have another layout or node number than IDs are made of;
/// `None` before that is decided, or if they cannot be read.
pub fn is_pending() -> Option<bool> {
    Some(AT_START.get()?.differs_from(&Texts::in_files()?))
}

impl Integer {
    fn define(&self) {
        let assign: pg_sys::GucIntAssignHook = if self.watched { Some(on_change) } else { None };
        let is_node_id = ptr::eq(self.setting, &NODE_ID);
        let check: pg_sys::GucIntCheckHook = is_node_id.then_some(check_node_id);
        // SAFETY: the check hook is guarded; the assign hook only stores to an atomic: it
        // cannot panic.
        unsafe {
            GucRegistry::define_int_guc_with_hooks(
                self.name,
                self.about,
                self.more,
                self.setting,
                self.min,
                self.max,
                (self.context)(),
                self.flags,
                check,
                assign,
                None,
            );
        }
    }
}

fn define_texts() {
    // SAFETY: the check hook is guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"snowflake.layout",
            c"Sets the layout of this server's IDs: a preset's name or a list of fields.",
            c"Fields from the most significant bit down, a tick and an epoch, for example \
              \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z\".",
            &LAYOUT,
            at_start(),
            GucFlags::empty(),
            Some(check_layout),
            None,
            None,
        );
    }
    // SAFETY: the check hooks are guarded.
    unsafe {
        GucRegistry::define_string_guc_with_hooks(
            c"snowflake.node_id_source",
            c"Sets where the node number of this server comes from.",
            c"\"setting\" takes snowflake.node_id; \"hostname\" the last digits of the host name \
              before its first dot; \"environment:NAME\" the value of a variable; \"address\" the \
              host part of the address in snowflake.node_network.",
            &NODE_ID_SOURCE,
            at_start(),
            GucFlags::empty(),
            Some(check_node_id_source),
            None,
            None,
        );
        GucRegistry::define_string_guc_with_hooks(
            c"snowflake.node_network",
            c"Sets the network in which each server has one address, in CIDR notation.",
            c"Used if snowflake.node_id_source is \"address\". The host part of the address is the \
              node number: 17 of 10.0.3.17 in 10.0.3.0/24.",
            &NODE_NETWORK,
            at_start(),
            GucFlags::empty(),
            Some(check_node_network),
            None,
            None,
        );
    }
    #[cfg(feature = "testing")]
    GucRegistry::define_string_guc(
        c"snowflake.unprotected",
        c"Disables one protection, for tests that must detect it.",
        c"Exists only in builds for tests. IDs will repeat, or queries lose rows.",
        &UNPROTECTED,
        at_start(),
        GucFlags::empty(),
    );
}

fn define_booleans() {
    define_boolean(
        c"snowflake.copy_multi_insert",
        c"Lets COPY insert rows in batches when a default is snowflake_nextval().",
        c"PostgreSQL does so for nextval() only. If off, COPY inserts rows one by one.",
        &COPY_MULTI_INSERT,
        GucFlags::empty(),
    );
    define_boolean(
        c"snowflake.enable_time_ranges",
        c"Enables the planner's use of ranges of IDs in place of conditions on their time.",
        c"Conditions on snowflake_timestamp(id), and an ORDER BY it, can then use an index on id.",
        &ENABLE_TIME_RANGES,
        GucFlags::EXPLAIN,
    );
}

/// Defines a setting that any session may change.
fn define_boolean(
    name: &'static CStr,
    about: &'static CStr,
    more: &'static CStr,
    setting: &'static GucSetting<bool>,
    flags: GucFlags,
) {
    GucRegistry::define_bool_guc(name, about, more, setting, GucContext::Userset, flags);
}

fn define_on_node_conflict() {
    GucRegistry::define_enum_guc(
        c"snowflake.on_node_conflict",
        c"Sets what happens when a replicated row shows that another server has this node number.",
        c"\"log\" counts and logs it. \"stop\" also ends the issuing of IDs on this server until a \
          superuser calls snowflake_accept_node_id(). Rows are checked in tables that \
          snowflake_watch() was called for.",
        &ON_NODE_CONFLICT,
        GucContext::Sighup,
        GucFlags::empty(),
    );
}

/// Refuses a text that is no layout already in ALTER SYSTEM, not only at the next
/// start.
#[pg_guard]
unsafe extern "C-unwind" fn check_layout(
    new: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: as Postgres calls it.
    unsafe { check(new, |text| text.parse::<Layout>().map(drop)) }
}

/// Warns in ALTER SYSTEM of a number that the present layout does not have. It is no
/// error, because the layout may be what the next statement sets.
#[pg_guard]
unsafe extern "C-unwind" fn check_node_id(
    new: *mut c_int,
    _extra: *mut *mut c_void,
    source: pg_sys::GucSource::Type,
) -> bool {
    // A reload has the same source, and comes between transactions.
    if source != pg_sys::GucSource::PGC_S_FILE || !pg::transaction::is_in_transaction() {
        return true;
    }
    // SAFETY: as Postgres calls it.
    let number = unsafe { *new };
    if let Some(layout) = layout()
        && i64::from(number) > i64::from(layout.max_node())
    {
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_WARNING,
            format!("snowflake.node_id = {number} does not fit the present layout"),
            "check_node_id",
        )
        .set_detail(format!(
            "The highest node number of \"{layout}\" is {}. With both, the server does not start.",
            layout.max_node()
        ))
        .set_hint("Also change snowflake.layout before the restart, or set a lower number.")
        .report(PgLogLevel::WARNING);
    }
    true
}

/// The same for a source of node numbers.
#[pg_guard]
unsafe extern "C-unwind" fn check_node_id_source(
    new: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    // SAFETY: as Postgres calls it.
    unsafe { check(new, |text| text.parse::<NodeSource>().map(drop)) }
}

/// The same for a network.
#[pg_guard]
unsafe extern "C-unwind" fn check_node_network(
    new: *mut *mut c_char,
    _extra: *mut *mut c_void,
    _source: pg_sys::GucSource::Type,
) -> bool {
    let parse = |text: &str| match text {
        "" => Ok(()),
        text => node_source::parse_network(text).map(drop),
    };
    // SAFETY: as Postgres calls it.
    unsafe { check(new, parse) }
}

/// Whether a text is accepted; if not, sets the reason as the detail.
///
/// # Safety
/// The argument is that of a check hook of a text.
unsafe fn check<E: Display>(new: *mut *mut c_char, parse: impl Fn(&str) -> Result<(), E>) -> bool {
    // SAFETY: Postgres passes the new value, nul-terminated, or null for none;
    // the detail is a copy in the context in which Postgres keeps it.
    unsafe {
        if (*new).is_null() {
            return true;
        }
        let Err(reason) = parse(&CStr::from_ptr(*new).to_string_lossy()) else {
            return true;
        };
        if let Ok(detail) = CString::new(reason.to_string()) {
            pg_sys::GUC_check_errdetail_string =
                pg_sys::MemoryContextStrdup(pg_sys::ErrorContext, detail.as_ptr());
        }
        false
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn on_change(_new: c_int, _extra: *mut c_void) {
    CHANGED.store(true, Ordering::Relaxed);
}

/// This server's layout; `None` before it is decided.
#[inline]
pub fn layout() -> Option<&'static Layout> {
    AT_START.get().map(|at_start| &at_start.layout)
}

/// This server's layout and node number; `None` before they are decided, or if the layout
/// needs a node number and none is set.
pub fn identity() -> Option<&'static Identity> {
    AT_START.get()?.identity.as_ref()
}

/// This server's node number; before it is decided, the one that is configured, if that can be
/// found. `None` if the layout needs one and none is set.
pub fn node_id() -> Option<u32> {
    if AT_START.get().is_some() {
        return identity().map(Identity::node);
    }
    if cfg!(not(feature = "dsm_registry")) {
        return None;
    }
    Texts::in_files()?.node()
}

/// Where this server's node number comes from; `None` before it is decided.
pub fn node_source() -> Option<&'static NodeSource> {
    AT_START.get().map(|at_start| &at_start.node_source)
}

/// What happens when a row with this server's node number comes from another
/// server.
pub fn on_node_conflict() -> OnNodeConflict {
    ON_NODE_CONFLICT.get()
}

/// The layout that decoding uses if none is named: this server's, or before that is
/// decided, that of the configured text.
///
/// # Errors
/// [`Error::InvalidLayout`] if that text is no layout.
pub fn layout_for_reading() -> Result<Layout, Error> {
    /// The last text and its layout: the same for the rows of a query.
    static LAST: Mutex<Option<(CString, Layout)>> = Mutex::new(None);
    // Another process may have decided it.
    if let Some(layout) = layout().or_else(|| shared::get().and_then(|_| layout())) {
        return Ok(*layout);
    }
    // As long as the setting is not defined, any role can set it to any text.
    // SAFETY: a nul-terminated name; the answer is null or a nul-terminated string that
    // stays as it is until the setting is changed.
    let text = unsafe {
        let text = pg_sys::GetConfigOption(c"snowflake.layout".as_ptr(), true, false);
        if text.is_null() {
            return Ok(Layout::DEFAULT);
        }
        CStr::from_ptr(text)
    };
    if let Some((_, layout)) = LAST.lock().as_ref().filter(|(last, _)| **last == *text) {
        return Ok(*layout);
    }
    let layout = encoding::layout(text.to_bytes())?;
    *LAST.lock() = Some((text.to_owned(), layout));
    Ok(layout)
}

/// Whether `max_borrow` or `lease` changed since the last [`take_changed`].
#[inline]
pub fn changed() -> bool {
    CHANGED.load(Ordering::Relaxed)
}

/// Whether `max_borrow` or `lease` changed since the last call of this.
pub fn take_changed() -> bool {
    CHANGED.swap(false, Ordering::Relaxed)
}

/// Those that decide when IDs are generated.
pub fn of_protocol() -> ServerSettings {
    ServerSettings {
        lease: u64::from(LEASE.get().unsigned_abs()) * 1_000,
        // The definition's range begins at 0.
        max_borrow: u64::from(MAX_BORROW.get().unsigned_abs()) * 1_000,
        // -1 is no limit.
        max_clock_step: u64::try_from(MAX_CLOCK_STEP.get())
            .ok()
            .map(|ms| ms as i64 * 1_000),
    }
}

/// Whether COPY may insert rows in batches.
pub fn copy_multi_insert() -> bool {
    COPY_MULTI_INSERT.get()
}

/// Whether conditions on the time of an ID become ranges of IDs.
#[inline]
pub fn enable_time_ranges() -> bool {
    ENABLE_TIME_RANGES.get()
}

/// How long a call may wait, milliseconds.
pub fn max_wait_ms() -> i32 {
    MAX_WAIT.get()
}

/// `snowflake.log_unresolved_min_duration`, microseconds; `None` if nothing is logged.
pub fn log_unresolved_micros() -> Option<i64> {
    let ms = LOG_UNRESOLVED.get();
    (ms >= 0).then_some(i64::from(ms) * 1_000)
}
/// The protection that a test has taken away; empty if none.
#[cfg(feature = "testing")]
pub fn unprotected() -> String {
    UNPROTECTED
        .get()
        .map_or_else(String::new, |text| text.to_string_lossy().into_owned())
}
