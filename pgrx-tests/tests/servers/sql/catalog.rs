//! What the extension owns, and how it is marked, described and allowed.

use anyhow::Result;

use super::{one, outcome, run, session, texts};

/// The members of the extension in a schema. The tests themselves are members
/// here; so are, from PostgreSQL 17 on, the row types of its views.
fn members(is_internal: bool) -> Vec<String> {
    texts(&format!(
        "SELECT m.name FROM (
             SELECT pg_describe_object(classid, objid, 0) AS name FROM pg_depend
             WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass
               AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')) AS m
         WHERE m.name !~ 'tests' AND (m.name ~ '^[a-z]+ snowflake_internal') = {is_internal}
         ORDER BY m.name COLLATE \"C\"",
    ))
}

#[test]
fn the_public_objects_are_those_of_the_reference() -> Result<()> {
    session()?;
    let expected = [
        "function snowflake_accept_clock(timestamp with time zone)",
        "function snowflake_accept_layout()",
        "function snowflake_accept_node_id(bigint)",
        "function snowflake_advance_resolved_id()",
        "function snowflake_audit(regclass,name,integer[],bigint)",
        "function snowflake_audit_tables(integer[],name)",
        "function snowflake_backend_id(bigint)",
        "function snowflake_backend_id(bigint,text)",
        "function snowflake_between(bigint,timestamp with time zone,timestamp with time zone)",
        "function snowflake_between(bigint,timestamp with time zone,timestamp with time zone,text)",
        "function snowflake_compose(timestamp with time zone,integer,integer,integer)",
        "function snowflake_compose(timestamp with time zone,integer,integer,integer,text)",
        "function snowflake_currval()",
        "function snowflake_decode(bigint)",
        "function snowflake_decode(bigint,text)",
        "function snowflake_explain(bigint)",
        "function snowflake_explain(bigint,text)",
        "function snowflake_first_id(regclass,name)",
        "function snowflake_from_text(text,text)",
        "function snowflake_id()",
        "function snowflake_layout_capacity(text)",
        "function snowflake_layouts_for(integer)",
        "function snowflake_max_id(timestamp with time zone)",
        "function snowflake_max_id(timestamp with time zone,text)",
        "function snowflake_max_id_before(timestamp with time zone)",
        "function snowflake_max_id_before(timestamp with time zone,text)",
        "function snowflake_migrate(regclass,name)",
        "function snowflake_migrate_backfill(regclass,name,integer,interval,interval,integer)",
        "function snowflake_migrate_backfill_tables(regclass[],name[],integer,interval,interval,integer)",
        "function snowflake_migrate_pace(regclass,name,integer,interval,interval,integer,boolean)",
        "function snowflake_migrate_revert(regclass,name)",
        "function snowflake_migrate_tables(regclass[],name[])",
        "function snowflake_migration_plan(regclass,name,boolean)",
        "function snowflake_migration_plan_tables(regclass[],name[],boolean)",
        "function snowflake_migration_references(regclass,name)",
        "function snowflake_migration_survey(name)",
        "function snowflake_min_id(timestamp with time zone)",
        "function snowflake_min_id(timestamp with time zone,text)",
        "function snowflake_nextval()",
        "function snowflake_nextvals(integer)",
        "function snowflake_node_id(bigint)",
        "function snowflake_node_id(bigint,text)",
        "function snowflake_partition_ddl(regclass,timestamp with time zone,timestamp with time zone,interval,text)",
        "function snowflake_record_first_id(regclass,name,bigint)",
        "function snowflake_resolved_id()",
        "function snowflake_sequence(bigint)",
        "function snowflake_sequence(bigint,text)",
        "function snowflake_start_after(bigint)",
        "function snowflake_stat_reset()",
        "function snowflake_timestamp(bigint)",
        "function snowflake_timestamp(bigint,text)",
        "function snowflake_to_text(bigint,text)",
        "function snowflake_watch(regclass,name)",
        "view snowflake_layouts",
        "view snowflake_migrations",
        "view snowflake_serial_columns",
        "view snowflake_stat_slots",
        "view snowflake_status",
        "view snowflake_unresolved",
    ];
    assert_eq!(members(false), expected);
    Ok(())
}

