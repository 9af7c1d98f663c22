INSERT INTO feed (v) SELECT 'repartition' FROM source WHERE k < 200;
\set pause random(1, 20)
\sleep :pause ms
