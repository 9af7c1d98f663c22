-- What \dx+, \df+ and \ds+ show.
COMMENT ON FUNCTION snowflake_nextval() IS
    'Makes the next ID: for DEFAULT on a bigint primary key';
COMMENT ON FUNCTION snowflake_nextvals(count integer) IS
    'Makes that many IDs, ascending; reserves whole runs at a time';
COMMENT ON FUNCTION snowflake_currval() IS
    'The last ID that this session got';
COMMENT ON FUNCTION snowflake_copy_nextval() IS
    'What COPY calls in the place of snowflake_nextval(), so that it can insert rows in batches';
COMMENT ON FUNCTION snowflake_nextval_support(request internal) IS
    'Tells the planner what may stand for snowflake_nextval()';
COMMENT ON FUNCTION snowflake_decode(id bigint) IS
    'Reads when and where an ID was made, by this server''s layout';
COMMENT ON FUNCTION snowflake_decode(id bigint, layout text) IS
    'Reads when and where an ID was made, by a layout''s text or preset name';
COMMENT ON SEQUENCE snowflake_mark IS
    'Reserved time: no ID at or above last_value has been issued in this database. Moved by the extension; not for nextval()';

COMMENT ON FUNCTION snowflake_accept_clock(expected timestamp with time zone) IS
    'Takes the clock as right though it has jumped ahead by more than snowflake.max_clock_step; expected must match it within a minute';
COMMENT ON FUNCTION snowflake_start_after(id bigint) IS
    'Later IDs of this database are greater than this one; never lowers';
COMMENT ON FUNCTION snowflake_accept_layout() IS
    'Accepts a change of snowflake.layout: this database''s IDs have the present layout from now on';
COMMENT ON FUNCTION snowflake_get_database_layout() IS
    'Behind the view snowflake_status: the layout that this database''s IDs were made with';
COMMENT ON TABLE snowflake_accepted_layout IS 'The layout that this database''s IDs were made with; written by the extension only. snowflake_accept_layout() accepts another one';
COMMENT ON COLUMN snowflake_accepted_layout.layout IS 'The layout, in canonical form';
COMMENT ON COLUMN snowflake_accepted_layout.accepted_at IS 'When the first ID was made with it, or when it was accepted';
COMMENT ON FUNCTION snowflake_stat_reset() IS
    'Sets the counters of snowflake_status and snowflake_stat_slots to 0';
COMMENT ON FUNCTION snowflake_get_status() IS
    'Behind the view snowflake_status';
COMMENT ON FUNCTION snowflake_get_stat_slots() IS
    'Behind the view snowflake_stat_slots';

COMMENT ON VIEW snowflake_status IS 'How this server makes IDs: one row';
COMMENT ON COLUMN snowflake_status.version IS 'The version of the library';
COMMENT ON COLUMN snowflake_status.preloaded IS 'Whether the library is in shared_preload_libraries; without, IDs can only be read';
COMMENT ON COLUMN snowflake_status.layout IS 'The layout of this server''s IDs, in canonical form';
COMMENT ON COLUMN snowflake_status.node_id IS 'This server''s node number; NULL where not set';
COMMENT ON COLUMN snowflake_status.last_id_at IS 'The time of the last ID made since the server''s start, in any database';
COMMENT ON COLUMN snowflake_status.reserved_until IS 'Up to where time is reserved in the write-ahead log for this database; NULL before its first ID since the start';
COMMENT ON COLUMN snowflake_status.clock_behind IS 'How far the clock is behind the highest time reached';
COMMENT ON COLUMN snowflake_status.ids IS 'IDs made since the statistics were reset';
COMMENT ON COLUMN snowflake_status.waits IS 'Calls that waited for time to catch up';
COMMENT ON COLUMN snowflake_status.database_layout IS 'The layout that this database''s IDs were made with; NULL while none is known. Other than layout: name it when you read old IDs, or accept the new one';
COMMENT ON COLUMN snowflake_status.expires_at IS 'When the layout''s timestamp bits are used up; NULL past what a timestamptz can hold';

