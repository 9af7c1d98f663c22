//! The migrations, and the transactions that are idle while they start.

use std::collections::BTreeSet;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, ensure};
use postgres::{Client, NoTls};

use super::report::Done;
use super::{Committed, Sabotage, Size, TARGETS, arguments, config};
use crate::cluster::Cluster;
use crate::online::{self, Step};
use crate::query::Ask;
use crate::server_error::ServerError;
use crate::wait;

/// How long to wait before a statement is repeated whose lock was not acquired.
const PAUSE: Duration = Duration::from_millis(500);

/// Both migrations.
pub(super) struct Migrated {
    pub(super) steps: Vec<Done>,
    /// Transactions that were idle. Each has inserted a row into each table.
    pub(super) idle: i64,
    pub(super) began: SystemTime,
    pub(super) ended: SystemTime,
}

/// Migrates both keys as the guide describes it.
pub(super) fn migrate(
    cluster: &Cluster,
    size: Size,
    committed: &Committed,
    progress: &mut impl FnMut(&str),
) -> Result<Migrated> {
    let mut client = config(cluster, "migration").connect(NoTls)?;
    client.batch_execute("SET statement_timeout = 0")?;
    let began = SystemTime::now();
    let mut steps = Vec::new();
    let mut idle = Vec::new();
    let mut done = BTreeSet::new();
    let is_online = size.sabotage != Some(Sabotage::MaintenancePlan);
    for (table, target) in TARGETS {
        let arguments = arguments(target, size);
        let mut is_first = true;
        while let Some(step) = online::plan_for(&mut client, &arguments, is_online)?
            .into_iter()
            .next()
        {
            ensure!(
                done.insert(step.statement.clone()),
                "{table}: the plan still contains a step that was run: {}",
                step.statement
            );
            let is_exclusive = step.lock_level == "ACCESS EXCLUSIVE";
            if is_exclusive && (is_first || step.is_swap()) {
                is_first = false;
                idle.push(be_idle(cluster, size, committed, idle.len())?);
            }
            let step = run_step(&mut client, size, table, &step)?;
            progress(&format!(
                "{table}: {:.1} s: {}",
                step.took.as_secs_f64(),
                step.title
            ));
            steps.push(step);
        }
    }
    let ended = SystemTime::now();
    let transactions = i64::try_from(idle.len())?;
    for thread in idle {
        thread
            .join()
            .map_err(|_| anyhow!("an idle transaction panicked"))??;
    }
    Ok(Migrated {
        steps,
        idle: transactions,
        began,
        ended,
    })
}

/// Runs one step. If its lock is not acquired in time, it is repeated later.
fn run_step(client: &mut Client, size: Size, table: &'static str, step: &Step) -> Result<Done> {
    let began = SystemTime::now();
    let mut retries = 0;
    while let Err(error) = client.batch_execute(&step.statement) {
        let error = ServerError::from_error(error)?;
        ensure!(
            error.sqlstate == "55P03",
            "{table}: {}: {error}",
            step.statement
        );
        ensure!(
            began.elapsed()? < size.idle + Duration::from_secs(600),
            "{table}: the lock was never acquired: {}",
            step.statement
        );
        retries += 1;
        thread::sleep(PAUSE);
    }
    let ended = SystemTime::now();
    Ok(Done {
        table,
        title: step.title(),
        what: step.what.clone(),
        retries,
        took: ended.duration_since(began)?,
        began,
        ended,
    })
}

/// Whether a step runs, by a session that may see its state.
const STEP_RUNS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'migration' AND state = 'active'";

/// A transaction that has written to every table and is idle, until the sessions
/// have committed while a step waits for it. Returns when it is idle.
fn be_idle(
    cluster: &Cluster,
    size: Size,
    committed: &Committed,
    number: usize,
) -> Result<JoinHandle<Result<()>>> {
    let config = config(cluster, "idle");
    let committed = committed.clone();
    let (ready, is_ready) = mpsc::channel();
    // Above the accounts of pgbench, so that none of its clients waits for it.
    let account = u64::from(size.scale) * 100_000 + 1 + u64::try_from(number)?;
    let thread = thread::spawn(move || -> Result<()> {
        let mut client = config.connect(NoTls)?;
        let mut transaction = client.transaction()?;
        transaction.batch_execute(&format!(
            "WITH new AS (INSERT INTO orders (customer, note) VALUES (0, 'idle') RETURNING id)
             INSERT INTO order_lines (order_id, quantity) SELECT id, 1 FROM new;
             INSERT INTO pgbench_accounts (aid, bid, abalance) VALUES ({account}, 1, 0)"
        ))?;
        let _ = ready.send(());
        let mut observer = config.connect(NoTls)?;
        wait::until("a step of the migration", Committed::LIMIT, || {
            Ok(observer.number(STEP_RUNS)? > 0)
        })?;
        thread::sleep(size.idle);
        // The plan for a maintenance window lets no session write.
        if size.sabotage != Some(Sabotage::MaintenancePlan) {
            committed.wait_for_more()?;
        }
        transaction.commit()?;
        Ok(())
    });
    // A thread that failed has closed the channel. Joining it returns the error.
    let _ = is_ready.recv();
    Ok(thread)
}
