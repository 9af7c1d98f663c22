//! Tests that run inside a server: each function, each SQLSTATE, each marking.
//! What a client sees over a connection is in `pgrx-tests/`.
#![allow(missing_docs)]

mod catalog;
mod generating;
mod reading;
mod shadow;

use pgrx::prelude::*;

/// Runs a statement and answers how it ended: SQLSTATE, message, detail, hint.
fn outcome(statement: &str) -> [String; 4] {
    Spi::run(
        "CREATE OR REPLACE FUNCTION pg_temp.outcome(statement text) RETURNS text[]
         LANGUAGE plpgsql AS $$
         DECLARE state text; message text; detail text; hint text;
         BEGIN
             EXECUTE statement;
             RETURN ARRAY['00000', '', '', ''];
         EXCEPTION WHEN OTHERS THEN
             GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
                 detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
             RETURN ARRAY[state, message, detail, hint];
         END $$",
    )
    .expect("the helper is valid");
    let parts: Vec<String> =
        Spi::get_one_with_args("SELECT pg_temp.outcome($1)", &[statement.into()])
            .expect("the helper runs")
            .expect("the helper answers");
    parts.try_into().expect("four parts")
}

fn one<T: FromDatum + IntoDatum>(query: &str) -> T {
    Spi::get_one(query)
        .unwrap_or_else(|error| panic!("{query}: {error}"))
        .unwrap_or_else(|| panic!("{query}: NULL"))
}

fn texts(query: &str) -> Vec<String> {
    one(&format!("SELECT ARRAY({query})"))
}
