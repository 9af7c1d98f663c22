//! The functions that people call, and their values in Rust.

pub mod admin;
pub mod bounds;
mod explain;
pub mod generate;
pub mod layouts;
pub mod monitor;
pub mod read;
mod refuse;
pub mod resolved;
mod text;
pub mod values;
pub mod watch;
