//! Uninstalling as docs/packages.md prints it, from a database with everything that the
//! documents create and with each kind of object that can use the extension.
//!
//! No cheaper tier sees it: a golden file has one database of its own making, does not
//! restart the server without the library, and would not follow the document.

use std::collections::BTreeSet;
use std::fs;

use super::with_everything_the_documents_create;
use crate::migration::run_before;
use crate::support::*;

const DATABASE: &str = "readme";
/// Where the steps are printed.
const DOCUMENT: &str = "docs/packages.md";
/// The query that lists what depends on the extension.
const LIST: &str = "docs/packages/dependents.sql";

/// What the documents describe without creating it.
const MORE: &str = "
    CREATE TABLE framework_rows (id bigint PRIMARY KEY DEFAULT snowflake_id(), note text);
    INSERT INTO framework_rows (note) SELECT 'a row' FROM generate_series(1, 1000);
    CREATE TABLE coded (code text PRIMARY KEY DEFAULT snowflake_to_text(snowflake_nextval()), id bigint,
                        CONSTRAINT of_some_node CHECK (snowflake_node_id(id, 'default') < 64));
    INSERT INTO coded (id) SELECT id FROM snowflake_nextvals(1000) AS id;
    CREATE VIEW order_times AS SELECT o.note, d.* FROM orders AS o, snowflake_decode(o.id) AS d;
    CREATE VIEW order_days AS SELECT date_trunc('day', created_at) AS day, count(*) FROM order_times GROUP BY 1;
    CREATE VIEW new_orders AS SELECT * FROM orders WHERE id < snowflake_resolved_id();
    CREATE MATERIALIZED VIEW nodes AS SELECT snowflake_node_id(id) AS node_id, count(*) FROM orders GROUP BY 1;
    CREATE POLICY of_this_year ON outbox USING (snowflake_timestamp(id) >= '2025-01-01');
    CREATE FUNCTION age_of(id bigint) RETURNS interval BEGIN ATOMIC SELECT now() - snowflake_timestamp(id); END;
    CREATE INDEX ON framework_rows ((snowflake_timestamp(id, 'default')));
    CALL snowflake_watch('framework_rows');
    CALL snowflake_watch('events');
    INSERT INTO events (what) SELECT 'a row' FROM generate_series(1, 1000);
    CREATE TABLE measured (id bigint NOT NULL DEFAULT snowflake_nextval(), note text)
        PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
    CREATE TABLE measured_all PARTITION OF measured DEFAULT;
    INSERT INTO measured (note) SELECT 'a row' FROM generate_series(1, 1000);
    CREATE TABLE routes (id serial PRIMARY KEY, note text);
    CREATE TABLE stops (id bigserial PRIMARY KEY, route_id integer NOT NULL REFERENCES routes);
    INSERT INTO routes (note) SELECT 'a row' FROM generate_series(1, 1000);
    INSERT INTO stops (route_id) SELECT id FROM routes;
    CREATE TABLE couriers (id serial PRIMARY KEY, note text);
    INSERT INTO couriers (note) SELECT 'a row' FROM generate_series(1, 1000);
    CREATE SEQUENCE another_id START WITH 5000000000000000000";

/// Names and expressions that would be left of the extension. (Ordinary objects here
/// have other names.)
const LEFT: &str = "
    SELECT 'function ' || proname FROM pg_proc WHERE proname LIKE 'snowflake%'
    UNION ALL SELECT 'relation ' || relname FROM pg_class WHERE relname LIKE '%snowflake%'
    UNION ALL SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname LIKE 'snowflake%'
    UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE tgname LIKE '%snowflake%'
    UNION ALL SELECT 'constraint ' || conname FROM pg_constraint WHERE conname LIKE '%snowflake%'
    UNION ALL SELECT 'column ' || attname FROM pg_attribute WHERE attname LIKE '%snowflake%' AND NOT attisdropped
    UNION ALL SELECT 'default ' || pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) LIKE '%snowflake%'
    UNION ALL SELECT 'constraint ' || conname FROM pg_constraint WHERE pg_get_constraintdef(oid) LIKE '%snowflake%'
    UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE indexdef LIKE '%snowflake%'
    UNION ALL SELECT 'view ' || viewname FROM pg_views WHERE definition LIKE '%snowflake_%' AND schemaname <> 'information_schema'
    UNION ALL SELECT 'extension ' || extname FROM pg_extension WHERE extname LIKE 'snowflake%'";

