//! A private directory that is removed with the test that created it.
//!
//! `Drop` is not enough: it does not run if a test process is killed (by a time
//! limit of CI, by Ctrl-C), nor for statics, and servers would keep running. So
//! each directory has a reaper, a shell that waits for the end of its standard
//! input. Only this process has the other end of that pipe, and the kernel closes
//! it however this process ends. The reaper then ends the server in the
//! directory, if there is one, and removes the directory.
//!
//! A parent-death signal is no alternative. It is sent when the *thread* that
//! started the server ends, needs `unsafe`, and removes nothing.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::os_user::OsUser;

/// The longest path of a Unix socket that the kernel accepts.
const LONGEST_SOCKET_PATH: usize = 107;

/// The length of a directory's own part of such a path:
/// `/snowflake-test.123456` and `/s/.s.PGSQL.65535`, rounded up.
const OWN_PART_OF_SOCKET_PATH: usize = 48;

/// The reaper. `$1` is the directory. A `postmaster.pid` may be stale, and its
/// number may belong to another program by now. So a process is ended only if
/// its working directory is the data directory, as a postmaster's is, or one below
/// the private directory.
const REAPER: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
for data in "$1"/*/; do
    data=${data%/}
    [ -f "$data/postmaster.pid" ] || continue
    read -r pid <"$data/postmaster.pid" || continue
    is_ours() { [ "$(readlink "/proc/$pid/cwd")" = "$data" ]; }
    is_ours || continue
    kill -CONT "$pid"
    kill -QUIT "$pid"
    for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        is_ours || break
        sleep 0.1
    done
    is_ours && kill -KILL "$pid"
done
# Programs beside servers, which work in a directory below.
find /proc/[0-9]*/cwd -maxdepth 0 -lname "$1/*" 2>/dev/null | while IFS=/ read -r _ _ pid _; do
    kill -KILL "$pid"
done
rm -rf -- "$1"
"#;

/// A private directory, owned by the OS user that runs servers.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    reaper: Child,
}

impl Scratch {
    /// Creates one in the system's directory for temporary files, or in `/tmp` if
    /// the former's path is too long for Unix sockets.
    pub fn new(os_user: &OsUser) -> Result<Self> {
        let mut base = std::env::temp_dir().canonicalize()?;
        if base.as_os_str().len() + OWN_PART_OF_SOCKET_PATH > LONGEST_SOCKET_PATH {
            base = PathBuf::from("/tmp");
        }
        let path = tempfile::Builder::new()
            .prefix("snowflake-test.")
            .tempdir_in(base)
            .context("creating a private directory")?
            // From here on the reaper removes it.
            .keep();
        let reaper = Command::new("/bin/sh")
            .args(["-c", REAPER, "reaper"])
            .arg(&path)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to the terminal's foreground group.
            .process_group(0)
            .spawn()
            .context("starting the reaper of a private directory")?;
        let scratch = Self { path, reaper };
        os_user.own(&scratch.path)?;
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a directory in it that only the server's OS user can enter.
    pub fn subdirectory(&self, name: &str, os_user: &OsUser) -> Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.path.join(name);
        ensure!(!path.exists(), "{} exists already", path.display());
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("creating {}", path.display()))?;
        os_user.own(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(self.reaper.stdin.take());
        // A failure of the reaper does not fail the test.
        let _ = self.reaper.wait();
    }
}
