//! Generating IDs, and monitoring it.

use anyhow::Result;

use super::{one, outcome, run, session};

#[test]
fn nextval_ascends_and_currval_follows() -> Result<()> {
    session()?;
    let mut last = 0;
    for _ in 0..10_000 {
        let id: i64 = one("SELECT snowflake_nextval()");
        assert!(id > last, "{id} after {last}");
        last = id;
    }
    assert_eq!(one::<i64>("SELECT snowflake_currval()"), last);
    Ok(())
}

#[test]
fn id_is_the_same_function_as_nextval() -> Result<()> {
    session()?;
    let ascending: String = one(
        "SELECT concat_ws(' ', bool_and(id > before), count(*))
         FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
               FROM (SELECT n, CASE n % 2 WHEN 0 THEN snowflake_id() ELSE snowflake_nextval() END AS id
                     FROM generate_series(1, 10001) AS n) AS made) AS compared
         WHERE before IS NOT NULL",
    );
    assert_eq!(ascending, "t 10000");
    let last: i64 = one("SELECT snowflake_id()");
    assert_eq!(one::<i64>("SELECT snowflake_currval()"), last);
    assert_eq!(
        one::<i64>(
            "SELECT count(DISTINCT (provolatile, proparallel, proisstrict, prosupport, prorettype, proacl::text, procost))
             FROM pg_proc WHERE proname IN ('snowflake_id', 'snowflake_nextval')"
        ),
        1
    );
    Ok(())
}

#[test]
fn nextvals_returns_the_requested_number_of_ids_in_ascending_order() -> Result<()> {
    session()?;
    for count in [0, 1, 2, 4_095, 4_096, 4_097, 100_000] {
        let ordered: String = one(&format!(
            "SELECT concat_ws(' ', count(*), count(DISTINCT id),
                              coalesce(bool_and(id > before OR before IS NULL), true))
             FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
                   FROM snowflake_nextvals({count}) WITH ORDINALITY AS t(id, n)) AS t"
        ));
        assert_eq!(ordered, format!("{count} {count} t"));
    }
    assert_eq!(
        one::<i64>("SELECT count(*) FROM snowflake_nextvals(NULL)"),
        0
    );
    Ok(())
}

#[test]
fn currval_is_the_last_id_that_was_returned() -> Result<()> {
    session()?;
    let last: i64 = one("SELECT max(id) FROM (SELECT snowflake_nextvals(1000) AS id LIMIT 3) AS t");
    assert_eq!(one::<i64>("SELECT snowflake_currval()"), last);
    Ok(())
}

#[test]
fn a_negative_count_is_refused() -> Result<()> {
    session()?;
    let [state, message, _, hint] = outcome("SELECT * FROM snowflake_nextvals(-1)");
    assert_eq!(state, "22023");
    assert_eq!(message, "count must not be negative, but is -1");
    assert_eq!(hint, "Request 0 or more IDs.");
    Ok(())
}

#[test]
fn the_mark_is_above_every_id() -> Result<()> {
    session()?;
    let below: bool = one(
        "SELECT bool_and(id < last_value) FROM snowflake_nextvals(100000) AS id, snowflake_internal.mark",
    );
    assert!(below);
    Ok(())
}

#[test]
fn status_shows_the_state_of_the_server() -> Result<()> {
    session()?;
    run("SELECT count(snowflake_nextval()) FROM generate_series(1, 1000)");
    let shown: String = one(
        "SELECT concat_ws(' ', preloaded, node_id, ids >= 1000, waits >= 0,
                          abs(extract(epoch FROM server_last_id_at - clock_timestamp())) < 10,
                          database_reserved_until > server_last_id_at, clock_behind < interval '10 s',
                          expires_at)
         FROM snowflake_status",
    );
    assert!(shown.starts_with("t 5 t t t t t 2094-09-"), "{shown}");
    Ok(())
}

#[test]
fn stat_slots_shows_each_slot() -> Result<()> {
    session()?;
    run("SELECT snowflake_stat_reset()");
    run("SELECT count(snowflake_nextval()) FROM generate_series(1, 1000)");
    let rows: i64 = one("SELECT count(*) FROM snowflake_stat_slots");
    assert_eq!(rows, 16);
    let mine: String = one(
        "SELECT concat_ws(' ', ids >= 3, pg_backend_pid() = ANY (pids), last_id_at IS NOT NULL)
         FROM snowflake_stat_slots WHERE backend_id = pg_backend_pid() % 16",
    );
    assert_eq!(mine, "t t t");
    // From the fourth ID within a tick on they are of slot 0.
    let all: bool = one("SELECT sum(ids) >= 1000 FROM snowflake_stat_slots
         WHERE backend_id IN (0, pg_backend_pid() % 16)");
    assert!(all);
    Ok(())
}

#[test]
fn start_after_raises_and_never_lowers() -> Result<()> {
    session()?;
    // Some seconds, not more: the other tests' IDs begin there as well.
    let start: i64 = one("SELECT snowflake_nextval() + (3000::bigint << 22)");
    run(&format!("SELECT snowflake_start_after({start})"));
    let after: i64 = one("SELECT snowflake_nextval()");
    assert!(after > start, "{after} after {start}");
    run("SELECT snowflake_start_after(1)");
    let later: i64 = one("SELECT snowflake_nextval()");
    assert!(later > after, "{later} after {after}");

    let [state, message, detail, hint] =
        outcome("SELECT snowflake_start_after(9000000000000000000)");
    assert_eq!(state, "22023");
    assert!(
        message.ends_with("is too far ahead of the clock"),
        "{message}"
    );
    assert!(detail.starts_with("IDs would start at 2"), "{detail}");
    assert_eq!(hint, "The limit is snowflake.max_clock_step.");
    assert_eq!(outcome("SELECT snowflake_start_after(-1)")[0], "22003");
    Ok(())
}

#[test]
fn accept_clock_takes_the_time_of_the_clock_only() -> Result<()> {
    session()?;
    assert_eq!(
        outcome("SELECT snowflake_accept_clock(clock_timestamp())")[0],
        "00000"
    );
    for wrong in [
        "clock_timestamp() + interval '2 min'",
        "'2001-01-01'",
        "'infinity'",
        "'-infinity'",
    ] {
        let [state, message, ..] = outcome(&format!("SELECT snowflake_accept_clock({wrong})"));
        assert_eq!(state, "22023", "{wrong}");
        assert_eq!(message, "the clock does not show the expected time");
    }
    Ok(())
}
