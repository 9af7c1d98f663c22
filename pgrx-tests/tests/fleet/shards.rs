//! A table partitioned over servers by postgres_fdw, and databases that are merged from dumps.
