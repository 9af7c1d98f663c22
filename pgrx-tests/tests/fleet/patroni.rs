//! A cluster of Patroni with writers throughout failovers and a switchover.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use postgres::Config;
use snowflake_tests::patroni::Patroni;

use crate::support::*;

const SESSIONS: usize = 8;

/// How often the leader is killed.
const KILLS: usize = 3;

/// How many rows are acknowledged between two faults.
const ROWS: usize = 2_000;

/// How far the clock of the leaders after the second kill is behind, until the next.
const BEHIND: Duration = Duration::from_secs(30);

/// Inserts rows one by one, wherever the leader is. Counts those whose commit was
/// acknowledged, and returns their keys.
fn write(leader: &Config, rows: &AtomicUsize, end: &AtomicBool) -> Result<Vec<i64>> {
    let mut acknowledged = Vec::new();
    while !end.load(Relaxed) {
        let Ok(mut client) = leader.connect(NoTls) else {
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        while !end.load(Relaxed) {
            match client.query_one("INSERT INTO orders DEFAULT VALUES RETURNING id", &[]) {
                Ok(row) => {
                    acknowledged.push(row.get(0));
                    rows.fetch_add(1, Relaxed);
                }
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

/// Waits until some more rows are acknowledged.
fn wait_for_rows(rows: &AtomicUsize) -> Result<()> {
    let before = rows.load(Relaxed);
    wait::until("acknowledged rows", TIMEOUT, || {
        Ok(rows.load(Relaxed) >= before + ROWS)
    })
}

/// Kills the leader several times, then switches over.
fn faults(patroni: &mut Patroni, rows: &AtomicUsize) -> Result<()> {
    for round in 0..KILLS {
        wait_for_rows(rows)?;
        let leader = patroni.leader()?;
        let behind = (round == 1).then_some(Offset::back(BEHIND));
        for node in 1..=3 {
            patroni.set_clock(
                node,
                behind.filter(|_| node != leader).unwrap_or(Offset::NONE),
            )?;
        }
        patroni.kill9(leader)?;
        patroni.wait_for_leader_other_than(leader)?;
        patroni.start_node(leader)?;
        patroni.wait_until_safe()?;
    }
    for node in 1..=3 {
        patroni.set_clock(node, Offset::NONE)?;
    }
    wait_for_rows(rows)?;
    patroni.switch_over()?;
    patroni.wait_until_safe()?;
    wait_for_rows(rows)
}

/// Sessions write into a table while the faults happen. Checks that the last leader
/// has each acknowledged row, and returns the keys.
fn run(patroni: &mut Patroni) -> Result<Vec<i64>> {
    patroni.connect()?.batch_execute(
        "CREATE EXTENSION snowflake;
         CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval())",
    )?;
    let before = patroni.timeline()?;
    let (end, rows) = (AtomicBool::new(false), AtomicUsize::new(0));
    let config = patroni.config();
    let lists = thread::scope(|scope| -> Result<Vec<Vec<i64>>> {
        let writers: Vec<_> = (0..SESSIONS)
            .map(|_| scope.spawn(|| write(&config, &rows, &end)))
            .collect();
        let done = faults(patroni, &rows);
        end.store(true, Relaxed);
        let lists = writers
            .into_iter()
            .map(|writer| writer.join().expect("a session"))
            .collect::<Result<_>>();
        done?;
        lists
    })?;
    let all = lists.concat();
    let timelines = patroni.timeline()? - before;
    ensure!(timelines >= 4, "{timelines} timelines were begun");
    let mut client = patroni.connect()?;
    let rows: HashSet<i64> = client
        .query("SELECT id FROM orders", &[])?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let lost = all.iter().filter(|id| !rows.contains(*id)).count();
    println!(
        "{} acknowledged rows, {} rows, {timelines} promotions, {lost} acknowledged rows lost",
        grouped(all.len()),
        grouped(rows.len())
    );
    assert_eq!(lost, 0);
    Ok(all)
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
    let ids = run(&mut patroni)?;
    let nodes: BTreeSet<i64> = ids.iter().map(|&id| DEFAULT.field(id, "node")).collect();
    let tally = Tally::of(ids);
    println!("{tally}");
    tally.assert_unique();
    println!("node numbers in the IDs: {nodes:?}");
    ensure!(
        nodes.len() >= 2 && nodes.iter().all(|node| (1..=3).contains(node)),
        "{nodes:?}"
    );
    let mut client = patroni.connect()?;
    client.answers(
        "SELECT coalesce(copied_from, 'original') FROM snowflake_status",
        "original",
    )?;
    client.answers(
        "SELECT count(*) FROM snowflake_audit_tables(expected_nodes => '{1,2,3}')",
        0,
    )?;
    Ok(())
}
