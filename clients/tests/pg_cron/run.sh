# Jobs that pg_cron runs, in background workers: one deletes by the key, one inserts.
# shellcheck shell=bash
superuser 'CREATE EXTENSION pg_cron'
printf 'pg_cron %s\n' "$(superuser "SELECT extversion FROM pg_extension WHERE extname = 'pg_cron'")" >"$OUT/version"
superuser 'CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)' \
    "INSERT INTO events SELECT snowflake_compose(now() - n * interval '1 day', 1, 0, 0), 'old' FROM generate_series(1, 100) AS n" \
    "$(cat job.sql)" >"$OUT/jobs"
superuser "SELECT cron.schedule('new events', '* * * * *', 'INSERT INTO events (note) SELECT \$\$new\$\$ FROM generate_series(1, 10000)')" >>"$OUT/jobs"
# Each job once, at the next minute.
superuser "UPDATE cron.job SET schedule = '* * * * *'"
for _ in $(seq 130); do
    done=$(superuser "SELECT count(DISTINCT jobid) FROM cron.job_run_details WHERE status IN ('succeeded', 'failed')")
    [ "$done" -lt 2 ] || break
    sleep 0.5
done
superuser "SELECT cron.unschedule(jobid) FROM cron.job" >>"$OUT/jobs"
expect 'succeeded' "$(superuser "SELECT string_agg(DISTINCT status, ', ') FROM cron.job_run_details")" 'status of both jobs'
expect '89' "$(superuser "SELECT count(*) FROM events WHERE note = 'old' AND id >= snowflake_min_id(now() - interval '90 days')")" 'events of the last 90 days'
expect '0' "$(superuser "SELECT count(*) FROM events WHERE id < snowflake_min_id(now() - interval '90 days 5 minutes')")" 'older events'
expect 't' "$(superuser "SELECT count(*) >= 10000 AND count(*) = count(DISTINCT id) FROM events WHERE note = 'new'")" 'events of a job, all with IDs of their own'
superuser 'SELECT count(*) || $$ IDs, $$ || count(*) - count(DISTINCT id) || $$ duplicates$$ FROM events' >"$OUT/checked"
