-- The motor of an online script for another server: what loops, waits and resumes, as the script
-- carries it. Plain PL/pgSQL; psql puts the script's schema in place of :"schema".

-- The tables that another session reads and changes while the script runs.
CREATE FUNCTION snowflake_migrate_internal.script_motor_tables()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$-- The pace of the copy. Change it from any session of the same role, at any time: the next batch follows.
CREATE TABLE IF NOT EXISTS :"schema".widening_pace (
    is_paused boolean NOT NULL DEFAULT false,
    batch_size integer NOT NULL DEFAULT 10000 CHECK (batch_size > 0),           -- rows
    pause interval NOT NULL DEFAULT '20 ms' CHECK (pause >= '0'),               -- after each batch
    max_wal_per_second bigint CHECK (max_wal_per_second > 0),                   -- bytes, of the whole server
    max_replay_lag interval CHECK (max_replay_lag > '0'),                       -- of standbys and subscribers
    max_slot_wal bigint CHECK (max_slot_wal > 0));                              -- bytes that a replication slot keeps
-- By default what this role may see: lag takes the privileges of pg_read_all_stats.
INSERT INTO :"schema".widening_pace (max_replay_lag, max_slot_wal)
SELECT CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE') THEN interval '10 seconds' END,
       nullif(greatest(pg_size_bytes(current_setting('max_slot_wal_keep_size')), 0) / 2, 0)
WHERE NOT EXISTS (SELECT FROM :"schema".widening_pace);

-- What is copied: how far, and which blocks have rows that were locked.
CREATE TABLE IF NOT EXISTS :"schema".widening_table (
    relation text PRIMARY KEY, place integer NOT NULL, assignments text NOT NULL, condition text NOT NULL, filenode oid,
    blocks_done bigint NOT NULL DEFAULT 0, blocks_total bigint, batch_blocks bigint NOT NULL DEFAULT 64,
    skipped int8multirange NOT NULL DEFAULT '{}', rows_copied bigint NOT NULL DEFAULT 0,
    run_blocks bigint NOT NULL DEFAULT 0, run_rows bigint NOT NULL DEFAULT 0, run_started_at timestamp with time zone,
    updated_at timestamp with time zone, waiting_for text);
CREATE OR REPLACE VIEW :"schema".widening_progress AS
SELECT c.relation, c.rows_copied, floor(100.0 * c.blocks_done / nullif(c.blocks_total, 0))::integer AS percent,
       (c.run_rows / nullif(extract(epoch FROM c.updated_at - c.run_started_at), 0))::bigint AS rows_per_second,
       date_trunc('second', (c.updated_at - c.run_started_at) / nullif(c.run_blocks, 0) * (c.blocks_total - c.blocks_done)) AS time_left,
       c.waiting_for, c.updated_at
FROM :"schema".widening_table AS c;

-- How triggers that fire on each UPDATE were defined, and what depends on the tables.
CREATE TABLE IF NOT EXISTS :"schema".widening_trigger (relation text, name text, definition text, enabled "char",
    PRIMARY KEY (relation, name));
CREATE TABLE IF NOT EXISTS :"schema".widening_described (object text PRIMARY KEY, properties jsonb);
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_locks()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- Locks tables, all within a tenth of a second, or fails (55P03). Sessions that come later wait behind the request. The short
-- lock_timeout remains to the end of the transaction.
CREATE OR REPLACE PROCEDURE :"schema".widening_lock_once(relations text[], lock_mode text)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    begun_at CONSTANT timestamp with time zone := clock_timestamp();
    -- Below deadlock_timeout: resolving a deadlock could cancel another session.
    longest CONSTANT integer := least(100, (SELECT setting::integer / 2 FROM pg_settings WHERE name = 'deadlock_timeout'));
    relation text;
BEGIN
    FOREACH relation IN ARRAY relations LOOP
        PERFORM set_config('lock_timeout',
            greatest(1, longest - round(1000 * extract(epoch FROM clock_timestamp() - begun_at))::integer)::text, true);
        EXECUTE format('LOCK TABLE ONLY %s IN %s MODE', relation, lock_mode);
    END LOOP;
    PERFORM set_config('lock_timeout', longest::text, true);
END
$procedure$;

