# A table of another database, through postgres_fdw.
# shellcheck shell=bash
superuser 'CREATE DATABASE shop'
remote() { PGDATABASE=shop superuser "$@"; }
remote 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)' \
    "INSERT INTO orders SELECT snowflake_compose(now() - interval '1 day' - n * interval '1 second', 1, 0, 0), 'old' FROM generate_series(1, 50000) AS n" \
    "INSERT INTO orders (note) SELECT 'new' FROM generate_series(1, 100)" 'ANALYZE orders'
superuser 'CREATE EXTENSION postgres_fdw' \
    "CREATE SERVER shop FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$PGHOST', port '$PGPORT', dbname 'shop', extensions 'snowflake')" \
    "CREATE USER MAPPING FOR postgres SERVER shop OPTIONS (user 'postgres')" "$(cat foreign.sql)" \
    "CREATE FOREIGN TABLE trapped (id bigint, note text) SERVER shop OPTIONS (table_name 'orders')"
printf 'postgres_fdw %s\n' "$(superuser "SELECT extversion FROM pg_extension WHERE extname = 'postgres_fdw'")" >"$OUT/version"

# fetched CONDITION: how many rows the foreign scan brings, whatever is filtered afterwards.
fetched() {
    superuser "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) SELECT id, note FROM orders WHERE $1" |
        awk '/Foreign Scan/ { match($0, /rows=[0-9]+/); n = substr($0, RSTART + 5, RLENGTH - 5) } /Rows Removed by Filter/ { n += $NF } END { print n }'
}
expect 50100 "$(fetched "snowflake_between(id, now() - interval '1 hour', now())")" 'rows fetched for snowflake_between with now()'
expect 50100 "$(fetched "id >= snowflake_min_id(now() - interval '1 hour')")" 'rows fetched for a condition with now()'
expect 100 "$(fetched "id >= (SELECT snowflake_min_id(now() - interval '1 hour'))")" 'rows fetched for the same in a subquery'
expect 100 "$(superuser "SELECT count(*) FROM orders WHERE id >= (SELECT snowflake_min_id(now() - interval '1 hour'))")" 'rows found in the last hour'

# INSERT.
superuser "INSERT INTO new_orders SELECT 'by its default' FROM generate_series(1, 1000)"
expect 1 "$(superuser "INSERT INTO orders (note) VALUES ('with an ID from here') RETURNING (id > 0)::int")" 'an INSERT with the local default returns its ID'
if error=$(superuser "INSERT INTO trapped (note) VALUES ('none')" 2>&1); then
    check failed 'an INSERT through a foreign table without the default succeeds'
else
    [[ $error == *'null value in column "id"'* ]] && result=ok || result=failed
    check "$result" "an INSERT through a foreign table without the default: $(head -n 1 <<<"$error")"
fi
remote 'SELECT count(*) || $$ IDs, $$ || count(*) - count(DISTINCT id) || $$ duplicates$$ FROM orders' >"$OUT/checked"
expect 51101 "$(remote 'SELECT count(DISTINCT id) FROM orders')" 'distinct IDs in the remote table'
