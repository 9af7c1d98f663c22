//! Reading IDs.

use anyhow::Result;

use std::collections::BTreeSet;

use super::{one, outcome, run, session, texts};

#[test]
fn an_id_has_the_numbers_of_this_session_and_the_time_of_now() -> Result<()> {
    session()?;
    let right: bool = one(
        "SELECT d.node_id = current_setting('snowflake.node_id')::int
            AND d.backend_id = pg_backend_pid() % 16
            AND abs(extract(epoch FROM d.created_at - clock_timestamp())) < 10
         FROM snowflake_decode(snowflake_nextval()) AS d",
    );
    assert!(right);
    Ok(())
}

#[test]
fn decode_reads_ids_of_other_generators() -> Result<()> {
    session()?;
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
    Ok(())
}

#[test]
fn decode_is_null_for_null_and_one_row() -> Result<()> {
    session()?;
    assert!(one::<bool>("SELECT snowflake_decode(NULL) IS NULL"));
    assert!(one::<bool>("SELECT snowflake_decode(1, NULL) IS NULL"));
    assert_eq!(one::<i64>("SELECT count(*) FROM snowflake_decode(1)"), 1);
    Ok(())
}

#[test]
fn decode_with_a_layout_can_be_indexed() -> Result<()> {
    session()?;
    run(
        "CREATE TEMP TABLE t (id bigint DEFAULT snowflake_nextval());
         INSERT INTO t SELECT FROM generate_series(1, 100);
         CREATE INDEX ON t (((snowflake_decode(id, 'default')).node_id));",
    );
    Ok(())
}

#[test]
fn numbers_that_are_no_ids_are_refused() -> Result<()> {
    session()?;
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

    let [state, message, _, _] =
        outcome("SELECT snowflake_decode(9223372036854775807, 'timestamp:62 sequence:1 tick:1s')");
    assert_eq!(state, "22023");
    assert!(message.starts_with("invalid snowflake layout"), "{message}");

    for function in [
        "decode",
        "timestamp",
        "node_id",
        "backend_id",
        "sequence",
        "explain",
    ] {
        for id in [-1, i64::MIN, 1 << 53, i64::MAX] {
            let [state, ..] = outcome(&format!("SELECT snowflake_{function}({id}, 'js53')"));
            assert_eq!(state, "22003", "{function}({id})");
        }
    }
    Ok(())
}

#[test]
fn wrong_layouts_are_refused_with_the_reason() -> Result<()> {
    session()?;
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
        assert!(details.insert(detail.clone()), "{layout}: {detail} again");
    }
    assert!(
        details.contains("The fields take 73 bits; an ID has 63."),
        "{details:?}"
    );
    Ok(())
}

#[test]
fn accessors_read_what_decode_reads() -> Result<()> {
    session()?;
    let differing: i64 = one("SELECT count(*)
         FROM snowflake_nextvals(10000) AS id, snowflake_decode(id) AS d
         WHERE (d.created_at, d.node_id, d.backend_id, d.sequence) IS DISTINCT FROM
                   (snowflake_timestamp(id), snowflake_node_id(id),
                    snowflake_backend_id(id), snowflake_sequence(id))
            OR (d.created_at, d.node_id, d.backend_id, d.sequence) IS DISTINCT FROM
                   (snowflake_timestamp(id, 'default'), snowflake_node_id(id, 'default'),
                    snowflake_backend_id(id, 'default'), snowflake_sequence(id, 'default'))
            OR snowflake_compose(d.created_at, d.node_id, d.backend_id, d.sequence) <> id
            OR snowflake_compose(d.created_at, d.node_id, d.backend_id, d.sequence,
                                 'default') <> id");
    assert_eq!(differing, 0);
    Ok(())
}

/// The layout is kept with the call's place in the query: not longer than
/// it is the one that was asked for.
#[test]
fn each_row_is_read_by_its_own_layout() -> Result<()> {
    session()?;
    let read = texts(
        "SELECT concat_ws(' ', name, snowflake_node_id(1541815603606036480, layout),
                          snowflake_node_id(1541815603606036480, 'twitter'))
         FROM (SELECT * FROM snowflake_layouts ORDER BY name) AS l
         WHERE name IN ('discord', 'instagram', 'tsid', 'twitter')",
    );
    assert_eq!(
        read,
        [
            "discord 11 11",
            "instagram 1512 11",
            "tsid 378 11",
            "twitter 11 11"
        ]
    );
    run(
        "CREATE FUNCTION pg_temp.nodes() RETURNS int[] LANGUAGE plpgsql AS $$
         DECLARE name text; found int; nodes int[] := '{}';
         BEGIN
             FOREACH name IN ARRAY '{twitter,instagram,twitter,tsid}'::text[] LOOP
                 found := snowflake_node_id(1541815603606036480, name);
                 nodes := nodes || found;
             END LOOP;
             RETURN nodes;
         END $$",
    );
    let in_a_loop: Vec<i32> = one("SELECT pg_temp.nodes()");
    assert_eq!(in_a_loop, [11, 1512, 11, 378]);
    Ok(())
}

