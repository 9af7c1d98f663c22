//! A disk that loses what was not flushed: `kill -9` alone leaves all that was written in
//! the kernel's cache.
//!
//! A library that is preloaded into the server keeps journals of what was written and not
//! flushed (`forgetful_disk/disk.c`, which the machine's C compiler makes). After the server was
//! killed, [`ForgetfulDisk::lose`] decides over each write as a disk might: it is there, it is
//! lost, or some of its sectors are there (a torn page), each independently of the others, or
//! all that was not flushed is lost. What was flushed stays.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::ops::AddAssign;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::ids::grouped;
use crate::server::Server;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/forgetful_disk/disk.c");

/// What a disk writes as a whole, bytes. PostgreSQL relies on it for `pg_control`.
const SECTOR: usize = 512;

/// Of a server's data directory.
#[derive(Debug)]
pub struct ForgetfulDisk {
    journals: PathBuf,
}

/// What a disk has lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lost {
    /// Writes that were not flushed.
    pub writes: usize,
    /// How many of them are lost.
    pub lost: usize,
    /// Of how many a part is there.
    pub torn: usize,
}

/// A write that was not flushed (`struct entry` of disk.c).
struct Write {
    offset: u64,
    size_before: u64,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl ForgetfulDisk {
    /// Makes the disk of a server forgetful from its next start on. The server has to flush,
    /// and to log whole pages: `fsync = on`, `full_page_writes = on`.
    ///
    /// # Errors
    /// If the library cannot be compiled.
    pub fn of(server: &mut Server) -> Result<Self> {
        let directory = server.parent().join("disk");
        fs::create_dir(&directory)?;
        let (library, journals) = (directory.join("disk.so"), directory.join("journals"));
        fs::create_dir(&journals)?;
        let compiled = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"])
            .arg(&library)
            .args([SOURCE, "-ldl"])
            .output()
            .context("running cc")?;
        ensure!(
            compiled.status.success(),
            "cc: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        for path in [&directory, &journals] {
            server.os_user().own(path)?;
        }
        let data = server.data().to_owned();
        for (name, path) in [
            ("LD_PRELOAD", &library),
            ("FORGETFUL_DISK_DATA", &data),
            ("FORGETFUL_DISK_JOURNALS", &journals),
        ] {
            server.set_environment(name, &path.to_string_lossy());
        }
        Ok(Self { journals })
    }

    /// Loses what a server that was killed had not flushed.
    ///
    /// # Errors
    /// If a journal or a file cannot be read or written.
    pub fn lose(&self, server: &Server, random: &mut StdRng) -> Result<Lost> {
        let mut files = BTreeMap::new();
        files_of(server.data(), &mut files)?;
        let loses_all = random.random_bool(0.3);
        let mut sum = Lost::default();
        for journal in fs::read_dir(&self.journals)? {
            let journal = journal?.path();
            let name = journal.file_name().and_then(|name| name.to_str());
            let inode: u64 = name.context("a journal's name")?.parse()?;
            if let Some(file) = files.get(&inode) {
                let writes = read(&journal)?;
                let file = OpenOptions::new().write(true).open(file)?;
                lose(&file, &writes, loses_all, random, &mut sum)?;
            }
            fs::remove_file(journal)?;
        }
        Ok(sum)
    }
}

impl AddAssign for Lost {
    fn add_assign(&mut self, other: Self) {
        self.writes += other.writes;
        self.lost += other.lost;
        self.torn += other.torn;
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "of {} writes that were not flushed {} are lost and {} torn",
            grouped(self.writes),
            grouped(self.lost),
            grouped(self.torn)
        )
    }
}

/// All files, by the number of their inode.
fn files_of(directory: &Path, files: &mut BTreeMap<u64, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            files_of(&entry.path(), files)?;
        } else if kind.is_file() {
            files.insert(entry.metadata()?.ino(), entry.path());
        }
    }
    Ok(())
}

fn read(journal: &Path) -> Result<Vec<Write>> {
    let bytes = fs::read(journal)?;
    let mut rest = bytes.as_slice();
    let mut take = |length: usize| {
        let (taken, left) = rest.split_at_checked(length)?;
        rest = left;
        Some(taken)
    };
    let mut writes = Vec::new();
    // The last record may be a part of one: of a write that was not begun.
    while let Some(entry) = take(32) {
        let number = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&entry[at..at + 8]);
            u64::from_ne_bytes(bytes)
        };
        let (old, new) = (number(16) as usize, number(24) as usize);
        let Some((old, new)) = take(old).zip(take(new)) else {
            break;
        };
        writes.push(Write {
            offset: number(0),
            size_before: number(8),
            old: old.to_vec(),
            new: new.to_vec(),
        });
    }
    Ok(writes)
}

/// Makes the file what was flushed, and then adds what of the writes is there.
fn lose(
    file: &File,
    writes: &[Write],
    loses_all: bool,
    random: &mut StdRng,
    sum: &mut Lost,
) -> Result<()> {
    for write in writes.iter().rev() {
        file.write_all_at(&write.old, write.offset)?;
        file.set_len(write.size_before)?;
    }
    sum.writes += writes.len();
    for write in writes {
        let is_torn = !loses_all && random.random_bool(0.1);
        if loses_all || (!is_torn && random.random_bool(0.5)) {
            sum.lost += 1;
            continue;
        }
        sum.torn += usize::from(is_torn);
        let mut offset = write.offset;
        for sector in write.new.chunks(SECTOR) {
            if !is_torn || random.random_bool(0.5) {
                file.write_all_at(sector, offset)?;
            }
            offset += sector.len() as u64;
        }
        // A file got longer by it, or was made longer without any contents.
        let end = offset.max(write.size_before);
        if file.metadata()?.len() < end {
            file.set_len(end)?;
        }
    }
    Ok(())
}
