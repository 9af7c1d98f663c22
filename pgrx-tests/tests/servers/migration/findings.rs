//! Code of the application that a migration breaks, or that continues to use the
//! old sequence, is found: in warnings, in the notes of the plan's steps. Code that
//! is not affected gives no warning.

use anyhow::{Context, Result};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::migration::psql;
use snowflake_tests::query::{number, value};
use snowflake_tests::server_error::expect_error;
use snowflake_tests::tier;

use crate::support::{column, run};

/// Code in a schema of its own, beside the tables of [`TABLES`].
struct Code {
    schema: &'static str,
    setup: &'static str,
    /// Parts of the warnings of the online plan; none for code that is not affected.
    warnings: &'static [&'static str],
    /// Whether the plan for a maintenance window has the warnings too.
    also_in_window: bool,
    /// Parts of the notes.
    notes: &'static [&'static str],
}

const TABLES: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, n int, note text);
    CREATE TABLE items (id bigserial PRIMARY KEY, order_id int REFERENCES orders, n int);
    CREATE TABLE orders_history (op text, id bigint, n int, note text);";

/// A trigger function, and its trigger.
macro_rules! trigger {
    ($when:literal, $body:literal) => {
        concat!(
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $f$ ",
            $body,
            " $f$;
             CREATE TRIGGER \"a trigger\" ",
            $when,
            " EXECUTE FUNCTION f();"
        )
    };
}

