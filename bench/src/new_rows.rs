//! Reading new rows by key: how long after its commit a row can be read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;

use crate::format::{per_second, spread, three};
use crate::measure::Samples;
use crate::report::{Block, Table};
use crate::run::{Count, Run};

const WRITERS: u64 = 4;
/// The longest transaction.
const LONGEST: Duration = Duration::from_millis(10);
/// How often a reader asks.
const INTERVAL: Duration = Duration::from_millis(2);
/// How long a round lasts.
const ROUND: Duration = Duration::from_secs(4);
/// How long the readers continue after the writers have ended.
const DRAIN: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Bare,
    Xid8,
    Resolved,
}

const WAYS: [Way; 3] = [Way::Bare, Way::Xid8, Way::Resolved];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Bare => "`id > last`, which loses rows",
            Way::Xid8 => "an `xid8` column below `pg_snapshot_xmin()`",
            Way::Resolved => "`id > last AND id < snowflake_resolved_id()`",
        }
    }

    fn query(self) -> &'static str {
        match self {
            Way::Bare => "SELECT id, '' FROM news WHERE id > $1::bigint AND $2::text IS NOT NULL ORDER BY id LIMIT 1000",
            Way::Xid8 => {
                "SELECT id, xid::text AS position FROM news
                 WHERE (xid, id) > ($2::text::xid8, $1::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
                 ORDER BY xid, id LIMIT 1000"
            }
            Way::Resolved => {
                "SELECT id, '' FROM news WHERE id > $1::bigint AND id < snowflake_resolved_id() AND $2::text IS NOT NULL
                 ORDER BY id LIMIT 1000"
            }
        }
    }
}

/// What a way was like in all rounds.
#[derive(Default, Clone)]
struct Seen {
    median: Samples,
    most: Samples,
    rows: usize,
    lost: usize,
}

const ROUNDS: Count = Count(5, 2);

/// The table of all ways.
pub fn blocks(run: &Run) -> Result<Vec<Block>> {
    let text = format!(
        "{WRITERS} writers insert a row, wait up to {} ms, and commit. Three readers, one for each way, ask every {} ms with prepared \
         statements. The time is from the end of the client's COMMIT until the reader has the row. A row that has not been read {} ms \
         after the last commit of a round is not read by its end. There are {} rounds of {} s. In the second half of the table, a \
         transaction that has inserted into another table stays open.",
        LONGEST.as_millis(),
        INTERVAL.as_millis(),
        DRAIN.as_millis(),
        run.count(ROUNDS),
        ROUND.as_secs()
    );
    Ok(vec![Block::Text(text), Block::Table(latency(run)?)])
}

fn latency(run: &Run) -> Result<Table> {
    let mut client = run.common().connect()?;
    client.batch_execute(include_str!("../sql/new_rows.sql"))?;
    let mut table = Table::new(&[
        "",
        "median, ms",
        "99 %, ms",
        "rows committed",
        "not read by the end",
    ]);
    for held in [false, true] {
        let mut seen = vec![Seen::default(); WAYS.len()];
        for number in 1..=run.count(ROUNDS) {
            run.step(format_args!(
                "round {number}, unrelated transaction: {held}"
            ));
            round(run, held, &mut seen)?;
            client.batch_execute("TRUNCATE news")?;
        }
        let beside = if held {
            ", beside an unrelated open transaction"
        } else {
            ""
        };
        for (way, seen) in WAYS.iter().zip(&seen) {
            table.row(&[
                format!("{}{beside}", way.name()),
                spread(&seen.median, three),
                spread(&seen.most, three),
                per_second(seen.rows as f64),
                per_second(seen.lost as f64),
            ]);
        }
    }
    client.batch_execute("DROP TABLE news, unrelated")?;
    Ok(table)
}

/// One round; adds to what was seen.
fn round(run: &Run, held: bool, seen: &mut [Seen]) -> Result<()> {
    let mut unrelated = run.common().connect()?;
    if held {
        unrelated.batch_execute("BEGIN; INSERT INTO unrelated VALUES (1)")?;
    }
    let stop = AtomicBool::new(false);
    let (commits, reads) = thread::scope(|scope| -> Result<_> {
        let readers: Vec<_> = WAYS
            .iter()
            .map(|&way| {
                let (client, stop) = (run.common().connect(), &stop);
                scope.spawn(move || read(client?, way, stop))
            })
            .collect();
        let writers: Vec<_> = (0..WRITERS)
            .map(|seed| {
                let client = run.common().connect();
                scope.spawn(move || write(client?, seed))
            })
            .collect();
        let mut commits = HashMap::new();
        let mut failed = None;
        for writer in writers {
            match writer.join().expect("no writer panics") {
                Ok(of_writer) => commits.extend(of_writer),
                Err(error) => failed = Some(error),
            }
        }
        thread::sleep(DRAIN);
        stop.store(true, Relaxed);
        let mut reads = Vec::new();
        for reader in readers {
            reads.push(reader.join().expect("no reader panics")?);
        }
        failed.map_or(Ok((commits, reads)), Err)
    })?;
    for (of_way, seen) in reads.iter().zip(seen) {
        let mut times: Vec<f64> = of_way
            .iter()
            .filter_map(|(id, at)| Some(at.saturating_duration_since(*commits.get(id)?)))
            .map(|time| time.as_secs_f64() * 1e3)
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        if !times.is_empty() {
            seen.median.push(at(0.5));
            seen.most.push(at(0.99));
        }
        seen.rows += commits.len();
        seen.lost += commits.len() - times.len();
    }
    Ok(())
}

/// The IDs that were committed, and when.
fn write(mut client: Client, seed: u64) -> Result<Vec<(i64, Instant)>> {
    let insert = client.prepare("INSERT INTO news DEFAULT VALUES RETURNING id")?;
    let mut commits = Vec::new();
    let mut random = seed * 2 + 1;
    let begun = Instant::now();
    while begun.elapsed() < ROUND {
        // Knuth's linear congruential generator: any spread of lengths will do.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let length = LONGEST.mul_f64((random >> 40) as f64 / (1_u64 << 24) as f64);
        let mut transaction = client.transaction()?;
        let id = transaction.query_one(&insert, &[])?.get(0);
        thread::sleep(length);
        transaction.commit()?;
        commits.push((id, Instant::now()));
    }
    Ok(commits)
}

/// The IDs that were read, and when.
fn read(mut client: Client, way: Way, stop: &AtomicBool) -> Result<Vec<(i64, Instant)>> {
    let query = client.prepare(way.query())?;
    let (mut last, mut last_xid) = (0_i64, "0".to_owned());
    let mut reads = Vec::new();
    while !stop.load(Relaxed) {
        let rows = client.query(&query, &[&last, &last_xid])?;
        let now = Instant::now();
        for row in rows {
            last = row.get(0);
            if way == Way::Xid8 {
                last_xid = row.get(1);
            }
            reads.push((last, now));
        }
        thread::sleep(INTERVAL);
    }
    Ok(reads)
}
