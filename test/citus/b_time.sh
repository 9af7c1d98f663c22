# Time is the key: what reaches the shards as a range of the key, and what Citus refuses.
# shellcheck shell=bash

b1_plans() {
    quiet "$C" 'CREATE TABLE b1 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('b1', 'id', shard_count => 4)" \
        'INSERT INTO b1 (v) SELECT i FROM generate_series(1, 20000) AS i' 'CREATE VIEW b1_timed AS SELECT b.*, snowflake_timestamp(id) AS created_at FROM b1 AS b'
    quiet "$C" 'VACUUM ANALYZE b1'
    # Ports, shards and directories are those of this run.
    "$BIN/psql" -X -q -A -t -a -h "$LAB" -p "$C" -U postgres postgres -f "$ROOT/test/citus/plans.sql" 2>&1 |
        sed -E 's/(b1[a-z_]*)_[0-9]+/\1_N/g; s/port=[0-9]+/port=N/; s/psql:[^ ]*plans.sql:[0-9]+: //' >"$LOGS/plans.out"
    [ -z "${ACCEPT:-}" ] || cp "$LOGS/plans.out" "$ROOT/test/citus/plans.out"
    diff "$ROOT/test/citus/plans.out" "$LOGS/plans.out"
}
b1_the_same_rows_with_ranges_on_and_off() {
    local state condition found=()
    for state in on off; do
        q "$C" "SELECT bool_and(success) FROM run_command_on_workers('ALTER SYSTEM SET snowflake.enable_time_ranges = $state')" \
            "SELECT bool_and(success) FROM run_command_on_workers('SELECT pg_reload_conf()')" 'SELECT pg_sleep(0.2)' >/dev/null
        for condition in "created_at >= now() - interval '1 hour'" "created_at < now() - interval '1 hour'" 'created_at::date = current_date'; do
            found+=("$(q "$C" "SELECT count(*) FROM b1_timed WHERE $condition")")
        done
    done
    q "$C" "SELECT bool_and(success) FROM run_command_on_workers('ALTER SYSTEM RESET snowflake.enable_time_ranges')" \
        "SELECT bool_and(success) FROM run_command_on_workers('SELECT pg_reload_conf()')" >/dev/null
    is 'counts' "${found[*]:0:3}" "${found[*]:3:3}"
    is 'all rows' 20000 "${found[0]}"
}
b3_functions_of_the_id_in_update_and_delete() {
    quiet "$C" 'CREATE TABLE b3 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('b3', 'id')" 'INSERT INTO b3 (v) VALUES (1), (2)'
    fails 'STABLE functions used in UPDATE queries cannot be called with column references' "$C" "UPDATE b3 SET v = 0 WHERE snowflake_timestamp(id) > now() - interval '1 day'"
    fails 'STABLE functions used in' "$C" "DELETE FROM b3 WHERE snowflake_timestamp(id) > now() - interval '1 day'"
    fails 'must not be VOLATILE' "$C" 'UPDATE b3 SET id = snowflake_nextval()'
    is 'a named layout' 2 "$(q "$C" "WITH n AS (UPDATE b3 SET v = 0 WHERE snowflake_timestamp(id, 'default') > now() - interval '1 day' RETURNING 1) SELECT count(*) FROM n")"
    is 'a bound' 0 "$(q "$C" "WITH n AS (DELETE FROM b3 WHERE id < snowflake_min_id(now() - interval '1 day') RETURNING 1) SELECT count(*) FROM n")"
}
b4_functions_of_the_id_in_returning() {
    quiet "$C" 'CREATE TABLE b4 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('b4', 'id')"
    fails 'non-IMMUTABLE functions are not allowed in the RETURNING clause' "$C" 'INSERT INTO b4 (v) VALUES (3) RETURNING id, snowflake_timestamp(id)'
    is 'a named layout' t "$(q "$C" "INSERT INTO b4 (v) VALUES (3) RETURNING snowflake_timestamp(id, 'default') > '2026-01-01Z'")"
    fails 'non-IMMUTABLE functions' "$C" 'MERGE INTO b4 USING (SELECT id, v FROM b4 WHERE v = -1) AS s ON b4.id = s.id WHEN NOT MATCHED THEN INSERT (v) VALUES (s.v)'
}
b5_prepared_statements() {
    quiet "$C" 'CREATE TABLE b5 (tenant int, id bigint DEFAULT snowflake_nextval(), v int, PRIMARY KEY (tenant, id))' "SELECT create_distributed_table('b5', 'tenant')"
    # shellcheck disable=SC1003
    printf '%s\n' '\set t random(1, 100)' 'INSERT INTO b5 (tenant, v) VALUES (:t, 1);' >"$LAB/prepared.sql"
    local port protocol pids=()
    for port in "$C" "$W1" "$W2"; do
        for protocol in simple extended prepared; do
            "$BIN/pgbench" -n -h "$LAB" -p "$port" -U postgres -M "$protocol" -c 2 -t 300 -f "$LAB/prepared.sql" postgres >"$LAB/bench.$port.$protocol" 2>&1 &
            pids+=($!)
        done
    done
    for port in "${pids[@]}"; do wait "$port"; done
    is 'distinct' '5400 5400' "$(q "$C" "SELECT count(*) || ' ' || count(DISTINCT id) FROM b5")"
}
