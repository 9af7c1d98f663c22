//! What pgrx's test runner needs to know.
#![allow(missing_docs)]

pub fn setup(_options: Vec<&str>) {}

#[must_use]
pub fn postgresql_conf_options() -> Vec<&'static str> {
    vec![
        "shared_preload_libraries = 'snowflake'",
        "snowflake.node_id = 5",
    ]
}
