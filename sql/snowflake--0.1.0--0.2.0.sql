-- What an upgrade from 0.1.0 runs.
\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.2.0'" to load this file. \quit
