# Deletes by time: README's statement, where tables were rebuilt by Citus, on workers, on nodes
# that join later, in batches. 1,000 old rows and a new one; nothing is older than 90 days.
# shellcheck shell=bash

retention="id >= snowflake_id_boundary('%s') AND id < snowflake_min_id(now() - interval '90 days')"
# Migrated, with old rows, and not yet distributed.
old_table() {
    quiet "$C" "CREATE TABLE $1 (id bigserial PRIMARY KEY, v int)" "INSERT INTO $1 (v) SELECT i FROM generate_series(1, 1000) AS i" "CALL snowflake_migrate.run('$1')"
}
# kept TABLE PORT: the rows that are left after README's statement, in all its forms.
kept() {
    local condition form port=$2
    # shellcheck disable=SC2059
    condition=$(printf "$retention" "$1")
    is "rows that are found in $1, on $port" 0 "$(q "$port" "SELECT count(*) FROM $1 WHERE $condition")"
    for form in "DELETE FROM $1 WHERE $condition" "DELETE FROM $1 WHERE id IN (SELECT id FROM $1 WHERE $condition LIMIT 1000)" \
        "WITH d AS (DELETE FROM $1 WHERE $condition RETURNING 1) SELECT count(*) FROM d" \
        "DELETE FROM $1 USING (SELECT id AS i FROM $1 WHERE $condition) AS x WHERE $1.id = x.i" "${condition/id >= snowflake_id_boundary/}"; do
        case $form in DELETE* | WITH*) ;; *) form="DELETE FROM $1 WHERE id >= (SELECT snowflake_id_boundary('$1')) AND id < snowflake_min_id(now() - interval '90 days')" ;; esac
        is "left in $1 on $port after $form" 1001 "$(q "$port" BEGIN "$form" "SELECT count(*) FROM $1" ROLLBACK 2>&1 | tail -n 1)"
    done
}
kept_on_all() { local port; for port in "$C" "$W1" "$W2"; do kept "$1" "$port"; done; }

e5_migrated_then_distributed() {
    old_table e5_a
    quiet "$C" "SELECT create_distributed_table('e5_a', 'id')" 'INSERT INTO e5_a (v) VALUES (-1)'
    kept_on_all e5_a
}
e5_reference_table() {
    old_table e5_b
    quiet "$C" "SELECT create_reference_table('e5_b')" 'INSERT INTO e5_b (v) VALUES (-1)'
    kept_on_all e5_b
}
e5_after_alter_distributed_table() {
    old_table e5_c
    quiet "$C" "SELECT create_distributed_table('e5_c', 'id')" 'INSERT INTO e5_c (v) VALUES (-1)' \
        "SELECT alter_distributed_table('e5_c', shard_count := 4, cascade_to_colocated := false)"
    kept_on_all e5_c
}
e5_after_undistribute_table() {
    old_table e5_d
    quiet "$C" "SELECT create_distributed_table('e5_d', 'id')" 'INSERT INTO e5_d (v) VALUES (-1)' "SELECT undistribute_table('e5_d')"
    kept e5_d "$C"
}
e5_columnar() {
    old_table e5_e
    quiet "$C" "SELECT create_distributed_table('e5_e', 'id')" 'INSERT INTO e5_e (v) VALUES (-1)' "SELECT alter_table_set_access_method('e5_e', 'columnar')"
    local port
    for port in "$C" "$W1"; do
        # shellcheck disable=SC2059
        is "on $port" 0 "$(q "$port" "SELECT count(*) FROM e5_e WHERE $(printf "$retention" e5_e)")"
    done
}
e5_distributed_concurrently() {
    old_table e5_f
    quiet "$C" "SELECT create_distributed_table_concurrently('e5_f', 'id')" 'INSERT INTO e5_f (v) VALUES (-1)'
    kept_on_all e5_f
}
e5_default_set_by_hand() {
    quiet "$C" 'CREATE TABLE e5_g (tenant int DEFAULT 1, id bigserial, v int, PRIMARY KEY (tenant, id))' \
        "SELECT create_distributed_table('e5_g', 'tenant')" 'INSERT INTO e5_g (v) SELECT i FROM generate_series(1, 1000) AS i' \
        'ALTER TABLE e5_g ALTER COLUMN id SET DEFAULT snowflake_nextval()' 'INSERT INTO e5_g (v) VALUES (-1)'
    local port remedy
    for port in "$C" "$W1"; do
        # shellcheck disable=SC2059
        fails 'it is not known which rows' "$port" "DELETE FROM e5_g WHERE $(printf "$retention" e5_g)"
    done
    # The remedy as it is printed.
    remedy=$(q "$C" "SELECT snowflake_id_boundary('e5_g')" 2>&1 | sed -n 's/^HINT:.*run \(SELECT snowflake_set_id_boundary([^)]*)\).*/\1/p') || :
    quiet "$C" "$remedy"
    kept_on_all e5_g
}
e5_the_migration_of_a_distributed_table() {
    quiet "$C" 'CREATE TABLE e5_h (id bigserial PRIMARY KEY, v int)' "SELECT create_distributed_table('e5_h', 'id')" \
        'INSERT INTO e5_h (v) SELECT i FROM generate_series(1, 1000) AS i' "CALL snowflake_migrate.run('e5_h')" 'INSERT INTO e5_h (v) VALUES (-1)'
    kept_on_all e5_h
}
e5_a_node_that_joins_later() {
    old_table e5_i
    quiet "$C" "SELECT create_distributed_table('e5_i', 'id')" 'INSERT INTO e5_i (v) VALUES (-1)'
    init w3 "$W3" snowflake.node_id=4
    start w3
    quiet "$W3" 'CREATE EXTENSION citus'
    quiet "$C" "SELECT citus_add_node('127.0.0.1', $W3)"
    is 'the extension is created there' t "$(q "$W3" "SELECT count(*) = 3 FROM pg_extension WHERE extname LIKE 'snow%'")"
    kept e5_i "$W3"
    is 'a right cluster' '' "$(node_findings)"
    is 'the resolved ID' t "$(q "$C" "SELECT snowflake_cluster_resolved_id('10s') IS NOT NULL")"
    is 'its own number' 4 "$(q "$W3" "INSERT INTO e5_i (v) VALUES (-2) RETURNING snowflake_node_id(id, 'default')")"
    quiet "$C" "SELECT citus_drain_node('127.0.0.1', $W3, 'block_writes')" "SELECT citus_remove_node('127.0.0.1', $W3)"
    down w3
    rm -rf "$LAB/w3"
    is 'rows after it has left' 1002 "$(q "$C" 'SELECT count(*) FROM e5_i')"
}
e5_without_old_rows_it_deletes() {
    quiet "$C" 'CREATE TABLE e5_j (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('e5_j', 'id')" \
        "SELECT snowflake_set_id_boundary('e5_j', 'id', 0)" \
        "INSERT INTO e5_j (id, v) SELECT snowflake_min_id(now() - interval '100 days') + i, i FROM generate_series(1, 1000) AS i" 'INSERT INTO e5_j (v) VALUES (1)'
    local port
    for port in "$C" "$W1"; do
        # shellcheck disable=SC2059
        is "left on $port" 1 "$(q "$port" BEGIN "DELETE FROM e5_j WHERE $(printf "$retention" e5_j)" 'SELECT count(*) FROM e5_j' ROLLBACK)"
    done
}
