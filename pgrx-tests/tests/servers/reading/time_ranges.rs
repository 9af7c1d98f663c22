//! Conditions on the time of an ID return the same rows with and without the ranges that
//! the planner makes of them: random queries over random tables, in every time zone. Only
//! a server plans, so no cheaper tier sees this.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use postgres::{Client, SimpleQueryMessage};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use snowflake_tests::Cluster;
use snowflake_tests::document;
use snowflake_tests::query::{number, value};
use snowflake_tests::tier;

use crate::support::column;

/// IDs by several layouts: of days and nights in which some zone changes its time, at the
/// epoch and before it, at the end, NULL, and numbers that are no IDs.
const TABLES: &str = "
    CREATE TABLE seen (id bigint, n int, layout text);
    INSERT INTO seen
    SELECT snowflake_compose(greatest(t, '2025-01-01 00:00+00'), 0, 0, i % 3), i, 'default'
    FROM (SELECT i, CASE i % 4 WHEN 0 THEN timestamptz '2025-03-08 00:00+00' + i * interval '85 minutes'
                               WHEN 1 THEN timestamptz '2025-10-25 00:00+00' + i * interval '65 minutes'
                               WHEN 2 THEN timestamptz '2025-01-01 00:00+00' + i * interval '1 ms'
                               ELSE timestamptz '2026-06-01 00:00+00' + i * interval '25 hours' END AS t
          FROM generate_series(1, 300) AS i) AS s;
    INSERT INTO seen VALUES (NULL, 0, 'default'), (0, 0, 'default'), (9223372036854775807, 0, 'default');
    CREATE INDEX ON seen (id);
    CREATE TABLE parted (id bigint, n int, layout text) PARTITION BY RANGE (id);
    CREATE TABLE parted_0 PARTITION OF parted FOR VALUES FROM (MINVALUE) TO (snowflake_min_id('2025-03-20 00:00+00'));
    CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (snowflake_min_id('2025-03-20 00:00+00')) TO (snowflake_min_id('2025-11-01 00:00+00'));
    CREATE TABLE parted_2 PARTITION OF parted DEFAULT;
    INSERT INTO parted SELECT * FROM seen;
    CREATE TABLE wrong AS SELECT * FROM seen; INSERT INTO wrong VALUES (-1, -1, 'default'), (-9223372036854775808, -2, 'default');
    CREATE INDEX ON wrong (id);
    CREATE VIEW dated AS SELECT id, n, snowflake_timestamp(id) AS created_at FROM seen;
    CREATE VIEW dated_again AS SELECT * FROM dated;
    CREATE VIEW decoded AS SELECT s.n, s.id, d.created_at FROM seen AS s LEFT JOIN snowflake_decode(s.id) AS d ON s.n % 3 = 0;
    CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM dated WHERE created_at >= '2025-02-01';
    ANALYZE";

/// A query with a condition, and another form of the same condition.
struct Query {
    condition: String,
    from: &'static str,
}

fn pick<'a, T: ?Sized>(random: &mut StdRng, of: &[&'a T]) -> &'a T {
    of[random.random_range(0..of.len())]
}

/// A time near what tables have, or at an end.
fn instant(random: &mut StdRng) -> String {
    match random.random_range(0..12) {
        0 => "'infinity'".to_owned(),
        1 => "'-infinity'".to_owned(),
        2 => pick(
            random,
            &[
                "'1990-01-01'",
                "'2025-01-01 00:00+00'",
                "'2094-09-07 15:47:35.551+00'",
                "'2094-09-07 15:47:35.552+00'",
                "'2200-01-01'",
                "'294000-01-01'",
                "'4000-01-01 BC'",
            ],
        )
        .to_owned(),
        3 => format!(
            "('2025-01-01 00:00+00'::timestamptz + interval '{} microseconds')",
            random.random_range(0..3_000_000)
        ),
        4..8 => format!(
            "'2025-03-{:02} {:02}:{:02}'",
            random.random_range(7..31),
            random.random_range(0..24),
            random.random_range(0..60)
        ),
        8..11 => format!(
            "'2025-1{}-{:02} {:02}:{:02}'",
            random.random_range(0..2),
            random.random_range(1..31),
            random.random_range(0..24),
            random.random_range(0..60)
        ),
        _ => format!(
            "'202{}-0{}-15'",
            random.random_range(4..8),
            random.random_range(1..10)
        ),
    }
}

