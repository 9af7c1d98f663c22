//! Copies of a server: streaming standbys and their promotion, base backups
//! started as servers of their own, `pg_rewind`, point-in-time recovery from
//! an archive, dumps and `pg_upgrade`. All by PostgreSQL's own programs, the
//! way an administrator does it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::account::Account;
use crate::cluster::{Cluster, ClusterBuilder};
use crate::scratch::Scratch;
use crate::server::Server;

/// How long a standby may take to catch up, a recovery to end, a file to be
/// archived.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often such things are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// What a server needs to be copied while it runs and to be wound back later.
const COPIED: &[(&str, &str)] = &[
    // A base backup and `pg_rewind` find half-written pages; both refuse a
    // server that doesn't log whole pages.
    ("full_page_writes", "on"),
    ("wal_log_hints", "on"),
    // Back to where two histories part, for `pg_rewind` and late standbys.
    ("wal_keep_size", "1GB"),
];

impl ClusterBuilder {
    /// A server that can be copied while it runs, and wound back.
    pub fn can_be_copied(mut self) -> Self {
        for (name, value) in COPIED {
            self = self.conf(name, value);
        }
        self
    }

    /// One whose write-ahead log is archived.
    pub fn archived_in(self, archive: &Archive) -> Self {
        let directory = archive.path().display();
        self.conf("archive_mode", "on").conf(
            "archive_command",
            format!("test ! -f {directory}/%f && cp %p {directory}/%f"),
        )
    }

    /// Copies a running server by `pg_basebackup`, its settings too, and starts
    /// nothing. Started as it is, the copy is a server of its own.
    pub fn prepare_copy_of(self, source: &Server) -> Result<Cluster> {
        self.can_be_copied().prepare_with(|_, _, data| {
            run(source
                .client_command("pg_basebackup", "postgres")
                .args(["--checkpoint=fast", "--wal-method=stream", "--no-sync"])
                .arg("--pgdata")
                .arg(data))?;
            Ok(())
        })
    }

    /// The same as a standby that streams from the server it is a copy of.
    pub fn prepare_standby_of(self, source: &Server) -> Result<Cluster> {
        let standby = self.prepare_copy_of(source)?;
        standby.follow(source)?;
        Ok(standby)
    }
}

impl Server {
    /// Makes this server, which is not running, a standby of another one.
    pub fn follow(&self, source: &Server) -> Result<()> {
        self.set_conf("primary_conninfo", conninfo(source))?;
        self.signal_file("standby.signal")
    }

    /// Waits until this standby has replayed all that the other server has
    /// written by now.
    pub fn catch_up_with(&self, source: &Server) -> Result<()> {
        let written: String = source
            .connect()?
            .query_one("SELECT pg_current_wal_insert_lsn()::text", &[])?
            .get(0);
        let mut client = self.connect()?;
        let query = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
        until(&format!("the standby to replay {written}"), || {
            let there: Option<bool> = client.query_one(&query, &[])?.get(0);
            Ok(there == Some(true))
        })
    }

    /// Promotes this standby; returns how long that took.
    pub fn promote(&self) -> Result<Duration> {
        let mut client = self.connect()?;
        let begun = Instant::now();
        let promoted: bool = client.query_one("SELECT pg_promote(true, 60)", &[])?.get(0);
        ensure!(promoted, "the standby was not promoted within a minute");
        Ok(begun.elapsed())
    }

    /// Waits for the end of a recovery, where a server takes connections
    /// before that.
    pub fn wait_for_end_of_recovery(&self) -> Result<()> {
        let mut client = self.connect()?;
        until("recovery to end", || {
            Ok(client
                .query_one("SELECT NOT pg_is_in_recovery()", &[])?
                .get(0))
        })
    }

    /// Winds this server, which was stopped, back to where its history and that
    /// of a running one parted, by `pg_rewind`. Its settings are the other's then.
    pub fn rewind_to(&self, source: &Server) -> Result<()> {
        // What was promoted a moment ago writes its new timeline down with its
        // next checkpoint, and that is where pg_rewind looks.
        source.connect()?.batch_execute("CHECKPOINT")?;
        run(self
            .client_command("pg_rewind", "postgres")
            .arg("--target-pgdata")
            .arg(self.data())
            .arg("--source-server")
            .arg(conninfo(source))
            .arg("--no-sync"))?;
        Ok(())
    }

