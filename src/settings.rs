//! The settings (GUCs) and what they were at the server's start.
//!
//! All that decides an ID's bits is a postmaster setting: no session can change
//! it. Postgres only warns about an invalid value of an extension's setting at
//! the start, and continues with the default. With another layout or node number
//! the IDs would be wrong. So [`init`] reads the configured texts before it
//! defines the settings, and stops the start if a setting does not have the value
//! of its text.
//!
//! If the library is not preloaded, no setting is defined: no IDs can be
//! generated, and decoding reads the text of `snowflake.layout` in the
//! configuration ([`layout_for_reading`]).
#![allow(unsafe_code)] // Postgres' configuration API

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt::Display;
use std::ptr;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{
    GucContext, GucFlags, GucRegistry, GucSetting, PgLogLevel, PgSqlErrorCode, PostgresGucEnum,
    pg_guard, pg_sys,
};
use snowflake_id::node_source::{self, NodeSource};
use snowflake_id::protocol::ServerSettings;
use snowflake_id::{Identity, Layout};

use crate::encoding;
use crate::error::{Error, layout_hint, place, refuse_to_start};
use crate::node_number;
use crate::pg;
use crate::pg::guc::Source;

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

/// The settings that decide an ID's bits. They stay the same while the server
/// runs.
struct AtStart {
    layout: Layout,
    /// `None` if the layout needs a node number and `snowflake.node_id` is not
    /// set.
    identity: Option<Identity>,
    node_source: NodeSource,
}

static AT_START: OnceLock<AtStart> = OnceLock::new();

/// Set when `snowflake.max_borrow` or `snowflake.lease` changes, until
/// [`take_changed`] is called. So the way to an ID need not read them.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// The hint for a value that is not valid.
const CORRECT: &str = "Correct the value or remove the line.";

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
            context: || GucContext::Postmaster,
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

/// Defines the settings and keeps this server's layout and [`Identity`]; only
/// while `shared_preload_libraries` is loaded. Ends the start (FATAL) if a
/// configured value is invalid.
pub fn init() {
    let layout = configured(c"snowflake.layout", layout_hint).unwrap_or(Layout::DEFAULT);
    let source = configured(c"snowflake.node_id_source", || {
        "Use setting, hostname, environment:NAME or address.".into()
    });
    let network = written(c"snowflake.node_network");
    define_texts();
    define_booleans();
    define_on_node_conflict();
    for integer in integers() {
        let written = written(integer.name);
        integer.define();
        if let Some(written) = written {
            integer.check(&written);
        }
    }
    refuse_unknown_names();
    // SAFETY: a static string; called while libraries are preloaded.
    unsafe { pg_sys::MarkGUCPrefixReserved(c"snowflake".as_ptr()) };

    if let Some(network) = &network {
        check_network(network);
    }
    let node = node_number::Settings {
        source: source.unwrap_or(NodeSource::Setting),
        network: network.map_or_else(String::new, |written| written.shown().into_owned()),
        node_id: NODE_ID.get(),
    };
    // The layout and the number are checked against each other here and not in
    // check hooks, so that both can be changed together.
    let identity = node_number::resolve(layout, &node);
    AT_START.get_or_init(|| AtStart {
        layout,
        identity,
        node_source: node.source,
    });
}

/// What is configured for a setting whose value is parsed. Ends the start if it is
/// not valid.
fn configured<T: FromStr<Err: Display>>(
    name: &'static CStr,
    hint: impl Fn() -> String,
) -> Option<T> {
    let written = written(name)?;
    match written.shown().parse::<T>() {
        Ok(value) => Some(value),
        Err(reason) => written.refuse(reason.to_string(), hint()),
    }
}

