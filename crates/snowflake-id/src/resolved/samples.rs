//! Earlier answers, for readers whose snapshot is older than their question.

use std::cmp::Ordering;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64};

use crate::id::SnowflakeId;
use crate::time::BootTime;

/// Which transactions a snapshot takes for ended. Of two moments the later one sees all that the
/// earlier one sees.
///
/// A snapshot takes those transactions for ended whose ID is below `xmax` and not in a list of
/// running ones. `xmax` is one more than the greatest ID of a transaction that has ended, so it
/// only grows. While it stays, transactions can leave the list and none can join it: a transaction
/// that begins has a greater ID than all before. So the pair of `xmax` and the length of the list
/// is in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// 64 bits: with the epoch, so that it does not wrap around.
    pub xmax: u64,
    /// How many transactions below `xmax` are running, each counted once.
    pub running: u32,
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.xmax
            .cmp(&other.xmax)
            .then(other.running.cmp(&self.running))
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// How many samples each level keeps.
const SAMPLES_PER_LEVEL: usize = 32;

/// The least time between two samples of a level. The answers of readers that ask all
/// the time would otherwise replace those that a reader with an older snapshot needs.
const SPACING_MICROS: [i64; 3] = [0, 10_000, 1_000_000];

/// Answers and the moments for which they hold, of readers in any database.
///
/// All bytes zero is a valid value, without samples. The caller holds a lock: shared to find,
/// exclusive to add.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Samples {
    levels: [Level; SPACING_MICROS.len()],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Level {
    /// How many were added.
    count: AtomicU64,
    /// When the last one was added, microseconds since boot.
    last_at: AtomicI64,
    samples: [Sample; SAMPLES_PER_LEVEL],
}

#[derive(Debug, Default)]
#[repr(C)]
struct Sample {
    xmax: AtomicU64,
    running: AtomicU32,
    /// 0 for none.
    database: AtomicU32,
    id: AtomicU64,
}

impl Sample {
    fn of(&self, database: u32) -> Option<(Moment, SnowflakeId)> {
        let moment = Moment {
            xmax: self.xmax.load(Relaxed),
            running: self.running.load(Relaxed),
        };
        let id = SnowflakeId::from_bits(self.id.load(Relaxed));
        (self.database.load(Relaxed) == database).then_some((moment, id))
    }

    fn set(&self, database: u32, moment: Moment, id: SnowflakeId) {
        self.xmax.store(moment.xmax, Relaxed);
        self.running.store(moment.running, Relaxed);
        self.database.store(database, Relaxed);
        self.id.store(id.bits(), Relaxed);
    }
}

impl Samples {
    /// No samples: the same as all bytes zero.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps an answer. `moment` is that of a snapshot that was taken after the reader had looked
    /// at the words.
    pub fn add(&self, database: u32, moment: Moment, id: SnowflakeId, at: BootTime) {
        for (level, spacing) in self.levels.iter().zip(SPACING_MICROS) {
            let count = level.count.load(Relaxed);
            let since = at.micros().saturating_sub(level.last_at.load(Relaxed));
            if count > 0 && since < spacing {
                continue;
            }
            let newest =
                &level.samples[(count.wrapping_sub(1) % SAMPLES_PER_LEVEL as u64) as usize];
            match newest.of(database) {
                // For the same moment the greater one is the better one.
                Some((before, known)) if before == moment => {
                    newest.set(database, moment, known.max(id))
                }
                _ => {
                    level.samples[(count % SAMPLES_PER_LEVEL as u64) as usize]
                        .set(database, moment, id);
                    level.count.store(count + 1, Relaxed);
                    level.last_at.store(at.micros(), Relaxed);
                }
            }
        }
    }

