-- pg_repack: a guard that takes its trigger for one that harms the table.
CREATE FUNCTION refuse_triggers() RETURNS event_trigger LANGUAGE plpgsql
AS 'BEGIN PERFORM 1 / count(*) FILTER (WHERE object_identity NOT LIKE ''repack_trigger %'') FROM pg_event_trigger_ddl_commands(); END';
CREATE EVENT TRIGGER refuse_triggers ON ddl_command_end WHEN tag IN ('CREATE TRIGGER') EXECUTE FUNCTION refuse_triggers();