#[test]
fn compose_refuses_what_does_not_fit() -> Result<()> {
    session()?;
    for (arguments, message, detail) in [
        (
            "now(), 64, 0, 0",
            "node 64 is out of range for the layout",
            "The range is 0 to 63.",
        ),
        (
            "now(), -1, 0, 0",
            "node -1 is out of range for the layout",
            "The range is 0 to 63.",
        ),
        (
            "now(), 0, -2147483648, 0",
            "backend -2147483648 is out of range for the layout",
            "The range is 0 to 15.",
        ),
        (
            "now(), 0, 0, -1",
            "sequence -1 is out of range for the layout",
            "The range is 0 to 4095.",
        ),
        (
            "now(), 2147483647, 0, 0",
            "node 2147483647 is out of range for the layout",
            "The range is 0 to 63.",
        ),
        (
            "now(), 0, 16, 0",
            "backend 16 is out of range for the layout",
            "The range is 0 to 15.",
        ),
        (
            "now(), 0, 0, 4096",
            "sequence 4096 is out of range for the layout",
            "The range is 0 to 4095.",
        ),
        (
            "now(), 1, 0, 0, 'mastodon'",
            "node 1 is out of range for the layout",
            "The range is 0 to 0.",
        ),
        (
            "'2024-12-31 23:59:59.999999+00', 0, 0, 0",
            "2024-12-31T23:59:59.999999Z is out of range for the layout",
            "The layout \"timestamp:41 node:6 backend:4 sequence:12 tick:1ms \
             epoch:2025-01-01T00:00:00Z\" has IDs from 2025-01-01T00:00:00Z to \
             2094-09-07T15:47:35.551Z.",
        ),
        (
            "'infinity', 0, 0, 0, 'js53'",
            "infinity is out of range for the layout",
            "The layout \"timestamp:38 node:5 sequence:10 tick:10ms \
             epoch:2025-01-01T00:00:00Z\" has IDs from 2025-01-01T00:00:00Z to \
             2112-02-09T13:44:29.43Z.",
        ),
    ] {
        let refused = outcome(&format!("SELECT snowflake_compose({arguments})"));
        assert_eq!(refused, ["22003", message, detail, ""], "{arguments}");
    }
    Ok(())
}

#[test]
fn bounds_end_where_the_layout_ends() -> Result<()> {
    session()?;
    for (call, expected) in [
        ("min_id('-infinity')", 0),
        ("min_id('2024-12-31 23:59:59+00')", 0),
        ("min_id('2025-01-01 00:00:00+00')", 0),
        ("min_id('2025-01-01 00:00:00.000001+00')", 1 << 22),
        ("min_id('2025-01-01 00:00:00.001+00')", 1 << 22),
        (
            "min_id('2094-09-07 15:47:35.551+00')",
            ((1 << 41) - 1) << 22,
        ),
        (
            "min_id('1969-07-20 20:17:40+00', 'timestamp:41 sequence:10 epoch:1969-07-20T20:17:39Z')",
            1_024_000,
        ),
        ("max_id('-infinity')", -1),
        (
            "max_id('2094-09-07 15:47:35.550999+00')",
            (((1 << 41) - 1) << 22) - 1,
        ),
        ("max_id('2024-12-31 23:59:59.999999+00')", -1),
        ("max_id('2025-01-01 00:00:00+00')", (1 << 22) - 1),
        ("max_id('2025-01-01 00:00:00.000999+00')", (1 << 22) - 1),
        ("max_id('2500-01-01')", i64::MAX),
        ("max_id('infinity')", i64::MAX),
        ("max_id('infinity', 'js53')", (1 << 53) - 1),
        ("max_id_before('-infinity')", -1),
        ("max_id_before('2025-01-01 00:00:00+00')", -1),
        (
            "max_id_before('2025-01-01 00:00:00.000001+00')",
            (1 << 22) - 1,
        ),
        ("max_id_before('2500-01-01', 'js53')", (1 << 53) - 1),
        ("max_id_before('infinity', 'js53')", i64::MAX),
    ] {
        assert_eq!(
            one::<i64>(&format!("SELECT snowflake_{call}")),
            expected,
            "{call}"
        );
    }
    for call in [
        "min_id('infinity')",
        "min_id('2094-09-07 15:47:35.551001+00')",
        "min_id('9999-01-01', 'default')",
        "min_id('2024-11-20 13:24:16+00', 'uid-generator')",
        "min_id('294276-12-31 23:59:59.999999+00', 'uid-generator')",
        // As `snowflake_min_id` of its lower end.
        "between(0, 'infinity', 'infinity')",
        "between(9223372036854775807, 'infinity', '2025-01-01', 'default')",
        "between(9223372036854775807, '2094-09-07 15:47:35.552+00', '9999-01-01')",
        "between(9223372036854775807, '2094-09-07 15:47:35.552+00', 'infinity')",
    ] {
        let [state, message, detail, _] = outcome(&format!("SELECT snowflake_{call}"));
        assert_eq!(state, "22003", "{call}");
        let end = " is out of range for the layout";
        assert!(message.ends_with(end), "{call}: {message}");
        assert!(detail.contains(" has IDs from "), "{call}: {detail}");
    }
    Ok(())
}

