-- Warns if this server cannot generate IDs yet, with instructions.
DO $do$
BEGIN
    IF current_setting('server_version_num')::integer < 170000 AND NOT (SELECT s.preloaded FROM snowflake_internal.get_status() AS s) THEN
        RAISE WARNING 'the extension snowflake can decode IDs, but not generate them yet'
            USING DETAIL = 'The library "snowflake" is not in shared_preload_libraries.',
                  HINT = 'To generate IDs, add these lines to postgresql.conf and restart the server: shared_preload_libraries = ''snowflake'' (after a comma where other libraries are listed), and snowflake.node_id = 0 (another number on each server). To read IDs, and to widen keys that keep their sequences, nothing is needed.';
    ELSIF (SELECT s.node_id IS NULL FROM snowflake_internal.get_status() AS s) THEN
        RAISE WARNING 'the extension snowflake can decode IDs, but not generate them yet'
            USING DETAIL = 'snowflake.node_id is not set.',
                  HINT = CASE WHEN (SELECT s.preloaded FROM snowflake_internal.get_status() AS s)
                         THEN 'To generate IDs, add snowflake.node_id = 0 (another number on each server) to postgresql.conf and restart the server.'
                         ELSE 'To generate IDs, a superuser runs ALTER SYSTEM SET snowflake.node_id = 0 (another number on each server), then SELECT pg_reload_conf().'
                         END || ' To read IDs, and to widen keys that keep their sequences, nothing is needed.';
    END IF;
END
$do$;
