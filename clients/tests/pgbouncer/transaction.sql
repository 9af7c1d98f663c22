\set token random(1, 9000000000000000000)
BEGIN;
INSERT INTO orders (token) VALUES (:token);
SELECT snowflake_currval() AS id \gset my_
END;
INSERT INTO seen VALUES ('transaction', :my_id, :token);
