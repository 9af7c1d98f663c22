INSERT INTO feed (v) SELECT 'multi' FROM generate_series(1, 20);
\set pause random(1, 20)
\sleep :pause ms
