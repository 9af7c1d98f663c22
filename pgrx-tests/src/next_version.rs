//! A next version of the extension, made up for tests of `ALTER EXTENSION ... UPDATE`.
//!
//! It is made from the install script under test, in a private copy of that tree. It is
//! the default version there, as in a release: a dump, which names no version, restores
//! into it. The library is the one under test.

use std::fs;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::scratch::Scratch;

/// What the next version of one of the extensions changes.
struct Changes {
    extension: &'static str,
    /// Places in the install script, which it has once, with what «is added» there.
    places: &'static [&'static str],
    /// What both scripts end with: a new function, comments and privileges.
    added: &'static str,
    /// The beginning of the script of the update.
    update: &'static str,
    /// What follows in it: parts of the new install script, from one text to another,
    /// which create or replace what has changed.
    parts: &'static [(&'static str, &'static str)],
}

/// A column of a view, a column of what dumps include, and a function.
const CORE: Changes = Changes {
    extension: "snowflake",
    places: &[
        "    accepted_at timestamp with time zone,\n«    recorded_by text,\n»    -- While the trigger is disabled",
        ", NULL«, NULL»\nFROM snowflake_internal.mark AS m WHERE",
        "l.accepted_at«, NULL»\nFROM snowflake_internal.accepted_layout AS l\n",
        "ids_per_second, nodes, backends, about«, nodes OPERATOR(pg_catalog.*) backends AS slots»\n    FROM",
    ],
    added: "
COMMENT ON COLUMN snowflake_internal.restore.recorded_by IS 'Role that recorded it';
COMMENT ON COLUMN snowflake_layouts.slots IS 'Number of slots of all nodes';
CREATE FUNCTION snowflake_age(id bigint)
RETURNS interval LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS 'SELECT now() - @extschema@.snowflake_timestamp(id)';
COMMENT ON FUNCTION snowflake_age(id bigint) IS 'Returns how long ago an ID was generated';
REVOKE EXECUTE ON FUNCTION snowflake_age(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_age(bigint) TO pg_monitor;
",
    update: "ALTER TABLE snowflake_internal.restore ADD COLUMN recorded_by text;
SELECT pg_catalog.pg_advisory_xact_lock_shared(7305611);
",
    parts: &[
        (
            "SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restore'",
            "$condition$);",
        ),
        ("CREATE VIEW snowflake_layouts AS", ";"),
    ],
};

/// A column of the records, and a statement in a function.
const MIGRATE: Changes = Changes {
    extension: "snowflake_migrate",
    places: &[
        "    reverted_at timestamp with time zone,\n«    reverted_by text,\n»    PRIMARY KEY (target, column_name)\n",
        "    reverted_at timestamp with time zone,\n«    reverted_by text,\n»    -- While the trigger is disabled",
        "o.remembered_at, o.reverted_at«, o.reverted_by»\nFROM",
        "        origin.reverted_at := now();\n«        origin.reverted_by := session_user;\n»",
    ],
    added: "
COMMENT ON COLUMN snowflake_migrate_internal.origins.reverted_by IS 'Role that reverted the migration';
COMMENT ON COLUMN snowflake_migrate_internal.restore.reverted_by IS 'As in snowflake_migrate_internal.origins';
",
    update: "ALTER TABLE snowflake_migrate_internal.origins ADD COLUMN reverted_by text;
ALTER TABLE snowflake_migrate_internal.restore ADD COLUMN reverted_by text;
",
    parts: &[
        (
            "SELECT pg_catalog.pg_extension_config_dump('snowflake_migrate_internal.restore'",
            "$condition$);",
        ),
        (
            "CREATE FUNCTION snowflake_migrate_internal.record_reverted(",
            "$function$;",
        ),
    ],
};

/// While a session of the same database holds this lock, an update waits in the middle
/// of its script.
pub const PAUSE_UPDATES: &str = "SELECT pg_advisory_lock(7305611)";

/// The made-up version.
#[derive(Debug, Clone)]
pub struct NextVersion {
    /// The tree in which both versions are installed.
    pub installation: Installation,
    /// The version under test.
    pub today: String,
    /// The made-up one.
    pub next: String,
}

/// The next version. The first test that needs it makes it. It is removed when the
/// process ends.
pub fn next_version() -> Result<NextVersion> {
    static MADE: Mutex<Option<(NextVersion, Scratch)>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((next, _)) = &*made {
        return Ok(next.clone());
    }
    let scratch = Scratch::new(&OsUser::for_servers()?)?;
    let next = write_scripts(Installation::under_test()?.copy_to(scratch.path())?)?;
    *made = Some((next.clone(), scratch));
    Ok(next)
}

/// Writes the install scripts of the next version and the scripts of the update, and
/// makes the next version the default.
fn write_scripts(installation: Installation) -> Result<NextVersion> {
    let file = |name: String| installation.extensions.join(name);
    let control = fs::read_to_string(file("snowflake.control".to_owned()))?;
    let today = part(&control, "default_version = '", "'\n")?;
    let today = today.split('\'').nth(1).context("no version")?.to_owned();
    let next = format!("{today}.1");
    for changes in [CORE, MIGRATE] {
        let extension = changes.extension;
        let mut install = fs::read_to_string(file(format!("{extension}--{today}.sql")))?;
        for change in changes.places {
            let new = change.replace(['«', '»'], "");
            let place = change.replace(part(change, "«", "»")?, "");
            ensure!(
                install.matches(&place).count() == 1,
                "not once in the script: {place}"
            );
            install = install.replace(&place, &new);
        }
        let mut update = changes.update.to_owned();
        for (begin, end) in changes.parts {
            update += &part(&install, begin, end)?.replacen("CREATE", "CREATE OR REPLACE", 1);
            update += "\n";
        }
        let upgrade = file(format!("{extension}--{today}--{next}.sql"));
        fs::write(upgrade, update + changes.added)?;
        let install = install + changes.added;
        fs::write(file(format!("{extension}--{next}.sql")), install)?;
        let control = file(format!("{extension}.control"));
        let text = fs::read_to_string(&control)?;
        let text = text.replace(&format!("'{today}'"), &format!("'{next}'"));
        fs::write(control, text)?;
    }
    Ok(NextVersion {
        installation,
        today,
        next,
    })
}

/// The part of a text from one string to another, which it includes.
fn part<'a>(text: &'a str, begin: &str, end: &str) -> Result<&'a str> {
    let start = text.find(begin).with_context(|| format!("no {begin}"))?;
    let length = text[start..]
        .find(end)
        .with_context(|| format!("no {end} after {begin}"))?;
    Ok(&text[start..start + length + end.len()])
}
