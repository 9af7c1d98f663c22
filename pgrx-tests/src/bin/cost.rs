//! What one ID costs, beside `nextval()` and a function that does nothing:
//! the same query in the same server, in turn, so that whatever else the
//! machine does meets all alike. Then what reading an ID costs, what moving the mark costs, by a lease
//! that never runs out meanwhile, and the longest of a minute's single calls.
//! Reports; fails on no time.

use std::time::{Duration, Instant};

use anyhow::Result;
use postgres::Client;
use snowflake_tests::Cluster;

const CALLS: u32 = 3_000_000;
const SERIES: &str = "generate_series(1, 3000000)";
const ROUNDS: usize = 5;

/// How long single calls are timed.
const STEADY: Duration = Duration::from_secs(60);

struct Contender {
    what: &'static str,
    call: &'static str,
    from: &'static str,
    milliseconds: Vec<f64>,
}

impl Contender {
    fn new(what: &'static str, call: &'static str) -> Self {
        Self {
            what,
            call,
            from: SERIES,
            milliseconds: Vec::new(),
        }
    }

    /// A function of the column `id` of a table of as many rows.
    fn of_rows(what: &'static str, call: &'static str) -> Self {
        Self {
            from: "made",
            ..Self::new(what, call)
        }
    }

    fn run(&self, client: &mut Client) -> Result<f64> {
        let query = format!("SELECT count({}) FROM {}", self.call, self.from);
        let begun = Instant::now();
        let count: i64 = client.query_one(&query, &[])?.get(0);
        let took = begun.elapsed().as_secs_f64() * 1e3;
        assert_eq!(count, i64::from(CALLS), "{query}");
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

/// Runs them in turn, as often as `ROUNDS` says, after one round to warm up.
/// `before` gets the contender's number and prepares the server for it.
fn in_turn(
    client: &mut Client,
    contenders: &mut [Contender],
    mut before: impl FnMut(&mut Client, usize) -> Result<()>,
) -> Result<()> {
    for round in 0..=ROUNDS {
        for (number, contender) in contenders.iter_mut().enumerate() {
            before(client, number)?;
            let took = contender.run(client)?;
            if round > 0 {
                contender.milliseconds.push(took);
            }
        }
    }
    println!(
        "{:36} {:>10} {:>22} {:>9}",
        "", "median ms", "from - to", "ns a call"
    );
    for contender in contenders {
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
    Ok(())
}

fn set_lease(client: &mut Client, lease: &str) -> Result<()> {
    client.batch_execute(&format!("ALTER SYSTEM SET snowflake.lease = '{lease}'"))?;
    client.batch_execute("SELECT pg_reload_conf()")?;
    loop {
        let shown: String = client.query_one("SHOW snowflake.lease", &[])?.get(0);
        if shown == lease {
            // The first ID with the new lease resolves and reserves anew.
            client.query_one("SELECT snowflake_nextval()", &[])?;
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn main() -> Result<()> {
    // Flushes are part of what moving the mark costs.
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("fsync", "on")
        .time_limit(Duration::from_secs(3_600))
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE SEQUENCE plain;
         SET jit = off;
         SET max_parallel_workers_per_gather = 0",
    )?;
    println!(
        "PostgreSQL {}: SELECT count(...) FROM {SERIES}, {ROUNDS} rounds in turn",
        cluster.installation().version
    );
    let mut contenders = [
        Contender::new("a function that returns a constant", "pg_backend_pid()"),
        Contender::new("snowflake_nextval()", "snowflake_nextval()"),
        Contender::new("nextval() of a plain sequence", "nextval('plain')"),
    ];
    in_turn(&mut client, &mut contenders, |_, _| Ok(()))?;
    let [constant, snowflake, sequence] = contenders.each_ref().map(Contender::median);
    println!(
        "snowflake_nextval() takes {:.2} of nextval()'s time, {:.2} of the constant function's\n",
        snowflake / sequence,
        snowflake / constant
    );

    client.batch_execute(&format!(
        "CREATE TABLE made AS SELECT snowflake_nextval() AS id FROM {SERIES}"
    ))?;
    client.batch_execute("VACUUM ANALYZE made")?;
    println!("SELECT count(...) FROM made, a table of as many IDs");
    let mut contenders = [
        Contender::of_rows("a function that returns a constant", "pg_backend_pid()"),
        Contender::of_rows("int8abs(id), a C function of core", "int8abs(id)"),
        Contender::of_rows("snowflake_timestamp(id)", "snowflake_timestamp(id)"),
        Contender::of_rows(
            "snowflake_timestamp(id, 'default')",
            "snowflake_timestamp(id, 'default')",
        ),
        Contender::of_rows("snowflake_node_id(id)", "snowflake_node_id(id)"),
        Contender::of_rows(
            "snowflake_node_id(id, 'default')",
            "snowflake_node_id(id, 'default')",
        ),
        Contender::of_rows(
            "snowflake_decode(id, 'default')",
            "snowflake_decode(id, 'default')",
        ),
        Contender::of_rows("snowflake_to_text(id)", "snowflake_to_text(id)"),
    ];
    in_turn(&mut client, &mut contenders, |_, _| Ok(()))?;
    let constant = contenders[0].median();
    for accessor in &contenders[1..] {
        println!(
            "{} takes {:.2} of the constant function's time",
            accessor.what,
            accessor.median() / constant
        );
    }
    println!();

    let leases = ["2s", "1h"];
    let mut contenders = [
        Contender::new("with snowflake.lease = '2s'", "snowflake_nextval()"),
        Contender::new("with snowflake.lease = '1h'", "snowflake_nextval()"),
    ];
    in_turn(&mut client, &mut contenders, |client, number| {
        set_lease(client, leases[number])?;
        // One session asks for more than its slot makes in the long run (4,096
        // a millisecond), so the clock has to catch up first: a call that waits
        // for time would hide what is measured.
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    })?;
    let [moving, still] = contenders.each_ref().map(Contender::median);
    println!(
        "moving the mark: {:.3} of the time of the same without\n",
        moving / still
    );

    set_lease(&mut client, "2s")?;
    let statement = client.prepare("SELECT snowflake_nextval()")?;
    let mut calls = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < STEADY {
        let call = Instant::now();
        client.query_one(&statement, &[])?;
        calls.push(call.elapsed());
    }
    calls.sort_unstable();
    println!(
        "{} single calls in {} s, round trip included: median {:?}, 99.9 % within {:?}, longest {:?}",
        calls.len(),
        STEADY.as_secs(),
        calls[calls.len() / 2],
        calls[calls.len() * 999 / 1000],
        calls[calls.len() - 1]
    );
    Ok(())
}
