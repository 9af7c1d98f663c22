#!/bin/bash
# For /docker-entrypoint-initdb.d: creates the extension in the image's database,
# and in template1 so that databases created later have it, too. It runs once,
# when the data directory is new.
set -eu

for database in template1 "${POSTGRES_DB:-${POSTGRES_USER:-postgres}}"; do
    psql -v ON_ERROR_STOP=1 --no-password --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname "$database" \
        -c 'CREATE EXTENSION IF NOT EXISTS snowflake'
done
