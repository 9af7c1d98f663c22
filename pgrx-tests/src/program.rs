//! Programs beside servers: what manages them, or reads from them.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;

use crate::os_user::OsUser;
use crate::processes;

/// A program that runs in a private directory, as the OS user of servers. It ends
/// with its value. If the test is killed, the directory's reaper ends it.
#[derive(Debug)]
pub struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts a program in a directory. Its output goes to `NAME.log` there.
    pub fn start<V: AsRef<OsStr>>(
        os_user: &OsUser,
        directory: &Path,
        program: &Path,
        arguments: &[String],
        environment: impl IntoIterator<Item = (&'static str, V)>,
    ) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let log = directory.join(format!("{name}.log"));
        let output = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        let child = os_user
            .command(program, directory)
            .args(arguments)
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Program { child, log })
    }

    /// What it has written.
    pub fn log(&self) -> String {
        std::fs::read(&self.log).map_or_else(
            |_| String::new(),
            |log| String::from_utf8_lossy(&log).into_owned(),
        )
    }

    /// Fails with the program's output if it has ended.
    pub fn require_running(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "the program has ended ({status}); its output:\n{}",
                self.log()
            );
        }
        Ok(())
    }

    /// Ends it with SIGKILL.
    pub fn kill9(&mut self) -> Result<()> {
        processes::send(self.child.id() as i32, Signal::SIGKILL)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// The path of a program that a variable names; `make test-servers` sets it.
pub fn from_variable(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os(name)
        .with_context(|| format!("{name} is not set; scripts/test-servers sets it"))?;
    let path = PathBuf::from(path);
    ensure!(path.exists(), "{name}: there is no {}", path.display());
    Ok(path)
}

/// Ports of the loopback interface that are free now.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    // All at once, so that they differ.
    let listeners: Vec<_> = (0..N)
        .map(|_| TcpListener::bind(("127.0.0.1", 0)))
        .collect::<std::io::Result<_>>()?;
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

/// The body of the answer to an HTTP request of this host.
pub fn http(method: &str, port: u16, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .context("an answer without a head")?;
    let status = head.lines().next().unwrap_or_default();
    ensure!(status.contains(" 20"), "{method} {path}: {status}: {body}");
    Ok(body.to_owned())
}