#[rustfmt::skip]
const AFFECTED: &[Code] = &[
    Code { schema: "a01", setup: trigger!("AFTER UPDATE ON orders FOR EACH ROW", "BEGIN INSERT INTO orders_history SELECT 'u', OLD.*; RETURN NULL; END"),
           warnings: &["function a01.f(), called by trigger \"a trigger\" of a01.orders, inserts whole rows"], also_in_window: false, notes: &["name the columns"] },
    Code { schema: "a02", setup: trigger!("AFTER INSERT ON orders FOR EACH ROW", "BEGIN Insert /* a comment; */ Into orders_history VALUES ('i', New . *); RETURN NULL; END"),
           warnings: &["inserts whole rows"], also_in_window: false, notes: &[] },
    Code { schema: "a03", setup: trigger!("AFTER DELETE ON orders FOR EACH ROW", "BEGIN EXECUTE 'INSERT INTO a03.orders_history SELECT ''d'', $1.*' USING OLD; RETURN NULL; END"),
           warnings: &["inserts whole rows"], also_in_window: false, notes: &[] },
    Code { schema: "a04", setup: trigger!("AFTER DELETE ON orders REFERENCING OLD TABLE AS gone FOR EACH STATEMENT", "BEGIN INSERT INTO orders_history SELECT 'd', * FROM gone; RETURN NULL; END"),
           warnings: &["inserts whole rows"], also_in_window: false, notes: &[] },
    Code { schema: "a05", setup: trigger!("AFTER DELETE ON items FOR EACH ROW", "BEGIN INSERT INTO copies SELECT OLD.*; RETURN NULL; END"),
           warnings: &["trigger \"a trigger\" of a05.items, inserts whole rows"], also_in_window: false, notes: &[] },
    Code { schema: "a06", setup: "CREATE FUNCTION archive() RETURNS void LANGUAGE sql AS 'INSERT INTO a06.orders_history SELECT ''a'', * FROM a06.orders'",
           warnings: &[], also_in_window: false, notes: &["function a06.archive() copies rows of a06.orders by SELECT *"] },
    Code { schema: "a07", setup: "CREATE FUNCTION archive() RETURNS void LANGUAGE sql AS 'WITH gone AS (DELETE FROM orders RETURNING *) INSERT INTO orders_history SELECT ''a'', * FROM gone'",
           warnings: &[], also_in_window: false, notes: &["copies rows of a07.orders"] },
    Code { schema: "a08", setup: "CREATE FUNCTION few() RETURNS SETOF orders LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT id, n, note FROM orders; END'",
           warnings: &[], also_in_window: false, notes: &["function a08.few() returns rows of a08.orders and names their columns"] },
    Code { schema: "a09", setup: "CREATE FUNCTION add() RETURNS void LANGUAGE sql AS 'INSERT INTO orders VALUES (DEFAULT, 1)'",
           warnings: &[], also_in_window: false, notes: &["function a09.add() inserts into a09.orders without naming its columns"] },
    Code { schema: "b01", setup: concat!("CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT';", trigger!("AFTER INSERT ON orders FOR EACH ROW", "BEGIN PERFORM inc(NEW.id); RETURN NULL; END")),
           warnings: &["passes column id to b01.inc(integer), which has no form for a bigint"], also_in_window: true, notes: &["create that function with bigint"] },
    Code { schema: "b02", setup: concat!("CREATE FUNCTION inc(t text, x int DEFAULT 0, y int DEFAULT 0) RETURNS void LANGUAGE sql AS 'SELECT';", trigger!("AFTER INSERT ON items FOR EACH ROW", "BEGIN PERFORM b02.inc(lower('A'), COALESCE(NEW.order_id, 0)); RETURN NULL; END")),
           warnings: &["passes column order_id to b02.inc(text,integer,integer)"], also_in_window: true, notes: &[] },
    Code { schema: "b03", setup: trigger!("BEFORE INSERT ON orders FOR EACH ROW", "BEGIN PERFORM pg_advisory_xact_lock(1, NEW.id); RETURN NEW; END"),
           warnings: &["passes column id to pg_advisory_xact_lock(integer,integer)"], also_in_window: true, notes: &["hashint8"] },
    Code { schema: "b04", setup: trigger!("AFTER INSERT ON orders FOR EACH ROW", "DECLARE v int; BEGIN v := NEW.id; RETURN NULL; END"),
           warnings: &["assigns column id to the integer variable v"], also_in_window: true, notes: &["declare it as bigint"] },
    Code { schema: "c01", setup: trigger!("BEFORE INSERT ON orders FOR EACH ROW", "BEGIN NEW.id := nextval('orders_id_seq'); RETURN NEW; END"),
           warnings: &["sets column id of each new row itself, so new rows do not get snowflake IDs"], also_in_window: true, notes: &["Drop the trigger"] },
    Code { schema: "c02", setup: trigger!("BEFORE INSERT OR UPDATE ON orders FOR EACH ROW", "BEGIN SELECT nextval('c02.orders_id_seq') INTO NEW.id; RETURN NEW; END"),
           warnings: &["sets column id of each new row itself"], also_in_window: true, notes: &[] },
    Code { schema: "c03", setup: "CREATE FUNCTION add() RETURNS int LANGUAGE plpgsql AS 'DECLARE i int := NextVal(''c03.\"orders_id_seq\"''::regclass); BEGIN INSERT INTO orders (id) VALUES (i); RETURN i; END';
                                  CREATE FUNCTION last() RETURNS bigint LANGUAGE sql AS 'SELECT currval(pg_get_serial_sequence(''c03.orders'', ''id''))';
                                  CREATE FUNCTION lost() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN INSERT INTO orders (n) VALUES (1); RETURN lastval(); END';
                                  CREATE VIEW next AS SELECT nextval('orders_id_seq')",
           warnings: &[], also_in_window: true,
           notes: &["function c03.add() calls nextval('c03.orders_id_seq'), which continues to return old numbers", "function c03.last() calls currval('c03.orders_id_seq')",
                    "function c03.lost() calls lastval()", "view c03.next uses sequence c03.orders_id_seq"] },
    Code { schema: "d01", setup: "CREATE FUNCTION activity() RETURNS TABLE (n integer, of integer) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id FROM items GROUP BY order_id; END';
                                  CREATE FUNCTION ids() RETURNS SETOF integer LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT o.id FROM d01.orders o; END'",
           warnings: &["function d01.activity() returns column order_id of d01.items by RETURN QUERY as an integer", "function d01.ids() returns column id"],
           also_in_window: true, notes: &["id::integer; for greater numbers"] },
    Code { schema: "d02", setup: "CREATE FUNCTION add() RETURNS void LANGUAGE plpgsql AS 'DECLARE v integer; BEGIN INSERT INTO orders (n) VALUES (1) RETURNING id INTO v; END'",
           warnings: &["function d02.add() puts column id of d02.orders into the integer v"], also_in_window: true, notes: &["declare v as bigint"] },
    Code { schema: "d03", setup: "CREATE FUNCTION add() RETURNS integer LANGUAGE sql AS 'INSERT INTO orders (n) VALUES (1) RETURNING id'",
           warnings: &["function d03.add() returns column id of d03.orders as an integer"], also_in_window: true, notes: &["create a function of another name that returns bigint"] },
    Code { schema: "d04", setup: "CREATE FUNCTION last(OUT o integer) LANGUAGE plpgsql AS 'BEGIN SELECT max(id) INTO STRICT o FROM orders; END';
                                  CREATE FUNCTION first() RETURNS int LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT id FROM orders ORDER BY id LIMIT 1); END'",
           warnings: &["function d04.last() puts column id of d04.orders into the integer o", "function d04.first() returns column id"], also_in_window: true, notes: &[] },
];

