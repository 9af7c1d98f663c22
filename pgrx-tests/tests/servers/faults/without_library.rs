//! `sql/without_library.sql` repeats no ID when a backend is stopped for as many numbers as there are
//! remainders, 65,536.
//!
//! A call is stopped wherever it is, by SIGSTOP, in each of many rounds. Then others draw numbers until
//! the next one is congruent to its own, and make an ID of that in the millisecond in which it continues:
//! the clock stands still. Without steps 8 and 9 of the generator (crates/snowflake-sim/src/without_library/mod.rs), the same
//! rounds must find repeated IDs.
//!
//! No cheaper test sees it: only a signal stops a session of a real server between two steps of a
//! function. The simulator has the steps, but not what PostgreSQL does with them.

use std::fs;
use std::thread::sleep;

use nix::sys::signal::Signal;

use crate::support::*;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../sql/without_library.sql");

/// A reading of the clock in the file, and the test's own, which takes longer: most stops are in it.
const CLOCK: &str = "pg_catalog.clock_timestamp()";
const STILL: &str = "public.reading()";

/// The check of step 9, and one that is never true.
const CHECK: &str = "OPERATOR(pg_catalog.<=) 4095";
const UNCHECKED: &str = "OPERATOR(pg_catalog.<=) 9000000";

const ROUNDS: usize = 20;

/// How long a session stays stopped at most.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many IDs the stopped statement makes at most.
const AT_ONCE: usize = 5_000;

/// All IDs of the rounds in which a session was stopped long enough. The clock stands still in the others,
/// too, while more numbers are drawn than there are remainders: beyond the bound.
fn rounds(is_checked: bool) -> Result<Vec<i64>> {
    let cluster = Cluster::builder().without_preload().start()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE public.clock (at timestamptz); INSERT INTO public.clock VALUES (now());
         CREATE TABLE ids (id bigint);
         CREATE FUNCTION public.reading() RETURNS timestamptz LANGUAGE plpgsql AS $$
         BEGIN
             PERFORM count(*) FROM generate_series(1, 1000);
             RETURN (SELECT c.at FROM public.clock AS c);
         END $$",
    )?;
    let mut text = fs::read_to_string(FILE)?;
    ensure!(
        text.contains(CLOCK) && text.contains(CHECK),
        "the file has changed"
    );
    text = text.replace(CLOCK, STILL);
    if !is_checked {
        text = text.replace(CHECK, UNCHECKED);
    }
    let installed = psql(
        &cluster,
        "postgres",
        "postgres",
        &format!("\\set node 1\n{text}"),
        true,
    )?;
    ensure!(installed.success, "{}", installed.errors);
    let (mut done, mut all) = (0, Vec::new());
    for round in 0..ROUNDS {
        client.batch_execute("TRUNCATE ids; UPDATE public.clock SET at = at + interval '1 ms'")?;
        if stop_one(&cluster, &mut client, round).with_context(|| format!("round {round}"))? {
            done += 1;
            all.extend(client.column::<i64>("SELECT id FROM ids")?);
        }
    }
    ensure!(done > 0, "no session was stopped long enough");
    Ok(all)
}

/// Returns whether the others came to their end before the stopped session continued. It may hold a lock
/// of memory that they wait for.
fn stop_one(cluster: &Cluster, client: &mut Client, round: usize) -> Result<bool> {
    let mut stopped = cluster.connect()?;
    let pid = ids::backend_pid(&mut stopped)?;
    thread::scope(|scope| {
        let insert = format!(
            "INSERT INTO ids SELECT snowflake_sql.snowflake_nextval() FROM generate_series(1, {AT_ONCE})"
        );
        let drawing = scope.spawn(move || stopped.batch_execute(&insert));
        sleep(Duration::from_millis(20 + 13 * round as u64 % 100));
        processes::send(pid, Signal::SIGSTOP)?;
        let others = scope.spawn(|| {
            client.batch_execute(
                "SELECT count(nextval('snowflake_sql.ids')) FROM generate_series(1, 65535);
                 UPDATE public.clock SET at = at + interval '1 ms';
                 INSERT INTO ids SELECT snowflake_sql.snowflake_nextval()",
            )
        });
        let until = Instant::now() + PATIENCE;
        while !others.is_finished() && Instant::now() < until {
            sleep(Duration::from_millis(10));
        }
        let were_others_done = others.is_finished();
        processes::send(pid, Signal::SIGCONT)?;
        others.join().expect("the others' thread")?;
        drawing.join().expect("the session's thread")?;
        Ok(were_others_done)
    })
}

#[test]
fn no_id_repeats_after_a_stop_of_65536_numbers() -> Result<()> {
    let tally = Tally::of(rounds(true)?);
    println!("SQL alone, {ROUNDS} stops: {tally}");
    tally.assert_unique();
    Ok(())
}

#[test]
fn no_id_repeats_after_a_stop_of_65536_numbers_is_able_to_fail() -> Result<()> {
    let tally = Tally::of(rounds(false)?);
    println!("SQL alone without steps 8 and 9, {ROUNDS} stops: {tally}");
    assert!(tally.duplicates > 0, "{tally}");
    Ok(())
}
