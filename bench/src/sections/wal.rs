//! What the measurements wrote to the write-ahead log.

use std::cell::RefCell;
use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use postgres::Client;

use crate::measure::Samples;
use crate::peers::Peer;
use crate::plot::{Bar, Bars, Chart};
use crate::report::{Block, Figure, Goal, Limit, Section, Table, ratio_cell, spread, three};
use crate::run::Run;
use crate::sections::clients::worst;

/// How rows were inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Whether with a primary key.
    Copy(bool),
    Select,
    SingleRows,
}

impl Way {
    fn describe(self) -> &'static str {
        match self {
            Self::Copy(false) => "COPY without an index",
            Self::Copy(true) => "COPY with a primary key",
            Self::Select => "INSERT … SELECT",
            Self::SingleRows => "single-row INSERTs",
        }
    }
}

/// Bytes a row, by how rows were inserted and how IDs were generated.
#[derive(Debug, Default)]
pub struct Usage(RefCell<BTreeMap<Way, BTreeMap<Peer, Samples>>>);

impl Usage {
    /// Does something. Returns also how many bytes of WAL were written during it.
    pub fn during<T>(
        &self,
        client: &mut Client,
        what: impl FnOnce() -> Result<T>,
    ) -> Result<(T, i64)> {
        let mut position = || -> Result<i64> {
            let query = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
            Ok(client.query_one(query, &[])?.get(0))
        };
        let before = position()?;
        let answer = what()?;
        Ok((answer, position()? - before))
    }

    /// Records a measurement.
    pub fn record(&self, way: Way, peer: Peer, bytes_a_row: f64) {
        let mut ways = self.0.borrow_mut();
        ways.entry(way)
            .or_default()
            .entry(peer)
            .or_default()
            .push(bytes_a_row);
    }
}

/// The section, from what was recorded.
pub fn section(run: &Run) -> Result<Section> {
    let ways = run.wal.0.borrow();
    ensure!(
        !ways.is_empty(),
        "no section with inserts was measured: choose inserts, select or copy in addition to wal"
    );
    let mut head = vec![String::new()];
    head.extend(ways.keys().map(|way| way.describe().to_owned()));
    let mut table = Table::of(head);
    let none = Samples::default();
    let of = |way: &Way, peer: Peer| ways[way].get(&peer).unwrap_or(&none).clone();
    for &peer in run.peers() {
        let mut cells = vec![peer.name().to_owned()];
        cells.extend(ways.keys().map(|way| spread(&of(way, peer), three)));
        table.row(&cells);
    }
    let mut cells = vec![format!(
        "ratio of {} to {}",
        Peer::Snowflake.name(),
        Peer::Sequence.name()
    )];
    cells.extend(
        ways.keys()
            .map(|way| ratio_cell(&of(way, Peer::Snowflake), &of(way, Peer::Sequence))),
    );
    table.row(&cells);
    let groups = ways.iter().map(|(way, peers)| {
        let bars = peers
            .iter()
            .map(|(peer, samples)| Bar::new(peer.name(), peer.colour(), samples));
        (way.describe().to_owned(), bars.collect())
    });
    let chart = Chart::Bars(Bars {
        title: "WAL bytes a row".to_owned(),
        unit: "bytes a row; the line is the range of the measurements",
        one_scale: true,
        groups: groups.collect(),
    });
    let ratios = ways.keys().map(|way| {
        let ratio = of(way, Peer::Snowflake).ratio_to(&of(way, Peer::Sequence));
        // Negative, because here the worst is the highest.
        (way.describe().to_owned(), ratio.map(|ratio| -ratio))
    });
    let verdict = worst(ratios).map(|(way, negative)| {
        Goal {
            what: format!("WAL bytes a row, relative to `bigserial`; the highest of {} ({way})", ways.len()),
            limit: Limit::AtMost(1.0),
            why: "IDs of concurrent sessions do not reach the end of the index in their order, which splits pages that `bigserial` \
                  fills. The mark's record is written about once a second, however few rows are inserted"
                .to_owned(),
        }
        .judge(&negative.map(|ratio| -ratio))
    });
    Ok(Section {
        title: "WAL bytes a row",
        blocks: vec![
            Block::Text(
                "The bytes that the server wrote to the write-ahead log during the measurements above, by \
                 `pg_current_wal_insert_lsn()`, divided by the rows. The figures of single rows cover all numbers of clients, \
                 and include commit records."
                    .to_owned(),
            ),
            Block::Table(table),
            Block::Figure(Figure {
                file: "wal",
                about: "Bytes of write-ahead log a row, by how rows are inserted",
                chart,
            }),
        ],
        verdicts: verdict.into_iter().collect(),
        ..Section::default()
    })
}
