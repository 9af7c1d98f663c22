# Migrations of tables of Citus: what is a step, what is an obstacle, and its remedy as printed.
# shellcheck shell=bash

default_of() { q "$1" "SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d JOIN pg_attribute AS a ON a.attrelid = d.adrelid AND a.attnum = d.adnum WHERE d.adrelid = '$2'::regclass AND a.attname = '${3:-id}'"; }
type_of() { q "$1" "SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = '$2'::regclass AND attname = '${3:-id}'"; }
# migrated TABLE: each node has the default, and its number in the IDs; the old rows stay.
migrated() {
    local port number=0
    for port in "$C" "$W1" "$W2"; do
        number=$((number + 1))
        is "type of $1 on $port" bigint "$(type_of "$port" "$1")"
        is "default of $1 on $port" 'snowflake_nextval()' "$(default_of "$port" "$1")"
        is "the number of a new ID of $1 on $port" "$number" "$(q "$port" "INSERT INTO $1 DEFAULT VALUES RETURNING snowflake_node_id(id, 'default')")"
    done
    is "rows of $1" 1003 "$(q "$C" "SELECT count(*) FROM $1")"
    is "old rows of $1" 1000 "$(q "$C" "SELECT count(*) FROM $1 WHERE id < (SELECT snowflake_id_boundary('$1'))")"
    is "nothing is left to do for $1" 0 "$(q "$C" "SELECT count(*) FROM snowflake_migrate.plan('$1') WHERE step IS NOT NULL")"
    is "findings of $1" '' "$(q "$C" "SELECT * FROM snowflake_audit('$1', 'id')")"
}
distributed() { # distributed TABLE COLUMNS DISTRIBUTION
    quiet "$C" "CREATE TABLE $1 ($2)" "$3" "INSERT INTO $1 SELECT FROM generate_series(1, 1000)"
}