COMMENT ON VIEW snowflake_stat_slots IS 'What happened in each slot: a row for each backend number';
COMMENT ON COLUMN snowflake_stat_slots.backend_id IS 'The backend number';
COMMENT ON COLUMN snowflake_stat_slots.pids IS 'The processes that have this number now';
COMMENT ON COLUMN snowflake_stat_slots.ids IS 'IDs made since the statistics were reset';
COMMENT ON COLUMN snowflake_stat_slots.last_id_at IS 'The time of the last ID made since the server''s start';
COMMENT ON COLUMN snowflake_stat_slots.borrowed_ticks IS 'How many ticks the slot is ahead of the clock now';
COMMENT ON COLUMN snowflake_stat_slots.waits IS 'Calls that waited for time to catch up';
COMMENT ON COLUMN snowflake_stat_slots.wait_time IS 'How long they waited in all, milliseconds';
COMMENT ON COLUMN snowflake_stat_slots.clock_steps IS 'Steps of the clock that a process with this number saw first';

COMMENT ON FUNCTION snowflake_timestamp(id bigint) IS
    'When an ID was made, by this server''s layout';
COMMENT ON FUNCTION snowflake_timestamp(id bigint, layout text) IS
    'When an ID was made, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_node_id(id bigint) IS
    'The number of the server that made an ID, by this server''s layout';
COMMENT ON FUNCTION snowflake_node_id(id bigint, layout text) IS
    'The number of the server that made an ID, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_backend_id(id bigint) IS
    'The number of the slot that made an ID, by this server''s layout: for single IDs the PID modulo the number of slots, for those in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_backend_id(id bigint, layout text) IS
    'The number of the slot that made an ID, by a layout''s text or preset name: for a server of this extension the PID modulo the number of slots, or for IDs in bulk 0 or any other';
COMMENT ON FUNCTION snowflake_sequence(id bigint) IS
    'The sequence number of an ID within its tick and slot, by this server''s layout';
COMMENT ON FUNCTION snowflake_sequence(id bigint, layout text) IS
    'The sequence number of an ID within its tick and slot, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer) IS
    'The ID with these fields, by this server''s layout: the inverse of snowflake_decode. Makes no new ID';
COMMENT ON FUNCTION snowflake_compose(created_at timestamp with time zone, node_id integer, backend_id integer, sequence integer, layout text) IS
    'The ID with these fields, by a layout''s text or preset name: the inverse of snowflake_decode. Makes no new ID';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone) IS
    'The smallest ID whose time is at or after a time, by this server''s layout; 0 before the epoch';
COMMENT ON FUNCTION snowflake_min_id(at timestamp with time zone, layout text) IS
    'The smallest ID whose time is at or after a time, by a layout''s text or preset name; 0 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone) IS
    'The largest ID whose time is at or before a time, by this server''s layout; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id(at timestamp with time zone, layout text) IS
    'The largest ID whose time is at or before a time, by a layout''s text or preset name; -1 before the epoch';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone) IS
    'The largest ID whose time is before a time, by this server''s layout; behind snowflake_between. Never fails';
COMMENT ON FUNCTION snowflake_max_id_before(at timestamp with time zone, layout text) IS
    'The largest ID whose time is before a time, by a layout''s text or preset name; behind snowflake_between. Never fails';
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone) IS
    'Whether an ID was made at or after since and before until, by this server''s layout; uses an index on id';
COMMENT ON FUNCTION snowflake_between(id bigint, since timestamp with time zone, until timestamp with time zone, layout text) IS
    'Whether an ID was made at or after since and before until, by a layout''s text or preset name; uses an index on id';
COMMENT ON FUNCTION snowflake_explain(id bigint) IS
    'Draws the bits of an ID, field by field, by this server''s layout';
COMMENT ON FUNCTION snowflake_explain(id bigint, layout text) IS
    'Draws the bits of an ID, field by field, by a layout''s text or preset name';
COMMENT ON FUNCTION snowflake_to_text(id bigint, encoding text) IS
    'An ID as text of fixed width, base32 (13 characters) or base62 (11), which sorts as the ID does';
