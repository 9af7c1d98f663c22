//! Online migrations of partitioned tables: those that reference the key, and those that have it.
//! Partitions are created while the plan is under way.

use snowflake_tests::migration::Contents;
use snowflake_tests::online::unordered;

use crate::support::*;

/// What is migrated: its name, its tables, the arguments of the plan, and what creates a partition
/// with the number `{n}` and a row in it.
struct Shape {
    name: &'static str,
    tables: &'static str,
    arguments: &'static str,
    partition: &'static str,
}

const SHAPES: &[Shape] = &[
    Shape {
        name: "a partitioned table references the key",
        tables: "
            CREATE TABLE rec (id serial PRIMARY KEY, t text);
            CREATE TABLE uses (rec_id integer NOT NULL REFERENCES rec, day date NOT NULL, n int, PRIMARY KEY (rec_id, day))
                PARTITION BY RANGE (day);
            CREATE TABLE uses_1 PARTITION OF uses FOR VALUES FROM ('2026-11-25') TO ('2026-11-26');
            CREATE TABLE uses_2 PARTITION OF uses FOR VALUES FROM ('2026-11-26') TO ('2026-11-27');
            CREATE INDEX ON uses (n, rec_id);
            INSERT INTO rec (t) SELECT 'r' FROM generate_series(1, 900);
            INSERT INTO uses SELECT i, date '2026-11-25' + i % 2, i FROM generate_series(1, 900) AS i;",
        arguments: "'rec'",
        partition: "CREATE TABLE uses_{n} PARTITION OF uses FOR VALUES FROM (date '2026-12-01' + {n}) TO (date '2026-12-02' + {n});
            INSERT INTO uses VALUES ({n}, date '2026-12-01' + {n}, 0)",
    },
    Shape {
        name: "its column is a bigint",
        tables: "
            CREATE TABLE rec (id serial PRIMARY KEY, t text);
            CREATE TABLE uses (rec_id bigint NOT NULL REFERENCES rec ON DELETE CASCADE, day date NOT NULL) PARTITION BY RANGE (day);
            CREATE TABLE uses_1 PARTITION OF uses FOR VALUES FROM ('2026-11-25') TO ('2026-11-26');
            INSERT INTO rec (t) SELECT 'r' FROM generate_series(1, 900);
            INSERT INTO uses SELECT i, '2026-11-25' FROM generate_series(1, 900) AS i;",
        arguments: "'rec'",
        partition: "CREATE TABLE uses_{n} PARTITION OF uses FOR VALUES FROM (date '2026-12-01' + {n}) TO (date '2026-12-02' + {n});
            INSERT INTO uses VALUES ({n}, date '2026-12-01' + {n})",
    },
    Shape {
        name: "the key is that of a partitioned table",
        tables: "
            CREATE TABLE events (day date NOT NULL, id serial, kind int DEFAULT 1, PRIMARY KEY (id, day), UNIQUE (kind, id, day),
                                 CONSTRAINT positive CHECK (id > 0)) PARTITION BY RANGE (day);
            CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2026-11-25') TO ('2026-11-26');
            CREATE TABLE events_2 (kind int, gone int, id int NOT NULL, day date NOT NULL CHECK (day > '2000-01-01'));
            ALTER TABLE events_2 DROP gone;
            ALTER TABLE events_2 ADD CONSTRAINT positive CHECK (id > 0), ADD CONSTRAINT own CHECK (id <> -7);
            ALTER TABLE events ATTACH PARTITION events_2 FOR VALUES FROM ('2026-11-26') TO ('2026-11-27');
            CREATE TABLE events_rest PARTITION OF events DEFAULT;
            CREATE INDEX few ON events (id) WHERE kind = 3;
            CREATE INDEX of_both ON events ((id + kind), day DESC) INCLUDE (id);
            CREATE INDEX of_one ON events_1 (id, kind);
            CREATE STATISTICS related ON id, kind FROM events_2;
            CREATE VIEW of_first AS SELECT id, day FROM events_1;
            CREATE ROLE reader; GRANT SELECT (id) ON events_2 TO reader; GRANT SELECT ON of_first TO reader;
            COMMENT ON COLUMN events.id IS 'all'; COMMENT ON COLUMN events_1.id IS 'one'; COMMENT ON INDEX of_one IS 'an index';
            ALTER TABLE events_1 ALTER id SET STATISTICS 200;
            INSERT INTO events (day, kind) SELECT date '2026-11-25' + i % 3, i % 7 FROM generate_series(1, 900) AS i;",
        arguments: "'events'",
        partition: "CREATE TABLE events_n{n} PARTITION OF events FOR VALUES FROM (date '2026-12-01' + {n}) TO (date '2026-12-02' + {n});
            INSERT INTO events (day) VALUES (date '2026-12-01' + {n})",
    },
    Shape {
        name: "partitions of partitions, and triggers",
        tables: "
            CREATE TABLE rec (id serial PRIMARY KEY, t text);
            CREATE TABLE uses (day date NOT NULL, place int NOT NULL, rec_id int REFERENCES rec DEFERRABLE INITIALLY DEFERRED, n int,
                               UNIQUE (day, place, rec_id)) PARTITION BY RANGE (day);
            CREATE TABLE uses_1 PARTITION OF uses FOR VALUES FROM ('2026-11-25') TO ('2026-11-26') PARTITION BY LIST (place);
            CREATE TABLE uses_1_1 PARTITION OF uses_1 FOR VALUES IN (1);
            CREATE TABLE uses_1_2 PARTITION OF uses_1 FOR VALUES IN (2);
            CREATE TABLE uses_2 PARTITION OF uses FOR VALUES FROM ('2026-11-26') TO ('2026-11-27');
            CREATE INDEX ON uses (rec_id);
            CREATE INDEX ON uses_1 (rec_id, n);
            CREATE TABLE fired (n int);
            CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO fired VALUES (1); RETURN new; END';
            CREATE TRIGGER firing AFTER UPDATE ON uses FOR EACH ROW WHEN (new.n <> -5) EXECUTE FUNCTION fire();
            ALTER TABLE uses_2 DISABLE TRIGGER firing;
            CREATE TRIGGER of_one BEFORE UPDATE ON uses_1_1 FOR EACH ROW EXECUTE FUNCTION fire();
            INSERT INTO rec (t) SELECT 'r' FROM generate_series(1, 900);
            INSERT INTO uses SELECT date '2026-11-25' + i % 2, 1 + i % 4 / 2, nullif(i, 7), i FROM generate_series(1, 900) AS i;",
        arguments: "'rec'",
        partition: "CREATE TABLE uses_1_{n}0 PARTITION OF uses_1 FOR VALUES IN ({n}0); INSERT INTO uses VALUES ('2026-11-25', {n}0, {n}, 0)",
    },
];

