-- What one call does. Each action is a transaction of its own, which locks the parent for a
-- moment: who waits for ACCESS EXCLUSIVE holds up all that wait behind it. So each waits for a
-- short time, and is repeated later. What was decided before is looked at again under the lock:
-- settings may have changed, and another call may have done it.

-- Removes the settings of tables that were dropped: a later one may get the OID.
CREATE FUNCTION snowflake_partitions_internal.forget_dropped()
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    DELETE FROM snowflake_partitions_internal.settings AS s
    WHERE s.parent IN (SELECT d.parent FROM snowflake_partitions_internal.settings AS d
                       WHERE NOT EXISTS (SELECT FROM pg_class AS c WHERE c.oid = d.parent) FOR UPDATE SKIP LOCKED);
END
$function$;

-- The tables that a call maintains. The caller must have the privileges of the owner of a
-- table that is named; otherwise tables without these are left out. A table that refers to
-- others precedes them, because their rows can only be dropped after its own. A table with
-- which the last call has not come to an end is the last.
CREATE FUNCTION snowflake_partitions_internal.targets(parent regclass)
RETURNS regclass[] LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    targets regclass[];
BEGIN
    IF parent IS NOT NULL THEN
        PERFORM snowflake_partitions_internal.require_settings(parent);
        RETURN ARRAY[parent];
    END IF;
    targets := ARRAY(
        WITH RECURSIVE above (oid, referenced) AS (
            SELECT k.conrelid, k.confrelid FROM pg_constraint AS k WHERE k.contype = 'f' AND k.conparentid = 0
          UNION
            SELECT a.oid, k.confrelid FROM above AS a JOIN pg_constraint AS k ON k.conrelid = a.referenced
            WHERE k.contype = 'f' AND k.conparentid = 0
        )
        SELECT s.parent
        FROM snowflake_partitions_internal.settings AS s
        JOIN pg_class AS c ON c.oid = s.parent AND c.relkind = 'p' AND c.relpersistence <> 't'
        WHERE pg_has_role(c.relowner, 'USAGE')
        ORDER BY s.started_at IS NOT NULL AND (s.ended_at IS NULL OR s.ended_at < s.started_at),
                 (SELECT count(*) FROM above AS a WHERE a.oid = s.parent) DESC, s.parent);
    IF targets = '{}' THEN
        RAISE WARNING 'no table is maintained'
            USING DETAIL = 'No table with settings has an owner whose privileges you have.',
                  HINT = 'Call snowflake_partitions.configure(), or run this as a superuser or a member of the owners.';
    END IF;
    RETURN targets;
END
$function$;

CREATE FUNCTION snowflake_partitions_internal.require_settings(parent regclass)
RETURNS void LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    key CONSTANT snowflake_partitions_internal.key := snowflake_partitions_internal.key_of(parent);
BEGIN
    IF NOT pg_has_role(key.owner, 'USAGE') THEN
        PERFORM snowflake_internal.refuse('42501', format('must be owner of table %s', key.table_name));
    ELSIF NOT EXISTS (SELECT FROM snowflake_partitions_internal.settings AS s WHERE s.parent = require_settings.parent) THEN
        PERFORM snowflake_internal.refuse('55000', format('"%s" has no settings for partitions', key.table_name),
            hint => format('Run SELECT snowflake_partitions.configure(%L, ''1 day'', ''Europe/Berlin''), with its step and time zone.',
                           parent));
    END IF;
END
$function$;

-- Creates a partition; false if it exists. Rows of its range in the DEFAULT partition move into it.
CREATE FUNCTION snowflake_partitions_internal.create_one(parent regclass, range snowflake_partitions_internal.range)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    is_there boolean;
    rest regclass;
