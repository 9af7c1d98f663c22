//! The primary key's index after many concurrent writers.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;

use crate::measure::{Samples, in_turn};
use crate::peers::{Key, Peer, TABLE, insert};
use crate::pgbench::{Outcome, Repeats, Until, pgbench, pgbench_at_once};
use crate::plot::{Bar, Bars, Chart};
use crate::report::{
    Block, Figure, Goal, Highlight, Limit, Section, Table, Verdict, per_second, ratio, ratio_cell,
    spread, three,
};
use crate::run::Run;
use crate::sections::copy;

/// The writers in the measurements with all contenders.
const WRITERS: u64 = 16;

/// Rows of one transaction. The order in which concurrent sessions insert their
/// IDs into the index depends on it.
const BATCHES: [u64; 2] = [100, 1];

/// How large the index may be, relative to `bigserial`.
const BATCHES_LIMIT: f64 = 1.01;
const LIMIT: f64 = 1.02;

/// Other mixes, of ours and `bigserial` only.
const MIXES: &[Mix] = &[
    Mix::inserts(4, 10),
    Mix::inserts(16, 10),
    Mix::inserts(64, 10),
    Mix::inserts(4, 100),
    Mix::inserts(64, 100),
    Mix::inserts(4, 10_000),
    Mix::inserts(16, 10_000),
    Mix::inserts(64, 10_000),
    Mix {
        what: What::Copy,
        writers: 8,
    },
    Mix {
        what: What::Inserts {
            batch: 100,
            single_writers: 8,
        },
        writers: 8,
    },
];

/// Concurrent writers.
#[derive(Debug, Clone, Copy)]
struct Mix {
    what: What,
    writers: u64,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// Transactions of that many rows, beside that many writers of single rows.
    Inserts { batch: u64, single_writers: u64 },
    /// A COPY each.
    Copy,
}

impl Mix {
    const fn inserts(writers: u64, batch: u64) -> Self {
        Self {
            what: What::Inserts {
                batch,
                single_writers: 0,
            },
            writers,
        }
    }

    fn describe(self) -> String {
        let writers = self.writers;
        match self.what {
            What::Copy => format!("{writers} writers, COPY"),
            What::Inserts {
                batch,
                single_writers: 0,
            } => {
                format!("{writers} writers, {batch} rows a transaction")
            }
            What::Inserts {
                batch,
                single_writers,
            } => format!(
                "{writers} writers, {batch} rows a transaction, beside {single_writers} of single rows"
            ),
        }
    }

    /// Fills the table. Returns the number of rows, and how long it took.
    fn write(self, run: &Run) -> Result<(u64, f64)> {
        let total = run.scale().mix_rows;
        match self.what {
            What::Copy => {
                let rows = u32::try_from(total / self.writers)?;
                let script = copy::statement(&copy::file_of_rows(run, rows)?);
                let outcome = write(run, &script, self.writers, 1)?;
                Ok((u64::from(rows) * self.writers, outcome.seconds()))
            }
            What::Inserts {
                batch,
                single_writers,
            } => {
                let transactions = (total / (batch * self.writers)).max(1);
                let many = insert(batch);
                let mut rows = transactions * batch * self.writers;
                let mut parts = vec![(many.as_str(), self.writers, transactions)];
                let one = insert(1);
                // This takes about as long as the batches.
                if let Some(singles) = (total / 100).checked_div(single_writers) {
                    rows += singles * single_writers;
                    parts.push((one.as_str(), single_writers, singles));
                }
                let parts: Vec<_> = parts
                    .into_iter()
                    .map(|(script, clients, count)| {
                        Ok((
                            script,
                            usize::try_from(clients)?,
                            Until::Transactions(count),
                        ))
                    })
                    .collect::<Result<_>>()?;
                let outcomes =
                    pgbench_at_once(run.cluster(), &parts, &[("synchronous_commit", "off")])?;
                let seconds = outcomes.iter().map(Outcome::seconds).fold(0.0, f64::max);
                Ok((rows, seconds))
            }
        }
    }
}

