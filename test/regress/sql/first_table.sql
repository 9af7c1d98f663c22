-- A table whose key is a snowflake ID, as the README begins.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
INSERT INTO orders (note) VALUES ('first'), ('second');
INSERT INTO orders (note) SELECT 'row ' || n FROM generate_series(1, 1000) AS n;
SELECT count(*), count(DISTINCT id) FROM orders;
-- Ascending in the order of insertion, and of this server and this moment.
SELECT count(*) FILTER (WHERE id <= before) AS not_ascending
FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS before FROM orders) AS o;
SELECT count(*) FILTER (WHERE snowflake_node_id(id) <> current_setting('snowflake.node_id')::int) AS other_nodes,
       count(*) FILTER (WHERE abs(extract(epoch FROM snowflake_timestamp(id) - clock_timestamp())) > 60) AS other_times
FROM orders;
-- The ID of the last row of this session.
INSERT INTO orders (note) VALUES ('third');
SELECT note FROM orders WHERE id = snowflake_currval();
-- A batch of IDs before the rows.
SELECT count(*), count(DISTINCT id) FROM snowflake_nextvals(10000) AS id;
SELECT count(*) FROM snowflake_nextvals(0);
SELECT snowflake_nextval() < snowflake_nextval() AS ascending;
SELECT * FROM snowflake_audit('orders');
CREATE TABLE copied (LIKE orders INCLUDING ALL);
INSERT INTO copied (note) VALUES ('with the default of the other table');
SELECT count(*) FROM copied WHERE id > (SELECT max(id) FROM orders);
DROP TABLE orders, copied;