/// A database with a shape, of an owner who is no superuser.
fn database(cluster: &Cluster, name: &str, shape: &Shape) -> Result<Client> {
    cluster.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
    let mut client = cluster.connect_to_new_database(name)?;
    client.batch_execute("GRANT ALL ON SCHEMA public TO keeper")?;
    let mut client = cluster.connect_as("keeper", name)?;
    client
        .batch_execute(&shape.tables.replace("CREATE ROLE reader;", ""))
        .context(shape.name)?;
    Ok(client)
}

/// Its schema without the extensions, in no order: the widened columns are the last ones.
fn plain_schema(cluster: &Cluster, name: &str) -> Result<String> {
    cluster
        .connect_to(name)?
        .batch_execute("DROP EXTENSION snowflake_migrate; DROP EXTENSION snowflake CASCADE; DROP SEQUENCE IF EXISTS rec_id_seq_former, events_id_seq_former")?;
    Ok(unordered(&schema(cluster, name)?))
}

/// The rows of all tables but that of the trigger.
fn rows(client: &mut Client) -> Result<Contents> {
    let mut columns = online::columns(client)?;
    columns.remove("public.fired");
    online::contents(client, &columns)
}

/// Each shape by the plan for a window, and online with partitions that are created between its
/// steps; and taken back after each step.
fn as_in_a_window(keep_sequence: bool) -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN; CREATE ROLE reader")?;
    for shape in SHAPES {
        let arguments = format!("{}, keep_sequence => {keep_sequence}", shape.arguments);
        let mut widened = database(&cluster, "widened", shape)?;
        let mut online = database(&cluster, "online", shape)?;
        let (mut steps, mut partitions, mut is_refused) = (0, 0, false);
        'planned: loop {
            for step in online::plan(&mut online, &arguments).context(shape.name)? {
                steps += 1;
                let about = || format!("{}: step {steps}: {}", shape.name, step.statement);
                let is_early = step.is_swap() && !is_refused;
                if !is_early {
                    online.batch_execute(&step.statement).with_context(about)?;
                }
                // The plan is requested again; for the swap, after it was refused.
                if is_early || partitions < tier::size(2, 12) && !step.is_swap() && steps % 5 > 1 {
                    partitions += 1;
                    let partition = shape
                        .partition
                        .replace("{n}", &(10 + partitions).to_string());
                    for client in [&mut online, &mut widened] {
                        client.batch_execute(&partition).with_context(about)?;
                    }
                    is_refused |= is_early;
                    // A partition without an index of the key has all that the swap needs.
                    if is_early && shape.name != "its column is a bigint" {
                        online.refused(&step.statement, "55000")?;
                    }
                    continue 'planned;
                }
            }
            break;
        }
        widened
            .batch_execute(&format!("CALL snowflake_migrate.run({arguments})"))
            .context(shape.name)?;
        if shape.tables.contains("TABLE fired") {
            online.answers("SELECT count(*) FROM fired", 0)?;
        }
        assert_eq!(rows(&mut online)?, rows(&mut widened)?, "{}", shape.name);
        drop((widened, online));
        assert_same_schema(
            &plain_schema(&cluster, "widened")?,
            &plain_schema(&cluster, "online")?,
            shape.name,
        );
        println!(
            "online partitions: {}: {steps} steps, {partitions} partitions created between them",
            shape.name
        );
    }
    Ok(())
}

