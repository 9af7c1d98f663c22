//! Which conditions on the time of an ID the planner makes a range of: the grid of
//! `time_ranges.txt`. That ranges return the same rows is in `fuzz`; plans have golden files
//! (`ranges`, `time_ranges`).

use postgres::SimpleQueryMessage;

use crate::support::*;

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

/// The grid of `time_ranges.txt`: which conditions get a range. A golden file would have
/// thousands of plans.
#[test]
fn the_grid_of_conditions_has_its_ranges() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    cluster.run(GRID_TABLES)?;
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
    document::require("pgrx-tests/tests/servers/reading/time_ranges.txt", &grid)
}
