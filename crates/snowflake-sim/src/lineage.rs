//! What has been issued, and what must hold.
//!
//! A lineage is that of one data directory: what it has issued, and what was in it when it was copied
//! or restored. After a crash it has all of that. A standby that is promoted, and a backup, begin with
//! what is in their log: an ID whose row is lost may come again.

use std::collections::BTreeMap;

/// Numbers, as ranges.
#[derive(Clone, Debug, Default)]
pub struct Ranges(BTreeMap<i64, i64>);

impl Ranges {
    /// Adds the numbers from `first` to `last`. Returns one that is there already.
    pub fn add(&mut self, first: i64, last: i64) -> Option<i64> {
        let before = self.0.range(..=last).next_back().map(|(&a, &b)| (a, b));
        if let Some((start, end)) = before
            && end >= first
        {
            return Some(first.max(start));
        }
        // Most runs follow one another.
        let mut range = (first, last);
        if let Some((start, end)) = before
            && end + 1 == first
        {
            range.0 = start;
        }
        if let Some(end) = self.0.remove(&(last + 1)) {
            range.1 = end;
        }
        self.0.insert(range.0, range.1);
        None
    }

    /// Adds all of the others, which may be there already.
    pub fn add_all(&mut self, others: &Ranges) {
        for (&first, &last) in &others.0 {
            let mut first = first;
            while first <= last {
                if let Some((_, &end)) = self.0.range(..=first).next_back()
                    && end >= first
                {
                    first = end + 1;
                    continue;
                }
                let next = self.0.range(first..=last).next();
                let end = next.map_or(last, |(&start, _)| start - 1);
                self.add(first, end);
                first = end + 1;
            }
        }
    }
}

/// What one data directory has issued.
#[derive(Clone, Debug)]
pub struct Lineage {
    /// Of all databases.
    pub of_server: Ranges,
    /// In each database, with what was restored into it.
    pub of_database: Vec<Ranges>,
    /// How often a dump was restored into each database.
    pub restores: Vec<u32>,
    /// The greatest answer that a reader of each database got.
    pub answered: Vec<i64>,
    /// Below which no ID of a later call is in each database: a mark that was restored, a start.
    pub least: Vec<i64>,
    /// By how much the times of IDs may be ahead of true time, microseconds.
    pub lead: i64,
}

impl Lineage {
    /// Nothing.
    pub fn new(databases: usize) -> Self {
        Lineage {
            of_server: Ranges::default(),
            of_database: vec![Ranges::default(); databases],
            restores: vec![0; databases],
            answered: vec![0; databases],
            least: vec![0; databases],
            lead: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_know_what_is_there() {
        let mut ranges = Ranges::default();
        assert_eq!(ranges.add(10, 19), None);
        assert_eq!(ranges.add(20, 29), None);
        assert_eq!(ranges.add(40, 49), None);
        assert_eq!(ranges.add(30, 39), None);
        assert_eq!(ranges.0.len(), 1);
        assert_eq!(ranges.add(5, 10), Some(10));
        assert_eq!(ranges.add(49, 50), Some(49));
        assert_eq!(ranges.add(0, 100), Some(10));
        let mut others = Ranges::default();
        others.add(0, 12);
        others.add(45, 60);
        others.add(70, 71);
        ranges.add_all(&others);
        assert_eq!(
            ranges.0.into_iter().collect::<Vec<_>>(),
            [(0, 60), (70, 71)]
        );
    }
}
