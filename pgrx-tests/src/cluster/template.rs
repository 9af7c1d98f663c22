//! Data directories as `initdb` makes them, empty or with the extensions.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::scratch::Scratch;
use crate::server::{Server, Stop};

/// What a data directory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Template {
    /// What `initdb` makes.
    Empty,
    /// The extension, in the database `postgres`.
    WithExtension,
    /// The same, with the tool that migrates tables.
    WithMigrate,
}

impl Template {
    /// The statements that create its extensions.
    pub(super) fn extensions(self) -> &'static str {
        match self {
            Template::Empty => "",
            Template::WithExtension => "CREATE EXTENSION snowflake",
            Template::WithMigrate => {
                "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate"
            }
        }
    }
}

/// The directories that tests copy, for each tree. `initdb` is most of the
/// cost of a small test, and takes several seconds on a server with assertions.
static TEMPLATES: LazyLock<Mutex<HashMap<(PathBuf, Template), Scratch>>> =
    LazyLock::new(Mutex::default);

/// Makes a data directory for a server of that tree.
pub(super) fn copy_template(
    template: Template,
    installation: &Installation,
    os_user: &OsUser,
    target: &Path,
) -> Result<()> {
    copy(&find(template, installation, os_user)?, target)
}

/// Where the template is. The first test that needs it makes it, and the others
/// wait.
fn find(template: Template, installation: &Installation, os_user: &OsUser) -> Result<PathBuf> {
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    for missing in [Template::Empty, template] {
        let key = (installation.bin.clone(), missing);
        if !templates.contains_key(&key) {
            let scratch = Scratch::new(os_user)?;
            let sockets = scratch.subdirectory("s", os_user)?;
            let mut server = Server::new(
                installation.clone(),
                os_user.clone(),
                scratch.path().join("data"),
                sockets,
                scratch.path().join("log"),
                5432,
            );
            match missing {
                // Segments of 1 MB instead of 16: less to copy.
                Template::Empty => server.initdb(&["--wal-segsize=1"])?,
                Template::WithExtension | Template::WithMigrate => {
                    let empty = &templates[&(installation.bin.clone(), Template::Empty)];
                    copy(&empty.path().join("data"), server.data())?;
                    create_extensions(&mut server, missing)?;
                }
            }
            templates.insert(key, scratch);
        }
    }
    let scratch = &templates[&(installation.bin.clone(), template)];
    Ok(scratch.path().join("data"))
}

/// Creates the extensions without preloading the library, so that the directory has no trace
/// of a server that generates IDs: each copy is a server of its own.
fn create_extensions(server: &mut Server, template: Template) -> Result<()> {
    server.set_arguments(&["-c", "listen_addresses=", "-c", "fsync=off"]);
    server.start()?;
    server.run(template.extensions())?;
    server.stop(Stop::Fast)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let status = Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .context("copying a data directory")?;
    ensure!(status.success(), "copying a data directory failed");
    Ok(())
}