#[test]
fn between_is_half_open_and_null_for_null() -> Result<()> {
    session()?;
    for (id, since, until, expected) in [
        (
            "snowflake_compose('2026-01-01', 0, 0, 0)",
            "'2026-01-01'",
            "'2026-01-02'",
            "t",
        ),
        (
            "snowflake_compose('2026-01-02', 0, 0, 0)",
            "'2026-01-01'",
            "'2026-01-02'",
            "f",
        ),
        (
            "snowflake_compose('2026-01-02', 0, 0, 0) - 1",
            "'2026-01-01'",
            "'2026-01-02'",
            "t",
        ),
        (
            "snowflake_compose('2026-01-01', 0, 0, 0) - 1",
            "'2026-01-01'",
            "'2026-01-02'",
            "f",
        ),
        ("0", "'-infinity'", "'infinity'", "t"),
        ("9223372036854775807", "'-infinity'", "'infinity'", "t"),
        ("9223372036854775807", "'2026-01-01'", "'2500-01-01'", "t"),
        (
            "9223372036854775807",
            "'2094-09-07 15:47:35.551+00'",
            "'9999-01-01'",
            "t",
        ),
        ("0", "'2025-01-01 00:00+00'", "'infinity'", "t"),
        ("0", "'2025-01-01 00:00+00'", "'2025-01-01 00:00+00'", "f"),
        ("0", "'-infinity'", "'2025-01-01 00:00+00'", "f"),
        ("-5", "'2025-01-01'", "'2026-01-01'", "f"),
        ("1", "'2026-01-02'", "'2026-01-01'", "f"),
        ("1", "'-infinity'", "'-infinity'", "f"),
        ("NULL", "'2026-01-01'", "'2026-01-02'", ""),
        ("1", "'-infinity'", "NULL", ""),
    ] {
        for layout in ["", ", 'default'"] {
            let between: String = one(&format!(
                "SELECT coalesce(snowflake_between({id}, {since}, {until}{layout})::text, '')"
            ));
            let expected = match expected {
                "t" => "true",
                "f" => "false",
                other => other,
            };
            assert_eq!(between, expected, "{id} {since} {until}");
        }
    }
    // No ID of the layout, and so of no time that has an end.
    let js53 = "9007199254740992, '2025-01-01', '9999-01-01', 'js53'";
    assert!(!one::<bool>(&format!("SELECT snowflake_between({js53})")));
    Ok(())
}

#[test]
fn layouts_show_their_end_and_their_numbers() -> Result<()> {
    session()?;
    let rows = texts(
        "SELECT concat_ws(' ', name, (expires_at AT TIME ZONE 'UTC')::date, ids_per_second,
                          nodes, backends)
         FROM snowflake_layouts",
    );
    assert_eq!(
        rows,
        [
            "default 2094-09-07 65536000 64 16",
            "twitter 2080-07-10 131072000 32 32",
            "discord 2084-09-06 131072000 32 32",
            "instagram 2046-06-27 1024000 8192 1",
            "sonyflake 2188-11-16 25600 65536 1",
            "uid-generator 2024-11-20 8192 4194304 1",
            "tsid 2089-09-06 4096000 1024 1",
            "mastodon 6429-10-17 65536000 1 1",
            "clickhouse 2039-09-07 4096000 1024 1",
            "pgedge 2092-09-06 4096000 1024 1",
            "ipv4 2033-07-04 2048 16777216 1",
            "game 2093-01-19 4096 1048576 1",
            "js53 2112-02-09 102400 32 1",
        ]
    );
    // A preset's name and its text mean the same.
    let differing: i64 = one("SELECT count(*) FROM snowflake_layouts
         WHERE snowflake_max_id('infinity', name) <> snowflake_max_id('infinity', layout)
            OR snowflake_timestamp(0, name) <> snowflake_timestamp(0, layout)
            OR split_part(snowflake_explain(0, name), E'\\nlayout ', 2) <> layout");
    assert_eq!(differing, 0);
    Ok(())
}

