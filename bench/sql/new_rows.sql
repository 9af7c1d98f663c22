CREATE TABLE news (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), xid xid8 DEFAULT pg_current_xact_id());
CREATE INDEX ON news (xid, id);
CREATE TABLE unrelated (a int);