#[test]
fn the_internal_objects_are_these() -> Result<()> {
    session()?;
    let expected = [
        "function snowflake_internal.copy_nextval()",
        "function snowflake_internal.get_database_layout()",
        "function snowflake_internal.get_layouts()",
        "function snowflake_internal.get_node_status()",
        "function snowflake_internal.get_resolved()",
        "function snowflake_internal.get_stat_slots()",
        "function snowflake_internal.get_status()",
        "function snowflake_internal.get_unresolved()",
        "function snowflake_internal.has_this_node(bigint)",
        "function snowflake_internal.ids_column(regclass,name)",
        "function snowflake_internal.migration_active_sessions()",
        "function snowflake_internal.migration_alter(text)",
        "function snowflake_internal.migration_altering(text)",
        "function snowflake_internal.migration_altering_line(text)",
        "function snowflake_internal.migration_analyzed_whole(regclass[],name[])",
        "function snowflake_internal.migration_await_snapshots(regclass[],name[])",
        "function snowflake_internal.migration_backfill_batch(regclass[],name[],regclass,integer,text)",
        "function snowflake_internal.migration_backfill_begin(regclass[],name[],integer,interval,interval,integer)",
        "function snowflake_internal.migration_backfill_steps(regclass[],name[])",
        "function snowflake_internal.migration_backfill_wait(regclass[],name[],regclass,timestamp with time zone,boolean,pg_lsn,timestamp with time zone,double precision,timestamp with time zone)",
        "function snowflake_internal.migration_base_type(oid)",
        "function snowflake_internal.migration_calls(text)",
        "function snowflake_internal.migration_check(regclass,name,text)",
        "function snowflake_internal.migration_check_rows(regclass,name,text,boolean)",
        "function snowflake_internal.migration_check_steps(regclass[],name[])",
        "function snowflake_internal.migration_code(text)",
        "function snowflake_internal.migration_code_name(name)",
        "function snowflake_internal.migration_column(regclass,name)",
        "function snowflake_internal.migration_column_grants(regclass,smallint)",
        "function snowflake_internal.migration_column_obstacles(regclass,name)",
        "function snowflake_internal.migration_column_options(text[])",
        "function snowflake_internal.migration_compare_dependents(jsonb,regclass[],name[])",
        "function snowflake_internal.migration_compiled_functions(regclass[])",
        "function snowflake_internal.migration_copy_trigger_states(regclass,name,name)",
        "function snowflake_internal.migration_create_dependents(jsonb)",
        "function snowflake_internal.migration_default_note(regclass,name)",
        "function snowflake_internal.migration_dependent_columns(regclass[],name[])",
        "function snowflake_internal.migration_dependent_difference(jsonb,jsonb)",
        "function snowflake_internal.migration_dependent_node(oid,oid)",
        "function snowflake_internal.migration_dependent_obstacles(regclass[],name[])",
        "function snowflake_internal.migration_dependent_relations(regclass[],name[])",
        "function snowflake_internal.migration_dependent_statements(regclass[],name[])",
        "function snowflake_internal.migration_dependents(regclass[],name[])",
        "function snowflake_internal.migration_dependents_fingerprint(regclass[],name[])",
        "function snowflake_internal.migration_dependents_note(regclass[],name[])",
        "function snowflake_internal.migration_describe_acl(aclitem[])",
        "function snowflake_internal.migration_describe_dependents(regclass[],name[])",
        "function snowflake_internal.migration_direct_dependents(regclass[],name[])",
        "function snowflake_internal.migration_do_block(text)",
        "function snowflake_internal.migration_drop_dependents(jsonb)",
        "function snowflake_internal.migration_drop_shadows(regclass[],name[])",
        "function snowflake_internal.migration_end(regclass,name)",
        "function snowflake_internal.migration_expressions(regclass,smallint[])",
        "function snowflake_internal.migration_extreme_id(regclass,name,text,text,boolean,text)",
        "function snowflake_internal.migration_finding_notes(jsonb,text,regclass)",
        "function snowflake_internal.migration_findings(regclass[],name[],boolean)",
        "function snowflake_internal.migration_fingerprint(regclass[])",
        "function snowflake_internal.migration_first_id()",
        "function snowflake_internal.migration_first_id_of(regclass,name)",
        "function snowflake_internal.migration_foreign_key_obstacles(regclass[],name[],text)",
        "function snowflake_internal.migration_foreign_key_steps(regclass[],name[])",
        "function snowflake_internal.migration_foreign_key_triggers(regclass[])",
        "function snowflake_internal.migration_grants(\"char\",text,name,oid,oid,aclitem[])",
        "function snowflake_internal.migration_guard()",
        "function snowflake_internal.migration_has_derived_statistics(regclass,name)",
        "function snowflake_internal.migration_id_indexes(regclass,name)",
        "function snowflake_internal.migration_index_function_obstacles(regclass[],name[],boolean,text)",
        "function snowflake_internal.migration_index_steps(regclass[],name[])",
        "function snowflake_internal.migration_is_recorded(regclass,name)",
        "function snowflake_internal.migration_is_switched(regclass,name)",
        "function snowflake_internal.migration_keep_origin(snowflake_internal.origins)",
        "function snowflake_internal.migration_keep_pace(snowflake_internal.pace)",
        "function snowflake_internal.migration_keep_progress(snowflake_internal.progress)",
        "function snowflake_internal.migration_key_arguments(regclass[],name[])",
        "function snowflake_internal.migration_key_names(regclass[],name[])",
        "function snowflake_internal.migration_keys(regclass[],name[])",
        "function snowflake_internal.migration_lacks_statistics(regclass,name)",
        "function snowflake_internal.migration_last_old_id(snowflake_internal.origins,boolean,bigint,bigint,snowflake_internal.scanned_ids,text)",
        "function snowflake_internal.migration_leftover_steps(regclass[],name[])",
        "function snowflake_internal.migration_limit_locks()",
        "function snowflake_internal.migration_linked_columns(regclass[],name[])",
        "function snowflake_internal.migration_lock(regclass[],text)",
        "function snowflake_internal.migration_lock_missed(regclass[],text,timestamp with time zone,timestamp with time zone)",
        "function snowflake_internal.migration_lock_needs(regclass[],name[])",
        "function snowflake_internal.migration_lock_obstacles(bigint,text)",
        "function snowflake_internal.migration_lock_slots()",
        "function snowflake_internal.migration_lock_table(regclass,text)",
        "function snowflake_internal.migration_lock_time_limit()",
        "function snowflake_internal.migration_may_become(oid,oid)",
        "function snowflake_internal.migration_migrate(regclass[],name[],text)",
        "function snowflake_internal.migration_name(regclass)",
        "function snowflake_internal.migration_not_null_names(regclass[],name[])",
        "function snowflake_internal.migration_obstacles(regclass[],name[],text)",
        "function snowflake_internal.migration_old_id_condition(name,bigint,bigint,bigint)",
        "function snowflake_internal.migration_old_snapshots(regclass[],name[])",
        "function snowflake_internal.migration_online_finding_notes(jsonb,text)",
        "function snowflake_internal.migration_online_obstacles(regclass[],name[])",
        "function snowflake_internal.migration_online_step(regclass[],name[])",
        "function snowflake_internal.migration_online_steps(regclass[],name[])",
        "function snowflake_internal.migration_origin(regclass,name)",
        "function snowflake_internal.migration_orphans_query(oid)",
        "function snowflake_internal.migration_other_locked_tables(regclass,smallint[])",
        "function snowflake_internal.migration_owned_sequence(regclass,name)",
        "function snowflake_internal.migration_owner_obstacles(regclass[],name[])",
        "function snowflake_internal.migration_pace(regclass,name)",
        "function snowflake_internal.migration_pace_settings(regclass,name)",
        "function snowflake_internal.migration_path_argument()",
        "function snowflake_internal.migration_pin(regclass[],name[])",
        "function snowflake_internal.migration_pin_dependents(regclass[],name[])",
        "function snowflake_internal.migration_pin_schemas(oid[])",
        "function snowflake_internal.migration_plan(regclass[],name[],boolean,text)",
        "function snowflake_internal.migration_plan_kind_obstacles(regclass[],name[],boolean)",
        "function snowflake_internal.migration_progress(regclass,name,regclass)",
        "function snowflake_internal.migration_publications(regclass,name)",
        "function snowflake_internal.migration_query(regclass,text)",
        "function snowflake_internal.migration_query(regclass,text,text)",
        "function snowflake_internal.migration_read(regclass,text)",
        "function snowflake_internal.migration_rebuild_obstacles(regclass[],name[])",
        "function snowflake_internal.migration_recompile(regclass[],name[])",
        "function snowflake_internal.migration_record_backfill(regclass[],name[],regclass)",
        "function snowflake_internal.migration_record_origin(regclass,name)",
        "function snowflake_internal.migration_record_progress(snowflake_internal.progress)",
        "function snowflake_internal.migration_record_reverted(regclass,name)",
        "function snowflake_internal.migration_rename_columns(text,name[],name[])",
        "function snowflake_internal.migration_replay_lag(interval,pg_lsn,timestamp with time zone)",
        "function snowflake_internal.migration_require_filled(regclass[],name[])",
        "function snowflake_internal.migration_require_locks(regclass[],name[])",
        "function snowflake_internal.migration_require_owner(regclass)",
        "function snowflake_internal.migration_require_ready(regclass[],name[],text)",
        "function snowflake_internal.migration_require_statistics(interval,integer)",
        "function snowflake_internal.migration_restore_children(snowflake_internal.origins)",
        "function snowflake_internal.migration_restore_default(snowflake_internal.origins,regclass)",
        "function snowflake_internal.migration_restore_identity(snowflake_internal.origins)",
        "function snowflake_internal.migration_restore_sequence(snowflake_internal.origins)",
        "function snowflake_internal.migration_restore_sequence_properties(regclass,snowflake_internal.origins)",
        "function snowflake_internal.migration_restore_trigger_states(jsonb)",
        "function snowflake_internal.migration_resume_sequence(regclass,boolean,snowflake_internal.origins,snowflake_internal.scanned_ids,text)",
        "function snowflake_internal.migration_retention_note(regclass[],name[])",
        "function snowflake_internal.migration_revert(regclass,name,text)",
        "function snowflake_internal.migration_role_obstacles(regclass[],name[])",
        "function snowflake_internal.migration_row_estimate(regclass)",
        "function snowflake_internal.migration_row_obstacles(regclass,name,text,boolean)",
        "function snowflake_internal.migration_row_type_obstacles(regclass[],boolean,regclass[])",
        "function snowflake_internal.migration_row_type_users(regclass[])",
        "function snowflake_internal.migration_run(regclass,text)",
        "function snowflake_internal.migration_run(regclass,text,text)",
        "function snowflake_internal.migration_run_all(regclass[],text[],oid[],text)",
        "function snowflake_internal.migration_run_as(oid,text,text)",
        "function snowflake_internal.migration_run_saved(jsonb,integer,text)",
        "function snowflake_internal.migration_save_dependents(regclass[],name[])",
        "function snowflake_internal.migration_scan_old_ids(regclass,name,text)",
        "function snowflake_internal.migration_sequence_by_name(name,name)",
        "function snowflake_internal.migration_sequence_options(jsonb)",
        "function snowflake_internal.migration_sequence_state(regclass,regclass)",
        "function snowflake_internal.migration_server_obstacles()",
        "function snowflake_internal.migration_set_pace(regclass[],name[],integer,interval,interval,integer,boolean)",
        "function snowflake_internal.migration_set_trigger_state(regclass,name,text)",
        "function snowflake_internal.migration_shadow_checks(regclass[],name[])",
        "function snowflake_internal.migration_shadow_foreign_keys(regclass[],name[])",
        "function snowflake_internal.migration_shadow_indexes(regclass[],name[])",
        "function snowflake_internal.migration_shadow_name(text,name)",
        "function snowflake_internal.migration_shadow_statistics(regclass[],name[])",
        "function snowflake_internal.migration_shadow_steps(regclass[],name[])",
        "function snowflake_internal.migration_shadows(regclass[],name[])",
        "function snowflake_internal.migration_short_wait()",
        "function snowflake_internal.migration_singular(text)",
        "function snowflake_internal.migration_sleep(integer)",
        "function snowflake_internal.migration_source(regclass,name)",
        "function snowflake_internal.migration_statistics_steps(regclass[],name[])",
        "function snowflake_internal.migration_statistics_targets(regclass[])",
        "function snowflake_internal.migration_steps(regclass[],name[],boolean,text)",
        "function snowflake_internal.migration_survey_obstacles(regclass[],name[],boolean)",
        "function snowflake_internal.migration_swap(regclass[],name[],text)",
        "function snowflake_internal.migration_swap_columns(regclass[],name[])",
        "function snowflake_internal.migration_swap_commands(regclass[],name[])",
        "function snowflake_internal.migration_swap_locked(regclass[],name[],regclass[],text,regclass[],text[],oid[],jsonb,jsonb,text,text)",
        "function snowflake_internal.migration_swap_obstacles(regclass[],name[],text)",
        "function snowflake_internal.migration_swap_relations(regclass[],name[])",
        "function snowflake_internal.migration_swap_sequences(regclass[],name[])",
        "function snowflake_internal.migration_table_tree(regclass,name)",
        "function snowflake_internal.migration_trigger_states(regclass[])",
        "function snowflake_internal.migration_try_expressions(regclass,smallint[],text[])",
        "function snowflake_internal.migration_type_obstacles(regclass,name)",
        "function snowflake_internal.migration_unfinished(regclass[],name[])",
        "function snowflake_internal.migration_update_obstacles(regclass)",
        "function snowflake_internal.migration_update_triggers(regclass)",
        "function snowflake_internal.migration_uses_other_code(regclass,oid,oid)",
        "function snowflake_internal.migration_warn(regclass[],name[],boolean)",
        "function snowflake_internal.migration_widen(regclass[],name[],text)",
        "function snowflake_internal.migration_without_types(text)",
        "function snowflake_internal.migration_words(name)",
        "function snowflake_internal.nextval_support(internal)",
        "function snowflake_internal.origins_stay()",
        "function snowflake_internal.partition_boundary(timestamp with time zone,interval,integer,text)",
        "function snowflake_internal.restore_row()",
        "function snowflake_internal.shadow()",
        "function snowflake_internal.tables_with_ids(regclass,name)",
        "function snowflake_internal.watch()",
        "schema snowflake_internal",
        "sequence snowflake_internal.mark",
        "table snowflake_internal.accepted_layout",
        "table snowflake_internal.origins",
        "table snowflake_internal.pace",
        "table snowflake_internal.progress",
        "table snowflake_internal.restore",
        "view snowflake_internal.sequence_columns",
    ];
    assert_eq!(members(true), expected);
    Ok(())
}

