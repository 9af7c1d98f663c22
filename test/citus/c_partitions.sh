# Partitioned by time, and distributed.
# shellcheck shell=bash

c_ddl() { # c_ddl TABLE SINCE UNTIL
    script "$C" <<SQL
SELECT d FROM snowflake_partitions.ddl('$1', $2, $3, '1 day', time_zone => 'UTC') AS d \gexec
SQL
}
c1_partitions_before_and_after_distributing() {
    quiet "$C" 'CREATE TABLE c1 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (id)'
    c_ddl c1 "date_trunc('day', now(), 'UTC')" "now() + interval '2 days'"
    quiet "$C" "SELECT create_distributed_table('c1', 'id')"
    c_ddl c1 "date_trunc('day', now(), 'UTC')" "now() + interval '5 days'"
    is 'partitions' "$(q "$C" "SELECT count(*) FROM pg_inherits WHERE inhparent = 'c1'::regclass")" "$(q "$W1" "SELECT count(*) FROM pg_inherits WHERE inhparent = 'c1'::regclass")"
    local port
    for port in "$C" "$W1" "$W2"; do q "$port" 'INSERT INTO c1 (v) SELECT i FROM generate_series(1, 1000) AS i'; done
    is 'rows' 3000 "$(q "$C" 'SELECT count(DISTINCT id) FROM c1')"
    has 'the answer' 'Subplans Removed' "$(q "$C" "EXPLAIN (COSTS off) SELECT count(*) FROM c1 WHERE snowflake_between(id, now() - interval '1 hour', now())")"
    fails 'CONCURRENTLY' "$C" "ALTER TABLE c1 DETACH PARTITION $(q "$C" "SELECT max(inhrelid)::regclass FROM pg_inherits WHERE inhparent = 'c1'::regclass") CONCURRENTLY"
}
c1_partitions_are_maintained() {
    quiet "$C" 'CREATE TABLE c1_kept (tenant int DEFAULT 1, id bigint DEFAULT snowflake_nextval(), PRIMARY KEY (tenant, id)) PARTITION BY RANGE (id)' \
        "SELECT create_distributed_table('c1_kept', 'tenant')" "SELECT snowflake_partitions.configure('c1_kept', '1 day', 'UTC', ahead => '2 days', keep => '1 day')"
    c_ddl c1_kept "date_trunc('day', now() - interval '4 days', 'UTC')" "now()"
    quiet "$C" "SELECT snowflake_set_id_boundary('c1_kept', 'id', 0)"
    "$BIN/psql" -XqAt -h "$LAB" -p "$C" -U postgres postgres -c "CALL snowflake_partitions.maintain('c1_kept')"
    quiet "$C" 'INSERT INTO c1_kept DEFAULT VALUES'
    q "$C" 'SELECT * FROM snowflake_partitions.partitions'
    is 'partitions on each node' '4 4 4' "$(on_nodes "SELECT count(*) FROM pg_inherits WHERE inhparent = 'c1_kept'::regclass")"
}
c3_columnar_partitions() {
    quiet "$C" 'CREATE TABLE c3 (id bigint NOT NULL DEFAULT snowflake_nextval(), v int) PARTITION BY RANGE (id)' "SELECT create_distributed_table('c3', 'id')"
    c_ddl c3 "date_trunc('day', now(), 'UTC')" "now() + interval '1 day'"
    quiet "$C" 'INSERT INTO c3 (v) SELECT i FROM generate_series(1, 5000) AS i' \
        "SELECT alter_table_set_access_method((SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'c3'::regclass ORDER BY inhrelid LIMIT 1), 'columnar')"
    is 'rows' 5000 "$(q "$C" 'SELECT count(*) FROM c3')"
    has 'the answer' 'Columnar Chunk Group Filters: .id >' "$(q "$C" "EXPLAIN (COSTS off) SELECT count(*) FROM c3 WHERE snowflake_timestamp(id) >= now() - interval '1 hour'")"
}
c4_foreign_keys_of_tables_beside_each_other() {
    quiet "$C" 'CREATE TABLE c4_a (tenant int, id bigint DEFAULT snowflake_nextval(), PRIMARY KEY (tenant, id))' \
        'CREATE TABLE c4_b (tenant int, id bigint DEFAULT snowflake_nextval(), a_id bigint, PRIMARY KEY (tenant, id), FOREIGN KEY (tenant, a_id) REFERENCES c4_a)' \
        "SELECT create_distributed_table('c4_a', 'tenant')" "SELECT create_distributed_table('c4_b', 'tenant', colocate_with => 'c4_a')" \
        'INSERT INTO c4_a (tenant) SELECT i % 9 FROM generate_series(1, 100) AS i' 'INSERT INTO c4_b (tenant, a_id) SELECT tenant, id FROM c4_a' \
        'WITH a AS (INSERT INTO c4_a (tenant) VALUES (3) RETURNING *) INSERT INTO c4_b (tenant, a_id) SELECT tenant, id FROM a'
    is 'rows' '101 101' "$(q "$C" "SELECT count(*) || ' ' || count(DISTINCT id) FROM c4_b")"
}
