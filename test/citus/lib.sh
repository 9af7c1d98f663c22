# For scripts/test-citus and its tests: a cluster of Citus on loopback; to be sourced.
# shellcheck shell=bash disable=SC2034

# Coordinator, workers, a worker that joins later, a single machine, and a proxy.
free_ports() {
    python3 -c 'import socket
s = [socket.socket() for _ in range(6)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))'
}
read -r C W1 W2 W3 S PROXY < <(free_ports)

as_postgres() { if is_root; then (cd / && exec runuser -u postgres -- "$@"); else "$@"; fi; }

# init NAME PORT SETTING...: a server of Citus.
init() {
    local name=$1 port=$2
    shift 2
    mkdir -p "$LAB/$name"
    if is_root; then chown postgres "$LAB" "$LAB/$name"; fi
    as_postgres "$BIN/initdb" -D "$LAB/$name" -U postgres -A trust --no-sync -E UTF8 --locale=C.UTF-8 >/dev/null
    printf '%s\n' "listen_addresses='127.0.0.1'" "unix_socket_directories='$LAB'" "port=$port" "shared_preload_libraries='citus,snowflake'" \
        max_connections=150 max_prepared_transactions=150 wal_level=logical fsync=off jit=off "output_plugin_libraries='citus, pgoutput'" \
        citus.enable_statistics_collection=off citus.shard_count=8 "citus.node_conninfo='sslmode=disable'" max_worker_processes=32 \
        max_wal_senders=20 max_replication_slots=20 "timezone='UTC'" citus.recover_2pc_interval=-1 \
        citus.metadata_sync_interval=1h citus.metadata_sync_retry_interval=1h statement_timeout=120s "$@" |
        as_postgres tee -a "$LAB/$name/postgresql.conf" >/dev/null
}
start() {
    local name
    for name; do
        as_postgres "$BIN/pg_ctl" -D "$LAB/$name" -l "$LAB/$name.log" -w -t 60 start >/dev/null </dev/null || {
            tail -n 5 "$LAB/$name.log"
            return 1
        }
    done
}
down() {
    local name
    for name; do
        [ ! -f "$LAB/$name/postmaster.pid" ] || as_postgres "$BIN/pg_ctl" -D "$LAB/$name" -m fast -w stop >/dev/null
    done
}

# q PORT SQL...: answers, unaligned; an error ends the test unless it is expected. U and D are
# the role and the database.
q() {
    local port=$1 options=() statement
    shift
    for statement; do options+=(-c "$statement"); done
    "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$LAB" -p "$port" -U "${U:-postgres}" -d "${D:-postgres}" "${options[@]}"
}
# quiet PORT SQL...: without the answers and the notices.
quiet() { PGOPTIONS='-c client_min_messages=warning' q "$@" >/dev/null; }
# script PORT: the statements of its input.
script() { "$BIN/psql" -X -q -A -t -v ON_ERROR_STOP=1 -h "$LAB" -p "$1" -U "${U:-postgres}" -d "${D:-postgres}" -f -; }
# fails PATTERN PORT SQL...: the statements fail with such a text.
fails() {
    local pattern=$1 answer
    shift
    if answer=$(PGOPTIONS='-c client_min_messages=warning' q "$@" 2>&1); then
        printf 'no error: %s\n' "$*" "$answer"
        : >"$LAB/failed"
    elif ! grep -qE "$pattern" <<<"$answer"; then
        printf 'expected: %s\nfound:    %s\n' "$pattern" "$answer"
        : >"$LAB/failed"
    fi
}
# is WHAT EXPECTED FOUND: a check. The test continues, and fails at its end.
is() {
    if [ "$2" = "$3" ]; then
        printf 'ok: %s\n' "$1"
    else
        printf 'NOT: %s\nexpected: %s\nfound:    %s\n' "$1" "$2" "$3"
        : >"$LAB/failed"
    fi
}
# has WHAT PATTERN TEXT, lacks WHAT PATTERN TEXT: the same of a line of a text.
has() { if grep -E -- "$2" <<<"$3" >/dev/null; then printf 'ok: %s\n' "$1"; else is "$1" "$2" "$3"; fi; }
lacks() { if grep -E -- "$2" <<<"$3" >/dev/null; then is "$1" "no line with $2" "$3"; fi; }
# figure TEXT: what is printed also if the test passes.
figure() { printf 'figure: %s\n' "$*"; }
# on_nodes SQL: what each node answers, in the order of the ports C, W1, W2.
on_nodes() {
    local port
    for port in "$C" "$W1" "$W2"; do q "$port" "$1"; done | paste -sd' '
}
# restored: all nodes are started, with their own settings; after a test that failed.
restored() {
    local name
    for name in c w1 w2; do
        if grep '^# planted$' "$LAB/$name/postgresql.conf" >/dev/null; then
            sed -i '/^# planted$/,$d' "$LAB/$name/postgresql.conf"
            down "$name"
        fi
        [ -f "$LAB/$name/postmaster.pid" ] || start "$name"
    done
    quiet "$C" "SELECT citus_update_node(nodeid, '127.0.0.1', $W1) FROM pg_dist_node WHERE nodeport = $PROXY"
    recovered
}

# Coordinator and workers with the numbers 1, 2, 3. Both extensions are created on the
# coordinator only.
cluster() {
    init c "$C" snowflake.node_id=1
    init w1 "$W1" snowflake.node_id=2
    init w2 "$W2" snowflake.node_id=3
    start c w1 w2
    local port
    for port in "$C" "$W1" "$W2"; do quiet "$port" 'CREATE EXTENSION citus'; done
    quiet "$C" "SELECT citus_set_coordinator_host('127.0.0.1', $C)" "SELECT citus_add_node('127.0.0.1', $W1)" "SELECT citus_add_node('127.0.0.1', $W2)" \
        'CREATE EXTENSION snowflake' 'CREATE EXTENSION snowflake_migrate' 'CREATE EXTENSION snowflake_partitions' 'CREATE EXTENSION citus_columnar'
}

# recovered: what is prepared is committed, and the nodes have the coordinator's metadata, which
# the daemon of Citus would see to a minute later.
recovered() { quiet "$C" 'SELECT recover_prepared_transactions()' 'SELECT start_metadata_sync_to_all_nodes()'; }

# with_proxy SECONDS COMMAND...: while worker 1 is reached through a proxy that holds COMMIT
# PREPARED for so long, or with -1 closes the connection.
with_proxy() {
    local seconds=$1 pid status=0
    shift
    python3 "$ROOT/test/citus/proxy.py" "$PROXY" "$W1" "$seconds" &
    pid=$!
    until (: >"/dev/tcp/127.0.0.1/$PROXY") 2>/dev/null; do sleep 0.05; done
    quiet "$C" "SELECT citus_update_node(nodeid, '127.0.0.1', $PROXY) FROM pg_dist_node WHERE nodeport = $W1"
    "$@" || status=$?
    kill "$pid"
    wait "$pid" 2>/dev/null || :
    quiet "$C" "SELECT citus_update_node(nodeid, '127.0.0.1', $W1) FROM pg_dist_node WHERE nodeport = $PROXY"
    return "$status"
}
