//! Any function that makes IDs in SQL, under the same check: does it repeat one?
//!
//! A peer is a file of SQL (docs/peers.md), which is run on each server.
//!
//! The clock is libfaketime's, which every function of the server sees. IDs count from the
//! moment when a client has received them, whether or not their transaction was committed; after
//! a promotion, those that the standby has.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::clock::Offset;
use crate::cluster::{Cluster, ClusterBuilder};
use crate::ids::grouped;
use crate::migration::psql;

/// How long sessions draw at a time.
const WHILE: Duration = Duration::from_secs(1);

const SESSIONS: usize = 8;

/// How many IDs a statement draws: so many that the client receives some before it ends.
const AT_ONCE: usize = 1_000;

/// A function that makes IDs.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its name.
    pub name: String,
    id: String,
    conf: Vec<(String, String)>,
    sql: String,
    /// What psql runs before, with the variable `node`.
    file: Option<PathBuf>,
}

/// A way to have IDs made.
pub struct Trial {
    /// What happens.
    pub name: &'static str,
    run: fn(&Peer) -> Result<Vec<Vec<u128>>>,
}

/// All of them.
pub const TRIALS: [Trial; 6] = [
    Trial {
        name: "8 sessions at once",
        run: at_once,
    },
    Trial {
        name: "`kill -9` of the server",
        run: killed,
    },
    Trial {
        name: "clock set back",
        run: set_back,
    },
    Trial {
        name: "clock set back, restart",
        run: set_back_and_restarted,
    },
    Trial {
        name: "promotion, the clock behind",
        run: promoted,
    },
    Trial {
        name: "two servers",
        run: two_servers,
    },
];

/// What a trial counted.
#[derive(Debug, Clone, Copy)]
pub struct Count {
    /// IDs.
    pub ids: usize,
    /// How many of them had come before.
    pub duplicates: usize,
}

impl Peer {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or names no expression.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        let values = |key: &str| {
            let prefix = format!("-- {key}: ");
            let of_line = |line: &str| Some(line.strip_prefix(&prefix)?.trim().to_owned());
            text.lines().filter_map(of_line).collect::<Vec<_>>()
        };
        let one = |key| {
            let first = values(key).into_iter().next();
            first.with_context(|| format!("{} has no line \"-- {key}: \"", path.display()))
        };
        let conf = values("conf").into_iter().map(|line| {
            let (name, value) = line.split_once('=').context("a setting without a value")?;
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        });
        let file = values("file").into_iter().next();
        Ok(Self {
            file: file.map(|file| path.with_file_name(file)),
            name: one("name")?,
            id: one("id")?,
            conf: conf.collect::<Result<_>>()?,
            sql: text.clone(),
        })
    }

    /// Runs a trial on servers of its own.
    ///
    /// # Errors
    /// If it cannot be run to its end.
    pub fn count(&self, trial: &Trial) -> Result<Count> {
        let lists = (trial.run)(self).with_context(|| format!("{}: {}", self.name, trial.name))?;
        let mut seen = HashSet::new();
        let mut count = Count {
            ids: 0,
            duplicates: 0,
        };
        for id in lists.into_iter().flatten() {
            count.ids += 1;
            count.duplicates += usize::from(!seen.insert(id));
        }
        Ok(count)
    }

    fn builder(&self, node: u32) -> ClusterBuilder {
        let builder = Cluster::builder().without_preload().faketime();
        self.conf.iter().fold(builder, |builder, (name, value)| {
            builder.conf(name, value.replace(":node", &node.to_string()))
        })
    }

    fn start(
        &self,
        node: u32,
        configure: impl Fn(ClusterBuilder) -> ClusterBuilder,
    ) -> Result<Cluster> {
        let cluster = configure(self.builder(node)).start()?;
        if let Some(file) = &self.file {
            let script = format!("\\set node {node}\n{}", fs::read_to_string(file)?);
            let written = psql(&cluster, "postgres", "postgres", &script, true)?;
            ensure!(written.success, "{}: {}", file.display(), written.errors);
        }
        let sql = self.sql.replace(":node", &node.to_string());
        cluster.run(&sql)?;
        Ok(cluster)
    }

    /// Has sessions draw until the time is over or the server ends.
    fn draw(&self, cluster: &Cluster, time: Duration) -> Result<Vec<Vec<u128>>> {
        let query = format!(
            "SELECT ({})::text FROM generate_series(1, {AT_ONCE})",
            self.id
        );
        self.sessions(cluster, time, &query)
    }

    fn sessions(&self, cluster: &Cluster, time: Duration, query: &str) -> Result<Vec<Vec<u128>>> {
        let clients: Vec<Client> = (0..SESSIONS)
            .map(|_| cluster.connect())
            .collect::<Result<_>>()?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let threads: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    let over = &over;
                    scope.spawn(move || {
                        let mut ids = Vec::new();
                        while !over.load(Ordering::Relaxed)
                            && receive(&mut client, query, &mut ids)?
                        {}
                        Ok(ids)
                    })
                })
                .collect();
            thread::sleep(time);
            over.store(true, Ordering::Relaxed);
            threads
                .into_iter()
                .map(|thread| thread.join().expect("a session's thread"))
                .collect::<Result<_>>()
        })
    }
}

