//! What a migration's plan says that it needs, beside what it took.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;

use crate::drive::wal_bytes;
use crate::format::{mib, ratio, three};
use crate::report::{Block, Table};
use crate::run::{Count, Run};

/// A table `t` with the key `id`.
struct Shape {
    name: &'static str,
    create: &'static str,
    /// What is made beside the tables' keys once they are filled.
    indexes: &'static str,
    ways: &'static [Way],
}

const PLAIN: Shape = Shape {
    name: "",
    create: "",
    indexes: "",
    ways: &[WINDOW, ONLINE],
};

const ROWS: Count = Count(400_000, 40_000);

const EIGHT_INDEXES: &str = "CREATE INDEX ON t (a); CREATE INDEX ON t (b); CREATE INDEX ON t (c); CREATE INDEX ON t (d);
     CREATE INDEX ON t (a, b); CREATE INDEX ON t (b, c); CREATE INDEX ON t (c, d); CREATE INDEX ON t (d, a)";

/// `{rows}` is the number of rows; `{half}`, `{quarter}` and `{few}` are parts of it.
static SHAPES: [Shape; 9] = [
    Shape {
        name: "narrow, 1 index",
        create: "CREATE TABLE t (id serial PRIMARY KEY, a int);
                 INSERT INTO t (a) SELECT i FROM generate_series(1, 2 * {rows}) i",
        ..PLAIN
    },
    Shape {
        name: "narrow, 9 indexes",
        create: "CREATE TABLE t (id serial PRIMARY KEY, a int, b int, c int, d int);
                 INSERT INTO t (a, b, c, d)
                 SELECT hashint4(i), hashint4(i + 1), i, hashint4(i + 3) FROM generate_series(1, {rows}) i",
        indexes: EIGHT_INDEXES,
        ..PLAIN
    },
    Shape {
        name: "600 bytes, 1 index",
        create: "CREATE TABLE t (id serial PRIMARY KEY, x text);
                 INSERT INTO t (x) SELECT repeat(md5(i::text), 18) FROM generate_series(1, {half}) i",
        ..PLAIN
    },
    Shape {
        name: "600 bytes, 9 indexes",
        create: "CREATE TABLE t (id serial PRIMARY KEY, x text, a int, b int, c int, d int);
                 INSERT INTO t (x, a, b, c, d)
                 SELECT repeat(md5(i::text), 18), hashint4(i), hashint4(i + 1), i, hashint4(i + 3) FROM generate_series(1, {half}) i",
        indexes: EIGHT_INDEXES,
        ..PLAIN
    },
    Shape {
        name: "TOAST",
        create: "CREATE TABLE t (id serial PRIMARY KEY, x text);
                 ALTER TABLE t ALTER x SET STORAGE EXTERNAL;
                 INSERT INTO t (x) SELECT repeat(md5(i::text), 120) FROM generate_series(1, {few}) i",
        ..PLAIN
    },
    Shape {
        name: "referenced by one",
        create: "CREATE TABLE t (id serial PRIMARY KEY, a int);
                 INSERT INTO t (a) SELECT i FROM generate_series(1, {rows}) i;
                 CREATE TABLE r (id bigserial PRIMARY KEY, t_id int REFERENCES t, y int);
                 INSERT INTO r (t_id, y) SELECT 1 + i % {rows}, i FROM generate_series(1, {rows}) i",
        indexes: "CREATE INDEX ON r (t_id)",
        ..PLAIN
    },
    Shape {
        name: "referenced by three",
        create: "CREATE TABLE t (id serial PRIMARY KEY, a int);
                 INSERT INTO t (a) SELECT i FROM generate_series(1, {quarter}) i;
                 CREATE TABLE r1 (id bigserial PRIMARY KEY, t_id int REFERENCES t, y int);
                 CREATE TABLE r2 (id bigserial PRIMARY KEY, t_id int REFERENCES t, y int);
                 CREATE TABLE r3 (id bigserial PRIMARY KEY, t_id int REFERENCES t, y int);
                 INSERT INTO r1 (t_id, y) SELECT 1 + i % {quarter}, i FROM generate_series(1, {half}) i;
                 INSERT INTO r2 (t_id, y) SELECT t_id, y FROM r1;
                 INSERT INTO r3 (t_id, y) SELECT t_id, y FROM r1",
        indexes: "CREATE INDEX ON r1 (t_id); CREATE INDEX ON r2 (t_id); CREATE INDEX ON r3 (t_id)",
        ..PLAIN
    },
    Shape {
        name: "two children by inheritance",
        create: "CREATE TABLE t (id serial PRIMARY KEY, a int);
                 INSERT INTO t (a) SELECT i FROM generate_series(1, {quarter}) i;
                 CREATE TABLE c1 (PRIMARY KEY (id)) INHERITS (t);
                 CREATE TABLE c2 (PRIMARY KEY (id)) INHERITS (t);
                 INSERT INTO c1 (a) SELECT i FROM generate_series(1, {half}) i;
                 INSERT INTO c2 (a) SELECT i FROM generate_series(1, {half}) i",
        ways: &[WINDOW],
        ..PLAIN
    },
    Shape {
        name: "an index of texts",
        create: "CREATE TABLE t (id serial PRIMARY KEY, x text);
                 INSERT INTO t (x) SELECT md5(i::text) FROM generate_series(1, {rows}) i",
        indexes: "CREATE INDEX ON t (x)",
        ..PLAIN
    },
];

/// A way of the migration.
struct Way {
    name: &'static str,
    is_online: &'static str,
    /// Bytes on disk at its fullest, of the key `k`.
    disk: &'static str,
    /// Prints the statements to execute.
    statements: &'static str,
}

