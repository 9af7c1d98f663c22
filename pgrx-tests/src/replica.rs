//! Copies of a server: streaming standbys and their promotion, base backups that
//! are started as servers of their own, `pg_rewind`, point-in-time recovery from
//! an archive, dumps and `pg_upgrade`. All are made by PostgreSQL's own programs,
//! as an administrator makes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cluster::{Cluster, ClusterBuilder};
use crate::os_user::OsUser;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::wait;

/// How long a standby may take to catch up, a recovery to end, and a file to be
/// archived.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The settings of a server that is copied while it runs, and rewound later.
const COPIED: &[(&str, &str)] = &[
    // A base backup and `pg_rewind` may find half-written pages. Both fail if the
    // server does not log whole pages.
    ("full_page_writes", "on"),
    ("wal_log_hints", "on"),
    // Back to where two timelines diverge, for `pg_rewind` and late standbys.
    ("wal_keep_size", "1GB"),
];

impl ClusterBuilder {
    /// A server that can be copied while it runs, and rewound.
    pub fn can_be_copied(mut self) -> Self {
        for (name, value) in COPIED {
            self = self.conf(name, value);
        }
        self
    }

    /// A server whose write-ahead log is archived.
    pub fn archived_in(self, archive: &Archive) -> Self {
        let directory = archive.path().display();
        self.conf("archive_mode", "on").conf(
            "archive_command",
            format!("test ! -f {directory}/%f && cp %p {directory}/%f"),
        )
    }

    /// Copies a running server and its settings by `pg_basebackup`, and starts
    /// nothing. If the copy is started, it is a server of its own.
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

    /// The same as a standby that streams from the copied server.
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

    /// Waits until this standby has replayed what the other server has written
    /// so far.
    pub fn catch_up_with(&self, source: &Server) -> Result<()> {
        let mut client = source.connect()?;
        // The end of what was written may be flushed, and sent, only with the next
        // record, which an idle server writes every 15 s.
        client.batch_execute(
            "SET synchronous_commit = local; SELECT pg_logical_emit_message(true, '', '')",
        )?;
        let written: String = client
            .query_one("SELECT pg_current_wal_flush_lsn()::text", &[])?
            .get(0);
        let mut client = self.connect()?;
        let query = format!("SELECT pg_last_wal_replay_lsn() >= '{written}'");
        wait::until(format!("the standby to replay {written}"), TIMEOUT, || {
            let replayed: Option<bool> = client.query_one(&query, &[])?.get(0);
            Ok(replayed == Some(true))
        })
    }

    /// Promotes this standby. Returns how long that took.
    pub fn promote(&self) -> Result<Duration> {
        let mut client = self.connect()?;
        let begun = Instant::now();
        let promoted: bool = client.query_one("SELECT pg_promote(true, 60)", &[])?.get(0);
        ensure!(promoted, "the standby was not promoted within a minute");
        Ok(begun.elapsed())
    }

    /// Waits for the end of a recovery in which the server already accepts
    /// connections.
    pub fn wait_for_end_of_recovery(&self) -> Result<()> {
        let mut client = self.connect()?;
        wait::until("the recovery to end", TIMEOUT, || {
            Ok(client
                .query_one("SELECT NOT pg_is_in_recovery()", &[])?
                .get(0))
        })
    }

    /// Rewinds this server, which was stopped, by `pg_rewind` to where its timeline
    /// and a running server's diverged. It then has the other server's settings.
    pub fn rewind_to(&self, source: &Server) -> Result<()> {
        // A server that was promoted records its new timeline, which pg_rewind
        // reads, with its next checkpoint.
        source.run("CHECKPOINT")?;
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
    /// archive up to a restore point and then end recovery by itself.
    pub fn recover_to(&self, archive: &Archive, restore_point: &str) -> Result<()> {
        let directory = archive.path().display();
        self.set_conf("archive_mode", "off")?;
        self.set_conf("restore_command", format!("cp {directory}/%f %p"))?;
        self.set_conf("recovery_target_name", restore_point)?;
        self.set_conf("recovery_target_action", "promote")?;
        self.signal_file("recovery.signal")
    }

    /// Upgrades a server of this or an earlier version to this one by
    /// `pg_upgrade`. Neither is running, and this one is as `initdb` created it.
    pub fn upgrade_from(&self, earlier: &Server) -> Result<()> {
        // initdb enables checksums since PostgreSQL 18. Both servers must agree.
        if earlier.installation().major < 18 && self.installation().major >= 18 {
            run(self
                .os_user()
                .command(self.installation().bin.join("pg_checksums"), self.sockets())
                .args(["--disable", "--no-sync", "--pgdata"])
                .arg(self.data()))?;
        }
        run(self
            .os_user()
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
        self.dump_by("pg_dump", database, options)
    }

    /// Dumps all databases and roles by `pg_dumpall`, as a script.
    pub fn dump_all(&self, options: &[&str]) -> Result<Dump> {
        self.dump_by("pg_dumpall", "postgres", options)
    }

    fn dump_by(&self, program: &str, database: &str, options: &[&str]) -> Result<Dump> {
        let scratch = Scratch::new(self.os_user())?;
        let file = scratch.path().join("dump");
        run(self
            .client_command(program, database)
            .args(options)
            .arg("--file")
            .arg(&file))?;
        Ok(Dump {
            file,
            _scratch: scratch,
        })
    }

    /// Restores a plain dump by `psql`, or one of another format by `pg_restore`
    /// (`program`), as a role, with further options. Returns the program's output
    /// and exit status.
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
        self.os_user().own(&path)
    }
}

/// A directory for archived files of the write-ahead log.
#[derive(Debug)]
pub struct Archive {
    scratch: Scratch,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Result<Self> {
        Ok(Self {
            scratch: Scratch::new(&OsUser::for_servers()?)?,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// Waits until what the server has written so far is archived.
    pub fn complete(&self, server: &Server) -> Result<()> {
        let mut client = server.connect()?;
        let file: String = client
            .query_one("SELECT pg_walfile_name(pg_switch_wal())", &[])?
            .get(0);
        // The file exists before it is complete.
        let query = format!("SELECT last_archived_wal >= '{file}' FROM pg_stat_archiver");
        wait::until(format!("{file} to be archived"), TIMEOUT, || {
            let archived: Option<bool> = client.query_one(&query, &[])?.get(0);
            Ok(archived == Some(true))
        })
    }
}

/// A file of `pg_dump`, which is removed when it goes out of scope.
#[derive(Debug)]
pub struct Dump {
    file: PathBuf,
    _scratch: Scratch,
}

/// How another server or program connects to this one.
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