fn day(random: &mut StdRng) -> String {
    match random.random_range(0..8) {
        0 => "date 'infinity'".to_owned(),
        1 => pick(
            random,
            &[
                "date '5874897-12-31'",
                "date '4714-11-24 BC'",
                "date '2025-01-01'",
                "date '-infinity'",
            ],
        )
        .to_owned(),
        2..5 => format!("date '2025-03-{:02}'", random.random_range(7..31)),
        _ => format!(
            "date '2025-1{}-{:02}'",
            random.random_range(0..2),
            random.random_range(1..31)
        ),
    }
}

/// A function that counts seconds, up to its argument, and a number of them.
fn pick_pair(random: &mut StdRng) -> (&'static str, String) {
    let seconds = match random.random_range(0..8) {
        0 => pick(random, &["1e300", "-1e300", "'NaN'", "'infinity'", "0"]).to_owned(),
        1..4 => format!("1735689600.{:06}", random.random_range(0..1_000_000)),
        _ => random
            .random_range(1_735_000_000..1_800_000_000)
            .to_string(),
    };
    if random.random() {
        ("extract(epoch FROM", format!("{seconds}::numeric"))
    } else {
        ("date_part('epoch',", format!("{seconds}::float8"))
    }
}

fn query(random: &mut StdRng) -> Query {
    let from = pick(
        random,
        &[
            "seen",
            "seen",
            "parted",
            "wrong",
            "dated",
            "dated_again",
            "barred",
            "decoded",
            "seen JOIN LATERAL snowflake_decode(id) ON true",
        ],
    );
    let time = if from.starts_with("d") || from == "barred" || from.contains("JOIN") {
        "created_at"
    } else {
        pick(
            random,
            &[
                "snowflake_timestamp(id)",
                "snowflake_timestamp(id, 'default')",
                "(snowflake_decode(id)).created_at",
                "(snowflake_decode(id, 'default')).created_at",
            ],
        )
    };
    let operator = pick(random, &["<", "<=", "=", ">=", ">"]);
    let unit = pick(
        random,
        &["hour", "day", "week", "month", "quarter", "year", "minute"],
    );
    let zone = pick(
        random,
        &[
            "Europe/Berlin",
            "America/St_Johns",
            "Pacific/Apia",
            "Asia/Kathmandu",
            "UTC",
            "EST5EDT",
            "XYZ-14",
        ],
    );
    let one = |random: &mut StdRng| match random.random_range(0..16) {
        0 | 1 => format!("{time} {operator} {}::timestamptz", instant(random)),
        2 => format!("{}::timestamptz {operator} {time}", instant(random)),
        3 => format!("{time} {operator} {}::timestamp", instant(random)),
        4 => format!("{time} {operator} {}", day(random)),
        5 => format!("{time}::date {operator} {}", day(random)),
        6 => format!(
            "date_trunc('{unit}', {time}) {operator} {}::timestamptz",
            instant(random)
        ),
        7 => format!(
            "{time} BETWEEN {}::timestamptz AND {}::timestamptz",
            instant(random),
            instant(random)
        ),
        8 => format!("{time}::date BETWEEN {} AND {}", day(random), day(random)),
        9 => format!(
            "({time} AT TIME ZONE '{zone}') {operator} {}::timestamp",
            instant(random)
        ),
        10 => format!(
            "({time} AT TIME ZONE '{zone}')::date {operator} {}",
            day(random)
        ),
        11 => format!(
            "date_trunc('{unit}', {time} AT TIME ZONE '{zone}') AT TIME ZONE '{zone}' {operator} {}::timestamptz",
            instant(random)
        ),
        12 => format!(
            "date_trunc('{unit}', {time}, '{zone}')::timestamp {operator} {}",
            day(random)
        ),
        13 => format!(
            "date_bin('{} minutes', {time}, {}) {operator} {}::timestamptz",
            random.random_range(1..5_000),
            pick(random, &["'2001-01-01'", "'2026-01-01 00:00+00'"]),
            instant(random)
        ),
        14 => {
            let (function, seconds) = pick_pair(random);
            format!("{function} {time}) {operator} {seconds}")
        }
        _ => format!("{time} IN ({}, {}, NULL)", instant(random), instant(random)),
    };
    let condition = match random.random_range(0..8) {
        0 => format!("({}) OR ({}) AND n % 2 = 0", one(random), one(random)),
        _ => one(random),
    };
    Query { condition, from }
}