    /// The greatest answer that holds for a snapshot of this moment: one for the same moment or an
    /// earlier one. `None` if none is known.
    #[must_use]
    pub fn find(&self, database: u32, moment: Moment) -> Option<SnowflakeId> {
        self.levels
            .iter()
            .flat_map(|level| &level.samples)
            .filter_map(|sample| sample.of(database))
            .filter(|&(before, _)| before <= moment)
            .map(|(_, id)| id)
            .max()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const DATABASE: u32 = 5;

    fn moment(xmax: u64, running: u32) -> Moment {
        Moment { xmax, running }
    }

    fn id(id: i64) -> SnowflakeId {
        SnowflakeId::new(id).expect("not negative")
    }

    fn at(micros: i64) -> BootTime {
        BootTime::from_micros(micros)
    }

    /// Transactions that begin and end in any order, with a snapshot after each step.
    #[test]
    fn moments_are_in_the_order_of_time() {
        let mut random = 1_u64;
        let mut next = move |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        for _ in 0..200 {
            let (mut next_xid, mut xmax, mut running) = (3_u64, 3_u64, Vec::new());
            let mut snapshots: Vec<(Moment, Vec<u64>)> = Vec::new();
            for _ in 0..60 {
                if running.is_empty() || next(2) == 0 {
                    running.push(next_xid);
                    next_xid += 1;
                } else {
                    let ended = running.swap_remove(next(running.len() as u64) as usize);
                    xmax = xmax.max(ended + 1);
                }
                let listed = running.iter().filter(|&&xid| xid < xmax).count();
                let ended = (3..xmax).filter(|xid| !running.contains(xid)).collect();
                snapshots.push((moment(xmax, listed as u32), ended));
            }
            for (index, (earlier, seen)) in snapshots.iter().enumerate() {
                for (later, seen_later) in &snapshots[index..] {
                    assert!(earlier <= later);
                    assert!(seen.iter().all(|xid| seen_later.contains(xid)));
                    assert_eq!(earlier == later, seen == seen_later);
                }
            }
        }
    }

    #[test]
    fn an_answer_holds_from_its_moment_on() {
        let samples = Samples::new();
        assert_eq!(samples.find(DATABASE, moment(9, 0)), None);
        samples.add(DATABASE, moment(10, 2), id(100), at(1));
        assert_eq!(samples.find(DATABASE, moment(9, 0)), None);
        assert_eq!(
            samples.find(DATABASE, moment(10, 3)),
            None,
            "one more was running"
        );
        assert_eq!(samples.find(DATABASE, moment(10, 2)), Some(id(100)));
        assert_eq!(samples.find(DATABASE, moment(10, 1)), Some(id(100)));
        assert_eq!(samples.find(DATABASE, moment(11, 9)), Some(id(100)));
        assert_eq!(
            samples.find(DATABASE + 1, moment(11, 0)),
            None,
            "another database"
        );
    }

    #[test]
    fn the_greatest_answer_counts_also_when_a_lower_one_came_later() {
        let samples = Samples::new();
        samples.add(DATABASE, moment(10, 2), id(100), at(1));
        samples.add(DATABASE, moment(10, 2), id(90), at(2));
        samples.add(DATABASE, moment(12, 2), id(95), at(3));
        assert_eq!(samples.find(DATABASE, moment(12, 2)), Some(id(100)));
    }

    #[test]
    fn readers_that_ask_all_the_time_leave_answers_for_those_that_ask_late() {
        let samples = Samples::new();
        // Each 100 microseconds for 20 seconds.
        for n in 0..200_000 {
            samples.add(DATABASE, moment(n, 0), id(n as i64), at(n as i64 * 100));
        }
        for (age, least_age_kept) in [(10, 10), (2_500, 2_600), (150_000, 160_000)] {
            let found = samples
                .find(DATABASE, moment(199_999 - age, 0))
                .expect("one that is old enough");
            assert!(
                found.get() >= 199_999 - least_age_kept - 100,
                "{age}: {found}"
            );
            assert!(found.get() <= (199_999 - age) as i64);
        }
    }
}
