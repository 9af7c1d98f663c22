-- IDs that are put together from their fields.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT snowflake_compose('2026-11-20 07:13:20.593+00', 1, 4, 0, 'default');
SELECT snowflake_decode(snowflake_compose('2026-11-20 07:13:20.593+00', 63, 15, 4095, 'default'), 'default');
SELECT snowflake_compose('2025-01-01 00:00+00', 0, 0, 0, 'default') AS first_of_the_layout;
-- The inverse of decode, for every preset.
SELECT l.name, bool_and(snowflake_compose(d.created_at, d.node_id, d.backend_id, d.sequence, l.name) = i.id) AS same
FROM snowflake_layouts AS l
CROSS JOIN LATERAL (VALUES (0), (1), (1234567890)) AS i (id)
CROSS JOIN LATERAL snowflake_decode(i.id, l.name) AS d
GROUP BY l.name ORDER BY l.name COLLATE "C";
-- Times between two ticks are rounded down.
SELECT snowflake_compose('2026-11-20 07:13:20.593999+00', 1, 4, 0, 'default');
-- Fields that do not fit.
SELECT snowflake_compose('2026-11-20 07:13:20.593+00', 64, 4, 0, 'default');
SELECT snowflake_compose('2026-11-20 07:13:20.593+00', 1, 16, 0, 'default');
SELECT snowflake_compose('2026-11-20 07:13:20.593+00', 1, 4, 4096, 'default');
SELECT snowflake_compose('2026-11-20 07:13:20.593+00', 1, 4, -1, 'default');
SELECT snowflake_compose('2024-12-31 23:59+00', 1, 4, 0, 'default');
SELECT snowflake_compose('infinity', 1, 4, 0, 'default');
SELECT snowflake_compose(NULL, 1, 4, 0, 'default') IS NULL AS is_null;
