//! Data directories as `initdb` makes them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use crate::installation::Installation;
use crate::os_user::OsUser;
use crate::scratch::Scratch;
use crate::server::Server;

/// One data directory for each tree, which tests copy. `initdb` is most of the
/// cost of a small test, and takes several seconds on a server with assertions.
static TEMPLATES: LazyLock<Mutex<HashMap<PathBuf, Scratch>>> = LazyLock::new(Mutex::default);

/// Makes a data directory for a server of that tree.
pub(super) fn copy_template(
    installation: &Installation,
    os_user: &OsUser,
    target: &Path,
) -> Result<()> {
    let mut templates = TEMPLATES.lock().unwrap_or_else(PoisonError::into_inner);
    let template = match templates.get(&installation.bin) {
        Some(scratch) => scratch.path().join("data"),
        None => {
            let scratch = Scratch::new(os_user)?;
            let data = scratch.path().join("data");
            Server::new(
                installation.clone(),
                os_user.clone(),
                data.clone(),
                scratch.path().to_owned(),
                scratch.path().join("log"),
                5432,
            )
            .initdb(&[])?;
            templates.insert(installation.bin.clone(), scratch);
            data
        }
    };
    let status = Command::new("cp")
        .arg("-a")
        .arg(template)
        .arg(target)
        .status()
        .context("copying a data directory")?;
    ensure!(status.success(), "copying a data directory failed");
    Ok(())
}
