//! Whether every row and every ID is in the tables after the migrations.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use postgres::{Client, NoTls};

use super::sessions::Received;
use super::{Size, TARGETS, arguments, config};
use crate::cluster::Cluster;
use crate::online;
use crate::query::Ask;

/// What the tables contain.
pub(super) struct Checked {
    pub(super) rows: i64,
    pub(super) ids: i64,
    pub(super) snowflake_ids: i64,
    pub(super) lost: i64,
}

/// Compares the tables with what the writers received.
pub(super) fn check(
    cluster: &Cluster,
    size: Size,
    transactions: [i64; 2],
    sessions: &[Received],
    idle: i64,
) -> Result<Checked> {
    let mut client = config(cluster, "check").connect(NoTls)?;
    client.batch_execute("SET statement_timeout = 0")?;
    check_migrated(&mut client, size)?;

    let pairs = |which: fn(&Received) -> &Vec<(i64, i64)>| -> Vec<(i64, i64)> {
        sessions
            .iter()
            .flat_map(|session| which(session).iter().copied())
            .collect()
    };
    let kept = pairs(|session| &session.kept);
    let deleted = pairs(|session| &session.deleted);
    store(&mut client, &kept, &deleted)?;
    let mut lost = 0;
    for (query, expected) in [
        expected_ids(transactions, kept.len())?,
        expected_rows(size, transactions, kept.len(), idle)?,
        expected_updates(transactions, sessions),
    ]
    .concat()
    {
        let found = client.number(query)?;
        if found != expected {
            eprintln!("online load: {found} instead of {expected}: {query}");
        }
        lost += (found - expected).abs();
    }

    let distinct: BTreeSet<i64> = kept.iter().chain(&deleted).map(|pair| pair.0).collect();
    ensure!(
        distinct.len() == kept.len() + deleted.len(),
        "a client received an ID twice"
    );
    // The first snowflake ID is far above the last number of the old sequence.
    let largest_integer = i64::from(i32::MAX);
    let of_pgbench = client.number(&format!(
        "SELECT count(*) FROM received WHERE order_id > {largest_integer}"
    ))?;
    let of_sessions = distinct.iter().filter(|&&id| id > largest_integer).count();
    Ok(Checked {
        rows: client.number(
            "SELECT (SELECT count(*) FROM orders) + (SELECT count(*) FROM order_lines) + (SELECT count(*) FROM pgbench_accounts)",
        )?,
        ids: transactions[0] + i64::try_from(distinct.len())?,
        snowflake_ids: of_pgbench + i64::try_from(of_sessions)?,
        lost,
    })
}

/// Fails unless both migrations are complete.
fn check_migrated(client: &mut Client, size: Size) -> Result<()> {
    for (_, target) in TARGETS {
        let arguments = arguments(target, size);
        ensure!(
            online::plan(client, &arguments)?.is_empty(),
            "{arguments} is not migrated"
        );
    }
    let types = client.number(
        "SELECT count(*) FROM pg_attribute
         WHERE (attrelid, attname) IN (('orders'::regclass, 'id'), ('order_lines'::regclass, 'order_id'),
                                       ('pgbench_accounts'::regclass, 'aid')) AND atttypid = 'int8'::regtype",
    )?;
    ensure!(types == 3, "{types} of 3 columns are bigint");
    Ok(())
}

/// Creates a table of the orders and lines whose IDs the sessions received.
fn store(client: &mut Client, kept: &[(i64, i64)], deleted: &[(i64, i64)]) -> Result<()> {
    client.batch_execute(
        "CREATE TEMP TABLE of_sessions (order_id bigint, line_id bigint, kept boolean)",
    )?;
    for (pairs, is_kept) in [(kept, true), (deleted, false)] {
        let (orders, lines): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
        client.execute(
            "INSERT INTO of_sessions SELECT *, $3 FROM unnest($1::bigint[], $2::bigint[])",
            &[&orders, &lines, &is_kept],
        )?;
    }
    Ok(())
}

/// A query, and the number that it should return.
type Expected = (&'static str, i64);

/// Every ID that a client received, with its row and its line.
fn expected_ids(transactions: [i64; 2], kept: usize) -> Result<Vec<Expected>> {
    Ok(vec![
        ("SELECT count(*) FROM received", transactions[0]),
        (
            "SELECT count(*) FROM received AS r JOIN orders AS o ON o.id = r.order_id AND o.note = 'pgbench'
             JOIN order_lines AS l ON l.id = r.line_id AND l.order_id = r.order_id",
            transactions[0],
        ),
        (
            "SELECT count(*) FROM of_sessions AS s JOIN orders AS o ON o.id = s.order_id AND o.note = 'session'
             JOIN order_lines AS l ON l.id = s.line_id AND l.order_id = s.order_id WHERE s.kept",
            i64::try_from(kept)?,
        ),
        (
            "SELECT count(*) FROM of_sessions AS s WHERE NOT s.kept
               AND (EXISTS (SELECT FROM orders AS o WHERE o.id = s.order_id)
                    OR EXISTS (SELECT FROM order_lines AS l WHERE l.id = s.line_id))",
            0,
        ),
    ])
}

/// Every row, and no other.
fn expected_rows(
    size: Size,
    transactions: [i64; 2],
    kept: usize,
    idle: i64,
) -> Result<Vec<Expected>> {
    let before = i64::from(size.orders);
    let orders = before + transactions[0] + i64::try_from(kept)? + idle;
    let accounts = i64::from(size.scale) * 100_000;
    Ok(vec![
        ("SELECT count(*) FROM orders", orders),
        (
            "SELECT count(*) FROM order_lines AS l JOIN orders AS o ON o.id = l.order_id",
            orders,
        ),
        (
            "SELECT count(DISTINCT id) FROM orders WHERE note = 'there before'",
            before,
        ),
        (
            "SELECT count(DISTINCT aid) FROM pgbench_accounts",
            accounts + idle,
        ),
    ])
}

/// Every update.
fn expected_updates(transactions: [i64; 2], sessions: &[Received]) -> Vec<Expected> {
    let updates: i64 = sessions.iter().map(|session| session.updates).sum();
    vec![
        (
            "SELECT sum(total)::bigint FROM orders WHERE note = 'there before'",
            transactions[0] + updates,
        ),
        ("SELECT count(*) FROM pgbench_history", transactions[1]),
        (
            "SELECT (SELECT sum(abalance) FROM pgbench_accounts) - coalesce((SELECT sum(delta) FROM pgbench_history), 0)",
            0,
        ),
    ]
}

/// Errors by application and SQLSTATE, from lines of the log in the form
/// `2026-01-01 00:00:00.000 UTC [123] 0A000 pgbench ERROR:  …`.
pub(super) fn errors(log: &str) -> BTreeMap<(String, String), usize> {
    let mut errors = BTreeMap::new();
    for line in log.lines() {
        let words: Vec<&str> = line.splitn(8, ' ').collect();
        if let [_, _, _, _, sqlstate, application, level, _] = words[..]
            && ["ERROR:", "FATAL:", "PANIC:"].contains(&level)
        {
            *errors
                .entry((application.to_owned(), sqlstate.to_owned()))
                .or_default() += 1;
        }
    }
    errors
}
