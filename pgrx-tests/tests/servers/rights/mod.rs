//! No role gains a right by what the extension installs.

mod grants;
mod look_ups;
mod mark_privileges;
mod members;
mod names;
mod owner;
pub(crate) mod planted;
mod restore;
mod schemas;

use snowflake_tests::attack::ROLES;

use crate::support::*;

/// A server that logs little but the messages of the weapons, with the roles.
fn server() -> Result<Cluster> {
    let cluster = Cluster::node(1).conf("log_min_messages", "log").start()?;
    cluster.run(ROLES)?;
    Ok(cluster)
}
