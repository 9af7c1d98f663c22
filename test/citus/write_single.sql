INSERT INTO feed (v) VALUES ('single');
\set pause random(1, 20)
\sleep :pause ms