#[rustfmt::skip]
const HARMLESS: &[Code] = &[
    Code { schema: "h01", setup: trigger!("AFTER UPDATE ON orders FOR EACH ROW", "BEGIN IF NEW.* IS DISTINCT FROM OLD.* OR (OLD.*) <> (NEW.*) THEN INSERT INTO orders_history (op, id) VALUES ('u', OLD.id); END IF; RETURN NULL; END"), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h02", setup: trigger!("BEFORE INSERT ON orders FOR EACH ROW", "BEGIN IF NEW.id IS NULL THEN NEW.id := nextval('orders_id_seq'); END IF; RETURN NEW; END"), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h03", setup: concat!("CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT'; CREATE FUNCTION inc(x numeric) RETURNS void LANGUAGE sql AS 'SELECT';", trigger!("AFTER INSERT ON orders FOR EACH ROW", "BEGIN PERFORM inc(NEW.id), inc(NEW.n), abs(NEW.id), to_char(NEW.id, '9'), pg_advisory_xact_lock(NEW.id); RETURN NULL; END")), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h04", setup: concat!("CREATE FUNCTION inc(x int) RETURNS void LANGUAGE sql AS 'SELECT';", trigger!("AFTER INSERT ON orders FOR EACH ROW", "BEGIN -- PERFORM inc(NEW.id); INSERT INTO orders_history SELECT NEW.*;\n /* NEW.id := nextval('x') /* ; */ */ PERFORM inc(NEW.n); RAISE NOTICE 'id %', NEW.id; RETURN NULL; END")), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h05", setup: trigger!("BEFORE INSERT OR UPDATE ON orders FOR EACH ROW", "BEGIN IF TG_OP = 'UPDATE' THEN NEW.id := OLD.id; END IF; NEW.note := lower(NEW.note); RETURN NEW; END"), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h06", setup: trigger!("BEFORE INSERT ON orders FOR EACH ROW", "BEGIN NEW.id := snowflake_nextval(); RETURN NEW; END"), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h07", setup: concat!(trigger!("AFTER INSERT ON orders FOR EACH ROW", "BEGIN INSERT INTO orders_history SELECT NEW.*; RETURN NULL; END"), "ALTER TABLE orders DISABLE TRIGGER \"a trigger\""), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h08", setup: trigger!("AFTER INSERT ON orders FOR EACH ROW", "DECLARE v bigint; w int; r orders; BEGIN v := NEW.id; w := NEW.n; r := NEW; INSERT INTO orders_history (note) VALUES (to_jsonb(NEW)::text); PERFORM count(*) FROM orders; RETURN NULL; END"), warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h09", setup: "CREATE FUNCTION g() RETURNS SETOF orders LANGUAGE sql AS 'SELECT o.* FROM orders AS o'; CREATE FUNCTION k() RETURNS bigint LANGUAGE sql AS 'SELECT nextval(''h10.orders_id_seq'')';
                                  CREATE FUNCTION m() RETURNS void LANGUAGE sql AS 'INSERT INTO orders_history (id) SELECT o.id FROM orders AS o WHERE EXISTS (SELECT * FROM items)'", warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h11", setup: "CREATE FUNCTION a() RETURNS TABLE (n integer, of bigint) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id::bigint FROM items GROUP BY 2; END';
                                  CREATE FUNCTION b() RETURNS TABLE (n integer, of integer) LANGUAGE plpgsql AS 'BEGIN RETURN QUERY SELECT count(*)::integer, order_id::integer FROM items GROUP BY 2; END';
                                  CREATE FUNCTION c() RETURNS void LANGUAGE plpgsql AS 'DECLARE v bigint; n integer; BEGIN INSERT INTO orders (n) VALUES (1) RETURNING id INTO v; SELECT count(*), max(id) INTO n, v FROM orders; END';
                                  CREATE FUNCTION d() RETURNS integer LANGUAGE sql AS 'SELECT h.n FROM orders AS o JOIN orders_history AS h ON h.id = o.id';
                                  CREATE FUNCTION e() RETURNS void LANGUAGE plpgsql AS 'DECLARE v orders.id%TYPE; BEGIN SELECT id INTO v FROM orders; END';
                                  CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT count(id)::integer FROM orders'", warnings: &[], also_in_window: true, notes: &[] },
    Code { schema: "h10", setup: "SELECT", warnings: &[], also_in_window: true, notes: &[] },
];

/// Warnings of a plan, and its notes.
fn plan(cluster: &Cluster, table: &str, online: bool) -> Result<(String, String)> {
    let script = format!("SELECT note FROM snowflake_migrate.plan('{table}', online => {online})");
    let written = psql(cluster, "postgres", "postgres", &script, true)?;
    assert!(written.success, "{written:?}");
    Ok((written.errors, written.output))
}

fn create(client: &mut Client, code: &Code) -> Result<()> {
    let schema = code.schema;
    client.batch_execute(&format!(
        "CREATE SCHEMA {schema}; SET check_function_bodies = off; SET search_path = {schema}, public"
    ))?;
    run(
        client,
        [
            TABLES,
            "CREATE TABLE copies (id bigint, order_id bigint, n int)",
            code.setup,
        ],
    )
    .context(schema)?;
    client.batch_execute("RESET search_path; RESET check_function_bodies")?;
    Ok(())
}

#[test]
fn code_that_a_migration_breaks_is_named_in_warnings_and_notes() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    for code in AFFECTED {
        create(&mut client, code)?;
    }
    let mut count = 0;
    for code in AFFECTED {
        for online in [true, false] {
            let (warnings, notes) = plan(&cluster, &format!("{}.orders", code.schema), online)?;
            if !online && !code.also_in_window {
                assert_eq!(warnings, "", "{}", code.schema);
                continue;
            }
            let found = warnings.matches("WARNING:  ").count();
            assert_eq!(found, code.warnings.len(), "{}: {warnings}", code.schema);
            assert_eq!(warnings.matches("HINT:  ").count(), found, "{warnings}");
            for part in code.warnings {
                assert!(
                    warnings.contains(part),
                    "{}: no {part:?}: {warnings}",
                    code.schema
                );
            }
            for part in code.warnings.iter().chain(code.notes) {
                let part = part.trim_start_matches("WARNING:  ");
                assert!(
                    notes.contains(part),
                    "{}: no {part:?}: {notes}",
                    code.schema
                );
                count += 1;
            }
        }
    }
    println!(
        "findings: {} shapes of code, {count} sentences in notes",
        AFFECTED.len()
    );
    Ok(())
}