/// Locks and `CREATE INDEX CONCURRENTLY` of several transactions.
#[test]
fn partitioned_tables_are_widened_online_as_in_a_window() -> Result<()> {
    as_in_a_window(true)
}

/// As above.
#[test]
fn partitioned_tables_get_snowflake_ids_online_as_in_a_window() -> Result<()> {
    as_in_a_window(false)
}

/// As above, and each step is a transaction.
#[test]
fn a_plan_of_partitioned_tables_is_taken_back_after_each_step() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN; CREATE ROLE reader")?;
    for shape in SHAPES {
        let arguments = format!("{}, keep_sequence => true", shape.arguments);
        let mut client = database(&cluster, "online", shape)?;
        let before = (unordered(&schema(&cluster, "online")?), rows(&mut client)?);
        let steps = online::plan(&mut client, &arguments)?;
        for last in (0..steps.len() - 1).step_by(tier::size(3, 1)) {
            client.run(online::statements(&steps[..=last]))?;
            let target = shape.arguments;
            client.batch_execute(&format!("CALL snowflake_migrate.revert({target})"))?;
            let now = (unordered(&schema(&cluster, "online")?), rows(&mut client)?);
            assert_same_schema(
                &before.0,
                &now.0,
                &format!("{}: after step {last}", shape.name),
            );
            ensure!(before.1 == now.1, "{}: rows after step {last}", shape.name);
        }
    }
    Ok(())
}
