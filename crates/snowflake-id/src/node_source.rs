//! Where a server's node number comes from: a setting, its host name, its environment, its address.
//!
//! Only what can be computed is here. The caller reads the host name, the variable and the
//! addresses.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// A source of node numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSource {
    /// A setting has the number.
    Setting,
    /// [`number_in_host_name`].
    HostName,
    /// [`number_in_variable`] of the variable with this name.
    Environment(String),
    /// [`number_in_addresses`].
    Address,
}

/// Why there is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NodeSourceError {
    /// The text names no source.
    #[error("the sources are setting, hostname, environment:NAME and address")]
    UnknownSource,
    /// A variable without a name.
    #[error(
        "the source \"environment:\" needs the name of a variable, for example environment:NODE_ID"
    )]
    NoVariableName,
    /// [`number_in_host_name`]
    #[error("the host name \"{0}\" has no digits before its first dot")]
    NoDigits(String),
    /// The number is greater than the largest of any layout.
    #[error("{0} is too large for a node number")]
    TooLarge(String),
    /// [`number_in_variable`]
    #[error("the environment variable {0} is not set")]
    NoVariable(String),
    /// [`number_in_variable`]
    #[error("the environment variable {name} is \"{value}\", which is not a whole number")]
    NotANumber {
        /// The variable's name.
        name: String,
        /// Its value.
        value: String,
    },
    /// The text is no network.
    #[error("a network is an address, a slash and a length, for example 10.0.3.0/24")]
    InvalidNetwork,
    /// [`number_in_addresses`]
    #[error("no address of this host is in {0}")]
    NoAddress(IpNet),
    /// [`number_in_addresses`]
    #[error("this host has several addresses in {network}: {first} and {second}")]
    SeveralAddresses {
        /// The network.
        network: IpNet,
        /// One of the addresses.
        first: IpAddr,
        /// Another one.
        second: IpAddr,
    },
}

impl FromStr for NodeSource {
    type Err = NodeSourceError;

    fn from_str(text: &str) -> Result<Self, NodeSourceError> {
        match text.split_once(':') {
            Some(("environment", name)) if name.trim().is_empty() || name.contains('=') => {
                Err(NodeSourceError::NoVariableName)
            }
            Some(("environment", name)) => Ok(Self::Environment(name.trim().to_owned())),
            None if text == "setting" => Ok(Self::Setting),
            None if text == "hostname" => Ok(Self::HostName),
            None if text == "address" => Ok(Self::Address),
            _ => Err(NodeSourceError::UnknownSource),
        }
    }
}

impl fmt::Display for NodeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setting => f.write_str("setting"),
            Self::HostName => f.write_str("hostname"),
            Self::Environment(name) => write!(f, "environment:{name}"),
            Self::Address => f.write_str("address"),
        }
    }
}

/// The last digits of a host name before its first dot: 12 of `orders-12.db4.example.com`. The
/// domain is the same for many hosts.
///
/// # Errors
/// [`NodeSourceError::NoDigits`], [`NodeSourceError::TooLarge`].
pub fn number_in_host_name(name: &str) -> Result<u32, NodeSourceError> {
    let label = name.split('.').next().unwrap_or_default();
    let digits = label
        .split(|character: char| !character.is_ascii_digit())
        .rfind(|digits| !digits.is_empty())
        .ok_or_else(|| NodeSourceError::NoDigits(name.to_owned()))?;
    digits
        .parse()
        .map_err(|_| NodeSourceError::TooLarge(digits.to_owned()))
}

/// The number that is the value of an environment variable, in decimal digits.
///
/// # Errors
/// [`NodeSourceError::NoVariable`], [`NodeSourceError::NotANumber`], [`NodeSourceError::TooLarge`].
pub fn number_in_variable(name: &str, value: Option<&str>) -> Result<u32, NodeSourceError> {
    let value = value.ok_or_else(|| NodeSourceError::NoVariable(name.to_owned()))?;
    let digits = value.trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NodeSourceError::NotANumber {
            name: name.to_owned(),
            value: value.to_owned(),
        });
    }
    digits
        .parse()
        .map_err(|_| NodeSourceError::TooLarge(digits.to_owned()))
}

/// A network in CIDR notation: `10.0.3.0/24`, `fd00:1::/120`.
///
/// # Errors
/// [`NodeSourceError::InvalidNetwork`].
pub fn parse_network(text: &str) -> Result<IpNet, NodeSourceError> {
    text.trim()
        .parse()
        .map_err(|_| NodeSourceError::InvalidNetwork)
}

