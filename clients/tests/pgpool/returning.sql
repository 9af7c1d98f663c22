\set token random(1, 9000000000000000000)
INSERT INTO orders (token) VALUES (:token) RETURNING id \gset my_
INSERT INTO seen VALUES (:my_id, :token);
SELECT count(*) FROM orders WHERE token = :token;
