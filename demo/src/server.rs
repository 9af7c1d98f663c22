//! The demo's server: its directory, its configuration, its removal.

use std::fs::{self, DirBuilder};
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rand::RngExt;
use rand::distr::Alphanumeric;
use snowflake_tests::os_user::OsUser;
use snowflake_tests::server::tail;
use snowflake_tests::{Installation, Server, Stop};

/// The longest path of a Unix socket that the kernel accepts.
const LONGEST_SOCKET_PATH: usize = 107;

/// The server in the demo's directory, running or not.
fn server(installation: Installation, directory: &Path, port: u16) -> Result<Server> {
    Ok(Server::new(
        installation,
        OsUser::for_servers()?,
        directory.join("data"),
        directory.join("s"),
        directory.join("log"),
        port,
    ))
}

/// Ends and removes the server of an earlier run. Returns whether there was one.
pub fn remove(installation: Installation, directory: &Path) -> Result<bool> {
    if !directory.exists() {
        return Ok(false);
    }
    let mut old = server(installation, directory, 0)?;
    if old.is_running() {
        old.stop(Stop::Fast)?;
    }
    fs::remove_dir_all(directory).with_context(|| format!("removing {}", directory.display()))?;
    Ok(true)
}

/// Starts a new server, shows it, and leaves it running. If showing it fails, the
/// server is stopped.
pub fn run(
    installation: Installation,
    directory: &Path,
    show: fn(&mut Server, &str) -> Result<()>,
) -> Result<()> {
    let os_user = OsUser::for_servers()?;
    // The socket asks for no password, so no other user may reach it.
    private_directory(directory, &os_user)?;
    // The port is free now. If another program takes it first, the server's
    // start fails and reports that.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut server = server(installation, directory, port)?;
    let shown = set_up(&mut server).and_then(|password| show(&mut server, &password));
    if shown.is_err() {
        if let Ok(log) = server.log() {
            eprintln!("The end of the server's log:\n{}", tail(&log, 20));
        }
        if server.is_running() {
            server.stop(Stop::Fast)?;
        }
    }
    shown
}

/// Runs `initdb`, writes the configuration and starts the server. Returns the
/// superuser's password on TCP.
fn set_up(server: &mut Server) -> Result<String> {
    private_directory(server.sockets(), server.os_user())?;
    let socket = server.sockets().join(format!(".s.PGSQL.{}", server.port()));
    ensure!(
        socket.as_os_str().len() <= LONGEST_SOCKET_PATH,
        "{} is too long for a Unix socket: choose a shorter SNOWFLAKE_CACHE",
        socket.display()
    );
    server.initdb(&[])?;
    server.set_conf("listen_addresses", "127.0.0.1")?;
    server.set_conf("shared_preload_libraries", "snowflake")?;
    server.set_conf("snowflake.node_id", 1)?;
    server.set_conf("max_connections", 40)?;
    // Every user of this machine can connect over TCP.
    fs::write(
        server.data().join("pg_hba.conf"),
        "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n",
    )?;
    server.start()?;
    let password: String = rand::rng()
        .sample_iter(Alphanumeric)
        .take(16)
        .map(char::from)
        .collect();
    server
        .connect()?
        .batch_execute(&format!("ALTER ROLE postgres PASSWORD '{password}'"))?;
    Ok(password)
}

/// Creates a directory that only the server's user can enter.
fn private_directory(path: &Path, os_user: &OsUser) -> Result<()> {
    DirBuilder::new()
        .mode(0o700)
        .create(path)
        .with_context(|| format!("creating {}", path.display()))?;
    os_user.own(path)
}
