//! How what the extension owns is described and allowed. What that is, and how it is
//! marked, has a golden file: `install`.

use anyhow::Result;

use super::{one, outcome, run, session, texts};

#[test]
fn everything_a_person_meets_has_a_description() -> Result<()> {
    session()?;
    let bare = texts(
        "SELECT pg_describe_object(classid, objid, 0) FROM pg_depend
         WHERE deptype = 'e' AND classid <> 'pg_type'::regclass AND refclassid = 'pg_extension'::regclass
           AND refobjid IN (SELECT oid FROM pg_extension WHERE extname IN ('snowflake', 'snowflake_migrate'))
           AND pg_describe_object(classid, objid, 0) !~ 'tests'
           AND (classid <> 'pg_proc'::regclass
                OR (SELECT pronamespace FROM pg_proc WHERE oid = objid) NOT IN ('snowflake_internal'::regnamespace, 'snowflake_migrate_internal'::regnamespace))
           AND coalesce(obj_description(objid, classid::regclass::name), '') = ''",
    );
    assert_eq!(bare, Vec::<String>::new());
    let bare_columns = texts(
        "SELECT format('%s.%s', attrelid::regclass, attname) FROM pg_attribute
         WHERE attrelid IN ('snowflake_status'::regclass, 'snowflake_stat_slots'::regclass,
                            'snowflake_layouts'::regclass,
                            'snowflake_migrate.columns'::regclass,
                            'snowflake_migrate_internal.origins'::regclass,
                            'snowflake_migrate_internal.progress'::regclass,
                            'snowflake_migrate_internal.pace'::regclass,
                            'snowflake_internal.restore'::regclass,
                            'snowflake_migrate_internal.restore'::regclass,
                            'snowflake_migrate.progress'::regclass,
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
        "enable_time_ranges",
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
        "snowflake.enable_time_ranges user on",
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
         WHERE name LIKE 'snowflake%'",
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
