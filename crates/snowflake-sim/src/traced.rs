//! A real server's trace, accepted step by step: what it reads of the pages of the marks and of the
//! floor is what the simulator's pages would have, across crashes too, and it writes, flushes and
//! announces in the order of the protocol.
//!
//! The lines are those of the extension's test build (`src/trace.rs`). After a start it is not known
//! how much of what was not flushed is there: so there are several candidates for the pages, until
//! what the server reads leaves one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use snowflake_id::protocol::MarkPage;
use snowflake_id::{Bounds, Identity, SnowflakeId, Tick, WallTime};

/// The pages, as they may be.
#[derive(Clone, Debug, Default, PartialEq)]
struct Pages {
    marks: BTreeMap<u32, MarkPage>,
    floor: Bounds,
}

impl Pages {
    fn mark(&self, database: u32) -> MarkPage {
        self.marks.get(&database).copied().unwrap_or(MarkPage::NEW)
    }
}

/// What a record changes.
#[derive(Clone, Debug)]
enum Change {
    Mark(u32, MarkPage),
    Floor(Bounds),
}

impl Change {
    fn apply(&self, pages: &mut Pages) {
        match self {
            Change::Mark(database, page) => {
                pages.marks.insert(*database, *page);
            }
            Change::Floor(bounds) => pages.floor = bounds.clone(),
        }
    }
}

/// A record of the log since the start.
#[derive(Clone, Debug)]
struct Record {
    process: u32,
    change: Change,
    /// Where it ends; it may not be there if the server ended before that was known.
    end: Option<u64>,
}

/// Accepts the lines of a trace.
pub struct Acceptor {
    identity: Identity,
    /// What the pages may have been at the start.
    candidates: Vec<Pages>,
    log: Vec<Record>,
    flushed: u64,
    start_numbers: BTreeSet<i64>,
    start_number: i64,
    /// The databases whose marks were read since the start.
    read: BTreeSet<u32>,
    /// How many lines of each kind were accepted.
    pub accepted: BTreeMap<String, u64>,
}

impl Acceptor {
    /// Of a server with this layout and node number, before its first start.
    pub fn new(identity: Identity) -> Self {
        Acceptor {
            identity,
            candidates: vec![Pages::default()],
            log: Vec::new(),
            flushed: 0,
            start_numbers: BTreeSet::new(),
            start_number: 0,
            read: BTreeSet::new(),
            accepted: BTreeMap::new(),
        }
    }

    /// The next line.
    ///
    /// # Errors
    /// What must not have been.
    pub fn line(&mut self, line: &str) -> Result<(), String> {
        let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
        let done = match kind {
            "start" => self.start(rest),
            "read-mark" => self.read_mark(rest),
            "write-mark" => self.write_mark(rest),
            "read-floor" => self.read_floor(rest),
            "write-floor" => self.write_floor(rest),
            "wrote" => self.wrote(rest),
            "flushed" => self.has_flushed(rest),
            "announce" => self.announce(rest),
            _ => Err("no such line".to_owned()),
        };
        done.map_err(|why| format!("{line}: {why}"))?;
        *self.accepted.entry(kind.to_owned()).or_default() += 1;
        Ok(())
    }

    fn start(&mut self, rest: &str) -> Result<(), String> {
        let number = fields::<i64, 1>(rest)?[0];
        require(
            number < 0 && self.start_numbers.insert(number),
            "a start number comes again",
        )?;
        self.start_number = number;
        self.read.clear();
        // What was flushed is there. Of the rest, what comes before something that is there is there.
        let mut log = std::mem::take(&mut self.log);
        log.sort_by_key(|record| record.end.unwrap_or(u64::MAX));
        let durable = log.partition_point(|it| it.end.is_some_and(|end| end <= self.flushed));
        let mut after: Vec<Pages> = Vec::new();
        for before in &self.candidates {
            let mut pages = before.clone();
            for record in &log[..durable] {
                record.change.apply(&mut pages);
            }
            keep(&mut after, pages.clone());
            for record in log[durable..].iter().filter(|it| it.end.is_some()) {
                record.change.apply(&mut pages);
                keep(&mut after, pages.clone());
            }
            // Those that were about to be written have any order.
            for record in log.iter().filter(|it| it.end.is_none()) {
                for mut pages in after.clone() {
                    record.change.apply(&mut pages);
                    keep(&mut after, pages);
                }
            }
        }
        self.candidates = after;
        Ok(())
    }

    fn read_mark(&mut self, rest: &str) -> Result<(), String> {
        let [database, bound, number] = fields::<i64, 3>(rest)?;
        let database = database as u32;
        let page = mark_page(bound, number)?;
        self.read.insert(database);
        let written = self.written(database);
        match written {
            Some((there, _)) => require(there == page, "the page has something else"),
            None => self.narrow("the page cannot have that", |pages| {
                pages.mark(database) == page
            }),
        }
    }

    fn read_floor(&mut self, rest: &str) -> Result<(), String> {
        let bounds = floor(rest)?;
        let changed = self
            .log
            .iter()
            .rev()
            .find_map(|record| match &record.change {
                Change::Floor(there) => Some(there.clone()),
                Change::Mark(..) => None,
            });
        match changed {
            Some(there) => require(there == bounds, "the floor has something else"),
            None => self.narrow("the floor cannot have that", |pages| pages.floor == bounds),
        }
    }

