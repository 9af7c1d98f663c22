//! Tests that run inside a server: each function, each SQLSTATE, each marking.
//! What a client sees over a connection is in `pgrx-tests/`.
#![allow(missing_docs)]

use std::collections::BTreeSet;

use pgrx::prelude::*;

/// Runs a statement and answers how it ended: SQLSTATE, message, detail, hint.
fn outcome(statement: &str) -> [String; 4] {
    Spi::run(
        "CREATE OR REPLACE FUNCTION pg_temp.outcome(statement text) RETURNS text[]
         LANGUAGE plpgsql AS $$
         DECLARE state text; message text; detail text; hint text;
         BEGIN
             EXECUTE statement;
             RETURN ARRAY['00000', '', '', ''];
         EXCEPTION WHEN OTHERS THEN
             GET STACKED DIAGNOSTICS state = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
                 detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
             RETURN ARRAY[state, message, detail, hint];
         END $$",
    )
    .expect("the helper is valid");
    let parts: Vec<String> =
        Spi::get_one_with_args("SELECT pg_temp.outcome($1)", &[statement.into()])
            .expect("the helper runs")
            .expect("the helper answers");
    parts.try_into().expect("four parts")
}

fn one<T: FromDatum + IntoDatum>(query: &str) -> T {
    Spi::get_one(query)
        .unwrap_or_else(|error| panic!("{query}: {error}"))
        .unwrap_or_else(|| panic!("{query}: NULL"))
}

