CREATE TABLE events (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text) PARTITION BY RANGE (id);
-- A partition a day, from ten days ago until four days ahead.
SELECT partman.create_parent('public.events', 'id',
    p_type => 'native',
    p_interval => (86400000::bigint << 22)::text,
    p_start_partition => snowflake_min_id(date_trunc('day', now() - interval '10 days', 'UTC'))::text,
    p_premake => 14);
UPDATE partman.part_config SET premake = 4 WHERE parent_table = 'public.events';
