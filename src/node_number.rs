//! This server's node number: where it comes from, decided once.
//!
//! Fleets number their servers already: by the index of a pod, a host name, an
//! address. `snowflake.node_id_source` takes the number from there, so that one
//! configuration can serve all servers. A number that cannot be found, or does not
//! fit the layout, is an error like any invalid setting.

use std::net::IpAddr;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::unistd::gethostname;
use snowflake_id::node_source::{self, NodeSource, NodeSourceError};
use snowflake_id::{Identity, Layout};

use crate::error::{log, refuse};

/// The settings that decide the number.
pub struct Settings<'a> {
    /// `snowflake.node_id_source`
    pub source: &'a NodeSource,
    /// `snowflake.node_network`; empty if not set.
    pub network: &'a str,
    /// `snowflake.node_id`; -1 if not set.
    pub node_id: i32,
    /// A sentence on where the source is set.
    pub place_of_source: String,
    /// A sentence on where the number is set.
    pub place_of_number: String,
}

/// The identity of this server; `None` if the layout needs a node number and
/// `snowflake.node_id` is not set. Raises an error if there is no number in the source, or
/// if it does not fit the layout.
pub fn resolve(layout: Layout, settings: &Settings<'_>) -> Option<Identity> {
    let set = u32::try_from(settings.node_id).ok();
    let node = match settings.source {
        NodeSource::Setting => match set {
            Some(node) if node > layout.max_node() => refuse_setting(layout, node, settings),
            Some(node) => node,
            // A layout without node bits needs none.
            None if layout.node_bits() == 0 => 0,
            None => return None,
        },
        source => {
            let (number, of) = find(source, settings.network)
                .unwrap_or_else(|reason| refuse_source(settings, &reason));
            let offset = set.unwrap_or(0);
            let sum = u64::from(number) + u64::from(offset);
            match u32::try_from(sum) {
                Ok(node) if node <= layout.max_node() => {
                    log_number(node, number, offset, &of);
                    node
                }
                _ => refuse_sum(layout, sum, (number, offset), &of, settings),
            }
        }
    };
    Identity::new(layout, node).ok()
}

/// The number that [`resolve`] would find with these settings; `None` where it would find none,
/// or raise an error.
pub fn configured(layout: Layout, source: &NodeSource, network: &str, node_id: i32) -> Option<u32> {
    let set = u32::try_from(node_id).ok();
    let node = match source {
        NodeSource::Setting => set.or((layout.node_bits() == 0).then_some(0))?,
        source => find(source, network)
            .ok()?
            .0
            .checked_add(set.unwrap_or(0))?,
    };
    (node <= layout.max_node()).then_some(node)
}

/// The number in the source, and what it is of, for messages.
fn find(source: &NodeSource, network: &str) -> Result<(u32, String), NodeSourceError> {
    match source {
        NodeSource::Setting => unreachable!("the setting has the number"),
        NodeSource::HostName => {
            let name = host_name();
            let number = node_source::number_in_host_name(&name)?;
            Ok((number, format!("the host name \"{name}\"")))
        }
        NodeSource::Environment(name) => {
            let value = std::env::var_os(name);
            let value = value.as_ref().map(|value| value.to_string_lossy());
            let number = node_source::number_in_variable(name, value.as_deref())?;
            Ok((number, format!("the environment variable {name}")))
        }
        NodeSource::Address => {
            let network = node_source::parse_network(network)?;
            let number = node_source::number_in_addresses(network, addresses())?;
            Ok((number, format!("the address in {network}")))
        }
    }
}

/// The host's name; empty if the system does not tell.
pub fn host_name() -> String {
    gethostname().map_or_else(
        |_| String::new(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// The addresses of the interfaces that are up.
fn addresses() -> Vec<IpAddr> {
    let interfaces = getifaddrs().into_iter().flatten();
    interfaces
        .filter(|interface| interface.flags.contains(InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
        })
        .collect()
}

fn log_number(node: u32, number: u32, offset: u32, of: &str) {
    let sum = match offset {
        0 => String::new(),
        _ => format!(" ({number}, plus {offset} of snowflake.node_id)"),
    };
    log(
        format!("snowflake: the node number of this server is {node}, from {of}{sum}"),
        String::new(),
    );
}

fn refuse_setting(layout: Layout, node: u32, settings: &Settings<'_>) -> ! {
    refuse(
        format!("invalid value for parameter \"snowflake.node_id\": {node}"),
        format!(
            "The node number does not fit the layout \"{layout}\", which allows 0 to {}.",
            layout.max_node()
        ),
        &settings.place_of_number,
        "Change snowflake.node_id, or use a layout with more node bits.".into(),
    )
}

fn refuse_source(settings: &Settings<'_>, reason: &NodeSourceError) -> ! {
    let source = settings.source;
    let hint = match source {
        NodeSource::Address => {
            "Set snowflake.node_network to the network in which each server has one address, or use another snowflake.node_id_source."
        }
        NodeSource::HostName => {
            "Give the host a name that ends with its number, or use another snowflake.node_id_source."
        }
        _ => {
            "Set the variable in the environment of the server, or use another snowflake.node_id_source."
        }
    };
    refuse(
        format!(
            "could not find the node number of this server: snowflake.node_id_source is \"{source}\""
        ),
        reason.to_string(),
        &settings.place_of_source,
        hint.into(),
    )
}

fn refuse_sum(
    layout: Layout,
    sum: u64,
    (number, offset): (u32, u32),
    of: &str,
    settings: &Settings<'_>,
) -> ! {
    let addition = match offset {
        0 => String::new(),
        _ => format!(", plus {offset} of snowflake.node_id"),
    };
    refuse(
        format!("node number {sum} does not fit the layout of this server"),
        format!(
            "The number is {number} of {of}{addition}. The layout \"{layout}\" allows 0 to {}",
            layout.max_node()
        ),
        &settings.place_of_source,
        "Use a layout with more node bits, or another snowflake.node_id_source.".into(),
    )
}