/// Volatility, parallel safety and strictness of the functions in a schema.
fn marks(is_internal: bool) -> Vec<String> {
    texts(&format!(
        "SELECT m.mark FROM (
             SELECT format('%s %s %s %s', p.oid::regprocedure, p.provolatile, p.proparallel, p.proisstrict) AS mark,
                    p.pronamespace = 'snowflake_internal'::regnamespace AS is_internal
             FROM pg_proc AS p
             WHERE p.pronamespace = 'snowflake_internal'::regnamespace OR p.proname ~ '^snowflake_') AS m
         WHERE m.is_internal = {is_internal}
         ORDER BY m.mark COLLATE \"C\"",
    ))
}

#[test]
fn public_functions_are_marked_as_the_reference_says() -> Result<()> {
    session()?;
    let expected = [
        "snowflake_accept_clock(timestamp with time zone) v s t",
        "snowflake_accept_layout() v u t",
        "snowflake_accept_node_id(bigint) v u f",
        "snowflake_advance_resolved_id() v u t",
        "snowflake_audit(regclass,name,integer[],bigint) s r f",
        "snowflake_audit_tables(integer[],name) s r f",
        "snowflake_backend_id(bigint) s s t",
        "snowflake_backend_id(bigint,text) i s t",
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone) s s f",
        "snowflake_between(bigint,timestamp with time zone,timestamp with time zone,text) i s f",
        "snowflake_compose(timestamp with time zone,integer,integer,integer) s s t",
        "snowflake_compose(timestamp with time zone,integer,integer,integer,text) i s t",
        "snowflake_currval() v r t",
        "snowflake_decode(bigint) s s t",
        "snowflake_decode(bigint,text) i s t",
        "snowflake_explain(bigint) s s t",
        "snowflake_explain(bigint,text) s s t",
        "snowflake_first_id(regclass,name) s s f",
        "snowflake_from_text(text,text) i s t",
        "snowflake_id() v s t",
        "snowflake_layout_capacity(text) i s t",
        "snowflake_layouts_for(integer) s s t",
        "snowflake_max_id(timestamp with time zone) s s t",
        "snowflake_max_id(timestamp with time zone,text) i s t",
        "snowflake_max_id_before(timestamp with time zone) s s t",
        "snowflake_max_id_before(timestamp with time zone,text) i s t",
        "snowflake_migrate(regclass,name) v u f",
        "snowflake_migrate_backfill(regclass,name,integer,interval,interval,integer) v u f",
        "snowflake_migrate_backfill_tables(regclass[],name[],integer,interval,interval,integer) v u f",
        "snowflake_migrate_pace(regclass,name,integer,interval,interval,integer,boolean) v u f",
        "snowflake_migrate_revert(regclass,name) v u f",
        "snowflake_migrate_tables(regclass[],name[]) v u f",
        "snowflake_migration_plan(regclass,name,boolean) s u f",
        "snowflake_migration_plan_tables(regclass[],name[],boolean) s u f",
        "snowflake_migration_references(regclass,name) s u f",
        "snowflake_migration_survey(name) s u f",
        "snowflake_min_id(timestamp with time zone) s s t",
        "snowflake_min_id(timestamp with time zone,text) i s t",
        "snowflake_nextval() v s t",
        "snowflake_nextvals(integer) v s t",
        "snowflake_node_id(bigint) s s t",
        "snowflake_node_id(bigint,text) i s t",
        "snowflake_partition_ddl(regclass,timestamp with time zone,timestamp with time zone,interval,text) s s f",
        "snowflake_record_first_id(regclass,name,bigint) v u f",
        "snowflake_resolved_id() s r t",
        "snowflake_sequence(bigint) s s t",
        "snowflake_sequence(bigint,text) i s t",
        "snowflake_start_after(bigint) v s t",
        "snowflake_stat_reset() v s t",
        "snowflake_timestamp(bigint) s s t",
        "snowflake_timestamp(bigint,text) i s t",
        "snowflake_to_text(bigint,text) i s t",
        "snowflake_watch(regclass,name) v u f",
    ];
    assert_eq!(marks(false), expected);
    Ok(())
}

