# Partitions of a day each, which pg_partman makes.
# shellcheck shell=bash

# The days are counted from today.
[ "$(date -u +%H%M)" != 2359 ] || sleep 61
superuser 'CREATE SCHEMA partman' 'CREATE EXTENSION pg_partman SCHEMA partman' "SET TimeZone = 'Asia/Kolkata'" "$(cat create.sql)"
printf 'pg_partman %s\n' "$(superuser "SELECT extversion FROM pg_extension WHERE extname = 'pg_partman'")" >"$OUT/version"

# 100,000 IDs of the ten days before today, as sessions on other servers could
# have generated them.
superuser "INSERT INTO events
    SELECT snowflake_compose(date_trunc('day', now(), 'UTC') - interval '10 days' + n * interval '10 days' / 100000, n % 64, n % 16, n % 4096), 'past'
    FROM generate_series(0, 99999) AS n"
# Each partition has the IDs of one day, and all of them.
days="SELECT tableoid::regclass AS part, count(*) AS rows, count(DISTINCT date_trunc('day', snowflake_timestamp(id), 'UTC')) AS days
      FROM events WHERE note = 'past' GROUP BY 1"
expect '10 10000 1' "$(superuser "SELECT count(*) || ' ' || min(rows) || ' ' || max(days) FROM ($days) AS p WHERE rows = 10000 AND days = 1")" \
    'partitions with 10,000 IDs of one day each'
expect 0 "$(superuser 'SELECT count(*) FROM events_default')" 'IDs in the default partition'
superuser "INSERT INTO events (note) SELECT 'today' FROM generate_series(1, 10000)"
expect 1 "$(superuser "SELECT count(DISTINCT tableoid) FROM events WHERE note = 'today'")" 'partitions with the IDs that were generated today'
expect 110000 "$(superuser 'SELECT count(DISTINCT id) FROM events')" 'distinct IDs'
superuser 'SELECT count(*) || $$ IDs, $$ || count(*) - count(DISTINCT id) || $$ duplicates$$ FROM events' >"$OUT/checked"

# A query of one day reads one partition.
plan=$(superuser "EXPLAIN (COSTS off) SELECT * FROM events
    WHERE id >= snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '3 days') AND id < snowflake_min_id(date_trunc('day', now(), 'UTC') - interval '2 days')")
expect 15 "$(grep -o 'Subplans Removed: [0-9]*' <<<"$plan" | grep -o '[0-9]*$')" 'partitions that a query of one day does not read'

# Maintenance makes the partitions of the next days, and drops those of a week ago.
ahead() { superuser "SELECT count(*) FROM partman.show_partitions('public.events') WHERE split_part(partition_tablename, '_p', 2)::bigint > snowflake_max_id(now())"; }
expect 4 "$(ahead)" 'partitions of later days'
superuser "INSERT INTO events VALUES (snowflake_compose(now() + interval '2 days', 0, 0, 0), 'later')" 'CALL partman.run_maintenance_proc()'
expect 6 "$(ahead)" 'partitions of later days, after maintenance with an ID two days ahead'
superuser "DELETE FROM events WHERE note = 'later'" \
    "UPDATE partman.part_config SET retention = (7 * 86400000::bigint << 22)::text, retention_keep_table = false WHERE parent_table = 'public.events'" \
    'CALL partman.run_maintenance_proc()'
expect 7 "$(superuser "SELECT count(DISTINCT tableoid) FROM events WHERE note = 'past'")" 'days before today that are left with a retention of 7 days'

# The same with p_epoch.
superuser 'CREATE TABLE trapped (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text) PARTITION BY RANGE (id)' \
    "SELECT partman.create_parent('public.trapped', 'id', 'native', 'daily', p_epoch => 'milliseconds')" \
    "INSERT INTO trapped (note) SELECT 'today' FROM generate_series(1, 1000)" >"$OUT/trap"
expect 1000 "$(superuser 'SELECT count(*) FROM trapped_default')" 'with p_epoch => milliseconds, of 1,000 IDs in the default partition'
