-- How many locks a rewrite needs. PostgreSQL keeps all locks of all sessions in a
-- table of a fixed size, and a statement that finds it full fails (53200). Changing
-- the type of a column of a partitioned table locks each partition and all that
-- belongs to it.

-- Counted in pg_locks on PostgreSQL 15 and 18: a rewritten table takes 5 locks (on
-- itself, its copy, and what the copy is dropped with), one with a TOAST table 4
-- more, each index 1, each index that is built again 2 more, and each foreign key 3.
-- The minor releases from 15.20, 16.16, 17.12 and 18.7 on, which have the setting
-- composite_type_mismatch, lock 3 types more for each rewritten table.
CREATE FUNCTION snowflake_migrate_internal.lock_needs(keys snowflake_migrate_internal.key[])
RETURNS TABLE (relation regclass, locks bigint) LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    WITH part AS (
        SELECT f.declared_by AS relation, f.relation AS part, c.relkind, c.reltoastrelid, array_agg(f.attribute) AS attributes
        FROM snowflake_migrate_internal.linked_tree(keys) AS f
        JOIN pg_class AS c ON c.oid = f.relation
        WHERE f.is_narrow
        GROUP BY f.declared_by, f.relation, c.relkind, c.reltoastrelid
    ), side AS MATERIALIZED (
        SELECT k.oid, s.relation, s.attributes
        FROM pg_constraint AS k
        CROSS JOIN LATERAL (VALUES (k.conrelid, k.conkey), (k.confrelid, k.confkey)) AS s (relation, attributes)
        WHERE k.contype = 'f'
    ), foreign_key AS MATERIALIZED (
        SELECT p.relation, p.part, count(DISTINCT s.oid) AS number
        FROM part AS p JOIN side AS s ON s.relation = p.part AND s.attributes && p.attributes
        GROUP BY p.relation, p.part
    )
    SELECT p.relation,
           sum(CASE WHEN p.relkind = 'p' THEN 1 WHEN current_setting('composite_type_mismatch', true) IS NULL THEN 5 ELSE 8 END
               + CASE WHEN p.reltoastrelid <> 0 THEN 4 ELSE 0 END
               + (SELECT count(*) + 2 * count(*) FILTER (WHERE i.indkey::smallint[] && p.attributes)
                  FROM pg_index AS i WHERE i.indrelid = p.part)
               + 3 * coalesce(f.number, 0)
               -- Tables have such constraints since PostgreSQL 18.
               + (SELECT count(*) FROM pg_constraint AS k
                  WHERE k.contype = 'n' AND k.conrelid = p.part AND k.conkey && p.attributes))::bigint
    FROM part AS p
    LEFT JOIN foreign_key AS f ON f.relation = p.relation AND f.part = p.part
    GROUP BY p.relation
$function$;

-- The sessions and prepared transactions for which the table has room, with
-- max_locks_per_transaction locks each.
CREATE FUNCTION snowflake_migrate_internal.lock_slots()
RETURNS bigint LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    -- From PostgreSQL 18 on, autovacuum_worker_slots; and 2 more processes.
    SELECT current_setting('max_connections')::bigint + current_setting('max_worker_processes')::bigint
           + current_setting('max_wal_senders')::bigint + current_setting('max_prepared_transactions')::bigint
           + coalesce(current_setting('autovacuum_worker_slots', true)::bigint + 1, current_setting('autovacuum_max_workers')::bigint) + 1
$function$;

-- Locks that certainly do not fit. The table takes more than the nominal number,
-- because it can use memory that was reserved for other purposes: servers of 420 to
-- 11,000 nominal locks took 1.5 to 1.75 times as many, and small ones a few hundred
-- more. So what might fit is not refused.
CREATE FUNCTION snowflake_migrate_internal.lock_obstacles(relation regclass, needed bigint, what text)
RETURNS SETOF snowflake_migrate_internal.obstacle LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp
AS $function$
    SELECT relation, NULL::name,
           format('%s needs about %s locks, but the server has room for about %s', what, needed, s.slots * s.per_transaction),
           format('Set max_locks_per_transaction to at least %s in postgresql.conf and restart the server, '
                  'or detach partitions while the column is widened.',
                  ceil(needed::numeric / s.slots)), '55000'
    FROM (SELECT snowflake_migrate_internal.lock_slots() AS slots,
                 current_setting('max_locks_per_transaction')::bigint AS per_transaction) AS s
    WHERE needed > 1.7 * s.slots * s.per_transaction + 520
$function$;

-- snowflake_migrate keeps the locks of all statements until the end.
CREATE FUNCTION snowflake_migrate_internal.require_locks(keys snowflake_migrate_internal.key[])
RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    PERFORM snowflake_migrate_internal.refuse_obstacles(
        ARRAY(SELECT o
              FROM (SELECT sum(n.locks)::bigint AS locks FROM snowflake_migrate_internal.lock_needs(keys) AS n) AS n
              CROSS JOIN LATERAL snowflake_migrate_internal.lock_obstacles(
                  NULL, n.locks, text 'rewriting all tables in one transaction') AS o),
        format('cannot migrate %s', snowflake_migrate_internal.key_names(keys)),
        text 'Nothing was changed. The statements of snowflake_migrate.plan() can also be run one by one.');
END
$function$;
