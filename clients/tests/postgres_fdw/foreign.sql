-- Without the key: INSERT leaves it to the remote table's default.
CREATE FOREIGN TABLE new_orders (note text) SERVER shop OPTIONS (table_name 'orders');
-- With the key, for queries. An INSERT would send the ID of this server, or NULL without the default.
CREATE FOREIGN TABLE orders (id bigint DEFAULT snowflake_nextval(), note text) SERVER shop;
