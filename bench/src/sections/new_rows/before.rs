//! What an ID and a row cost beside an earlier build of the extension.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::{Client, Statement};
use snowflake_tests::Installation;

use crate::measure::{Samples, in_turn};
use crate::report::{Block, Table, ratio, spread, three};
use crate::run::Run;

/// The `pg_config` of the tree with the earlier build.
const VARIABLE: &str = "SNOWFLAKE_BEFORE_PG_CONFIG";

/// Statements, each in a transaction of its own, and how often they are executed in a
/// round.
const STATEMENTS: [(&str, &str, u32); 3] = [
    ("one call", "SELECT snowflake_nextval()", 200),
    ("a row", "INSERT INTO rows DEFAULT VALUES", 100),
    (
        "100,000 calls in a transaction",
        "SELECT count(snowflake_nextval()) FROM generate_series(1, 100000)",
        1,
    ),
];

/// Short rounds, because other work on the machine slows whole seconds down.
const ROUNDS: usize = 301;

/// How long it takes.
pub fn expected(_run: &Run) -> Duration {
    match std::env::var_os(VARIABLE) {
        Some(_) => Duration::from_secs(40),
        None => Duration::ZERO,
    }
}

/// What it shows; nothing without the variable.
pub fn blocks(run: &Run) -> Result<Vec<Block>> {
    let Some(pg_config) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    let earlier = run.with_installation(Installation::from_pg_config(&pg_config)?)?;
    let mut clients = [earlier.connect()?, run.connect()?];
    for client in &mut clients {
        // What is compared is the processor's work, not the disk's.
        client.batch_execute(
            "CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval()); SET synchronous_commit = off",
        )?;
    }
    let mut table = Table::new(&["µs", "before", "now", "ratio"]);
    for (name, statement, times) in STATEMENTS {
        run.progress().step(name);
        let statements = clients
            .iter_mut()
            .map(|client| client.prepare(statement))
            .collect::<Result<Vec<Statement>, _>>()?;
        let samples = in_turn(
            &[()],
            &[0, 1],
            2,
            |_| ROUNDS,
            |(), which, _| execute(&mut clients[which], &statements[which], times),
        )?
        .remove(0);
        let [before, now] = &samples[..] else {
            unreachable!("two contenders");
        };
        let quotient: Samples = now.ratio_to(before);
        table.row(&[
            name.to_owned(),
            spread(before, three),
            spread(now, three),
            ratio(quotient.median()),
        ]);
    }
    Ok(vec![
        Block::Text(format!(
            "**Those that write.** Beside the build in the tree of `{VARIABLE}`, in turn, {ROUNDS} rounds each; a session each, prepared \
             statements, `synchronous_commit = off`. The ratio is the median of the rounds' ratios."
        )),
        Block::Table(table),
    ])
}

/// Microseconds for each execution.
fn execute(client: &mut Client, statement: &Statement, times: u32) -> Result<f64> {
    let begun = Instant::now();
    for _ in 0..times {
        client.execute(statement, &[])?;
    }
    Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(times))
}
