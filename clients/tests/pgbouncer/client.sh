# shellcheck shell=bash
install() {
    need_packages libevent-2.1-7 libc-ares2
    debian_program pgbouncer usr/sbin/pgbouncer
}

# shellcheck source=clients/tests/pgbouncer/run.sh
run() { . ./run.sh; }
