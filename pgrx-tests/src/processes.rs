//! A server's processes, from `/proc`.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long the kernel may take to end processes that got SIGKILL.
const DEATH: Duration = Duration::from_secs(20);

/// Whether the process is there and not a zombie. A container's first process
/// may never reap orphans; a zombie holds no memory, lock or socket.
pub fn is_alive(pid: i32) -> bool {
    status_field(pid, "State:")
        .is_some_and(|state| !state.starts_with('Z') && !state.starts_with('X'))
}

/// Whether the process is a server that works in this data directory: the
/// check before anything that was found by its number is ended.
pub fn works_in(pid: i32, data_directory: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|directory| directory == data_directory)
}

/// All processes of the server that works in this data directory, also where
/// its postmaster has gone, and of the commands that it has started.
pub fn in_directory(data_directory: &Path) -> Vec<i32> {
    all()
        .filter(|&pid| works_in(pid, data_directory) && is_alive(pid))
        .collect()
}

/// A process for a person to read: its number, its state, what it waits for
/// in the kernel, and what it calls itself. A server's processes say there
/// what they are doing.
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

/// The processes whose parent is `pid`, and theirs.
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

/// Ends a postmaster and all its children with SIGKILL, as a power cut ends
/// processes. The postmaster is stopped first, so that it neither starts
/// others nor begins its own crash recovery meanwhile. Returns how many
/// processes were ended.
pub fn kill9_tree(postmaster: i32) -> Result<usize> {
    send(postmaster, Signal::SIGSTOP)?;
    let children = descendants(postmaster);
    for &child in &children {
        // One that is gone already is what is wanted.
        let _ = send(child, Signal::SIGKILL);
    }
    send(postmaster, Signal::SIGKILL)?;
    let begun = Instant::now();
    for &pid in children.iter().chain([&postmaster]) {
        while is_alive(pid) {
            if begun.elapsed() > DEATH {
                bail!("process {pid} is still there {DEATH:?} after SIGKILL");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
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