BEGIN
    -- Rows of a foreign table, which PostgreSQL does not look for, before the lock. CASE: of other tables, they are not read here.
    PERFORM snowflake_partitions_internal.require_movable(parent, p.relation, range)
    FROM snowflake_partitions_internal.existing(parent) AS p JOIN pg_class AS c ON c.oid = p.relation AND c.relkind = 'f'
    WHERE CASE WHEN p.is_default AND c.relkind = 'f' THEN snowflake_partitions_internal.has_rows(parent, p.relation, range) END;
    PERFORM snowflake_internal.lock_table(parent, 'ACCESS EXCLUSIVE');
    SELECT bool_or(p.low = range.low AND p.high = range.high), max(p.relation::oid) FILTER (WHERE p.is_default) INTO is_there, rest
    FROM snowflake_partitions_internal.existing(parent) AS p;
    IF is_there THEN
        RETURN false;
    END IF;
    IF rest IS NOT NULL AND (SELECT c.relkind IN ('r', 'p') FROM pg_class AS c WHERE c.oid = rest) THEN
        PERFORM snowflake_internal.lock_table(rest, 'ACCESS EXCLUSIVE');
        IF snowflake_partitions_internal.has_rows(parent, rest, range) THEN
            PERFORM snowflake_partitions_internal.require_movable(parent, rest, range);
            PERFORM snowflake_internal.run(parent, s)
            FROM unnest(snowflake_partitions_internal.move_statements(parent, rest, range)) AS s;
            RETURN true;
        END IF;
    END IF;
    PERFORM snowflake_internal.run(parent, s) FROM unnest(snowflake_partitions_internal.creation(parent, range)) AS s;
    RETURN true;
END
$function$;

-- PostgreSQL looks for rows that refer to a partition by a join, while that is locked. It expects
-- many, and would read all referencing rows where an index shows that there are none.
CREATE FUNCTION snowflake_partitions_internal.prefer_indexes(parent regclass)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF NOT EXISTS (
        SELECT FROM snowflake_partitions_internal.references_to(snowflake_partitions_internal.with_ancestors(parent)) AS r
        WHERE r.key_name = (snowflake_partitions_internal.key_of(parent)).column_name
          AND NOT EXISTS (
              SELECT FROM pg_index AS i
              JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attname = r.column_name
              JOIN pg_class AS c ON c.oid = i.indexrelid
              JOIN pg_am AS m ON m.oid = c.relam AND m.amname = 'btree'
              WHERE i.indrelid = r.relation AND i.indisvalid AND i.indpred IS NULL))
    THEN
        SET LOCAL enable_hashjoin = off;
        SET LOCAL enable_mergejoin = off;
    END IF;
END
$function$;

-- Detaches and drops a partition; false if it is no longer due. DETACH fails if rows refer to it.
CREATE FUNCTION snowflake_partitions_internal.drop_one(parent regclass, relation regclass, at timestamp with time zone)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_internal.lock_table(parent, 'ACCESS EXCLUSIVE');
    IF NOT EXISTS (SELECT FROM snowflake_partitions_internal.existing(parent) AS p WHERE p.relation = drop_one.relation) THEN
        RETURN false;
    END IF;
    PERFORM snowflake_internal.lock_table(relation, 'ACCESS EXCLUSIVE');
    IF EXISTS (SELECT FROM snowflake_partitions_internal.assessed(parent, at, false) AS p
               WHERE p.relation = drop_one.relation AND p.is_due AND p.kept_because IS NULL)
    THEN
        PERFORM snowflake_partitions_internal.prefer_indexes(parent);
        PERFORM snowflake_internal.run(parent, format('ALTER TABLE %s DETACH PARTITION %s', snowflake_partitions_internal.name_of(parent),
                                                      snowflake_partitions_internal.name_of(relation)));
        PERFORM snowflake_internal.run(relation, format('DROP TABLE %s', snowflake_partitions_internal.name_of(relation)));
        RETURN true;
    END IF;
    RETURN false;
END
$function$;

-- Limits the wait for a lock, unless the caller has set lock_timeout.
CREATE FUNCTION snowflake_partitions_internal.limit_locks()
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF current_setting('lock_timeout') = '0' THEN
        SET LOCAL lock_timeout = '500ms';
    END IF;
