//! Readers after a failover to a server with a slow clock: the recipe of docs/reading.md.
//!
//! No cheaper tier sees it: it needs a standby that has not received everything, its
//! promotion, and the time of that in its log.
//!
//! The old primary's clock is ahead, and the new one's is the machine's. So the time in
//! the new one's log is of the clock by which it makes IDs, as on a real server: the
//! clock of the test build moves the extension's readings only.

use std::collections::BTreeSet;

use snowflake_tests::ids::fetch;

use super::{PRINTED_ID, PRINTED_QUERY, builder};
use crate::support::*;

/// How far the new primary's clock is behind from the start.
const BEHIND: Duration = Duration::from_secs(30);
/// For how long the old primary worked without its standby. No machine is so slow that
/// the new primary's IDs pass those of this time before the test ends.
const LAG: Duration = Duration::from_secs(600);
const LIMIT: Duration = Duration::from_secs(120);
/// The time of the promotion in the recipe.
const PRINTED_TIME: &str = "2026-11-20 07:13:20.593 UTC";

/// A reader by the printed query.
#[derive(Clone)]
struct Reader {
    query: String,
    last: i64,
    seen: BTreeSet<i64>,
    /// How many rows came again.
    again: usize,
}

impl Reader {
    fn new() -> Result<Self> {
        Ok(Self {
            query: document::block("docs/reading.md", PRINTED_QUERY)?,
            last: 0,
            seen: BTreeSet::new(),
            again: 0,
        })
    }

    /// Reads until no row comes.
    fn read(&mut self, client: &mut Client) -> Result<()> {
        loop {
            let query = self.query.replace(PRINTED_ID, &self.last.to_string());
            let rows = client.query(&query, &[])?;
            let Some(last) = rows.last() else {
                return Ok(());
            };
            self.last = last.get("id");
            for row in &rows {
                if !self.seen.insert(row.get("id")) {
                    self.again += 1;
                }
            }
        }
    }

    /// Reads until it has seen all these rows.
    fn read_all(&mut self, client: &mut Client, ids: &[i64]) -> Result<()> {
        wait::until("the reader to see all rows", LIMIT, || {
            self.read(client)?;
            Ok(self.lost(ids) == 0)
        })
    }

    fn lost(&self, ids: &[i64]) -> usize {
        ids.iter().filter(|id| !self.seen.contains(id)).count()
    }

    /// Sets the position back, as printed.
    fn set_back(&mut self, client: &mut Client, promoted_at: &str) -> Result<()> {
        let printed = document::block("docs/reading.md", "AS reader (last_id)")?;
        ensure!(printed.contains(PRINTED_TIME), "{printed}");
        let query = printed
            .replace(PRINTED_TIME, promoted_at)
            .replace(PRINTED_ID, &self.last.to_string());
        self.last = client.query_one(&query, &[])?.get(0);
        Ok(())
    }
}

/// The time in the line of the log that the document shows.
fn promoted_at(server: &Server) -> Result<String> {
    let log = server.log_since_start()?;
    let line = log
        .lines()
        .find(|line| line.ends_with("LOG:  received promote request"))
        .context("no promotion in the log")?;
    let (time, _) = line.split_once(" [").context("no time in the log")?;
    Ok(time.to_owned())
}

fn insert_rows(client: &mut Client, note: &str, rows: i64) -> Result<()> {
    client.batch_execute(&format!(
        "INSERT INTO orders (note) SELECT '{note}' FROM generate_series(1, {rows})"
    ))?;
    Ok(())
}

/// What readers of the new primary have lost.
struct Outcome {
    with_the_step: usize,
    without_it: usize,
    /// Rows of the new primary.
    after: usize,
}

fn fail_over(is_synchronous: bool) -> Result<Outcome> {
    let rows: i64 = tier::size(1_000, 50_000);
    let mut primary = builder()
        .can_be_copied()
        .movable_clock()
        .start_with_extension()?;
    primary.clock().set_offset(Offset::forward(BEHIND))?;
    let mut client = primary.connect()?;
    client.batch_execute(
        "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)",
    )?;
    insert_rows(&mut client, "replicated", rows)?;
    let mut standby = Cluster::node(2).prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    if is_synchronous {
        primary.set_conf("synchronous_standby_names", "*")?;
        primary.reload()?;
    } else {
        // The network fails.
        standby.stop(Stop::Fast)?;
    }
    primary.clock().pass(LAG)?;
    insert_rows(&mut client, "of the lag", rows)?;
    let of_primary = fetch(&mut client, "SELECT id FROM orders")?;
    let mut reader = Reader::new()?;
    reader.read_all(&mut client, &of_primary)?;
    drop(client);
    primary.stop(Stop::Immediate)?;

    if !is_synchronous {
        standby.start()?;
    }
    standby.promote()?;
    let promoted_at = promoted_at(&standby)?;
    let mut client = standby.connect()?;
    let kept = client.number("SELECT count(*) FROM orders")?;
    assert_eq!(kept, if is_synchronous { 2 * rows } else { rows });
    for _ in 0..100 {
        insert_rows(&mut client, "after", 1)?;
    }
    for _ in 0..4 {
        insert_rows(&mut client, "after", rows / 2)?;
    }
    let of_standby = fetch(&mut client, "SELECT id FROM orders")?;
    let after = of_standby.len() - usize::try_from(kept)?;

    let mut without = reader.clone();
    let position = reader.last;
    reader.set_back(&mut client, &promoted_at)?;
    let set_back = reader.last < position;
    reader.read_all(&mut client, &of_standby)?;
    // All of these rows are below the answer now.
    without.read(&mut client)?;
    let outcome = Outcome {
        with_the_step: reader.lost(&of_standby),
        without_it: without.lost(&of_standby),
        after,
    };
    println!(
        "failover, {}: {} rows of the old primary, {} of them kept, {} of the new one; promoted at {promoted_at}, position set back: {set_back}; \
         lost {} with that ({} rows came again), {} without it",
        if is_synchronous {
            "synchronous"
        } else {
            "asynchronous"
        },
        grouped(of_primary.len()),
        grouped(kept as u64),
        grouped(after),
        grouped(outcome.with_the_step),
        grouped(reader.again),
        grouped(outcome.without_it),
    );
    Ok(outcome)
}

#[test]
fn no_row_is_lost_after_a_failover_if_positions_are_set_back() -> Result<()> {
    let outcome = fail_over(false)?;
    assert_eq!(outcome.with_the_step, 0);
    assert_eq!(
        outcome.without_it, outcome.after,
        "without the step, each row of the new primary is below the position"
    );
    Ok(())
}

/// Then the reservation in the log of the new primary is above what was read.
#[test]
fn no_row_is_lost_after_a_failover_to_a_synchronous_standby() -> Result<()> {
    let outcome = fail_over(true)?;
    assert_eq!((outcome.with_the_step, outcome.without_it), (0, 0));
    Ok(())
}
