SELECT cron.schedule('old events', '*/10 * * * *',
    $$DELETE FROM events WHERE id >= snowflake_id_boundary('events') AND id < snowflake_min_id(now() - interval '90 days')$$);
