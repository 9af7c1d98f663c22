//! What most tests use.

pub use std::thread;
pub use std::time::{Duration, Instant};

pub use anyhow::{Context, Result, bail, ensure};
pub use postgres::{Client, NoTls};

pub use crate::attack::{ATTACK_FUNCTIONS, Attacks, Session};
pub use crate::clock::Offset;
pub use crate::ids::{self, DEFAULT, Fields, SLOW_SLOTS, Tally, assert_increasing, grouped};
pub use crate::migration::{assert_same_schema, psql, schema};
pub use crate::online::{self, Step};
pub use crate::query::Ask;
pub use crate::server_error::ServerError;
pub use crate::threads::SetOnDrop;
pub use crate::{
    Cluster, ClusterBuilder, Installation, Server, Stop, document, processes, tier, wait,
};
