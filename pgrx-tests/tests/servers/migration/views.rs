//! Views and other objects that depend on a migrated column: 68 shapes of
//! them, dropped and re-created in a maintenance window and online. What the
//! catalog has about them is described by a query of this file, before and
//! after.

use Ways::{Both, Emptied, Window};

use crate::support::*;

/// How a shape can be migrated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ways {
    Both,
    /// Online after materialized views have been emptied.
    Emptied(&'static str),
    /// Partitions and children.
    Window,
}

/// A shape: what it shows, how it can be migrated, and what creates it in a
/// schema of its own, beside the tables of [`TABLES`].
struct Shape(&'static str, Ways, &'static str);

/// Of the role `maker`, who also owns the schema.
const TABLES: &str = "
    CREATE TABLE t (id serial PRIMARY KEY, n integer, name text);
    CREATE TABLE r (id serial PRIMARY KEY, t_id integer REFERENCES t, note text);
    INSERT INTO t (n, name) SELECT g, 'name ' || g FROM generate_series(1, 20) AS g;
    INSERT INTO r (t_id, note) SELECT g, 'note ' || g FROM generate_series(1, 20) AS g;
    CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
";

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    Shape("a view", Both, "CREATE VIEW v AS SELECT id, name FROM t WHERE n > 3"),
    Shape("a view of all columns with other names", Both, "CREATE VIEW v (a, b, c) AS SELECT * FROM t; ALTER VIEW v RENAME COLUMN a TO \"A\""),
    Shape("views three deep", Both, "CREATE VIEW v1 AS SELECT id, name FROM t; CREATE VIEW v2 AS SELECT id + 1 AS next FROM v1; CREATE VIEW v3 AS SELECT max(next) FROM v2"),
    Shape("a view of two widened tables", Both, "CREATE VIEW v AS SELECT t.id, r.id AS r_id, r.t_id FROM t JOIN r ON r.t_id = t.id"),
    Shape("names with quotes, dots and newlines", Both, "CREATE VIEW \"a \"\"v\"\".w\nx; --\" AS SELECT id AS \"i d\", name AS \"b.\"\"c\n\" FROM t; COMMENT ON COLUMN \"a \"\"v\"\".w\nx; --\".\"b.\"\"c\n\" IS 'c''\\'"),
    Shape("security_barrier", Both, "CREATE VIEW v WITH (security_barrier) AS SELECT id FROM t WHERE n > 3"),
    Shape("security_invoker", Both, "CREATE VIEW v WITH (security_invoker = on, security_barrier = false) AS SELECT id FROM t"),
    Shape("WITH LOCAL CHECK OPTION", Both, "CREATE VIEW v AS SELECT id, n FROM t WHERE id > 0 WITH LOCAL CHECK OPTION"),
    Shape("WITH CASCADED CHECK OPTION above another view", Both, "CREATE VIEW v AS SELECT id, n FROM t WHERE id > 0; CREATE VIEW w AS SELECT * FROM v WHERE n > 0 WITH CASCADED CHECK OPTION"),
    Shape("defaults of a view's columns", Both, "CREATE VIEW v AS SELECT * FROM t; ALTER VIEW v ALTER name SET DEFAULT 'it''s', ALTER n SET DEFAULT 1 + 2; ALTER VIEW v ALTER id SET DEFAULT nextval('t_id_seq')"),
    Shape("comments", Both, "CREATE VIEW v AS SELECT id, name FROM t; COMMENT ON VIEW v IS 'a view'; COMMENT ON COLUMN v.id IS 'a key'; COMMENT ON COLUMN v.name IS E'two\\nlines'"),
    Shape("grants, with grant options and to PUBLIC", Both, "CREATE VIEW v AS SELECT id FROM t; GRANT SELECT ON v TO PUBLIC; GRANT SELECT, INSERT ON v TO reader WITH GRANT OPTION; GRANT UPDATE, DELETE ON v TO reader"),
    Shape("grants by a role with grant option", Both, "CREATE VIEW v AS SELECT id FROM t; GRANT SELECT, UPDATE ON v TO granter WITH GRANT OPTION; SET ROLE granter; GRANT SELECT ON v TO reader WITH GRANT OPTION; GRANT UPDATE ON v TO PUBLIC; SET ROLE reader; GRANT SELECT ON v TO keeper"),
    Shape("grants on columns, with a grantor", Both, "CREATE VIEW v AS SELECT id, name FROM t; GRANT SELECT (id), UPDATE (name) ON v TO granter WITH GRANT OPTION; GRANT INSERT (id, name) ON v TO PUBLIC; SET ROLE granter; GRANT SELECT (id) ON v TO reader"),
    Shape("an owner without privileges", Both, "CREATE VIEW v AS SELECT id FROM t; REVOKE ALL ON v FROM maker; GRANT SELECT ON v TO reader; CREATE VIEW w AS SELECT id FROM t; REVOKE ALL ON w FROM maker"),
    Shape("a view of another owner", Both, "GRANT SELECT ON t TO keeper; CREATE VIEW v AS SELECT id FROM t; RESET ROLE; ALTER VIEW v OWNER TO keeper"),
    Shape("another owner's view of a view", Both, "CREATE VIEW v AS SELECT id, name FROM t; GRANT SELECT ON v TO keeper; SET ROLE keeper; CREATE VIEW w AS SELECT id FROM v; GRANT SELECT ON w TO maker"),
    Shape("default privileges since", Both, "CREATE VIEW v AS SELECT id FROM t; CREATE VIEW w AS SELECT id FROM t; GRANT SELECT ON w TO granter; ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT ALL ON TABLES TO reader, PUBLIC; CREATE FUNCTION f() RETURNS SETOF v LANGUAGE sql AS 'SELECT 1'; ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT EXECUTE ON FUNCTIONS TO reader WITH GRANT OPTION"),
    Shape("default privileges before", Both, "ALTER DEFAULT PRIVILEGES IN SCHEMA {s} GRANT SELECT ON TABLES TO reader; CREATE VIEW v AS SELECT id FROM t; CREATE VIEW w AS SELECT id FROM t; REVOKE SELECT ON w FROM reader"),
    Shape("INSTEAD OF triggers", Both, "CREATE VIEW v AS SELECT id, name FROM t; CREATE TRIGGER \"a t\" INSTEAD OF INSERT OR UPDATE ON v FOR EACH ROW EXECUTE FUNCTION nothing('it''s', '2'); CREATE TRIGGER b INSTEAD OF DELETE ON v FOR EACH ROW EXECUTE FUNCTION nothing(); COMMENT ON TRIGGER \"a t\" ON v IS 'instead'"),
    Shape("rules of a view", Both, "CREATE VIEW v AS SELECT id, name FROM t; CREATE RULE ins AS ON INSERT TO v DO INSTEAD INSERT INTO t (name) VALUES (new.name) RETURNING id, name; CREATE RULE upd AS ON UPDATE TO v DO INSTEAD (UPDATE t SET name = new.name WHERE id = old.id; NOTIFY changed); CREATE RULE upd2 AS ON UPDATE TO v WHERE old.id > 5 DO ALSO DELETE FROM r WHERE t_id = new.id; CREATE RULE del AS ON DELETE TO v DO INSTEAD NOTHING; COMMENT ON RULE del ON v IS 'none'"),
    Shape("rules of tables", Both, "CREATE RULE also AS ON DELETE TO t DO ALSO DELETE FROM r WHERE t_id = old.id; CREATE RULE \"o f\" AS ON INSERT TO r WHERE new.t_id = 7 DO INSTEAD NOTHING; COMMENT ON RULE also ON t IS 'with it'"),
    Shape("rules that are disabled, or only for replicas", Both, "CREATE RULE a AS ON DELETE TO r DO ALSO DELETE FROM t WHERE id = old.t_id; CREATE RULE b AS ON DELETE TO r DO ALSO DELETE FROM t WHERE id = old.t_id + 1; CREATE RULE c AS ON DELETE TO r DO ALSO DELETE FROM t WHERE id = old.t_id + 2; ALTER TABLE r DISABLE RULE a, ENABLE REPLICA RULE b, ENABLE ALWAYS RULE c"),
    Shape("policies", Both, "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t AS RESTRICTIVE FOR UPDATE TO reader, granter USING (id > 1) WITH CHECK (id > 2); CREATE POLICY \"a p\" ON t FOR INSERT WITH CHECK (id <> 7); CREATE POLICY s ON t FOR SELECT TO CURRENT_USER USING (id = ANY (ARRAY[1, 2])); COMMENT ON POLICY p ON t IS 'few'"),
    Shape("policies of other tables", Both, "CREATE TABLE o (x integer, y integer); CREATE POLICY p ON o USING (EXISTS (SELECT FROM t WHERE t.id = o.x)); CREATE POLICY q ON r FOR DELETE USING (t_id IN (SELECT t.id FROM t WHERE t.n = r.id))"),
    Shape("triggers of the column, in all states", Both, "CREATE TRIGGER a BEFORE UPDATE OF id ON t FOR EACH ROW EXECUTE FUNCTION nothing(); CREATE TRIGGER b AFTER UPDATE OF id, name ON t FOR EACH STATEMENT EXECUTE FUNCTION nothing(); CREATE TRIGGER c AFTER UPDATE OF id ON t FOR EACH ROW EXECUTE FUNCTION nothing(); CREATE TRIGGER d AFTER UPDATE OF t_id ON r FOR EACH ROW EXECUTE FUNCTION nothing(); ALTER TABLE t DISABLE TRIGGER a, ENABLE REPLICA TRIGGER b, ENABLE ALWAYS TRIGGER c"),
    Shape("triggers with WHEN, and constraint triggers", Both, "CREATE TRIGGER a BEFORE DELETE ON t FOR EACH ROW WHEN (old.id > 3) EXECUTE FUNCTION nothing('a ''b''', 'c\\'); CREATE CONSTRAINT TRIGGER k AFTER UPDATE OF id ON t FROM r DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (old.id IS DISTINCT FROM new.id) EXECUTE FUNCTION nothing(); COMMENT ON TRIGGER k ON t IS 'late'; COMMENT ON CONSTRAINT k ON t IS 'later'"),
    Shape("functions with SQL bodies", Both, "CREATE FUNCTION f(i bigint, OUT name text) LANGUAGE sql STABLE STRICT SECURITY DEFINER COST 7 SET work_mem = '1MB' BEGIN ATOMIC SELECT t.name FROM t WHERE t.id = i; END; COMMENT ON FUNCTION f IS 'by key'; REVOKE EXECUTE ON FUNCTION f FROM PUBLIC; GRANT EXECUTE ON FUNCTION f TO reader WITH GRANT OPTION; CREATE FUNCTION g(text DEFAULT 'x''y') RETURNS bigint LANGUAGE sql RETURN (SELECT max(id) FROM t)"),
    Shape("procedures with SQL bodies", Both, "CREATE PROCEDURE p(i bigint DEFAULT 7) LANGUAGE sql BEGIN ATOMIC DELETE FROM r WHERE t_id = i; UPDATE t SET n = 0 WHERE id = i; END; COMMENT ON PROCEDURE p IS 'two'"),
    Shape("a function that returns rows of a view", Both, "CREATE VIEW v AS SELECT id, name FROM t; CREATE FUNCTION f(i int) RETURNS SETOF v LANGUAGE sql ROWS 7 AS 'SELECT * FROM v WHERE id = i'; SET ROLE maker; GRANT EXECUTE ON FUNCTION f TO granter WITH GRANT OPTION; SET ROLE granter; GRANT EXECUTE ON FUNCTION f TO reader"),
    Shape("a function of a view's rows, and a view of it", Both, "CREATE VIEW v AS SELECT id, name FROM t; CREATE FUNCTION f(v) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1.name'; CREATE VIEW w AS SELECT f(v) AS f, v.id FROM v; CREATE FUNCTION g(VARIADIC v[]) RETURNS w LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"),
    Shape("a function of another owner", Both, "CREATE VIEW v AS SELECT id, name FROM t; SET ROLE keeper; CREATE FUNCTION f(v DEFAULT NULL) RETURNS int LANGUAGE plpgsql PARALLEL SAFE AS 'BEGIN RETURN 1; END'"),
    Shape("window functions and filters", Both, "CREATE VIEW v AS SELECT id, row_number() OVER w AS k, sum(n) FILTER (WHERE id > 2) OVER (PARTITION BY name ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t WINDOW w AS (ORDER BY id DESC NULLS LAST)"),
    Shape("UNION with integers", Both, "CREATE VIEW v AS SELECT id, name FROM t UNION ALL SELECT n, 'n' FROM t UNION ALL SELECT 0, NULL; CREATE VIEW w AS SELECT n AS x FROM t EXCEPT SELECT id FROM t"),
    Shape("a recursive view", Both, "CREATE VIEW v AS WITH RECURSIVE w (id, depth) AS (SELECT id, 1 FROM t WHERE n = 1 UNION ALL SELECT t.id, w.depth + 1 FROM t JOIN w ON t.n = w.id + 1) SEARCH DEPTH FIRST BY id SET o CYCLE id SET is_cycle USING path SELECT id, depth FROM w"),
    Shape("COALESCE, CASE, arrays and casts", Both, "CREATE VIEW v AS SELECT COALESCE(id, 0) AS a, CASE WHEN id > 3 THEN id ELSE 0 END AS b, ARRAY[id, n] AS c, id::text AS d, (id::numeric(20,2)) / 3 AS e, id = ANY ('{1,2}'::int[]) AS f, greatest(id, n, 5) AS g, id % 7 AS h, nullif(id, 3) AS i FROM t"),
    Shape("GROUP BY a primary key", Both, "CREATE VIEW v AS SELECT t.id, t.name, count(r.id) FROM t LEFT JOIN r ON r.t_id = t.id GROUP BY t.id HAVING count(*) < 5"),
    Shape("subqueries, LATERAL and VALUES", Both, "CREATE VIEW v AS SELECT t.id, l.note, x.a, (SELECT count(*) FROM r WHERE r.t_id = t.id) AS k FROM t CROSS JOIN LATERAL (SELECT note FROM r WHERE r.t_id = t.id LIMIT 1) AS l JOIN (VALUES (1, 'one'), (2, 'two')) AS x (a, b) ON x.a = t.id WHERE EXISTS (SELECT FROM r WHERE r.t_id = t.id)"),
    Shape("whole rows", Both, "CREATE VIEW v AS SELECT (t).id, row_to_json(t) AS j, t.id IS NOT NULL AS k FROM t; CREATE VIEW w AS SELECT v, (v).id FROM v"),
    Shape("sums and averages", Both, "CREATE VIEW v AS SELECT sum(id), avg(id), max(id), array_agg(id ORDER BY id) AS ids, json_agg(id) AS j FROM t"),
    Shape("DISTINCT ON, LIMIT, FOR UPDATE and TABLESAMPLE", Both, "CREATE VIEW v AS SELECT DISTINCT ON (id) id, name COLLATE \"C\" FROM t ORDER BY id, name USING OPERATOR(pg_catalog.>) LIMIT 7 OFFSET 1; CREATE VIEW w AS SELECT id FROM t FOR UPDATE OF t SKIP LOCKED; CREATE VIEW x AS SELECT id FROM t TABLESAMPLE system (50) REPEATABLE (1)"),
    Shape("constants of many types", Both, "CREATE VIEW v AS SELECT id, date '2020-02-01' AS a, timestamptz '2020-02-01 10:00:00+05' AS b, interval '-1 days +02:03' AS c, 0.1::float8 + 1e-300 AS d, E'b\\\\s \\' \"q\" $do$' AS e, '\\x00ff'::bytea AS f, '{\"a\": 1}'::jsonb AS g, 1.10::money AS h, 0.3::real AS i, 'a & b'::tsquery IS NULL AS j FROM t WHERE name <> '::integer'"),
    Shape("functions and operators of the schema", Both, "CREATE FUNCTION same(integer, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 = $2'; CREATE FUNCTION same(bigint, integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT $1 = $2'; CREATE OPERATOR === (FUNCTION = same, LEFTARG = integer, RIGHTARG = integer); CREATE OPERATOR === (FUNCTION = same, LEFTARG = bigint, RIGHTARG = integer); CREATE VIEW v AS SELECT id, same(id, 3) AS a, id === n AS b FROM t"),
    Shape("views and functions in turns", Both, "CREATE VIEW v AS SELECT id, name FROM t; CREATE FUNCTION f() RETURNS SETOF v LANGUAGE sql BEGIN ATOMIC SELECT v.id, v.name FROM v; END; CREATE VIEW w AS SELECT f.id, f.name FROM f() AS f; CREATE FUNCTION g(i bigint) RETURNS bigint LANGUAGE sql RETURN (SELECT count(*) FROM w WHERE id = i); CREATE VIEW x AS SELECT g(id) FROM v; ALTER VIEW v ALTER name SET DEFAULT 'x' || g(1); CREATE RULE i AS ON INSERT TO v DO INSTEAD INSERT INTO t (name) SELECT new.name FROM x LIMIT 1"),
    Shape("a view in another schema", Both, "CREATE SCHEMA {s}_b; SET search_path = {s}_b; CREATE VIEW t AS SELECT id, name FROM {s}.t; CREATE VIEW v AS SELECT t.id, o.n FROM t JOIN {s}.t AS o USING (id)"),
    Shape("an updatable view with rights", Both, "CREATE VIEW v AS SELECT id, n, name FROM t WHERE n < 100 WITH CHECK OPTION; GRANT INSERT, UPDATE (name), SELECT ON v TO reader; ALTER VIEW v ALTER n SET DEFAULT 5; CREATE VIEW w AS SELECT * FROM v; GRANT ALL ON w TO granter"),
    Shape("a materialized view with indexes", Emptied("m"), "CREATE MATERIALIZED VIEW m AS SELECT t.id, t.name, r.note FROM t JOIN r ON r.t_id = t.id; CREATE UNIQUE INDEX ON m (id); CREATE INDEX \"by name\" ON m (lower(name), (id + 1) DESC) INCLUDE (note) WITH (fillfactor = 70) WHERE id > 2; CREATE INDEX h ON m USING hash (name); ALTER MATERIALIZED VIEW m CLUSTER ON m_id_idx; ALTER INDEX \"by name\" ALTER 1 SET STATISTICS 55; COMMENT ON INDEX h IS 'hashed'"),
    Shape("a materialized view without data", Both, "CREATE MATERIALIZED VIEW m AS SELECT id FROM t WITH NO DATA; CREATE UNIQUE INDEX ON m (id); GRANT SELECT ON m TO reader; COMMENT ON MATERIALIZED VIEW m IS 'empty'"),
    Shape("materialized views above each other", Emptied("m, m2, m3"), "CREATE MATERIALIZED VIEW m AS SELECT id, n FROM t; GRANT SELECT ON m TO keeper; SET ROLE keeper; CREATE MATERIALIZED VIEW m2 AS SELECT id FROM m WHERE n > 3; CREATE VIEW v AS SELECT m2.id FROM m2; GRANT SELECT ON v TO maker; SET ROLE maker; CREATE MATERIALIZED VIEW m3 AS SELECT count(*) FROM v; CREATE VIEW w AS SELECT * FROM m3, m"),
    Shape("a materialized view with settings and statistics", Emptied("m"), "CREATE MATERIALIZED VIEW m (a, b, c) WITH (fillfactor = 80, autovacuum_enabled = off, toast.autovacuum_enabled = off) AS SELECT id, name, n FROM t; ALTER MATERIALIZED VIEW m ALTER a SET STATISTICS 77, ALTER b SET STORAGE EXTERNAL, ALTER a SET (n_distinct = 20, n_distinct_inherited = -0.5), ALTER b SET COMPRESSION pglz; CREATE STATISTICS s (ndistinct, mcv) ON a, c FROM m; CREATE STATISTICS s2 ON (a + c), b FROM m; ALTER STATISTICS s SET STATISTICS 33; COMMENT ON STATISTICS s IS 'both'; COMMENT ON COLUMN m.b IS 'name'; GRANT SELECT (b) ON m TO reader"),
    Shape("a materialized view that depends on an extension", Emptied("m"), "CREATE MATERIALIZED VIEW m AS SELECT id FROM t; CREATE INDEX i ON m (id); RESET ROLE; ALTER MATERIALIZED VIEW m DEPENDS ON EXTENSION plpgsql; ALTER INDEX i DEPENDS ON EXTENSION plpgsql; CREATE TRIGGER a BEFORE UPDATE OF id ON t FOR EACH ROW EXECUTE FUNCTION nothing(); ALTER TRIGGER a ON t DEPENDS ON EXTENSION plpgsql"),
    Shape("a partitioned table", Window, "CREATE TABLE p (id serial, n integer, PRIMARY KEY (n, id)) PARTITION BY LIST (n); CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1); CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2); INSERT INTO p (n) VALUES (1), (2); CREATE VIEW v AS SELECT id FROM p; CREATE VIEW w AS SELECT id FROM p1; CREATE TRIGGER g AFTER UPDATE OF id ON p FOR EACH ROW EXECUTE FUNCTION nothing(); ALTER TABLE p1 DISABLE TRIGGER g; CREATE POLICY y ON p2 USING (id > 0); DROP TABLE r; DROP TABLE t; ALTER TABLE p RENAME TO t"),
    Shape("inheritance children", Window, "CREATE TABLE c (extra text) INHERITS (t); INSERT INTO c (n) VALUES (1); CREATE VIEW v AS SELECT id, extra FROM c; CREATE VIEW w AS SELECT tableoid::regclass, id FROM t; CREATE RULE u AS ON UPDATE TO c WHERE old.id = 7 DO INSTEAD NOTHING; CREATE TRIGGER b BEFORE UPDATE OF id ON c FOR EACH ROW EXECUTE FUNCTION nothing()"),
    Shape("literals without a name or a type", Both, "CREATE VIEW v AS SELECT id, 'x' FROM t UNION SELECT t_id, NULL FROM r; CREATE VIEW w AS SELECT NULL, 7 AS b, 'seven' AS c, id FROM t"),
    Shape("UNION with bigint", Both, "CREATE VIEW v AS SELECT id FROM t UNION ALL SELECT n::bigint FROM t; CREATE VIEW w AS SELECT id FROM v INTERSECT SELECT id FROM t"),
    Shape("columns of a join with USING", Both, "CREATE VIEW v AS SELECT id, t.name, r.note FROM t FULL JOIN r USING (id); CREATE VIEW w AS SELECT * FROM t JOIN r USING (id) AS j"),
    Shape("NATURAL JOIN and other names of columns", Window, "CREATE VIEW v AS SELECT id, note FROM t NATURAL JOIN r; CREATE VIEW w AS SELECT x.key FROM t AS x (key, number, text) WHERE x.key IN (SELECT y.b FROM r AS y (a, b, c))"),
    Shape("WITH queries of widened columns", Both, "CREATE VIEW v AS WITH a AS MATERIALIZED (SELECT id, n FROM t), b AS NOT MATERIALIZED (SELECT t_id FROM r) SELECT a.id, b.t_id FROM a LEFT JOIN b ON b.t_id = a.id"),
    Shape("ANY, ALL and rows", Both, "CREATE VIEW v AS SELECT id FROM t WHERE id = ANY (SELECT t_id FROM r) AND (id, n) <> ALL (SELECT r.id, 3 FROM r) AND ROW(id, n) > ROW(0, 0); CREATE VIEW w AS SELECT ROW(id, n)::text AS r FROM t"),
    Shape("BETWEEN, IN and NULLIF", Both, "CREATE VIEW v AS SELECT NULLIF(id, 3) AS x, id BETWEEN 2 AND 7 AS y, id NOT IN (1, 2, 3) AS z, id IS DISTINCT FROM n AS w FROM t"),
    Shape("arithmetic with other types", Both, "CREATE VIEW v AS SELECT id + 1 AS a, id * 2.5 AS b, id / 3::float8 AS c, id % 2 AS d, -id AS e, id::smallint AS f, abs(id) AS g, id & 7 AS h, id::oid AS i FROM t"),
    Shape("texts and formats of the key", Both, "CREATE VIEW v AS SELECT 'no. ' || id AS a, format('%s', id) AS b, to_char(id, '000') AS c, lpad(id::text, 8, '0') AS d, concat(id, n) AS e, md5(id::text) AS f FROM t"),
    Shape("JSON of the key", Both, "CREATE VIEW v AS SELECT json_build_object('id', id) AS a, jsonb_agg(jsonb_build_array(id, n)) OVER () AS b, to_jsonb(id) AS c, row_to_json(x) AS d FROM t AS x"),
    Shape("ranges and series of the key", Both, "CREATE VIEW v AS SELECT id, g FROM t CROSS JOIN LATERAL generate_series(id, id + 2) AS g; CREATE VIEW w AS SELECT unnest(ARRAY[id, 3]) AS x FROM t"),
    Shape("GROUPING SETS and ordered sets", Both, "CREATE VIEW v AS SELECT id, n, count(*), grouping(id) AS l FROM t GROUP BY GROUPING SETS ((id), (n), ()); CREATE VIEW w AS SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY id) AS m, rank(3) WITHIN GROUP (ORDER BY id) AS k FROM t"),
    Shape("a scalar sub-select in each place", Both, "CREATE VIEW v AS SELECT (SELECT max(id) FROM t) AS a, n FROM t WHERE id = (SELECT min(t_id) FROM r) ORDER BY (SELECT count(*) FROM r WHERE r.t_id = t.id) LIMIT (SELECT 5)"),
    Shape("rules with the key in other statements", Both, "CREATE TABLE log (key bigint, what text); CREATE RULE i AS ON INSERT TO r WHERE new.t_id > 1 DO ALSO INSERT INTO log VALUES (new.t_id, 'new'); CREATE RULE d AS ON DELETE TO r DO ALSO (UPDATE log SET what = 'gone' WHERE key = old.t_id; INSERT INTO log SELECT t.id, t.name FROM t WHERE t.id = old.t_id)"),
    Shape("current_setting, system columns and a regclass", Both, "CREATE VIEW v AS SELECT id, ctid, tableoid::regclass AS t, 't'::regclass AS c, current_setting('server_version') AS s, pg_typeof(id) AS y FROM t"),
];

