INSERT INTO t (v) SELECT generate_series(1, {items})
