# Privileges, roles, and what has to fail.
# shellcheck shell=bash

f1_an_ordinary_role() {
    quiet "$C" 'CREATE ROLE f1_owner LOGIN' 'CREATE ROLE f1_app LOGIN' 'CREATE SCHEMA f1_shop AUTHORIZATION f1_owner' 'GRANT USAGE ON SCHEMA f1_shop TO f1_app'
    U=f1_owner quiet "$C" 'CREATE TABLE f1_shop.o (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('f1_shop.o', 'id')" \
        "SELECT snowflake_set_id_boundary('f1_shop.o', 'id', 0)" 'GRANT SELECT, INSERT ON f1_shop.o TO f1_app'
    local port
    for port in "$C" "$W1"; do
        is "on $port" 3 "$(U=f1_app q "$port" "WITH n AS (INSERT INTO f1_shop.o (v) VALUES (1), (2), (3) RETURNING id) SELECT count(*) FROM n")"
        is 'boundary' 0 "$(U=f1_app q "$port" "SELECT snowflake_id_boundary('f1_shop.o')")"
        is 'audit' '' "$(U=f1_app q "$port" "SELECT * FROM snowflake_audit('f1_shop.o')")"
    done
    is 'resolved ID' t "$(U=f1_app q "$C" "SELECT snowflake_cluster_resolved_id('10s') IS NOT NULL")"
    U=f1_owner quiet "$C" 'ALTER TABLE f1_shop.o ENABLE ROW LEVEL SECURITY' \
        "CREATE POLICY p ON f1_shop.o USING (snowflake_timestamp(id) > now() - interval '1 hour') WITH CHECK (true)"
    is 'with a policy' 6 "$(U=f1_app q "$C" 'SELECT count(*) FROM f1_shop.o')"
    is 'audit of the owner' '' "$(U=f1_owner q "$C" "SELECT * FROM snowflake_audit('f1_shop.o')")"
}
f2_revoke_reaches_one_node() {
    quiet "$C" 'CREATE ROLE f2_app LOGIN' 'CREATE TABLE f2 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('f2', 'id')" \
        'GRANT INSERT ON f2 TO f2_app' 'REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC'
    U=f2_app fails 'permission denied for function snowflake_nextval' "$C" 'INSERT INTO f2 (v) VALUES (1)'
    is 'a finding' 'nodes of Citus with different privileges: snowflake_nextval()' "$(node_findings)"
    # The page's statement.
    q "$C" "SELECT * FROM run_command_on_all_nodes('REVOKE EXECUTE ON FUNCTION snowflake_nextval() FROM PUBLIC')"
    U=f2_app fails 'permission denied for function snowflake_nextval' "$W1" 'INSERT INTO f2 (v) VALUES (1)'
    is 'no finding' '' "$(node_findings)"
    q "$C" "SELECT * FROM run_command_on_all_nodes('GRANT EXECUTE ON FUNCTION snowflake_nextval() TO PUBLIC')"
}
f3_a_column_of_a_reference_table() {
    quiet "$C" 'CREATE TABLE f3 (k int PRIMARY KEY)' "SELECT create_reference_table('f3')" 'INSERT INTO f3 SELECT generate_series(1, 3)' \
        'CREATE TABLE f3_spread (k int PRIMARY KEY)' "SELECT create_distributed_table('f3_spread', 'k')" 'INSERT INTO f3_spread SELECT generate_series(1, 1000)'
    fails 'cannot add column "id" with snowflake IDs to reference table' "$C" 'ALTER TABLE f3 ADD COLUMN id bigint DEFAULT snowflake_nextval()'
    is 'no column on any node' '0 0 0' "$(on_nodes "SELECT count(*) FROM pg_attribute WHERE attrelid = 'f3'::regclass AND attname = 'id'")"
    quiet "$C" 'ALTER TABLE f3_spread ADD COLUMN id bigint DEFAULT snowflake_nextval()'
    is 'distributed' 1000 "$(q "$C" 'SELECT count(DISTINCT id) FROM f3_spread')"
    # What the hint says.
    quiet "$C" 'ALTER TABLE f3 ADD COLUMN id bigint' 'ALTER TABLE f3 ADD COLUMN other bigint'
    script "$C" <<'SQL'
SELECT format('UPDATE f3 SET id = %s WHERE k = %s', snowflake_nextval(), k) FROM f3 \gexec
SQL
    quiet "$C" 'ALTER TABLE f3 ALTER COLUMN id SET DEFAULT snowflake_nextval()' 'INSERT INTO f3 (k) VALUES (4), (5)' 'INSERT INTO f3 (k) SELECT k + 100 FROM f3_spread WHERE k < 4'
    local found
    found=$(on_nodes "SELECT md5(string_agg(id::text, ',' ORDER BY k)) FROM f3" | tr ' ' '\n' | sort -u | grep -c .)
    is 'the same rows on all nodes' 1 "$found"
    is 'distinct' '8 8' "$(q "$C" "SELECT count(*) || ' ' || count(DISTINCT id) FROM f3")"
}
e2_an_owner_who_may_not_log_in() {
    quiet "$C" 'CREATE ROLE e2_owner' 'CREATE SCHEMA e2_own' 'GRANT USAGE, CREATE ON SCHEMA e2_own TO e2_owner' 'CREATE TABLE e2_own.t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('e2_own.t', 'id')" \
        'INSERT INTO e2_own.t (v) VALUES (1)' 'ALTER TABLE e2_own.t OWNER TO e2_owner'
    has 'the answer' '^not audited: Citus cannot connect to its nodes as role "e2_owner"' "$(q "$C" "SELECT finding FROM snowflake_audit_tables('e2_own') WHERE table_name = 'e2_own.t'::regclass")"
    quiet "$C" 'ALTER ROLE e2_owner LOGIN'
    is 'audited' '' "$(q "$C" "SELECT finding FROM snowflake_audit_tables('e2_own') WHERE table_name = 'e2_own.t'::regclass AND finding LIKE 'not audited%'")"
}
f4_currval() {
    quiet "$C" 'CREATE TABLE f4 (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int)' "SELECT create_distributed_table('f4', 'id')"
    is 'RETURNING' t "$(q "$C" 'INSERT INTO f4 (v) VALUES (1) RETURNING id = snowflake_currval()' 2>/dev/null || q "$C" BEGIN 'INSERT INTO f4 (v) VALUES (1)' 'SELECT snowflake_currval() > 0' COMMIT)"
}