/// The host part of the one address that is in the network: 17 of 10.0.3.17 in 10.0.3.0/24.
///
/// # Errors
/// [`NodeSourceError::NoAddress`], [`NodeSourceError::SeveralAddresses`],
/// [`NodeSourceError::TooLarge`].
pub fn number_in_addresses(
    network: IpNet,
    addresses: impl IntoIterator<Item = IpAddr>,
) -> Result<u32, NodeSourceError> {
    let mut inside = addresses
        .into_iter()
        .filter(|address| network.contains(address));
    let first = inside.next().ok_or(NodeSourceError::NoAddress(network))?;
    // One address may be on several interfaces.
    if let Some(second) = inside.find(|address| *address != first) {
        return Err(NodeSourceError::SeveralAddresses {
            network,
            first,
            second,
        });
    }
    let host = match (first, network.hostmask()) {
        (IpAddr::V4(address), IpAddr::V4(mask)) => u128::from(address.to_bits() & mask.to_bits()),
        (IpAddr::V6(address), IpAddr::V6(mask)) => address.to_bits() & mask.to_bits(),
        _ => return Err(NodeSourceError::NoAddress(network)),
    };
    u32::try_from(host).map_err(|_| NodeSourceError::TooLarge(host.to_string()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_as_they_are_written() {
        for text in ["setting", "hostname", "environment:POD_INDEX", "address"] {
            assert_eq!(text.parse::<NodeSource>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "host",
            "Setting",
            "setting:1",
            "hostname:x",
            "dns",
            "env:X",
        ] {
            assert_eq!(
                text.parse::<NodeSource>(),
                Err(NodeSourceError::UnknownSource),
                "{text}"
            );
        }
        for text in ["environment:", "environment: ", "environment:A=B"] {
            assert_eq!(
                text.parse::<NodeSource>(),
                Err(NodeSourceError::NoVariableName),
                "{text}"
            );
        }
        assert_eq!(
            "environment".parse::<NodeSource>(),
            Err(NodeSourceError::UnknownSource)
        );
    }

    #[test]
    fn the_last_digits_before_the_first_dot_count() {
        for (name, number) in [
            ("pg-0", 0),
            ("orders-12", 12),
            ("orders-12.db4.example.com", 12),
            ("10-2-node007x", 7),
            ("db3primary", 3),
            ("ip-10-0-3-17", 17),
        ] {
            assert_eq!(number_in_host_name(name), Ok(number), "{name}");
        }
        for name in ["", "primary", "primary.db4.example.com", ".3"] {
            assert_eq!(
                number_in_host_name(name),
                Err(NodeSourceError::NoDigits(name.into())),
                "{name}"
            );
        }
        let name = "pg-4294967296";
        assert_eq!(
            number_in_host_name(name),
            Err(NodeSourceError::TooLarge("4294967296".into()))
        );
    }

    #[test]
    fn a_variable_has_decimal_digits_and_nothing_else() {
        assert_eq!(number_in_variable("N", Some("7")), Ok(7));
        assert_eq!(number_in_variable("N", Some(" 007\n")), Ok(7));
        assert_eq!(
            number_in_variable("N", None),
            Err(NodeSourceError::NoVariable("N".into()))
        );
        for value in ["", " ", "-1", "+1", "1.0", "0x1", "pg-1", "٣"] {
            let error = number_in_variable("N", Some(value)).unwrap_err();
            assert!(
                matches!(error, NodeSourceError::NotANumber { .. }),
                "{value}"
            );
        }
        assert!(matches!(
            number_in_variable("N", Some("99999999999")),
            Err(NodeSourceError::TooLarge(_))
        ));
    }

    #[test]
    fn the_host_part_of_the_one_address_inside_counts() {
        let addresses = [
            "127.0.0.1",
            "10.0.3.17",
            "192.168.1.5",
            "fd00:1::2a",
            "::1",
            "10.0.3.17",
        ];
        let of = |network: &str| {
            let addresses = addresses.map(|address| address.parse().unwrap());
            number_in_addresses(parse_network(network).unwrap(), addresses)
        };
        assert_eq!(of("10.0.3.0/24"), Ok(17));
        assert_eq!(of("10.0.3.99/24"), Ok(17));
        assert_eq!(of("10.0.0.0/8"), Ok(3 << 8 | 17));
        assert_eq!(of("10.0.3.17/32"), Ok(0));
        assert_eq!(of("fd00:1::/112"), Ok(42));
        assert!(matches!(
            of("10.0.4.0/24"),
            Err(NodeSourceError::NoAddress(_))
        ));
        assert!(matches!(
            of("0.0.0.0/0"),
            Err(NodeSourceError::SeveralAddresses { .. })
        ));
        assert!(matches!(of("fd00::/8"), Err(NodeSourceError::TooLarge(_))));
        for text in ["", "10.0.3.0", "10.0.3/24", "10.0.3.0/33", "network"] {
            assert_eq!(
                parse_network(text),
                Err(NodeSourceError::InvalidNetwork),
                "{text}"
            );
        }
    }
}