END
$function$;

-- One action: creates a partition, or drops one. 'nothing' if another call has, 'locked' if a lock was not free in time, 'failed'
-- after an error: it is a warning, because the other tables do not depend on this one.
CREATE FUNCTION snowflake_partitions_internal.attempt(
    parent regclass, range snowflake_partitions_internal.range, relation regclass, at timestamp with time zone
) RETURNS text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    former CONSTANT text := current_setting('lock_timeout');
    is_done boolean;
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    BEGIN
        PERFORM snowflake_partitions_internal.limit_locks();
        IF relation IS NULL THEN
            is_done := snowflake_partitions_internal.create_one(parent, range);
        ELSE
            is_done := snowflake_partitions_internal.drop_one(parent, relation, at);
        END IF;
        EXECUTE format('SET LOCAL lock_timeout = %L', former);
        RETURN CASE WHEN is_done THEN 'done' ELSE 'nothing' END;
    EXCEPTION
        WHEN lock_not_available OR deadlock_detected THEN
            RETURN 'locked';
        WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
                detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    END;
    RETURN CASE WHEN snowflake_partitions_internal.failed(parent, code, message, detail, hint) THEN 'failed' ELSE 'locked' END;
END
$function$;

-- An error with one of several tables.
CREATE FUNCTION snowflake_partitions_internal.warn(parent regclass, code text, message text, detail text, hint text)
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF concat(detail, hint) = '' THEN
        RAISE WARNING 'partitions of %: %', parent, message USING ERRCODE = code;
    ELSE
        RAISE WARNING 'partitions of %: %', parent, message
            USING ERRCODE = code, DETAIL = concat_ws(' ', nullif(detail, ''), nullif(hint, ''));
    END IF;
END
$function$;

-- The first error with a table in a call, by its code; false if it cannot be kept, because the row is locked, or the table was
-- given to another role in the meantime. The call continues with the others.
CREATE FUNCTION snowflake_partitions_internal.note_error(parent regclass, code text)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_partitions_internal.limit_locks();
    UPDATE snowflake_partitions_internal.settings AS s SET error_code = coalesce(s.error_code, code) WHERE s.parent = note_error.parent;
    RETURN true;
EXCEPTION WHEN OTHERS THEN
    RETURN false;
END
$function$;

CREATE FUNCTION snowflake_partitions_internal.failed(parent regclass, code text, message text, detail text, hint text)
RETURNS boolean LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_partitions_internal.warn(parent, code, message, detail, hint);
    RETURN snowflake_partitions_internal.note_error(parent, code);
END
$function$;

