//! Reading IDs in SQL: that each function answers as the crate does, in which
//! expressions the immutable ones are allowed, and that no setting, locale or
//! encoding changes an answer. A library that is not preloaded is in
//! `settings::configuration`. The arithmetic itself is checked in the crate
//! (`crates/snowflake-id/tests`).

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::Cluster;
use snowflake_tests::query::text;
use snowflake_tests::server_error::expect_error;

/// IDs that others have published, with their time, node and sequence.
const VECTORS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../crates/snowflake-id/tests/data/vectors.tsv"
));

/// Every field with a value of its own, by presets and by texts: ID, layout,
/// time, node, backend, sequence.
const READINGS: [(i64, &str, &str, [i32; 3]); 8] = [
    (0, "default", "2025-01-01T00:00:00Z", [0, 0, 0]),
    (4_337_668, "default", "2025-01-01T00:00:00.001Z", [2, 3, 4]),
    (
        4_198_594,
        "timestamp:41 sequence:12 backend:4 node:6",
        "2025-01-01T00:00:00.001Z",
        [2, 3, 4],
    ),
    (
        i64::MAX,
        "default",
        "2094-09-07T15:47:35.551Z",
        [63, 15, 4095],
    ),
    (
        1_541_815_603_606_036_480,
        "twitter",
        "2022-06-28T16:07:40.105Z",
        [11, 26, 0],
    ),
    (65_541, "mastodon", "1970-01-01T00:00:00.001Z", [0, 0, 5]),
    (
        (1 << 53) - 1,
        "js53",
        "2112-02-09T13:44:29.43Z",
        [31, 0, 1023],
    ),
    (
        4_198_594,
        "timestamp:41 sequence:12 backend:4 node:6 epoch:1969-07-20T20:17:40",
        "1969-07-20T20:17:40.001Z",
        [2, 3, 4],
    ),
];

/// One server for all that only reads, in a session each.
#[test]
fn every_function_reads_an_id_by_its_layout() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    published_ids_are_read(&mut cluster.connect()?)?;
    texts_have_one_width_and_the_order_of_their_ids(&mut cluster.connect()?)?;
    drawings_show_the_time_as_the_session_prints_it(&mut cluster.connect()?)?;
    a_layout_from_a_table_may_be_compressed_or_out_of_line(&mut cluster.connect()?)
}

fn published_ids_are_read(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE readings (id bigint, layout text, at timestamptz, node int, backend int,
                                sequence int)",
    )?;
    let mut rows = Vec::from(READINGS);
    for line in VECTORS.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [node, sequence] = [columns[3].parse()?, columns[4].parse()?];
        rows.push((
            columns[0].parse()?,
            columns[1],
            columns[2],
            [node, 0, sequence],
        ));
    }
    assert_eq!(rows.len(), READINGS.len() + 25, "published IDs");
    for (id, layout, at, [node, backend, sequence]) in &rows {
        client.execute(
            "INSERT INTO readings VALUES ($1, $2, $3::text::timestamptz, $4, $5, $6)",
            &[id, layout, at, node, backend, sequence],
        )?;
    }
    for condition in [
        "snowflake_decode(id, layout) = (at, node, backend, sequence)",
        "snowflake_timestamp(id, layout) = at",
        "snowflake_node_id(id, layout) = node",
        "snowflake_backend_id(id, layout) = backend",
        "snowflake_sequence(id, layout) = sequence",
        "snowflake_compose(at, node, backend, sequence, layout) = id",
        "id BETWEEN snowflake_min_id(at, layout) AND snowflake_max_id(at, layout)",
        "snowflake_between(id, at, at + interval '1 us', layout)",
        "id > snowflake_max_id_before(at, layout)",
    ] {
        let wrong =
            format!("SELECT min(r::text) FROM readings AS r WHERE ({condition}) IS NOT TRUE");
        assert_eq!(text(client, &wrong)?, None, "{condition}");
    }
    println!(
        "reading: {} IDs by their layouts, every function",
        rows.len()
    );
    Ok(())
}

