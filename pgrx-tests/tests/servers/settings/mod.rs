//! What people configure, and what they get wrong.

mod configuration;
mod errors;
mod layout_change;
mod minor_releases;
mod sessions;
