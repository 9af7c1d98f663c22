-- Two tables with the same rows, spread evenly over the 30 days before today.
CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), v int, t text);
CREATE TABLE by_column (id bigserial PRIMARY KEY, v int, t text, created_at timestamptz NOT NULL);
INSERT INTO by_id
    SELECT snowflake_compose(at, 1, (n % 16)::int, 0), n, '06Y5SSPG01000'
    FROM generate_series(1, {items}) AS n,
         LATERAL (SELECT date_trunc('day', now()) - interval '30 days' * (1 - (n - 0.5) / {items}::float8)) AS s (at);
INSERT INTO by_column (v, t, created_at) SELECT v, t, snowflake_timestamp(id) FROM by_id ORDER BY id;
CREATE INDEX ON by_column (created_at);
