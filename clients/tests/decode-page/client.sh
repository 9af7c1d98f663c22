# docs/decode.html in a headless Chromium.
# shellcheck shell=bash
# shellcheck source=clients/tests/node.sh
. ../node.sh

install() {
    node_env
    need_packages chromium
}

run() {
    node_env
    printf 'Chromium %s\n' "$(chromium --version 2>/dev/null | cut -d' ' -f2)" >"$OUT/version"
    # shellcheck source=clients/tests/decoder.sh
    . ../decoder.sh
    decoder_inputs >"$OUT/inputs"
    ranges >"$OUT/range-inputs"
    node page.mjs "$OUT"
    compare_decoded
    compare_texts
    compare_ranges
}

# ranges: writes lines of a layout and two times, 20 of every preset. The times are within ticks.
ranges() {
    superuser "SELECT name || E'\\t' || (since AT TIME ZONE 'UTC')::text || E'Z\\t' || (until AT TIME ZONE 'UTC')::text || 'Z'
               FROM snowflake_layouts, generate_series(1, 20) AS n,
                    LATERAL (SELECT floor(random() * 0.999 * snowflake_max_id(now(), name))::bigint) AS i (id),
                    LATERAL (SELECT snowflake_timestamp(id, name) + n * interval '1 us') AS s (since),
                    LATERAL (SELECT since + interval '1 us' + random() * interval '1 day') AS u (until)"
}

# compare_texts: what the page shows for an ID that was entered in base32 or base62.
compare_texts() {
    expect '50 of 50' "$({
        printf '%s\n' 'CREATE TEMPORARY TABLE texts (encoding text, id bigint, shown text);' 'COPY texts FROM stdin;'
        cat "$OUT/texts"
        printf '%s\n' '\.' "SELECT count(*) FILTER (WHERE snowflake_to_text(id, encoding) = shown) || ' of ' || count(*) FROM texts"
    } | superuser_script)" 'texts that are those of snowflake_to_text'
}

compare_ranges() {
    expect '260 of 260' "$({
        printf '%s\n' 'CREATE TEMPORARY TABLE ranges (layout text, since timestamptz, until timestamptz, first bigint, below numeric);' \
            'COPY ranges FROM stdin;'
        cat "$OUT/ranges"
        printf '%s\n' '\.' "SELECT count(*) FILTER (WHERE first = snowflake_min_id(since, layout)
                AND below = snowflake_max_id_before(until, layout)::numeric + 1) || ' of ' || count(*) FROM ranges"
    } | superuser_script)" 'ranges that are those of snowflake_min_id and snowflake_max_id_before'
}

superuser_script() { PGUSER=postgres "$BINDIR/psql" -X -q -A -t -v ON_ERROR_STOP=1; }
