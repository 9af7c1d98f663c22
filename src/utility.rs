//! What the extension does beside utility statements: the hook that sees them.
//!
//! - It tells [`crate::copy`] which statement runs.
//! - DISCARD ALL and DISCARD SEQUENCES forget `snowflake_currval()`.
//! - After a GRANT by a superuser it takes privileges on the extension's tables
//!   and on the mark back, all but SELECT: `GRANT ... ON ALL TABLES IN SCHEMA`
//!   and its like mean an application's tables, not these. (A role without that
//!   right can grant nothing on them. What is left of such a grant has no effect
//!   either: `sql/privileges.sql` has the whole story.)
//!
//! The hook is not guarded by pgrx and has no destructor pending while the
//! statement runs: an error passes it as it passes C, with its context, schema,
//! table and constraint.
#![allow(unsafe_code)] // a hook of Postgres

use std::ffi::c_char;
use std::sync::OnceLock;

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{is_a, pg_guard, pg_sys};

use crate::copy;
use crate::generator;

static NEXT: OnceLock<pg_sys::ProcessUtility_hook_type> = OnceLock::new();

unsafe extern "C-unwind" {
    // Not pgrx's, which catches errors and raises them again.
    #[allow(clashing_extern_declarations)]
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        query: *const c_char,
        read_only_tree: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        params: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        dest: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

/// Installs the hook; while libraries are preloaded.
pub fn init() {
    // SAFETY: hooks are set in the postmaster, before there is another process
    // or thread.
    unsafe {
        NEXT.get_or_init(|| pg_sys::ProcessUtility_hook);
        pg_sys::ProcessUtility_hook = Some(process_utility);
    }
}

/// Not guarded, and nothing to drop when the statement's error jumps over it:
/// see the head of this file.
unsafe extern "C-unwind" fn process_utility(
    statement: *mut pg_sys::PlannedStmt,
    query: *const c_char,
    read_only_tree: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    params: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    dest: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: Postgres calls its hook with a statement to run, and the hook
    // before this one, or Postgres itself, takes what this one was given.
    unsafe {
        let utility = (*statement).utilityStmt;
        let forgets = discards_sequences(utility);
        let grants = grants_on_relations(utility);
        let depth = copy::begin(copy::is_copy_from(utility));
        match NEXT.get().copied().flatten() {
            Some(next) => next(
                statement,
                query,
                read_only_tree,
                context,
                params,
                environment,
                dest,
                completion,
            ),
            None => standard_ProcessUtility(
                statement,
                query,
                read_only_tree,
                context,
                params,
                environment,
                dest,
                completion,
            ),
        }
        copy::end(depth);
        if forgets {
            generator::forget_last_id();
        }
        if grants {
            keep_privileges();
        }
    }
}

unsafe fn discards_sequences(utility: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag says what the node is.
    unsafe {
        is_a(utility, pg_sys::NodeTag::T_DiscardStmt)
            && matches!(
                (*utility.cast::<pg_sys::DiscardStmt>()).target,
                pg_sys::DiscardMode::DISCARD_ALL | pg_sys::DiscardMode::DISCARD_SEQUENCES
            )
    }
}

unsafe fn grants_on_relations(utility: *mut pg_sys::Node) -> bool {
    // SAFETY: the tag says what the node is.
    unsafe {
        is_a(utility, pg_sys::NodeTag::T_GrantStmt) && {
            let grant = &*utility.cast::<pg_sys::GrantStmt>();
            grant.is_grant
                && matches!(
                    grant.objtype,
                    pg_sys::ObjectType::OBJECT_TABLE | pg_sys::ObjectType::OBJECT_SEQUENCE
                )
        }
    }
}

/// What is to be revoked: all privileges but to read, of everybody but the
/// owner. It runs with a superuser's search path, and the extension's schema
/// may belong to somebody else, so every name and operator is `pg_catalog`'s.
const TO_REVOKE: &str = "
    SELECT pg_catalog.format('REVOKE %s ON %s %I.%I FROM %s', p.privilege_type,
               CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'S'::pg_catalog.\"char\"
                    THEN 'SEQUENCE' ELSE 'TABLE' END,
               n.nspname, c.relname,
               CASE WHEN p.grantee OPERATOR(pg_catalog.=) 0::pg_catalog.oid THEN 'PUBLIC'
                    ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(p.grantee)::pg_catalog.text) END)
    FROM pg_catalog.pg_extension AS e
    JOIN pg_catalog.pg_depend AS d
      ON d.refclassid OPERATOR(pg_catalog.=) 3079::pg_catalog.oid -- pg_extension
     AND d.refobjid OPERATOR(pg_catalog.=) e.oid
     AND d.classid OPERATOR(pg_catalog.=) 1259::pg_catalog.oid -- pg_class
     AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog.\"char\"
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) d.objid
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    CROSS JOIN LATERAL pg_catalog.aclexplode(c.relacl) AS p
    WHERE e.extname OPERATOR(pg_catalog.=) 'snowflake'::pg_catalog.name
      AND (c.relkind OPERATOR(pg_catalog.=) 'S'::pg_catalog.\"char\"
           OR c.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\")
      AND p.grantee OPERATOR(pg_catalog.<>) c.relowner
      AND p.privilege_type OPERATOR(pg_catalog.<>) 'SELECT'::pg_catalog.text";

/// Guarded: what it raises leaves it as an error of Postgres.
#[pg_guard]
unsafe extern "C-unwind" fn keep_privileges() {
    // SAFETY: reads the state of the process; what the statement has written is
    // to be seen.
    unsafe {
        if pg_sys::creating_extension || !pg_sys::superuser() {
            return;
        }
        pg_sys::CommandCounterIncrement();
    }
    // An error of Postgres does not come back here; the others mean that there
    // is nothing to do, as in a database without the extension.
    let statements: Vec<String> = Spi::connect(|client| {
        client
            .select(TO_REVOKE, None, &[])
            .map(|rows| rows.filter_map(|row| row.get(1).ok().flatten()).collect())
            .unwrap_or_default()
    });
    for statement in statements {
        let _ = Spi::run(&statement);
        ErrorReport::new(
            PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION,
            "a privilege on an object of the extension snowflake was revoked again",
            "snowflake",
        )
        .set_detail(format!("{statement}; the extension alone writes there."))
        .report(PgLogLevel::NOTICE);
    }
}