#[test]
fn internal_functions_are_marked() -> Result<()> {
    session()?;
    let expected = [
        "snowflake_internal.copy_nextval() s r t",
        "snowflake_internal.get_database_layout() v r t",
        "snowflake_internal.get_layouts() i s t",
        "snowflake_internal.get_node_status() v r t",
        "snowflake_internal.get_resolved() v r t",
        "snowflake_internal.get_stat_slots() v r t",
        "snowflake_internal.get_status() v r t",
        "snowflake_internal.get_unresolved() v r t",
        "snowflake_internal.has_this_node(bigint) s s t",
        "snowflake_internal.ids_column(regclass,name) s s f",
        "snowflake_internal.migration_active_sessions() v u f",
        "snowflake_internal.migration_alter(text) v u f",
        "snowflake_internal.migration_altering(text) i s f",
        "snowflake_internal.migration_altering_line(text) i s f",
        "snowflake_internal.migration_analyzed_whole(regclass[],name[]) s u f",
        "snowflake_internal.migration_await_snapshots(regclass[],name[]) v u f",
        "snowflake_internal.migration_backfill_batch(regclass[],name[],regclass,integer,text) v u f",
        "snowflake_internal.migration_backfill_begin(regclass[],name[],integer,interval,interval,integer) v u f",
        "snowflake_internal.migration_backfill_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_backfill_wait(regclass[],name[],regclass,timestamp with time zone,boolean,pg_lsn,timestamp with time zone,double precision,timestamp with time zone) v u f",
        "snowflake_internal.migration_base_type(oid) s s f",
        "snowflake_internal.migration_calls(text) i s t",
        "snowflake_internal.migration_check(regclass,name,text) v u f",
        "snowflake_internal.migration_check_rows(regclass,name,text,boolean) v u f",
        "snowflake_internal.migration_check_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_code(text) i s t",
        "snowflake_internal.migration_code_name(name) s s f",
        "snowflake_internal.migration_column(regclass,name) s s f",
        "snowflake_internal.migration_column_grants(regclass,smallint) s u f",
        "snowflake_internal.migration_column_obstacles(regclass,name) s u f",
        "snowflake_internal.migration_column_options(text[]) i s f",
        "snowflake_internal.migration_compare_dependents(jsonb,regclass[],name[]) v u f",
        "snowflake_internal.migration_compiled_functions(regclass[]) s u f",
        "snowflake_internal.migration_copy_trigger_states(regclass,name,name) v u f",
        "snowflake_internal.migration_create_dependents(jsonb) v u f",
        "snowflake_internal.migration_default_note(regclass,name) s u f",
        "snowflake_internal.migration_dependent_columns(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependent_difference(jsonb,jsonb) s u f",
        "snowflake_internal.migration_dependent_node(oid,oid) s u f",
        "snowflake_internal.migration_dependent_obstacles(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependent_relations(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependent_statements(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependents(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependents_fingerprint(regclass[],name[]) s u f",
        "snowflake_internal.migration_dependents_note(regclass[],name[]) s u f",
        "snowflake_internal.migration_describe_acl(aclitem[]) s u f",
        "snowflake_internal.migration_describe_dependents(regclass[],name[]) s u f",
        "snowflake_internal.migration_direct_dependents(regclass[],name[]) s u f",
        "snowflake_internal.migration_do_block(text) i s f",
        "snowflake_internal.migration_drop_dependents(jsonb) v u f",
        "snowflake_internal.migration_drop_shadows(regclass[],name[]) v u f",
        "snowflake_internal.migration_end(regclass,name) v u t",
        "snowflake_internal.migration_expressions(regclass,smallint[]) s u f",
        "snowflake_internal.migration_extreme_id(regclass,name,text,text,boolean,text) s u f",
        "snowflake_internal.migration_finding_notes(jsonb,text,regclass) i u f",
        "snowflake_internal.migration_findings(regclass[],name[],boolean) s u f",
        "snowflake_internal.migration_fingerprint(regclass[]) s u f",
        "snowflake_internal.migration_first_id() s u f",
        "snowflake_internal.migration_first_id_of(regclass,name) v s t",
        "snowflake_internal.migration_foreign_key_obstacles(regclass[],name[],text) s u f",
        "snowflake_internal.migration_foreign_key_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_foreign_key_triggers(regclass[]) s u f",
        "snowflake_internal.migration_grants(\"char\",text,name,oid,oid,aclitem[]) s u f",
        "snowflake_internal.migration_guard() v u f",
        "snowflake_internal.migration_has_derived_statistics(regclass,name) s u f",
        "snowflake_internal.migration_id_indexes(regclass,name) s u f",
        "snowflake_internal.migration_index_function_obstacles(regclass[],name[],boolean,text) s u f",
        "snowflake_internal.migration_index_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_is_recorded(regclass,name) s u f",
        "snowflake_internal.migration_is_switched(regclass,name) s s f",
        "snowflake_internal.migration_keep_origin(snowflake_internal.origins) v u t",
        "snowflake_internal.migration_keep_pace(snowflake_internal.pace) v u t",
        "snowflake_internal.migration_keep_progress(snowflake_internal.progress) v u t",
        "snowflake_internal.migration_key_arguments(regclass[],name[]) s u f",
        "snowflake_internal.migration_key_names(regclass[],name[]) s u f",
        "snowflake_internal.migration_keys(regclass[],name[]) s u f",
        "snowflake_internal.migration_lacks_statistics(regclass,name) s u f",
        "snowflake_internal.migration_last_old_id(snowflake_internal.origins,boolean,bigint,bigint,snowflake_internal.scanned_ids,text) v u f",
        "snowflake_internal.migration_leftover_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_limit_locks() v u f",
        "snowflake_internal.migration_linked_columns(regclass[],name[]) s u f",
        "snowflake_internal.migration_lock(regclass[],text) v u f",
        "snowflake_internal.migration_lock_missed(regclass[],text,timestamp with time zone,timestamp with time zone) v u f",
        "snowflake_internal.migration_lock_needs(regclass[],name[]) s u f",
        "snowflake_internal.migration_lock_obstacles(bigint,text) s u f",
        "snowflake_internal.migration_lock_slots() s u f",
        "snowflake_internal.migration_lock_table(regclass,text) v u f",
        "snowflake_internal.migration_lock_time_limit() i s f",
        "snowflake_internal.migration_may_become(oid,oid) s u f",
        "snowflake_internal.migration_migrate(regclass[],name[],text) v u f",
        "snowflake_internal.migration_name(regclass) s s t",
        "snowflake_internal.migration_not_null_names(regclass[],name[]) s u f",
        "snowflake_internal.migration_obstacles(regclass[],name[],text) s u f",
        "snowflake_internal.migration_old_id_condition(name,bigint,bigint,bigint) i s f",
        "snowflake_internal.migration_old_snapshots(regclass[],name[]) v u f",
        "snowflake_internal.migration_online_finding_notes(jsonb,text) s u f",
        "snowflake_internal.migration_online_obstacles(regclass[],name[]) s u f",
        "snowflake_internal.migration_online_step(regclass[],name[]) s u f",
        "snowflake_internal.migration_online_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_origin(regclass,name) v s t",
        "snowflake_internal.migration_orphans_query(oid) s u f",
        "snowflake_internal.migration_other_locked_tables(regclass,smallint[]) s u f",
        "snowflake_internal.migration_owned_sequence(regclass,name) s u f",
        "snowflake_internal.migration_owner_obstacles(regclass[],name[]) s u f",
        "snowflake_internal.migration_pace(regclass,name) v u t",
        "snowflake_internal.migration_pace_settings(regclass,name) s u f",
        "snowflake_internal.migration_path_argument() i s f",
        "snowflake_internal.migration_pin(regclass[],name[]) v u f",
        "snowflake_internal.migration_pin_dependents(regclass[],name[]) v u f",
        "snowflake_internal.migration_pin_schemas(oid[]) v u t",
        "snowflake_internal.migration_plan(regclass[],name[],boolean,text) s u f",
        "snowflake_internal.migration_plan_kind_obstacles(regclass[],name[],boolean) s u f",
        "snowflake_internal.migration_progress(regclass,name,regclass) v u t",
        "snowflake_internal.migration_publications(regclass,name) s u f",
        "snowflake_internal.migration_query(regclass,text) s u f",
        "snowflake_internal.migration_query(regclass,text,text) s u f",
        "snowflake_internal.migration_read(regclass,text) s r f",
        "snowflake_internal.migration_rebuild_obstacles(regclass[],name[]) s u f",
        "snowflake_internal.migration_recompile(regclass[],name[]) v u f",
        "snowflake_internal.migration_record_backfill(regclass[],name[],regclass) v u f",
        "snowflake_internal.migration_record_origin(regclass,name) v u f",
        "snowflake_internal.migration_record_progress(snowflake_internal.progress) v u f",
        "snowflake_internal.migration_record_reverted(regclass,name) v u f",
        "snowflake_internal.migration_rename_columns(text,name[],name[]) i s t",
        "snowflake_internal.migration_replay_lag(interval,pg_lsn,timestamp with time zone) v u f",
        "snowflake_internal.migration_require_filled(regclass[],name[]) s u f",
        "snowflake_internal.migration_require_locks(regclass[],name[]) v u f",
        "snowflake_internal.migration_require_owner(regclass) s u f",
        "snowflake_internal.migration_require_ready(regclass[],name[],text) s u f",
        "snowflake_internal.migration_require_statistics(interval,integer) s u f",
        "snowflake_internal.migration_restore_children(snowflake_internal.origins) v u f",
        "snowflake_internal.migration_restore_default(snowflake_internal.origins,regclass) v u f",
        "snowflake_internal.migration_restore_identity(snowflake_internal.origins) v u f",
        "snowflake_internal.migration_restore_sequence(snowflake_internal.origins) v u f",
        "snowflake_internal.migration_restore_sequence_properties(regclass,snowflake_internal.origins) v u f",
        "snowflake_internal.migration_restore_trigger_states(jsonb) v u f",
        "snowflake_internal.migration_resume_sequence(regclass,boolean,snowflake_internal.origins,snowflake_internal.scanned_ids,text) v u f",
        "snowflake_internal.migration_retention_note(regclass[],name[]) s u f",
        "snowflake_internal.migration_revert(regclass,name,text) v u f",
        "snowflake_internal.migration_role_obstacles(regclass[],name[]) s u f",
        "snowflake_internal.migration_row_estimate(regclass) s u f",
        "snowflake_internal.migration_row_obstacles(regclass,name,text,boolean) s u f",
        "snowflake_internal.migration_row_type_obstacles(regclass[],boolean,regclass[]) s u f",
        "snowflake_internal.migration_row_type_users(regclass[]) s u f",
        "snowflake_internal.migration_run(regclass,text) v u f",
        "snowflake_internal.migration_run(regclass,text,text) v u f",
        "snowflake_internal.migration_run_all(regclass[],text[],oid[],text) v u f",
        "snowflake_internal.migration_run_as(oid,text,text) v u f",
        "snowflake_internal.migration_run_saved(jsonb,integer,text) v u f",
        "snowflake_internal.migration_save_dependents(regclass[],name[]) s u f",
        "snowflake_internal.migration_scan_old_ids(regclass,name,text) v u f",
        "snowflake_internal.migration_sequence_by_name(name,name) s u f",
        "snowflake_internal.migration_sequence_options(jsonb) i s f",
        "snowflake_internal.migration_sequence_state(regclass,regclass) v u t",
        "snowflake_internal.migration_server_obstacles() s u f",
        "snowflake_internal.migration_set_pace(regclass[],name[],integer,interval,interval,integer,boolean) v u f",
        "snowflake_internal.migration_set_trigger_state(regclass,name,text) v u t",
        "snowflake_internal.migration_shadow_checks(regclass[],name[]) s u f",
        "snowflake_internal.migration_shadow_foreign_keys(regclass[],name[]) s u f",
        "snowflake_internal.migration_shadow_indexes(regclass[],name[]) s u f",
        "snowflake_internal.migration_shadow_name(text,name) i s f",
        "snowflake_internal.migration_shadow_statistics(regclass[],name[]) s u f",
        "snowflake_internal.migration_shadow_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_shadows(regclass[],name[]) s u f",
        "snowflake_internal.migration_short_wait() s u f",
        "snowflake_internal.migration_singular(text) i s f",
        "snowflake_internal.migration_sleep(integer) v u f",
        "snowflake_internal.migration_source(regclass,name) s u f",
        "snowflake_internal.migration_statistics_steps(regclass[],name[]) s u f",
        "snowflake_internal.migration_statistics_targets(regclass[]) s u f",
        "snowflake_internal.migration_steps(regclass[],name[],boolean,text) s u f",
        "snowflake_internal.migration_survey_obstacles(regclass[],name[],boolean) s u f",
        "snowflake_internal.migration_swap(regclass[],name[],text) v u f",
        "snowflake_internal.migration_swap_columns(regclass[],name[]) s u f",
        "snowflake_internal.migration_swap_commands(regclass[],name[]) s u f",
        "snowflake_internal.migration_swap_locked(regclass[],name[],regclass[],text,regclass[],text[],oid[],jsonb,jsonb,text,text) v u f",
        "snowflake_internal.migration_swap_obstacles(regclass[],name[],text) s u f",
        "snowflake_internal.migration_swap_relations(regclass[],name[]) s u f",
        "snowflake_internal.migration_swap_sequences(regclass[],name[]) s u f",
        "snowflake_internal.migration_table_tree(regclass,name) s u f",
        "snowflake_internal.migration_trigger_states(regclass[]) s u f",
        "snowflake_internal.migration_try_expressions(regclass,smallint[],text[]) s u f",
        "snowflake_internal.migration_type_obstacles(regclass,name) s u f",
        "snowflake_internal.migration_unfinished(regclass[],name[]) s u f",
        "snowflake_internal.migration_update_obstacles(regclass) s u f",
        "snowflake_internal.migration_update_triggers(regclass) s u f",
        "snowflake_internal.migration_uses_other_code(regclass,oid,oid) s u f",
        "snowflake_internal.migration_warn(regclass[],name[],boolean) s u f",
        "snowflake_internal.migration_widen(regclass[],name[],text) v u f",
        "snowflake_internal.migration_without_types(text) i s f",
        "snowflake_internal.migration_words(name) i s f",
        "snowflake_internal.nextval_support(internal) i s t",
        "snowflake_internal.origins_stay() v u f",
        "snowflake_internal.partition_boundary(timestamp with time zone,interval,integer,text) s s f",
        "snowflake_internal.restore_row() v u f",
        "snowflake_internal.shadow() v u f",
        "snowflake_internal.tables_with_ids(regclass,name) s r f",
        "snowflake_internal.watch() v u f",
    ];
    assert_eq!(marks(true), expected);
    Ok(())
}