-- Begins with a table: what to create. Nothing if that cannot be found, with a warning; NULL if a
-- lock was not free in time.
CREATE FUNCTION snowflake_partitions_internal.begin_table(parent regclass, at timestamp with time zone)
RETURNS snowflake_partitions_internal.range[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    -- The bounds of a partition are not read while it is locked.
    PERFORM snowflake_partitions_internal.limit_locks();
    UPDATE snowflake_partitions_internal.settings AS s SET started_at = clock_timestamp(), ended_at = NULL, error_code = NULL
    WHERE s.parent = begin_table.parent;
    BEGIN
        RETURN ARRAY(SELECT a FROM snowflake_partitions_internal.ahead(parent, at) AS a ORDER BY a.low LIMIT 2000);
    EXCEPTION WHEN lock_not_available THEN
        -- The call has not begun with it.
        RAISE;
    WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
        RETURN CASE WHEN snowflake_partitions_internal.failed(parent, code, message, detail, hint)
                    THEN ARRAY[]::snowflake_partitions_internal.range[] END;
    END;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
WHEN OTHERS THEN
    -- Given to another role in the meantime.
    RAISE WARNING 'partitions of %: %', parent, SQLERRM USING ERRCODE = SQLSTATE;
    RETURN NULL;
END
$function$;

-- What to drop, the oldest first; likewise.
CREATE FUNCTION snowflake_partitions_internal.due(parent regclass, at timestamp with time zone)
RETURNS regclass[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    relations regclass[];
    code text;
    message text;
    detail text;
    hint text;
BEGIN
    PERFORM snowflake_partitions_internal.limit_locks();
    relations := ARRAY(SELECT p.relation FROM snowflake_partitions_internal.assessed(parent, at) AS p
                       WHERE p.is_due AND p.kept_because IS NULL ORDER BY p.low NULLS FIRST);
    IF cardinality(relations) > 0 THEN
        PERFORM snowflake_partitions_internal.require_clock();
    END IF;
    RETURN relations;
EXCEPTION WHEN lock_not_available THEN
    RETURN NULL;
WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
    RETURN CASE WHEN snowflake_partitions_internal.failed(parent, code, message, detail, hint) THEN ARRAY[]::regclass[] END;
END
$function$;

-- Ends with a table: says what was done, and which partitions are due but kept.
CREATE FUNCTION snowflake_partitions_internal.end_table(
    parent regclass, at timestamp with time zone, created integer, dropped integer, has_problem boolean
) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    kept record;
    all_kept integer := 0;
BEGIN
    IF created > 0 OR dropped > 0 THEN
        RAISE NOTICE 'partitions of %: % created, % dropped', parent, created, dropped;
    END IF;
    PERFORM snowflake_partitions_internal.limit_locks();
    BEGIN
        FOR kept IN
            SELECT p.kept_because, count(*) AS number, min(p.relation::text) AS first
            FROM snowflake_partitions_internal.assessed(parent, at) AS p
            WHERE p.kept_because IS NOT NULL GROUP BY p.kept_because ORDER BY min(p.low) NULLS FIRST
        LOOP
            RAISE NOTICE 'partitions of %: % kept, the first is %: %', parent, kept.number, kept.first, kept.kept_because;
            all_kept := all_kept + kept.number;
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        -- begin_table() has reported it.
        all_kept := NULL;
    END;
    UPDATE snowflake_partitions_internal.settings AS s
    SET ended_at = clock_timestamp(), kept = all_kept,
        succeeded_at = CASE WHEN s.error_code IS NULL AND NOT has_problem THEN clock_timestamp() ELSE s.succeeded_at END
    WHERE s.parent = end_table.parent;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'partitions of %: the end of the call is not recorded: %', parent, SQLERRM USING ERRCODE = SQLSTATE;
END
$function$;

-- Fails at the end of a call, after everything else was done, if something was not.
CREATE FUNCTION snowflake_partitions_internal.end_call(problems text[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    IF cardinality(problems) > 0 THEN
        PERFORM snowflake_internal.refuse('55000', 'the partitions of some tables are not as their settings say',
            detail => array_to_string(problems, ' '),
            hint => 'Run the procedure again, after a look at its warnings.');
    END IF;
END
$function$;

-- The procedure commits, so it cannot have a SET clause. All names are qualified. `at` is the
-- present time, or another one in tests.
CREATE PROCEDURE snowflake_partitions_internal.maintain(
    parent pg_catalog.regclass, at timestamp with time zone, attempts integer, pause_seconds double precision
) LANGUAGE plpgsql
AS $procedure$
DECLARE
    targets pg_catalog.regclass[];
    target pg_catalog.regclass;
    ranges snowflake_partitions_internal.range[];
    range snowflake_partitions_internal.range;
    relations pg_catalog.regclass[];
    relation pg_catalog.regclass;
    outcome pg_catalog.text;
    created integer;
    dropped integer;
    problems pg_catalog.text[] := '{}';
    earlier integer;
BEGIN
    COMMIT;
    -- Each action has to see what others have done before it. The level is set in a transaction that has looked at nothing: an
    -- expression may have.
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    PERFORM snowflake_partitions_internal.forget_dropped();
    targets := snowflake_partitions_internal.targets(maintain.parent);
    COMMIT;
    FOREACH target IN ARRAY targets LOOP
        created := 0;
        dropped := 0;
        earlier := pg_catalog.cardinality(problems);
        outcome := 'done';
        FOR i IN 1 .. attempts LOOP
            COMMIT;
            SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
            ranges := snowflake_partitions_internal.begin_table(target, at);
            COMMIT;
            EXIT WHEN ranges IS NOT NULL OR i OPERATOR(pg_catalog.=) attempts;
            PERFORM pg_catalog.pg_sleep(pause_seconds);
        END LOOP;
        IF ranges IS NULL THEN
            problems := snowflake_partitions_internal.add_problem(problems, target, 'locked');
            COMMIT;
            CONTINUE;
        END IF;
        FOREACH range IN ARRAY ranges LOOP
            FOR i IN 1 .. attempts LOOP
                COMMIT;
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                outcome := snowflake_partitions_internal.attempt(target, range, NULL, at);
                COMMIT;
                EXIT WHEN outcome OPERATOR(pg_catalog.<>) 'locked' OR i OPERATOR(pg_catalog.=) attempts;
                PERFORM pg_catalog.pg_sleep(pause_seconds);
            END LOOP;
            -- A later one would leave a gap.
            EXIT WHEN outcome OPERATOR(pg_catalog.=) 'locked' OR outcome OPERATOR(pg_catalog.=) 'failed';
            created := created OPERATOR(pg_catalog.+) (outcome OPERATOR(pg_catalog.=) 'done')::integer;
        END LOOP;
        problems := snowflake_partitions_internal.add_problem(problems, target, outcome);
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        relations := snowflake_partitions_internal.due(target, at);
        problems := snowflake_partitions_internal.add_problem(problems, target, CASE WHEN relations IS NULL THEN 'locked' END);
        COMMIT;
        FOREACH relation IN ARRAY coalesce(relations, '{}') LOOP
            FOR i IN 1 .. attempts LOOP
                COMMIT;
                SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
                outcome := snowflake_partitions_internal.attempt(target, NULL, relation, at);
                COMMIT;
                EXIT WHEN outcome OPERATOR(pg_catalog.<>) 'locked' OR i OPERATOR(pg_catalog.=) attempts;
                PERFORM pg_catalog.pg_sleep(pause_seconds);
            END LOOP;
            problems := snowflake_partitions_internal.add_problem(problems, target, outcome);
            EXIT WHEN outcome OPERATOR(pg_catalog.=) 'locked';
            dropped := dropped OPERATOR(pg_catalog.+) (outcome OPERATOR(pg_catalog.=) 'done')::integer;
        END LOOP;
        COMMIT;
        SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
        PERFORM snowflake_partitions_internal.end_table(
            target, at, created, dropped, pg_catalog.cardinality(problems) OPERATOR(pg_catalog.>) earlier);
        problems := snowflake_partitions_internal.add_problem(problems, target, NULL);
        COMMIT;
    END LOOP;
    PERFORM snowflake_partitions_internal.end_call(problems);
END
$procedure$;

-- The problems of a call: a table whose locks were not free, or that has an error in its
-- settings.
CREATE FUNCTION snowflake_partitions_internal.add_problem(problems text[], target regclass, outcome text)
RETURNS text[] LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    problem text;
    code CONSTANT text := (SELECT s.error_code FROM snowflake_partitions_internal.settings AS s JOIN pg_class AS c ON c.oid = s.parent
                           WHERE s.parent = target);
BEGIN
    IF outcome = 'locked' OR outcome IS NULL AND code = '55P03' THEN
        problem := format('%s was locked.', target);
        PERFORM snowflake_partitions_internal.note_error(target, '55P03');
    ELSIF outcome IS NULL AND code IS NOT NULL THEN
        problem := format('%s: SQLSTATE %s.', target, code);
    END IF;
    RETURN CASE WHEN problem = ANY (problems) OR problem IS NULL THEN problems ELSE problems || problem END;
END
$function$;
