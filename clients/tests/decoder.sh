# For client.sh of the decoders: IDs to read, and what the server reads out of
# them; to be sourced, not run.
# shellcheck shell=bash

# The published IDs, with their fields.
vectors=../../../crates/snowflake-id/tests/data/vectors.tsv

# decoder_inputs: writes lines of a layout and an ID. 2,000 IDs of this server, of
# several sessions, 100 of each preset up to now, and the published ones.
decoder_inputs() {
    local session
    superuser 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)'
    for session in 1 2 3 4; do
        superuser "DO \$\$ BEGIN FOR n IN 1..250 LOOP INSERT INTO orders (note) VALUES ('$session'); END LOOP; END \$\$"
    done
    superuser "INSERT INTO orders (note) SELECT 'bulk' FROM generate_series(1, 1000)"
    superuser "SELECT 'default' || E'\\t' || id FROM orders"
    superuser "SELECT name || E'\\t' || floor(random() * 0.999 * snowflake_max_id(now(), name))::bigint
               FROM snowflake_layouts, generate_series(1, 100) AS n"
    awk -F '\t' 'NR > 1 { print $2 "\t" $1 }' "$vectors"
}

# compare_decoded: compares $OUT/decoded with what the server reads, to the
# millisecond, and with what was published.
compare_decoded() {
    local counts
    counts=$({
        printf '%s\n' 'CREATE TEMPORARY TABLE decoded (layout text, id bigint, created_at timestamptz, node int, backend int, sequence int);' \
            'COPY decoded FROM stdin;'
        cat "$OUT/decoded"
        printf '%s\n' '\.' 'CREATE TEMPORARY TABLE vectors (id bigint, layout text, created_at timestamptz, node int, sequence int, source text);' \
            'COPY vectors FROM stdin;'
        tail -n +2 "$vectors"
        printf '%s\n' '\.' "SELECT (SELECT count(*) FILTER (WHERE (c.created_at, c.node, c.backend, c.sequence) = (d.created_at, d.node_id, d.backend_id, d.sequence))
                || ' of ' || count(*) FROM decoded AS c, snowflake_decode(c.id, c.layout) AS d)
            || ', published: ' || (SELECT count(*) FROM vectors JOIN decoded USING (id, layout, created_at, node, sequence)) || ' of ' || (SELECT count(*) FROM vectors)"
    } | PGUSER=postgres "$BINDIR/psql" -X -q -A -t -v ON_ERROR_STOP=1)
    wc -l <"$OUT/decoded" >"$OUT/checked"
    expect '3325 of 3325, published: 25 of 25' "$counts" 'IDs that are read as snowflake_decode reads them'
}
