//! What the extension `snowflake_migrate` needs besides SQL: the tables that keep its
//! records, the statements that run with the privileges of owners, and the trigger that
//! fills shadow columns.

mod code;
mod definition;
mod expression;
mod first_id;
mod owner;
mod records;
mod restore;
mod sequence;
mod shadow;
mod sleep;
mod trigger;
