-- Columns that hold IDs without a foreign key, by name and by value: twelve shapes of schemas.
\pset format unaligned
\pset footer off
SET client_min_messages = warning;
-- What names say, and what names and values say; of the columns that are not, only the number.
CREATE FUNCTION pg_temp.shown(target regclass)
RETURNS TABLE (object text, referencing_column name, by_name text, by_value text) LANGUAGE sql AS $$
    WITH found AS MATERIALIZED (SELECT v.* FROM snowflake_migrate.unlinked(target, by_value => true) AS v)
    SELECT v.object COLLATE "C", v.referencing_column COLLATE "C", n.name_says, v.certainty
    FROM found AS v
    LEFT JOIN snowflake_migrate_internal.unlinked_columns(
        ARRAY[(target, snowflake_migrate_internal.column_of(target, NULL))::snowflake_migrate_internal.key]) AS n
        ON n.relation::regclass::text = v.object AND n.attname = v.referencing_column
    WHERE v.certainty <> 'not' OR n.relation IS NOT NULL
  UNION ALL
    SELECT format('others: %s not, %s unknown', count(*) FILTER (WHERE v.certainty = 'not'), count(*) FILTER (WHERE v.certainty IS NULL)),
           NULL, NULL, NULL
    FROM found AS v
    ORDER BY 1, 2
