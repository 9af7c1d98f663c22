# 20 clients behind PgBouncer, whose IDs are compared with the rows.
# shellcheck shell=bash

program=$(debian_program pgbouncer usr/sbin/pgbouncer)
"$program" --version | sed -n 's/^/ /;1s/^ //p' >"$OUT/version"
port=$(free_port)
work=$(mktemp -d "${TMPDIR:-/tmp}/pgbouncer.XXXXXX")
chmod 755 "$work"
if is_root; then chown postgres "$work"; fi
{
    printf '[databases]\n'
    printf '%s = host=%s port=%s dbname=%s %s\n' \
        transactions "$PGHOST" "$PGPORT" "$PGDATABASE" '' \
        sessions "$PGHOST" "$PGPORT" "$PGDATABASE" 'pool_mode=session pool_size=20' \
        single "$PGHOST" "$PGPORT" "$PGDATABASE" 'pool_size=1'
    cat pgbouncer.ini
    # So that statements meet other sessions often.
    printf 'pidfile = %s/pid\n' "$work"
    printf 'listen_addr = 127.0.0.1\nlisten_port = %s\nauth_file = %s/users\nunix_socket_dir =\nserver_round_robin = 1\nmin_pool_size = 4\n' "$port" "$work"
} >"$work/pgbouncer.ini"
printf '"app" "app"\n' >"$work/users"
as_postgres "$program" -q "$work/pgbouncer.ini" &
pooler=$!
trap 'kill "$(cat "$work/pid")"; wait "$pooler" || :; rm -rf "$work"' EXIT

# through DATABASE PROGRAM...: by way of PgBouncer.
through() {
    local database=$1
    shift
    PGPORT=$port PGDATABASE=$database "$@"
}
ask() { through "$1" "$BINDIR/psql" -X -q -A -t -v ON_ERROR_STOP=1 -c "$2"; }
for _ in $(seq 50); do
    ask transactions 'SELECT 1' >"$work/out" 2>&1 && break
    sleep 0.1
done

ask transactions 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), token bigint UNIQUE)'
ask transactions 'CREATE TABLE seen (way text, id bigint, token bigint)'
bench() { through "$1" "$BINDIR/pgbench" -n -M "$3" -c 20 -j 2 -t "$4" -f "$2.sql" >"$work/bench" 2>&1 || { cat "$work/bench"; return 1; }; }
wrong() {
    superuser "SELECT count(*) FILTER (WHERE o.id IS DISTINCT FROM s.id) || ' of ' || count(*)
               FROM seen AS s LEFT JOIN orders AS o USING (token) WHERE way = '$1'"
}

bench transactions returning simple 500
expect '0 of 10000' "$(wrong returning)" 'transaction mode, INSERT ... RETURNING, IDs of other rows'
bench transactions before extended 200
expect '0 of 4000' "$(wrong before)" 'transaction mode, SELECT snowflake_nextval() and then an INSERT, IDs of other rows'
bench transactions transaction simple 200
expect '0 of 4000' "$(wrong transaction)" 'transaction mode, snowflake_currval() in the same transaction, IDs of other rows'
bench transactions currval simple 200
found=$(wrong currval)
[[ $found == *" of 4000" && ${found%% *} -gt 100 ]] && result=ok || result=failed
check "$result" "transaction mode, snowflake_currval() in a statement of its own, IDs of other rows: $found"

superuser 'TRUNCATE seen'
bench sessions returning prepared 200
expect '0 of 4000' "$(wrong returning)" 'session mode, INSERT ... RETURNING, IDs of other rows'
bench sessions currval simple 200
expect '0 of 4000' "$(wrong currval)" 'session mode, snowflake_currval(), IDs of other rows'
superuser 'SELECT count(*) || $$ IDs, $$ || count(*) - count(DISTINCT id) || $$ duplicates$$ FROM orders' >"$OUT/checked"

# A setting stays in the connection to the server, for the next client.
ask single "SET snowflake.max_wait = '7s'"
expect 7s "$(ask single 'SHOW snowflake.max_wait')" 'after SET, another client has snowflake.max_wait'
superuser "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app' AND datname = current_database()" >"$work/out"
ask single "BEGIN; SET LOCAL snowflake.max_wait = '7s'; SELECT snowflake_nextval(); COMMIT" >"$work/out"
default=$(superuser 'SHOW snowflake.max_wait')
expect "$default" "$(ask single 'SHOW snowflake.max_wait')" 'after SET LOCAL, another client has snowflake.max_wait'
superuser "ALTER ROLE app IN DATABASE \"$PGDATABASE\" SET snowflake.max_wait = '3s'"
superuser "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = 'app' AND datname = current_database()" >"$work/out"
expect 3s "$(ask single 'SHOW snowflake.max_wait')" 'after ALTER ROLE, every client has snowflake.max_wait'