const WINDOW: Way = Way {
    name: "window",
    is_online: "false",
    disk: "SELECT 1.1 * sum(pg_total_relation_size(oid)) FROM pg_class
               WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
    statements: "SELECT 'CALL snowflake_migrate.run(''t'', keep_sequence => true)'",
};

const ONLINE: Way = Way {
        name: "online",
        is_online: "true",
        disk: "SELECT sum(n.bytes) + (SELECT coalesce(sum(pg_relation_size(i.index)), 0)
                                      FROM snowflake_migrate_internal.shadow_indexes(k) i WHERE NOT is_ready)
               FROM snowflake_migrate_internal.backfill_needs(k) n",
        statements: "SELECT statement FROM snowflake_migrate.plan('t', online => true, keep_sequence => true)
                     WHERE statement IS NOT NULL",
};

/// The numbers that the plan's notes are made of: seconds, bytes of WAL, bytes on disk.
const SAID: &str = "SELECT (sum((s.work).seconds)
               * CASE WHEN sum((s.work).seconds) < 1 THEN snowflake_migrate_internal.processor_factor() ELSE 1 END)::float8,
           snowflake_migrate_internal.wal_needs(k, {online})::float8, ({disk})::float8
    FROM (SELECT ARRAY[('t', 'id')::snowflake_migrate_internal.key]) keys (k),
         snowflake_migrate_internal.plan(k, {online}, 'public', true) s
    GROUP BY k";

const SIZE: &str = "SELECT pg_database_size('migrated')::float8";

/// Each table by each way.
pub fn blocks(run: &Run) -> Result<Vec<Block>> {
    let mut table = Table::new(&[
        "",
        "said, s",
        "took, s",
        "ratio",
        "WAL said, MiB",
        "written, MiB",
        "ratio",
        "disk said, MiB",
        "grown, MiB",
        "ratio",
    ]);
    let mut client = run.common().connect()?;
    for shape in &SHAPES {
        client.batch_execute("DROP DATABASE IF EXISTS shape WITH (FORCE)")?;
        let mut filling = run.common().connect_to_new_database("shape")?;
        for script in [shape.create, shape.indexes] {
            filling.batch_execute(&with_rows(script, run.count(ROWS)))?;
        }
        filling.batch_execute("VACUUM ANALYZE")?;
        filling.batch_execute("CREATE EXTENSION snowflake_migrate CASCADE")?;
        drop(filling);
        for way in shape.ways {
            run.step(format_args!("{}, {}", shape.name, way.name));
            client.batch_execute("DROP DATABASE IF EXISTS migrated WITH (FORCE)")?;
            client.batch_execute("CREATE DATABASE migrated TEMPLATE shape")?;
            client.batch_execute("CHECKPOINT")?;
            let Some((said, took)) = migrate(run.common(), &mut client, way)? else {
                continue;
            };
            let mut cells = vec![format!("{}, {}", shape.name, way.name)];
            for (number, (said, took)) in said.iter().zip(&took).enumerate() {
                let unit: fn(f64) -> f64 = if number == 0 { |seconds| seconds } else { mib };
                cells.extend([three(unit(*said)), three(unit(*took)), ratio(took / said)]);
            }
            table.row(&cells);
        }
    }
    client.batch_execute("DROP DATABASE migrated WITH (FORCE)")?;
    client.batch_execute("DROP DATABASE shape WITH (FORCE)")?;
    Ok(vec![Block::Table(table)])
}

fn with_rows(script: &str, rows: u64) -> String {
    [
        ("{rows}", rows),
        ("{half}", rows / 2),
        ("{quarter}", rows / 4),
        ("{few}", rows / 20),
    ]
    .iter()
    .fold(script.to_owned(), |script, (name, rows)| {
        script.replace(name, &rows.to_string())
    })
}

/// Migrates the key of the database `migrated`: what was said, and what was seen. None if the
/// plan does not know the time.
fn migrate(
    cluster: &Cluster,
    other: &mut Client,
    way: &Way,
) -> Result<Option<([f64; 3], [f64; 3])>> {
    let mut client = cluster.connect_to("migrated")?;
    let query = SAID
        .replace("{online}", way.is_online)
        .replace("{disk}", way.disk);
    let row = client.query_one(&query, &[])?;
    // NULL is what the plan does not know, or refuses.
    let Some(said) = row.get::<_, Option<f64>>(0) else {
        return Ok(None);
    };
    let said = [said, row.get(1), row.get(2)];
    let (before, wal) = (size(other)?, wal_bytes(other)?);
    let has_ended = AtomicBool::new(false);
    let mut watching = cluster.connect()?;
    let (seconds, most) = thread::scope(|scope| -> Result<_> {
        let watch = scope.spawn(|| -> Result<f64> {
            let mut most = before;
            while !has_ended.load(Relaxed) {
                most = most.max(size(&mut watching)?);
                thread::sleep(Duration::from_millis(100));
            }
            Ok(most)
        });
        let begun = Instant::now();
        let executed = execute(&mut client, way);
        let seconds = begun.elapsed().as_secs_f64();
        has_ended.store(true, Relaxed);
        let most = watch.join().expect("what watches does not panic")?;
        executed.map(|()| (seconds, most))
    })?;
    let most = most.max(size(other)?);
    Ok(Some((
        said,
        [seconds, wal_bytes(other)? - wal, most - before],
    )))
}

fn execute(client: &mut Client, way: &Way) -> Result<()> {
    for row in client.query(way.statements, &[])? {
        client.batch_execute(row.get(0))?;
    }
    Ok(())
}

fn size(client: &mut Client) -> Result<f64> {
    Ok(client.query_one(SIZE, &[])?.get(0))
}
