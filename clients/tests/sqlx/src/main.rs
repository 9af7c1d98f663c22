//! sqlx, as docs/clients.md says.

use std::error::Error;

use serde::{Serialize, Serializer};
use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgConnection};

#[path = "../../report.rs"]
mod report;

#[derive(Serialize)]
struct Order {
    #[serde(serialize_with = "as_text")]
    id: i64,
    note: String,
}

fn as_text<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// The same without `as_text`.
#[derive(Serialize)]
struct Number {
    id: i64,
}

/// Whether the server refused a statement that it had prepared before a column
/// got another type.
fn is_of_old_type<T>(result: &Result<T, sqlx::Error>) -> bool {
    let Err(sqlx::Error::Database(error)) = result else {
        return false;
    };
    error.code().as_deref() == Some("0A000")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut report = report::Report::new()?;
    // From PGHOST and the other variables.
    let options = PgConnectOptions::new();
    let mut connection = PgConnection::connect_with(&options).await?;

    sqlx::raw_sql(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
         CREATE TABLE bulk_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
         CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE);",
    )
    .execute(&mut connection)
    .await?;

    let (id, note): (i64, String) =
        sqlx::query_as("INSERT INTO orders (note) VALUES ($1) RETURNING id, note")
            .bind("first")
            .fetch_one(&mut connection)
            .await?;
    let order = Order { id, note };
    report.id("orders", &order.note, order.id)?;

    // All rows with one statement, and with one parameter.
    let notes: Vec<String> = (0..2000).map(|n| format!("row {n}")).collect();
    let rows: Vec<(i64, String)> =
        sqlx::query_as("INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note")
            .bind(&notes)
            .fetch_all(&mut connection)
            .await?;
    for (id, note) in &rows {
        report.id("bulk_rows", note, id)?;
    }

    // A service that runs during the migration. sqlx prepares each statement once a connection.
    let mut service = PgConnection::connect_with(&options).await?;
    let insert = "INSERT INTO tickets (note) VALUES ($1) RETURNING id";
    let insert_as_bigint = "INSERT INTO tickets (note) VALUES ($1) RETURNING id::bigint";
    let id: i32 = sqlx::query_scalar(insert)
        .bind("old")
        .fetch_one(&mut service)
        .await?;
    report.id("tickets", "old", id)?;
    let read: Result<i64, _> = sqlx::query_scalar("SELECT id FROM tickets WHERE note = 'old'")
        .fetch_one(&mut service)
        .await;
    report.check(
        matches!(read, Err(sqlx::Error::ColumnDecode { .. })),
        "an i64 cannot take an integer column",
    )?;
    let id: i64 = sqlx::query_scalar(insert_as_bigint)
        .bind("old, as bigint")
        .fetch_one(&mut service)
        .await?;
    report.id("tickets", "old, as bigint", id)?;
    // The type of a parameter is that of the value.
    let find = "SELECT note FROM tickets WHERE id = $1";
    let found: String = sqlx::query_scalar(find)
        .bind(id)
        .fetch_one(&mut service)
        .await?;
    report.check(
        found == "old, as bigint",
        "an i64 as parameter before the migration",
    )?;

    sqlx::raw_sql("CALL snowflake_migrate.run('tickets')")
        .execute(&mut connection)
        .await?;

    for attempt in 1..=2 {
        let failed: Result<i64, _> = sqlx::query_scalar(insert)
            .bind("lost")
            .fetch_one(&mut service)
            .await;
        println!("{failed:?}");
        report.check(
            is_of_old_type(&failed),
            &format!(
                "a connection from before the migration refuses RETURNING id, attempt {attempt}"
            ),
        )?;
    }
    let id: i64 = sqlx::query_scalar(insert_as_bigint)
        .bind("as bigint")
        .fetch_one(&mut service)
        .await?;
    report.id("tickets", "as bigint", id)?;
    let found: String = sqlx::query_scalar(find)
        .bind(id)
        .fetch_one(&mut service)
        .await?;
    report.check(
        found == "as bigint",
        "an i64 as parameter after the migration",
    )?;
    service.clear_cached_statements().await?;
    let id: i64 = sqlx::query_scalar(insert)
        .bind("statements cleared")
        .fetch_one(&mut service)
        .await?;
    report.id("tickets", "statements cleared", id)?;
    let id: i64 = sqlx::query_scalar("INSERT INTO tickets (note) VALUES ($1) RETURNING id")
        .bind("new")
        .fetch_one(&mut connection)
        .await?;
    report.id("tickets", "new", id)?;
    let failed: Result<i32, _> = sqlx::query_scalar(insert)
        .bind("an error, and yet a row")
        .fetch_one(&mut connection)
        .await;
    println!("{failed:?}");
    let error_and_row: i64 =
        sqlx::query_scalar("SELECT count(*) FROM tickets WHERE note = 'an error, and yet a row'")
            .fetch_one(&mut connection)
            .await?;
    report.check(
        matches!(failed, Err(sqlx::Error::ColumnDecode { .. })) && error_and_row == 1,
        "an i32 cannot take a bigint column: the row is inserted, and the program gets an error",
    )?;

    let recent: Vec<(i64, String)> = sqlx::query_as(
        "SELECT id, note FROM tickets WHERE id >= snowflake_min_id(now() - interval '1 hour')",
    )
    .fetch_all(&mut connection)
    .await?;
    report.check(
        recent.len() == 4 && recent.iter().all(|(_, note)| !note.starts_with("old")),
        &format!("{} of 4 new rows in the range", recent.len()),
    )?;

    let json = serde_json::to_string(&order)?;
    println!("{json}");
    report.check(
        json.contains(&format!("\"{}\"", order.id)),
        "the ID is text in JSON",
    )?;
    let text: String = sqlx::query_scalar("SELECT id::text FROM orders")
        .fetch_one(&mut connection)
        .await?;
    report.check(text.parse() == Ok(order.id), "the ID as text")?;
    let numbers: Vec<Number> = rows.iter().map(|&(id, _)| Number { id }).collect();
    let changed = report::changed_by_javascript(&serde_json::to_string(&numbers)?)?;
    report.check(
        changed > 0,
        &format!("as JSON numbers, {changed} of 2000 IDs would change in JavaScript"),
    )?;
    Ok(report.finish()?)
}
