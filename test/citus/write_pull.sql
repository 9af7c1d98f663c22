INSERT INTO feed (v) SELECT 'pull' FROM (SELECT k FROM source LIMIT 150) AS s;
\set pause random(1, 20)
\sleep :pause ms
