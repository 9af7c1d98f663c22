//! The OS user that servers run as.
//!
//! `initdb` and `postgres` refuse to run as root. If root runs the tests (in a
//! container, in CI), everything that accesses a data directory runs as the user
//! `postgres`, which the Debian package creates. Otherwise it runs as the caller.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use nix::unistd::{Uid, User, chown};

/// The user that owns data directories and runs servers.
#[derive(Debug, Clone)]
pub struct OsUser {
    /// `None`: the caller.
    switch_to: Option<User>,
}

impl OsUser {
    /// The caller, or `postgres` if the caller is root.
    pub fn for_servers() -> Result<Self> {
        if !Uid::effective().is_root() {
            return Ok(Self { switch_to: None });
        }
        let user = User::from_name("postgres")
            .context("looking up the user \"postgres\"")?
            .context("run as root, the tests need a user \"postgres\" to run servers as")?;
        Ok(Self {
            switch_to: Some(user),
        })
    }

    /// A command that runs as this user in `directory`. It does not inherit the
    /// `PG*` variables, which could name a real server.
    pub fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(directory);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PG") {
                command.env_remove(name);
            }
        }
        // Messages of servers in English, because tests read them.
        command.env("LC_ALL", "C.UTF-8").env_remove("LANGUAGE");
        if let Some(user) = &self.switch_to {
            // With the uid, std also drops root's supplementary groups.
            command
                .uid(user.uid.as_raw())
                .gid(user.gid.as_raw())
                .env("HOME", &user.dir)
                .env("USER", &user.name);
        }
        command
    }

    /// Makes this user the owner of `path`.
    pub fn own(&self, path: &Path) -> Result<()> {
        match &self.switch_to {
            None => Ok(()),
            Some(user) => chown(path, Some(user.uid), Some(user.gid))
                .with_context(|| format!("giving {} to {}", path.display(), user.name)),
        }
    }
}
