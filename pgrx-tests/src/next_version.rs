//! A next version of the extension, made up for tests of `ALTER EXTENSION ... UPDATE`.
//!
//! It is made from the install script under test, in a private copy of that tree. It is
//! the default version there, as in a release: a dump, which names no version, restores
//! into it. The library is the one under test.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::scratch::Scratch;

/// Places in the install script, which it has once, with what «is added» there: a column
/// of the records of migrations and of the table through which dumps restore them, its
/// value in the rows that are dumped, a statement in a function, and a column of a view.
const CHANGES: &[&str] = &[
    "    reverted_at timestamp with time zone,\n«    reverted_by text,\n»    PRIMARY KEY (target, column_name)\n",
    "    reverted_at timestamp with time zone,\n«    reverted_by text,\n»    -- While the trigger is disabled",
    ", NULL«, NULL»\nFROM snowflake_internal.mark AS m WHERE",
    ", NULL«, NULL»\nFROM snowflake_internal.accepted_layout AS l\n",
    "o.remembered_at, o.reverted_at«, o.reverted_by»\nFROM",
    "        origin.reverted_at := now();\n«        origin.reverted_by := session_user;\n»",
    "ids_per_second, nodes, backends, about«, nodes OPERATOR(pg_catalog.*) backends AS slots»\n    FROM",
];

/// What both scripts end with: a new function, comments and privileges.
const ADDED: &str = "
COMMENT ON COLUMN snowflake_internal.origins.reverted_by IS 'Role that reverted the migration';
COMMENT ON COLUMN snowflake_internal.restore.reverted_by IS 'As in snowflake_internal.origins';
COMMENT ON COLUMN snowflake_layouts.slots IS 'Number of slots of all nodes';
CREATE FUNCTION snowflake_age(id bigint)
RETURNS interval LANGUAGE sql STABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS 'SELECT now() - @extschema@.snowflake_timestamp(id)';
COMMENT ON FUNCTION snowflake_age(id bigint) IS 'Returns how long ago an ID was generated';
REVOKE EXECUTE ON FUNCTION snowflake_age(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION snowflake_age(bigint) TO pg_monitor;
";

/// While a session of the same database holds this lock, an update waits in the middle
/// of its script.
pub const PAUSE_UPDATES: &str = "SELECT pg_advisory_lock(7305611)";

const PAUSE: &str = "SELECT pg_catalog.pg_advisory_xact_lock_shared(7305611);";

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
    let next = write_scripts(copy_tree(&Installation::under_test()?, scratch.path())?)?;
    *made = Some((next.clone(), scratch));
    Ok(next)
}

/// Copies the programs and SHAREDIR, because PostgreSQL finds its files relative to where
/// `postgres` is. The libraries stay where they are.
fn copy_tree(original: &Installation, directory: &Path) -> Result<Installation> {
    let share = original.extensions.parent().context("no SHAREDIR")?;
    let asked = Command::new(original.bin.join("pg_config"))
        .arg("--pkglibdir")
        .output()?;
    let libraries = PathBuf::from(String::from_utf8(asked.stdout)?.trim());
    let prefix = original
        .bin
        .ancestors()
        .find(|prefix| share.starts_with(prefix) && libraries.starts_with(prefix))
        .context("the tree's directories have nothing in common")?;
    let place = |path: &Path| -> Result<PathBuf> {
        let target = directory.join("tree").join(path.strip_prefix(prefix)?);
        fs::create_dir_all(target.parent().context("no parent")?)?;
        Ok(target)
    };
    for path in [original.bin.as_path(), share] {
        let status = Command::new("cp")
            .arg("-a")
            .arg(path)
            .arg(place(path)?)
            .status()?;
        ensure!(status.success(), "copying {} failed", path.display());
    }
    symlink(&libraries, place(&libraries)?)?;
    let copy = Installation::from_pg_config(&place(&original.bin)?.join("pg_config"))?;
    // Nothing is written into the tree under test.
    ensure!(copy.extensions.starts_with(directory), "{copy:?}");
    Ok(copy)
}

/// Writes the install script of the next version and the script of the update, and makes
/// the next version the default.
fn write_scripts(installation: Installation) -> Result<NextVersion> {
    let file = |name: String| installation.extensions.join(name);
    let control = fs::read_to_string(file("snowflake.control".to_owned()))?;
    let today = part(&control, "default_version = '", "'\n")?;
    let today = today.split('\'').nth(1).context("no version")?.to_owned();
    let next = format!("{today}.1");
    let mut install = fs::read_to_string(file(format!("snowflake--{today}.sql")))?;
    for change in CHANGES {
        let new = change.replace(['«', '»'], "");
        let place = change.replace(part(change, "«", "»")?, "");
        ensure!(
            install.matches(&place).count() == 1,
            "not once in the script: {place}"
        );
        install = install.replace(&place, &new);
    }
    let replacing = |begin, end| -> Result<String> {
        Ok(part(&install, begin, end)?.replacen("CREATE", "CREATE OR REPLACE", 1))
    };
    let update: [&str; 7] = [
        "ALTER TABLE snowflake_internal.origins ADD COLUMN reverted_by text;",
        "ALTER TABLE snowflake_internal.restore ADD COLUMN reverted_by text;",
        part(
            &install,
            "SELECT pg_catalog.pg_extension_config_dump('snowflake_internal.restore'",
            "$condition$);",
        )?,
        PAUSE,
        &replacing(
            "CREATE FUNCTION snowflake_internal.migration_record_reverted(",
            "$function$;",
        )?,
        &replacing("CREATE VIEW snowflake_layouts AS", ";")?,
        ADDED,
    ];
    fs::write(
        file(format!("snowflake--{today}--{next}.sql")),
        update.join("\n"),
    )?;
    fs::write(file(format!("snowflake--{next}.sql")), install + ADDED)?;
    fs::write(
        file("snowflake.control".to_owned()),
        control.replace(&format!("'{today}'"), &format!("'{next}'")),
    )?;
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