COMMENT ON FUNCTION snowflake_from_text(text text, encoding text) IS
    'The ID that snowflake_to_text gave this text';
COMMENT ON FUNCTION snowflake_partition_ddl(parent regclass, since timestamp with time zone, until timestamp with time zone, step interval) IS
    'The CREATE TABLE statements of the partitions that are missing from since to until, one for each step; for \gexec';
COMMENT ON FUNCTION snowflake_get_layouts() IS
    'Behind the view snowflake_layouts';

COMMENT ON VIEW snowflake_layouts IS 'The layouts that have a name';
COMMENT ON COLUMN snowflake_layouts.name IS 'What may stand for the layout''s text';
COMMENT ON COLUMN snowflake_layouts.layout IS 'The layout in canonical form';
COMMENT ON COLUMN snowflake_layouts.expires_at IS 'When the timestamp bits are used up';
COMMENT ON COLUMN snowflake_layouts.ids_per_second IS 'How many IDs a second one node makes in the long run, all its backend slots together';
COMMENT ON COLUMN snowflake_layouts.nodes IS 'How many node numbers there are';
COMMENT ON COLUMN snowflake_layouts.backends IS 'How many backend slots a node has';

COMMENT ON VIEW snowflake_serial_columns IS 'Every column that a sequence feeds';
COMMENT ON COLUMN snowflake_serial_columns.schema_name IS 'The table''s schema';
COMMENT ON COLUMN snowflake_serial_columns.table_name IS 'The table; partitions and inheritance children that their parent''s sequence feeds are its matter';
COMMENT ON COLUMN snowflake_serial_columns.column_name IS 'The column';
COMMENT ON COLUMN snowflake_serial_columns.data_type IS 'The column''s type';
COMMENT ON COLUMN snowflake_serial_columns.kind IS 'serial, identity always, identity by default, or default: a sequence that the column does not own';
COMMENT ON COLUMN snowflake_serial_columns.sequence IS 'The sequence';
COMMENT ON COLUMN snowflake_serial_columns.last_value IS 'The last number that was taken from it; NULL before the first, and for who may not read it';
COMMENT ON COLUMN snowflake_serial_columns.percent_used IS 'How much of the type''s range that is, in percent';
COMMENT ON COLUMN snowflake_serial_columns.referenced_by IS 'The columns that reference it';

COMMENT ON TABLE snowflake_origins IS 'What fed the columns that were migrated, for snowflake_migrate_revert(); written by the extension only';
COMMENT ON COLUMN snowflake_origins.target IS 'The table';
COMMENT ON COLUMN snowflake_origins.column_name IS 'The column';
COMMENT ON COLUMN snowflake_origins.kind IS 'As in snowflake_serial_columns; none for a column that no sequence fed';
COMMENT ON COLUMN snowflake_origins.data_type IS 'The type before it was widened';
COMMENT ON COLUMN snowflake_origins.default_expression IS 'The default it had';
COMMENT ON COLUMN snowflake_origins.sequence_schema IS 'The sequence''s schema';
COMMENT ON COLUMN snowflake_origins.sequence_name IS 'The sequence''s name';
COMMENT ON COLUMN snowflake_origins.sequence_options IS 'The sequence''s start, increment, ends, cache and cycle';
COMMENT ON COLUMN snowflake_origins.sequence_last_value IS 'The last number that was taken from it; NULL for a sequence of another role than the table''s owner';
COMMENT ON COLUMN snowflake_origins.sequence_privileges IS 'Who had which privileges on it';
COMMENT ON COLUMN snowflake_origins.sequence_comment IS 'The comment on it';
COMMENT ON COLUMN snowflake_origins.child_defaults IS 'The defaults of partitions and children that had another one';
COMMENT ON COLUMN snowflake_origins.first_id_ever IS 'No snowflake ID of the column is smaller';
COMMENT ON COLUMN snowflake_origins.first_id IS 'No snowflake ID since this migration is smaller, and every row before it is';
COMMENT ON COLUMN snowflake_origins.remembered_at IS 'When the migration began';
COMMENT ON COLUMN snowflake_origins.reverted_at IS 'When it was reverted';

