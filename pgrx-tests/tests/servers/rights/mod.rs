//! No role gains a right by what the extension installs.

mod grants;
mod mark_privileges;
mod names;
mod owner;
pub(crate) mod planted;