/// Migrated by the documents, and there not reverted.
const MIGRATED: [&str; 6] = [
    "tickets",
    "authors",
    "books",
    "customers",
    "deliveries",
    "refunds",
];

/// What the document says of an object of its list. A default is reverted if its column
/// was migrated, and replaced otherwise.
fn follow(client: &mut Client, object: &str) -> Result<Result<(), ServerError>> {
    let part = |kind: &str| object.strip_prefix(kind);
    // "NAME on table TABLE", and so on.
    let of = |kind: &str, between: &str| part(kind)?.split_once(between);
    let statement = if let Some((column, table)) = of("default value for column ", " of table ") {
        let is_partition = client.value(&format!(
            "SELECT relispartition FROM pg_class WHERE oid = '{table}'::regclass"
        ))? == "t";
        let revert = format!("CALL snowflake_migrate.revert('{table}', '{column}')");
        if !is_partition {
            match client
                .batch_execute(&revert)
                .map_err(ServerError::from_error)
            {
                Ok(()) => return Ok(Ok(())),
                // It was not migrated.
                Err(error) => {
                    let error = error?;
                    ensure!(!MIGRATED.contains(&table), "{revert}: {error}");
                }
            }
        }
        format!("ALTER TABLE {table} ALTER COLUMN {column} SET DEFAULT nextval('another_id')")
    } else if let Some((column, table)) = of("column ", " of table ") {
        format!("ALTER TABLE {table} ALTER COLUMN {column} DROP EXPRESSION")
    } else if let Some((trigger, table)) = of("trigger ", " on table ") {
        format!("DROP TRIGGER {trigger} ON {table}")
    } else if let Some((policy, table)) = of("policy ", " on table ") {
        format!("DROP POLICY {policy} ON {table}")
    } else if let Some((constraint, table)) = of("constraint ", " on table ") {
        format!("ALTER TABLE {table} DROP CONSTRAINT {constraint}")
    } else if let Some(table) = part("table ") {
        format!(
            "CREATE TABLE copy_of_it AS TABLE {table}; DROP TABLE {table}; ALTER TABLE copy_of_it RENAME TO {table}"
        )
    } else {
        let kinds = ["view ", "materialized view ", "index ", "function "];
        ensure!(
            kinds.iter().any(|kind| object.starts_with(kind)),
            "the document names no remedy: {object}"
        );
        format!("DROP {object}")
    };
    match client.batch_execute(&statement) {
        Ok(()) => Ok(Ok(())),
        Err(error) => Ok(Err(ServerError::from_error(error)?)),
    }
}

/// Follows the list until it is empty. One remedy takes other objects with it, and some
/// work only after others. Returns how many there were.
fn follow_the_list(client: &mut Client, list: &str) -> Result<usize> {
    let mut objects: Vec<String> = client.column(list)?;
    let (all, mut applied) = (objects.len(), 0);
    while !objects.is_empty() {
        let mut errors = Vec::new();
        for object in &objects {
            // What an earlier remedy took.
            let now: Vec<String> = client.column(list)?;
            // Partitions go with their table.
            if !now.contains(object) || object == "table measured_all" {
                continue;
            }
            match follow(client, object)? {
                Ok(()) => applied += 1,
                Err(error) => errors.push(format!("{object}: {error}")),
            }
        }
        let left: Vec<String> = client.column(list)?;
        ensure!(
            left.len() < objects.len(),
            "these remain: {left:#?}\n{errors:#?}"
        );
        objects = left;
    }
    println!("uninstalling: {all} objects in the list, {applied} remedies");
    Ok(all)
}

