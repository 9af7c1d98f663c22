-- pgaudit, for an auditor's tables: the same lines with and without ranges and batches of COPY.
\pset format unaligned
\pset footer off
SET client_min_messages = notice;
CREATE ROLE auditor;
GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO auditor;
SET pgaudit.log_client = on;
SET pgaudit.log_level = notice;
SET pgaudit.role = 'auditor';
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00' AND note LIKE 'n1%';
SELECT max(id) = max(id) AS ordered FROM (SELECT id FROM timed ORDER BY created_at DESC LIMIT 3) AS t;
UPDATE orders SET note = 'updated' WHERE snowflake_timestamp(id) < timestamptz '2026-03-01 00:03+00';
DELETE FROM orders WHERE snowflake_between(id, timestamptz '2026-03-01 00:00+00', timestamptz '2026-03-01 00:02+00');
COPY orders (note) FROM stdin;
audited
\.
PREPARE recent (timestamptz) AS SELECT count(*) FROM timed WHERE created_at < $1;
SET plan_cache_mode = force_generic_plan;
EXECUTE recent ('2026-03-01 00:05+00');
SET snowflake.enable_time_ranges = off;
SET snowflake.copy_multi_insert = off;
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00' AND note LIKE 'n1%';
COPY orders (note) FROM stdin;
audited
\.
DEALLOCATE recent;
RESET snowflake.enable_time_ranges;
RESET snowflake.copy_multi_insert;
RESET pgaudit.role;
-- Its class FUNCTION names what is executed: the bound of a range, and the twin that COPY's
-- batches have.
SET pgaudit.log = 'function';
SELECT count(*) FROM timed WHERE created_at >= timestamptz '2026-03-14 00:00+00' AND note LIKE 'n1%';
COPY orders (note) FROM stdin;
audited
\.
SET pgaudit.log = 'ddl';
CREATE TABLE audited (id bigserial PRIMARY KEY);
SET client_min_messages = error;
SET pgaudit.log_level = log;
CALL snowflake_migrate.run('audited');
RESET pgaudit.log;
DROP TABLE audited;
DROP OWNED BY auditor;
DROP ROLE auditor;
