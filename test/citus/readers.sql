-- A reader of new rows for the test of races, and what it has lost.
CREATE TABLE IF NOT EXISTS reader (name text, reads bigint, last_id bigint);
TRUNCATE reader;
CREATE OR REPLACE PROCEDURE read_new(name text, seconds float8) LANGUAGE plpgsql AS $$
DECLARE
    ended CONSTANT timestamptz := clock_timestamp() + make_interval(secs => seconds);
    bound bigint;
    last_id bigint := 0;
    reads bigint := 0;
BEGIN
    WHILE clock_timestamp() < ended LOOP
        bound := CASE name WHEN 'own node' THEN snowflake_internal.node_resolved_id() ELSE snowflake_cluster_resolved_id() END;
        COMMIT;
        IF bound IS NOT NULL THEN
            INSERT INTO seen SELECT read_new.name, f.id FROM feed AS f WHERE f.id > last_id AND f.id < bound;
            last_id := bound - 1;
        END IF;
        COMMIT;
        reads := reads + 1;
        PERFORM pg_sleep(0.01);
    END LOOP;
    INSERT INTO reader VALUES (name, reads, last_id);
END $$;
CREATE OR REPLACE FUNCTION reads_of_new_rows(OUT reader text, OUT reads bigint, OUT rows bigint, OUT read bigint, OUT lost bigint, OUT twice bigint)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
    CREATE TEMP TABLE all_rows AS SELECT f.id FROM feed AS f;
    RETURN QUERY
        SELECT r.name, r.reads, (SELECT count(*) FROM all_rows), (SELECT count(*) FROM seen AS s WHERE s.reader = r.name),
               (SELECT count(*) FROM all_rows AS a WHERE a.id <= r.last_id AND NOT EXISTS (SELECT FROM seen AS s WHERE s.reader = r.name AND s.id = a.id)),
               (SELECT count(*) - count(DISTINCT s.id) FROM seen AS s WHERE s.reader = r.name)
        FROM public.reader AS r;
    DROP TABLE all_rows;
END $$;
