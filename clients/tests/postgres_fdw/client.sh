# shellcheck shell=bash
install() { :; }

# shellcheck source=clients/tests/postgres_fdw/run.sh
run() { . ./run.sh; }