/// What CASCADE says that it drops.
fn dropped_by_cascade(server: &Server) -> Result<BTreeSet<String>> {
    let script = "BEGIN;\nDROP EXTENSION snowflake CASCADE;\nROLLBACK;\n";
    let said = psql(server, "postgres", DATABASE, script, true)?;
    ensure!(said.success, "{}", said.errors);
    Ok(said
        .errors
        .lines()
        .map(|line| line.trim_start_matches("DETAIL:  "))
        .filter_map(|line| line.strip_prefix("drop cascades to "))
        .filter(|object| {
            ![
                "extension snowflake_migrate",
                "extension snowflake_partitions",
            ]
            .contains(object)
        })
        .map(str::to_owned)
        .collect())
}

/// Removes the lines of the extension from the configuration files.
fn remove_settings(server: &Server) -> Result<usize> {
    let mut count = 0;
    for file in ["postgresql.conf", "postgresql.auto.conf"] {
        let path = server.data().join(file);
        let conf =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let (removed, kept): (Vec<&str>, Vec<&str>) = conf.lines().partition(|line| {
            line.starts_with("shared_preload_libraries") || line.starts_with("snowflake.")
        });
        let text: String = kept.iter().flat_map(|line| [*line, "\n"]).collect();
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        count += removed.len();
    }
    Ok(count)
}

