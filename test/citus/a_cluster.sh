# The extension on a cluster: how it gets there, whose number an ID has, uniqueness, and the
# check of the nodes.
# shellcheck shell=bash

a1_extensions_are_created_on_all_nodes() {
    local port
    for port in "$C" "$W1" "$W2"; do
        is "on $port" 'snowflake,snowflake_migrate,snowflake_partitions' \
            "$(q "$port" "SELECT string_agg(extname, ',' ORDER BY extname) FROM pg_extension WHERE extname LIKE 'snow%'")"
    done
    is 'numbers' '1 2 3' "$(on_nodes 'SELECT node_id FROM snowflake_status')"
}

a2_citus_has_to_be_loaded_first() {
    init s "$S" snowflake.node_id=9 "shared_preload_libraries='snowflake,citus'"
    if start s >/dev/null; then return 1; fi
    has 'the log' 'Citus has to be loaded first' "$(cat "$LAB/s.log")"
    rm -rf "$LAB/s"
}

a4_a_worker_takes_no_ddl() {
    fails 'operation is not allowed on this node' "$W1" 'DROP EXTENSION snowflake'
}

a5_a_setting_reaches_the_shards() {
    quiet "$C" 'CREATE TABLE a5 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('a5', 'id')"
    local query="EXPLAIN (COSTS off) SELECT count(*) FROM a5 WHERE snowflake_timestamp(id) >= now() - interval '1 hour'"
    has 'a range' 'Index Cond: \(id >' "$(q "$C" "$query")"
    lacks 'a range' 'Index Cond' "$(q "$C" 'BEGIN' "SET LOCAL citus.propagate_set_commands = 'local'" 'SET LOCAL snowflake.enable_time_ranges = off' "$query" 'COMMIT')"
}

