//! What is configured: checked, and decided upon.
//!
//! What is not valid is an error, FATAL at the server's start. It names the line.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_int};
use std::fmt::Display;
use std::ptr;
use std::str::FromStr;

use pgrx::{GucFlags, pg_sys};
use snowflake_id::node_source::{self, NodeSource};
use snowflake_id::{Identity, Layout};

use super::{Integer, integers};
#[cfg(feature = "dsm_registry")]
use crate::error::Error;
use crate::error::{layout_hint, place, refuse};
use crate::node_number;
use crate::pg::guc::Configured;

const LAYOUT: &CStr = c"snowflake.layout";
const NODE_ID: &CStr = c"snowflake.node_id";
const NODE_ID_SOURCE: &CStr = c"snowflake.node_id_source";
const NODE_NETWORK: &CStr = c"snowflake.node_network";
const ON_NODE_CONFLICT: &CStr = c"snowflake.on_node_conflict";
const BOOLEANS: [&CStr; 2] = [
    c"snowflake.copy_multi_insert",
    c"snowflake.enable_time_ranges",
];

/// The hint for a value that is not valid.
const CORRECT: &str = "Correct the value or remove the line.";

/// What decides an ID's bits. It stays the same until the server ends.
#[derive(Clone, Debug)]
pub struct AtStart {
    /// The layout.
    pub layout: Layout,
    /// `None` if the layout needs a node number and `snowflake.node_id` is not
    /// set.
    pub identity: Option<Identity>,
    /// Where the node number comes from.
    pub node_source: NodeSource,
    network: String,
    node_id: c_int,
}

impl AtStart {
    /// Whether it would be decided otherwise by these, or not at all.
    pub fn differs_from(&self, texts: &Texts) -> bool {
        texts.layout.parse() != Ok(self.layout)
            || texts.source.parse() != Ok(self.node_source.clone())
            || texts.network != self.network
            || texts.node_id != self.node_id
    }

    /// One text, which [`AtStart::from_text`] reads; `None` if there is no identity.
    #[cfg(feature = "dsm_registry")]
    pub fn to_text(&self) -> Option<String> {
        let node = self.identity?.node();
        let Self {
            layout,
            node_source,
            network,
            node_id,
            ..
        } = self;
        Some(format!(
            "{node}\n{node_id}\n{layout}\n{node_source}\n{network}"
        ))
    }

    /// What another process has decided.
    #[cfg(feature = "dsm_registry")]
    pub fn from_text(text: &str) -> Option<Self> {
        let mut parts = text.splitn(5, '\n');
        let node = parts.next()?.parse().ok()?;
        let node_id = parts.next()?.parse().ok()?;
        let layout: Layout = parts.next()?.parse().ok()?;
        Some(AtStart {
            layout,
            identity: Some(Identity::new(layout, node).ok()?),
            node_source: parts.next()?.parse().ok()?,
            network: parts.next()?.to_owned(),
            node_id,
        })
    }
}

/// The settings that decide, unchecked.
pub struct Texts {
    pub layout: String,
    pub source: String,
    pub network: String,
    /// -1 also for a text that is no number.
    pub node_id: c_int,
}

impl Texts {
    /// Those that the configuration files and the command line have now; `None` if they cannot be
    /// read.
    pub fn in_files() -> Option<Self> {
        let configured = crate::pg::guc::configuration()?;
        let written = |name: &CStr, otherwise: &str| {
            let found = configured.iter().rev().find(|it| it.is(name));
            found.map_or_else(|| otherwise.to_owned(), |it| shown(it).into_owned())
        };
        Some(Texts {
            layout: written(LAYOUT, "default"),
            source: written(NODE_ID_SOURCE, "setting"),
            network: written(NODE_NETWORK, ""),
            node_id: written(NODE_ID, "-1").trim().parse().unwrap_or(-1),
        })
    }

    /// The node number that they give; `None` where they give none, or are not valid.
    pub fn node(&self) -> Option<u32> {
        let layout = self.layout.parse().ok()?;
        let source = self.source.parse().ok()?;
        node_number::configured(layout, &source, &self.network, self.node_id)
    }
}

/// Decides by the configuration files and the command line, as they are now. Raises an error
/// if a value in them is not valid.
///
/// # Errors
/// [`Error::ConfigurationUnreadable`]
#[cfg(feature = "dsm_registry")]
pub fn read() -> Result<AtStart, Error> {
    let configured = crate::pg::guc::configuration().ok_or(Error::ConfigurationUnreadable)?;
    Ok(decide(&configured))
}