/// The rows, or the error's code.
fn answer(client: &mut Client, query: &str) -> Result<std::result::Result<String, String>> {
    match client.simple_query(query) {
        Ok(messages) => Ok(Ok(messages
            .iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join(","))),
        Err(error) => {
            let error = error.as_db_error().context("not an error of the server")?;
            Ok(Err(error.code().code().to_owned()))
        }
    }
}

#[test]
fn ranges_return_the_same_rows() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    client.batch_execute("SET enable_seqscan = off; SET jit = off")?;
    let zones: Vec<String> = column(
        client,
        "SELECT name FROM pg_timezone_names WHERE name !~ '^(posix|right)/' ORDER BY name",
    )?;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let queries = tier::size(20_000, 100_000);
    let (mut rows_found, mut with_range, mut errors_gone) = (0_u64, 0_u64, 0_u64);
    let mut errors: BTreeMap<String, u64> = BTreeMap::new();
    for n in 0..queries {
        if n % 20 == 0 {
            let zone = &zones[random.random_range(0..zones.len())];
            client.batch_execute(&format!("SET TimeZone = '{zone}'"))?;
        }
        let Query { condition, from } = query(&mut random);
        let rows = format!(
            "SELECT md5(string_agg(n::text, ',' ORDER BY n)) || ' ' || count(*) FROM {from} WHERE {condition}"
        );
        client.batch_execute("SET snowflake.enable_time_ranges = off")?;
        let without = answer(client, &rows)?;
        client.batch_execute("SET snowflake.enable_time_ranges = on")?;
        let with = answer(client, &rows)?;
        let what = format!(
            "seed {seed}, query {n}, {}: {rows}",
            value(client, "SHOW TimeZone")?
        );
        match (&without, &with) {
            (Ok(a), Ok(b)) => {
                ensure!(a == b, "{what}: {a} without, {b} with ranges");
                let counted = a.rsplit(' ').next().unwrap_or("0");
                rows_found += u64::from(counted != "0" && counted != "NULL");
            }
            // A number that is no ID, out of the range.
            (Err(code), Ok(_)) => {
                ensure!(
                    from == "wrong" && code == "22003",
                    "{what}: {code}, and no error with ranges"
                );
                errors_gone += 1;
            }
            (Err(a), Err(b)) => {
                ensure!(a == b, "{what}: {a} without, {b} with ranges");
                *errors.entry(a.clone()).or_default() += 1;
            }
            (Ok(a), Err(code)) => {
                anyhow::bail!("{what}: {a} without, the error {code} with ranges")
            }
        }
        if n % 10 == 0 && with.is_ok() {
            let plan = answer(
                client,
                &format!("EXPLAIN SELECT FROM {from} WHERE {condition}"),
            )?;
            with_range += u64::from(plan.is_ok_and(|plan| plan.contains("(id ")));
            // As a value, it is evaluated for each row.
            if from == "seen" {
                let sum = number(
                    client,
                    &format!("SELECT coalesce(sum(({condition})::int), 0) FROM {from}"),
                )?;
                let count = number(
                    client,
                    &format!("SELECT count(*) FROM {from} WHERE {condition}"),
                )?;
                ensure!(sum == count, "{what}: {sum} are true, {count} are returned");
            }
        }
    }
    println!(
        "time ranges: {queries} queries, {} zones, {rows_found} with rows, 0 differ; of each tenth {with_range} have a range; errors with and without: {errors:?}, without ranges only: {errors_gone}",
        zones.len()
    );
    ensure!(rows_found > queries as u64 / 4 && with_range > queries as u64 / 40);
    Ok(())
}

