//! `snowflake_partition_ddl`: its output runs as it is, psql's `\gexec` runs
//! it, and rows land where their time says, across changes of the clocks,
//! whatever the table is called and whoever owns it.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::outcome::{refusal, text};

fn value(client: &mut Client, query: &str) -> Result<String> {
    text(client, query)?.with_context(|| format!("NULL came from: {query}"))
}

fn count(client: &mut Client, query: &str) -> Result<i64> {
    Ok(value(client, query)?.parse()?)
}

fn statements(client: &mut Client, arguments: &str) -> Result<Vec<String>> {
    let query = format!("SELECT snowflake_partition_ddl({arguments})");
    Ok(client
        .query(&query, &[])
        .with_context(|| format!("running: {query}"))?
        .iter()
        .map(|row| row.get(0))
        .collect())
}

/// A script through psql, as somebody would type it. Returns what psql wrote.
fn psql(cluster: &Cluster, user: &str, script: &str) -> Result<String> {
    let mut child = cluster
        .client_command("psql", "postgres")
        .args(["-X", "-v", "ON_ERROR_STOP=1"])
        .env("PGUSER", user)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("running psql")?;
    child
        .stdin
        .take()
        .context("no pipe")?
        .write_all(script.as_bytes())?;
    let output = child.wait_with_output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success() && errors.is_empty(),
        "psql failed:\n{script}\n{errors}"
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// The partitions of a table in the order of their bounds: name and bounds.
fn partitions(client: &mut Client, parent: &str) -> Result<Vec<(String, i64, i64)>> {
    let rows = client.query(
        "SELECT c.relname::text, b.bounds[1]::bigint, b.bounds[2]::bigint
         FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid,
              LATERAL regexp_match(pg_get_expr(c.relpartbound, c.oid),
                                   '^FOR VALUES FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)$') AS b(bounds)
         WHERE i.inhparent = $1::text::regclass
         ORDER BY 2",
        &[&parent],
    )?;
    Ok(rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

/// Fails where there is a gap, an overlap or an empty partition.
fn assert_gapless(partitions: &[(String, i64, i64)]) {
    for (name, from, to) in partitions {
        assert!(from < to, "{name} is empty");
    }
    for pair in partitions.windows(2) {
        assert_eq!(pair[0].2, pair[1].1, "{} and {}", pair[0].0, pair[1].0);
    }
}

#[test]
fn through_psql_and_across_clock_changes() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let mut rows = 0;
    let mut made = 0;
    // In the European zone days have 23 hours in March and 25 in October; on
    // Lord Howe the clocks change by half an hour, and in Beirut at midnight,
    // so that a day begins at 1 o'clock. Hours are told in UTC.
    let local = "to_char(snowflake_timestamp(id), 'YYYYMMDD')";
    let month = "to_char(snowflake_timestamp(id), 'YYYYMM')";
    let utc = "to_char(snowflake_timestamp(id) AT TIME ZONE 'UTC', 'YYYYMMDD_HH24\"00utc\"')";
    for (table, zone, since, until, step, name, number) in [
        (
            "march",
            "Europe/Berlin",
            "2026-03-25",
            "2026-04-02",
            "1 day",
            local,
            8,
        ),
        (
            "october",
            "Europe/Berlin",
            "2026-10-20",
            "2026-10-30",
            "1 day",
            local,
            10,
        ),
        (
            "howe",
            "Australia/Lord_Howe",
            "2026-10-01",
            "2026-10-08",
            "1 day",
            local,
            7,
        ),
        (
            "beirut",
            "Asia/Beirut",
            "2026-03-26",
            "2026-04-02",
            "1 day",
            local,
            7,
        ),
        (
            "months",
            "Europe/Berlin",
            "2026-01-01",
            "2027-01-01",
            "1 month",
            month,
            12,
        ),
        (
            "hours",
            "Europe/Berlin",
            "2026-10-24 12:00",
            "2026-10-26 00:00",
            "1 hour",
            utc,
            37,
        ),
        (
            "hours_in_march",
            "Europe/Berlin",
            "2026-03-28 12:00",
            "2026-03-30 00:00",
            "1 hour",
            utc,
            35,
        ),
        (
            "years",
            "Europe/Berlin",
            "2025-01-02",
            "2028-01-02",
            "1 year",
            "to_char(snowflake_timestamp(id) - interval '1 day', 'YYYY\"0102\"')",
            3,
        ),
        (
            "calendar_years",
            "America/New_York",
            "2026-01-01",
            "2029-01-01",
            "12 months",
            "to_char(snowflake_timestamp(id), 'YYYY')",
            3,
        ),
        (
            "weeks",
            "Europe/Berlin",
            "2026-10-12",
            "2026-11-09",
            "1 week",
            "to_char(date_trunc('week', snowflake_timestamp(id)), 'YYYYMMDD')",
            4,
        ),
    ] {
        let ddl = format!(
            "SET TimeZone = '{zone}';
             SELECT snowflake_partition_ddl('{table}', '{since}', '{until}', '{step}') \\gexec\n"
        );
        let script = format!(
            "CREATE TABLE {table} (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);\n{ddl}"
        );
        let written = psql(&cluster, "postgres", &script)?;
        // The table itself, and each of its partitions.
        assert_eq!(
            written.matches("CREATE TABLE").count(),
            number + 1,
            "{written}"
        );
        let partitions = partitions(&mut client, table)?;
        let names: BTreeSet<&String> = partitions.iter().map(|(name, ..)| name).collect();
        assert_eq!((partitions.len(), names.len()), (number, number), "{table}");
        assert_gapless(&partitions);
        made += number;

        // A second time there is nothing to do.
        let written = psql(&cluster, "postgres", &ddl)?;
        assert_eq!(written.matches("CREATE TABLE").count(), 0, "{written}");

        // An ID for every quarter of an hour, the first and the last of its
        // millisecond by turns, and the last microsecond of the range.
        client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
        let inserted = client.execute(
            &format!(
                "INSERT INTO {table}
                 SELECT snowflake_compose(at, (n % 2 * 63)::int, (n % 2 * 15)::int, (n % 2 * 4095)::int)
                 FROM generate_series(timestamptz '{since}', timestamptz '{until}', '15 minutes')
                      WITH ORDINALITY AS g(at, n)
                 WHERE at < '{until}'
                 UNION ALL
                 SELECT snowflake_compose(timestamptz '{until}' - interval '1 microsecond', 63, 15, 4095)"
            ),
            &[],
        )?;
        rows += inserted;
        let astray = count(
            &mut client,
            &format!(
                "SELECT count(*) FROM {table} WHERE tableoid::regclass::text <> '{table}_p' || {name}"
            ),
        )?;
        assert_eq!(astray, 0, "{table}: rows in a partition of another time");
        let used = count(
            &mut client,
            &format!("SELECT count(DISTINCT tableoid) FROM {table}"),
        )?;
        assert_eq!(used as usize, number, "{table}: partitions with rows");
        // Before and after, there is none.
        for at in [
            format!("timestamptz '{since}' - interval '1 microsecond'"),
            format!("timestamptz '{until}'"),
        ] {
            if table == "years" && at.contains("2025") {
                continue;
            }
            let refusal = refusal(
                &mut client,
                &format!("INSERT INTO {table} SELECT snowflake_compose({at}, 0, 0, 0)"),
            )?;
            assert_eq!(refusal.sqlstate, "23514", "{table}: {at}");
        }
    }
    client.batch_execute("RESET TimeZone")?;
    println!(
        "partitions: {made} made by psql's \\gexec in 10 tables across clock changes, nothing left \
         to do the second time; {rows} rows where their time says"
    );
    // The two hours that a wall clock would call the same.
    let partitions = partitions(&mut client, "hours")?;
    let names: Vec<&str> = partitions.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names[0], "hours_p20261024_1000utc");
    assert!(
        names.contains(&"hours_p20261025_0000utc") && names.contains(&"hours_p20261025_0100utc")
    );
    Ok(())
}

/// Names of the partitions that statements would make.
fn names(statements: &[String]) -> Vec<&str> {
    statements
        .iter()
        .filter_map(|it| {
            it.strip_prefix("CREATE TABLE ")?
                .split(" PARTITION OF ")
                .next()
        })
        .collect()
}

#[test]
fn what_is_written() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute("CREATE TABLE t (id bigint) PARTITION BY RANGE (id)")?;
    assert_eq!(
        statements(client, "'t', '2026-11-20', '2026-11-22', '1 day'")?,
        [
            "CREATE TABLE public.t_p20261120 PARTITION OF public.t \
             FOR VALUES FROM ('249322851532800000') TO ('249685239398400000')",
            "CREATE TABLE public.t_p20261121 PARTITION OF public.t \
             FOR VALUES FROM ('249685239398400000') TO ('250047627264000000')",
        ]
    );
    for (range, expected) in [
        (
            "'2026-01-31', '2026-06-01', '1 month'",
            vec![
                "t_p20260131",
                "t_p20260228",
                "t_p20260331",
                "t_p20260430",
                "t_p20260531",
            ],
        ),
        (
            "'2028-02-29', '2031-01-01', '1 year'",
            vec!["t_p20280229", "t_p20290228", "t_p20300228"],
        ),
        ("'2026-01-01', '2026-01-01', '1 day'", vec![]),
        (
            "'2026-01-01 00:30', '2026-01-01 01:00', '15 minutes'",
            vec!["t_p20260101_0030utc", "t_p20260101_0045utc"],
        ),
        (
            "'2026-01-01 00:00:00.25', '2026-01-01 00:00:00.75', '250 ms'",
            vec!["t_p20260101_000000250000utc", "t_p20260101_000000500000utc"],
        ),
        (
            "'2026-01-01', '2027-01-01', '3 months'",
            vec!["t_p202601", "t_p202604", "t_p202607", "t_p202610"],
        ),
        // The last step may reach past the end of what was asked for.
        (
            "'2026-01-01', '2026-01-01 00:00:01', '1 day'",
            vec!["t_p20260101"],
        ),
        // Nothing is before the epoch.
        ("'2024-11-01', '2025-02-01', '1 month'", vec!["t_p202501"]),
        ("'2020-01-01', '2025-01-01', '1 year'", vec![]),
        ("'2024-07-01', '2025-07-01', '1 year'", vec!["t_p202407"]),
    ] {
        let statements = statements(client, &format!("'t', {range}"))?;
        let expected: Vec<String> = expected.iter().map(|it| format!("public.{it}")).collect();
        assert_eq!(names(&statements), expected, "{range}");
        client.batch_execute("BEGIN")?;
        for statement in &statements {
            client.batch_execute(statement)?;
        }
        let made = partitions(client, "t")?;
        assert_eq!(made.len(), expected.len());
        assert_gapless(&made);
        client.batch_execute("ROLLBACK")?;
    }
    let bounds = statements(client, "'t', '2024-07-01', '2025-07-01', '1 year'")?;
    assert!(bounds[0].contains("FROM ('0') TO ('"), "{}", bounds[0]);
    println!("partitions: 11 ranges written as they should be: month ends, quarters, the epoch");

    // A job that runs every day finds what is there, holes included.
    for statement in statements(client, "'t', '2026-05-01', '2026-05-08', '1 day'")? {
        client.batch_execute(&statement)?;
    }
    client.batch_execute(
        "DROP TABLE t_p20260503; ALTER TABLE t DETACH PARTITION t_p20260505;
                          ALTER TABLE t_p20260506 RENAME TO renamed; DROP TABLE t_p20260505",
    )?;
    let missing = statements(client, "'t', '2026-05-01', '2026-05-10', '1 day'")?;
    assert_eq!(
        names(&missing),
        ["t_p20260503", "t_p20260505", "t_p20260508", "t_p20260509"]
            .map(|it| format!("public.{it}"))
    );
    for statement in missing {
        client.batch_execute(&statement)?;
    }
    assert_gapless(&partitions(client, "t")?);
    assert!(statements(client, "'t', '2026-05-01', '2026-05-10', '1 day'")?.is_empty());
    println!("partitions: only the 4 that were missing of 9");

    // Steps of each kind over long ranges: always ascending and without gaps.
    let mut written = 0;
    for zone in [
        "UTC",
        "Europe/Berlin",
        "America/Sao_Paulo",
        "Asia/Kathmandu",
        "Africa/Casablanca",
    ] {
        client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
        for (since, until, step) in [
            ("2026-01-31", "2030-01-01", "1 month"),
            ("2026-01-29 13:30", "2030-01-01", "1 month 1 day"),
            ("2026-01-01", "2027-01-01", "1 day"),
            ("2026-01-01", "2027-01-01", "23 hours"),
            ("2026-03-01", "2026-04-01", "1 hour"),
            ("2026-10-20", "2026-11-10", "30 minutes"),
            ("2025-06-30", "2094-01-01", "1 year"),
        ] {
            client.batch_execute("CREATE TABLE many (id bigint) PARTITION BY RANGE (id)")?;
            let row = client.query_one(
                &format!(
                    "WITH s AS (
                         SELECT b.bounds[1] AS name, b.bounds[2]::bigint AS low, b.bounds[3]::bigint AS high,
                                lag(b.bounds[3]::bigint) OVER (ORDER BY n) AS before
                         FROM snowflake_partition_ddl('many', '{since}', '{until}', '{step}')
                              WITH ORDINALITY AS d(statement, n),
                              LATERAL regexp_match(statement, 'TABLE (\\S+) .* FROM \\(''(\\d+)''\\) TO \\(''(\\d+)''\\)$') AS b(bounds)
                     )
                     SELECT count(*), count(DISTINCT name), count(*) FILTER (WHERE low >= high),
                            count(*) FILTER (WHERE before <> low),
                            min(low) = snowflake_min_id('{since}'), max(high) >= snowflake_min_id('{until}')
                     FROM s"
                ),
                &[],
            )?;
            let (all, distinct): (i64, i64) = (row.get(0), row.get(1));
            assert!(
                all > 40 && distinct == all,
                "{zone} {step}: {distinct} names of {all}"
            );
            assert_eq!(
                (row.get::<_, i64>(2), row.get::<_, i64>(3)),
                (0, 0),
                "{zone} {step}"
            );
            assert!(
                row.get::<_, bool>(4) && row.get::<_, bool>(5),
                "{zone} {step}"
            );
            written += all;
            client.batch_execute("DROP TABLE many")?;
        }
    }
    client.batch_execute("RESET TimeZone")?;
    println!(
        "partitions: {written} statements of 7 steps in 5 time zones: distinct names, ascending, no gap"
    );
    Ok(())
}

