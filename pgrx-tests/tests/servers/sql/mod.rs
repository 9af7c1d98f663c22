//! Each function against the library's own account of it, and in parallel workers. What a
//! single session sees has golden files (`test/regress`).

mod library;
mod parallel;

use std::cell::RefCell;

use postgres::types::FromSql;

use crate::support::*;

thread_local! {
    /// The session is closed before its server is stopped.
    static SESSION: RefCell<Option<(Client, Cluster)>> = const { RefCell::new(None) };
}

/// Begins a transaction on a server with node 5.
fn session() -> Result<()> {
    let cluster = Cluster::node(5).start_with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute("BEGIN")?;
    SESSION.set(Some((client, cluster)));
    Ok(())
}

fn with_client<T>(action: impl FnOnce(&mut Client) -> T) -> T {
    SESSION.with_borrow_mut(|session| action(&mut session.as_mut().expect("a session").0))
}

fn run(statements: &str) {
    with_client(|client| client.batch_execute(statements))
        .unwrap_or_else(|error| panic!("{statements}: {error}"));
}

/// Runs a statement and answers how it ended: SQLSTATE, message, detail, hint.
fn outcome(statement: &str) -> [String; 4] {
    run(
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
    );
    let parts: Vec<String> =
        with_client(|client| client.query_one("SELECT pg_temp.outcome($1)", &[&statement]))
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
            .get(0);
    parts.try_into().expect("four parts")
}

fn one<T: for<'a> FromSql<'a>>(query: &str) -> T {
    with_client(|client| client.query_one(query, &[]))
        .unwrap_or_else(|error| panic!("{query}: {error}"))
        .get(0)
}

fn texts(query: &str) -> Vec<String> {
    one(&format!("SELECT ARRAY({query})::text[]"))
}