    fn write_mark(&mut self, rest: &str) -> Result<(), String> {
        let [process, database, bound, number, wall] = fields::<i64, 5>(rest)?;
        let (database, page) = (database as u32, mark_page(bound, number)?);
        require(
            number == self.start_number,
            "the start number is another one",
        )?;
        require(self.read.contains(&database), "the mark was not read")?;
        let before = self.last_mark(database);
        require(page.bound_id >= before, "the mark is moved back")?;
        require(
            self.floor_has(page.bound_id, u64::MAX),
            "the floor is lower",
        )?;
        let layout = self.identity.layout();
        let time = layout.time_of(layout.tick_of(page.bound_id));
        require(
            WallTime::from(time) > WallTime::from_unix_micros(wall),
            "nothing is reserved by that",
        )?;
        self.push(process, Change::Mark(database, page));
        Ok(())
    }

    fn write_floor(&mut self, rest: &str) -> Result<(), String> {
        let (process, rest) = rest.split_once(' ').ok_or("two fields")?;
        let process = process.parse().map_err(|_| "a process")?;
        self.push(process, Change::Floor(floor(rest)?));
        Ok(())
    }

    fn push(&mut self, process: i64, change: Change) {
        self.log.push(Record {
            process: process as u32,
            change,
            end: None,
        });
    }

    fn wrote(&mut self, rest: &str) -> Result<(), String> {
        let [process, end] = fields::<u64, 2>(rest)?;
        let is_its =
            |record: &&mut Record| u64::from(record.process) == process && record.end.is_none();
        let record = self.log.iter_mut().rev().find(is_its);
        record.ok_or("nothing was about to be written")?.end = Some(end);
        Ok(())
    }

    fn has_flushed(&mut self, rest: &str) -> Result<(), String> {
        let end = fields::<u64, 1>(rest)?[0];
        self.flushed = self.flushed.max(end);
        Ok(())
    }

    /// Below this tick others issue IDs without a further question.
    fn announce(&mut self, rest: &str) -> Result<(), String> {
        let [database, tick] = fields::<u64, 2>(rest)?;
        let (database, tick) = (database as u32, Tick::new(tick));
        require(self.read.contains(&database), "the mark was not read")?;
        let layout = *self.identity.layout();
        let is_below = |page: MarkPage| tick <= layout.tick_above(page.bound_id).max(Tick::new(1));
        match self.written(database) {
            Some((page, end)) => {
                require(is_below(page), "the mark is lower")?;
                require(
                    end.is_some_and(|end| end <= self.flushed),
                    "the mark is not flushed",
                )?;
                require(
                    self.floor_has(page.bound_id, self.flushed),
                    "the floor is not flushed",
                )
            }
            // What was read at the start.
            None => require(
                self.candidates
                    .iter()
                    .all(|pages| is_below(pages.mark(database))),
                "the mark is lower",
            ),
        }
    }

    /// The bound of a mark.
    fn last_mark(&self, database: u32) -> SnowflakeId {
        match self.written(database) {
            Some((page, _)) => page.bound_id,
            None => {
                let before = self.candidates.iter();
                let bounds = before.map(|pages| pages.mark(database).bound_id);
                bounds.max().unwrap_or(SnowflakeId::ZERO)
            }
        }
    }

    /// What was written last on a mark's page since the start, and where its record ends.
    fn written(&self, database: u32) -> Option<(MarkPage, Option<u64>)> {
        let mut records = self.log.iter().rev();
        records.find_map(|record| match &record.change {
            Change::Mark(of, page) if *of == database => Some((*page, record.end)),
            _ => None,
        })
    }

    /// Whether a record up to there, or the floor at the start, has at least that bound.
    fn floor_has(&self, bound: SnowflakeId, until: u64) -> bool {
        let is_enough = |floor: &Bounds| floor.highest_for(&self.identity) >= bound;
        self.log.iter().any(|record| match &record.change {
            Change::Floor(floor) => record.end.is_some_and(|end| end <= until) && is_enough(floor),
            Change::Mark(..) => false,
        }) || self.candidates.iter().all(|pages| is_enough(&pages.floor))
    }

    /// Leaves the candidates that fit to what was read.
    fn narrow(&mut self, why: &str, fits: impl Fn(&Pages) -> bool) -> Result<(), String> {
        self.candidates.retain(fits);
        require(!self.candidates.is_empty(), why)
    }

    /// Forgets records that decide nothing any more.
    pub fn tidy(&mut self) {
        let durable = |record: &Record| record.end.is_some_and(|end| end <= self.flushed);
        let first = self.log.iter().position(|record| !durable(record));
        // The last of each page stays.
        let end = first.unwrap_or(self.log.len()).saturating_sub(64);
        for record in self.log.drain(..end) {
            for pages in &mut self.candidates {
                record.change.apply(pages);
            }
        }
    }
}

impl fmt::Display for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum: u64 = self.accepted.values().sum();
        write!(f, "{sum} steps accepted:")?;
        for (kind, count) in &self.accepted {
            write!(f, " {kind} {count}")?;
        }
        Ok(())
    }
}

fn require(holds: bool, why: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why.to_owned()) }
}

fn keep(all: &mut Vec<Pages>, pages: Pages) {
    if !all.contains(&pages) {
        all.push(pages);
    }
}

fn fields<T: std::str::FromStr, const COUNT: usize>(text: &str) -> Result<[T; COUNT], String> {
    let parsed: Result<Vec<T>, _> = text.split(' ').map(str::parse).collect();
    let all = parsed.map_err(|_| "not a number".to_owned())?;
    all.try_into().map_err(|_| format!("{COUNT} fields"))
}

fn mark_page(bound: i64, start_number: i64) -> Result<MarkPage, String> {
    let bound_id = SnowflakeId::new(bound).ok_or("a negative bound")?;
    Ok(MarkPage {
        bound_id,
        start_number,
    })
}

fn floor(text: &str) -> Result<Bounds, String> {
    text.replace(';', "\n")
        .parse()
        .map_err(|_| "not a floor".to_owned())
}
