# shellcheck shell=bash
# shellcheck disable=SC2034
ADD_ONS=postgresql-15-partman

install() { :; }

# shellcheck source=clients/tests/pg_partman/run.sh
run() { . ./run.sh; }