fn texts_have_one_width_and_the_order_of_their_ids(client: &mut Client) -> Result<()> {
    for (encoding, known, width) in [
        ("base32", "06XH8ZWT42G00", 13),
        ("base62", "0IQOqa0An0C", 11),
    ] {
        // IDs of every size.
        let query = format!(
            "WITH given AS (
                 SELECT id, snowflake_to_text(id, '{encoding}') AS code
                 FROM generate_series(0, 62) AS size, generate_series(0, 99) AS n,
                      LATERAL (SELECT (9223372036854775807 - n * 92233720368547758) >> size AS id) AS i
             )
             SELECT concat_ws(' ', snowflake_to_text(249431905924104192, '{encoding}'),
                        bool_and(snowflake_from_text(code, '{encoding}') = id),
                        bool_and(octet_length(code) = {width}),
                        array_agg(id ORDER BY id) = array_agg(id ORDER BY code COLLATE \"C\"))
             FROM given"
        );
        let found = text(client, &query)?;
        assert_eq!(found, Some(format!("{known} t t t")), "{encoding}");
    }
    let typed = "SELECT snowflake_from_text('o6xh8zwt42gOo') - 249431905924104192";
    assert_eq!(text(client, typed)?.as_deref(), Some("0"));
    for call in [
        "snowflake_to_text(NULL)",
        "snowflake_to_text(1, NULL)",
        "snowflake_from_text(NULL)",
        "snowflake_from_text('1', NULL)",
    ] {
        assert_eq!(text(client, &format!("SELECT {call}"))?, None, "{call}");
    }
    println!(
        "reading: 6,300 IDs as base32 and base62: one width, sorted under COLLATE \"C\", and back"
    );
    Ok(())
}

/// What `snowflake_explain` should draw: each field's name, bits, value and,
/// for the timestamp, its time, one under the other.
fn drawing(id: i64, layout: &str, time: &str) -> Result<String> {
    let mut fields: Vec<(&str, usize)> = Vec::new();
    for pair in layout.split(' ') {
        match pair.split_once(':').context("no pair")? {
            ("tick" | "epoch", _) => {}
            (name, bits) => fields.push((name, bits.parse()?)),
        }
    }
    let unused = 63 - fields.iter().map(|(_, bits)| bits).sum::<usize>();
    if unused > 0 {
        fields.insert(0, ("unused", unused));
    }
    let all = format!("{id:063b}");
    let (mut rest, mut lines) = (all.as_str(), [const { String::new() }; 4]);
    for (name, bits) in fields {
        let (own, below) = rest.split_at(bits);
        rest = below;
        let value = match name {
            "unused" => String::new(),
            _ => u64::from_str_radix(own, 2)?.to_string(),
        };
        let time = if name == "timestamp" { time } else { "" };
        let column = [&format!("{name}:{bits}"), own, &value, time];
        let width = column.map(str::len).into_iter().max().unwrap_or(0) + 2;
        for (line, part) in lines.iter_mut().zip(column) {
            line.push_str(&format!("{part:width$}"));
        }
    }
    let lines = lines.map(|line| line.trim_end().to_owned());
    Ok(format!("{}\nlayout {layout}", lines.join("\n")))
}

fn drawings_show_the_time_as_the_session_prints_it(client: &mut Client) -> Result<()> {
    let mut drawn = 0;
    for (zone, style, expected) in [
        ("UTC", "ISO", "2026-11-20 07:13:20.593+00"),
        ("America/New_York", "ISO", "2026-11-20 02:13:20.593-05"),
        ("Asia/Kolkata", "German", "20.11.2026 12:43:20.593 IST"),
        ("Europe/Berlin", "SQL, DMY", "20/11/2026 08:13:20.593 CET"),
        (
            "Australia/Lord_Howe",
            "Postgres, MDY",
            "Fri Nov 20 18:13:20.593 2026 +11",
        ),
    ] {
        client.batch_execute(&format!(
            "SET TimeZone = '{zone}'; SET DateStyle = '{style}'"
        ))?;
        let drawing_here = text(client, "SELECT snowflake_explain(249431905924104192)")?;
        let mut lines = drawing_here.as_deref().unwrap_or_default().lines();
        assert_eq!(lines.nth(3), Some(expected));
        for row in client.query(
            "SELECT id, layout, snowflake_timestamp(id, name)::text, snowflake_explain(id, name),
                    snowflake_explain(id, layout)
             FROM snowflake_layouts, LATERAL (SELECT snowflake_max_id('infinity', name)) AS l(last),
                  LATERAL unnest(ARRAY[0, last, last / 7 * 2, last / 11 * 10, 249431905924104192 % last])
                      AS id",
            &[],
        )? {
            let expected = drawing(row.get(0), row.get(1), row.get(2))?;
            assert_eq!([row.get::<_, &str>(3), row.get(4)], [&expected; 2]);
            drawn += 2;
        }
    }
    println!("reading: {drawn} drawings by presets and their texts in 5 time zones");
    assert_eq!(drawn, 5 * 13 * 5 * 2);
    Ok(())
}

/// Generated columns, a CHECK, indexes and partition keys over the functions
/// that name their layout.
const IMMUTABLE: &str =
        "CREATE TABLE orders (
             id bigint PRIMARY KEY,
             created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED,
             code text GENERATED ALWAYS AS (snowflake_to_text(id)) STORED,
             CHECK (snowflake_between(id, '2026-01-01 00:00+00', '2027-01-01 00:00+00', 'default'))
         );
         CREATE INDEX by_time ON orders (snowflake_timestamp(id, 'default'));
         CREATE INDEX of_node ON orders (snowflake_node_id(id, 'default'), snowflake_sequence(id, 'default'));
         CREATE INDEX of_may ON orders ((id % 7))
             WHERE snowflake_between(id, '2026-05-01 00:00+00', '2026-06-01 00:00+00', 'default');
         INSERT INTO orders SELECT snowflake_compose(at, (extract(day FROM at))::int, 3, 5)
         FROM generate_series(timestamptz '2026-01-01', '2026-12-31', '1 hour') AS at;
         ANALYZE orders;
         CREATE TABLE by_year (id bigint) PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
         CREATE TABLE by_year_2025 PARTITION OF by_year
             FOR VALUES FROM ('2025-01-01 00:00+00') TO ('2026-01-01 00:00+00');
         CREATE TABLE by_year_2026 PARTITION OF by_year
             FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2027-01-01 00:00+00');
         CREATE TABLE by_node (id bigint) PARTITION BY LIST (snowflake_node_id(id, 'default'));
         CREATE TABLE by_node_1 PARTITION OF by_node FOR VALUES IN (1);
         CREATE TABLE by_node_2 PARTITION OF by_node FOR VALUES IN (2);
         INSERT INTO by_year SELECT snowflake_compose(at, 1, 0, 0)
         FROM generate_series(timestamptz '2025-01-01', '2026-12-31 23:00', '1 hour') AS at;
         INSERT INTO by_node SELECT snowflake_compose('2026-01-01', 1 + n % 2, 0, n)
         FROM generate_series(0, 999) AS n";

