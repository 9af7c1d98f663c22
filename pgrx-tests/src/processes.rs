//! A server's processes, as `/proc` shows them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::wait;

/// How long the kernel may take to end processes after SIGKILL.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Whether the process exists and is no zombie. The first process of a container
/// may never reap orphans. A zombie holds no memory, lock or socket.
pub fn is_alive(pid: i32) -> bool {
    status_field(pid, "State:")
        .is_some_and(|state| !state.starts_with('Z') && !state.starts_with('X'))
}

/// Whether the process is a server that works in this data directory. This is
/// checked before a process is ended that was found by its number.
pub fn works_in(pid: i32, data_directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == data_directory)
}

/// All processes of the server that works in this data directory, and of the
/// commands that it has started, whether or not its postmaster still exists.
pub fn in_directory(data_directory: &Path) -> Vec<i32> {
    all()
        .filter(|&pid| works_in(pid, data_directory) && is_alive(pid))
        .collect()
}

/// A process, for output: its number, its state, what it waits for in the kernel,
/// and its title. The title of a server's process shows what it does.
pub fn description(pid: i32) -> String {
    let of = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace('\0', " ");
    format!(
        "{pid} {} [{}] {}",
        status_field(pid, "State:").unwrap_or_default(),
        text(of("wchan")).trim(),
        text(of("cmdline")).trim()
    )
}

fn all() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The children of `pid`, and their children, and so on.
pub fn descendants(pid: i32) -> Vec<i32> {
    let pairs: Vec<(i32, i32)> = all()
        .filter_map(|child| Some((child, status_field(child, "PPid:")?.parse().ok()?)))
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            pairs
                .iter()
                .filter(|(_, its_parent)| *its_parent == parent)
                .map(|(child, _)| child),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// Ends a postmaster and all its children with SIGKILL, as a power failure ends
/// processes. The postmaster is suspended first, so that it neither starts other
/// processes nor begins its own crash recovery. Returns how many processes were
/// ended.
pub fn kill9_tree(postmaster: i32) -> Result<usize> {
    send(postmaster, Signal::SIGSTOP)?;
    let children = descendants(postmaster);
    for &child in &children {
        // It may have ended already.
        let _ = send(child, Signal::SIGKILL);
    }
    send(postmaster, Signal::SIGKILL)?;
    wait::until("the end of the processes after SIGKILL", TIMEOUT, || {
        let mut all = children.iter().chain([&postmaster]);
        Ok(!all.any(|&pid| is_alive(pid)))
    })?;
    Ok(children.len() + 1)
}

/// Sends a signal.
pub fn send(pid: i32, signal: Signal) -> Result<()> {
    kill(Pid::from_raw(pid), signal)?;
    Ok(())
}

fn status_field(pid: i32, field: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    Some(line[field.len()..].trim().to_owned())
}