$$;
-- No underscores, no prefix: creators, owners, and pairs of which only the rows have the kinds.
BEGIN;
CREATE TABLE users (id serial PRIMARY KEY, creator int, lastupdatedby int, disabled int2); CREATE TABLE queues (id serial PRIMARY KEY, name text, sortorder int, creator int);
CREATE TABLE tickets (id serial PRIMARY KEY, queue int, owner int, effectiveid int, priority int, timeworked int, creator int);
CREATE TABLE attributes (id serial PRIMARY KEY, objecttype text, objectid int, creator int);
INSERT INTO users SELECT n, 1+hashint4(n)&1023, 1+hashint4(n+7)&1023, n%2 FROM generate_series(1,3000) n; INSERT INTO users SELECT n, 1, 1, 0 FROM generate_series(3001,4000) n;
INSERT INTO queues SELECT n, 'q', n*10, 1+(hashint4(n)&2047) FROM generate_series(1,30) n;
INSERT INTO tickets SELECT n, 1+n%30, 1+(hashint4(n)&4095)%4000, n-n%2+1, (n%10)*10, (hashint4(n)&255), 1+(hashint4(n+3)&4095)%4000 FROM generate_series(1,20000) n;
INSERT INTO attributes SELECT n, CASE n%2 WHEN 0 THEN 'RT::Ticket' ELSE 'RT::User' END, CASE n%2 WHEN 0 THEN n*4 ELSE n%4000+1 END, 1+(hashint4(n)&4095)%4000 FROM generate_series(1,5000) n;
SELECT * FROM pg_temp.shown('users');
SELECT * FROM pg_temp.shown('queues');
SELECT * FROM pg_temp.shown('tickets');
ROLLBACK;
-- Words without separators, references of a table to itself.
BEGIN;
CREATE TABLE job (jobid serial PRIMARY KEY, priorjobid int, poolid int, jobfiles int, joberrors int, clientid int); CREATE TABLE pool (poolid serial PRIMARY KEY, nextpoolid int, recyclepoolid int, numvols int);
CREATE TABLE client (clientid serial PRIMARY KEY, name text); CREATE TABLE basefiles (baseid serial PRIMARY KEY, basejobid int, fileindex int);
INSERT INTO job SELECT n, n-1, 1+n%12, hashint4(n)&1048575, n%3, 1+n%50 FROM generate_series(1,30000) n; INSERT INTO pool SELECT n, n%12+1, 1, n*7 FROM generate_series(1,12) n;
INSERT INTO client SELECT n FROM generate_series(1,50) n; INSERT INTO basefiles SELECT n, n*2, n%1000 FROM generate_series(1,9000) n;
SELECT * FROM pg_temp.shown('job');
SELECT * FROM pg_temp.shown('pool');
SELECT * FROM pg_temp.shown('client');
SELECT * FROM pg_temp.shown('basefiles');
ROLLBACK;
-- A pair whose kinds a check constraint has.
BEGIN;
CREATE TABLE posts (id serial PRIMARY KEY, author_id int, likes int); CREATE TABLE users (id serial PRIMARY KEY, age int, login_count int);
CREATE TABLE photos (id serial PRIMARY KEY, width int, height int);
CREATE TABLE comments (id serial PRIMARY KEY, commentable_type text CHECK (commentable_type IN ('Post','Photo')), commentable_id int, user_id int, position int);
INSERT INTO users SELECT n, 18+n%70, hashint4(n)&127 FROM generate_series(1,5000) n WHERE hashint4(n)&3<>0; INSERT INTO posts SELECT n, (SELECT min(id) FROM users WHERE id>=(hashint4(n)&4095)), hashint4(n)&4095 FROM generate_series(1,4000) n;
INSERT INTO photos SELECT n, 640+n%1000, 480+n%900 FROM generate_series(1,2000) n; INSERT INTO comments SELECT n, CASE n%2 WHEN 0 THEN 'Post' ELSE 'Photo' END, 1+n%2000, (SELECT min(id) FROM users WHERE id>=(hashint4(n)&4095)), n%20 FROM generate_series(1,3000) n;
ANALYZE;
SELECT * FROM pg_temp.shown('users');
SELECT * FROM pg_temp.shown('posts');
SELECT * FROM pg_temp.shown('photos');
SELECT * FROM pg_temp.shown('comments');
ROLLBACK;
-- Numbers in columns of which the name is a reference elsewhere.
BEGIN;
CREATE TABLE priority (id serial PRIMARY KEY, level int, name text); CREATE TABLE override (package text, priority int REFERENCES priority); CREATE TABLE suite (id serial PRIMARY KEY, priority int, mustvalidate int);
CREATE TABLE keyrings (id serial PRIMARY KEY, priority int); CREATE TABLE changes (id serial PRIMARY KEY, changelog_id int); CREATE TABLE changelogs (id serial PRIMARY KEY, t text);
INSERT INTO priority SELECT n, n FROM generate_series(1,8) n; INSERT INTO override SELECT 'p', 1+n%8 FROM generate_series(1,100) n; INSERT INTO suite SELECT n, n*100, 1 FROM generate_series(1,20) n; INSERT INTO keyrings SELECT n, 100+n FROM generate_series(1,5) n;
INSERT INTO changelogs SELECT n*3 FROM generate_series(1,5000) n; INSERT INTO changes SELECT n, n*3 FROM generate_series(1,4000) n;
SELECT * FROM pg_temp.shown('priority');
SELECT * FROM pg_temp.shown('suite');
SELECT * FROM pg_temp.shown('keyrings');
SELECT * FROM pg_temp.shown('changelogs');
SELECT * FROM pg_temp.shown('changes');
ROLLBACK;
-- Names in mixed case.
BEGIN;
CREATE TABLE "OrderHead" ("OrderHeadID" serial PRIMARY KEY, "Total" int, "CustNo" int); CREATE TABLE "OrderLine" ("OrderLineID" serial PRIMARY KEY, "OrderHeadID" int, "ReplacesOrderHeadID" int, "Qty" int);
CREATE TABLE "Customer" ("CustomerID" serial PRIMARY KEY, "Zip" int);
INSERT INTO "Customer" SELECT n*5, 10000+(hashint4(n)&65535) FROM generate_series(1,2000) n; INSERT INTO "OrderHead" SELECT n, hashint4(n)&65535, 5*(1+(hashint4(n)&1023)) FROM generate_series(1,8000) n;
INSERT INTO "OrderLine" SELECT n, 1+n/3, CASE WHEN n%9=0 THEN n/4 END, 1+n%12 FROM generate_series(1,20000) n;
ANALYZE;
SELECT * FROM pg_temp.shown('"Customer"');
SELECT * FROM pg_temp.shown('"OrderHead"');
SELECT * FROM pg_temp.shown('"OrderLine"');
ROLLBACK;
-- The same names without quotes.
BEGIN;
CREATE TABLE orderhead (orderheadid serial PRIMARY KEY, total int, custno int); CREATE TABLE orderline (orderlineid serial PRIMARY KEY, orderheadid int, replacesorderheadid int, qty int); CREATE TABLE customer (customerid serial PRIMARY KEY, zip int);
INSERT INTO customer SELECT n*5, 10000+(hashint4(n)&65535) FROM generate_series(1,2000) n; INSERT INTO orderhead SELECT n, hashint4(n)&65535, 5*(1+(hashint4(n)&1023)) FROM generate_series(1,8000) n;
INSERT INTO orderline SELECT n, 1+n/3, CASE WHEN n%9=0 THEN n/4 END, 1+n%12 FROM generate_series(1,20000) n;
SELECT * FROM pg_temp.shown('customer');
SELECT * FROM pg_temp.shown('orderhead');
SELECT * FROM pg_temp.shown('orderline');
ROLLBACK;
-- Abbreviated prefixes.
BEGIN;
CREATE TABLE tbl_article (art_id serial PRIMARY KEY, art_price int, art_successor int); CREATE TABLE tbl_stock (stk_id serial PRIMARY KEY, stk_art int, stk_amount int); CREATE TABLE tbl_booking (bkg_id serial PRIMARY KEY, bkg_stk int, bkg_art int, bkg_year int);
INSERT INTO tbl_article SELECT n, 99+(hashint4(n)&32767), CASE WHEN n%3=0 THEN n+1 END FROM generate_series(1,6000) n WHERE hashint4(n+5)&1=0 OR n%3<2; INSERT INTO tbl_stock SELECT n, (SELECT min(art_id) FROM tbl_article WHERE art_id>=n%5900), hashint4(n)&511 FROM generate_series(1,9000) n;
INSERT INTO tbl_booking SELECT n, 1+(hashint4(n)&8191), (SELECT min(art_id) FROM tbl_article WHERE art_id>=n%5900), 1990+n%36 FROM generate_series(1,15000) n;
SELECT * FROM pg_temp.shown('tbl_article');
SELECT * FROM pg_temp.shown('tbl_stock');
SELECT * FROM pg_temp.shown('tbl_booking');
ROLLBACK;
-- Arrays.
BEGIN;
CREATE TABLE tags (id serial PRIMARY KEY, uses int); CREATE TABLE images (id serial PRIMARY KEY, tag_ids int[], watchers int[], dims int[]); CREATE TABLE users (id serial PRIMARY KEY, score int);
INSERT INTO tags SELECT n*2, hashint4(n)&16383 FROM generate_series(1,3000) n; INSERT INTO users SELECT n*3, hashint4(n)&4095 FROM generate_series(1,3000) n; INSERT INTO images SELECT n, ARRAY[2*(1+(hashint4(n)&2047)), 2*(1+(hashint4(n+1)&2047))], ARRAY[3*(1+(hashint4(n)&2047))], ARRAY[640+n%800,480] FROM generate_series(1,4000) n;
ANALYZE;
SELECT * FROM pg_temp.shown('tags');
SELECT * FROM pg_temp.shown('users');
SELECT * FROM pg_temp.shown('images');
ROLLBACK;
-- No references: ports, rates, years.
BEGIN;
CREATE TABLE sensors (id serial PRIMARY KEY, port int, rate int); CREATE TABLE readings (id serial PRIMARY KEY, v int, quality int2, year int); CREATE TABLE settings (k text, v int);
INSERT INTO sensors SELECT n, 1024+n%7000, (n%5)*50 FROM generate_series(1,3000) n; INSERT INTO readings SELECT n, hashint4(n)&65535, n%4, 1990+n%36 FROM generate_series(1,20000) n; INSERT INTO settings SELECT 'k', n*n FROM generate_series(1,60) n;
SELECT * FROM pg_temp.shown('sensors');
SELECT * FROM pg_temp.shown('readings');
ROLLBACK;
-- Tables of former rows.
BEGIN;
CREATE TABLE accounts (id serial PRIMARY KEY, name text, balance int); CREATE TABLE accounts_history (id int, name text, balance int, changed timestamptz); CREATE TABLE audit_log (what text, row_no int, age int);
INSERT INTO accounts SELECT n, 'a', hashint4(n)&1048575 FROM generate_series(1,9000) n WHERE n%7<>0; INSERT INTO accounts_history SELECT n, 'a', 1 FROM generate_series(1,9000) n WHERE n%3=0; INSERT INTO audit_log SELECT 'x', n, n%90 FROM generate_series(1,9000) n WHERE n%7<>0;
SELECT * FROM pg_temp.shown('accounts');
ROLLBACK;
-- Domains and partitions.
BEGIN;
CREATE DOMAIN member_no AS int CHECK (VALUE > 0); CREATE TABLE members (no serial PRIMARY KEY, sponsor member_no, points int); CREATE TABLE payments (id bigserial PRIMARY KEY, payer member_no, amount int, collected_by int); CREATE TABLE part (m int, d int) PARTITION BY LIST (d); CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1);
INSERT INTO members SELECT n, CASE WHEN n>10 THEN n/2 END, hashint4(n)&255 FROM generate_series(1,7000) n; DELETE FROM members WHERE no%5=0 AND no%10<>0; INSERT INTO payments SELECT n, (SELECT min(no) FROM members WHERE no>=n%6900), 100*(1+n%300), (SELECT min(no) FROM members WHERE no>=(n*7)%6900) FROM generate_series(1,5000) n; UPDATE members SET sponsor=NULL WHERE NOT EXISTS (SELECT FROM members o WHERE o.no=members.sponsor); INSERT INTO part SELECT (SELECT min(no) FROM members WHERE no>=(n*3)%6900), 1 FROM generate_series(1,4000) n;
ANALYZE;
SELECT * FROM pg_temp.shown('members');
ROLLBACK;
-- Small numbers, and names that end in those of other tables.
BEGIN;
CREATE TABLE colors (id serial PRIMARY KEY, sort int); CREATE TABLE items (id serial PRIMARY KEY, color_id int, weight int, stars int2, level int); CREATE TABLE port (id serial PRIMARY KEY, speed int); CREATE TABLE reports (id serial PRIMARY KEY, reportid int, portid int, n int);
INSERT INTO colors SELECT n,n FROM generate_series(1,12) n; INSERT INTO items SELECT n, 1+n%12, n%500, n%5, n%12 FROM generate_series(1,5000) n; INSERT INTO port SELECT n, 10*n FROM generate_series(1,48) n; INSERT INTO reports SELECT n, n, 1+n%48, n%40 FROM generate_series(1,1000) n;
SELECT * FROM pg_temp.shown('colors');
SELECT * FROM pg_temp.shown('items');
SELECT * FROM pg_temp.shown('port');
SELECT * FROM pg_temp.shown('reports');
ROLLBACK;
-- A plan of several keys names those that have such columns.
BEGIN;
CREATE TABLE customers (id serial PRIMARY KEY); CREATE TABLE queues (id serial PRIMARY KEY); CREATE TABLE visits (id bigserial PRIMARY KEY, customer_id integer);
SELECT count(*) > 0 AS is_planned FROM snowflake_migrate.plan('queues', also => '{customers}', keep_sequence => true);
-- A database without one foreign key.
CREATE TABLE a (x int); CREATE TABLE b (x int); CREATE TABLE c (x int); CREATE TABLE d (x int);
SELECT count(*) > 0 AS is_planned FROM snowflake_migrate.plan('queues', keep_sequence => true);
SELECT s.table_name, f.finding FROM snowflake_migrate.survey(keep_sequence => true) AS s CROSS JOIN LATERAL unnest(s.findings) AS f (finding) ORDER BY 1, 2;
ROLLBACK;
-- A caller who may not read a table, or only some of its rows, learns nothing of its values.
BEGIN;
CREATE TABLE keys (id serial PRIMARY KEY); INSERT INTO keys SELECT 2 * n FROM generate_series(1, 2000) AS n;
CREATE TABLE readable (number int); INSERT INTO readable SELECT 2 * n FROM generate_series(1, 2000) AS n;
CREATE TABLE hidden AS TABLE readable; CREATE TABLE filtered AS TABLE readable; ALTER TABLE filtered ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON filtered USING (number % 4 = 0);
-- Numbers in documents, too.
CREATE TABLE documents (d jsonb, j json); INSERT INTO documents
    SELECT jsonb_build_object('keyId', 2 * n, 'odd', 2 * n + 1, 'few', n % 5, 'text', 'a'), json_build_array(2 * n) FROM generate_series(1, 1000) AS n;