-- After an attempt that failed: says who holds the tables, and sleeps. Fails after ten minutes. The next attempt has
-- them in another order: sessions may have theirs in the opposite one.
CREATE OR REPLACE PROCEDURE :"schema".widening_lock_missed(INOUT relations text[], INOUT attempts integer)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    holders text;
    waited CONSTANT interval := clock_timestamp() - transaction_timestamp();
BEGIN
    attempts := attempts + 1;
    relations := relations[2:] || relations[:1];
    SELECT string_agg(DISTINCT coalesce('process ' || l.pid, 'a prepared transaction'), ', ') INTO holders
    FROM pg_locks AS l
    WHERE l.locktype = 'relation' AND l.granted AND l.pid IS DISTINCT FROM pg_backend_pid()
      AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
      AND l.relation IN (SELECT to_regclass(r.name) FROM unnest(relations) AS r (name));
    IF waited > interval '10 minutes' THEN
        RAISE EXCEPTION USING ERRCODE = '55P03', MESSAGE = format('could not lock %s within ten minutes', array_to_string(relations, ', ')),
            DETAIL = coalesce('Held by ' || holders || '.', 'Other transactions kept locking them.'),
            HINT = 'Run the script again when they have ended. What is done remains done.';
    ELSIF attempts % 8 = 0 THEN
        RAISE WARNING USING MESSAGE = format('waiting for a lock on %s for %s s', array_to_string(relations, ', '),
                                             round(extract(epoch FROM waited))),
            DETAIL = coalesce('Held by ' || holders || '.', 'No process holds them at this moment.');
    END IF;
    -- In which the others continue.
    PERFORM pg_sleep(least(2, 0.25 * 1.5 ^ least(attempts, 9)) * (0.5 + random()));
END
$procedure$;

-- The same, in attempts with pauses.
CREATE OR REPLACE PROCEDURE :"schema".widening_lock(relations text[], lock_mode text)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    attempts integer := 0;
BEGIN
    LOOP
        BEGIN
            CALL widening_lock_once(relations, lock_mode);
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
        CALL widening_lock_missed(relations, attempts);
    END LOOP;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_triggers()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- The triggers of a table that an UPDATE of any column fires, or one of the new columns, but for those of the script.
CREATE OR REPLACE FUNCTION :"schema".widening_triggers(relation text) RETURNS TABLE (name text, definition text, enabled "char")
LANGUAGE sql STABLE SET search_path = pg_catalog, :"schema", pg_temp SET quote_all_identifiers = off AS $procedure$
    SELECT t.tgname, pg_get_triggerdef(t.oid), t.tgenabled
    FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
    WHERE t.tgrelid = relation::regclass AND NOT t.tgisinternal AND t.tgtype & 16 <> 0
      AND (cardinality(t.tgattr::smallint[]) = 0
           OR EXISTS (SELECT FROM pg_attribute AS a WHERE a.attrelid = t.tgrelid AND a.attnum = ANY (t.tgattr)
                      AND starts_with(a.attname, 'snowflake_')))
      AND NOT (starts_with(p.proname, 'widening_shadow_')
               AND p.pronamespace = (SELECT c.relnamespace FROM pg_class AS c WHERE c.oid = 'widening_table'::regclass))
$procedure$;

