//! The floor: the bound below which this server's IDs stay, in any database.
//!
//! Slots belong to the server, marks to its databases, and the first ID of a
//! database after a start can read only its own mark. What another database
//! issued before the start, ahead of the clock, it would not know, and the two
//! would repeat each other's IDs. So the highest of all marks is kept in a file
//! in the data directory too, made durable before any ID below it goes out, and
//! the first ID after a start raises every slot to it.
//!
//! Within one database the mark alone does: the file is not in the write-ahead
//! log. A standby has it as it was in the base backup, which never says too
//! much for long; it is for databases of one server, and a server that takes
//! another node number, whose IDs are different anyway, need not heed it.
//!
//! The file is one sector, overwritten in place as `global/pg_control` is: a
//! write of that size is not torn, and there is always room for it.
#![allow(unsafe_code)] // Postgres' globals

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use pgrx::pg_sys;
use snowflake_id::{Layout, SnowflakeId};

use crate::error::Error;
use crate::shared::Shared;

/// In the data directory, which is every server process's working directory.
const NAME: &str = "snowflake.floor";

const SECTOR: usize = 512;

/// Whose IDs the floor is for.
#[derive(Clone, Copy)]
pub struct Server {
    /// Its layout.
    pub layout: Layout,
    /// Its node number.
    pub node: u32,
}

/// The floor as it was when the server started: 0 where there was none.
///
/// # Errors
/// [`Error::FloorDamaged`], [`Error::FloorIo`].
pub fn at_start(shared: Shared, server: Server) -> Result<SnowflakeId, Error> {
    let _lock = shared.lock_floor();
    let floor = shared.floor();
    if let Some(known) = floor.at_start() {
        return Ok(known);
    }
    let bound = match read()? {
        Some(text) => parse(&text, server).ok_or(Error::FloorDamaged(NAME))?,
        None => SnowflakeId::ZERO,
    };
    floor.started_at(bound);
    Ok(bound)
}

/// Makes the floor at least `bound`, durably.
///
/// # Errors
/// [`Error::FloorIo`].
pub fn raise(shared: Shared, server: Server, bound: SnowflakeId) -> Result<(), Error> {
    let floor = shared.floor();
    if floor.written() >= bound {
        return Ok(());
    }
    let _lock = shared.lock_floor();
    // Another database's mover may have been there.
    if floor.written() >= bound {
        return Ok(());
    }
    write(&format(server, bound)).map_err(|error| Error::FloorIo { name: NAME, error })?;
    floor.set_written(bound);
    Ok(())
}

/// `layout`, `node` and `bound`, a line each, and blanks up to the sector's end.
fn format(server: Server, bound: SnowflakeId) -> String {
    let mut text = String::with_capacity(SECTOR);
    // Writing to a string does not fail.
    let _ = writeln!(text, "layout {}", server.layout);
    let _ = writeln!(text, "node {}", server.node);
    let _ = writeln!(text, "bound {}", bound.get());
    let blanks = SECTOR.saturating_sub(text.len() + 1);
    text.extend(std::iter::repeat_n(' ', blanks));
    text.push('\n');
    text
}

/// What the text says for this server: nothing (0) where it was another node
/// number's; `None` where it is no such text.
fn parse(text: &str, server: Server) -> Option<SnowflakeId> {
    let mut lines = text.lines();
    let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
    let layout: Layout = field("layout")?.parse().ok()?;
    let node: u32 = field("node")?.parse().ok()?;
    let bound = SnowflakeId::new(field("bound")?.parse().ok()?)?;
    let other = layout == server.layout && node != server.node;
    Some(if other { SnowflakeId::ZERO } else { bound })
}

fn read() -> Result<Option<String>, Error> {
    #[cfg(feature = "unprotected")]
    if crate::unprotected::is("mark") {
        return Ok(None);
    }
    match std::fs::read_to_string(NAME) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(Error::FloorDamaged(NAME)),
        Err(error) => Err(Error::FloorIo { name: NAME, error }),
    }
}

fn write(text: &str) -> io::Result<()> {
    // SAFETY: set when the server started.
    let (directory_mode, durable) = unsafe { (pg_sys::data_directory_mode, pg_sys::enableFsync) };
    let mut options = OpenOptions::new();
    // As the directory, without the right to execute.
    options.write(true).mode(directory_mode as u32 & 0o666);
    let (file, new) = match options.open(NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (options.create(true).open(NAME)?, true)
        }
        opened => (opened?, false),
    };
    file.write_all_at(text.as_bytes(), 0)?;
    if durable {
        file.sync_all()?;
        if new {
            File::open(".")?.sync_all()?;
        }
    }
    Ok(())
}