#[test]
fn functions_with_a_layout_can_be_stored_indexed_and_partitioned_by() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let client = &mut cluster.connect()?;
    client.batch_execute(IMMUTABLE)?;
    for condition in [
        "SELECT bool_and(created_at = snowflake_timestamp(id) AND code = snowflake_to_text(id)
                         AND created_at = date_trunc('hour', created_at)) FROM orders",
        "SELECT count(*) = 2 * 365 * 24 FROM by_year WHERE tableoid::regclass::text
             = 'by_year_' || extract(year FROM snowflake_timestamp(id))",
        "SELECT count(*) = 1000 FROM by_node WHERE tableoid::regclass::text
             = 'by_node_' || snowflake_node_id(id)",
    ] {
        assert!(
            client.query_one(condition, &[])?.get::<_, bool>(0),
            "{condition}"
        );
    }
    client.batch_execute("SET enable_seqscan = off")?;
    for (condition, index) in [
        (
            "snowflake_timestamp(id, 'default') >= '2026-05-01'
             AND snowflake_timestamp(id, 'default') < '2026-05-02'",
            "by_time",
        ),
        ("snowflake_node_id(id, 'default') = 7", "of_node"),
        (
            "id % 7 = 3
             AND snowflake_between(id, '2026-05-01 00:00+00', '2026-06-01 00:00+00', 'default')",
            "of_may",
        ),
    ] {
        let explain = format!("EXPLAIN (FORMAT json) SELECT * FROM orders WHERE {condition}");
        let plan = text(client, &explain)?.unwrap_or_default();
        assert!(plan.contains(index), "{plan}");
    }
    for (statement, sqlstate) in [
        (
            "INSERT INTO orders SELECT snowflake_compose('2027-01-01', 0, 0, 0)",
            "23514",
        ),
        ("CREATE INDEX ON orders (snowflake_timestamp(id))", "42P17"),
        ("CREATE INDEX ON orders ((snowflake_decode(id)))", "42P17"),
        (
            "CREATE INDEX ON orders (id) WHERE snowflake_between(id, '2026-05-01', '2026-06-01')",
            "42P17",
        ),
        (
            "CREATE INDEX ON orders (snowflake_explain(id, 'default'))",
            "42P17",
        ),
        (
            "CREATE TABLE no (id bigint, at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED)",
            "42P17",
        ),
        (
            "CREATE TABLE no (id bigint) PARTITION BY RANGE (snowflake_timestamp(id))",
            "42P17",
        ),
    ] {
        assert_eq!(
            expect_error(client, statement)?.sqlstate,
            sqlstate,
            "{statement}"
        );
    }
    println!(
        "reading: generated columns, a check, three indexes in their plans, two partition keys"
    );
    dump_and_restore(&cluster, client)
}

