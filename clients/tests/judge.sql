-- What a client has written down (in the table seen), beside what the server has: the statements that
-- inserted into bulk_rows, the number of IDs, those that are not the ID of the row
-- with that note, those that came twice, and the IDs of bulk_rows.
CREATE TEMPORARY TABLE stored (relation text, note text, id text);
SELECT format('INSERT INTO stored SELECT %L, note, id::text FROM %I', relation, relation) FROM (SELECT DISTINCT relation FROM seen) AS r \gexec
SELECT (SELECT coalesce(sum(calls), 0) FROM pg_stat_statements
        WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND toplevel AND query ~* '(insert\s+into|copy)\s+("?public"?\.)?"?bulk_rows"?'),
       count(*), count(*) FILTER (WHERE t.id IS DISTINCT FROM s.id),
       count(*) - count(DISTINCT (s.relation, s.id)),
       count(*) FILTER (WHERE s.relation = 'bulk_rows')
FROM seen AS s LEFT JOIN stored AS t USING (relation, note);
