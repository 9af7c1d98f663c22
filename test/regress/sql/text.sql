-- IDs as text.
\pset format unaligned
\pset footer off
SET TimeZone = 'UTC';
SET DateStyle = 'ISO';
SELECT id::text AS digits, snowflake_to_text(id) AS base32, snowflake_to_text(id, 'base62') AS base62
FROM (VALUES (0), (1), (249431905924104192), (9223372036854775807)) AS t (id);
SELECT snowflake_from_text('06XH8ZWT42G00'), snowflake_from_text('06xh8zwt42goo') AS lower_case_and_o_for_0,
       snowflake_from_text('0IQOqa0An0C', 'base62') AS base62;
-- Texts sort as the IDs do.
WITH t AS (SELECT n::bigint * n * n * n * 7919 AS id FROM generate_series(0, 999) AS n)
SELECT count(*) FILTER (WHERE base32 <= before32 OR base62 <= before62) AS out_of_order,
       count(*) FILTER (WHERE snowflake_from_text(base32) <> id OR snowflake_from_text(base62, 'base62') <> id) AS different
FROM (
    SELECT id, snowflake_to_text(id) COLLATE "C" AS base32, snowflake_to_text(id, 'base62') COLLATE "C" AS base62,
           lag(snowflake_to_text(id)) OVER (ORDER BY id) AS before32,
           lag(snowflake_to_text(id, 'base62')) OVER (ORDER BY id) AS before62
    FROM t
) AS s;
-- What is no text of an ID.
SELECT snowflake_from_text('06XH8');
SELECT snowflake_from_text('249431905924104192');
SELECT snowflake_from_text('0IQOqa0An0C');
SELECT snowflake_from_text('06XH8ZWT42G00', 'base62');
SELECT snowflake_from_text('06XH8ZWT42G0!');
SELECT snowflake_from_text('ZZZZZZZZZZZZZ');
SELECT snowflake_from_text('zzzzzzzzzzz', 'base62');
SELECT snowflake_to_text(1, 'base64');
SELECT snowflake_to_text(-1);