#[test]
fn names_owners_and_search_paths() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let long = "l".repeat(63);
    let umlauts = "ä".repeat(31);
    client.batch_execute(&format!(
        "CREATE SCHEMA \"Other Schema\";
         CREATE TABLE \"Other Schema\".\"Mixed \"\"Case\"\" 'name'\" (\"The ID\" bigint) PARTITION BY RANGE (\"The ID\");
         CREATE TABLE {long} (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE \"{umlauts}\" (id bigint) PARTITION BY RANGE (id);
         CREATE TEMP TABLE passing (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE \"select\" (note text, gone int, id bigint) PARTITION BY RANGE (id);
         ALTER TABLE \"select\" DROP COLUMN gone"
    ))?;
    let mut made = 0;
    for table in [
        "\"Other Schema\".\"Mixed \"\"Case\"\" 'name'\"".to_owned(),
        long.clone(),
        format!("\"{umlauts}\""),
        "passing".to_owned(),
        "\"select\"".to_owned(),
    ] {
        let quoted = table.replace('\'', "''");
        for (range, number) in [
            ("'2026-05-01', '2026-06-01', '1 day'", 31),
            ("'2026-06-01', '2026-06-02', '1 hour'", 24),
            ("'2026-06-02', '2026-06-02 00:00:10', '1 second'", 10),
        ] {
            let statements = statements(client, &format!("'{quoted}', {range}"))?;
            assert_eq!(statements.len(), number, "{table}");
            for statement in &statements {
                client
                    .batch_execute(statement)
                    .with_context(|| statement.clone())?;
            }
            made += number;
        }
        let partitions = partitions(client, &table)?;
        assert_eq!(partitions.len(), 65, "{table}");
        assert_gapless(&partitions);
        for (name, ..) in &partitions {
            assert!(name.len() <= 63 && name.contains("_p2026"), "{name}");
        }
        let elsewhere = client.query_one(
            "SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
             JOIN pg_class AS p ON p.oid = i.inhparent
             WHERE i.inhparent = $1::text::regclass
               AND (c.relnamespace <> p.relnamespace OR c.relpersistence <> p.relpersistence)",
            &[&table],
        )?;
        assert_eq!(elsewhere.get::<_, i64>(0), 0, "{table}");
    }
    println!("partitions: {made} of tables with long, quoted, non-ASCII and temporary names");

    // In a database where a character is two bytes of another encoding.
    client.batch_execute(
        "CREATE DATABASE japanese TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'",
    )?;
    let mut japanese = cluster.connect_to("japanese")?;
    let table = "注文".repeat(15);
    japanese.batch_execute(&format!(
        "CREATE EXTENSION snowflake; CREATE TABLE {table} (id bigint) PARTITION BY RANGE (id)"
    ))?;
    for statement in statements(
        &mut japanese,
        &format!("'{table}', '2026-05-01', '2026-05-08', '1 day'"),
    )? {
        japanese.batch_execute(&statement)?;
    }
    assert_eq!(partitions(&mut japanese, &table)?.len(), 7);

    // An ordinary owner, with no right to anything else.
    client.batch_execute(
        "CREATE ROLE owner LOGIN; CREATE SCHEMA shop AUTHORIZATION owner;
         REVOKE CREATE ON SCHEMA public FROM PUBLIC",
    )?;
    let written = psql(
        &cluster,
        "owner",
        "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id);
         SELECT snowflake_partition_ddl('shop.orders', '2026-05-01', '2026-05-08', '1 day') \\gexec
         INSERT INTO shop.orders SELECT snowflake_compose(at, 1, 0, 0), 'n'
         FROM generate_series(timestamptz '2026-05-01', '2026-05-07 23:00', '1 hour') AS at;
         SELECT 'rows: ' || count(*) FROM shop.orders;\n",
    )?;
    assert_eq!(written.matches("CREATE TABLE").count(), 8, "{written}");
    assert!(written.contains("rows: 168"), "{written}");
    let owned = count(
        client,
        "SELECT count(*) FROM pg_class WHERE relowner = 'owner'::regrole AND relname ~ '^orders_p2026050\\d$'",
    )?;
    assert_eq!(owned, 7);
    println!("partitions: 7 by an ordinary owner, 168 rows");

    // A search path with a trap in front changes nothing.
    let call = "'public.t', '2026-05-01', '2026-05-08', '1 day'";
    client.batch_execute(
        "CREATE TABLE public.t (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE public.sprung (by text);
         CREATE SCHEMA trap;
         CREATE FUNCTION trap.spring(what text) RETURNS text LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO public.sprung VALUES (what); RETURN what; END $$;
         CREATE FUNCTION trap.snowflake_min_id(timestamptz) RETURNS bigint LANGUAGE sql AS
             'SELECT trap.spring(''min_id''); SELECT 7::bigint';
         CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS
             'SELECT trap.spring(''format'')';
         CREATE FUNCTION trap.format(text, text, text) RETURNS text LANGUAGE sql AS
             'SELECT trap.spring(''format'')';
         CREATE FUNCTION trap.to_char(timestamp, text) RETURNS text LANGUAGE sql AS
             'SELECT trap.spring(''to_char'')';
         CREATE FUNCTION trap.octet_length(text) RETURNS int LANGUAGE sql AS
             'SELECT length(trap.spring(''octet_length''))';
         CREATE FUNCTION trap.isfinite(timestamptz) RETURNS boolean LANGUAGE sql AS
             'SELECT trap.spring(''isfinite'') IS NULL';
         CREATE FUNCTION trap.current_setting(text) RETURNS text LANGUAGE sql AS
             'SELECT trap.spring(''current_setting'')';
         CREATE FUNCTION trap.plus(timestamptz, interval) RETURNS timestamptz LANGUAGE sql AS
             'SELECT trap.spring(''+''); SELECT now()';
         CREATE OPERATOR trap.+ (LEFTARG = timestamptz, RIGHTARG = interval, FUNCTION = trap.plus);
         CREATE FUNCTION trap.joined(text, text) RETURNS text LANGUAGE sql AS
             'SELECT trap.spring(''||'')';
         CREATE OPERATOR trap.|| (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.joined);
         CREATE FUNCTION trap.less(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS
             'SELECT trap.spring(''<'') IS NULL';
         CREATE OPERATOR trap.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = trap.less);
         CREATE TABLE trap.pg_class (oid oid, relname name, relkind \"char\");
         CREATE TABLE trap.pg_inherits (inhrelid oid, inhparent oid);
         CREATE DOMAIN trap.text AS pg_catalog.text CHECK (false);
         CREATE TEMP TABLE pg_namespace (oid oid, nspname name)",
    )?;
    let expected = statements(client, call)?;
    assert_eq!(expected.len(), 7);
    client.batch_execute("SET search_path = trap, pg_catalog, public")?;
    // The trap is one: the same names by the path do spring it.
    client.batch_execute("BEGIN")?;
    value(
        client,
        "SELECT isfinite(timestamptz '2026-01-01')::pg_catalog.text",
    )?;
    assert_eq!(count(client, "SELECT count(*) FROM public.sprung")?, 1);
    client.batch_execute("ROLLBACK")?;
    let rows = client.query(
        &format!("SELECT d::pg_catalog.text FROM public.snowflake_partition_ddl({call}) AS d"),
        &[],
    )?;
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, expected);
    for statement in &found {
        client.batch_execute(statement)?;
    }
    client.batch_execute("RESET search_path")?;
    assert_eq!(count(client, "SELECT count(*) FROM public.sprung")?, 0);
    let others = count(
        client,
        "SELECT count(*) FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
         WHERE i.inhparent = 'public.t'::regclass AND c.relnamespace = 'public'::regnamespace",
    )?;
    assert_eq!(others, 7);

    // The extension in a schema of its own, out of the search path.
    client.batch_execute("CREATE DATABASE apart")?;
    let mut apart = cluster.connect_to("apart")?;
    apart.batch_execute(
        "CREATE SCHEMA \"Ids Of\"; CREATE EXTENSION snowflake SCHEMA \"Ids Of\";
         CREATE TABLE t (id bigint) PARTITION BY RANGE (id)",
    )?;
    let rows = apart.query(
        "SELECT \"Ids Of\".snowflake_partition_ddl('t', '2026-05-01', '2026-05-08', '1 day')",
        &[],
    )?;
    let found: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(found, expected);
    println!(
        "partitions: the same 7 past a search path with a trap, and with the extension in a schema apart"
    );
    Ok(())
}

#[test]
fn what_is_refused() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE good (id bigint) PARTITION BY RANGE (id);
         CREATE TABLE plain (id bigint);
         CREATE VIEW seen AS SELECT * FROM plain;
         CREATE TABLE of_int (id int) PARTITION BY RANGE (id);
         CREATE TABLE of_numeric (id numeric) PARTITION BY RANGE (id);
         CREATE TABLE of_time (at timestamptz) PARTITION BY RANGE (at);
         CREATE TABLE listed (id bigint) PARTITION BY LIST (id);
         CREATE TABLE hashed (id bigint) PARTITION BY HASH (id);
         CREATE TABLE of_two (id bigint, n bigint) PARTITION BY RANGE (id, n);
         CREATE TABLE computed (id bigint) PARTITION BY RANGE ((id + 1));
         CREATE TABLE leaf PARTITION OF good FOR VALUES FROM (0) TO (1);
         CREATE TABLE gone (id bigint)",
    )?;
    let gone = value(client, "SELECT 'gone'::regclass::oid")?;
    client.batch_execute("DROP TABLE gone")?;
    let range = "'2026-01-01', '2026-02-01', '1 day'";
    let mut refused = 0;
    for table in ["plain", "seen", "leaf", "pg_class"] {
        let refusal = refusal(
            client,
            &format!("SELECT snowflake_partition_ddl('{table}', {range})"),
        )?;
        assert_eq!(refusal.sqlstate, "42809", "{refusal}");
        assert_eq!(
            refusal.message,
            format!("\"{table}\" is not a partitioned table")
        );
        assert!(
            refusal.hint.contains("PARTITION BY RANGE (id)"),
            "{refusal}"
        );
        refused += 1;
    }
    for (table, key) in [
        ("of_int", "RANGE (id)"),
        ("of_numeric", "RANGE (id)"),
        ("of_time", "RANGE (at)"),
        ("listed", "LIST (id)"),
        ("hashed", "HASH (id)"),
        ("of_two", "RANGE (id, n)"),
        ("computed", "RANGE (((id + 1)))"),
    ] {
        let refusal = refusal(
            client,
            &format!("SELECT snowflake_partition_ddl('{table}', {range})"),
        )?;
        assert_eq!(refusal.sqlstate, "42809", "{refusal}");
        assert_eq!(
            refusal.message,
            format!("\"{table}\" is not partitioned by ranges of a bigint column")
        );
        assert_eq!(refusal.detail, format!("Its partition key is {key}."));
        refused += 1;
    }
    for (arguments, sqlstate) in [
        ("'2026-02-01', '2026-01-01', '1 day'", "22023"),
        ("'-infinity', '2026-01-01', '1 day'", "22023"),
        ("'2026-01-01', 'infinity', '1 day'", "22023"),
        ("'infinity', 'infinity', '1 day'", "22023"),
        ("'2026-01-01', '2026-02-01', '0'", "22023"),
        ("'2026-01-01', '2026-02-01', '-1 day'", "22023"),
        ("'2026-01-01', '2026-02-01', '1 month -31 days'", "22023"),
        ("'2026-01-01', '2026-02-01', '1 day -24 hours'", "22023"),
        ("'2094-01-01', '2095-01-01', '1 month'", "22003"),
        ("'2094-09-07', '2094-09-08', '1 day'", "22003"),
        ("'9999-01-01', '9999-02-01', '1 day'", "22003"),
    ] {
        let refusal = refusal(
            client,
            &format!("SELECT snowflake_partition_ddl('good', {arguments})"),
        )?;
        assert_eq!(refusal.sqlstate, sqlstate, "{arguments}: {refusal}");
        assert!(
            !refusal.detail.is_empty() || !refusal.hint.is_empty(),
            "{refusal}"
        );
        refused += 1;
    }
    for (table, sqlstate) in [
        (gone.as_str(), "42P01"),
        ("nowhere", "42P01"),
        ("0", "42P01"),
    ] {
        let refusal = refusal(
            client,
            &format!("SELECT snowflake_partition_ddl('{table}', {range})"),
        )?;
        assert_eq!(refusal.sqlstate, sqlstate, "{refusal}");
        refused += 1;
    }
    for arguments in [
        format!("NULL, {range}"),
        "'good', NULL, '2026-02-01', '1 day'".to_owned(),
        "'good', '2026-01-01', NULL, '1 day'".to_owned(),
        "'good', '2026-01-01', '2026-02-01', NULL".to_owned(),
    ] {
        assert!(statements(client, &arguments)?.is_empty(), "{arguments}");
    }
    println!("partitions: {refused} tables, ranges and steps refused; NULL gives no rows");
    Ok(())
}
