//! What was measured: tables, figure and conclusions.

use anyhow::{Context, Result, bail};
use plotters::style::RGBColor;

use super::order::Disorder;
use super::stream::Fleet;
use super::{FOR_REMEDIES, Index, RATES, SKEWS_MILLIS, Seen};
use crate::measure::Samples;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Table, per_second, ratio, three};

/// The number of servers in the figure, and in most conclusions.
const MANY: u32 = 64;

/// The leaf pages of an index have this many bytes.
const PAGE_BYTES: f64 = 8_192.0;

/// The columns of every table, after the first ones.
const COLUMNS: [&str; 9] = [
    "index, MiB",
    "ratio to ascending",
    "leaf density",
    "fragmentation",
    "out of order",
    "behind, ms: median",
    "99 of 100",
    "behind, rows: 99 of 100",
    "WAL after a checkpoint, bytes a row",
];

#[derive(Default)]
pub struct Results {
    /// The first has ascending keys.
    pub references: Vec<(&'static str, Seen)>,
    pub fleets: Vec<(Fleet, Seen)>,
    /// The last one is after `REINDEX`.
    pub remedies: Vec<(&'static str, Index)>,
}

/// A whole number.
pub fn whole(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn table(first: &[&str]) -> Table {
    let head = first.iter().chain(&COLUMNS);
    Table::of(head.map(ToString::to_string).collect())
}

impl Results {
    /// The conclusions, and what they are from.
    pub fn blocks(&self, rows: usize) -> Result<Vec<Block>> {
        let mut blocks = vec![
            Block::Text(self.conclusions(rows)?),
            Block::Figure(self.figure(rows)),
        ];
        for rate in RATES {
            let mut table = table(&["servers", "clocks within ±, ms"]);
            for (fleet, seen) in self.fleets.iter().filter(|(fleet, _)| fleet.rate == rate) {
                let servers = whole(fleet.servers.into());
                table.row(&self.row(vec![servers, fleet.skew_millis.to_string()], seen));
            }
            let words = format!(
                "**{} IDs a second of all servers**",
                per_second(rate.into())
            );
            blocks.extend([Block::Text(words), Block::Table(table)]);
        }
        let mut others = table(&[""]);
        for (name, seen) in &self.references {
            others.row(&self.row(vec![(*name).to_owned()], seen));
        }
        blocks.extend([
            Block::Text("**Other keys, as a reference**".to_owned()),
            Block::Table(others),
            Block::Text(format!("**Remedies**, for {FOR_REMEDIES}")),
            Block::Table(self.remedies()),
        ]);
        Ok(blocks)
    }

    fn ascending(&self) -> f64 {
        self.references[0].1.index.bytes
    }

    fn row(&self, mut cells: Vec<String>, seen: &Seen) -> Vec<String> {
        let Disorder {
            share,
            distance,
            rows,
        } = seen.disorder;
        cells.extend([
            three(mib(seen.index.bytes)),
            ratio(seen.index.bytes / self.ascending()),
            percent(seen.index.density),
            percent(seen.index.fragmentation),
            percent(100.0 * share),
            three(distance.median),
            three(distance.p99),
            per_second(rows.p99),
            three(seen.wal),
        ]);
        cells
    }

    fn remedies(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "index, MiB",
            "ratio to ascending",
            "leaf density",
            "fragmentation",
        ]);
        for (name, index) in &self.remedies {
            table.row(&[
                (*name).to_owned(),
                three(mib(index.bytes)),
                ratio(index.bytes / self.ascending()),
                percent(index.density),
                percent(index.fragmentation),
            ]);
        }
        table
    }

    fn of(&self, servers: u32, rate: u32, skew_millis: u32) -> Result<&Seen> {
        let wanted = Fleet {
            servers,
            rate,
            skew_millis,
        };
        let found = self.fleets.iter().find(|(fleet, _)| *fleet == wanted);
        Ok(&found.context("a case that was measured")?.1)
    }

    /// The size of an index, relative to that of ascending keys.
    fn ratio(&self, index: Index) -> String {
        ratio(index.bytes / self.ascending())
    }

    fn conclusions(&self, rows: usize) -> Result<String> {
        let size = |servers, rate, skew| -> Result<String> {
            Ok(self.ratio(self.of(servers, rate, skew)?.index))
        };
        let densities = |rate| -> Result<String> {
            let of_skew = |&skew| Ok(percent(self.of(MANY, rate, skew)?.index.density));
            let all: Vec<String> = SKEWS_MILLIS.iter().map(of_skew).collect::<Result<_>>()?;
            Ok(all.join(", "))
        };
        let [slow, middle, fast] = RATES;
        let of_many = self.fleets.iter().filter(|(fleet, _)| fleet.servers > 1);
        let wal: Samples = of_many.clone().map(|(_, seen)| seen.wal).collect();
        let bytes: Samples = of_many.map(|(_, seen)| seen.index.bytes).collect();
        let widest = self.of(MANY, fast, SKEWS_MILLIS[2])?;
        let behind = widest.disorder.rows.p99;
        let [ascending, _, random, uuid] = &self.references[..] else {
            bail!("there are four references");
        };
        let [half, lower, _, rebuilt] = &self.remedies[..] else {
            bail!("there are four remedies");
        };
        Ok(format!(
            "**Conclusions**\n\n\
             1. The number of servers has little effect. At {middle_rate} IDs a second and clocks within ±10 ms, the index has {} of the \
             size with ascending keys for 4 servers, {} for 64 and {} for 1,000. A single server has {}, and {} at {fast_rate} IDs a \
             second, because transactions are committed in another order than their IDs were generated.\n\
             2. The rate and the skew have an effect. With {MANY} servers and clocks within ±1, ±10 and ±100 ms, the leaf pages are {} \
             full at {slow_rate} IDs a second, {} at {middle_rate} and {} at {fast_rate}.\n\
             3. A leaf page has {page_rows} rows if keys ascend. Rows out of order that are as far behind as that split full pages into halves. The \
             index is then about as large as one of random `bigint` ({}), and a greater skew does not enlarge it further. The largest has \
             {}.\n\
             4. Unlike random keys, all rows enter the latest part of the index. With {MANY} servers at {fast_rate} IDs a second and \
             clocks within ±100 ms, 99 of 100 rows out of order are behind no more than {} rows, which are {} MiB of the index. After a \
             checkpoint a row of several servers takes {} to {} bytes of WAL. With ascending keys it takes {}, with random UUIDs {}.\n\
             5. `REINDEX` makes such an index as small as with ascending keys ({}). On a table partitioned by time, run `REINDEX \
             INDEX CONCURRENTLY` on partitions that no longer grow. A lower `fillfactor` does not help ({} with 70, {} with 50).",
            size(4, middle, 10)?,
            size(64, middle, 10)?,
            size(1_000, middle, 10)?,
            size(1, middle, 0)?,
            size(1, fast, 0)?,
            densities(slow)?,
            densities(middle)?,
            densities(fast)?,
            self.ratio(random.1.index),
            ratio(bytes.high() / self.ascending()),
            per_second(behind),
            three(mib(behind * widest.index.bytes / rows as f64)),
            three(wal.low()),
            three(wal.high()),
            three(ascending.1.wal),
            three(uuid.1.wal),
            self.ratio(rebuilt.1),
            self.ratio(lower.1),
            self.ratio(half.1),
            slow_rate = per_second(slow.into()),
            middle_rate = per_second(middle.into()),
            fast_rate = per_second(fast.into()),
            page_rows = three(rows as f64 * PAGE_BYTES / self.ascending()),
        ))
    }

    /// Bars of the servers of one number, and of other keys.
    fn figure(&self, rows: usize) -> Figure {
        let colours = [
            RGBColor(0x56, 0xB4, 0xE9),
            RGBColor(0x00, 0x72, 0xB2),
            RGBColor(0x00, 0x3F, 0x66),
        ];
        let bar = |name: &str, colour, seen: &Seen| {
            let value: Samples = [seen.index.bytes / self.ascending()].into_iter().collect();
            Bar::new(name, colour, &value)
        };
        let of_rates = RATES.iter().map(|&rate| {
            let fleets = self.fleets.iter();
            let bars = fleets
                .filter(|(fleet, _)| fleet.servers == MANY && fleet.rate == rate)
                .zip(colours)
                .map(|((fleet, seen), colour)| {
                    bar(
                        &format!("clocks within ±{} ms", fleet.skew_millis),
                        colour,
                        seen,
                    )
                });
            let heading = format!("{} IDs a second", per_second(rate.into()));
            (heading, bars.collect())
        });
        let mut groups: Vec<_> = of_rates.collect();
        let others = self
            .references
            .iter()
            .map(|(name, seen)| bar(&name.replace('`', ""), RGBColor(0x99, 0x99, 0x99), seen));
        groups.push(("Other keys".to_owned(), others.collect()));
        Figure {
            file: "index",
            about: "Size of a collector's index, for each rate of the IDs and each skew of the clocks",
            chart: Chart::Bars(Bars {
                title: format!(
                    "Index of {} rows of {MANY} servers",
                    per_second(rows as f64)
                ),
                unit: "size, relative to ascending keys of one session",
                one_scale: true,
                groups,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_groups_of_three() {
        let written = [0, 12, 999, 1_000, 131_072, 4_190_000_000].map(whole);
        assert_eq!(
            written,
            ["0", "12", "999", "1,000", "131,072", "4,190,000,000"]
        );
    }
}