#[test]
fn code_that_is_not_affected_gives_no_warning() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    for code in HARMLESS {
        create(&mut client, code)?;
    }
    for code in HARMLESS {
        for online in [true, false] {
            let (warnings, notes) = plan(&cluster, &format!("{}.orders", code.schema), online)?;
            assert_eq!(warnings, "", "{}", code.schema);
            assert!(
                !notes.contains(&format!("function {}.m()", code.schema)),
                "{notes}"
            );
            assert!(
                !notes.contains(&format!("function {}.k()", code.schema)),
                "{notes}"
            );
        }
    }
    println!(
        "findings: {} shapes of harmless code without a warning",
        HARMLESS.len()
    );
    Ok(())
}

/// What is warned of is so: writes fail, and not before.
#[test]
fn what_is_warned_of_happens() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    for code in AFFECTED
        .iter()
        .filter(|code| ["b01", "b03", "c01"].contains(&code.schema))
    {
        create(client, code)?;
        let schema = code.schema;
        let insert = format!("INSERT INTO {schema}.orders (n) VALUES (1)");
        client.batch_execute(&format!("SET search_path = {schema}, public; {insert}"))?;
        client.batch_execute(&format!("CALL snowflake_migrate.run('{schema}.orders')"))?;
        if schema == "c01" {
            client.batch_execute(&insert)?;
            assert!(number(client, "SELECT max(id) FROM c01.orders")? < 10_000);
        } else {
            // A session that has run the function before gets another error.
            let mut other = cluster.connect()?;
            other.batch_execute(&format!("SET search_path = {schema}, public"))?;
            assert_eq!(expect_error(&mut other, &insert)?.sqlstate, "42883");
        }
    }
    Ok(())
}

