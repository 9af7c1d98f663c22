//! The file `snowflake.server`: the machine and the directory that used the node
//! number last, and whether a conflict has stopped it.
//!
//! A copy of a data directory has the settings of its original, the node number
//! included, and two servers with one number repeat each other's IDs. So each start
//! compares the machine and the directory with those of the last start with this
//! number. If they differ, the directory may be a copy, or the volume may have been
//! moved. Only a person can tell, so nothing is refused: the server's log and the view
//! `snowflake_status` report it, until a superuser accepts it or the number is
//! changed.
//!
//! The file is in the data directory, which is the working directory of every
//! server process, and not in the write-ahead log: a standby has the same log and
//! another machine. A server that starts as a standby is expected to be a copy, and
//! writes the file anew. `pg_basebackup`, `pg_rewind` and a copied volume bring the
//! file of the original along, which is what reveals them.
//!
//! The machine is that of `/etc/machine-id`, which containers often lack. The
//! directory is its inode number and the time of its creation: a moved volume keeps
//! both, a copied directory has others.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::time::UNIX_EPOCH;

use snowflake_id::{Identity, SnowflakeId};

use crate::error::{log, warn};
use crate::node_number;

const FILE: &str = "snowflake.server";
const NEW_FILE: &str = "snowflake.server.new";

/// The first line, with the version of what follows.
const TITLE: &str = "snowflake server 1";

/// A data directory on a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    /// Empty if the machine has no ID.
    machine: String,
    directory: String,
    host: String,
    path: String,
}

/// What the file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Contents {
    node: u32,
    place: Place,
    /// The ID that showed that another server has this number, if IDs were stopped.
    conflict: Option<SnowflakeId>,
}

/// What was found at the start.
#[derive(Default)]
pub struct Found {
    /// Whether the directory may be a copy.
    pub is_copy: bool,
    /// Whether a conflict has stopped the server, by which ID.
    pub conflict: Option<SnowflakeId>,
}

/// The place that this server may be a copy of, if [`at_start`] has found that it may: the file
/// then stays as it is.
pub fn copied_from() -> Option<String> {
    let contents = read().ok().flatten()?;
    Some(contents.place.to_string())
}

/// Compares the file with this server, and writes it if it is new. Called by the process
/// that makes shared memory, also after a crash.
pub fn at_start(identity: &Identity) -> Found {
    let node = identity.node();
    let place = Place::here();
    let known = match read() {
        Ok(known) => known.filter(|known| known.node == node),
        Err(error) => {
            log_failure(&format!("could not read file \"{FILE}\": {error}"));
            return Found::default();
        }
    };
    let conflict = known.as_ref().and_then(|known| known.conflict);
    let is_standby = fs::exists("standby.signal").unwrap_or(false);
    let other = known
        .as_ref()
        .map(|known| &known.place)
        .filter(|other| !is_standby && !place.may_be(other));
    match other {
        Some(other) => warn_of_copy(node, other, &place),
        None => {
            let contents = Contents {
                node,
                place,
                conflict,
            };
            if known.as_ref() != Some(&contents) {
                write_or_log(&contents);
            }
        }
    }
    Found {
        is_copy: other.is_some(),
        conflict,
    }
}

/// Keeps that a conflict has stopped this server. The caller has the lock.
pub fn keep_conflict(identity: &Identity, id: SnowflakeId) {
    let known = read()
        .ok()
        .flatten()
        .filter(|known| known.node == identity.node());
    write_or_log(&Contents {
        node: identity.node(),
        place: known.map_or_else(Place::here, |known| known.place),
        conflict: Some(id),
    });
}

/// Keeps that this server is the one with its number. The caller has the lock.
///
/// # Errors
/// If the file cannot be written.
pub fn accept(identity: &Identity) -> io::Result<()> {
    write(&Contents {
        node: identity.node(),
        place: Place::here(),
        conflict: None,
    })
}

/// The file's name, for messages.
pub fn name() -> String {
    FILE.into()
}

impl Place {
    fn here() -> Self {
        let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
        let directory = fs::metadata(".").map_or_else(
            |_| String::new(),
            |data| {
                let created = data
                    .created()
                    .ok()
                    .and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let created = created.map_or(0, |at| at.as_nanos());
                format!("{} {created}", data.ino())
            },
        );
        let path =
            fs::canonicalize(".").map_or_else(|_| String::new(), |path| path.display().to_string());
        Place {
            machine: one_line(&machine),
            directory,
            host: one_line(&node_number::host_name()),
            path: one_line(&path),
        }
    }

    /// Whether nothing says that they differ.
    fn may_be(&self, other: &Place) -> bool {
        let agree = |a: &str, b: &str| a.is_empty() || b.is_empty() || a == b;
        agree(&self.machine, &other.machine) && agree(&self.directory, &other.directory)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on host {}", self.path, self.host)
    }
}

/// A path may contain any character.
fn one_line(text: &str) -> String {
    text.trim()
        .replace(|character: char| character.is_control(), "?")
}

/// What the file contains; `None` if it does not exist or contains something else.
fn read() -> io::Result<Option<Contents>> {
    match fs::read(FILE) {
        Ok(bytes) => Ok(parse(&String::from_utf8_lossy(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn parse(text: &str) -> Option<Contents> {
    let mut lines = text.lines();
    if lines.next() != Some(TITLE) {
        return None;
    }
    let mut contents = Contents::default();
    for line in lines {
        let (name, value) = line.split_once(' ')?;
        match name {
            "node" => contents.node = value.parse().ok()?,
            "machine" => contents.place.machine = value.into(),
            "directory" => contents.place.directory = value.into(),
            "host" => contents.place.host = value.into(),
            "path" => contents.place.path = value.into(),
            "conflict" => contents.conflict = Some(SnowflakeId::new(value.parse().ok()?)?),
            _ => return None,
        }
    }
    Some(contents)
}

impl std::fmt::Display for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place {
            machine,
            directory,
            host,
            path,
        } = &self.place;
        writeln!(
            f,
            "{TITLE}\nnode {}\nmachine {machine}\ndirectory {directory}",
            self.node
        )?;
        writeln!(f, "host {host}\npath {path}")?;
        match self.conflict {
            Some(id) => writeln!(f, "conflict {id}"),
            None => Ok(()),
        }
    }
}

fn warn_of_copy(node: u32, other: &Place, here: &Place) {
    warn(
        format!(
            "snowflake: this data directory may be a copy of one with the same node number, {node}"
        ),
        format!("The number was last used in {other}. This server is in {here}."),
        "If the other server still runs, give this one a node number of its own and restart it. If the directory was \
         moved, or the other server is gone, run SELECT snowflake_accept_node_id() as a superuser.",
    );
}

fn log_failure(problem: &str) {
    log(
        format!("snowflake: {problem}"),
        "A copy of this data directory will not be noticed, and a stop because of a node conflict ends with a restart."
            .into(),
    );
}

fn write_or_log(contents: &Contents) {
    if let Err(error) = write(contents) {
        log_failure(&format!("could not write file \"{FILE}\": {error}"));
    }
}

/// Replaces the file as a whole, also if the machine fails meanwhile.
fn write(contents: &Contents) -> io::Result<()> {
    let mut file = fs::File::create(NEW_FILE)?;
    // A server may let its group read all files, for backups.
    if let Ok(other) = fs::metadata("PG_VERSION") {
        file.set_permissions(other.permissions())?;
    }
    file.write_all(contents.to_string().as_bytes())?;
    file.sync_all()?;
    fs::rename(NEW_FILE, FILE)?;
    fs::File::open(".")?.sync_all()
}