d1_bigint_beside_the_distribution_column() {
    distributed d1_a 'tenant int DEFAULT 1, id bigserial, PRIMARY KEY (tenant, id)' "SELECT create_distributed_table('d1_a', 'tenant')"
    quiet "$C" "CALL snowflake_migrate.run('d1_a', 'id')"
    migrated d1_a
}
d1_reference_table() {
    distributed d1_b 'id bigserial PRIMARY KEY, v int' "SELECT create_reference_table('d1_b')"
    quiet "$C" "CALL snowflake_migrate.run('d1_b')"
    migrated d1_b
}
d1_local_table_in_the_metadata() {
    distributed d1_c 'id bigserial PRIMARY KEY, v int' "SELECT citus_add_local_table_to_metadata('d1_c')"
    quiet "$C" "CALL snowflake_migrate.run('d1_c')"
    migrated d1_c
}
# The default is set node by node.
d3_the_distribution_column() {
    distributed d3 'id bigserial PRIMARY KEY, v int' "SELECT create_distributed_table('d3', 'id')"
    quiet "$C" "CALL snowflake_migrate.run('d3')"
    migrated d3
    quiet "$C" "SELECT citus_move_shard_placement(shardid, '127.0.0.1', $W1, '127.0.0.1', $W2, 'block_writes') FROM citus_shards WHERE table_name = 'd3'::regclass AND nodeport = $W1 LIMIT 1"
    is 'after a move of a shard' 1 "$(q "$C" "WITH n AS (INSERT INTO d3 (v) VALUES (1) RETURNING id) SELECT count(*) FROM n WHERE snowflake_node_id(id) = 1")"
}
d3_by_an_ordinary_owner() {
    quiet "$C" 'CREATE ROLE d3_owner LOGIN' 'CREATE SCHEMA d3_shop AUTHORIZATION d3_owner'
    U=d3_owner distributed 'd3_shop."Wide ""'"'"'"' 'id bigserial PRIMARY KEY, v int' "SELECT create_distributed_table('d3_shop.\"Wide \"\"''\"', 'id')"
    U=d3_owner quiet "$C" "CALL snowflake_migrate.run('d3_shop.\"Wide \"\"''\"')"
    local port
    for port in "$C" "$W1" "$W2"; do is "on $port" 'snowflake_nextval()' "$(default_of "$port" 'd3_shop."Wide ""'"''"'"')"; done
}
d1_an_integer_with_a_foreign_key() {
    quiet "$C" 'CREATE TABLE d1_to (tenant int DEFAULT 1, id serial, PRIMARY KEY (tenant, id))' \
        'CREATE TABLE d1_from (tenant int DEFAULT 1, k int, to_id int, PRIMARY KEY (tenant, k), FOREIGN KEY (tenant, to_id) REFERENCES d1_to)' \
        "SELECT create_distributed_table('d1_to', 'tenant')" "SELECT create_distributed_table('d1_from', 'tenant', colocate_with => 'd1_to')" \
        'INSERT INTO d1_to SELECT FROM generate_series(1, 1000)' 'INSERT INTO d1_from (k, to_id) SELECT id, id FROM d1_to'
    remedied d1_to "'d1_to', 'id'"
    quiet "$C" "SELECT create_distributed_table('d1_to', 'tenant')" "SELECT create_distributed_table('d1_from', 'tenant', colocate_with => 'd1_to')"
    migrated d1_to
    is 'the other column' bigint "$(type_of "$W1" d1_from to_id)"
    is 'rows of both' 1000 "$(q "$C" 'SELECT count(*) FROM d1_from AS f JOIN d1_to AS t ON (t.tenant, t.id) = (f.tenant, f.to_id)')"
    fails 'violates foreign key constraint' "$C" 'INSERT INTO d1_from (k, to_id) VALUES (5000, 5000)'
}
d1_the_remedy_by_an_ordinary_owner() {
    quiet "$C" 'CREATE ROLE d1_owner LOGIN' 'CREATE SCHEMA d1_shop AUTHORIZATION d1_owner'
    U=d1_owner distributed d1_shop.t 'id serial PRIMARY KEY, v int' "SELECT create_distributed_table('d1_shop.t', 'id')"
    U=d1_owner quiet "$C" "SELECT undistribute_table('d1_shop.t')" "CALL snowflake_migrate.run('d1_shop.t')" "SELECT create_distributed_table('d1_shop.t', 'id')"
    migrated d1_shop.t
}
d3_a_node_that_is_down() {
    distributed d3_down 'id bigserial PRIMARY KEY, v int' "SELECT create_distributed_table('d3_down', 'id')"
    down w2
    fails '.' "$C" "CALL snowflake_migrate.run('d3_down')"
    start w2
    is 'the plan has the step again' t "$(q "$C" "SELECT count(*) > 0 FROM snowflake_migrate.plan('d3_down') WHERE step IS NOT NULL")"
    quiet "$C" "CALL snowflake_migrate.run('d3_down')"
    migrated d3_down
}
# The type is changed after the sequence was dropped.
d4_integer_beside_the_distribution_column() {
    distributed d4 'tenant int DEFAULT 1, id serial, PRIMARY KEY (tenant, id)' "SELECT create_distributed_table('d4', 'tenant')"
    quiet "$C" "CALL snowflake_migrate.run('d4', 'id')"
    migrated d4
}
# The statements of the plan, by \gexec, instead of run().
d4_the_statements_of_the_plan() {
    distributed d4_plan 'tenant int DEFAULT 1, id serial, PRIMARY KEY (tenant, id)' "SELECT create_distributed_table('d4_plan', 'tenant')"
    script "$C" <<'SQL'
SELECT statement FROM snowflake_migrate.plan('d4_plan', 'id') WHERE statement IS NOT NULL ORDER BY step \gexec
SQL
    migrated d4_plan
}

