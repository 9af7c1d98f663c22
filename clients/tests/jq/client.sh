# JSON that a shell script reads, with the ID as a number and as a text.
# shellcheck shell=bash

install() {
    need_packages jq
}

run() {
    local json lost others
    jq --version >"$OUT/version"
    psql -U app <<'SQL'
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders (note) SELECT 'row ' || n FROM generate_series(1, 2000) AS n;
SQL
    # changed JSON: how many rows in it have another ID than in the table, and how
    # many have that of another row.
    changed() {
        {
            printf '%s\n' 'CREATE TEMPORARY TABLE read (id bigint, note text);' 'COPY read FROM stdin;'
            jq -r '[.id, .note] | @tsv' <<<"$1"
            printf '%s\n' '\.' "
                SELECT count(*) FILTER (WHERE read.id IS DISTINCT FROM orders.id), count(*) FILTER (WHERE read.id <> orders.id AND other.id IS NOT NULL)
                FROM orders LEFT JOIN read USING (note) LEFT JOIN orders AS other ON other.id = read.id"
        } | psql -U app -F ' '
    }

    json=$(psql -U app -c 'SELECT to_jsonb(o) FROM orders AS o')
    read -r lost others < <(changed "$json")
    # jq 1.6 rounds all numbers; 1.7 keeps those that it only copies.
    if [ "$lost" -gt 0 ] && [ "$others" -gt 0 ]; then
        check ok "as numbers, $lost of 2000 IDs are changed, $others of them into the ID of another row"
    else
        check failed 'this jq changes no numbers'
    fi
    json=$(psql -U app -c "SELECT to_jsonb(o) || jsonb_build_object('id', o.id::text) FROM orders AS o")
    read -r lost others < <(changed "$json")
    if [ "$lost" = 0 ]; then check ok 'as texts, all IDs are kept'; else check failed "as texts, $lost IDs are changed"; fi
    echo 2000 >"$OUT/checked"
}