/// ORDER BY returns the order without ranges.
#[test]
fn the_order_is_that_of_the_time() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLES)?;
    let mut checked = 0;
    for from in ["seen", "parted", "dated", "dated_again", "barred"] {
        let time = if from == "seen" || from == "parted" {
            "snowflake_timestamp(id)"
        } else {
            "created_at"
        };
        for direction in ["", "DESC", "NULLS FIRST", "DESC NULLS LAST"] {
            for then in ["", ", id", ", id DESC", ", n", ", n DESC"] {
                for limit in ["", "LIMIT 20", "OFFSET 50 LIMIT 30"] {
                    let query = format!(
                        "SELECT string_agg(coalesce(t::text, '-'), ',') FROM (SELECT {time} AS t FROM {from} ORDER BY {time} {direction} {then} {limit}) AS s"
                    );
                    let mut answers = Vec::new();
                    for state in ["off", "on"] {
                        client.batch_execute(&format!(
                            "SET snowflake.enable_time_ranges = {state}"
                        ))?;
                        answers.push(value(client, &query)?);
                    }
                    ensure!(answers[0] == answers[1], "{query}");
                    checked += 1;
                }
            }
        }
    }
    println!("time ranges: {checked} orders compared");
    Ok(())
}

/// The forms of a condition, by a time `{t}`, an operator `{o}` and a bound `{b}` of this type.
#[rustfmt::skip]
const FORMS: [(&str, &str, &str); 12] = [
    ("{t} {o} timestamptz",                    "{t} {o} {b}", "timestamptz"),
    ("{t} {o} timestamp",                      "{t} {o} {b}", "timestamp"),
    ("{t} {o} date",                           "{t} {o} {b}", "date"),
    ("timestamptz {o} {t}",                    "{b} {o} {t}", "timestamptz"),
    ("NOT ({t} {o} timestamptz)",              "NOT ({t} {o} {b})", "timestamptz"),
    ("{t} {o} timestamptz OR id = 1",          "({t} {o} {b} OR id = 1)", "timestamptz"),
    ("{t}::date {o} date",                     "{t}::date {o} {b}", "date"),
    ("date_trunc('hour', {t}) {o} timestamptz", "date_trunc('hour', {t}) {o} {b}", "timestamptz"),
    ("date_bin('1 hour', {t}, origin) {o} timestamptz", "date_bin('1 hour', {t}, '2001-01-01') {o} {b}", "timestamptz"),
    ("({t} AT TIME ZONE 'zone')::date {o} date", "({t} AT TIME ZONE 'Asia/Tokyo')::date {o} {b}", "date"),
    ("extract(epoch FROM {t}) {o} numeric",    "extract(epoch FROM {t}) {o} {b}", "numeric"),
    ("{t} IN (timestamptz, timestamptz)",      "{t} IN ({b}, '2026-11-21')", "timestamptz"),
];

