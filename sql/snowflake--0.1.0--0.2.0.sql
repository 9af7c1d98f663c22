\echo Use "ALTER EXTENSION snowflake UPDATE TO '0.2.0'" to load this file. \quit

-- Written by scripts/upgrade-script: begin
-- Written by scripts/upgrade-script: end
