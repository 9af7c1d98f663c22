//! Diesel, as docs/clients.md says.

use std::error::Error;

use diesel::connection::SimpleConnection;
use diesel::dsl::{IntervalDsl, now};
use diesel::prelude::*;
use diesel::sql_types::Timestamptz;
use serde::{Serialize, Serializer};

#[path = "../../report.rs"]
mod report;

diesel::table! {
    orders (id) {
        id -> Int8,
        note -> Nullable<Text>,
    }
}

diesel::table! {
    bulk_rows (id) {
        id -> Int8,
        note -> Nullable<Text>,
    }
}

diesel::table! {
    tickets (id) {
        id -> Int8,
        note -> Nullable<Text>,
    }
}

/// As before the migration.
mod before {
    diesel::table! {
        tickets (id) {
            id -> Int4,
            note -> Nullable<Text>,
        }
    }
}

#[declare_sql_function]
extern "SQL" {
    fn snowflake_min_id(time: Timestamptz) -> BigInt;
}

// No id: the database makes it.
#[derive(Insertable)]
#[diesel(table_name = orders)]
struct NewOrder<'a> {
    note: &'a str,
}

#[derive(Queryable, Selectable, Serialize)]
#[diesel(table_name = orders)]
struct Order {
    #[serde(serialize_with = "as_text")]
    id: i64,
    note: Option<String>,
}

fn as_text<S: Serializer>(id: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}

/// The same without `as_text`.
#[derive(Serialize)]
struct Number {
    id: i64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut report = report::Report::new()?;
    // From PGHOST and the other variables.
    let mut connection = PgConnection::establish("")?;
    let connection = &mut connection;

    connection.batch_execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
         CREATE TABLE bulk_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
         CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE);",
    )?;

    let order = diesel::insert_into(orders::table)
        .values(NewOrder { note: "first" })
        .returning(Order::as_returning())
        .get_result(connection)?;
    report.id(
        "orders",
        order.note.as_deref().unwrap_or_default(),
        order.id,
    )?;

    let new_rows: Vec<_> = (0..2000)
        .map(|n| bulk_rows::note.eq(format!("row {n}")))
        .collect();
    let rows: Vec<(i64, Option<String>)> = diesel::insert_into(bulk_rows::table)
        .values(&new_rows)
        .returning((bulk_rows::id, bulk_rows::note))
        .get_results(connection)?;
    for (id, note) in &rows {
        report.id("bulk_rows", note.as_deref().unwrap_or_default(), id)?;
    }

    // A service that runs during the migration, with a connection of its own.
    let service = &mut PgConnection::establish("")?;
    let id: i32 = diesel::insert_into(before::tickets::table)
        .values(before::tickets::note.eq("old"))
        .returning(before::tickets::id)
        .get_result(service)?;
    report.id("tickets", "old", id)?;
    let read = tickets::table.select(tickets::id).first::<i64>(service);
    println!("Int8 before the migration: {read:?}");
    report.check(
        matches!(read, Err(diesel::result::Error::DeserializationError(_))),
        "Int8 cannot take an integer column",
    )?;

    connection.batch_execute("CALL snowflake_migrate.run('tickets')")?;

    let failed = diesel::insert_into(before::tickets::table)
        .values(before::tickets::note.eq("lost"))
        .returning(before::tickets::id)
        .get_result::<i32>(service);
    println!("Int4 after the migration, on an old connection: {failed:?}");
    report.check(
        failed.is_err_and(|error| error.to_string().contains("cached plan")),
        "a connection from before the migration refuses RETURNING id",
    )?;
    let failed = diesel::insert_into(before::tickets::table)
        .values(before::tickets::note.eq("an error, and yet a row"))
        .returning(before::tickets::id)
        .get_result::<i32>(connection);
    println!("Int4 after the migration: {failed:?}");
    let error_and_row: i64 = tickets::table
        .filter(tickets::note.eq("an error, and yet a row"))
        .count()
        .get_result(connection)?;
    report.check(
        matches!(failed, Err(diesel::result::Error::DeserializationError(_))) && error_and_row == 1,
        "Int4 cannot take a bigint column: the row is inserted, and the program gets an error",
    )?;

    let id: i64 = diesel::insert_into(tickets::table)
        .values(tickets::note.eq("new"))
        .returning(tickets::id)
        .get_result(connection)?;
    report.id("tickets", "new", id)?;

    let an_hour_ago = now.into_sql::<Timestamptz>() - 1.hour();
    let recent: Vec<Option<String>> = tickets::table
        .filter(tickets::id.ge(snowflake_min_id(an_hour_ago)))
        .select(tickets::note)
        .order(tickets::id)
        .load(connection)?;
    report.check(
        recent.len() == 2 && recent.iter().flatten().all(|note| note != "old"),
        &format!("{} of 2 new rows in the range", recent.len()),
    )?;

    let json = serde_json::to_string(&order)?;
    println!("{json}");
    report.check(
        json.contains(&format!("\"{}\"", order.id)),
        "the ID is text in JSON",
    )?;
    let numbers: Vec<Number> = rows.iter().map(|&(id, _)| Number { id }).collect();
    let changed = report::changed_by_javascript(&serde_json::to_string(&numbers)?)?;
    report.check(
        changed > 0,
        &format!("as JSON numbers, {changed} of 2000 IDs would change in JavaScript"),
    )?;
    let an_hour_ago = now.into_sql::<Timestamptz>() - 1.hour();
    let recent: Vec<i64> = tickets::table
        .filter(tickets::id.ge(snowflake_min_id(an_hour_ago)))
        .select(tickets::id)
        .load(connection)?;
    println!("{recent:?}");
    Ok(report.finish()?)
}
