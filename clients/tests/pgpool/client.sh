# shellcheck shell=bash
install() {
    need_packages libmemcached11
    debian_program pgpool2 usr/sbin/pgpool
}

# shellcheck source=clients/tests/pgpool/run.sh
run() { . ./run.sh; }