/// What `pg_dump` writes runs with an empty search path.
fn dump_and_restore(cluster: &Cluster, client: &mut Client) -> Result<()> {
    client.batch_execute("CREATE DATABASE restored")?;
    let dump = cluster.client_command("pg_dump", "postgres").output()?;
    ensure!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    let mut psql = cluster
        .client_command("psql", "restored")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut input = psql.stdin.take().context("no pipe")?;
    input.write_all(&dump.stdout)?;
    drop(input);
    ensure!(psql.wait()?.success(), "the dump was not restored");
    let contents = "SELECT md5(string_agg(o::text, ',' ORDER BY id)) FROM orders AS o";
    let restored = text(&mut cluster.connect_to("restored")?, contents)?;
    assert!(restored.is_some() && restored == text(client, contents)?);
    println!("reading: all of it dumped and restored");
    Ok(())
}

/// Every function that reads IDs over 200 of them, as one number that doesn't
/// depend on how a time is printed.
const DIGEST: &str = "
SELECT md5(string_agg(concat_ws(' ',
           id, extract(epoch FROM snowflake_timestamp(id, layout)), snowflake_node_id(id, layout),
           snowflake_backend_id(id, layout), snowflake_sequence(id, layout),
           (d.decoded).node_id, (d.decoded).sequence, extract(epoch FROM (d.decoded).created_at),
           snowflake_compose(t.at, 1, 2, 3, layout), snowflake_min_id(t.at, layout),
           snowflake_max_id(t.at, layout),
           snowflake_between(id, t.at - make_interval(secs => 1e9), t.at, layout),
           snowflake_to_text(id), snowflake_to_text(id, 'base62'),
           snowflake_from_text(snowflake_to_text(id)),
           snowflake_from_text(lower(snowflake_to_text(id)))), ',' ORDER BY layout COLLATE \"C\", id))
FROM unnest(ARRAY['default', 'twitter', 'timestamp:41 node:6 backend:4 sequence:12 epoch:2025-01-01',
                  'timestamp:41 node:6 backend:4 sequence:12 epoch:2020-07-01T12:30:00',
                  'timestamp:41 node:6 backend:4 sequence:12 epoch:2020-03-29T02:30:00+01:00']) AS layout,
     (SELECT n * 92233720368547758 + n AS id FROM generate_series(0, 40) AS n) AS ids,
     LATERAL (SELECT to_timestamp(1893456000 + id % 1000000)) AS t(at),
     LATERAL (SELECT snowflake_decode(id, layout)) AS d(decoded)";

#[test]
fn no_setting_or_locale_changes_an_answer() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let digest = text(&mut cluster.connect()?, DIGEST)?.context("no digest")?;
    no_setting_of_a_session_changes_it(&mut cluster.connect()?, &digest)?;
    no_locale_of_a_database_changes_it(&cluster, &digest)
}

fn no_setting_of_a_session_changes_it(client: &mut Client, digest: &str) -> Result<()> {
    let mut sessions = 0;
    for zone in [
        "UTC",
        "America/New_York",
        "Asia/Kolkata",
        "Europe/Berlin",
        "Pacific/Apia",
    ] {
        for style in ["ISO, MDY", "German", "SQL, DMY", "Postgres, YMD"] {
            for (interval, numeric) in [("postgres", "C"), ("iso_8601", "C.UTF-8")] {
                client.batch_execute(&format!(
                    "SET TimeZone = '{zone}'; SET DateStyle = '{style}';
                     SET IntervalStyle = '{interval}'; SET lc_numeric = '{numeric}';
                     SET lc_time = '{numeric}'; SET lc_monetary = '{numeric}';
                     SET extra_float_digits = -10"
                ))?;
                let found = text(client, DIGEST)?;
                assert_eq!(
                    found.as_deref(),
                    Some(digest),
                    "{zone}, {style}, {interval}"
                );
                sessions += 1;
            }
        }
    }
    println!("reading: the same answers in {sessions} sessions of other time zones and styles");
    Ok(())
}

fn no_locale_of_a_database_changes_it(cluster: &Cluster, digest: &str) -> Result<()> {
    let client = &mut cluster.connect()?;
    let mut locales = vec![("c_utf8", "LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'")];
    // A build without ICU may have collations of it in its catalog all the same.
    let icu = "CREATE COLLATION pg_temp.trial (provider = icu, locale = 'tr')";
    if client.batch_execute(icu).is_ok() {
        // Where "I" in lower case is not "i", and where letters sort elsewhere.
        locales.push(("turkish", "LOCALE_PROVIDER icu ICU_LOCALE 'tr'"));
        locales.push(("estonian", "LOCALE_PROVIDER icu ICU_LOCALE 'et'"));
    }
    for (name, locale) in &locales {
        client.batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 {locale}"
        ))?;
        let mut client = cluster.connect_to(name)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        // lower() in the digest must not be the locale's.
        let digest_of = DIGEST.replace(
            "lower(snowflake_to_text(id))",
            "lower(snowflake_to_text(id) COLLATE \"C\")",
        );
        assert_eq!(
            text(&mut client, &digest_of)?.as_deref(),
            Some(digest),
            "{name}"
        );
    }
    println!(
        "reading: the same answers in {} databases of other locales",
        locales.len()
    );
    Ok(())
}