/// Receives the IDs of a query one by one; `false` if the server ended.
fn receive(client: &mut Client, query: &str, ids: &mut Vec<u128>) -> Result<bool> {
    use postgres::fallible_iterator::FallibleIterator as _;
    let mut rows = match client.query_raw(query, std::iter::empty::<&str>()) {
        Ok(rows) => rows,
        Err(error) if error.as_db_error().is_none_or(is_shutdown) => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    loop {
        match rows.next() {
            Ok(Some(row)) => ids.push(number(row.get(0))?),
            Ok(None) => return Ok(true),
            Err(error) if error.as_db_error().is_none_or(is_shutdown) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn is_shutdown(error: &postgres::error::DbError) -> bool {
    error.code().code().starts_with("57P")
}

/// A bigint, or a UUID, as a number.
fn number(text: &str) -> Result<u128> {
    let number = match text.parse() {
        Ok(number) => number,
        Err(_) => u128::from_str_radix(&text.replace('-', ""), 16)?,
    };
    Ok(number)
}

fn at_once(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let cluster = peer.start(1, |builder| builder)?;
    peer.draw(&cluster, 2 * WHILE)
}

fn killed(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let mut cluster = peer.start(1, |builder| builder)?;
    let mut lists = Vec::new();
    for _ in 0..3 {
        let pid = cluster.pid()?;
        let drawn = thread::scope(|scope| {
            let drawing = scope.spawn(|| peer.draw(&cluster, WHILE));
            thread::sleep(WHILE / 2);
            crate::processes::kill9_tree(pid)?;
            drawing.join().expect("the thread of the sessions")
        })?;
        lists.extend(drawn);
        cluster.wait_for_end()?;
        cluster.start()?;
    }
    lists.extend(peer.draw(&cluster, WHILE)?);
    Ok(lists)
}

fn set_back(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let cluster = peer.start(1, |builder| builder)?;
    let begun = Instant::now();
    let mut lists = peer.draw(&cluster, WHILE)?;
    cluster.clock().set_offset(Offset::back(begun.elapsed()))?;
    lists.extend(peer.draw(&cluster, WHILE)?);
    Ok(lists)
}

fn set_back_and_restarted(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let mut cluster = peer.start(1, |builder| builder)?;
    let begun = Instant::now();
    let mut lists = peer.draw(&cluster, WHILE)?;
    cluster.restart()?;
    cluster.clock().set_offset(Offset::back(begun.elapsed()))?;
    lists.extend(peer.draw(&cluster, WHILE)?);
    Ok(lists)
}

fn promoted(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let mut cluster = peer.start(1, ClusterBuilder::can_be_copied)?;
    let mut client = cluster.connect()?;
    let create = format!("CREATE TABLE rows AS SELECT {} AS id LIMIT 0", peer.id);
    client.batch_execute(&create)?;
    let mut standby = Cluster::builder()
        .faketime()
        .without_preload()
        .prepare_standby_of(&cluster)?;
    standby.start()?;
    let begun = Instant::now();
    let insert = format!(
        "INSERT INTO rows SELECT {} FROM generate_series(1, {AT_ONCE}) RETURNING id::text",
        peer.id
    );
    peer.sessions(&cluster, WHILE, &insert)?;
    standby.catch_up_with(&cluster)?;
    cluster.kill9_all()?;
    standby.clock().set_offset(Offset::back(begun.elapsed()))?;
    standby.promote()?;
    let mut there = Vec::new();
    receive(
        &mut standby.connect()?,
        "SELECT id::text FROM rows",
        &mut there,
    )?;
    let mut lists = vec![there];
    lists.extend(peer.draw(&standby, 2 * WHILE)?);
    Ok(lists)
}

fn two_servers(peer: &Peer) -> Result<Vec<Vec<u128>>> {
    let (one, two) = (peer.start(1, |it| it)?, peer.start(2, |it| it)?);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| peer.draw(&one, WHILE));
        let second = peer.draw(&two, WHILE);
        (first.join().expect("the thread of the sessions"), second)
    });
    let mut lists = first?;
    lists.extend(second?);
    Ok(lists)
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.duplicates > 0 {
            write!(
                formatter,
                "**{}** of {}",
                grouped(self.duplicates),
                grouped(self.ids)
            )
        } else {
            write!(formatter, "0 of {}", grouped(self.ids))
        }
    }
}
