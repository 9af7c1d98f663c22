\set held random(1, 200)
BEGIN;
INSERT INTO feed (v) VALUES ('block');
\sleep :held ms
INSERT INTO feed (v) VALUES ('block');
COMMIT;