    /// Makes this server, a base backup that is not running, recover from an
    /// archive up to a restore point, and go on from there by itself.
    pub fn recover_to(&self, archive: &Archive, restore_point: &str) -> Result<()> {
        let directory = archive.path().display();
        self.set_conf("archive_mode", "off")?;
        self.set_conf("restore_command", format!("cp {directory}/%f %p"))?;
        self.set_conf("recovery_target_name", restore_point)?;
        self.set_conf("recovery_target_action", "promote")?;
        self.signal_file("recovery.signal")
    }

    /// Takes over all databases of a server of this or an earlier version by
    /// `pg_upgrade`. Neither is running, and this one is as `initdb` made it.
    pub fn upgrade_from(&self, earlier: &Server) -> Result<()> {
        // initdb has switched checksums on since PostgreSQL 18; both must agree.
        if earlier.installation().major < 18 && self.installation().major >= 18 {
            run(self
                .account()
                .command(self.installation().bin.join("pg_checksums"), self.sockets())
                .args(["--disable", "--no-sync", "--pgdata"])
                .arg(self.data()))?;
        }
        run(self
            .account()
            .command(self.installation().bin.join("pg_upgrade"), self.sockets())
            .arg("--old-bindir")
            .arg(&earlier.installation().bin)
            .arg("--new-bindir")
            .arg(&self.installation().bin)
            .arg("--old-datadir")
            .arg(earlier.data())
            .arg("--new-datadir")
            .arg(self.data())
            .arg("--socketdir")
            .arg(self.sockets())
            .arg("--username=postgres"))?;
        Ok(())
    }

    /// Dumps a database with further options of `pg_dump`.
    pub fn dump(&self, database: &str, options: &[&str]) -> Result<Dump> {
        let scratch = Scratch::new(self.account())?;
        let file = scratch.path().join("dump");
        run(self
            .client_command("pg_dump", database)
            .args(options)
            .arg("--file")
            .arg(&file))?;
        Ok(Dump {
            file,
            _scratch: scratch,
        })
    }

    /// Runs a plain dump by `psql` or one of another format by `pg_restore`
    /// (`program`), as some role, with further options. The answer is what the
    /// program said, and whether it was content.
    pub fn restore(
        &self,
        dump: &Dump,
        program: &str,
        user: &str,
        database: &str,
        options: &[&str],
    ) -> Result<Output> {
        let mut command = self.client_command(program, database);
        command.env("PGUSER", user).args(options);
        match program {
            "psql" => command.args(["--no-psqlrc", "--quiet", "--file"]),
            _ => command.args(["--dbname", database]),
        };
        command
            .arg(&dump.file)
            .output()
            .with_context(|| format!("running {program}"))
    }

    fn signal_file(&self, name: &str) -> Result<()> {
        let path = self.data().join(name);
        fs::write(&path, "").with_context(|| format!("writing {}", path.display()))?;
        self.account().own(&path)
    }
}

/// A directory for archived files of the write-ahead log.
#[derive(Debug)]
pub struct Archive {
    scratch: Scratch,
}

impl Archive {
    /// An empty one.
    pub fn new() -> Result<Self> {
        Ok(Self {
            scratch: Scratch::new(&Account::for_servers()?)?,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Waits until all that the server has written by now is archived.
    pub fn complete(&self, server: &Server) -> Result<()> {
        let mut client = server.connect()?;
        let file: String = client
            .query_one("SELECT pg_walfile_name(pg_switch_wal())", &[])?
            .get(0);
        // The file itself is there before it is complete.
        let query = format!("SELECT last_archived_wal >= '{file}' FROM pg_stat_archiver");
        until(&format!("{file} to be archived"), || {
            let there: Option<bool> = client.query_one(&query, &[])?.get(0);
            Ok(there == Some(true))
        })
    }
}

/// A file made by `pg_dump`; removed when it goes out of scope.
#[derive(Debug)]
pub struct Dump {
    file: PathBuf,
    _scratch: Scratch,
}

/// How another server or program reaches this one.
fn conninfo(server: &Server) -> String {
    format!(
        "host={} port={} user=postgres dbname=postgres",
        server.sockets().display(),
        server.port()
    )
}

/// Runs a program that must succeed.
fn run(command: &mut Command) -> Result<Output> {
    let output = command
        .output()
        .with_context(|| format!("running {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed:\n{}{}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output)
}

fn until(what: &str, mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        ensure!(begun.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        std::thread::sleep(LOOK);
    }
    Ok(())
}
