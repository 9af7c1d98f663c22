//! What one ID costs, beside `nextval()` and a function that does nothing:
//! the same query in the same server, in turn, so that whatever else the
//! machine does meets all three alike. Reports; fails on no time.

use std::time::Instant;

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;

const CALLS: u32 = 3_000_000;
const ROUNDS: usize = 5;

struct Contender {
    what: &'static str,
    call: &'static str,
    milliseconds: Vec<f64>,
}

impl Contender {
    fn new(what: &'static str, call: &'static str) -> Self {
        Self {
            what,
            call,
            milliseconds: Vec::new(),
        }
    }

    fn run(&self, client: &mut Client) -> Result<f64> {
        let query = format!(
            "SELECT count({}) FROM generate_series(1, {CALLS})",
            self.call
        );
        let begun = Instant::now();
        let count: i64 = client.query_one(&query, &[])?.get(0);
        let took = begun.elapsed().as_secs_f64() * 1e3;
        assert_eq!(count, i64::from(CALLS));
        Ok(took)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.milliseconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }

    fn extreme(&self, better: fn(f64, f64) -> f64) -> f64 {
        self.milliseconds
            .iter()
            .copied()
            .reduce(better)
            .unwrap_or(f64::NAN)
    }
}

fn main() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE SEQUENCE plain;
         SET jit = off;
         SET max_parallel_workers_per_gather = 0",
    )?;
    let mut contenders = [
        Contender::new("a function that returns a constant", "pg_backend_pid()"),
        Contender::new("snowflake_nextval()", "snowflake_nextval()"),
        Contender::new("nextval() of a plain sequence", "nextval('plain')"),
    ];
    println!(
        "PostgreSQL {}: SELECT count(...) FROM generate_series(1, {CALLS}), {ROUNDS} rounds in turn",
        cluster.installation().version
    );
    for contender in &contenders {
        contender.run(&mut client)?;
    }
    for _ in 0..ROUNDS {
        for contender in &mut contenders {
            let took = contender.run(&mut client)?;
            contender.milliseconds.push(took);
        }
    }
    println!(
        "{:36} {:>10} {:>22} {:>9}",
        "", "median ms", "from - to", "ns a call"
    );
    for contender in &contenders {
        println!(
            "{:36} {:>10.0} {:>22} {:>9.1}",
            contender.what,
            contender.median(),
            format!(
                "{:.0} - {:.0}",
                contender.extreme(f64::min),
                contender.extreme(f64::max)
            ),
            contender.median() * 1e6 / f64::from(CALLS)
        );
    }
    let [constant, snowflake, sequence] = contenders.each_ref().map(Contender::median);
    println!(
        "snowflake_nextval() takes {:.2} of nextval()'s time, {:.2} of the constant function's",
        snowflake / sequence,
        snowflake / constant
    );
    Ok(())
}