/// Calls that must not take the text `@`, and how they answer.
const CALLS: [(&str, &str); 18] = [
    ("from_text(@)", "22P02"),
    ("from_text('000000000' || @)", "22P02"),
    ("from_text(@, 'base62')", "22P02"),
    ("from_text('0000000000000', @)", "22023"),
    ("to_text(1, @)", "22023"),
    ("to_text(1, 'base32' || @)", "22023"),
    ("decode(1, @::text)", "22023"),
    ("timestamp(1, @::text)", "22023"),
    ("node_id(1, @::text)", "22023"),
    ("backend_id(1, @::text)", "22023"),
    ("sequence(1, @::text)", "22023"),
    ("compose('2026-01-01', 0, 0, 0, @::text)", "22023"),
    ("min_id('2026-01-01', @::text)", "22023"),
    ("max_id('2026-01-01', @::text)", "22023"),
    ("between(1, now(), now(), @::text)", "22023"),
    ("explain(1, @::text)", "22023"),
    (
        "explain(1, 'timestamp:41 ' || @ || ' sequence:12')",
        "22023",
    ),
    (
        "explain(1, 'timestamp:41 sequence:12 epoch:' || @)",
        "22023",
    ),
];

#[test]
fn a_text_in_any_encoding_is_refused_and_the_session_survives() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let mut refused = 0;
    for (encoding, strings) in [
        ("UTF8", vec!["'é'", "'日本'", "'🐘'", "U&'\\00A0default'"]),
        // Half characters too: the server does not check them there.
        (
            "SQL_ASCII",
            vec![
                "'é'",
                "'日本'",
                "E'\\xe9'",
                "E'\\xff\\xfe'",
                "E'default\\xa0'",
            ],
        ),
        ("LATIN1", vec!["'é'", "'default' || chr(160)", "chr(255)"]),
        ("EUC_JP", vec!["'日本'", "'default日'", "'ｱ'"]),
    ] {
        let name = format!("of_{}", encoding.to_lowercase());
        client.batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}'
             LC_COLLATE 'C' LC_CTYPE 'C'"
        ))?;
        let client = &mut cluster.connect_to(&name)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        let session = "SELECT current_setting('server_encoding') || ' ' || pg_backend_pid()";
        let before = text(client, session)?.unwrap_or_default();
        assert!(before.starts_with(encoding), "{before}");
        for string in &strings {
            for (call, sqlstate) in CALLS {
                let call = format!("snowflake_{}", call.replace('@', &format!("({string})")));
                let refusal = expect_error(client, &format!("SELECT {call}"))
                    .with_context(|| format!("{encoding}: {call}"))?;
                assert_eq!(refusal.sqlstate, sqlstate, "{encoding}: {call}: {refusal}");
                refused += 1;
            }
        }
        let call = format!("SELECT snowflake_from_text('00' || {})", strings[0]);
        let shown = if encoding == "UTF8" { "é" } else { "?" };
        assert_eq!(
            expect_error(client, &call)?.detail,
            format!("Character \"{shown}\" at position 3 is not a base32 digit.")
        );
        assert_eq!(text(client, session)?, Some(before));
        // What is right is right there too.
        let read = "SELECT snowflake_from_text(snowflake_to_text(1541815603606036480)) || ' '
                        || snowflake_node_id(1541815603606036480, 'twitter')";
        assert_eq!(
            text(client, read)?.as_deref(),
            Some("1541815603606036480 11")
        );
    }
    println!(
        "reading: {refused} non-ASCII texts refused in databases of 4 encodings, in one session each"
    );
    Ok(())
}

