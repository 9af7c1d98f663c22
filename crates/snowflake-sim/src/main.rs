//! `make simulate`: histories from seeds, for as long as one likes.

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use snowflake_sim::choices::Choices;
use snowflake_sim::fault::Fault;
use snowflake_sim::history::{Outcome, run};
use snowflake_sim::protection::Protection;
use snowflake_sim::shrink::shrink;
use snowflake_sim::without_library::{self, Without};

/// Simulates servers that issue snowflake IDs.
#[derive(Parser)]
struct Options {
    /// The first seed; without one, a new one.
    #[arg(long)]
    seed: Option<u64>,
    /// How many histories.
    #[arg(long)]
    histories: Option<u64>,
    /// For how many minutes.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// How many histories at a time.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// What to take away.
    #[arg(long)]
    without: Option<Protection>,
    /// Only the generator of sql/without_library.sql.
    #[arg(long)]
    sql: bool,
    /// What to take away of it.
    #[arg(long)]
    sql_without: Option<Without>,
    /// Only what was violated, not the shortest story of it.
    #[arg(long)]
    brief: bool,
    /// Tells the history of the seed.
    #[arg(long)]
    story: bool,
}

#[derive(Default)]
struct Sums {
    histories: u64,
    ids: u64,
    answers: u64,
    faults: BTreeMap<Fault, u64>,
    pairs: HashMap<(Fault, Fault), u64>,
    failed: Option<(u64, Outcome)>,
}

impl Sums {
    fn add(&mut self, seed: u64, outcome: Outcome) {
        self.histories += 1;
        self.ids += outcome.ids;
        self.answers += outcome.answers;
        let kinds: Vec<_> = outcome.faults.keys().copied().collect();
        for (&kind, count) in &outcome.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        for (index, &one) in kinds.iter().enumerate() {
            for &other in &kinds[index + 1..] {
                *self.pairs.entry((one, other)).or_default() += 1;
            }
        }
        if outcome.violation.is_some() && self.failed.is_none() {
            self.failed = Some((seed, outcome));
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let first = options.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(1, |now| now.as_nanos() as u64 / 1_000 * 1_000_000)
    });
    let in_sql = |minutes| {
        without_library::report::report(
            first,
            minutes,
            options.sql_without,
            options.sql && options.story,
        )
    };
    if options.sql || options.sql_without.is_some() {
        return ended_well(in_sql(options.minutes));
    }
    if options.story {
        let outcome = run(Choices::of_seed(first), options.without, true);
        println!("{}", outcome.story.join("\n"));
        return ended_well(outcome.violation.is_none());
    }
    let until = Instant::now() + Duration::from_secs_f64(options.minutes * 60.0);
    let (sums, ended) = (Mutex::new(Sums::default()), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..options.threads as u64 {
            let (sums, ended, options) = (&sums, &ended, &options);
            scope.spawn(move || {
                let mut seed = first + thread;
                while !ended.load(Relaxed) && Instant::now() < until {
                    if options.histories.is_some_and(|most| seed - first >= most) {
                        break;
                    }
                    let outcome = run(Choices::of_seed(seed), options.without, false);
                    if outcome.violation.is_some() {
                        ended.store(true, Relaxed);
                    }
                    if let Ok(mut sums) = sums.lock() {
                        sums.add(seed, outcome);
                    }
                    seed += options.threads as u64;
                }
            });
        }
    });
    let Ok(sums) = sums.into_inner() else {
        return ExitCode::FAILURE;
    };
    let ended = report(&options, first, sums);
    if options.without.is_some() || options.brief || in_sql(options.minutes / 10.0) {
        return ended;
    }
    ExitCode::FAILURE
}

fn report(options: &Options, first: u64, sums: Sums) -> ExitCode {
    println!(
        "seeds from {first}: {} histories, {} IDs, {} answers to readers, {} faults of {} kinds",
        sums.histories,
        sums.ids,
        sums.answers,
        sums.faults.values().sum::<u64>(),
        sums.faults.len()
    );
    for (kind, count) in &sums.faults {
        println!("{count:>12}  {kind:?}");
    }
    let kinds = sums.faults.len() as u64;
    let rarest = sums.pairs.iter().min_by_key(|(_, count)| **count);
    if let Some(((one, other), count)) = rarest {
        println!(
            "{} of {} pairs of kinds in one history, {one:?} with {other:?} the least: {count} times",
            sums.pairs.len(),
            kinds * (kinds - 1) / 2
        );
    }
    let Some((seed, outcome)) = sums.failed else {
        println!("violations: 0");
        return ended_well(options.without.is_none());
    };
    println!(
        "violation with seed {seed}: {}",
        outcome.violation.unwrap_or_default()
    );
    if options.brief {
        return ended_well(options.without.is_some());
    }
    let shortest = shrink(outcome.choices.clone(), options.without);
    println!(
        "{} choices, shrunk to {}; its story:",
        outcome.choices.len(),
        shortest.len()
    );
    let story = run(Choices::given(shortest), options.without, true);
    println!("{}", story.story.join("\n"));
    ended_well(options.without.is_some())
}

fn ended_well(well: bool) -> ExitCode {
    if well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
