INSERT INTO feed (v) VALUES ('values'), ('values'), ('values');
\set pause random(1, 20)
\sleep :pause ms
