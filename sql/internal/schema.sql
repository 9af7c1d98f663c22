-- What is not for people: on nobody's search path, so that names are free, schema
-- tools find nothing of it among the tables of an application, and \df shows
-- the functions that people call. Everybody may look names up in it, because the
-- extension's functions run with the rights of their caller.
CREATE SCHEMA snowflake_internal;
COMMENT ON SCHEMA snowflake_internal IS
    'Objects of the extension snowflake that are not meant to be used directly';
GRANT USAGE ON SCHEMA snowflake_internal TO PUBLIC;