/// What the catalog has about the objects of schemas, one line each: what it is
/// about, and the text. Types are in lines of their own.
const DESCRIBE: &str = r#"
WITH relation AS (
    SELECT c.*, n.nspname || '.' || c.relname AS name
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname LIKE $1
), seen AS (SELECT * FROM relation WHERE relkind IN ('v', 'm') OR relkind = 'i' AND EXISTS (
    SELECT FROM pg_index AS i JOIN pg_class AS m ON m.oid = i.indrelid AND m.relkind = 'm' WHERE i.indexrelid = relation.oid)
), routine AS (
    SELECT f.*, f.oid::regprocedure::text AS name FROM pg_proc AS f JOIN pg_namespace AS n ON n.oid = f.pronamespace WHERE n.nspname LIKE $1
)
SELECT line FROM (
    SELECT format('%s %s: %s', relkind, name, concat_ws(' | ', relowner::regrole, coalesce(relacl, acldefault('r', relowner)), reloptions, reltablespace, relam, relpersistence,
                  relispopulated, relhasrules, relhastriggers, relhasindex, relreplident, relrowsecurity, (SELECT t.reloptions FROM pg_class AS t WHERE t.oid = seen.reltoastrelid))) AS line
    FROM seen
  UNION ALL
    SELECT format('definition of %s: %s', name, pg_get_viewdef(oid)) FROM seen WHERE relkind <> 'i'
  UNION ALL
    SELECT format('rows of %s: %s', name, CASE WHEN relispopulated THEN pg_temp.rows_of(oid) END)
    FROM seen WHERE relkind = 'm'
  UNION ALL
    SELECT format('column %s of %s: %s', a.attname, s.name, concat_ws(' | ', a.attnum, a.attacl, a.attstattarget, nullif(a.attstorage, y.typstorage), a.attcompression,
               -- Newer minor releases keep a version there.
               ARRAY(SELECT o FROM unnest(a.attoptions) AS o WHERE o NOT LIKE 'pg\_%' ORDER BY o), a.attcollation))
    FROM seen AS s JOIN pg_attribute AS a ON a.attrelid = s.oid AND a.attnum > 0 JOIN pg_type AS y ON y.oid = a.atttypid
  UNION ALL
    SELECT format('type of %s of %s: %s', a.attname, s.name, format_type(a.atttypid, a.atttypmod)) FROM seen AS s JOIN pg_attribute AS a ON a.attrelid = s.oid AND a.attnum > 0
  UNION ALL
    SELECT format('default of %s of %s: %s', f.adnum, s.name, pg_get_expr(f.adbin, f.adrelid)) FROM seen AS s JOIN pg_attrdef AS f ON f.adrelid = s.oid
  UNION ALL
    SELECT format('rule %s of %s: %s | %s', w.rulename, r.name, w.ev_enabled, pg_get_ruledef(w.oid)) FROM relation AS r JOIN pg_rewrite AS w ON w.ev_class = r.oid WHERE w.rulename <> '_RETURN'
  UNION ALL
    SELECT format('trigger %s of %s: %s | %s | %s', t.tgname, r.name, t.tgenabled, t.tgconstrrelid::regclass, pg_get_triggerdef(t.oid)) FROM relation AS r JOIN pg_trigger AS t ON t.tgrelid = r.oid
    WHERE NOT t.tgisinternal AND t.tgfoid <> 'snowflake_migrate_internal.shadow()'::regprocedure
  UNION ALL
    SELECT format('policy %s of %s: %s', p.polname, r.name, concat_ws(' | ', p.polcmd, p.polpermissive, p.polroles::regrole[], pg_get_expr(p.polqual, p.polrelid), 'check', pg_get_expr(p.polwithcheck, p.polrelid)))
    FROM relation AS r JOIN pg_policy AS p ON p.polrelid = r.oid
  UNION ALL
    SELECT format('index %s: %s | %s | %s', s.name, pg_get_indexdef(s.oid), i.indisclustered, i.indisvalid) FROM seen AS s JOIN pg_index AS i ON i.indexrelid = s.oid
  UNION ALL
    SELECT format('statistics %s: %s | %s | %s', x.stxname, pg_get_statisticsobjdef(x.oid), x.stxowner::regrole, x.stxstattarget) FROM relation AS r JOIN pg_statistic_ext AS x ON x.stxrelid = r.oid
  UNION ALL
    SELECT format('function %s: %s', name, concat_ws(' | ', proowner::regrole, coalesce(proacl, acldefault('f', proowner)), pg_get_functiondef(oid))) FROM routine
  UNION ALL
    SELECT format('comment on %s: %s', pg_describe_object(d.classoid, d.objoid, d.objsubid), d.description)
    FROM pg_description AS d CROSS JOIN LATERAL pg_identify_object(d.classoid, d.objoid, 0) AS i
    WHERE i.identity LIKE '%' || $1 || '%' AND d.classoid <> 'pg_namespace'::regclass
  UNION ALL
    SELECT format('extension of %s: %s', pg_describe_object(d.classid, d.objid, 0), d.refobjid) FROM pg_depend AS d CROSS JOIN LATERAL pg_identify_object(d.classid, d.objid, 0) AS i
    WHERE d.deptype = 'x' AND i.identity LIKE '%' || $1 || '%'
) AS lines ORDER BY line COLLATE "C""#;

