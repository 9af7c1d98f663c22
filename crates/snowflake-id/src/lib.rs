//! Snowflake IDs.
