//! The transactions of a server by their numbers: which run, which have ended, and what a snapshot sees.

use std::collections::BTreeMap;

use snowflake_id::resolved::Moment;

/// How many can be prepared at a time.
pub const MOST_PREPARED: usize = 2;

/// The rows of one.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Its database.
    pub database: usize,
    /// The first and the last ID of each run.
    pub ids: Vec<i64>,
}

/// One that is prepared: a crash leaves it.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Its number.
    pub xid: u32,
    /// Its rows.
    pub rows: Rows,
    /// Where its record ends.
    pub end: usize,
    /// Whether a session commits it.
    pub is_ending: bool,
}

/// What a reader's snapshot sees: those that have ended.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its place in the order of snapshots.
    pub moment: Moment,
    running: Vec<u32>,
    next: u32,
}

/// All of them.
#[derive(Debug)]
pub struct Transactions {
    next: u32,
    /// One more than the greatest number that has ended.
    xmax: u32,
    running: BTreeMap<u32, Rows>,
    /// Those that have ended since a snapshot was taken that is in use.
    ended: Vec<(u32, Rows)>,
    snapshots: u32,
}

impl Transactions {
    /// After a start: these are still prepared, and `next` is above all numbers before it.
    pub fn new(next: u32, prepared: &[Prepared]) -> Self {
        let prepared = prepared.iter().map(|it| (it.xid, it.rows.clone()));
        Transactions {
            next,
            xmax: next,
            running: prepared.collect(),
            ended: Vec::new(),
            snapshots: 0,
        }
    }

    /// The number of the next one.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// One begins; returns its number.
    pub fn begin(&mut self, database: usize) -> u32 {
        let (xid, ids) = (self.next, Vec::new());
        self.next += 1;
        self.running.insert(xid, Rows { database, ids });
        xid
    }

    /// Whether it has not ended for all others.
    pub fn is_running(&self, xid: u32) -> bool {
        self.running.contains_key(&xid)
    }

    /// It has a row.
    pub fn add(&mut self, xid: u32, ids: [i64; 2]) {
        if let Some(rows) = self.running.get_mut(&xid) {
            rows.ids.extend(ids);
        }
    }

    /// Its rows.
    pub fn rows(&self, xid: u32) -> Option<&Rows> {
        self.running.get(&xid)
    }

    /// It has ended for all others.
    pub fn end(&mut self, xid: u32) {
        self.xmax = self.xmax.max(xid + 1);
        if let Some(rows) = self.running.remove(&xid)
            && self.snapshots > 0
        {
            self.ended.push((xid, rows));
        }
    }

    /// The present moment.
    pub fn moment(&self) -> Moment {
        Moment {
            xmax: self.xmax.into(),
            running: self.running.range(..self.xmax).count() as u32,
        }
    }

    /// A reader takes a snapshot.
    pub fn snapshot(&mut self) -> Snapshot {
        self.snapshots += 1;
        Snapshot {
            moment: self.moment(),
            running: self.running.keys().copied().collect(),
            next: self.next,
        }
    }

    /// A row of the database that is below `answer` and that the snapshot does not see. It is used no
    /// more.
    pub fn lost(&mut self, snapshot: Snapshot, database: usize, answer: i64) -> Option<(u32, i64)> {
        let running = self.running.iter().map(|(&xid, rows)| (xid, rows));
        let ended = self.ended.iter().map(|(xid, rows)| (*xid, rows));
        let lost = running
            .chain(ended)
            .filter(|(xid, rows)| {
                rows.database == database
                    && (*xid >= snapshot.next || snapshot.running.contains(xid))
            })
            .find_map(|(xid, rows)| {
                let row = rows.ids.iter().find(|&&row| row < answer)?;
                Some((xid, *row))
            });
        self.snapshots -= 1;
        if self.snapshots == 0 {
            self.ended.clear();
        }
        lost
    }
}
