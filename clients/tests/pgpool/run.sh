# pgpool-II before a primary server and a standby.
# shellcheck shell=bash
program=$(debian_program pgpool2 usr/sbin/pgpool)
"$program" --version 2>&1 | sed -n 's/^pgpool-II version \([0-9.]*\).*/pgpool-II \1/p' >"$OUT/version"
work=$(mktemp -d "${TMPDIR:-/tmp}/pgpool.XXXXXX")
if is_root; then chown postgres "$work"; fi
chmod 755 "$work"
read -r primary standby port control < <(echo "$(free_port)" "$(free_port)" "$(free_port)" "$(free_port)")

server() { as_postgres env -u PGDATABASE "$BINDIR/pg_ctl" -D "$work/$1" -w -l "$work/$1.log" "${@:2}" >>"$work/out" 2>&1; }
clean_up_pgpool() {
    as_postgres "$program" -n -f "$work/pgpool.conf" -F "$work/pcp.conf" -m immediate stop || :
    server standby -m immediate stop || :
    server primary -m immediate stop || :
    rm -rf "$work"
}
trap clean_up_pgpool EXIT
as_postgres "$BINDIR/initdb" -D "$work/primary" -U postgres --auth=trust --no-sync >"$work/out"
options="-c fsync=off -c shared_preload_libraries=snowflake -c listen_addresses=127.0.0.1 -c unix_socket_directories=$work"
server primary -o "$options -c snowflake.node_id=1 -p $primary" start
as_postgres env -u PGDATABASE "$BINDIR/pg_basebackup" -h 127.0.0.1 -p "$primary" -U postgres -D "$work/standby" -R --no-sync -c fast
server standby -o "$options -c snowflake.node_id=2 -p $standby" start

{
    cat pgpool.conf
    printf '%s\n' "listen_addresses = '127.0.0.1'" "port = $port" "socket_dir = '$work'" "pcp_port = $control" "pcp_socket_dir = '$work'" \
        "pid_file_name = '$work/pgpool.pid'" "logdir = '$work'" "num_init_children = 40" "sr_check_user = 'postgres'" "sr_check_period = 1" \
        "backend_hostname0 = '127.0.0.1'" "backend_port0 = $primary" "backend_weight0 = 1" "backend_data_directory0 = '$work/primary'" \
        "backend_hostname1 = '127.0.0.1'" "backend_port1 = $standby" "backend_weight1 = 9" "backend_data_directory1 = '$work/standby'"
} >"$work/pgpool.conf"
touch "$work/pcp.conf"
as_postgres "$program" -n -f "$work/pgpool.conf" -F "$work/pcp.conf" >"$work/pgpool.log" 2>&1 &

at() {
    local port=$1
    shift
    PGPORT=$port PGUSER=postgres PGDATABASE=postgres "$@"
}
ask() { at "$1" "$BINDIR/psql" -X -q -A -t -v ON_ERROR_STOP=1 -c "$2"; }
ask "$primary" 'CREATE EXTENSION snowflake'
ask "$primary" 'CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), token bigint UNIQUE)'
ask "$primary" 'CREATE TABLE seen (id bigint, token bigint)'
for _ in $(seq 100); do
    [ "$(ask "$port" 'SELECT 1' 2>>"$work/out")" != 1 ] || break
    sleep 0.1
done
on_standby() { ask "$port" "SELECT current_setting('snowflake.node_id')" | grep -c 2 || :; }
balanced=0
for _ in $(seq 20); do balanced=$((balanced + $(on_standby))); done
[ "$balanced" -gt 5 ] && result=ok || result=failed
check "$result" "reading statements that pgpool sends to the standby: $balanced of 20"

bench() { at "$port" "$BINDIR/pgbench" -n -M "$2" -c 20 -j 2 -t 100 -f "$1.sql" >"$work/bench" 2>&1; }
for mode in simple extended; do
    if bench nextval "$mode"; then result=ok; else result=failed; fi
    check "$result" "20 clients call snowflake_nextval() in SELECT, $mode: $(grep -o 'ERROR.*' "$work/bench" | head -n 1)"
    if bench returning "$mode"; then result=ok; else result=failed; fi
    check "$result" "20 clients INSERT ... RETURNING, $mode: $(grep -o 'ERROR.*' "$work/bench" | head -n 1)"
done
expect '0 of 4000' "$(ask "$primary" "SELECT count(*) FILTER (WHERE o.id IS DISTINCT FROM s.id) || ' of ' || count(*) FROM seen AS s LEFT JOIN orders AS o USING (token)")" \
    'IDs of other rows'
expect '8000 8000 {1}' "$(ask "$primary" 'SELECT count(*) || $$ $$ || count(DISTINCT id) || $$ $$ || array_agg(DISTINCT snowflake_node_id(id))::text FROM orders')" \
    'IDs, distinct IDs and nodes: all are the primary server'"'"'s'
ask "$primary" 'SELECT count(*) || $$ IDs, $$ || count(*) - count(DISTINCT id) || $$ duplicates$$ FROM orders' >"$OUT/checked"
