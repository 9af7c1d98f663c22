CREATE TABLE orders (id BIGINT NOT NULL DEFAULT snowflake_nextval(), note TEXT NOT NULL UNIQUE, PRIMARY KEY (id));
CREATE TABLE order_lines (id BIGINT NOT NULL DEFAULT snowflake_nextval(), order_id BIGINT NOT NULL REFERENCES orders, PRIMARY KEY (id));
CREATE TABLE bulk_rows (id BIGINT NOT NULL DEFAULT snowflake_nextval(), note TEXT NOT NULL UNIQUE, PRIMARY KEY (id));
CREATE TABLE former_tickets (id SERIAL NOT NULL, note TEXT NOT NULL, PRIMARY KEY (id));