#[test]
fn everything_a_person_meets_has_a_description() -> Result<()> {
    session()?;
    let bare = texts(
        "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
         WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass
           AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'snowflake')
           AND pg_describe_object(classid, objid, 0) !~ 'tests'
           AND coalesce(obj_description(objid, classid::regclass::name), '') = ''",
    );
    assert_eq!(bare, Vec::<String>::new());
    let bare_columns = texts(
        "SELECT format('%s.%s', attrelid::regclass, attname) FROM pg_attribute
         WHERE attrelid IN ('snowflake_status'::regclass, 'snowflake_stat_slots'::regclass,
                            'snowflake_layouts'::regclass,
                            'snowflake_serial_columns'::regclass,
                            'snowflake_internal.origins'::regclass,
                            'snowflake_internal.progress'::regclass,
                            'snowflake_internal.pace'::regclass,
                            'snowflake_internal.restore'::regclass,
                            'snowflake_migrations'::regclass,
                            'snowflake_unresolved'::regclass)
           AND attnum > 0 AND coalesce(col_description(attrelid, attnum), '') = ''",
    );
    assert_eq!(bare_columns, Vec::<String>::new());
    let settings = texts(
        "SELECT name FROM pg_settings WHERE name LIKE 'snowflake.%'
           AND short_desc <> '' AND extra_desc <> '' ORDER BY 1",
    );
    let expected = [
        "copy_multi_insert",
        "layout",
        "lease",
        "log_unresolved_min_duration",
        "max_borrow",
        "max_clock_step",
        "max_wait",
        "node_id",
        "node_id_source",
        "node_network",
        "on_node_conflict",
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|it| format!("snowflake.{it}"))
        .collect();
    let settings: Vec<_> = settings
        .into_iter()
        .filter(|it| it != "snowflake.unprotected")
        .collect();
    assert_eq!(settings, expected);
    Ok(())
}

