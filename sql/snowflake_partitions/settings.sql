-- The settings of tables, which their owners write by SQL.
--
-- Row security would serve as well, but pg_dump includes the policies of an extension's
-- tables, and a restored dump would fail to create them again. So a trigger checks each
-- row. PostgreSQL's privileges to read are not restricted: the rows tell no more of a
-- table than its partitions in the catalog do.
CREATE TABLE snowflake_partitions_internal.settings (
    parent regclass PRIMARY KEY,
    step interval NOT NULL,
    time_zone text NOT NULL,
    ahead interval NOT NULL,
    keep interval,
    -- Of the last call that maintained the table. Errors are told by their code only:
    -- their texts can have values of rows.
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    succeeded_at timestamp with time zone,
    kept integer,
    error_code text CHECK (pg_catalog.length(error_code) OPERATOR(pg_catalog.=) 5),
    CONSTRAINT settings_step_is_a_minute CHECK (pg_catalog.isfinite(step) AND step OPERATOR(pg_catalog.>=) '1 minute'::pg_catalog.interval),
    CONSTRAINT settings_ahead_is_not_negative CHECK (pg_catalog.isfinite(ahead) AND ahead OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval),
    CONSTRAINT settings_keep_is_not_negative CHECK (pg_catalog.isfinite(keep) AND keep OPERATOR(pg_catalog.>=) '0'::pg_catalog.interval),
    CONSTRAINT settings_ahead_is_at_most_2000_steps CHECK (
        pg_catalog.date_part('epoch', ahead) OPERATOR(pg_catalog.<=) (2000 OPERATOR(pg_catalog.*) pg_catalog.date_part('epoch', step)))
) USING heap WITH (fillfactor = 50);
COMMENT ON TABLE snowflake_partitions_internal.settings
    IS 'How tables are partitioned, as set by snowflake_partitions.configure(); shown by snowflake_partitions.settings';
COMMENT ON COLUMN snowflake_partitions_internal.settings.parent IS 'Partitioned table';
COMMENT ON COLUMN snowflake_partitions_internal.settings.step IS 'Time that each partition spans';
COMMENT ON COLUMN snowflake_partitions_internal.settings.time_zone IS 'Time zone in whose calendar steps are counted';
COMMENT ON COLUMN snowflake_partitions_internal.settings.ahead IS 'For how long from now partitions are created';
COMMENT ON COLUMN snowflake_partitions_internal.settings.keep IS 'For how long a partition is kept after its end; NULL: for ever';
COMMENT ON COLUMN snowflake_partitions_internal.settings.started_at IS 'Time at which maintain() last began with the table';
COMMENT ON COLUMN snowflake_partitions_internal.settings.ended_at IS 'Time at which it ended';
COMMENT ON COLUMN snowflake_partitions_internal.settings.succeeded_at IS 'Time at which a call last ended without an error';
COMMENT ON COLUMN snowflake_partitions_internal.settings.kept IS 'Partitions that this call kept although they were due; NULL if unknown';
COMMENT ON COLUMN snowflake_partitions_internal.settings.error_code IS 'SQLSTATE of its first error; NULL if there was none';

-- Only the owner of a table writes its row. A row whose table is gone can be deleted by
-- all roles: a later table with the same OID must not inherit it.
CREATE FUNCTION snowflake_partitions_internal.check_settings()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relation record;
BEGIN
    -- Rows of other servers: a publication FOR ALL TABLES includes this table, and an OID
    -- is another table's here.
    IF (SELECT a.backend_type LIKE 'logical replication%' FROM pg_stat_get_activity(pg_backend_pid()) AS a) THEN
        RETURN NULL;
    END IF;
    FOR relation IN
        SELECT t.oid, c.relname, c.relowner, c.relkind
        FROM (SELECT NEW.parent AS oid WHERE TG_OP <> 'DELETE' UNION SELECT OLD.parent WHERE TG_OP <> 'INSERT') AS t
        LEFT JOIN pg_class AS c ON c.oid = t.oid
    LOOP
        IF relation.relname IS NULL AND TG_OP = 'UPDATE' AND NEW.parent = OLD.parent THEN
            -- Dropped while maintain() runs.
            RETURN NULL;
        ELSIF relation.relname IS NULL AND TG_OP <> 'DELETE' THEN
            PERFORM snowflake_internal.refuse('42P01', format('relation with OID %s does not exist', relation.oid::oid));
        ELSIF NOT pg_has_role(relation.relowner, 'USAGE') THEN
            PERFORM snowflake_internal.refuse('42501', format('must be owner of table %s', relation.relname));
        END IF;
    END LOOP;
    IF TG_OP = 'DELETE' THEN
        RETURN OLD;
    ELSIF TG_OP = 'UPDATE' AND (NEW.parent, NEW.step, NEW.time_zone, NEW.ahead, NEW.keep)
                               IS NOT DISTINCT FROM (OLD.parent, OLD.step, OLD.time_zone, OLD.ahead, OLD.keep) THEN
        -- What maintain() keeps. A time zone may be gone since.
        RETURN NEW;
    END IF;
    -- These reject other tables, and an unknown time zone.
    PERFORM snowflake_partitions_internal.key_of(NEW.parent);
    BEGIN
        PERFORM now() AT TIME ZONE NEW.time_zone;
    EXCEPTION WHEN invalid_parameter_value THEN
        PERFORM snowflake_internal.refuse('22023', SQLERRM);
    END;
    RETURN NEW;
END
$function$;

CREATE FUNCTION snowflake_partitions_internal.check_truncate()
RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = current_user) THEN
        PERFORM snowflake_internal.refuse('42501', 'permission denied for tables of the extension',
            hint => 'Use snowflake_partitions.forget() for a table.');
    END IF;
    RETURN NULL;
END
$function$;

-- Also in the replica role, in which a superuser may restore a dump.
CREATE TRIGGER check_settings BEFORE INSERT OR UPDATE OR DELETE ON snowflake_partitions_internal.settings
    FOR EACH ROW EXECUTE FUNCTION snowflake_partitions_internal.check_settings();
CREATE TRIGGER check_truncate BEFORE TRUNCATE ON snowflake_partitions_internal.settings
    FOR EACH STATEMENT EXECUTE FUNCTION snowflake_partitions_internal.check_truncate();
ALTER TABLE snowflake_partitions_internal.settings ENABLE ALWAYS TRIGGER check_settings, ENABLE ALWAYS TRIGGER check_truncate;
