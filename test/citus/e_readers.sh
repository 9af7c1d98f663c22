# Readers of new rows.
# shellcheck shell=bash

e4_what_loses_rows_is_refused() {
    quiet "$C" 'CREATE TABLE e4 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('e4', 'id')" \
        'CREATE TABLE e4_local (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' 'INSERT INTO e4 (v) SELECT i FROM generate_series(1, 100) AS i'
    local port
    for port in "$C" "$W1"; do
        fails '0A000|is not supported in a database of Citus' "$port" 'SELECT id FROM e4 WHERE id > 0 AND id < snowflake_resolved_id() ORDER BY id'
        fails 'is not supported in a database of Citus' "$port" 'SELECT id FROM e4 WHERE id < (SELECT snowflake_resolved_id())'
        fails 'is not supported in a database of Citus' "$port" 'SELECT snowflake_advance_resolved_id()'
        fails 'cannot be part of a query of a shard' "$port" 'SELECT id FROM e4 WHERE id < snowflake_cluster_resolved_id()'
        fails 'requires READ COMMITTED' "$port" 'BEGIN ISOLATION LEVEL REPEATABLE READ' 'SELECT snowflake_cluster_resolved_id()'
    done
    fails 'is not supported in a database of Citus' "$C" 'SELECT id FROM e4_local WHERE id < snowflake_resolved_id()'
}

# The transaction that is slow, and the function that does not pass it.
e4_an_open_transaction_holds_it_on_each_node() {
    local port bound pid
    quiet "$C" 'CREATE TABLE e4_open (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('e4_open', 'id')"
    for port in "$C" "$W1" "$W2"; do
        quiet "$C" 'TRUNCATE e4_open'
        "$BIN/psql" -XqAt -h "$LAB" -p "$port" -U postgres postgres -c BEGIN -c 'INSERT INTO e4_open (v) VALUES (1)' -c 'SELECT pg_sleep(1.5)' -c COMMIT >/dev/null &
        pid=$!
        sleep 0.7
        quiet "$C" 'INSERT INTO e4_open (v) VALUES (2)'
        bound=$(q "$C" 'SELECT snowflake_cluster_resolved_id()')
        [ -n "$bound" ]
        is "below it, with the open transaction on $port" 0 "$(q "$C" "SELECT count(*) FROM e4_open WHERE id < $bound")"
        wait "$pid"
        bound=$(q "$C" 'SELECT snowflake_cluster_resolved_id()')
        is 'afterwards' 2 "$(q "$C" "SELECT count(*) FROM e4_open WHERE id < $bound")"
    done
}

# INSERT ... SELECT draws on the workers, and lasts.
e4_insert_select_holds_it() {
    local statement pid bound before
    quiet "$C" 'CREATE TABLE e4_from (k int PRIMARY KEY)' "SELECT create_distributed_table('e4_from', 'k')" 'INSERT INTO e4_from SELECT generate_series(1, 3000)' \
        'CREATE TABLE e4_slow (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), k int, CHECK (pg_sleep(0.3) IS NOT NULL))' \
        "SELECT create_distributed_table('e4_slow', 'id')"
    for statement in 'INSERT INTO e4_slow (k) SELECT k FROM e4_from LIMIT 6' 'INSERT INTO e4_slow (k) SELECT k FROM e4_from WHERE k < 7' \
        'INSERT INTO e4_slow (id, k) SELECT id, 1 FROM (SELECT snowflake_nextval() AS id FROM e4_from LIMIT 6) AS s' \
        'WITH s AS MATERIALIZED (SELECT snowflake_nextval() AS id FROM e4_from LIMIT 6) INSERT INTO e4_slow (id, k) SELECT id, 1 FROM s' \
        'INSERT INTO e4_slow (k) SELECT i FROM generate_series(1, 6) AS i'; do
        q "$C" "$statement" &
        pid=$!
        sleep 0.5
        bound=$(q "$C" 'SELECT snowflake_cluster_resolved_id()')
        before=$(q "$C" "SELECT count(*) FROM e4_slow WHERE id < $bound")
        wait "$pid"
        is "below $bound, before and after the end of $statement" "$before" "$(q "$C" "SELECT count(*) FROM e4_slow WHERE id < $bound")"
        is 'rows' 6 "$(q "$C" 'SELECT count(*) FROM e4_slow')"
        quiet "$C" 'TRUNCATE e4_slow'
    done
}

# read_beside SECONDS: what a reader reads below each answer while COMMIT PREPARED to worker 1 is
# late.
read_beside() {
    local pid bound began=$SECONDS
    q "$C" 'INSERT INTO e4_late (v) SELECT i FROM generate_series(1, 20) AS i' 2>"$LAB/warnings" &
    pid=$!
    sleep 0.3
    : >"$LAB/reads"
    : >"$LAB/hasty"
    while [ $((SECONDS - began)) -lt "$1" ]; do
        # The same without the wait for what is prepared.
        bound=$(q "$C" "SELECT coalesce(CASE WHEN bool_and(answer IS NOT NULL) THEN min(answer::bigint) END, 0)
                        FROM snowflake_internal.ask_nodes('SELECT snowflake_internal.node_resolved_id()')")
        printf '%s %s\n' "$bound" "$(q "$C" "SELECT count(*) FROM e4_late WHERE id < $bound")" >>"$LAB/hasty"
        bound=$(q "$C" "SELECT coalesce(snowflake_cluster_resolved_id('300ms'), 0)")
        printf '%s %s\n' "$bound" "$(q "$C" "SELECT count(*) FROM e4_late WHERE id < $bound")" >>"$LAB/reads"
    done
    wait "$pid"
}
# No row may appear below an answer afterwards.
nothing_is_lost() {
    local bound found missing=0 hasty=0 unknown
    recovered
    is 'rows' 21 "$(q "$C" 'SELECT count(*) FROM e4_late')"
    while read -r bound found; do
        missing=$((missing + $(q "$C" "SELECT count(*) FROM e4_late WHERE id < $bound") - found))
    done <"$LAB/reads"
    unknown=$(grep -c '^0 ' "$LAB/reads" || :)
    is 'rows lost' 0 "$missing"
    while read -r bound found; do
        hasty=$((hasty + $(q "$C" "SELECT count(*) FROM e4_late WHERE id < $bound") - found))
    done <"$LAB/hasty"
    figure "$(grep -c . "$LAB/reads") reads, $unknown without an answer, $missing rows lost; $hasty without the wait"
    [ "$unknown" -gt 0 ] && [ "$hasty" -gt 0 ]
    bound=$(q "$C" "SELECT snowflake_cluster_resolved_id('10s')")
    is 'below the answer afterwards' 21 "$(q "$C" "SELECT count(*) FROM e4_late WHERE id < $bound")"
}
late_table() {
    quiet "$C" 'DROP TABLE IF EXISTS e4_late' 'CREATE TABLE e4_late (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' \
        "SELECT create_distributed_table('e4_late', 'id')" 'INSERT INTO e4_late (v) VALUES (0)'
}
e4_commit_prepared_comes_3_s_late() {
    late_table
    with_proxy 3 read_beside 5
    nothing_is_lost
}
e4_commit_prepared_fails() {
    late_table
    with_proxy -1 read_beside 3
    nothing_is_lost
}

e4_a_worker_restarts_with_prepared_transactions() {
    quiet "$C" 'CREATE TABLE e4_restart (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('e4_restart', 'id')"
    with_proxy -1 q "$C" 'INSERT INTO e4_restart (v) SELECT i FROM generate_series(1, 20) AS i'
    down w1
    start w1
    [ "$(q "$W1" 'SELECT count(*) FROM pg_prepared_xacts')" -gt 0 ]
    is 'while they are prepared' '' "$(q "$C" "SELECT snowflake_cluster_resolved_id('300ms')" 2>/dev/null)"
    recovered
    local bound
    bound=$(q "$C" "SELECT snowflake_cluster_resolved_id('10s')")
    is 'below the answer afterwards' 20 "$(q "$C" "SELECT count(*) FROM e4_restart WHERE id < $bound")"
}

e4_a_node_that_is_down_is_no_answer() {
    down w2
    is 'not reached' '' "$(q "$C" 'SELECT snowflake_cluster_resolved_id()' 2>/dev/null)"
    start w2
    is 'reached' t "$(q "$C" "SELECT snowflake_cluster_resolved_id('10s') IS NOT NULL")"
}

# Writers of all kinds on the given ports beside a reader of the first one, for 20 seconds. A
# reader that believes its own node only shows that rows can be lost.
race() {
    local reader=$1 pids=() port place=0 kind
    quiet "$reader" "SET citus.enable_ddl_propagation = on" 'DROP TABLE IF EXISTS feed, source' 'DROP TABLE IF EXISTS seen' \
        'CREATE TABLE feed (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v text)' "SELECT create_distributed_table('feed', 'id')" \
        'CREATE TABLE source (k int PRIMARY KEY)' "SELECT create_distributed_table('source', 'k')" 'INSERT INTO source SELECT generate_series(1, 2000)' \
        'CREATE TABLE seen (reader text, id bigint)'
    script "$reader" <"$ROOT/test/citus/readers.sql"
    for port in "$@"; do
        place=$((place + 1))
        for kind in single block multi values repartition pull; do
            "$BIN/pgbench" -n -h "$LAB" -p "$port" -U postgres -T "${SECONDS_OF_RACE:-20}" -f "$ROOT/test/citus/write_$kind.sql" postgres >"$LAB/bench.$kind.$place" 2>&1 &
            pids+=($!)
        done
    done
    q "$reader" "CALL read_new('all nodes', ${SECONDS_OF_RACE:-20})" &
    pids+=($!)
    q "$reader" "CALL read_new('own node', ${SECONDS_OF_RACE:-20})" &
    pids+=($!)
    # A deadlock of statements is Citus' to report.
    for kind in "${pids[@]}"; do wait "$kind" || :; done
    for port in "$@"; do quiet "$port" 'SELECT recover_prepared_transactions()'; done
    q "$reader" 'SELECT * FROM reads_of_new_rows() ORDER BY reader' | tee "$LAB/race"
    figure "$# writing nodes: $(q "$reader" "SELECT string_agg(format('%s: %s of %s rows lost in %s reads', reader, lost, rows, reads), ', ' ORDER BY reader) FROM reads_of_new_rows()")"
    is 'lost, twice' '0 0' "$(q "$reader" "SELECT lost || ' ' || twice FROM reads_of_new_rows() WHERE reader = 'all nodes'")"
    is 'enough' t "$(q "$reader" "SELECT bool_and(rows > 5000 AND read > 5000 AND reads > 20) FROM reads_of_new_rows() WHERE reader = 'all nodes'")"
}
e4_races_of_three_nodes() {
    race "$C" "$W1" "$W2"
    is 'the own node is not enough' t "$(q "$C" "SELECT lost > 0 FROM reads_of_new_rows() WHERE reader = 'own node'")"
}
e4_races_of_one_machine() {
    init s "$S" snowflake.node_id=9
    start s
    quiet "$S" 'CREATE EXTENSION citus' 'CREATE EXTENSION snowflake' "SELECT citus_set_coordinator_host('127.0.0.1', $S)" \
        "SELECT citus_set_node_property('127.0.0.1', $S, 'shouldhaveshards', true)"
    fails 'is not supported in a database of Citus' "$S" 'SELECT snowflake_resolved_id()'
    race "$S"
    down s
    rm -rf "$LAB/s"
}

e4_how_long_a_call_takes() {
    local ms=()
    while [ ${#ms[@]} -lt 9 ]; do
        ms+=("$(printf '%s\n' '\timing on' 'SELECT snowflake_cluster_resolved_id();' 'SELECT snowflake_cluster_resolved_id();' |
            "$BIN/psql" -XqAt -h "$LAB" -p "$C" -U postgres postgres | sed -n 's/^Time: \([0-9]*\).*/\1/p' | tail -n 1)")
    done
    figure "a call with 3 nodes: $(printf '%s\n' "${ms[@]}" | sort -n | sed -n 5p) ms, median of 9 ($(printf '%s\n' "${ms[@]}" | sort -n | sed -n '1p;$p' | paste -sd- | sed 's/-/ to /'))"
}