#[test]
fn settings_have_the_contexts_and_defaults_of_the_contract() -> Result<()> {
    session()?;
    let settings = texts(
        "SELECT concat_ws(' ', name, context, boot_val, unit) FROM pg_settings
         WHERE name LIKE 'snowflake.%' AND name <> 'snowflake.unprotected' ORDER BY 1",
    );
    let expected = [
        "snowflake.copy_multi_insert user on",
        "snowflake.layout postmaster default",
        "snowflake.lease sighup 2000 ms",
        "snowflake.log_unresolved_min_duration sighup 60000 ms",
        "snowflake.max_borrow sighup 1000 ms",
        "snowflake.max_clock_step sighup 86400000 ms",
        "snowflake.max_wait user 5000 ms",
        "snowflake.node_id postmaster -1",
        "snowflake.node_id_source postmaster setting",
        "snowflake.node_network postmaster ",
        "snowflake.on_node_conflict sighup log",
    ];
    assert_eq!(settings, expected);
    Ok(())
}

#[test]
fn shared_memory_stays_small() -> Result<()> {
    session()?;
    let size: i64 = one(
        "SELECT sum(allocated_size)::bigint FROM pg_shmem_allocations
         WHERE name = 'snowflake'",
    );
    assert!(size <= 64 * 1024, "{size} bytes");
    Ok(())
}

