//! What the extension does before and after utility statements.
//!
//! - It reports to [`crate::copy`] which statement runs.
//! - DISCARD ALL and DISCARD SEQUENCES forget `snowflake_currval()`.
//! - After a GRANT by a superuser it revokes all privileges but SELECT on the
//!   extension's tables and on the mark. Statements like `GRANT ... ON ALL TABLES
//!   IN SCHEMA` are meant for an application's tables, not for these. (Other roles
//!   cannot grant anything on them. A grant that remains has no effect:
//!   `sql/internal/privileges.sql` explains why.)
//! - `ALTER TABLE ... DISABLE TRIGGER ALL` leaves the trigger of
//!   `snowflake_internal.restore` enabled: `pg_restore --data-only
//!   --disable-triggers` has it for each table.
//! - The shadow index of a DEFERRABLE constraint is built as an index of such a
//!   constraint ([`crate::migration::is_counterpart_of_deferrable`]).

use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;

use crate::copy;
use crate::generator;
use crate::migration;
use crate::pg::{self, NewIndex, Statement, WatchStatements};
use crate::restore;

/// Starts to watch utility statements; called while libraries are preloaded.
pub fn init() {
    pg::watch_statements::<Watch>();
}

struct Watch;

/// What is known of a statement while it runs.
#[derive(Clone, Copy)]
struct Running {
    /// How many statements run around it.
    depth: usize,
    discards_sequences: bool,
    grants_on_relations: bool,
    switches_trigger: bool,
}

impl WatchStatements for Watch {
    type Running = Running;

    fn is_deferrable(index: NewIndex<'_>) -> bool {
        migration::is_counterpart_of_deferrable(index)
    }

    fn before(statement: Statement<'_>) -> Running {
        Running {
            depth: copy::begin(statement.is_copy_from()),
            discards_sequences: statement.discards_sequences(),
            grants_on_relations: statement.grants_on_relations(),
            switches_trigger: restore::switches_trigger(statement),
        }
    }

    fn after(running: Running) {
        copy::end(running.depth);
        if running.discards_sequences {
            generator::forget_last_id();
        }
        if running.grants_on_relations {
            keep_privileges();
        }
        if running.switches_trigger {
            restore::keep_trigger();
        }
    }
}

/// The statements to run: they revoke all privileges but SELECT from every role
/// but the owner. The query runs with a superuser's search path, and the
/// extension's schema may belong to another role. So every name and operator is
/// `pg_catalog`'s.
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
      -- What a dump is restored through: its trigger checks who restores.
      AND NOT (n.nspname OPERATOR(pg_catalog.=) 'snowflake_internal'::pg_catalog.name
               AND c.relname OPERATOR(pg_catalog.=) 'restore'::pg_catalog.name
               AND p.privilege_type OPERATOR(pg_catalog.=) 'INSERT'::pg_catalog.text)
      AND p.privilege_type OPERATOR(pg_catalog.<>) 'SELECT'::pg_catalog.text";

/// Revokes privileges on the extension's objects that a superuser has granted.
fn keep_privileges() {
    if pg::is_creating_extension() || !pg::is_superuser() {
        return;
    }
    // The grant.
    pg::make_writes_visible();
    // An error of Postgres does not return here. After any other error there is
    // nothing to do, as in a database without the extension.
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
            r#"a privilege granted on an object of extension "snowflake" was revoked"#,
            "snowflake",
        )
        .set_detail(format!(
            "{statement}. Only the extension writes to this object."
        ))
        .report(PgLogLevel::NOTICE);
    }
}