fn contenders(run: &Run) -> Vec<Peer> {
    run.peers_of(&[
        Peer::Snowflake,
        Peer::Sequence,
        Peer::CachedSequence,
        Peer::RandomUuid,
        Peer::UuidV7,
        Peer::PlPgSql,
    ])
}

/// An index has almost the same size each time, so the others take part once.
fn rounds_of(run: &Run, peer: Peer) -> usize {
    match peer {
        Peer::Snowflake | Peer::Sequence => run.scale().rounds,
        _ => 1,
    }
}

/// How many transactions each writer runs.
fn transactions(run: &Run, batch: u64) -> u64 {
    let rows = match batch {
        1 => run.scale().index_single_rows,
        _ => run.scale().index_rows,
    };
    rows / (batch * WRITERS)
}

/// How long it takes.
pub fn expected(run: &Run) -> Duration {
    let scale = run.scale();
    let turns: usize = contenders(run)
        .iter()
        .map(|&peer| rounds_of(run, peer))
        .sum();
    let one = 1.0 + scale.index_rows as f64 * 3.5e-6 + scale.index_single_rows as f64 * 25e-6;
    let mix = 1.0 + scale.mix_rows as f64 * 5e-6;
    let mixes = MIXES.len() * 2 * scale.peer_rounds;
    Duration::from_secs_f64(turns as f64 * one + mixes as f64 * mix)
}

/// The properties of an index, except for its size.
#[derive(Default, Clone)]
struct Shape {
    density: Samples,
    fragmentation: Samples,
    rate: Samples,
}

impl Shape {
    /// Adds the properties of the index. Returns its size in bytes.
    fn record(&mut self, client: &mut Client, rows: u64) -> Result<f64> {
        let row = client.query_one(
            &format!(
                "SELECT index_size, avg_leaf_density, leaf_fragmentation, (SELECT count(*) FROM {TABLE})
                 FROM pgstatindex('{TABLE}_pkey')"
            ),
            &[],
        )?;
        let counted: i64 = row.get(3);
        ensure!(
            u64::try_from(counted)? == rows,
            "{counted} rows were inserted, not {rows}"
        );
        self.density.push(row.get(1));
        self.fragmentation.push(row.get(2));
        Ok(row.get::<_, i64>(0) as f64)
    }
}

/// Runs concurrent writers.
fn write(run: &Run, script: &str, writers: u64, transactions: u64) -> Result<Outcome> {
    pgbench(
        run.cluster(),
        script,
        usize::try_from(writers)?,
        Until::Transactions(transactions),
        &[("synchronous_commit", "off")],
    )
}

fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn percent(value: f64) -> String {
    format!("{value:.1} %")
}

/// The section.
pub fn section(run: &Run) -> Result<Section> {
    let mut client = run.connect()?;
    client.batch_execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")?;
    let mut section = Section {
        title: "The index after many writers",
        blocks: vec![Block::Text(
            "Concurrent `pgbench` clients insert into a table with a primary key, with `synchronous_commit = off`. Then \
             `pgstatindex` of the contrib extension `pgstattuple` examines the index. Fragmentation is the share of leaf pages \
             whose successor is before them in the file."
                .to_owned(),
        )],
        ..Section::default()
    };
    for batch in BATCHES {
        filled(run, &mut client, batch, &mut section)?;
    }
    mixes(run, &mut client, &mut section)?;
    Ok(section)
}

/// An index that 16 writers have filled.
struct Filled {
    contenders: Vec<Peer>,
    sizes: Vec<Samples>,
    shapes: Vec<Shape>,
    repeats: Repeats,
}

