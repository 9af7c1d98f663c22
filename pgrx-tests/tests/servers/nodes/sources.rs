//! `snowflake.node_id_source`: the number that a server finds for itself.

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Uid, sethostname};

use crate::support::*;

const NODE: &str = "SELECT node_id FROM snowflake_status";

/// Starts a server on a host of this name. Only a thread, and what it starts, has
/// the name.
fn on_host<T: Send>(name: &str, start: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| {
        scope
            .spawn(|| {
                unshare(CloneFlags::CLONE_NEWUTS)
                    .context("making a namespace for the host name")?;
                sethostname(name)?;
                start()
            })
            .join()
            .expect("the host's thread")
    })
}

fn with_source(source: &str) -> ClusterBuilder {
    Cluster::builder().conf("snowflake.node_id_source", source)
}

/// The node number that a server has, according to its status, its log and its IDs.
fn node_of(cluster: &Cluster, source: &str, logged: &str) -> Result<i64> {
    let mut client = cluster.connect()?;
    let node = client.number(NODE)?;
    client.answers("SELECT snowflake_node_id(snowflake_nextval())", node)?;
    client.answers("SELECT node_id_source FROM snowflake_status", source)?;
    let log = cluster.log_since_start()?;
    let line = format!("snowflake: the node number of this server is {node}, from {logged}");
    ensure!(
        log.contains(&line),
        "the log has no line \"{line}\":\n{log}"
    );
    Ok(node)
}

/// Starts a server that must refuse to, and checks what it says.
fn refused(mut cluster: Cluster, said: &[&str]) -> Result<()> {
    let log = cluster.start_expecting_failure()?;
    for text in said.iter().chain(&["FATAL:", "DETAIL:", "HINT:"]) {
        ensure!(
            log.contains(text),
            "the log does not contain {text:?}:\n{log}"
        );
    }
    ensure!(!log.contains("PANIC") && !log.contains("panicked"), "{log}");
    Ok(())
}

#[test]
fn the_host_name_has_the_number() -> Result<()> {
    if !Uid::effective().is_root() {
        println!("skipped: only root can give a server another host name");
        return Ok(());
    }
    for (host, offset, expected) in [
        ("pg-3", None, 3),
        ("orders-12.db40.example.com", None, 12),
        ("pg-3", Some(40), 43),
    ] {
        let cluster = on_host(host, || {
            let mut builder = with_source("hostname");
            if let Some(offset) = offset {
                builder = builder.conf("snowflake.node_id", offset);
            }
            builder.start_with_extension()
        })?;
        let node = node_of(&cluster, "hostname", &format!("the host name \"{host}\""))?;
        assert_eq!(node, expected, "{host}");
    }
    for (host, said) in [
        (
            "primary",
            "The host name \"primary\" has no digits before its first dot.",
        ),
        (
            "pg-64",
            "The number is 64 of the host name \"pg-64\". The layout \"timestamp:41 node:6",
        ),
    ] {
        on_host(host, || {
            refused(with_source("hostname").prepare()?, &[said])
        })?;
    }
    on_host("pg-60", || {
        let cluster = with_source("hostname")
            .conf("snowflake.node_id", 4)
            .prepare()?;
        refused(
            cluster,
            &["node number 64 does not fit", "plus 4 of snowflake.node_id"],
        )
    })
}

#[test]
fn an_environment_variable_has_the_number() -> Result<()> {
    let source = "environment:POD_INDEX";
    let cluster = with_source(source)
        .environment("POD_INDEX", "5")
        .start_with_extension()?;
    assert_eq!(
        node_of(&cluster, source, "the environment variable POD_INDEX")?,
        5
    );
    drop(cluster);
    let cluster = with_source(source)
        .environment("POD_INDEX", "5")
        .conf("snowflake.node_id", 10)
        .start_with_extension()?;
    let logged = "the environment variable POD_INDEX (5, plus 10 of snowflake.node_id)";
    assert_eq!(node_of(&cluster, source, logged)?, 15);
    drop(cluster);

    refused(
        with_source(source).prepare()?,
        &["The environment variable POD_INDEX is not set."],
    )?;
    for (text, said) in [
        ("pg-5", "is \"pg-5\", which is not a whole number."),
        ("", "is \"\", which is not a whole number."),
        ("-1", "is \"-1\", which is not a whole number."),
        ("64", "node number 64 does not fit the layout"),
        ("99999999999", "99999999999 is too large for a node number."),
    ] {
        refused(
            with_source(source)
                .environment("POD_INDEX", text)
                .prepare()?,
            &[said],
        )?;
    }
    Ok(())
}

/// Every machine has 127.0.0.1, and no other address in 127.0.0.0/8.
#[test]
fn the_address_in_a_network_has_the_number() -> Result<()> {
    for (network, expected) in [
        ("127.0.0.0/24", 1),
        ("127.0.0.1/32", 0),
        (" 127.0.0.0/8 ", 1),
    ] {
        let cluster = with_source("address")
            .conf("snowflake.node_network", network)
            .start_with_extension()?;
        let logged = format!("the address in {}", network.trim());
        assert_eq!(
            node_of(&cluster, "address", &logged)?,
            expected,
            "{network}"
        );
    }
    refused(
        with_source("address").prepare()?,
        &["A network is an address, a slash and a length"],
    )?;
    for (network, said) in [
        (
            "203.0.113.0/24",
            "No address of this host is in 203.0.113.0/24.",
        ),
        (
            "127.0.0/24",
            "invalid value for parameter \"snowflake.node_network\": \"127.0.0/24\"",
        ),
    ] {
        refused(
            with_source("address")
                .conf("snowflake.node_network", network)
                .prepare()?,
            &[said],
        )?;
    }
    // A wrong network is refused also where it is not used.
    let cluster = Cluster::node(1)
        .conf("snowflake.node_network", "x")
        .prepare()?;
    refused(
        cluster,
        &["invalid value for parameter \"snowflake.node_network\": \"x\""],
    )
}

#[test]
fn an_unknown_source_is_refused_at_the_start_and_by_alter_system() -> Result<()> {
    for (source, said) in [
        (
            "dns",
            "invalid value for parameter \"snowflake.node_id_source\": \"dns\"",
        ),
        (
            "environment:",
            "The source \"environment:\" needs the name of a variable, for example environment:NODE_ID.",
        ),
        (
            "Hostname",
            "The sources are setting, hostname, environment:NAME and address.",
        ),
    ] {
        refused(with_source(source).prepare()?, &[said])?;
    }
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.answers("SELECT node_id_source FROM snowflake_status", "setting")?;
    for (name, text) in [
        ("node_id_source", "dns"),
        ("node_network", "10.0.0.0/33"),
        ("on_node_conflict", "ignore"),
    ] {
        let answer = client.simple_query(&format!("ALTER SYSTEM SET snowflake.{name} = '{text}'"));
        let refused = ServerError::from_error(answer.err().context("it was accepted")?)?;
        assert_eq!(refused.sqlstate, "22023", "{refused}");
    }
    // None of them can be changed by a session.
    for name in ["node_id_source", "node_network", "on_node_conflict"] {
        let answer = client.simple_query(&format!("SET snowflake.{name} = 'log'"));
        let refused = ServerError::from_error(answer.err().context("it was accepted")?)?;
        assert_eq!(refused.sqlstate, "55P02", "{refused}");
    }
    Ok(())
}
