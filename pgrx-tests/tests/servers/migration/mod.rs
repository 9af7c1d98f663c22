//! Replacing serial columns, in a maintenance window and online.

mod interrupted;
mod online;
mod online_interrupted;
mod online_load;
mod online_servers;
mod online_zoo;
mod refusals;
mod rights;
mod servers;
mod zoo;