/// Where conditions stand: a statement, and how the time is written there.
#[rustfmt::skip]
const PLACES: [(&str, &str, &str); 18] = [
    ("a table",                        "SELECT * FROM visits WHERE {c}", "snowflake_timestamp(id)"),
    ("a table, by a layout",           "SELECT * FROM visits WHERE {c}", "snowflake_timestamp(id, 'default')"),
    ("snowflake_decode",               "SELECT * FROM visits WHERE {c}", "(snowflake_decode(id)).created_at"),
    ("snowflake_decode in FROM",       "SELECT * FROM visits, snowflake_decode(visits.id) AS d WHERE {c}", "d.created_at"),
    ("a view",                         "SELECT * FROM dated WHERE {c}", "created_at"),
    ("a view of a view",               "SELECT * FROM dated_again WHERE {c}", "created_at"),
    ("inside of a barrier view",       "SELECT * FROM (SELECT * FROM visits WHERE {c} OFFSET 0) AS v", "snowflake_timestamp(id)"),
    ("above a barrier view",           "SELECT * FROM barred WHERE {c}", "created_at"),
    ("a CTE",                          "WITH v AS (SELECT * FROM dated) SELECT * FROM v WHERE {c}", "created_at"),
    ("a sub-select",                   "SELECT 1 WHERE EXISTS (SELECT FROM dated WHERE {c})", "created_at"),
    ("an inner join",                  "SELECT * FROM others JOIN dated USING (id) WHERE {c}", "created_at"),
    ("the condition of LEFT JOIN",     "SELECT * FROM others LEFT JOIN dated ON dated.id = others.id AND {c}", "created_at"),
    ("a partitioned table",            "SELECT * FROM parted WHERE {c}", "snowflake_timestamp(id)"),
    ("inheritance children",           "SELECT * FROM parents WHERE {c}", "snowflake_timestamp(id)"),
    ("UPDATE",                         "UPDATE dated SET what = '' WHERE {c}", "created_at"),
    ("DELETE",                         "DELETE FROM visits WHERE {c}", "snowflake_timestamp(id)"),
    ("MERGE",                          "MERGE INTO visits USING others ON visits.id = others.id AND {c} WHEN MATCHED THEN DELETE", "snowflake_timestamp(visits.id)"),
    ("above UNION ALL",                "SELECT * FROM (SELECT id, created_at FROM dated UNION ALL SELECT id, created_at FROM dated) AS u WHERE {c}", "created_at"),
];

/// What a time is compared with, of a type.
const BOUNDS: [(&str, &str); 4] = [
    ("constant", "{v}"),
    ("parameter", "$1"),
    ("stable", "(now() - interval '1 day')"),
    ("sub-select", "(SELECT max(bound) FROM bounds_{type})"),
];

