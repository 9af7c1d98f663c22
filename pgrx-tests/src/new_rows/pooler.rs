//! `PgBouncer` before a server, in transaction mode.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use postgres::{Config, NoTls};

use crate::program::Program;
use crate::scratch::Scratch;
use crate::server::Server;
use crate::wait;

/// The port in the name of its socket.
const PORT: u16 = 6432;

/// How long it may take to start.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The program, if it is installed, or unpacked where `SNOWFLAKE_PGBOUNCER` or
/// `make test-clients` have it.
pub fn pgbouncer() -> Option<PathBuf> {
    let unpacked = std::env::var_os("SNOWFLAKE_CACHE")
        .map(|cache| PathBuf::from(cache).join("programs/pgbouncer/usr/sbin/pgbouncer"));
    let named = std::env::var_os("SNOWFLAKE_PGBOUNCER").map(PathBuf::from);
    let installed = Some(PathBuf::from("/usr/sbin/pgbouncer"));
    let mut places = [named, installed, unpacked].into_iter().flatten();
    places.find(|program| program.exists())
}

/// A running `PgBouncer`, with two connections to the server for each user.
#[derive(Debug)]
pub(super) struct Pooler {
    // The order matters: the program ends before its directory.
    program: Program,
    sockets: PathBuf,
    _scratch: Scratch,
}

impl Pooler {
    pub(super) fn start(server: &Server, program: &Path) -> Result<Self> {
        let scratch = Scratch::new(server.os_user())?;
        let directory = scratch.subdirectory("p", server.os_user())?;
        let file = directory.join("pgbouncer.ini");
        // The connections to the server take turns. After a restart of the
        // server, the pooler must not wait for its 15 seconds before the next one.
        let text = format!(
            "[databases]\n\
             postgres = host={} port={} dbname=postgres user=postgres\n\
             [pgbouncer]\n\
             pool_mode = transaction\n\
             default_pool_size = 2\n\
             min_pool_size = 2\n\
             server_round_robin = 1\n\
             server_login_retry = 0.1\n\
             auth_type = any\n\
             listen_addr =\n\
             listen_port = {PORT}\n\
             unix_socket_dir = {}\n",
            server.sockets().display(),
            server.port(),
            directory.display()
        );
        fs::write(&file, text).with_context(|| format!("writing {}", file.display()))?;
        server.os_user().own(&file)?;
        let mut pooler = Self {
            program: Program::start(
                server.os_user(),
                &directory,
                program,
                &[file.display().to_string()],
                std::iter::empty::<(&'static str, &str)>(),
            )?,
            sockets: directory,
            _scratch: scratch,
        };
        wait::until("PgBouncer to answer", TIMEOUT, || {
            pooler.program.require_running()?;
            let answer = pooler.config().connect(NoTls);
            Ok(answer.is_ok_and(|mut client| client.batch_execute("SELECT 1").is_ok()))
        })?;
        Ok(pooler)
    }

    /// How a client reaches the server through it.
    pub(super) fn config(&self) -> Config {
        let mut config = Config::new();
        config
            .host_path(&self.sockets)
            .port(PORT)
            .user("postgres")
            .dbname("postgres")
            .connect_timeout(TIMEOUT);
        config
    }
}
