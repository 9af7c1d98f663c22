-- From PostgreSQL 19 on, snowflake_decode of a column in FROM is planned as the functions that
-- read one field each. Rows and errors are those of the function.
\pset format unaligned
\pset tuples_only on
SET TimeZone = 'UTC';
CREATE TABLE read (id bigint, layout text DEFAULT 'twitter');
INSERT INTO read SELECT snowflake_compose(timestamptz '2026-11-20 00:00+00' + n * interval '1 minute', n % 8, n % 16, n % 4)
FROM generate_series(0, 999) AS n;
INSERT INTO read VALUES (NULL), (0);
-- Whether a function stays in FROM; then what it returns, and the same of calls outside FROM.
CREATE FUNCTION stays(query text) RETURNS boolean LANGUAGE plpgsql AS $function$
DECLARE
    line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN (COSTS off) ' || query LOOP
        IF line ~ 'Function Scan' THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$function$;
CREATE TABLE forms (number int, inlined boolean, query text);
INSERT INTO forms VALUES
    (1, true, 'SELECT id, d.* FROM read, snowflake_decode(id) AS d'),
    (2, true, 'SELECT id, d.* FROM read CROSS JOIN LATERAL snowflake_decode(id, ''default'') AS d'),
    (3, true, 'SELECT id, d.sequence, (d).created_at FROM read JOIN snowflake_decode(id) AS d ON d.node_id = 3'),
    (4, true, 'SELECT id, d FROM read, snowflake_decode(id) AS d'),
    (5, true, 'SELECT id, t, s FROM read, snowflake_decode(id) AS d(t, n, b, s) WHERE t < ''2026-11-20 12:00+00'''),
    (6, true, 'SELECT id, (SELECT d.created_at FROM snowflake_decode(id) AS d) FROM read'),
    (7, true, 'SELECT id, count(*) FROM read, snowflake_decode(id) AS d GROUP BY id, d.created_at'),
    (8, false, 'SELECT id, d.* FROM read, snowflake_decode(id, layout) AS d'),
    (9, false, 'SELECT id, d.* FROM read, snowflake_decode(id + 0) AS d'),
    (10, false, 'SELECT id, d.* FROM read LEFT JOIN snowflake_decode(id) AS d ON d.node_id = 3'),
    (11, false, 'SELECT id, d.* FROM read, snowflake_decode(id) WITH ORDINALITY AS d'),
    (12, false, 'SELECT id, d.* FROM read, ROWS FROM (snowflake_decode(id), generate_series(1, 2)) AS d'),
    (13, false, 'SELECT id, d.* FROM read, snowflake_decode(249431905924104192) AS d');
SELECT number, stays(query) = (NOT inlined OR current_setting('server_version_num')::int < 190000) AS "as meant", query FROM forms ORDER BY number;
-- The same rows as where an outer join keeps the function.
CREATE FUNCTION rows_of(query text) RETURNS TABLE (result text) LANGUAGE plpgsql AS $function$
BEGIN
    RETURN QUERY EXECUTE 'SELECT q::text FROM (' || query || ') AS q';
END
$function$;
SELECT number, count(*) AS rows, md5(string_agg(result, ' ' ORDER BY result)) = (
           SELECT md5(string_agg(other, ' ' ORDER BY other))
           FROM rows_of(replace(query, 'FROM read', 'FROM (SELECT 1) AS one LEFT JOIN (SELECT 2) AS two ON false, read')) AS kept (other)) AS same
FROM forms, rows_of(query) GROUP BY number, query ORDER BY number;
-- What is no ID.
INSERT INTO read VALUES (-1);
SELECT d.* FROM read, snowflake_decode(id) AS d WHERE id = -1;
SELECT d.* FROM read, snowflake_decode(id, 'js53') AS d WHERE id > 9007199254740991 LIMIT 1;
SELECT d.* FROM read, snowflake_decode(id, 'nothing') AS d LIMIT 1;
-- Who may call it alone sees no other error, in a plan from before, too.
CREATE ROLE regress_snowflake_reader;
GRANT SELECT ON read TO regress_snowflake_reader;
SET ROLE regress_snowflake_reader;
PREPARE one AS SELECT d.sequence FROM read, snowflake_decode(id) AS d WHERE id = 0;
EXECUTE one;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION snowflake_sequence(bigint) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
EXECUTE one;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_sequence(bigint) TO PUBLIC;
REVOKE EXECUTE ON FUNCTION snowflake_decode(bigint) FROM PUBLIC;
SET ROLE regress_snowflake_reader;
EXECUTE one;
RESET ROLE;
GRANT EXECUTE ON FUNCTION snowflake_decode(bigint) TO PUBLIC;
DROP TABLE read, forms;
DROP FUNCTION stays, rows_of;
DROP ROLE regress_snowflake_reader;