-- Fails if one of them would fire for rows that are copied. The condition that they have for the time of the copy is false
-- only for the owner's session that sets snowflake_migrate_internal.copying.
CREATE OR REPLACE PROCEDURE :"schema".widening_require_guarded(relation text)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    guard CONSTANT text := (
        SELECT format('((COALESCE(current_setting(''snowflake_migrate_internal.copying''::text, true), ''''::text) <> ''on''::text) '
                      'OR (NOT pg_has_role(SESSION_USER, ''%1$s''::oid, ''%2$s''::text)) '
                      'OR (NOT pg_has_role(CURRENT_USER, ''%1$s''::oid, ''%2$s''::text)))', c.relowner,
                      CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'USAGE, SET' ELSE 'MEMBER' END)
        FROM pg_class AS c WHERE c.oid = relation::regclass);
    unguarded CONSTANT text := (
        SELECT string_agg(quote_ident(t.name), ', ') FROM widening_triggers(relation) AS t
        WHERE t.enabled IN ('O', 'A')
          AND strpos(t.definition, format('WHEN (%s) EXECUTE', guard)) + strpos(t.definition, format('WHEN ((%s AND ', guard)) = 0);
BEGIN
    IF unguarded IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('triggers of %s would fire when rows are copied: %s', relation, unguarded),
            DETAIL = 'They fire on each UPDATE. They, or the owner of the table, have been changed since the script began.',
            HINT = 'Drop or disable what is new, or go back: psql -v revert=on.';
    END IF;
END
$procedure$;

-- Gives them the condition, takes it away again, and compares: so that it is known to be possible.
CREATE OR REPLACE PROCEDURE :"schema".widening_guard(relation text, place integer)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
BEGIN
    DELETE FROM widening_trigger AS t WHERE t.relation = widening_guard.relation;
    INSERT INTO widening_trigger SELECT relation, t.* FROM widening_triggers(relation) AS t;
    EXECUTE format('CALL widening_set_guards_%s()', place);
    CALL widening_unguard(relation, place);
    EXECUTE format('CALL widening_set_guards_%s()', place);
    CALL widening_require_guarded(relation);
END
$procedure$;
CREATE OR REPLACE PROCEDURE :"schema".widening_unguard(relation text, place integer, is_strict boolean DEFAULT true)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    differences text;
BEGIN
    EXECUTE format('CALL widening_take_guards_%s()', place);
    SELECT string_agg(format('%s, made for: %s', coalesce(t.definition, 'none'), coalesce(f.definition, 'none')), E'\n') INTO differences
    FROM widening_triggers(relation) AS t
    FULL JOIN (SELECT w.* FROM widening_trigger AS w WHERE w.relation = widening_unguard.relation) AS f USING (name)
    WHERE (t.definition, t.enabled) IS DISTINCT FROM (f.definition, f.enabled);
    IF differences IS NOT NULL AND NOT is_strict THEN
        RAISE WARNING USING MESSAGE = format('triggers of %s are not as they were', relation), DETAIL = differences;
    ELSIF differences IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = format('triggers of %s would not be as they were', relation),
            DETAIL = differences, HINT = 'Nothing was changed by this unit. Drop these triggers, and create them again afterwards.';
    END IF;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_batch()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- Copies the rows of a range of blocks whose shadow differs, and counts those that were locked: it never waits for a row. A range
-- grows and shrinks with its rows and its time, half a second.
CREATE OR REPLACE FUNCTION :"schema".widening_batch(target text, OUT is_done boolean, OUT is_waiting boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    begun_at CONSTANT timestamp with time zone := clock_timestamp();
    own_path CONSTANT text := current_setting('search_path');
    most bigint := (SELECT p.batch_size FROM widening_pace AS p);
    step widening_table;
    is_retry boolean; rows text;
    first bigint; last bigint; written bigint; missing bigint;
    locked int8multirange;
BEGIN
    SELECT c.* INTO STRICT step FROM widening_table AS c WHERE c.relation = target FOR UPDATE;
    IF step.filenode IS DISTINCT FROM pg_relation_filenode(target::regclass) THEN
        -- It is the first one, or VACUUM FULL has moved all rows.
        step.filenode := pg_relation_filenode(target::regclass);
        step.blocks_total := ceil(pg_relation_size(target::regclass, 'main')::numeric / current_setting('block_size')::bigint);
        step.blocks_done := 0; step.skipped := '{}';
    END IF;
    is_retry := step.blocks_done >= step.blocks_total;
    is_done := is_retry AND step.skipped = '{}'; is_waiting := false;
    first := step.blocks_done;
    last := least(first + step.batch_blocks, step.blocks_total);
    IF is_retry AND NOT is_done THEN
        -- Of random place and size: rows that stay locked, and unique keys that others hold, do not keep the rest waiting.
        SELECT lower(r), least(upper(r), lower(r) + step.batch_blocks) INTO first, last
        FROM unnest(step.skipped) AS r ORDER BY random() LIMIT 1;
        most := greatest(1, ceil(most * random() ^ 3));
    END IF;
    rows := format('source.ctid OPERATOR(pg_catalog.>=) %L::pg_catalog.tid '
                   'AND source.ctid OPERATOR(pg_catalog.<) %L::pg_catalog.tid AND (%s)',
                   format('(%s,0)', first), format('(%s,0)', last), step.condition);
    IF NOT is_done THEN
        BEGIN
            CALL widening_lock_once(ARRAY[target], 'ROW EXCLUSIVE');
            CALL widening_require_guarded(target);
            SET CONSTRAINTS ALL IMMEDIATE;
            PERFORM set_config('snowflake_migrate_internal.copying', 'on', true),
                    set_config('search_path', current_setting('widening_script.table_path'), true);
            EXECUTE format('WITH written AS (
                                UPDATE ONLY %1$s AS source SET %2$s
                                WHERE source.ctid OPERATOR(pg_catalog.=) ANY (ARRAY(
                                    SELECT source.ctid FROM ONLY %1$s AS source WHERE %3$s LIMIT %4$s FOR NO KEY UPDATE SKIP LOCKED))
                                RETURNING 1)
                            SELECT pg_catalog.count(*) FROM written', target, step.assignments, rows, most) INTO written;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            -- The table, or a key that a DEFERRABLE constraint checks at once.
            written := 0;
        END;
        PERFORM set_config('snowflake_migrate_internal.copying', '', true), set_config('search_path', own_path, true);
        EXECUTE format('SELECT count(*), coalesce(range_agg(int8range(m.block, m.block + 1)), ''{}'')
                        FROM (SELECT (source.ctid::text::point)[0]::bigint AS block FROM ONLY %s AS source WHERE %s) AS m', target, rows)
        INTO missing, locked;
        IF is_retry THEN
            step.skipped := step.skipped - int8range(first, last)::int8multirange + locked;
            is_waiting := written = 0 AND missing > 0;
        ELSIF missing > 0 AND written >= most THEN
            -- More rows than a batch: the same blocks again, or half of them.
            step.batch_blocks := greatest(1, step.batch_blocks / 2);
        ELSE
            step.skipped := step.skipped + locked;
            step.blocks_done := last;
            step.run_blocks := step.run_blocks + last - first;
            step.batch_blocks := least(8192, greatest(1, (last - first) * least(2, most / greatest(written, 1)::double precision,
                0.5 / greatest(extract(epoch FROM clock_timestamp() - begun_at), 0.001)::double precision)));
        END IF;
        step.run_rows := step.run_rows + written; step.rows_copied := step.rows_copied + written;
    END IF;
    UPDATE widening_table AS c
    SET (filenode, blocks_total, blocks_done, skipped, batch_blocks, run_blocks, run_rows, rows_copied, waiting_for, updated_at)
      = ROW (step.filenode, step.blocks_total, step.blocks_done, step.skipped, step.batch_blocks, step.run_blocks, step.run_rows,
             step.rows_copied, CASE WHEN is_waiting THEN 'rows that other transactions have locked' END, clock_timestamp())
    WHERE c.relation = target;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_wait()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- What the copy waits for now; NULL if nothing. A standby that is stuck reports no lag. So it also has to pass a position of the
-- write-ahead log within the time.
CREATE OR REPLACE FUNCTION :"schema".widening_wait(INOUT mark pg_lsn, INOUT marked_at timestamp with time zone, OUT cause text)
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    pace widening_pace;
BEGIN
    SELECT p.* INTO STRICT pace FROM widening_pace AS p;
    IF pace.is_paused THEN
        cause := 'widening_pace.is_paused';
    ELSIF pace.max_replay_lag IS NOT NULL AND NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
        cause := format('max_replay_lag is set, but role "%s" may not see it: GRANT pg_read_all_stats, or set it to NULL', current_user);
    ELSIF pace.max_replay_lag IS NOT NULL THEN
        IF mark IS NULL
           OR NOT EXISTS (SELECT FROM pg_stat_replication AS r WHERE r.state <> 'backup' AND coalesce(r.replay_lsn < mark, true)) THEN
            mark := pg_current_wal_lsn();
            marked_at := clock_timestamp();
        END IF;
        SELECT 'standbys: ' || string_agg(coalesce(nullif(r.application_name, ''), r.pid::text), ', ') INTO cause
        FROM pg_stat_replication AS r
        WHERE r.state <> 'backup' AND (r.replay_lag > pace.max_replay_lag
                                       OR coalesce(r.replay_lsn < mark, true) AND clock_timestamp() - marked_at > pace.max_replay_lag);
    END IF;
    IF cause IS NULL AND pace.max_slot_wal IS NOT NULL THEN
        SELECT 'replication slots: ' || string_agg(s.slot_name, ', ') INTO cause
        FROM pg_replication_slots AS s
        WHERE s.wal_status IS DISTINCT FROM 'lost' AND pg_current_wal_lsn() - s.restart_lsn > pace.max_slot_wal;
    END IF;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_backfill()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- Copies all tables, one transaction a batch. It cannot have a SET clause, because it commits: the script sets the search_path.
CREATE OR REPLACE PROCEDURE :"schema".widening_backfill()
LANGUAGE plpgsql AS $procedure$
DECLARE
    target text;
    wait record;
    batch record;
    mark pg_lsn;
    marked_at timestamp with time zone;
    begun_at timestamp with time zone;
    begun_lsn pg_lsn;
    noticed_at timestamp with time zone := clock_timestamp();
    seconds double precision;
BEGIN
    UPDATE widening_table SET run_blocks = 0, run_rows = 0, run_started_at = NULL, waiting_for = NULL;
    FOREACH target IN ARRAY ARRAY(SELECT c.relation FROM widening_table AS c ORDER BY c.place) LOOP
        UPDATE widening_table SET run_started_at = clock_timestamp() WHERE relation = target;
        LOOP
            SELECT w.* INTO wait FROM widening_wait(mark, marked_at) AS w;
            mark := wait.mark;
            marked_at := wait.marked_at;
            seconds := 0.2;
            IF wait.cause IS NULL THEN
                begun_at := clock_timestamp();
                begun_lsn := pg_current_wal_lsn();
                SELECT b.* INTO batch FROM widening_batch(target) AS b;
                COMMIT;
                EXIT WHEN batch.is_done;
                SELECT greatest(extract(epoch FROM p.pause), CASE WHEN batch.is_waiting THEN 0.5 ELSE 0 END,
                                (pg_current_wal_lsn() - begun_lsn) / p.max_wal_per_second
                                - extract(epoch FROM clock_timestamp() - begun_at))
                INTO seconds FROM widening_pace AS p;
            ELSE
                UPDATE widening_table SET waiting_for = wait.cause WHERE relation = target AND waiting_for IS DISTINCT FROM wait.cause;
                COMMIT;
            END IF;
            IF clock_timestamp() - noticed_at > interval '10 seconds' THEN
                noticed_at := clock_timestamp();
                RAISE NOTICE '%', (SELECT format('copying %s: %s %%, %s rows, %s rows/s, %s left', p.relation, p.percent, p.rows_copied,
                                                 p.rows_per_second, coalesce(p.time_left::text, 'unknown time'))
                                          || coalesce('; waiting for ' || p.waiting_for, '')
                                   FROM widening_progress AS p WHERE p.relation = target);
            END IF;
            -- A snapshot is held while it sleeps, so not for long.
            WHILE seconds > 0 LOOP
                PERFORM pg_sleep(least(seconds, 1));
                COMMIT;
                seconds := seconds - 1;
            END LOOP;
        END LOOP;
    END LOOP;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_compare(hint text)
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- What is compared between the phases, as this server prints it: what uses the tables, and what the swap creates again. Triggers have
-- their own comparisons: the script changes some of them.
CREATE OR REPLACE FUNCTION :"schema".widening_present(relations text[]) RETURNS TABLE (object text, properties jsonb)
LANGUAGE sql STABLE SET search_path = pg_catalog, :"schema", pg_temp SET jit = off AS $procedure$
    SELECT d.object, d.properties FROM widening_description(relations) AS d WHERE NOT starts_with(d.object, 'trigger ')
  UNION ALL
    SELECT format('%s, %s: %s', t.object, t.part, t.property), to_jsonb(t.value) FROM widening_texts(relations) AS t
    WHERE NOT EXISTS (SELECT FROM widening_made_for AS m WHERE m.value_after = '*' AND (m.object, m.fact) = (t.object, t.part))
$procedure$;

-- Stops if it is not as it was when the script began.
CREATE OR REPLACE PROCEDURE :"schema".widening_compare_described(relations text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    differences text;
BEGIN
    SELECT string_agg(coalesce(f.object || CASE WHEN n.object IS NULL THEN ' is missing' ELSE ' has changed' END,
                               n.object || ' is new'), E'\n')
    INTO differences
    FROM widening_described AS f
    FULL JOIN widening_present(relations) AS n USING (object)
    WHERE f.properties IS DISTINCT FROM n.properties;
    IF differences IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the database is not as it was when the script began',
            DETAIL = left(differences, 4000), HINT = $motor$ || quote_literal(hint) || $motor$;
    END IF;
END
$procedure$;

-- Stops if what the swap creates again is not what it was where the script was made.
CREATE OR REPLACE PROCEDURE :"schema".widening_compare_texts(relations text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    differences text;
BEGIN
    SELECT string_agg(format('%s, %s: %s: %s, made for: %s', object, part, property,
                             coalesce(t.value, 'none'), coalesce(f.value, 'none')), E'\n'
                      ORDER BY object, part, property)
    INTO differences
    FROM pg_temp.widening_made_texts AS f FULL JOIN widening_texts(relations) AS t USING (object, part, property)
    WHERE f.value IS DISTINCT FROM t.value;
    IF differences IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000', MESSAGE = 'the database is not as it was where the script was made',
            DETAIL = left(differences, 4000), HINT = 'Nothing was changed. Dump the schema again, and make the script anew.';
    END IF;
END
$procedure$;

-- A materialized view with data would be filled again under the locks.
CREATE OR REPLACE PROCEDURE :"schema".widening_require_no_data(views text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    filled CONSTANT text := (SELECT string_agg(v.name, ', ') FROM unnest(views) AS v (name)
                             JOIN pg_class AS c ON c.oid = v.name::regclass AND c.relispopulated);
BEGIN
    IF filled IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '55000',
            MESSAGE = format('materialized views have data, and would have to be filled while tables are locked: %s', filled),
            HINT = 'REFRESH MATERIALIZED VIEW ... WITH NO DATA until the script has ended, or use the script for a window.';
    END IF;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_swap()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- The places of the catalog's rows on tables, and the transactions that wrote them: while these are unchanged, so is the content.
CREATE OR REPLACE FUNCTION :"schema".widening_fingerprint(relations text[]) RETURNS text
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp SET jit = off AS $procedure$
    WITH o AS MATERIALIZED (SELECT r.name::regclass::oid AS oid FROM unnest(relations) AS r (name))
    SELECT md5(string_agg(format('%s %s %s', f.tableoid::oid, f.ctid, f.xmin), ', ' ORDER BY f.tableoid, f.ctid))
    FROM (SELECT c.tableoid, c.ctid, c.xmin FROM pg_class AS c WHERE c.oid IN (SELECT o.oid FROM o) OR c.relkind IN ('v', 'm')
        UNION ALL SELECT a.tableoid, a.ctid, a.xmin FROM pg_attribute AS a WHERE a.attrelid IN (SELECT o.oid FROM o)
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_attrdef AS d WHERE d.adrelid IN (SELECT o.oid FROM o)
        UNION ALL SELECT i.tableoid, i.ctid, i.xmin FROM pg_index AS i WHERE i.indrelid IN (SELECT o.oid FROM o)
        UNION ALL SELECT k.tableoid, k.ctid, k.xmin FROM pg_constraint AS k WHERE k.conrelid IN (SELECT o.oid FROM o)
        UNION ALL SELECT t.tableoid, t.ctid, t.xmin FROM pg_trigger AS t WHERE t.tgrelid IN (SELECT o.oid FROM o)
        UNION ALL SELECT w.tableoid, w.ctid, w.xmin FROM pg_rewrite AS w WHERE w.oid > 16383
        UNION ALL SELECT h.tableoid, h.ctid, h.xmin FROM pg_inherits AS h WHERE h.inhparent IN (SELECT o.oid FROM o)
        UNION ALL SELECT d.tableoid, d.ctid, d.xmin FROM pg_depend AS d
                  WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid IN (SELECT o.oid FROM o)
        UNION ALL SELECT e.tableoid, e.ctid, e.xmin FROM pg_description AS e
                  WHERE e.classoid = 'pg_class'::regclass AND e.objoid IN (SELECT o.oid FROM o)) AS f
$procedure$;

-- The swap: all of it or nothing, again and again until the locks are to be had.
CREATE OR REPLACE PROCEDURE :"schema".widening_swap(unit integer, relations text[], compared text[], views text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    attempts integer := 0;
    before text;
    maintain jsonb;
    locked_at timestamp with time zone;
BEGIN
    LOOP
        before := widening_fingerprint(relations);
        CALL widening_compare();
        CALL widening_compare_described(compared);
        CALL widening_require_no_data(views);
        BEGIN
            CALL widening_lock_once(relations, 'ACCESS EXCLUSIVE');
            locked_at := clock_timestamp();
            IF widening_fingerprint(relations) <> before THEN
                CALL widening_compare();
                CALL widening_compare_described(compared);
                CALL widening_require_no_data(views);
            END IF;
            maintain := widening_maintain(compared);
            EXECUTE format('CALL widening_drop_%s()', unit);
            EXECUTE format('CALL widening_change_%s()', unit);
            EXECUTE format('CALL widening_create_%s()', unit);
            CALL widening_grant(maintain, compared);
            INSERT INTO widening_unit VALUES (unit, clock_timestamp());
            RAISE NOTICE 'the swap took % ms under its locks', round(1000 * extract(epoch FROM clock_timestamp() - locked_at));
            RETURN;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;
        END;
        CALL widening_lock_missed(relations, attempts);
    END LOOP;
END
$procedure$;
$motor$;

CREATE FUNCTION snowflake_migrate_internal.script_motor_announce()
RETURNS text LANGUAGE sql IMMUTABLE
RETURN $motor$
-- What it takes, and what this role cannot see.
CREATE OR REPLACE PROCEDURE :"schema".widening_announce(relations text[], indexes text[])
LANGUAGE plpgsql SET search_path = pg_catalog, :"schema", pg_temp AS $procedure$
DECLARE
    needs record;
    pace widening_pace;
BEGIN
    SELECT count(*) AS tables,
           CASE WHEN bool_and(c.reltuples >= 0) THEN sum(c.reltuples)::bigint::text ELSE 'an unknown number of' END AS rows,
           sum(s.heap + s.index_bytes) AS bytes,
           sum(greatest(c.reltuples, 0) * (140 + 72 * s.number) + 2 * s.heap + s.index_bytes)::bigint AS wal,
           (SELECT coalesce(sum(pg_relation_size(i.name::regclass)), 0) FROM unnest(indexes) AS i (name)) AS new_indexes
    INTO needs
    FROM unnest(relations) AS r (name) JOIN pg_class AS c ON c.oid = r.name::regclass
    CROSS JOIN LATERAL (SELECT pg_relation_size(c.oid) AS heap, pg_indexes_size(c.oid) AS index_bytes,
                               (SELECT count(*) FROM pg_index AS x WHERE x.indrelid = c.oid) AS number) AS s;
    RAISE NOTICE '% rows of % tables are written again: up to % more disk until they are vacuumed, % for new indexes, about % of WAL',
        needs.rows, needs.tables, pg_size_pretty(needs.bytes), pg_size_pretty(needs.new_indexes),
        pg_size_pretty(needs.wal + needs.new_indexes);
    SELECT p.* INTO pace FROM widening_pace AS p;
    IF NOT pg_has_role('pg_read_all_stats', 'USAGE') THEN
        RAISE NOTICE 'role "%" may not see the lag of the % standbys and subscribers that are connected: the copy does not wait for them. '
            'Watch it yourself, and pause by widening_pace.is_paused', current_user, (SELECT count(*) FROM pg_stat_replication);
    END IF;
    RAISE NOTICE 'pace: % rows a batch, a pause of %, lag at most %, slots keep at most %, WAL a second at most %. '
        'Nothing watches the disk', pace.batch_size, pace.pause, coalesce(pace.max_replay_lag::text, 'not limited'),
        coalesce(pg_size_pretty(pace.max_slot_wal), 'not limited'),
        coalesce(pg_size_pretty(pace.max_wal_per_second), 'not limited');
END
$procedure$;
$motor$;
