//! The machine of the run, as `/proc` describes it.

use std::fs;
use std::process::Command;

/// Pairs of a name and a value.
pub type Facts = Vec<(&'static str, String)>;

/// The machine, the compiler and the commit.
pub fn describe() -> Facts {
    vec![
        ("processor", processor()),
        ("memory", memory()),
        ("system", system()),
        (
            "load when the run began",
            read("/proc/loadavg").trim().to_owned(),
        ),
        ("rustc", output_of("rustc", &["--version"])),
        ("commit", commit()),
    ]
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `name<separator>value`.
fn value<'a>(text: &'a str, name: &str, separator: char) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (found, value) = line.split_once(separator)?;
        (found.trim() == name).then(|| value.trim().trim_matches('"'))
    })
}

fn processor() -> String {
    let text = read("/proc/cpuinfo");
    let model = value(&text, "model name", ':').unwrap_or("of unknown model");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let guest = value(&text, "flags", ':')
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let guest = if guest { ", a virtual machine" } else { "" };
    format!("{model}, {cores} cores{guest}")
}

/// The memory of the machine, in KiB; 0 if it is not known.
pub fn memory_kib() -> u64 {
    value(&read("/proc/meminfo"), "MemTotal", ':')
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn memory() -> String {
    format!("{:.1} GiB", memory_kib() as f64 / f64::from(1 << 20))
}

fn system() -> String {
    let release = read("/etc/os-release");
    let name = value(&release, "PRETTY_NAME", '=').unwrap_or("Linux");
    format!(
        "{name}, kernel {}",
        read("/proc/sys/kernel/osrelease").trim()
    )
}

/// What a program prints, or "unknown" if it fails.
fn output_of(program: &str, arguments: &[&str]) -> String {
    match Command::new(program).args(arguments).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        _ => "unknown".to_owned(),
    }
}

/// The commit, and whether the sources differ from it. The documents of the last
/// run are ignored.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let here = ["-C", env!("CARGO_MANIFEST_DIR")];
        output_of("git", &[&here, arguments].concat())
    };
    let changed = git(&[
        "status",
        "--porcelain",
        "--",
        ":/",
        ":(exclude,top)docs/benchmarks",
    ]);
    let changed = match changed.as_str() {
        "" | "unknown" => "",
        _ => ", with changes that are not committed",
    };
    format!("{}{changed}", git(&["rev-parse", "--short=12", "HEAD"]))
}