/// Ends the start if the network is none, also where it is not used.
fn check_network(written: &Written) {
    let text = written.shown();
    if !text.is_empty()
        && let Err(reason) = node_source::parse_network(&text)
    {
        written.refuse(reason.to_string(), CORRECT.into());
    }
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

    /// Ends the start if the setting does not have the value that was configured for it.
    fn check(&self, written: &Written) {
        let mut value: c_int = 0;
        let mut hint: *const c_char = ptr::null();
        // SAFETY: the text is nul-terminated and both out-pointers are valid; the
        // hint is null or a static string of Postgres.
        let (parsed, hint) = unsafe {
            let text = written.text.as_ptr();
            let parsed = pg_sys::parse_int(text, &mut value, self.flags.bits(), &mut hint);
            let hint = (!hint.is_null()).then(|| CStr::from_ptr(hint).to_string_lossy());
            (parsed, hint)
        };
        if parsed && value == self.setting.get() {
            return;
        }
        let unit = if self.flags.contains(GucFlags::UNIT_MS) {
            " ms"
        } else {
            ""
        };
        written.refuse(
            format!("The range is {} to {}{unit}.", self.min, self.max),
            hint.unwrap_or(CORRECT.into()).into_owned(),
        );
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
            GucContext::Postmaster,
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
            GucContext::Postmaster,
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
            GucContext::Postmaster,
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
        GucContext::Postmaster,
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

/// Defines a setting that any session may change. Ends the start if its configured value
/// is invalid.
fn define_boolean(
    name: &'static CStr,
    about: &'static CStr,
    more: &'static CStr,
    setting: &'static GucSetting<bool>,
    flags: GucFlags,
) {
    let written = written(name);
    GucRegistry::define_bool_guc(name, about, more, setting, GucContext::Userset, flags);
    let Some(written) = written else { return };
    let mut value = false;
    // SAFETY: a nul-terminated text and a valid out-pointer.
    if !unsafe { pg_sys::parse_bool(written.text.as_ptr(), &mut value) } {
        written.refuse("The value must be on or off.".into(), CORRECT.into());
    }
}

fn define_on_node_conflict() {
    let written = written(c"snowflake.on_node_conflict");
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
    let is_valid = |text: &CStr| {
        [c"log", c"stop"]
            .iter()
            .any(|name| name.to_bytes().eq_ignore_ascii_case(text.to_bytes()))
    };
    if let Some(written) = written.filter(|written| !is_valid(&written.text)) {
        written.refuse("The value must be log or stop.".into(), CORRECT.into());
    }
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

/// What is configured for a setting.
struct Written {
    name: &'static CStr,
    text: CString,
    source: Option<Source>,
}

/// What is configured for a setting, before it is defined: if Postgres refuses the
/// value, it forgets where that came from.
fn written(name: &'static CStr) -> Option<Written> {
    // SAFETY: a nul-terminated name; the answer is null or a nul-terminated
    // string that is copied before the next call into Postgres.
    let text = unsafe {
        let text = pg_sys::GetConfigOption(name.as_ptr(), true, false);
        if text.is_null() {
            return None;
        }
        CStr::from_ptr(text).to_owned()
    };
    Some(Written {
        name,
        text,
        source: pg::guc::source_of(name),
    })
}

impl Written {
    fn shown(&self) -> Cow<'_, str> {
        self.text.to_string_lossy()
    }

    /// Ends the start because of this value.
    #[track_caller]
    fn refuse(&self, detail: String, hint: String) -> ! {
        refuse_to_start(
            format!(
                "invalid value for parameter \"{}\": \"{}\"",
                self.name.to_string_lossy(),
                self.shown()
            ),
            detail,
            &place(self.name, self.source.as_ref()),
            hint,
        )
    }
}

/// A misspelt `snowflake.layuot` would leave the server with another layout than
/// intended. So it stops the start, as a misspelt core setting does.
fn refuse_unknown_names() {
    for name in pg::guc::placeholders() {
        let shown = name.to_string_lossy();
        if shown.to_ascii_lowercase().starts_with("snowflake.") {
            refuse_to_start(
                format!("unrecognized configuration parameter \"{shown}\""),
                "The extension has no setting of this name.".into(),
                &place(&name, pg::guc::source_of(&name).as_ref()),
                "Correct the name or remove the line.".into(),
            );
        }
    }
}

/// This server's layout; `None` if the library is not preloaded.
#[inline]
pub fn layout() -> Option<&'static Layout> {
    AT_START.get().map(|at_start| &at_start.layout)
}

/// This server's layout and node number; `None` if the library is not preloaded,
/// or if the layout needs a node number and none is set.
pub fn identity() -> Option<&'static Identity> {
    AT_START.get()?.identity.as_ref()
}

/// Where this server's node number comes from; `None` if the library is not
/// preloaded.
pub fn node_source() -> Option<&'static NodeSource> {
    AT_START.get().map(|at_start| &at_start.node_source)
}

/// What happens when a row with this server's node number comes from another
/// server.
pub fn on_node_conflict() -> OnNodeConflict {
    ON_NODE_CONFLICT.get()
}

/// The layout that decoding uses if none is named: this server's, or if the
/// library is not preloaded, that of the configured text.
///
/// # Errors
/// [`Error::InvalidLayout`] if that text is no layout.
pub fn layout_for_reading() -> Result<Layout, Error> {
    if let Some(layout) = layout() {
        return Ok(*layout);
    }
    // Not copied: as long as the setting is not defined, any role can set it to any text.
    // SAFETY: a nul-terminated name; the answer is null or a nul-terminated string that
    // stays as it is until the setting is changed.
    unsafe {
        let text = pg_sys::GetConfigOption(c"snowflake.layout".as_ptr(), true, false);
        if text.is_null() {
            Ok(Layout::DEFAULT)
        } else {
            encoding::layout(CStr::from_ptr(text).to_bytes())
        }
    }
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