# Obstacles: the remedy as printed, then the migration, then the table as it was.
remedied() { # remedied TABLE CALL
    local remedy
    if "$BIN/psql" -XqAt -h "$LAB" -p "$C" -U postgres postgres -c "CALL snowflake_migrate.run($2)" >"$LAB/error" 2>&1; then return 1; fi
    cat "$LAB/error"
    remedy=$(grep -o "SELECT undistribute_table([^)]*)" "$LAB/error" | head -n 1)
    [ -n "$remedy" ]
    quiet "$C" "$remedy" "CALL snowflake_migrate.run($2)"
}
d1_integer_distribution_column() {
    distributed d1_d 'id serial PRIMARY KEY, v int' "SELECT create_distributed_table('d1_d', 'id')"
    remedied d1_d "'d1_d'"
    quiet "$C" "SELECT create_distributed_table('d1_d', 'id')"
    migrated d1_d
}
# Shards have no identity, so it is dropped on each node as the default is set.
d1_identity() {
    local kind=(
        "SELECT create_distributed_table('d1_e0', 'id')" "SELECT create_distributed_table('d1_e1', 'v')" "SELECT create_reference_table('d1_e2')"
        "SELECT citus_add_local_table_to_metadata('d1_e3')"
    ) n
    for n in 0 1 2 3; do
        distributed "d1_e$n" 'id bigint GENERATED ALWAYS AS IDENTITY, v int DEFAULT 1, PRIMARY KEY (id, v)' "${kind[n]}"
        quiet "$C" "CALL snowflake_migrate.run('d1_e$n', 'id')"
        migrated "d1_e$n"
    done
    # Nothing is left of it that Citus misses when it makes the table anew.
    quiet "$C" "SELECT alter_distributed_table('d1_e0', shard_count := 4, cascade_to_colocated := false)"
    quiet "$W1" 'INSERT INTO d1_e0 DEFAULT VALUES'
    quiet "$C" "SELECT undistribute_table('d1_e0')" "SELECT create_distributed_table('d1_e0', 'id')"
    is 'rows' 1004 "$(q "$C" 'SELECT count(*) FROM d1_e0')"
}
d1_integer_of_a_reference_table() {
    distributed d1_f 'id serial PRIMARY KEY, v int' "SELECT create_reference_table('d1_f')"
    remedied d1_f "'d1_f'"
    quiet "$C" "SELECT create_reference_table('d1_f')"
    migrated d1_f
}
# Numbers of workers begin at their group times 2^48.
d2_numbers_that_workers_drew() {
    local port
    distributed d2 'id bigserial PRIMARY KEY, v int' "SELECT create_distributed_table('d2', 'id')"
    for port in "$W1" "$W2"; do q "$port" 'INSERT INTO d2 (v) SELECT i FROM generate_series(1, 10) AS i'; done
    is 'the highest old number' t "$(q "$C" 'SELECT max(id) > 2 * 2::bigint ^ 48 FROM d2')"
    quiet "$C" 'DELETE FROM d2 WHERE v <= 10 AND id < 1000'
    quiet "$C" "SELECT undistribute_table('d2')" "CALL snowflake_migrate.run('d2')" 'INSERT INTO d2 (v) VALUES (1)'
    is 'no finding' '' "$(q "$C" "SELECT * FROM snowflake_audit('d2')")"
    quiet "$C" "SELECT create_distributed_table('d2', 'id')"
    is 'nor when it is distributed' '' "$(q "$C" "SELECT * FROM snowflake_audit('d2')")"
    is 'old rows' 1020 "$(q "$C" "SELECT count(*) FROM d2 WHERE id < (SELECT snowflake_id_boundary('d2'))")"
}
# The same without undistributing.
d2_numbers_that_workers_drew_stay_old() {
    local port
    distributed d2_b 'id bigserial PRIMARY KEY, v int' "SELECT create_distributed_table('d2_b', 'id')"
    for port in "$W1" "$W2"; do q "$port" 'INSERT INTO d2_b (v) SELECT i FROM generate_series(1, 10) AS i'; done
    quiet "$C" "CALL snowflake_migrate.run('d2_b')" 'INSERT INTO d2_b (v) VALUES (1)'
    is 'no finding' '' "$(q "$C" "SELECT * FROM snowflake_audit('d2_b')")"
    is 'old rows' 1020 "$(q "$C" "SELECT count(*) FROM d2_b WHERE id < (SELECT snowflake_id_boundary('d2_b'))")"
}
# A local table that Citus has in its metadata, because it references a reference table.
d5_integer_of_a_local_table() {
    quiet "$C" 'CREATE TABLE d5_to (k int PRIMARY KEY)' "SELECT create_reference_table('d5_to')" 'INSERT INTO d5_to VALUES (1)'
    quiet "$C" 'CREATE TABLE d5 (id serial PRIMARY KEY, k int DEFAULT 1 REFERENCES d5_to)' 'INSERT INTO d5 SELECT FROM generate_series(1, 1000)'
    is 'it is in the metadata' 1 "$(q "$C" "SELECT count(*) FROM pg_dist_partition WHERE logicalrelid = 'd5'::regclass")"
    is 'the survey says so' t "$(q "$C" "SELECT cardinality(window_obstacles) > 0 AND cardinality(online_obstacles) > 0 FROM snowflake_migrate.survey('public') WHERE table_name = 'd5'::regclass")"
    remedied d5 "'d5'"
    quiet "$C" "SELECT create_reference_table('d5_to')"
    is 'migrated' bigint "$(type_of "$C" d5)"
    is 'default' 'snowflake_nextval()' "$(default_of "$C" d5)"
    is 'rows' 1000 "$(q "$C" "SELECT count(*) FROM d5 WHERE id < (SELECT snowflake_id_boundary('d5'))")"
}
# reverts TABLE: what revert says can be done instead, as printed.
reverts() {
    if "$BIN/psql" -XqAt -h "$LAB" -p "$C" -U postgres postgres -c "CALL snowflake_migrate.revert('$1', 'id')" >"$LAB/error" 2>&1; then return 1; fi
    has 'the error' 'which is a table of Citus' "$(cat "$LAB/error")"
}
d6_revert_of_a_column_that_has_its_sequence() {
    distributed d6_a 'tenant int DEFAULT 1, id bigserial, PRIMARY KEY (tenant, id)' "SELECT create_distributed_table('d6_a', 'tenant')"
    quiet "$C" "CALL snowflake_migrate.run('d6_a', 'id')"
    reverts d6_a
    local remedy port
    remedy=$(grep -o 'ALTER TABLE .* SET DEFAULT nextval([^)]*)' "$LAB/error")
    quiet "$C" "$remedy"
    for port in "$C" "$W1"; do q "$port" 'INSERT INTO d6_a DEFAULT VALUES'; done
    is 'rows, all of them old numbers' '1002 1002' "$(q "$C" "SELECT count(*) || ' ' || count(*) FILTER (WHERE id < 3 * 2::bigint ^ 48) FROM d6_a")"
}
d6_revert_after_distributing() {
    old_table d6_b
    quiet "$C" "SELECT create_distributed_table('d6_b', 'id')"
    reverts d6_b
    quiet "$C" "$(grep -o 'SELECT undistribute_table([^)]*)' "$LAB/error")"
    # As the hint says: a sequence above the highest old number.
    script "$C" <<'SQL'
CREATE SEQUENCE d6_b_new OWNED BY d6_b.id;
SELECT setval('d6_b_new', max(id)) FROM d6_b WHERE id < snowflake_id_boundary('d6_b') \g /dev/null
ALTER TABLE d6_b ALTER COLUMN id SET DEFAULT nextval('d6_b_new');
SELECT create_distributed_table('d6_b', 'id') \g /dev/null
SQL
    is 'the next number' 1001 "$(q "$C" 'INSERT INTO d6_b (v) VALUES (1) RETURNING id')"
}
d7_an_unfinished_online_migration() {
    quiet "$C" 'CREATE TABLE d7 (id serial PRIMARY KEY, v int)' 'INSERT INTO d7 (v) SELECT i FROM generate_series(1, 100) AS i'
    script "$C" <<'SQL'
SELECT statement FROM snowflake_migrate.plan('d7', online => true) WHERE step <= 2 ORDER BY step \gexec
SQL
    fails 'because it has triggers' "$C" "SELECT create_distributed_table('d7', 'id')"
    quiet "$C" "CALL snowflake_migrate.revert('d7')" "SELECT create_distributed_table('d7', 'id')"
}