/// Fills indexes with that many rows a transaction.
fn fill(run: &Run, client: &mut Client, batch: u64) -> Result<Filled> {
    let contenders = contenders(run);
    let transactions = transactions(run, batch);
    let insert = insert(batch);
    let repeats = Repeats::default();
    let mut shapes = vec![Shape::default(); contenders.len()];
    let sizes = in_turn(
        &[()],
        &contenders,
        0,
        |peer| rounds_of(run, peer),
        |(), peer, turn| {
            run.progress().step(format_args!(
                "{batch} rows a transaction, {}, {turn}",
                peer.name()
            ));
            peer.new_table(client, Key::Primary)?;
            run.settle(client)?;
            let outcome = write(run, &insert, WRITERS, transactions);
            let Some(outcome) = repeats.sieve(peer, outcome)? else {
                return Ok(f64::NAN);
            };
            let column = contenders.iter().position(|&other| other == peer);
            let shape = &mut shapes[column.context("a contender")?];
            shape.rate.push(outcome.rate * batch as f64);
            shape.record(client, transactions * batch * WRITERS)
        },
    )?
    .remove(0);
    Ok(Filled {
        contenders,
        sizes,
        shapes,
        repeats,
    })
}

impl Filled {
    fn table(&self) -> Table {
        let mut table = Table::new(&[
            "",
            "index, MiB",
            "ratio to `bigserial`",
            "leaf density",
            "fragmentation",
            "rows a second",
            "rounds",
        ]);
        let rows = self.contenders.iter().zip(&self.sizes).zip(&self.shapes);
        for ((peer, size), shape) in rows {
            table.row(&[
                peer.name().to_owned(),
                spread(&size.map(mib), three),
                ratio_cell(size, &self.sizes[1]),
                spread(&shape.density, percent),
                spread(&shape.fragmentation, percent),
                spread(&shape.rate, per_second),
                size.len().to_string(),
            ]);
        }
        table
    }

    /// Bars of the contenders that were measured and fulfil a condition.
    fn bars(&self, is_wanted: fn(Peer) -> bool) -> Vec<Bar> {
        let pairs = self.contenders.iter().zip(&self.sizes);
        pairs
            .filter(|(peer, size)| is_wanted(**peer) && size.len() > 0)
            .map(|(peer, size)| Bar::new(peer.name(), peer.colour(), &size.map(mib)))
            .collect()
    }

    fn to_bigserial(&self) -> Samples {
        self.sizes[0].ratio_to(&self.sizes[1])
    }
}

/// An index that 16 writers fill with that many rows a transaction.
fn filled(run: &Run, client: &mut Client, batch: u64, section: &mut Section) -> Result<()> {
    let (file, about) = match batch {
        1 => (
            "index-single-rows",
            "Size of the primary key's index after writers of single rows, for each contender",
        ),
        _ => (
            "index-batches",
            "Size of the primary key's index after writers of batches, for each contender",
        ),
    };
    let filled = fill(run, client, batch)?;
    let rows = per_second((transactions(run, batch) * batch * WRITERS) as f64);
    let a_transaction = match batch {
        1 => "a row a transaction".to_owned(),
        _ => format!("{batch} rows a transaction"),
    };
    let figure = |bars| Figure {
        file,
        about,
        chart: Chart::Bars(Bars {
            title: format!("Index of {rows} rows of {WRITERS} writers, {a_transaction}"),
            unit: "MiB; the line is the range of the rounds",
            one_scale: true,
            groups: vec![(String::new(), bars)],
        }),
    };
    section.blocks.extend([
        Block::Text(format!(
            "**{WRITERS} writers, {rows} rows, {a_transaction}** (`{}`)",
            insert(batch)
        )),
        Block::Table(filled.table()),
        Block::Figure(figure(filled.bars(|_| true))),
    ]);
    section
        .blocks
        .extend(filled.repeats.describe().map(Block::Text));
    if batch > 1 {
        section.highlight = Some(Highlight {
            question: "How large is the index?",
            answer: format!(
                "After {WRITERS} concurrent writers with {batch} rows a transaction it is {} of `bigserial`'s size, and its leaf pages \
                 are {} full. Sessions that insert batches get their IDs from one shared slot, in the order of their calls.",
                ratio(filled.to_bigserial().median()),
                percent(filled.shapes[0].density.median())
            ),
            figure: figure(filled.bars(Peer::is_usual)),
        });
    }
    section
        .verdicts
        .extend(verdicts(&filled, batch, &a_transaction));
    Ok(())
}