COMMENT ON FUNCTION snowflake_migration_plan(target regclass, column_name name, online boolean) IS
    'The statements that are left to give a column snowflake IDs, in their order, with what each locks and rewrites; for \gexec';
COMMENT ON PROCEDURE snowflake_migrate(target regclass, column_name name) IS
    'Gives a column snowflake IDs in one transaction: what snowflake_migration_plan shows';
COMMENT ON PROCEDURE snowflake_migrate_revert(target regclass, column_name name) IS
    'Puts the sequence back that fed the column before it was migrated';
COMMENT ON FUNCTION snowflake_migration_column(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the column that is meant';
COMMENT ON FUNCTION snowflake_migration_is_switched(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: whether the column''s default is snowflake_nextval()';
COMMENT ON FUNCTION snowflake_migration_reach(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the columns that hold the same IDs, on any number of levels';
COMMENT ON FUNCTION snowflake_migration_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: what stands in the way, and what to do about it';
COMMENT ON FUNCTION snowflake_migration_server_obstacles() IS
    'Behind snowflake_migration_obstacles: a server that makes no IDs';
COMMENT ON FUNCTION snowflake_migration_owner_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_obstacles: tables of other owners';
COMMENT ON FUNCTION snowflake_migration_column_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_obstacles: what the column itself is';
COMMENT ON FUNCTION snowflake_migration_row_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_obstacles: IDs that are not below the first snowflake ID';
COMMENT ON FUNCTION snowflake_migration_type_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_obstacles: what a column''s type cannot be changed under';
COMMENT ON FUNCTION snowflake_migration_base_type(type_oid oid) IS
    'Behind snowflake_serial_columns: the type under a domain';
COMMENT ON FUNCTION snowflake_migration_first_id() IS
    'Behind snowflake_migration_plan: no ID that is made from now on is smaller';
COMMENT ON FUNCTION snowflake_migration_name(target regclass) IS
    'Behind snowflake_migration_plan: a table''s name for statements that run under any search path';
COMMENT ON FUNCTION snowflake_migration_family(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: a table, its partitions and its children';
COMMENT ON FUNCTION snowflake_migration_source(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: what feeds a column now';
COMMENT ON FUNCTION snowflake_migration_is_remembered(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: whether what feeds a column now is what is kept of it';
COMMENT ON FUNCTION snowflake_migration_lacks_statistics(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: whether a column has to be analyzed';
COMMENT ON FUNCTION snowflake_migration_sequence_options(options jsonb) IS
    'Behind snowflake_migrate_revert: the options of a sequence as CREATE SEQUENCE has them';
COMMENT ON FUNCTION snowflake_migration_dress_sequence(sequence regclass, origin snowflake_origins) IS
    'Behind snowflake_migrate_revert: gives a new sequence the privileges and the comment of the old one';
COMMENT ON FUNCTION snowflake_migration_restore_identity(origin snowflake_origins) IS
    'Behind snowflake_migrate_revert: makes the column an identity column again';
COMMENT ON FUNCTION snowflake_migration_restore_sequence(origin snowflake_origins) IS
    'Behind snowflake_migrate_revert: makes a serial column''s sequence again that was dropped';
COMMENT ON FUNCTION snowflake_migration_restore_default(origin snowflake_origins, sequence regclass) IS
    'Behind snowflake_migrate_revert: puts the default back';
COMMENT ON FUNCTION snowflake_migration_restore_children(origin snowflake_origins) IS
    'Behind snowflake_migrate_revert: puts the defaults of partitions and children back';
COMMENT ON FUNCTION snowflake_migration_continue_sequence(sequence regclass, is_new boolean, origin snowflake_origins) IS
    'Behind snowflake_migrate_revert: lets the sequence go on after the old IDs';
COMMENT ON FUNCTION snowflake_migration_require_owner(target regclass) IS
    'Behind snowflake_migration_plan: fails unless the caller owns the table';
COMMENT ON FUNCTION snowflake_migration_remember(target regclass, column_name name) IS
    'A step of snowflake_migration_plan: keeps what feeds the column, for the way back';
COMMENT ON FUNCTION snowflake_migration_check(target regclass, column_name name) IS
    'A step of snowflake_migration_plan: fails unless the default can be switched';
COMMENT ON FUNCTION snowflake_migration_put_back(target regclass, column_name name) IS
    'Behind snowflake_migrate_revert: notes that it was done';
COMMENT ON FUNCTION snowflake_migration_steps(target regclass, column_name name, online boolean) IS
    'Behind snowflake_migration_plan: its steps, each with the table whose owner runs it in snowflake_migrate';
COMMENT ON FUNCTION snowflake_migration_run(relation regclass, statement text) IS
    'Behind snowflake_migrate: runs one statement with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_query(relation regclass, query text) IS
    'Behind snowflake_migration_plan: runs one query with the rights of a table''s owner, which the caller must have; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_read(relation regclass, query text) IS
    'Runs one query with the rights of a table''s owner where the caller has them, else with the caller''s own; the first row as an array';
COMMENT ON FUNCTION snowflake_migration_run_all(relations regclass[], statements text[]) IS
    'Behind snowflake_migration_swap: runs statements, each with the rights of the owner of its table';
COMMENT ON FUNCTION snowflake_migration_lock_table(relation regclass, mode text) IS
    'Behind snowflake_migration_lock: locks a table, without its children, by its OID';
COMMENT ON FUNCTION snowflake_migration_sequence_state(sequence regclass, on_behalf_of regclass) IS
    'Behind snowflake_migration_remember: how far a sequence is; NULL where the owner of the table may not read it';
COMMENT ON FUNCTION snowflake_migration_owned_sequence(target regclass, column_name name) IS
    'Behind snowflake_migrate_revert: the sequence of an identity or serial column';
COMMENT ON FUNCTION snowflake_migration_named_sequence(sequence_schema name, sequence_name name) IS
    'Behind snowflake_migrate_revert: a sequence by its name, if it exists';
COMMENT ON FUNCTION snowflake_migration_origin(target regclass, column_name name) IS
    'What snowflake_origins has of a column, for the owner of its table; else NULL';
COMMENT ON FUNCTION snowflake_migration_keep_origin(origin snowflake_origins) IS
    'Behind snowflake_migration_remember: writes a row of snowflake_origins, for the owner of its table';
COMMENT ON FUNCTION snowflake_migration_keep_progress(step snowflake_progress) IS
    'Behind snowflake_migrate_backfill: writes a row of snowflake_progress, for the owner of its tables';
COMMENT ON FUNCTION snowflake_migration_guard() IS
    'The trigger that lets only superusers change snowflake_origins and snowflake_progress by SQL';
COMMENT ON FUNCTION snowflake_migration_block(body text) IS
    'Behind snowflake_migration_plan: several statements as one';
COMMENT ON FUNCTION snowflake_migration_limit_locks() IS
    'Behind snowflake_migrate: waits for locks a few seconds at most, unless lock_timeout says otherwise';

COMMENT ON FUNCTION snowflake_audit(target regclass, column_name name, expected_nodes integer[], first_id bigint) IS
    'What is wrong with the numbers in a column of IDs: each finding with how many numbers and the largest of them; no rows where all is well';
COMMENT ON FUNCTION snowflake_origins_stay() IS
    'Keeps what is replicated from another server''s snowflake_origins out of this one''s';
COMMENT ON FUNCTION snowflake_migration_locked_too(target regclass, attributes smallint[]) IS
    'Behind snowflake_migration_plan: the tables that are locked with a table whose columns are widened';
COMMENT ON FUNCTION snowflake_migration_publications(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the publications that a table is in';

COMMENT ON PROCEDURE snowflake_migrate_backfill(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval) IS
    'A step of snowflake_migration_plan with online => true: copies the narrow columns to their shadows, in batches that commit; goes on where it was interrupted';
COMMENT ON FUNCTION snowflake_shadow() IS
    'The trigger that keeps a shadow column in step with the narrow column that it is to replace';
COMMENT ON FUNCTION snowflake_migration_patience() IS
    'Behind snowflake_migration_lock: for how long a step of an online migration tries';
COMMENT ON FUNCTION snowflake_migration_lock_missed(relations regclass[], mode text, begun timestamptz, told timestamptz) IS
    'Behind snowflake_migration_lock: says who holds the lock, and fails when it has taken too long';
COMMENT ON FUNCTION snowflake_migration_lock(relations regclass[], mode text) IS
    'Behind snowflake_migration_plan: locks tables, waiting a moment at a time so that others get through';
COMMENT ON FUNCTION snowflake_migration_shadow_name(kind text, original name) IS
    'Behind snowflake_migration_plan: the name of what is added beside a column, an index or a constraint';
COMMENT ON FUNCTION snowflake_migration_shadows(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the narrow columns that hold the same IDs, and what is there of their shadows';
COMMENT ON FUNCTION snowflake_migration_require_filled(target regclass, column_name name) IS
    'A step of snowflake_migration_plan: fails unless all rows have their shadow values';
COMMENT ON FUNCTION snowflake_migration_shadow_steps(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the statements that add shadow columns';
COMMENT ON FUNCTION snowflake_migration_drop_shadows(target regclass, column_name name) IS
    'Behind snowflake_migrate_revert: takes shadow columns away again';
COMMENT ON FUNCTION snowflake_migration_shadow_indexes(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the indexes of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_migration_index_steps(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the statements that build the indexes of shadow columns';
COMMENT ON FUNCTION snowflake_migration_shadow_foreign_keys(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the foreign keys of the narrow columns, and those of their shadows';
COMMENT ON FUNCTION snowflake_migration_foreign_key_steps(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the statements that add the foreign keys of shadow columns';
COMMENT ON FUNCTION snowflake_migration_begin(target regclass, column_name name, relation regclass) IS
    'A step of snowflake_migration_plan: notes that a table''s rows are to be copied';
COMMENT ON FUNCTION snowflake_migration_progress(target regclass, column_name name, relation regclass) IS
    'Behind snowflake_migrate_backfill: where a batch begins';
COMMENT ON FUNCTION snowflake_migration_note(step snowflake_progress) IS
    'Behind snowflake_migrate_backfill: notes what a batch has done';
COMMENT ON FUNCTION snowflake_migration_end(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: forgets how far the copying was';
COMMENT ON FUNCTION snowflake_migration_row_estimate(relation regclass) IS
    'Behind snowflake_migrations: how many rows a table has, as the planner guesses';
COMMENT ON FUNCTION snowflake_migration_online_step(target regclass, column_name name) IS
    'Behind snowflake_migrations: what comes next';
COMMENT ON FUNCTION snowflake_migration_update_triggers(relation regclass) IS
    'Behind snowflake_migrate_backfill: the triggers that copying rows would fire';
COMMENT ON FUNCTION snowflake_migration_backfill_batch(target regclass, column_name name, relation regclass, batch_size integer) IS
    'Behind snowflake_migrate_backfill: copies what is missing in one range of blocks';
COMMENT ON FUNCTION snowflake_migration_replay_lag(max_replay_lag interval, mark pg_lsn, marked_at timestamp with time zone) IS
    'Behind snowflake_migrate_backfill: the standbys and subscribers that are behind';
COMMENT ON FUNCTION snowflake_migration_backfill_begin(target regclass, column_name name, batch_size integer, pause interval, max_replay_lag interval) IS
    'Behind snowflake_migrate_backfill: looks at its arguments, and which tables are to be copied';
COMMENT ON FUNCTION snowflake_migration_backfill_steps(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the statements that copy rows, and look at each afterwards';
COMMENT ON FUNCTION snowflake_migration_update_obstacles(relation regclass) IS
    'Behind snowflake_migration_online_obstacles: what an UPDATE of every row would set off';
COMMENT ON FUNCTION snowflake_migration_online_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: what cannot be migrated while it is in use, and the way that can';
COMMENT ON FUNCTION snowflake_migration_way_obstacles(target regclass, column_name name, online boolean) IS
    'Behind snowflake_migration_plan: what stands in the way of one of the two ways';
COMMENT ON FUNCTION snowflake_migration_swap_relations(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: the tables that are locked';
COMMENT ON FUNCTION snowflake_migration_swap_sequences(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: the sequences that are altered';
COMMENT ON FUNCTION snowflake_migration_swap_obstacles(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: what is missing';
COMMENT ON FUNCTION snowflake_migration_swap_commands(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: the DDL that it runs, and the table that each statement alters';
COMMENT ON FUNCTION snowflake_migration_not_null_names(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: the not-null constraints that tables have since PostgreSQL 18';
COMMENT ON FUNCTION snowflake_migration_fingerprint(relations regclass[]) IS
    'Behind snowflake_migration_swap: changes when the catalog''s rows on these tables do';
COMMENT ON FUNCTION snowflake_migration_require_ready(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: fails unless everything is there';
COMMENT ON FUNCTION snowflake_migration_old_snapshots(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: whose snapshots are older than the proof that all rows are copied';
COMMENT ON FUNCTION snowflake_migration_await_snapshots(target regclass, column_name name) IS
    'Behind snowflake_migration_swap: waits until nobody has such a snapshot';
COMMENT ON FUNCTION snowflake_migration_swap_locked(target regclass, column_name name, relations regclass[], before text, altered regclass[], statements text[], not_nulls jsonb) IS
    'Behind snowflake_migration_swap: one try';
COMMENT ON FUNCTION snowflake_migration_swap(target regclass, column_name name) IS
    'A step of snowflake_migration_plan with online => true: puts the shadow columns in the place of the narrow ones';
COMMENT ON FUNCTION snowflake_migration_online_steps(target regclass, column_name name) IS
    'Behind snowflake_migration_plan: the statements that widen columns while their tables are in use';

COMMENT ON TABLE snowflake_progress IS 'How far online migrations are with copying rows; written by the extension only. snowflake_migrations shows it';
COMMENT ON COLUMN snowflake_progress.target IS 'The table whose key is migrated';
COMMENT ON COLUMN snowflake_progress.column_name IS 'The key';
COMMENT ON COLUMN snowflake_progress.relation IS 'The table whose rows are copied: that one, or one that references it';
COMMENT ON COLUMN snowflake_progress.filenode IS 'The file it had when the copying began';
COMMENT ON COLUMN snowflake_progress.blocks_done IS 'How many of its blocks are copied';
COMMENT ON COLUMN snowflake_progress.blocks_total IS 'How many it had when the copying began; rows in later ones have their shadows from the trigger';
COMMENT ON COLUMN snowflake_progress.batch_blocks IS 'How many the next batch takes';
COMMENT ON COLUMN snowflake_progress.skipped IS 'Blocks with rows that other transactions had locked, to be looked at again';
COMMENT ON COLUMN snowflake_progress.rows_done IS 'How many rows that is, as far as rows_total is right';
COMMENT ON COLUMN snowflake_progress.rows_total IS 'How many rows it had, as the planner guessed';
COMMENT ON COLUMN snowflake_progress.run_rows IS 'How many of rows_done are of the present call, or the last one';
COMMENT ON COLUMN snowflake_progress.run_seconds IS 'How long those took, with the pauses between batches';
COMMENT ON COLUMN snowflake_progress.updated_at IS 'When this was noted';

COMMENT ON VIEW snowflake_migrations IS 'The online migrations that are under way';
COMMENT ON COLUMN snowflake_migrations.table_name IS 'The table whose key is migrated';
COMMENT ON COLUMN snowflake_migrations.column_name IS 'The key';
COMMENT ON COLUMN snowflake_migrations.step IS 'What is next, or at work: adding shadow columns, backfill, validating rows, building indexes, adding foreign keys, ready to swap';
COMMENT ON COLUMN snowflake_migrations.rows_done IS 'How many rows the backfill has been through, of all the tables';
COMMENT ON COLUMN snowflake_migrations.rows_total IS 'How many there were when it began, as the planner guessed';
COMMENT ON COLUMN snowflake_migrations.rows_per_second IS 'How many the present call of the backfill does a second, or the last one did';
COMMENT ON COLUMN snowflake_migrations.time_left IS 'How long the rest takes at that rate; NULL while there is none';