const GRID_TABLES: &str = "
    CREATE TABLE visits (id bigint PRIMARY KEY, what text); CREATE TABLE others (id bigint PRIMARY KEY);
    INSERT INTO visits SELECT snowflake_compose(timestamptz '2026-11-20 00:00+00' + n * interval '1 minute', 0, 0, 0), n FROM generate_series(1, 1000) AS n;
    INSERT INTO others SELECT id FROM visits LIMIT 20;
    CREATE VIEW dated AS SELECT id, what, snowflake_timestamp(id) AS created_at FROM visits; CREATE VIEW dated_again AS SELECT * FROM dated;
    CREATE VIEW barred WITH (security_barrier) AS SELECT * FROM dated;
    CREATE TABLE parted (id bigint PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE parted_1 PARTITION OF parted DEFAULT;
    CREATE TABLE parents (id bigint PRIMARY KEY); CREATE TABLE children (PRIMARY KEY (id)) INHERITS (parents);
    CREATE TABLE bounds_timestamptz (bound timestamptz); CREATE TABLE bounds_timestamp (bound timestamp);
    CREATE TABLE bounds_date (bound date); CREATE TABLE bounds_numeric (bound numeric);
    ANALYZE;
    ALTER DATABASE postgres SET enable_seqscan = off;
    ALTER DATABASE postgres SET plan_cache_mode = force_generic_plan;
    ALTER DATABASE postgres SET jit = off";

/// Whether a plan has a condition on `id` with an operator that only a range has here.
fn has_range(client: &mut Client, statement: &str, of_type: &str) -> Result<bool> {
    let statement = if statement.contains("$1") {
        client.batch_execute(&format!("PREPARE p ({of_type}) AS {statement}"))?;
        "EXECUTE p (NULL)"
    } else {
        statement
    };
    let plan = answer(client, &format!("EXPLAIN (COSTS off) {statement}"))?
        .map_err(|code| anyhow::anyhow!("{statement}: {code}"))?;
    client.batch_execute("DEALLOCATE ALL")?;
    Ok(["id > ", "id >= ", "id <= "]
        .iter()
        .any(|it| plan.contains(it)))
}

/// The grid of docs/reference.md: which conditions get a range. A golden file would have
/// thousands of plans.
#[test]
fn the_reference_has_the_grid_of_conditions() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    cluster.connect()?.batch_execute(GRID_TABLES)?;
    let mut client = cluster.connect()?;
    let mut of_forms = vec![[(0, 0); BOUNDS.len()]; FORMS.len()];
    let mut of_places = vec![(0, 0); PLACES.len()];
    for (place, (_, statement, time)) in PLACES.iter().enumerate() {
        for (form, (_, condition, of_type)) in FORMS.iter().enumerate() {
            for (bound, (_, written)) in BOUNDS.iter().enumerate() {
                for operator in ["<", "<=", "=", ">=", ">"] {
                    if !condition.contains("{o}") && operator != "=" {
                        continue;
                    }
                    let constant = if *of_type == "numeric" {
                        "1795215600::numeric".to_owned()
                    } else {
                        format!("'2026-11-20'::{of_type}")
                    };
                    let written = match (*written, *of_type) {
                        ("(now() - interval '1 day')", "numeric") => {
                            "extract(epoch FROM now())".to_owned()
                        }
                        ("(now() - interval '1 day')", _) => format!("{written}::{of_type}"),
                        _ => written.replace("{v}", &constant).replace("{type}", of_type),
                    };
                    let condition = condition
                        .replace("{t}", time)
                        .replace("{o}", operator)
                        .replace("{b}", &written)
                        .replace(
                            "OR id =",
                            if *time == "created_at" {
                                "OR dated.id ="
                            } else {
                                "OR id ="
                            },
                        );
                    let condition = match *statement {
                        it if it.contains("visits.id") => {
                            condition.replace("OR id", "OR visits.id")
                        }
                        it if !it.contains("JOIN") => condition.replace("dated.id", "id"),
                        _ => condition,
                    };
                    let statement = statement.replace("{c}", &condition);
                    if tier::is_without_preload() {
                        // The first statement of a session, which loads the library.
                        client = cluster.connect()?;
                    }
                    let found = usize::from(has_range(&mut client, &statement, of_type)?);
                    of_places[place].0 += found;
                    of_places[place].1 += 1;
                    if place == 0 {
                        of_forms[form][bound].0 += found;
                        of_forms[form][bound].1 += 1;
                    }
                }
            }
        }
    }
    let cell = |(found, of): (usize, usize)| format!("{found} of {of}");
    let mut grid = format!("{:52}", "condition on a table, operators < <= = >= >");
    for (bound, _) in BOUNDS {
        grid += &format!("{bound:>12}");
    }
    for ((form, ..), cells) in FORMS.iter().zip(&of_forms) {
        grid += &format!("\n{:52}", form.replace("{t}", "t").replace("{o}", "op"));
        for it in cells {
            grid += &format!("{:>12}", cell(*it));
        }
    }
    grid += &format!("\n\n{:52}{:>12}", "all of these, in", "");
    for ((place, ..), it) in PLACES.iter().zip(&of_places) {
        grid += &format!("\n{place:52}{:>12}", cell(*it));
    }
    let grid = grid
        .lines()
        .map(str::trim_end)
        .collect::<Vec<_>>()
        .join("\n");
    println!("{grid}");
    document::require("docs/reference.md", &grid)
}
