SELECT count({call}) FROM generate_series(1, {items})