/// Checks what is configured, also of the settings that decide nothing, and decides. Raises
/// an error if a value is not valid. Of several lines for a setting the last one counts.
pub fn decide(configured: &[Configured]) -> AtStart {
    refuse_unknown_names(configured);
    let written = |name: &CStr| configured.iter().rev().find(|it| it.is(name));
    let layout = written(LAYOUT)
        .map(|written| parse(written, layout_hint))
        .unwrap_or(Layout::DEFAULT);
    let source_hint = || "Use setting, hostname, environment:NAME or address.".into();
    let source = written(NODE_ID_SOURCE)
        .map(|written| parse(written, source_hint))
        .unwrap_or(NodeSource::Setting);
    let mut node_id = -1;
    for integer in integers() {
        if let Some(written) = written(integer.name) {
            let value = check_integer(&integer, written);
            if integer.name == NODE_ID {
                node_id = value;
            }
        }
    }
    BOOLEANS
        .into_iter()
        .filter_map(written)
        .for_each(check_boolean);
    if let Some(written) = written(ON_NODE_CONFLICT) {
        let is_valid = [c"log", c"stop"].iter().any(|name| {
            name.to_bytes()
                .eq_ignore_ascii_case(written.text.to_bytes())
        });
        if !is_valid {
            refuse_value(
                written,
                "The value must be log or stop.".into(),
                CORRECT.into(),
            );
        }
    }
    let network = written(NODE_NETWORK);
    network.into_iter().for_each(check_network);
    let network = network.map_or_else(String::new, |written| shown(written).into_owned());
    let place_of = |name| place(name, written(name).and_then(|it| it.source.as_ref()));
    // The layout and the number are checked against each other here and not in
    // check hooks, so that both can be changed together.
    let identity = node_number::resolve(
        layout,
        &node_number::Settings {
            source: &source,
            network: &network,
            node_id,
            place_of_source: place_of(NODE_ID_SOURCE),
            place_of_number: place_of(NODE_ID),
        },
    );
    AtStart {
        layout,
        identity,
        node_source: source,
        network,
        node_id,
    }
}

/// Whether the extension has a setting of this name.
pub fn is_known(name: &CStr) -> bool {
    let texts = [LAYOUT, NODE_ID_SOURCE, NODE_NETWORK, ON_NODE_CONFLICT];
    let integers = integers().map(|integer| integer.name);
    texts
        .iter()
        .chain(&BOOLEANS)
        .chain(&integers)
        .any(|known| known.to_bytes().eq_ignore_ascii_case(name.to_bytes()))
        || (cfg!(feature = "testing") && name == c"snowflake.unprotected")
}

/// A misspelt `snowflake.layuot` would leave the server with another layout than
/// intended. So it is an error, as a misspelt core setting is.
fn refuse_unknown_names(configured: &[Configured]) {
    for it in configured {
        let shown = it.name.to_string_lossy();
        if shown.to_ascii_lowercase().starts_with("snowflake.") && !is_known(&it.name) {
            refuse(
                format!("unrecognized configuration parameter \"{shown}\""),
                "The extension has no setting of this name.".into(),
                &place(&it.name, it.source.as_ref()),
                "Correct the name or remove the line.".into(),
            );
        }
    }
}

fn shown(configured: &Configured) -> Cow<'_, str> {
    configured.text.to_string_lossy()
}

fn parse<T: FromStr<Err: Display>>(configured: &Configured, hint: impl Fn() -> String) -> T {
    match shown(configured).parse() {
        Ok(value) => value,
        Err(reason) => refuse_value(configured, reason.to_string(), hint()),
    }
}

/// Refuses a network that is none, also where it is not used.
fn check_network(configured: &Configured) {
    let text = shown(configured);
    if !text.is_empty()
        && let Err(reason) = node_source::parse_network(&text)
    {
        refuse_value(configured, reason.to_string(), CORRECT.into());
    }
}

fn check_integer(integer: &Integer, configured: &Configured) -> c_int {
    let mut value: c_int = 0;
    let mut hint: *const c_char = ptr::null();
    // SAFETY: the text is nul-terminated and both out-pointers are valid; the
    // hint is null or a static string of Postgres.
    let (parsed, hint) = unsafe {
        let text = configured.text.as_ptr();
        let parsed = pg_sys::parse_int(text, &mut value, integer.flags.bits(), &mut hint);
        let hint = (!hint.is_null()).then(|| CStr::from_ptr(hint).to_string_lossy());
        (parsed, hint)
    };
    if parsed && (integer.min..=integer.max).contains(&value) {
        return value;
    }
    let unit = if integer.flags.contains(GucFlags::UNIT_MS) {
        " ms"
    } else {
        ""
    };
    refuse_value(
        configured,
        format!("The range is {} to {}{unit}.", integer.min, integer.max),
        hint.unwrap_or(CORRECT.into()).into_owned(),
    )
}

fn check_boolean(configured: &Configured) {
    let mut value = false;
    // SAFETY: a nul-terminated text and a valid out-pointer.
    if !unsafe { pg_sys::parse_bool(configured.text.as_ptr(), &mut value) } {
        refuse_value(
            configured,
            "The value must be on or off.".into(),
            CORRECT.into(),
        );
    }
}

#[track_caller]
fn refuse_value(configured: &Configured, detail: String, hint: String) -> ! {
    refuse(
        format!(
            "invalid value for parameter \"{}\": \"{}\"",
            configured.name.to_string_lossy(),
            shown(configured)
        ),
        detail,
        &place(&configured.name, configured.source.as_ref()),
        hint,
    )
}