#[test]
fn uninstalling_as_printed_keeps_all_rows() -> Result<()> {
    let list = document::read(LIST)?;
    for printed in [
        "(packages/dependents.sql)",
        "with `snowflake_migrate.revert`",
        "`DROP TRIGGER snowflake_watch ON orders`",
        "2. `DROP EXTENSION snowflake`. It fails while the list has a row.",
        "3. Remove `snowflake` from `shared_preload_libraries` and the `snowflake.` settings, and restart the server.",
    ] {
        document::require(DOCUMENT, printed)?;
    }
    let mut server = with_everything_the_documents_create()?;
    let mut client = server.connect_to(DATABASE)?;
    let client_ref = &mut client;
    client_ref
        .batch_execute(MORE)
        .context("what the documents do not create")?;
    let mut columns = online::columns(client_ref)?;
    // It becomes an ordinary table.
    columns.retain(|table, _| !table.starts_with("public.measured"));
    let before = online::contents(client_ref, &columns)?;
    let measured = "SELECT format('%s rows, %s', count(*), sum(id)) FROM measured";
    let measured_before = client_ref.value(measured)?;
    // One is cancelled before its rows are copied, the other one before its swap.
    run_before(client_ref, "'couriers'", Step::is_backfill)?;
    run_before(client_ref, "'routes'", Step::is_swap)?;

    let listed: BTreeSet<String> = client_ref.column(&list)?.into_iter().collect();
    for object in [
        "column created_at of table payments",
        "constraint of_some_node on table coded",
        "default value for column code of table coded",
        "default value for column id of table framework_rows",
        "default value for column id of table orders",
        "default value for column id of table tickets",
        "function age_of(bigint)",
        "index framework_rows_snowflake_timestamp_idx",
        "materialized view nodes",
        "policy of_this_year on table outbox",
        "table measured",
        "trigger snowflake_watch on table orders",
        "view new_orders",
        "view order_days",
        "view order_times",
    ] {
        ensure!(
            listed.contains(object),
            "not in the list: {object}\n{listed:#?}"
        );
    }
    let cascade = dropped_by_cascade(&server)?;
    let unlisted: Vec<_> = cascade.difference(&listed).collect();
    ensure!(!cascade.is_empty(), "CASCADE names nothing");
    ensure!(unlisted.is_empty(), "CASCADE drops more: {unlisted:#?}");
    client_ref.refused("DROP EXTENSION snowflake", "2BP01")?;

    // 1.
    let unfinished: Vec<String> =
        client_ref.column("SELECT table_name::text FROM snowflake_migrate.progress")?;
    ensure!(
        unfinished.iter().any(|table| table == "routes"),
        "{unfinished:?}"
    );
    for table in ["couriers", "routes"] {
        client_ref
            .batch_execute(&format!("CALL snowflake_migrate.revert('{table}')"))
            .with_context(|| format!("cancelling the migration of {table}"))?;
    }
    let triggers: Vec<String> = client_ref.column(&list)?;
    ensure!(
        !triggers.iter().any(|object| object.starts_with("trigger")
            && !object.starts_with("trigger snowflake_watch ")),
        "{triggers:#?}"
    );
    follow_the_list(client_ref, &list)?;
    for table in MIGRATED {
        let default = format!(
            "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = '{table}'::regclass AND pg_get_expr(adbin, adrelid) LIKE 'nextval(%'"
        );
        ensure!(
            client_ref
                .value(&default)?
                .contains(&format!("{table}_id_seq")),
            "{table} was not reverted"
        );
    }
    // 2.
    client_ref.batch_execute("DROP EXTENSION snowflake_migrate; DROP EXTENSION IF EXISTS snowflake_partitions; DROP EXTENSION snowflake")?;

    let left: Vec<String> = client_ref.column(LEFT)?;
    ensure!(left.is_empty(), "of the extension are left: {left:#?}");
    let after = online::contents(client_ref, &columns)?;
    assert_eq!(after, before);
    client_ref.answers(measured, measured_before)?;
    let rows: i64 = after.values().map(|(rows, _)| rows).sum();
    ensure!(rows > 60_000, "{rows} rows");
    // 3.
    drop(client);
    let removed = remove_settings(&server)?;
    ensure!(removed >= 1, "{removed} lines of settings");
    server.restart()?;
    let mut client = server.connect_to(DATABASE)?;
    let client = &mut client;
    client.answers("SHOW shared_preload_libraries", "")?;
    client.answers(
        "SELECT count(*) FROM pg_settings WHERE name LIKE 'snowflake%'",
        0,
    )?;
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid()?))
        .context("what the server has loaded")?;
    ensure!(!maps.contains("snowflake.so"), "the library is loaded");
    assert_eq!(online::contents(client, &columns)?, before);
    for statement in [
        "INSERT INTO orders (id, note) VALUES (4611686018427387904, 'explicit'), (7, 'explicit')",
        "INSERT INTO tickets (id, note) VALUES (4611686018427387904, 'explicit')",
        "INSERT INTO framework_rows (id, note) VALUES (4611686018427387904, 'explicit')",
        "INSERT INTO coded (code, id) VALUES ('explicit', 4611686018427387904)",
        "INSERT INTO payments (id, amount) VALUES (4611686018427387904, 1)",
        "INSERT INTO outbox (id, topic, payload) VALUES (4611686018427387904, 'mail', '{}')",
        "INSERT INTO deliveries (id, note) VALUES (4611686018427387904, 'explicit')",
        "INSERT INTO measured (id, note) VALUES (4611686018427387904, 'explicit')",
        "INSERT INTO routes (id, note) VALUES (2000000000, 'explicit')",
        "INSERT INTO stops (id, route_id) VALUES (2000000000, 2000000000)",
        "INSERT INTO couriers (id, note) VALUES (2000000000, 'explicit')",
        "INSERT INTO events (id, what) SELECT max(id) + 1, 'explicit' FROM events",
        // By the defaults that there are now.
        "INSERT INTO orders (note) VALUES ('default')",
        "INSERT INTO tickets (note) VALUES ('default')",
        "INSERT INTO couriers (note) VALUES ('default')",
    ] {
        client
            .execute(statement, &[])
            .with_context(|| format!("running: {statement}"))?;
    }
    Ok(())
}
