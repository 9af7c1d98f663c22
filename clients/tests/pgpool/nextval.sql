\set token random(1, 9000000000000000000)
SELECT snowflake_nextval() AS id \gset my_
INSERT INTO orders VALUES (:my_id, :token);
SELECT count(*) FROM pg_class;
