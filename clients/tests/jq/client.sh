# JSON that a shell script reads, with the ID as a number and as a text.
# shellcheck shell=bash

install() {
    need_packages jq
}

run() {
    local json lost
    jq --version >"$OUT/version"
    psql -U app <<'SQL'
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders (note) SELECT 'row ' || n FROM generate_series(1, 2000) AS n;
SQL
    # changed JSON: how many rows in it have another ID than in the table.
    changed() {
        jq -r '[.id, .note] | @tsv' <<<"$1" >"$OUT/read"
        {
            printf '%s\n' 'CREATE TEMPORARY TABLE read (id bigint, note text);' 'COPY read FROM stdin;'
            cat "$OUT/read"
            printf '%s\n' '\.' 'SELECT 2000 - count(*) FROM orders JOIN read USING (id, note)'
        } | psql -U app
    }

    json=$(psql -U app -c 'SELECT to_jsonb(o) FROM orders AS o')
    lost=$(changed "$json")
    # jq 1.6 rounds all numbers; 1.7 keeps those that it only copies.
    if [ "$lost" -gt 0 ]; then
        check ok "as numbers, $lost of 2000 IDs are changed"
    else
        check failed 'this jq changes no numbers'
    fi
    json=$(psql -U app -c "SELECT to_jsonb(o) || jsonb_build_object('id', o.id::text) FROM orders AS o")
    lost=$(changed "$json")
    if [ "$lost" = 0 ]; then check ok 'as texts, all IDs are kept'; else check failed "as texts, $lost IDs are changed"; fi
    echo 2000 >"$OUT/checked"
}