fn a_layout_from_a_table_may_be_compressed_or_out_of_line(client: &mut Client) -> Result<()> {
    client.batch_execute(
        "CREATE TABLE layouts (storage text, layout text);
         ALTER TABLE layouts ALTER layout SET STORAGE EXTENDED;
         INSERT INTO layouts
             SELECT 'compressed', 'timestamp:41' || repeat(' ', length) || 'node:6 backend:4 sequence:12'
             FROM unnest(ARRAY[1, 90, 100, 200, 3000, 100000, 1000000]) AS length;
         ALTER TABLE layouts ALTER layout SET STORAGE EXTERNAL;
         INSERT INTO layouts
             SELECT 'out of line', 'timestamp:41' || repeat(' ', length) || 'node:6 backend:4 sequence:12'
             FROM unnest(ARRAY[3000, 100000]) AS length",
    )?;
    let row = client.query_one(
        "SELECT count(*), count(*) FILTER (WHERE pg_column_size(layout) < octet_length(layout)),
                bool_and(snowflake_decode(id, layout) = snowflake_decode(id, 'default')),
                bool_and(snowflake_compose(snowflake_timestamp(id, layout), snowflake_node_id(id, layout),
                                           snowflake_backend_id(id, layout),
                                           snowflake_sequence(id, layout), layout) = id),
                bool_and(snowflake_min_id(snowflake_timestamp(id), layout) <= id),
                bool_and(snowflake_max_id(snowflake_timestamp(id), layout) >= id),
                bool_and(snowflake_explain(id, layout) = snowflake_explain(id))
         FROM layouts, (SELECT 249431905924104192) AS i(id)",
        &[],
    )?;
    let (all, compressed): (i64, i64) = (row.get(0), row.get(1));
    assert!(
        all == 9 && compressed >= 3,
        "{compressed} of {all} compressed"
    );
    for column in 2..7 {
        assert!(row.get::<_, bool>(column), "column {column}");
    }
    for (call, sqlstate) in [
        ("snowflake_from_text(layout)", "22P02"),
        ("snowflake_from_text(repeat('0', length(layout)))", "22P02"),
        ("snowflake_to_text(1, layout)", "22023"),
        ("snowflake_timestamp(1, layout || 'x')", "22023"),
    ] {
        for storage in ["compressed", "out of line"] {
            let query = format!(
                "SELECT {call} FROM layouts
                 WHERE storage = '{storage}' AND octet_length(layout) BETWEEN 3000 AND 200000"
            );
            assert_eq!(expect_error(client, &query)?.sqlstate, sqlstate, "{call}");
        }
    }
    println!("reading: {all} layouts from a table, {compressed} of them compressed, up to 10 MB");
    Ok(())
}
