# Moves, splits and restores.
# shellcheck shell=bash

e1_moves_and_splits_under_load() {
    quiet "$C" 'CREATE TABLE e1 (tenant int, id bigint DEFAULT snowflake_nextval(), v int, PRIMARY KEY (tenant, id))' \
        "SELECT create_distributed_table('e1', 'tenant', shard_count => 6)" 'INSERT INTO e1 (tenant, v) SELECT i % 97, i FROM generate_series(1, 20000) AS i'
    printf 'INSERT INTO e1 (tenant, v) VALUES ((random() * 96)::int, -1);\n' >"$LAB/insert.sql"
    local port pids=() shard middle nodes written
    for port in "$C" "$W1" "$W2"; do
        "$BIN/pgbench" -n -h "$LAB" -p "$port" -U postgres -c 1 -T 12 -f "$LAB/insert.sql" postgres >"$LAB/bench.$port" 2>&1 &
        pids+=($!)
    done
    shard=$(q "$C" "SELECT shardid FROM citus_shards WHERE table_name = 'e1'::regclass AND nodeport = $W2 ORDER BY 1 LIMIT 1")
    quiet "$C" "SELECT citus_move_shard_placement($shard, '127.0.0.1', $W2, '127.0.0.1', $W1, 'force_logical')"
    shard=$(q "$C" "SELECT shardid FROM citus_shards WHERE table_name = 'e1'::regclass AND nodeport = $W1 ORDER BY 1 LIMIT 1")
    middle=$(q "$C" "SELECT (shardminvalue::int::bigint + shardmaxvalue::int) / 2 FROM pg_dist_shard WHERE shardid = $shard")
    nodes=$(q "$C" "SELECT array_agg(nodeid ORDER BY nodeport) FROM pg_dist_node WHERE nodeport IN ($W1, $W2)")
    quiet "$C" "SELECT citus_split_shard_by_split_points($shard, ARRAY['$middle'], '$nodes', 'force_logical')"
    for port in "${pids[@]}"; do wait "$port" || :; done
    written=$(($(sed -n 's/^number of transactions actually processed: \([0-9]*\).*/\1/p' "$LAB/bench.$C" "$LAB/bench.$W1" "$LAB/bench.$W2" | paste -sd+)))
    is 'rows and distinct IDs' "$((20000 + written)) $((20000 + written))" "$(q "$C" "SELECT count(*) || ' ' || count(DISTINCT id) FROM e1")"
    [ "$written" -gt 300 ]
    figure "$written rows written meanwhile"
    is 'no conflict was noticed' '0 f 0 f 0 f' "$(on_nodes "SELECT node_conflicts || ' ' || stopped FROM snowflake_status" | sed 's/false/f/g')"
}
e3_watching_a_distributed_table_is_refused() {
    fails 'Citus' "$C" "CALL snowflake_watch('e1')"
}
e6_an_outbox_is_refused_by_citus() {
    quiet "$C" 'CREATE TABLE e6 (id bigint PRIMARY KEY DEFAULT snowflake_nextval())' "SELECT create_distributed_table('e6', 'id')" \
        'CREATE FUNCTION e6() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY e6; RETURN NULL; END $$'
    fails 'triggers are not supported on distributed tables' "$C" 'CREATE TRIGGER e6 AFTER INSERT ON e6 FOR EACH STATEMENT EXECUTE FUNCTION e6()'
}
# The page's statement, where the marks of workers are behind.
e7_a_restore_raises_the_mark_on_all_nodes() {
    q "$C" "SELECT * FROM run_command_on_all_nodes(format('SELECT snowflake_start_after(%s)', (SELECT max(id) FROM e1)))" | grep -vc ',t,' || :
    local highest
    highest=$(q "$C" 'SELECT max(id) FROM e1')
    is 'IDs on all nodes are above it' 't t t' "$(on_nodes "SELECT snowflake_nextval() > $highest")"
}
