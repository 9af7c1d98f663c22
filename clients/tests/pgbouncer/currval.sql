\set token random(1, 9000000000000000000)
INSERT INTO orders (token) VALUES (:token);
SELECT snowflake_currval() AS id \gset my_
INSERT INTO seen VALUES ('currval', :my_id, :token);