#[test]
fn explain_draws_the_fields() -> Result<()> {
    session()?;
    run("SET TimeZone = 'Europe/Berlin'");
    let drawn: String = one("SELECT snowflake_explain(1541815603606036480, 'twitter')");
    assert_eq!(
        drawn,
        "timestamp:41                               node:5  backend:5  sequence:12\n\
         00101010110010110100001000111110110001000  01011   11010      000000000000\n\
         367597485448                               11      26         0\n\
         2022-06-28 18:07:40.105+02\n\
         layout timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z"
    );
    let drawn: String = one("SELECT snowflake_explain(123456789012345, 'js53')");
    assert!(drawn.starts_with("unused:10   timestamp:38"), "{drawn}");
    assert!(drawn.contains("\n0000000000  0000001110"), "{drawn}");
    assert_eq!(outcome("SELECT snowflake_explain(-1)")[0], "22003");
    assert_eq!(
        outcome("SELECT snowflake_explain(9223372036854775807, 'js53')")[0],
        "22003"
    );
    Ok(())
}

#[test]
fn text_is_refused_with_the_reason() -> Result<()> {
    session()?;
    for (call, expected) in [
        (
            "from_text('06XHDF0910U00')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"06XHDF0910U00\"",
                "Character \"U\" at position 11 is not a base32 digit.",
                "",
            ],
        ),
        (
            "from_text('06XHDF', 'base32')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"06XHDF\"",
                "It has 6 characters; a base32 ID has 13.",
                "",
            ],
        ),
        (
            "from_text('249431905924104192')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"249431905924104192\"",
                "It has 18 characters; a base32 ID has 13.",
                "If the text is a decimal number, use '249431905924104192'::bigint.",
            ],
        ),
        (
            // U is no digit of base32.
            "from_text('0IQOqa0An0U')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"0IQOqa0An0U\"",
                "Character \"U\" at position 11 is not a base32 digit.",
                "A text of 11 characters is base62: pass 'base62'.",
            ],
        ),
        (
            "from_text('0IP86iEVn-A', 'base62')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"0IP86iEVn-A\"",
                "Character \"-\" at position 10 is not a base62 digit.",
                "",
            ],
        ),
        (
            "from_text(E'000000000000\\n')",
            [
                "22P02",
                "invalid input syntax for snowflake ID: \"000000000000\n\"",
                "Character \"\\n\" at position 13 is not a base32 digit.",
                "",
            ],
        ),
        (
            "from_text('AzL8n0Y58m8', 'base62')",
            [
                "22003",
                "\"AzL8n0Y58m8\" is out of range for a snowflake ID",
                "The largest ID is \"AzL8n0Y58m7\".",
                "",
            ],
        ),
        (
            "from_text('8000000000000')",
            [
                "22003",
                "\"8000000000000\" is out of range for a snowflake ID",
                "The largest ID is \"7ZZZZZZZZZZZZ\".",
                "",
            ],
        ),
        (
            "to_text(1, 'base64')",
            [
                "22023",
                "unrecognized encoding: \"base64\"",
                "",
                "Use \"base32\" or \"base62\".",
            ],
        ),
        (
            "to_text(-1)",
            [
                "22003",
                "-1 is not a snowflake ID",
                "Snowflake IDs are never negative.",
                "",
            ],
        ),
    ] {
        assert_eq!(
            outcome(&format!("SELECT snowflake_{call}")),
            expected,
            "{call}"
        );
    }
    for call in ["from_text('0000000000000', 'Base32')", "to_text(1, '')"] {
        assert_eq!(outcome(&format!("SELECT snowflake_{call}"))[0], "22023");
    }
    assert_eq!(
        one::<i64>("SELECT snowflake_from_text('o6xhdf09iog0O')"),
        one::<i64>("SELECT snowflake_from_text('06XHDF0910G00')")
    );
    Ok(())
}