/// What the catalog has about the objects of a shape.
fn describe(client: &mut Client, schema: &str) -> Result<Vec<String>> {
    client.batch_execute(
        "SET search_path = pg_catalog;
         CREATE OR REPLACE FUNCTION pg_temp.rows_of(relation oid, OUT rows text) LANGUAGE plpgsql AS $$
         BEGIN
             EXECUTE format('SELECT concat(count(*), '' '', md5(string_agg(x::text, '','' ORDER BY x::text))) FROM %s AS x', relation::regclass) INTO rows;
         END $$",
    )?;
    let rows = client
        .query(DESCRIBE, &[&format!("{schema}%")])
        .context("describing")?;
    client.batch_execute("RESET search_path")?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// A definition without casts between numbers, and the parentheses of casts.
fn without_casts(line: &str) -> String {
    let mut text = line.replace("[]", "");
    for cast in ["::bigint", "::integer", "::numeric"] {
        text = text.replace(cast, "");
    }
    text.chars().filter(|it| !"() \n".contains(*it)).collect()
}

/// In how many types two descriptions differ. They may also differ by casts between numbers;
/// any other difference fails.
fn types_only(before: &[String], after: &[String]) -> Result<usize> {
    ensure!(
        before.len() == after.len(),
        "{} lines, then {}: {before:#?} {after:#?}",
        before.len(),
        after.len()
    );
    let mut types = 0;
    for (was, is) in before.iter().zip(after).filter(|(was, is)| was != is) {
        if was.starts_with("type of ") {
            let (name, was_type) = was.rsplit_once(": ").context("no type")?;
            let (same_name, is_type) = is.rsplit_once(": ").context("no type")?;
            ensure!(name == same_name, "{was} / {is}");
            let pair = (was_type, is_type);
            let allowed = [
                ("integer", "bigint"),
                ("integer[]", "bigint[]"),
                ("bigint", "numeric"),
            ];
            ensure!(allowed.contains(&pair), "{was} / {is}");
            types += 1;
        } else {
            ensure!(without_casts(was) == without_casts(is), "\n{was}\n{is}");
        }
    }
    Ok(types)
}

/// The schema of a shape.
fn schema_of(number: usize) -> String {
    format!("v{number:02}")
}

/// Roles, and a database with all shapes; those that a way is for.
fn populate(cluster: &Cluster, database: &str) -> Result<Client> {
    let mut client = cluster.connect_to_new_database(database)?;
    client.batch_execute(&format!(
        "SET client_min_messages = error; GRANT CREATE ON DATABASE {database} TO maker"
    ))?;
    for (number, Shape(name, _, setup)) in SHAPES.iter().enumerate() {
        let schema = schema_of(number);
        client
            .batch_execute(&format!(
                "CREATE SCHEMA {schema} AUTHORIZATION maker;
                 GRANT USAGE, CREATE ON SCHEMA {schema} TO keeper, granter, reader;
                 SET ROLE maker; SET search_path = {schema}, public; {TABLES}"
            ))
            .context(*name)?;
        client
            .batch_execute(&setup.replace("{s}", &schema))
            .context(*name)?;
        client.batch_execute("RESET ROLE; RESET search_path")?;
    }
    Ok(client)
}

fn cluster_with_roles() -> Result<Cluster> {
    let cluster = Cluster::node(1).conf("jit", "off").start_with_migrate()?;
    cluster.run(
        "CREATE ROLE maker LOGIN; CREATE ROLE keeper LOGIN; CREATE ROLE granter; CREATE ROLE reader",
    )?;
    Ok(cluster)
}

/// Inserts through the table, and returns the ID.
fn insert(client: &mut Client, schema: &str) -> Result<i64> {
    client.number(&format!(
        "INSERT INTO {schema}.t (n) VALUES (1) RETURNING id"
    ))
}

/// New rows get snowflake IDs; the sequence is restored, and the objects stay.
fn use_and_revert(client: &mut Client, schema: &str, migrated: &[String]) -> Result<()> {
    ensure!(insert(client, schema)? > 1 << 40, "no snowflake ID");
    client.run([
        format!("DELETE FROM {schema}.t WHERE id > 1::bigint << 40"),
        format!("CALL snowflake_migrate.revert('{schema}.t')"),
    ])?;
    let reverted = describe(client, schema)?;
    ensure!(reverted == migrated, "reverted: {reverted:#?}");
    Ok(())
}

/// A shape migrated in a window.
fn in_window(client: &mut Client, schema: &str) -> Result<()> {
    let before = describe(client, schema)?;
    client.run(vec![format!("CALL snowflake_migrate.run('{schema}.t')"); 2])?;
    let migrated = describe(client, schema)?;
    types_only(&before, &migrated)?;
    use_and_revert(client, schema, &migrated)
}

/// The same online. Materialized views are empty for the swap.
fn while_in_use(client: &mut Client, schema: &str, ways: Ways) -> Result<()> {
    let before = describe(client, schema)?;
    let views: Vec<&str> = match ways {
        Emptied(views) => views.split(", ").collect(),
        _ => Vec::new(),
    };
    if !views.is_empty() {
        let plan = format!("SELECT * FROM snowflake_migrate.plan('{schema}.t', online => true)");
        let refused = client.refused(&plan, "55000")?;
        ensure!(refused.detail.contains("WITH NO DATA"), "{refused}");
    }
    client.run(
        views
            .iter()
            .rev()
            .map(|view| format!("REFRESH MATERIALIZED VIEW {schema}.{view} WITH NO DATA")),
    )?;
    online::migrate(client, &format!("'{schema}.t'"))?;
    client.run(
        views
            .iter()
            .map(|view| format!("REFRESH MATERIALIZED VIEW {schema}.{view}")),
    )?;
    let migrated = describe(client, schema)?;
    types_only(&before, &migrated)?;
    use_and_revert(client, schema, &migrated)
}

/// Migrates the shapes that a way is for. Returns how many.
fn migrate_shapes(
    database: &str,
    is_for: impl Fn(usize, Ways) -> bool,
    migrate: impl Fn(&mut Client, &str, Ways) -> Result<()>,
) -> Result<usize> {
    let cluster = cluster_with_roles()?;
    let mut client = populate(&cluster, database)?;
    let (mut migrated, mut failed) = (0, Vec::new());
    for (position, Shape(name, ways, _)) in SHAPES.iter().enumerate() {
        if !is_for(position, *ways) {
            continue;
        }
        match migrate(&mut client, &schema_of(position), *ways) {
            Ok(()) => migrated += 1,
            Err(error) => failed.push(format!("{:02} {name}: {error:#}", position + 1)),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(migrated)
}

#[test]
fn shapes_of_dependents_stay_in_a_window() -> Result<()> {
    let migrated = migrate_shapes(
        "in_window",
        |_, _| true,
        |client, schema, _| in_window(client, schema),
    )?;
    assert!(migrated >= 68);
    Ok(())
}

#[test]
fn even_shapes_of_dependents_stay_online() -> Result<()> {
    migrate_shapes(
        "in_use",
        |position, ways| position % 2 == 0 && ways != Window,
        while_in_use,
    )?;
    Ok(())
}

#[test]
fn odd_shapes_of_dependents_stay_online() -> Result<()> {
    migrate_shapes(
        "in_use",
        |position, ways| position % 2 == 1 && ways != Window,
        while_in_use,
    )?;
    Ok(())
}

/// What cannot be created again: what is set up, the SQLSTATE, and parts of the
/// answer. The last is whether the plan already refuses it.
#[rustfmt::skip]
const FAILING: &[(&str, &str, &[&str], bool)] = &[
    ("CREATE FUNCTION half(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 / 2'; CREATE VIEW v AS SELECT half(id) FROM t", "55000",
        &["view f00.v cannot be created again", "function f00.half(bigint) does not exist. Create the function or operator for bigint"], true),
    ("CREATE VIEW v AS WITH RECURSIVE w (id) AS (SELECT 0 UNION ALL SELECT t.id FROM t JOIN w ON t.n = w.id) SELECT id FROM w", "55000",
        &["view f01.v cannot be created again", "recursive query"], true),
    // The planted function is the better match for a bigint.
    ("CREATE FUNCTION same(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT $1 = $2'; CREATE VIEW v AS SELECT same(id, 3) FROM t;
      SET ROLE mallory; CREATE FUNCTION same(bigint, integer) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE NOTICE ''%'', current_user; RETURN true; END'", "55000",
        &["view f02.v would call functions or operators of mallory"], false),
    ("CREATE FUNCTION same(integer, integer) RETURNS boolean LANGUAGE sql AS 'SELECT $1 = $2'; CREATE OPERATOR === (FUNCTION = same, LEFTARG = integer, RIGHTARG = integer);
      CREATE POLICY p ON r USING (t_id === 3);
      SET ROLE mallory; CREATE FUNCTION same2(bigint, integer) RETURNS boolean LANGUAGE sql AS 'SELECT true'; CREATE OPERATOR === (FUNCTION = same2, LEFTARG = bigint, RIGHTARG = integer)", "55000",
        &["policy p on f03.r would call functions or operators of mallory"], false),
    ("CREATE VIEW v AS SELECT id FROM t; RESET ROLE; CREATE ROLE outside_{s}; GRANT outside_{s} TO postgres; ALTER VIEW v OWNER TO outside_{s}; REVOKE ALL ON SCHEMA {s} FROM outside_{s}", "42501",
        &["permission denied for schema f04", "GRANT CREATE, USAGE ON SCHEMA f04 TO outside_f04, which owns view f04.v"], true),
    ("CREATE VIEW v AS SELECT id FROM t; CREATE FUNCTION f(v) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1'; CREATE TABLE u (x integer CHECK (x > f(NULL)), y integer DEFAULT f(NULL))", "55000",
        &["default value for f05.u.y cannot be dropped and created again", "u_x_check on f05.u cannot be dropped"], true),
    ("CREATE VIEW v AS SELECT id FROM t; RESET ROLE; ALTER EXTENSION plpgsql ADD VIEW v", "55000", &["view f06.v belongs to an extension"], true),
    ("CREATE FUNCTION check_delete(integer) RETURNS void LANGUAGE sql AS 'SELECT'; CREATE RULE c AS ON DELETE TO t DO ALSO SELECT check_delete(old.id)", "55000",
        &["rule c on f07.t cannot be created again", "function f07.check_delete(bigint) does not exist. Create the function or operator for bigint"], true),
    ("CREATE FUNCTION half(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 / 2'; CREATE TABLE log (x bigint);
      CREATE RULE i AS ON INSERT TO t WHERE new.n > 3 DO ALSO INSERT INTO log VALUES (half(new.id)), (new.id);
      CREATE RULE d AS ON DELETE TO t WHERE half(old.id) > 0 DO ALSO NOTHING", "55000",
        &["rule i on f08.t cannot be created again", "rule d on f08.t cannot be created again"], true),
    ("CREATE FUNCTION half(integer) RETURNS integer LANGUAGE sql AS 'SELECT $1 / 2'; CREATE VIEW v AS SELECT id FROM t;
      CREATE RULE d AS ON DELETE TO v DO INSTEAD DELETE FROM r WHERE t_id = half(old.id)", "55000",
        &["rule d on f09.v cannot be created again"], true),
];

#[test]
fn dependents_that_cannot_be_created_again_change_nothing() -> Result<()> {
    let cluster = cluster_with_roles()?;
    let mut client = cluster.connect_to_new_database("failing")?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; GRANT CREATE ON DATABASE failing TO maker; CREATE ROLE mallory LOGIN",
    )?;
    for (position, (setup, sqlstate, parts, is_planned)) in FAILING.iter().enumerate() {
        let schema = format!("f{position:02}");
        client.run([
            format!("CREATE SCHEMA {schema} AUTHORIZATION maker; GRANT USAGE, CREATE ON SCHEMA {schema} TO mallory"),
            format!("SET ROLE maker; SET search_path = {schema}, public; {TABLES} {}", setup.replace("{s}", &schema)),
            "RESET ROLE; RESET search_path".to_owned(),
        ]).context(schema.clone())?;
        let before = describe(client, &schema)?;
        for online in [false, true] {
            let answer = if online && !is_planned {
                let target = format!("'{schema}.t'");
                let (steps, swap) = super::run_before(client, &target, online::Step::is_swap)?;
                client
                    .refused(&steps[swap].statement, sqlstate)?
                    .to_string()
            } else {
                let statement = if online {
                    format!("SELECT * FROM snowflake_migrate.plan('{schema}.t', online => true)")
                } else {
                    format!("CALL snowflake_migrate.run('{schema}.t')")
                };
                client.refused(&statement, sqlstate)?.to_string()
            };
            for part in *parts {
                ensure!(answer.contains(part), "{schema}: no {part:?} in {answer}");
            }
            assert_eq!(describe(client, &schema)?, before, "{schema}");
            let narrow = format!(
                "SELECT count(*) FROM pg_attribute WHERE attrelid = '{schema}.t'::regclass AND attname = 'id' AND atttypid = 'integer'::regtype"
            );
            client.answers(&narrow, 1)?;
        }
    }
    Ok(())
}

/// A role that lacks the rights of a view's owner, or of a grantor, is refused
/// by the plan. A database owner has no such rights either.
#[test]
fn dependents_of_other_owners_are_refused_with_a_remedy() -> Result<()> {
    let cluster = cluster_with_roles()?;
    let mut client = cluster.connect_to_new_database("owners")?;
    client.batch_execute(
        "ALTER DATABASE owners OWNER TO maker; CREATE SCHEMA x AUTHORIZATION maker; GRANT ALL ON SCHEMA x TO keeper, granter;
         SET ROLE maker; CREATE TABLE x.t (id serial PRIMARY KEY); GRANT SELECT ON x.t TO keeper; SET ROLE keeper; CREATE VIEW x.v AS SELECT id FROM x.t;
         SET ROLE maker; CREATE TABLE x.u (id serial PRIMARY KEY); CREATE VIEW x.w AS SELECT id FROM x.u;
         GRANT SELECT ON x.w TO granter WITH GRANT OPTION; SET ROLE granter; GRANT SELECT ON x.w TO reader",
    )?;
    client.batch_execute("RESET ROLE")?;
    let before = describe(&mut client, "x")?;
    let mut maker = cluster.connect_as("maker", "owners")?;
    for (statement, part) in [
        (
            "CALL snowflake_migrate.run('x.t')",
            "must be owner of view x.v. It has to be dropped and created again: run it as a member of keeper",
        ),
        (
            "SELECT * FROM snowflake_migrate.plan('x.t', online => true)",
            "must be owner of view x.v",
        ),
        (
            "SELECT snowflake_migrate_internal.widen('{\"(x.t,id)\"}', '')",
            "must be owner of view x.v",
        ),
        (
            "CALL snowflake_migrate.run('x.u')",
            "privileges on view x.w were granted by role granter",
        ),
        (
            "SELECT snowflake_migrate_internal.run_as('keeper'::regrole, 'DROP VIEW x.v', NULL)",
            "must be able to SET ROLE \"keeper\"",
        ),
        (
            "SELECT snowflake_migrate_internal.run_as('postgres'::regrole, 'ALTER ROLE maker SUPERUSER', NULL)",
            "must be able to SET ROLE \"postgres\"",
        ),
        (
            "SELECT snowflake_migrate_internal.run_saved(jsonb_build_object('statements', jsonb_build_array(jsonb_build_object('phase', 1, 'role', 10, 'statement', 'ALTER ROLE maker SUPERUSER', 'identity', 'x'))), 1, NULL)",
            "SQLSTATE 42501",
        ),
    ] {
        let sqlstate = if part.starts_with("SQLSTATE") {
            "55000"
        } else {
            "42501"
        };
        let answer = maker.refused(statement, sqlstate)?.to_string();
        ensure!(answer.contains(part), "{statement}: {answer}");
    }
    if cluster.installation().major >= 16 {
        // The privileges are inherited, but the role cannot be set.
        client.batch_execute("GRANT keeper TO maker WITH INHERIT TRUE, SET FALSE")?;
        let answer = maker.refused("CALL snowflake_migrate.run('x.t')", "42501")?;
        ensure!(
            answer.detail.contains("must be owner of view x.v"),
            "{answer}"
        );
        client.batch_execute("GRANT keeper TO maker WITH SET TRUE")?;
    } else {
        client.batch_execute("GRANT keeper TO maker")?;
    }
    assert_eq!(describe(&mut client, "x")?, before);
    for (session, call) in [
        (&mut maker, "CALL snowflake_migrate.run('x.t')"),
        (&mut client, "CALL snowflake_migrate.run('x.u')"),
    ] {
        session.run(["SET client_min_messages = error", call, call])?;
    }
    types_only(&before, &describe(&mut client, "x")?)?;
    Ok(())
}

/// Statements of a plan are run after views were renamed, replaced and added.
#[test]
fn views_that_change_between_the_plan_and_its_steps_stay() -> Result<()> {
    let cluster = cluster_with_roles()?;
    let mut client = cluster.connect_to_new_database("changed")?;
    let client = &mut client;
    client.batch_execute(
        "SET client_min_messages = error; GRANT CREATE ON DATABASE changed TO maker",
    )?;
    for (schema, online) in [("x1", false), ("x2", true)] {
        client.run([
                format!(
                    "CREATE SCHEMA {schema} AUTHORIZATION maker; SET ROLE maker; SET search_path = {schema}, public; {TABLES}"
                ),
                "CREATE VIEW v AS SELECT id FROM t; CREATE VIEW w AS SELECT id FROM v; RESET ROLE"
                    .to_owned(),
            ],
        )?;
        let steps = online::plan_for(client, &format!("'{schema}.t'"), online)?;
        // After it, the former sequence is dropped.
        let last = steps.len().checked_sub(2).context("no steps")?;
        let (first, last) = (&steps[..last], &steps[last..]);
        let note = "view ".to_owned() + schema + ".v";
        ensure!(
            steps
                .iter()
                .any(|it| it.note.contains("drops and re-creates") && it.note.contains(&note)),
            "{steps:?}"
        );
        let change = "ALTER VIEW v RENAME TO \"a; DROP TABLE t\"; CREATE VIEW v AS SELECT id, n FROM t; GRANT SELECT ON v TO reader; CREATE RULE late AS ON INSERT TO v DO INSTEAD NOTHING; CREATE POLICY late ON t USING (id > 0)";
        if online {
            client.run(online::statements(first))?;
            client.batch_execute(change)?;
        } else {
            client.batch_execute(change)?;
        }
        let before = describe(client, schema)?;
        if !online {
            client.run(online::statements(first))?;
        }
        client.run(online::statements(last))?;
        client.batch_execute("RESET search_path")?;
        let types = types_only(&before, &describe(client, schema)?)?;
        assert_eq!(types, 3, "{schema}");
        let left = online::plan_for(client, &format!("'{schema}.t'"), online)?;
        ensure!(left.is_empty(), "{left:?}");
    }
    Ok(())
}