fn texts(query: &str) -> Vec<String> {
    one(&format!("SELECT ARRAY({query})"))
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn the_extension_owns_what_the_contract_lists_and_nothing_else() {
        // The tests themselves are members of the extension here; so are, from
        // PostgreSQL 17 on, the row types of its views.
        let objects = texts(
            "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
             WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass
               AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
               AND pg_describe_object(classid, objid, 0) !~ 'tests'
             ORDER BY 1",
        );
        let expected = [
            "function snowflake_accept_clock(timestamp with time zone)",
            "function snowflake_currval()",
            "function snowflake_decode(bigint)",
            "function snowflake_decode(bigint,text)",
            "function snowflake_get_stat_slots()",
            "function snowflake_get_status()",
            "function snowflake_nextval()",
            "function snowflake_nextvals(integer)",
            "function snowflake_start_after(bigint)",
            "function snowflake_stat_reset()",
            "sequence snowflake_mark",
            "view snowflake_stat_slots",
            "view snowflake_status",
        ];
        assert_eq!(objects, expected);
    }

    #[pg_test]
    fn functions_are_marked_as_the_contract_says() {
        let marks = texts(
            "SELECT format('%s %s %s %s', oid::regprocedure, provolatile, proparallel, proisstrict)
             FROM pg_proc WHERE proname ~ '^snowflake_' ORDER BY 1",
        );
        let expected = [
            "snowflake_accept_clock(timestamp with time zone) v s t",
            "snowflake_currval() v r t",
            "snowflake_decode(bigint) s s t",
            "snowflake_decode(bigint,text) i s t",
            "snowflake_get_stat_slots() v r t",
            "snowflake_get_status() v r t",
            "snowflake_nextval() v s t",
            "snowflake_nextvals(integer) v s t",
            "snowflake_start_after(bigint) v s t",
            "snowflake_stat_reset() v s t",
        ];
        assert_eq!(marks, expected);
    }

    #[pg_test]
    fn everything_a_person_meets_has_a_description() {
        let bare = texts(
            "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
             WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass
               AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
               AND pg_describe_object(classid, objid, 0) !~ 'tests'
               AND coalesce(obj_description(objid, classid::regclass::name), '') = ''",
        );
        assert_eq!(bare, Vec::<String>::new());
        let bare_columns = texts(
            "SELECT format('%s.%s', attrelid::regclass, attname) FROM pg_attribute
             WHERE attrelid IN ('snowflake_status'::regclass, 'snowflake_stat_slots'::regclass)
               AND attnum > 0 AND coalesce(col_description(attrelid, attnum), '') = ''",
        );
        assert_eq!(bare_columns, Vec::<String>::new());
        let settings = texts(
            "SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%'
               AND short_desc <> '' AND extra_desc <> '' ORDER BY 1",
        );
        let expected = [
            "layout",
            "lease",
            "max_borrow",
            "max_clock_step",
            "max_wait",
            "node_id",
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|it| format!("snowflake.{it}"))
            .collect();
        let settings: Vec<_> = settings
            .into_iter()
            .filter(|it| it != "snowflake.unprotected")
            .collect();
        assert_eq!(settings, expected);
    }

    #[pg_test]
    fn settings_have_the_contexts_and_defaults_of_the_contract() {
        let settings = texts(
            "SELECT concat_ws(' ', name, context, boot_val, unit) FROM pg_settings
             WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected' ORDER BY 1",
        );
        let expected = [
            "snowflake.layout postmaster default",
            "snowflake.lease sighup 2000 ms",
            "snowflake.max_borrow sighup 1000 ms",
            "snowflake.max_clock_step sighup 86400000 ms",
            "snowflake.max_wait user 5000 ms",
            "snowflake.node_id postmaster -1",
        ];
        assert_eq!(settings, expected);
    }

    #[pg_test]
    fn nextval_ascends_and_currval_follows() {
        let mut last = 0;
        for _ in 0..10_000 {
            let id: i64 = one("SELECT snowflake_nextval()");
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        assert_eq!(one::<i64>("SELECT snowflake_currval()"), last);
    }

    #[pg_test]
    fn nextvals_makes_as_many_as_asked_ascending() {
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
    }

    #[pg_test]
    fn currval_is_the_last_id_handed_out_not_the_last_reserved() {
        let last: i64 =
            one("SELECT max(id) FROM (SELECT snowflake_nextvals(1000) AS id LIMIT 3) AS t");
        assert_eq!(one::<i64>("SELECT snowflake_currval()"), last);
    }

    #[pg_test]
    fn a_negative_count_is_refused() {
        let [state, message, _, hint] = outcome("SELECT * FROM snowflake_nextvals(-1)");
        assert_eq!(state, "22023");
        assert_eq!(message, "count must not be negative, but is -1");
        assert_eq!(hint, "Ask for 0 or more IDs.");
    }

    #[pg_test]
    fn an_id_tells_this_backend_and_now() {
        let told: bool = one(
            "SELECT d.node_id = current_setting('snowflake.node_id')::int
                AND d.backend_id = pg_backend_pid() % 16
                AND abs(extract(epoch FROM d.created_at - clock_timestamp())) < 10
             FROM snowflake_decode(snowflake_nextval()) AS d",
        );
        assert!(told);
    }

    #[pg_test]
    fn the_mark_is_above_every_id() {
        let below: bool = one(
            "SELECT bool_and(id < last_value) FROM snowflake_nextvals(100000) AS id, snowflake_mark",
        );
        assert!(below);
    }

    #[pg_test]
    fn decode_reads_ids_of_other_makers() {
        for (id, layout, expected) in [
            (
                1_541_815_603_606_036_480,
                "twitter",
                "2022-06-28 16:07:40.105+00 11 26 0",
            ),
            (
                175_928_847_299_117_063,
                "discord",
                "2016-04-30 11:18:25.796+00 1 0 7",
            ),
            (
                2_384_288_897_814_875_714,
                "instagram",
                "2020-08-26 13:43:27.313+00 2675 0 578",
            ),
            (
                1_426_981_498_778_550_272,
                "twitter",
                "2021-08-15 18:57:56+00 0 0 0",
            ),
            (
                i64::MAX,
                "clickhouse",
                "2039-09-07 15:47:35.551+00 1023 0 4095",
            ),
        ] {
            let decoded: String = one(&format!(
                "SELECT concat_ws(' ', created_at AT TIME ZONE 'UTC' || '+00', node_id,
                                  backend_id, sequence)
                 FROM snowflake_decode({id}, '{layout}')"
            ));
            assert_eq!(decoded, expected, "{id} by {layout}");
        }
    }

    #[pg_test]
    fn decode_is_null_for_null_and_one_row() {
        assert!(one::<bool>("SELECT snowflake_decode(NULL) IS NULL"));
        assert!(one::<bool>("SELECT snowflake_decode(1, NULL) IS NULL"));
        assert_eq!(one::<i64>("SELECT count(*) FROM snowflake_decode(1)"), 1);
    }

    #[pg_test]
    fn decode_with_a_layout_can_be_indexed() {
        Spi::run(
            "CREATE TEMP TABLE t (id bigint DEFAULT snowflake_nextval());
             INSERT INTO t SELECT FROM generate_series(1, 100);
             CREATE INDEX ON t (((snowflake_decode(id, 'default')).node_id));",
        )
        .expect("an immutable function in an index");
    }

    #[pg_test]
    fn ids_that_are_none_are_refused() {
        let [state, message, detail, _] = outcome("SELECT snowflake_decode(-1)");
        assert_eq!(state, "22003");
        assert_eq!(message, "-1 is not a snowflake ID");
        assert_eq!(detail, "Snowflake IDs are never negative.");

        let [state, message, detail, _] =
            outcome("SELECT snowflake_decode(9223372036854775807, 'js53')");
        assert_eq!(state, "22003");
        assert_eq!(
            message,
            "9223372036854775807 is out of range for the layout"
        );
        assert_eq!(detail, "IDs of this layout have 53 bits.");

        let [state, message, _, _] = outcome(
            "SELECT snowflake_decode(9223372036854775807, 'timestamp:62 sequence:1 tick:1s')",
        );
        assert_eq!(state, "22003");
        assert_eq!(
            message,
            "the time of 9223372036854775807 is out of range for timestamp with time zone"
        );
    }

    #[pg_test]
    fn wrong_layouts_are_refused_with_the_reason() {
        let mut details = BTreeSet::new();
        for layout in [
            "timestamp:37 node:20 sequence:16",
            "node:10 sequence:12",
            "timestamp:41 node:5 node:5 sequence:12",
            "timestamp:41 worker:10 sequence:12",
            "timestamp:41 sequence:12 tick:0ms",
            "timestamp:41 sequence:12 epoch:yesterday",
            "timestamp:41",
            "snowflake",
            "",
        ] {
            let [state, message, detail, hint] =
                outcome(&format!("SELECT snowflake_decode(1, '{layout}')"));
            assert_eq!(state, "22023", "{layout}");
            assert_eq!(message, format!("invalid snowflake layout: \"{layout}\""));
            assert!(
                hint.contains("timestamp:41 node:6 backend:4 sequence:12"),
                "{hint}"
            );
            assert!(details.insert(detail.clone()), "{layout}: {detail} twice");
        }
        assert!(
            details.contains("the fields take 73 bits; an ID has 63"),
            "{details:?}"
        );
    }

    #[pg_test]
    fn shared_memory_stays_small() {
        let size: i64 = one(
            "SELECT sum(allocated_size)::bigint FROM pg_shmem_allocations
             WHERE name = 'snowflake'",
        );
        assert!(size <= 64 * 1024, "{size} bytes");
    }

    #[pg_test]
    fn the_public_may_read_the_mark_and_not_move_it() {
        let allowed: String = one(
            "SELECT concat_ws(' ', has_sequence_privilege('pg_monitor', oid, 'SELECT'),
                              has_sequence_privilege('pg_monitor', oid, 'USAGE'),
                              has_sequence_privilege('pg_monitor', oid, 'UPDATE'))
             FROM pg_class WHERE relname = 'snowflake_mark'",
        );
        assert_eq!(allowed, "t f f");
    }

    #[pg_test]
    fn status_tells_how_it_goes() {
        Spi::run("SELECT count(snowflake_nextval()) FROM generate_series(1, 1000)")
            .expect("makes IDs");
        let told: String = one(
            "SELECT concat_ws(' ', preloaded, node_id, ids >= 1000, waits >= 0,
                              abs(extract(epoch FROM last_id_at - clock_timestamp())) < 10,
                              reserved_until > last_id_at, clock_behind < interval '10 s',
                              expires_at)
             FROM snowflake_status",
        );
        assert!(told.starts_with("t 5 t t t t t 2094-09-"), "{told}");
    }

    #[pg_test]
    fn each_slot_tells_what_happened_in_it() {
        Spi::run("SELECT snowflake_stat_reset()").expect("a superuser may");
        Spi::run("SELECT count(snowflake_nextval()) FROM generate_series(1, 1000)")
            .expect("makes IDs");
        let rows: i64 = one("SELECT count(*) FROM snowflake_stat_slots");
        assert_eq!(rows, 16);
        let mine: String = one(
            "SELECT concat_ws(' ', ids >= 1000, pg_backend_pid() = ANY (pids), last_id_at IS NOT NULL)
             FROM snowflake_stat_slots WHERE backend_id = pg_backend_pid() % 16",
        );
        assert_eq!(mine, "t t t");
    }

    #[pg_test]
    fn start_after_raises_and_never_lowers() {
        // Some seconds, not more: the other tests' IDs begin there as well.
        let start: i64 = one("SELECT snowflake_nextval() + (3000::bigint << 22)");
        Spi::run(&format!("SELECT snowflake_start_after({start})")).expect("a superuser may");
        let after: i64 = one("SELECT snowflake_nextval()");
        assert!(after > start, "{after} after {start}");
        Spi::run("SELECT snowflake_start_after(1)").expect("lowers nothing");
        let later: i64 = one("SELECT snowflake_nextval()");
        assert!(later > after, "{later} after {after}");

        let [state, message, detail, hint] =
            outcome("SELECT snowflake_start_after(9000000000000000000)");
        assert_eq!(state, "22023");
        assert!(
            message.ends_with("is too far ahead of the clock to start after"),
            "{message}"
        );
        assert!(detail.starts_with("IDs would start at 2"), "{detail}");
        assert_eq!(hint, "The limit is snowflake.max_clock_step.");
        assert_eq!(outcome("SELECT snowflake_start_after(-1)")[0], "22003");
    }

    #[pg_test]
    fn accept_clock_wants_to_know_the_time() {
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
            assert_eq!(message, "the clock does not say what was expected");
        }
    }

    #[pg_test]
    fn what_only_an_administrator_may_do_is_refused_to_others() {
        Spi::run(
            "CREATE ROLE somebody; GRANT EXECUTE ON FUNCTION snowflake_stat_reset() TO somebody",
        )
        .expect("a superuser may");
        for (call, state) in [
            ("snowflake_start_after(1)", "42501"),
            ("snowflake_accept_clock(now())", "42501"),
            ("snowflake_stat_reset()", "00000"),
            ("snowflake_nextval()", "00000"),
        ] {
            let [got, ..] = outcome(&format!(
                "DO $do$ BEGIN SET LOCAL ROLE somebody; PERFORM {call}; END $do$"
            ));
            Spi::run("RESET ROLE").expect("back");
            assert_eq!(got, state, "{call}");
        }
        Spi::run(
            "GRANT EXECUTE ON FUNCTION snowflake_start_after(bigint),
                 snowflake_accept_clock(timestamptz) TO somebody",
        )
        .expect("a superuser may");
        for call in ["snowflake_start_after(1)", "snowflake_accept_clock(now())"] {
            let [got, message, _, hint] = outcome(&format!(
                "DO $do$ BEGIN SET LOCAL ROLE somebody; PERFORM {call}; END $do$"
            ));
            assert_eq!(got, "42501", "{call}");
            assert!(
                message.starts_with("permission denied for function"),
                "{message}"
            );
            assert_eq!(hint, "Only a superuser may call it.");
        }
    }
}
