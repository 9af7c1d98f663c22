//! tokio-postgres, as docs/clients.md says.

use std::error::Error;

use serde::{Serialize, Serializer};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, NoTls};

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

async fn connect() -> Result<Client, Box<dyn Error>> {
    let setting = |name: &str| std::env::var(name).map_err(|_| format!("{name} is not set"));
    let mut config = Config::new();
    config
        .host(setting("PGHOST")?)
        .port(setting("PGPORT")?.parse()?)
        .dbname(setting("PGDATABASE")?)
        .user(setting("PGUSER")?)
        .password(setting("PGPASSWORD")?);
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut report = report::Report::new()?;
    let client = connect().await?;

    client
        .batch_execute(
            "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
             CREATE TABLE bulk_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE);
             CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE);",
        )
        .await?;

    let row = client
        .query_one(
            "INSERT INTO orders (note) VALUES ($1) RETURNING id, note",
            &[&"first"],
        )
        .await?;
    let order = Order {
        id: row.get("id"),
        note: row.get("note"),
    };
    report.id("orders", &order.note, order.id)?;

    // All rows with one statement, and with one parameter.
    let notes: Vec<String> = (0..2000).map(|n| format!("row {n}")).collect();
    let rows = client
        .query(
            "INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note",
            &[&notes],
        )
        .await?;
    for row in &rows {
        report.id("bulk_rows", row.get("note"), row.get::<_, i64>("id"))?;
    }

    // A service that runs during the migration, with statements that it has prepared before.
    let service = connect().await?;
    let insert = service
        .prepare("INSERT INTO tickets (note) VALUES ($1) RETURNING id")
        .await?;
    let insert_as_bigint = service
        .prepare("INSERT INTO tickets (note) VALUES ($1) RETURNING id::bigint")
        .await?;
    let old: i32 = service.query_one(&insert, &[&"old"]).await?.get("id");
    report.id("tickets", "old", old)?;
    report.check(
        service
            .query_one("SELECT id FROM tickets WHERE note = 'old'", &[])
            .await?
            .try_get::<_, i64>("id")
            .is_err(),
        "an i64 cannot take an integer column",
    )?;
    let old: i64 = service
        .query_one("SELECT id::bigint FROM tickets WHERE note = 'old'", &[])
        .await?
        .get("id");
    report.check(old == 1, "id::bigint before the migration")?;

    let by_id = "SELECT note FROM tickets WHERE id = $1";
    report.check(
        service.query_one(by_id, &[&1_i64]).await.is_err(),
        "an i64 cannot be compared with an integer column",
    )?;
    let find = service
        .prepare("SELECT note FROM tickets WHERE id = $1::bigint")
        .await?;
    let found: String = service.query_one(&find, &[&1_i64]).await?.get("note");
    report.check(found == "old", "$1::bigint before the migration")?;

    client
        .batch_execute("CALL snowflake_migrate.run('tickets')")
        .await?;

    let failed = service.query_one(&insert, &[&"lost"]).await.err();
    println!("prepared before the migration: {failed:?}");
    report.check(
        failed.is_some_and(|error| error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED)),
        "a statement prepared before the migration that returns the column fails",
    )?;
    let id: i64 = service
        .query_one(&insert_as_bigint, &[&"as bigint"])
        .await?
        .get("id");
    report.id("tickets", "as bigint", id)?;
    let found: String = service.query_one(&find, &[&id]).await?.get("note");
    report.check(found == "as bigint", "$1::bigint after the migration")?;
    let id: i64 = service
        .query_one(
            "INSERT INTO tickets (note) VALUES ($1) RETURNING id",
            &[&"new"],
        )
        .await?
        .get("id");
    report.id("tickets", "new", id)?;
    let row = service
        .query_one(
            "INSERT INTO tickets (note) VALUES ($1) RETURNING id",
            &[&"an error, and yet a row"],
        )
        .await?;
    let failed = row.try_get::<_, i32>("id");
    println!("i32 after the migration: {failed:?}");
    report.check(
        failed.is_err(),
        "an i32 cannot take a bigint column: the row is inserted, and the program gets an error",
    )?;

    let recent = client
        .query(
            "SELECT id, note FROM tickets WHERE id >= snowflake_min_id(now() - interval '1 hour')",
            &[],
        )
        .await?;
    report.check(
        recent.len() == 3 && recent.iter().all(|row| row.get::<_, &str>("note") != "old"),
        &format!("{} of 3 new rows in the range", recent.len()),
    )?;

    let json = serde_json::to_string(&order)?;
    println!("{json}");
    report.check(
        json.contains(&format!("\"{}\"", order.id)),
        "the ID is text in JSON",
    )?;
    let text: String = client
        .query_one("SELECT id::text FROM orders", &[])
        .await?
        .get("id");
    report.check(text.parse() == Ok(order.id), "the ID as text")?;
    let numbers: Vec<Number> = rows
        .iter()
        .map(|row| Number { id: row.get("id") })
        .collect();
    let changed = report::changed_by_javascript(&serde_json::to_string(&numbers)?)?;
    report.check(
        changed > 0,
        &format!("as JSON numbers, {changed} of 2000 IDs would change in JavaScript"),
    )?;
    Ok(report.finish()?)
}