#[test]
fn names_and_bodies_of_any_kind_are_searched() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    for name in [
        "a\"b",
        "100%",
        "a.b*c+[d]",
        "(x|y)",
        "back\\slash",
        "sp ace",
        "$do$",
        "Straße",
        "select",
    ] {
        let quoted = format!("\"{}\"", name.replace('"', "\"\""));
        client.batch_execute(&format!(
            "DROP SCHEMA IF EXISTS s CASCADE; CREATE SCHEMA s;
             CREATE TABLE s.{quoted} ({quoted} serial PRIMARY KEY, n int);
             CREATE TABLE s.h ({quoted} int, n int);
             CREATE FUNCTION s.{quoted}(x int) RETURNS void LANGUAGE sql AS 'SELECT';
             CREATE FUNCTION s.trg() RETURNS trigger LANGUAGE plpgsql AS $trg$ BEGIN PERFORM s.{quoted}(NEW.{quoted}); RETURN NEW; END $trg$;
             CREATE FUNCTION s.copy() RETURNS void LANGUAGE plpgsql AS $copy$ BEGIN INSERT INTO s.h SELECT * FROM s.{quoted}; END $copy$;
             CREATE TRIGGER {quoted} BEFORE INSERT ON s.{quoted} FOR EACH ROW EXECUTE FUNCTION s.trg()"
        ))?;
        let found: Vec<String> = column(
            client,
            &format!(
                "SELECT DISTINCT f.stage FROM pg_class AS c,
                     snowflake_migrate_internal.findings(ARRAY[(c.oid, c.relname)::snowflake_migrate_internal.key], true) AS f
                 WHERE c.relnamespace = 's'::regnamespace AND c.relname = $n${name}$n$ ORDER BY 1"
            ),
        )?;
        assert_eq!(found, ["shadow", "type"], "{name}");
        client.batch_execute(&format!(
            "DO $d$ BEGIN PERFORM count(*) FROM pg_class AS c, snowflake_migrate.plan(c.oid::regclass, online => true), snowflake_migrate.unlinked(c.oid::regclass)
             WHERE c.relnamespace = 's'::regnamespace AND c.relname = $n${name}$n$; END $d$"
        ))?;
    }
    // Text that is no SQL, and long text, take time in proportion to their length.
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE h (id int);
         SET check_function_bodies = off",
    )?;
    for (number, piece) in [
        "(",
        "f(",
        "'",
        "''",
        "$a$",
        "$",
        "/*",
        "--",
        "\"",
        "insert into ",
        "insert into x select * from ",
        "new.id ",
        "nextval('",
        "a,",
        "E'\\",
    ]
    .iter()
    .enumerate()
    {
        client.execute(
            &format!("DO $do$ BEGIN EXECUTE format('CREATE FUNCTION long{number}() RETURNS trigger LANGUAGE plpgsql AS %L', repeat($p${piece}$p$, 1000000 / {})); END $do$", piece.len()), &[])?;
        client.batch_execute(&format!("CREATE TRIGGER long{number} AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION long{number}()"))?;
        // Two minutes would be too long for a statement.
        client.batch_execute("SELECT * FROM snowflake_migrate_internal.findings(ARRAY[('t', 'id')::snowflake_migrate_internal.key], true)")?;
        client.batch_execute(&format!("DROP FUNCTION long{number} CASCADE"))?;
    }
    Ok(())
}

#[test]
fn five_thousand_functions_are_searched_in_seconds() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let functions = tier::size(500, 5000);
    client.batch_execute(&format!(
        "CREATE TABLE t (id serial PRIMARY KEY, n int); CREATE TABLE h (id int, n int);
         DO $do$ BEGIN FOR i IN 1..{functions} LOOP EXECUTE format('CREATE FUNCTION f%s(x int) RETURNS int LANGUAGE plpgsql AS %L', i,
             'DECLARE v int; BEGIN -- nextval' || repeat(E'\\n IF v > 1 THEN PERFORM abs(v), ''a''; UPDATE t SET n = n + 1 WHERE id = x; END IF; ', 12)
             || CASE WHEN i % 50 = 0 THEN 'v := nextval(''t_id_seq'');' ELSE '' END
             || CASE WHEN i % 500 = 0 THEN 'INSERT INTO h SELECT * FROM t;' ELSE '' END || ' RETURN v; END'); END LOOP; END $do$",
    ))?;
    let found = value(
        client,
        "SELECT string_agg(stage || ' ' || n, ' ' ORDER BY stage) FROM (SELECT stage, count(*) AS n FROM snowflake_migrate_internal.findings(ARRAY[('t', 'id')::snowflake_migrate_internal.key], true) GROUP BY stage) AS s",
    )?;
    assert_eq!(
        found,
        format!(
            "default {0} held {0} shadow {1}",
            functions / 50,
            functions / 500
        )
    );
    Ok(())
}