#[test]
fn the_public_may_read_the_mark_and_not_move_it() -> Result<()> {
    session()?;
    let allowed: String = one(
        "SELECT concat_ws(' ', has_sequence_privilege('pg_monitor', oid, 'SELECT'),
                          has_sequence_privilege('pg_monitor', oid, 'USAGE'),
                          has_sequence_privilege('pg_monitor', oid, 'UPDATE'))
         FROM pg_class WHERE oid = 'snowflake_internal.mark'::regclass",
    );
    assert_eq!(allowed, "t f f");
    Ok(())
}

#[test]
fn what_only_an_administrator_may_do_is_refused_to_others() -> Result<()> {
    session()?;
    run("CREATE ROLE somebody; GRANT EXECUTE ON FUNCTION snowflake_stat_reset() TO somebody");
    for (call, state) in [
        ("snowflake_start_after(1)", "42501"),
        ("snowflake_accept_clock(now())", "42501"),
        ("snowflake_stat_reset()", "00000"),
        ("snowflake_nextval()", "00000"),
        ("snowflake_id()", "00000"),
    ] {
        let [got, ..] = outcome(&format!(
            "DO $do$ BEGIN SET LOCAL ROLE somebody; PERFORM {call}; END $do$"
        ));
        run("RESET ROLE");
        assert_eq!(got, state, "{call}");
    }
    run("GRANT EXECUTE ON FUNCTION snowflake_start_after(bigint),
             snowflake_accept_clock(timestamptz) TO somebody");
    for call in ["snowflake_start_after(1)", "snowflake_accept_clock(now())"] {
        let [got, message, _, hint] = outcome(&format!(
            "DO $do$ BEGIN SET LOCAL ROLE somebody; PERFORM {call}; END $do$"
        ));
        assert_eq!(got, "42501", "{call}");
        assert!(
            message.starts_with("permission denied for function"),
            "{message}"
        );
        assert_eq!(hint, "Only a superuser may call it.");
    }
    Ok(())
}