CREATE TABLE hidden_documents AS TABLE documents; CREATE TABLE filtered_documents AS TABLE documents;
ALTER TABLE filtered_documents ENABLE ROW LEVEL SECURITY; CREATE POLICY own ON filtered_documents USING (true);
SELECT object, referencing_column, data_type, certainty, reason FROM snowflake_migrate.unlinked('keys', by_value => true)
WHERE kind = 'JSON key' ORDER BY object COLLATE "C";
CREATE ROLE regress_reader; GRANT SELECT ON keys, readable, filtered, documents, filtered_documents TO regress_reader;
SET ROLE regress_reader;
SELECT object, certainty, reason FROM snowflake_migrate.unlinked('keys', by_value => true) ORDER BY object COLLATE "C";
RESET ROLE; CREATE DOMAIN numbers AS int[]; CREATE TABLE lists AS SELECT ARRAY[2 * n, 4 * n]::numbers AS list FROM generate_series(1, 1000) AS n;
GRANT SELECT ON lists TO regress_reader; ANALYZE; SET ROLE regress_reader;
SELECT object, certainty, reason FROM snowflake_migrate.unlinked('keys', by_value => true) ORDER BY object COLLATE "C";
RESET ROLE; REVOKE SELECT ON keys FROM regress_reader; SET ROLE regress_reader;
SELECT object, certainty, reason FROM snowflake_migrate.unlinked('keys', by_value => true) ORDER BY object COLLATE "C";
ROLLBACK;