# Each form of INSERT and COPY, from three nodes, into each kind of table.
a7_ids_are_distinct() {
    local port table rows=0 found
    quiet "$C" 'CREATE TABLE a7_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('a7_id', 'id')" \
        'CREATE TABLE a7_tenant (tenant int DEFAULT 1, id bigint DEFAULT snowflake_nextval(), v int, PRIMARY KEY (tenant, id))' \
        "SELECT create_distributed_table('a7_tenant', 'tenant')" \
        'CREATE TABLE a7_everywhere (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_reference_table('a7_everywhere')" \
        'CREATE TABLE a7_local (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT citus_add_local_table_to_metadata('a7_local')" \
        'CREATE TABLE a7_single (id bigint PRIMARY KEY DEFAULT snowflake_id(), v int)' \
        "SELECT create_distributed_table('a7_single', NULL, colocate_with => 'none')"
    for port in "$C" "$W1" "$W2"; do
        for table in id tenant everywhere local single; do
            q "$port" "INSERT INTO a7_$table (v) VALUES ($port)" "INSERT INTO a7_$table (v) SELECT $port FROM generate_series(1, 5000)" \
                "INSERT INTO a7_$table (v) VALUES ($port), ($port), ($port)"
            seq 10000 | "$BIN/psql" -Xq -h "$LAB" -p "$port" -U postgres postgres -c "\\copy a7_$table(v) FROM pstdin"
            rows=$((rows + 15004))
        done
        q "$port" "INSERT INTO a7_tenant (tenant, v) SELECT i % 50, $port FROM generate_series(1, 5000) i" \
            'INSERT INTO a7_tenant (tenant, v) SELECT i % 50, -1 FROM generate_series(1, 5000) i'
        rows=$((rows + 10000))
    done
    for port in "$C" "$W1" "$W2"; do
        found=$(q "$port" "WITH n AS (INSERT INTO a7_tenant (tenant, v) SELECT tenant, -2 FROM a7_tenant WHERE v = -1 RETURNING 1) SELECT count(*) FROM n")
        rows=$((rows + found))
        found=$(q "$port" "WITH n AS (INSERT INTO a7_id (v) SELECT -3 FROM a7_tenant WHERE v = -1 RETURNING 1) SELECT count(*) FROM n")
        rows=$((rows + found))
    done
    found=$(q "$C" "SELECT sum(n) || ' ' || sum(d) FROM (
        SELECT count(*) AS n, count(DISTINCT id) AS d FROM a7_id UNION ALL SELECT count(*), count(DISTINCT id) FROM a7_tenant
        UNION ALL SELECT count(*), count(DISTINCT id) FROM a7_everywhere UNION ALL SELECT count(*), count(DISTINCT id) FROM a7_local
        UNION ALL SELECT count(*), count(DISTINCT id) FROM a7_single) AS t")
    is 'rows and distinct IDs' "$rows $rows" "$found"
    is 'of all tables' "$rows" "$(q "$C" "SELECT count(DISTINCT id) FROM (SELECT id FROM a7_id UNION ALL SELECT id FROM a7_tenant
        UNION ALL SELECT id FROM a7_everywhere UNION ALL SELECT id FROM a7_local UNION ALL SELECT id FROM a7_single) AS t")"
    figure "$rows IDs, distinct"
    is 'VALUES have the number of the node of the session' '1 2 3' "$(q "$C" "SELECT string_agg(DISTINCT snowflake_node_id(id)::text, ' ') FROM a7_everywhere")"
}

a8_insert_select_draws_on_the_workers() {
    quiet "$C" 'CREATE TABLE a8_from (k int PRIMARY KEY)' "SELECT create_distributed_table('a8_from', 'k')" 'INSERT INTO a8_from SELECT generate_series(1, 2000)' \
        'CREATE TABLE a8 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), k int)' "SELECT create_distributed_table('a8', 'id')" \
        'INSERT INTO a8 (k) SELECT k FROM a8_from' 'CREATE TABLE a8_local AS SELECT snowflake_nextval() AS id FROM a8_from'
    is 'numbers of the workers' '2,3' "$(q "$C" "SELECT string_agg(DISTINCT snowflake_node_id(id)::text, ',') FROM a8")"
    is 'also into a local table' '2,3' "$(q "$C" "SELECT string_agg(DISTINCT snowflake_node_id(id)::text, ',') FROM a8_local")"
}

# restart_worker_2 SETTING...: worker 2, restarted with these settings.
restart_worker_2() {
    down w2
    sed -i '/^# planted$/,$d' "$LAB/w2/postgresql.conf"
    [ $# = 0 ] || printf '%s\n' '# planted' "$@" >>"$LAB/w2/postgresql.conf"
    start w2
}
node_findings() { q "$C" "SELECT finding FROM snowflake_audit_tables('pg_catalog') WHERE table_name IS NULL"; }

a9_the_check_finds_each_mistake() {
    local w1="127.0.0.1:$W1" w2="127.0.0.1:$W2"
    is 'a right cluster' '' "$(node_findings)"
    restart_worker_2 snowflake.node_id=2
    is 'one number' "nodes of Citus with the same node number 2: $(printf '%s\n' "$w1" "$w2" | sort | paste -sd, | sed 's/,/, /')" "$(node_findings)"
    restart_worker_2 snowflake.node_id=-1
    is 'no number' "node of Citus without a node number: $w2" "$(node_findings)"
    restart_worker_2 "snowflake.layout='twitter'" snowflake.node_id=3
    has 'the answer' '^nodes of Citus with different layouts: ' "$(node_findings)"
    down w2
    has 'the answer' "^node of Citus not checked: $w2: " "$(node_findings)"
    restart_worker_2
    q "$W2" 'REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC'
    is 'other privileges' 'nodes of Citus with different privileges: snowflake_nextval()' "$(node_findings)"
    q "$W2" 'GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC'
    is 'a right cluster again' '' "$(node_findings)"
}

# Each node is asked: what worker 1 cannot have issued, from the coordinator and from worker 2.
a9_what_a_node_cannot_have_issued() {
    quiet "$C" 'CREATE SCHEMA a9' 'CREATE TABLE a9.t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('a9.t', 'id')" \
        "SELECT snowflake_set_id_boundary('a9.t', 'id', 0)" 'INSERT INTO a9.t (v) SELECT i FROM generate_series(1, 100) AS i'
    local port
    for port in "$W1" "$W2"; do q "$port" 'INSERT INTO a9.t (v) SELECT i FROM generate_series(1, 100) AS i'; done
    is 'a right cluster' '' "$(q "$C" "SELECT * FROM snowflake_audit_tables('a9')")"
    # As another server with number 2 would, whose clock is a little ahead.
    q "$C" "INSERT INTO a9.t (id) SELECT (2::bigint << 16) | ((snowflake_min_id(now() + interval '1 second') + (i::bigint << 22)) & ~(63::bigint << 16)) FROM generate_series(1, 5) AS i"
    for port in "$C" "$W2"; do
        is "asked on $port" "a9.t|IDs with the node number of 127.0.0.1:$W1 that it cannot have issued|5" "$(q "$port" "SELECT table_name, finding, ids FROM snowflake_audit_tables('a9')")"
    done
    has 'on the node itself' 'IDs with this server.s node number that it cannot have issued.5$' "$(q "$W1" "SELECT finding, ids FROM snowflake_audit_tables('a9')")"
    quiet "$C" 'DROP SCHEMA a9 CASCADE'
}

a13_a_worker_is_killed() {
    quiet "$C" 'CREATE TABLE a13 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('a13', 'id')"
    printf 'INSERT INTO a13 (v) VALUES (1), (2), (3);\n' >"$LAB/insert.sql"
    local port pids=() rows
    for port in "$C" "$W2"; do
        "$BIN/pgbench" -n -h "$LAB" -p "$port" -U postgres -c 3 -T 6 -f "$LAB/insert.sql" postgres >"$LAB/bench.$port" 2>&1 &
        pids+=($!)
    done
    sleep 2
    kill -9 "$(head -n 1 "$LAB/w1/postmaster.pid")"
    sleep 1
    rm -f "$LAB/w1/postmaster.pid" "$LAB/.s.PGSQL.$W1"*
    start w1
    wait "${pids[@]}" || :
    quiet "$C" 'SELECT recover_prepared_transactions()'
    q "$W2" 'SELECT recover_prepared_transactions()' >/dev/null
    rows=$(q "$C" 'SELECT count(*) FROM a13')
    q "$C" "INSERT INTO a13 (v) SELECT i FROM generate_series(1, 3000) i"
    q "$W1" "INSERT INTO a13 (v) SELECT i FROM generate_series(1, 3000) i"
    is 'distinct' "$((rows + 6000))" "$(q "$C" 'SELECT count(DISTINCT id) FROM a13')"
    figure "$((rows + 6000)) IDs over a kill -9 of a worker, distinct"
    [ "$rows" -gt 100 ]
    is 'the resolved ID is known' t "$(q "$C" "SELECT snowflake_cluster_resolved_id('10s') IS NOT NULL")"
}
