//! A cluster of Patroni with writers throughout failovers and a switchover.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use postgres::{Config, NoTls};
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{DEFAULT, Tally, grouped};
use snowflake_tests::patroni::Patroni;
use snowflake_tests::query::{number, value};

const SESSIONS: usize = 8;

/// How often the leader is killed.
const KILLS: usize = 3;

/// Keys of rows whose commit was acknowledged, and when.
type Acknowledged = Vec<(Instant, i64)>;

/// Inserts rows one by one, wherever the leader is.
fn write(leader: &Config, end: &AtomicBool) -> Result<Acknowledged> {
    let mut acknowledged = Vec::new();
    while !end.load(Relaxed) {
        let Ok(mut client) = leader.connect(NoTls) else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        while !end.load(Relaxed) {
            match client.query_one("INSERT INTO orders DEFAULT VALUES RETURNING id", &[]) {
                Ok(row) => acknowledged.push((Instant::now(), row.get(0))),
                Err(error) => {
                    // The leader has ended, or is one no longer. Anything else is a defect.
                    let code = error
                        .code()
                        .map_or_else(String::new, |code| code.code().to_owned());
                    ensure!(
                        error.is_closed()
                            || ["", "57P01", "57P02", "57P03", "25006"].contains(&code.as_str()),
                        "{error:?}"
                    );
                    break;
                }
            }
        }
    }
    Ok(acknowledged)
}

/// Kills the leader several times, then switches over. With `step`, the clock of the
/// leaders that follow the second kill is behind until the next.
fn faults(patroni: &mut Patroni, step: Option<Offset>) -> Result<()> {
    for round in 0..KILLS {
        thread::sleep(Duration::from_secs(3));
        let leader = patroni.leader()?;
        let behind = step.filter(|_| round == 1);
        for node in 1..=3 {
            patroni.set_clock(
                node,
                behind.filter(|_| node != leader).unwrap_or(Offset::NONE),
            )?;
        }
        patroni.kill9(leader)?;
        let next = patroni.wait_for_leader_other_than(leader)?;
        let clock = behind.map_or(String::new(), |by| {
            format!(", whose clock is {} s behind", -by.micros() / 1_000_000)
        });
        println!("node {leader} was killed; the leader is node {next}{clock}");
        patroni.start_node(leader)?;
        patroni.wait_until_safe()?;
    }
    for node in 1..=3 {
        patroni.set_clock(node, Offset::NONE)?;
    }
    thread::sleep(Duration::from_secs(3));
    let next = patroni.switch_over()?;
    println!("switchover: the leader is node {next}");
    patroni.wait_until_safe()?;
    thread::sleep(Duration::from_secs(3));
    Ok(())
}

/// What a run left: the keys, and the longest time without an acknowledged one.
struct Outcome {
    ids: Vec<i64>,
    longest: Duration,
}

/// Sessions write into a table while the faults happen. Checks that the last leader
/// has each acknowledged row.
fn run(patroni: &mut Patroni, create: &str, step: Option<Offset>) -> Result<Outcome> {
    patroni.connect()?.batch_execute(create)?;
    let before = patroni.timeline()?;
    let end = AtomicBool::new(false);
    let config = patroni.config();
    let lists = thread::scope(|scope| -> Result<Vec<Acknowledged>> {
        let writers: Vec<_> = (0..SESSIONS)
            .map(|_| scope.spawn(|| write(&config, &end)))
            .collect();
        let done = faults(patroni, step);
        end.store(true, Relaxed);
        let lists = writers
            .into_iter()
            .map(|writer| writer.join().expect("a session"))
            .collect::<Result<_>>();
        done?;
        lists
    })?;
    let mut all = lists.concat();
    all.sort_unstable();
    let longest = all
        .windows(2)
        .map(|pair| pair[1].0 - pair[0].0)
        .max()
        .context("no rows")?;
    let timelines = patroni.timeline()? - before;
    ensure!(timelines >= 4, "{timelines} timelines were begun");
    let mut client = patroni.connect()?;
    let rows: HashSet<i64> = client
        .query("SELECT id FROM orders", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let lost = all.iter().filter(|(_, id)| !rows.contains(id)).count();
    println!(
        "{} acknowledged rows, {} rows, {timelines} promotions, {lost} acknowledged rows lost",
        grouped(all.len() as u64),
        grouped(rows.len() as u64)
    );
    assert_eq!(lost, 0);
    Ok(Outcome {
        ids: all.into_iter().map(|(_, id)| id).collect(),
        longest,
    })
}

#[test]
fn no_acknowledged_id_repeats_across_failovers() -> Result<()> {
    let settings = |node: usize| {
        vec![
            ("shared_preload_libraries", "snowflake".to_owned()),
            ("snowflake.node_id", node.to_string()),
        ]
    };
    let mut patroni = Patroni::start(settings)?;
    let create = "CREATE EXTENSION snowflake; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval())";
    let with = run(
        &mut patroni,
        create,
        Some(Offset::back(Duration::from_secs(30))),
    )?;
    let tally = Tally::of(with.ids.clone());
    println!("{tally}");
    tally.assert_unique();
    let nodes: BTreeSet<i64> = with
        .ids
        .iter()
        .map(|&id| DEFAULT.field(id, "node"))
        .collect();
    println!("node numbers in the IDs: {nodes:?}");
    ensure!(
        nodes.len() >= 2 && nodes.iter().all(|node| (1..=3).contains(node)),
        "{nodes:?}"
    );
    let mut client = patroni.connect()?;
    assert_eq!(
        value(
            &mut client,
            "SELECT coalesce(copied_from, 'original') FROM snowflake_status"
        )?,
        "original"
    );
    assert_eq!(
        number(
            &mut client,
            "SELECT count(*) FROM snowflake_audit_tables(expected_nodes => '{1,2,3}')"
        )?,
        0
    );
    drop(client);
    drop(patroni);

    let mut patroni = Patroni::start(|_| Vec::new())?;
    let without = run(
        &mut patroni,
        "CREATE TABLE orders (id bigserial PRIMARY KEY)",
        None,
    )?;
    println!(
        "the longest time without an acknowledged row: {:.1} s; with bigserial and without the extension {:.1} s",
        with.longest.as_secs_f64(),
        without.longest.as_secs_f64()
    );
    Ok(())
}
