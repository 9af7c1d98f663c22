# shellcheck shell=bash
# shellcheck disable=SC2034
ADD_ONS=postgresql-15-cron PRELOAD=pg_cron
# shellcheck disable=SC2034
SETTINGS="cron.database_name = pg_cron
cron.use_background_workers = on
"

install() { :; }

# shellcheck source=clients/tests/pg_cron/run.sh
run() { . ./run.sh; }