fn verdicts(filled: &Filled, batch: u64, a_transaction: &str) -> Vec<Verdict> {
    let [ours, theirs] = [&filled.shapes[0].density, &filled.shapes[1].density];
    let limit = if batch > 1 { BATCHES_LIMIT } else { LIMIT };
    let mut verdicts = vec![
        Goal {
            what: format!(
                "index after {WRITERS} concurrent writers, {a_transaction}: size relative to `bigserial`"
            ),
            limit: Limit::AtMost(limit),
            why: format!(
                "leaf pages are filled to {} with ours and to {} with `bigserial`",
                percent(ours.median()),
                percent(theirs.median())
            ),
        }
        .judge(&filled.to_bigserial()),
    ];
    if batch > 1 {
        verdicts.push(
            Goal {
                what: format!(
                    "density of its leaf pages, {WRITERS} writers, {a_transaction}, relative to 100 %"
                ),
                limit: Limit::AtLeast(0.89),
                why: format!("`bigserial`'s are filled to {}", percent(theirs.median())),
            }
            .judge(&ours.map(|percent| percent / 100.0)),
        );
    }
    verdicts
}

/// Other mixes of writers.
fn mixes(run: &Run, client: &mut Client, section: &mut Section) -> Result<()> {
    let contenders = [Peer::Snowflake, Peer::Sequence];
    let mixes: Vec<usize> = (0..MIXES.len()).collect();
    let mut shapes = vec![[Shape::default(), Shape::default()]; MIXES.len()];
    let sizes = in_turn(
        &mixes,
        &contenders,
        0,
        |_| run.scale().peer_rounds,
        |mix, peer, turn| {
            run.progress().step(format_args!(
                "{}, {}, {turn}",
                MIXES[mix].describe(),
                peer.name()
            ));
            peer.new_table(client, Key::Primary)?;
            run.settle(client)?;
            let (rows, seconds) = MIXES[mix].write(run)?;
            let shape = &mut shapes[mix][usize::from(peer == Peer::Sequence)];
            shape.rate.push(rows as f64 / seconds);
            shape.record(client, rows)
        },
    )?;
    let mut table = Table::new(&[
        "",
        "index, ratio to `bigserial`",
        "leaf density",
        "`bigserial`'s",
        "rows a second, ratio to `bigserial`",
    ]);
    let mut worst: Option<(String, Samples)> = None;
    for ((mix, sizes), [ours, theirs]) in MIXES.iter().zip(&sizes).zip(&shapes) {
        let to_bigserial = sizes[0].ratio_to(&sizes[1]);
        table.row(&[
            mix.describe(),
            spread(&to_bigserial, ratio),
            spread(&ours.density, percent),
            spread(&theirs.density, percent),
            spread(&ours.rate.ratio_to(&theirs.rate), ratio),
        ]);
        if worst
            .as_ref()
            .is_none_or(|(_, worst)| worst.median() < to_bigserial.median())
        {
            worst = Some((mix.describe(), to_bigserial));
        }
    }
    section.blocks.extend([
        Block::Text(format!(
            "**Other mixes**, about {} rows each, `snowflake_nextval()` beside `bigserial`",
            per_second(run.scale().mix_rows as f64)
        )),
        Block::Table(table),
    ]);
    let (what, worst) = worst.context("there are mixes")?;
    section.verdicts.push(mixes_verdict(what, &worst));
    Ok(())
}

fn mixes_verdict(what: String, worst: &Samples) -> Verdict {
    Goal {
        what: format!(
            "index after other mixes of writers: size relative to `bigserial`; the highest of {} ({what})",
            MIXES.len()
        ),
        limit: Limit::AtMost(LIMIT),
        why: "not all IDs of concurrent sessions are inserted at the end of the index".to_owned(),
    }
    .judge(worst)
}
