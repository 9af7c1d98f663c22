//! Replacing serial columns, in a maintenance window and online.

mod corpus;
mod disk;
mod edges;
mod findings;
mod interrupted;
mod keep_sequence;
mod managed;
mod many_keys;
mod new_numbers;
mod newest_minor;
mod online_edges;
mod online_interrupted;
mod online_load;
mod online_partitions;
mod online_servers;
mod online_steps;
mod pace;
mod partitioning;
mod partitioning_corpus;
mod plans;
mod refusals;
mod remembered;
mod rights;
mod script;
mod script_corpus;
mod script_load;
mod script_online;
mod servers;
mod several_tables;
mod survey;
mod two_sessions;
mod update_triggers;
mod views;

use crate::support::*;

/// How long to wait for what has to happen: a busy machine may need a minute, and a
/// statement that takes two ends with an error.
const LIMIT: Duration = Duration::from_secs(100);

/// The tables' owner, who is no superuser.
fn owner(cluster: &Cluster) -> Result<Client> {
    cluster.run(
        "CREATE ROLE keeper LOGIN; GRANT CREATE ON SCHEMA public TO keeper; GRANT CREATE ON DATABASE postgres TO keeper",
    )?;
    cluster.connect_as("keeper", "postgres")
}

/// Lets a backfill write one batch at a time: each row that it writes in a table
/// needs a lock that the test has.
struct Gate {
    /// Has the lock.
    holder: Client,
    /// Gets it next.
    next: Option<Client>,
    observer: Client,
}

impl Gate {
    const LOCK: i64 = 4242;

    /// A closed gate in front of a table, before its migration. `column` is one that
    /// is not migrated.
    fn close(cluster: &Cluster, table: &str, column: &str) -> Result<Self> {
        let (mut holder, observer) = (cluster.connect()?, cluster.connect()?);
        let lock = Self::LOCK;
        holder.batch_execute(&format!(
            "CREATE FUNCTION pass_gate(value anyelement) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS
                 $$ BEGIN PERFORM pg_advisory_xact_lock_shared({lock}); RETURN true; END $$;
             ALTER TABLE {table} ADD CONSTRAINT gate CHECK (pass_gate({column}));
             SELECT pg_advisory_lock({lock})"
        ))?;
        Ok(Self {
            holder,
            next: Some(cluster.connect()?),
            observer,
        })
    }

    /// Waits until a session stands in front of the gate.
    fn wait_for(&mut self, pid: i32, is_done: impl Fn() -> bool) -> Result<()> {
        let query = format!(
            "SELECT count(*) FROM pg_locks WHERE pid = {pid} AND locktype = 'advisory' AND NOT granted"
        );
        wait::until("a session in front of the gate", LIMIT, || {
            ensure!(!is_done(), "the session has ended");
            Ok(self.observer.number(&query)? > 0)
        })
    }

    /// Lets the session in front of the gate pass, until its transaction has ended.
    fn let_one_pass(&mut self) -> Result<()> {
        let lock = Self::LOCK;
        let mut next = self.next.take().context("no session to close the gate")?;
        let closing = thread::spawn(move || {
            next.batch_execute(&format!("SELECT pg_advisory_lock({lock})"))
                .map(|()| next)
        });
        // Behind the one in front of the gate, and before that one's next transaction.
        let query = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND NOT granted";
        wait::until("the session that closes the gate", LIMIT, || {
            Ok(self.observer.number(query)? > 0)
        })?;
        self.holder
            .batch_execute(&format!("SELECT pg_advisory_unlock({lock})"))?;
        let next = closing.join().expect("the session's thread")?;
        self.next = Some(std::mem::replace(&mut self.holder, next));
        Ok(())
    }

    /// Opens the gate.
    fn open(mut self) -> Result<()> {
        let lock = Self::LOCK;
        Ok(self
            .holder
            .batch_execute(&format!("SELECT pg_advisory_unlock({lock})"))?)
    }
}

/// Runs the steps of an online plan before the first of a kind. Returns the
/// whole plan, and the place of that step.
pub(crate) fn run_before(
    client: &mut Client,
    arguments: &str,
    is_last: impl Fn(&Step) -> bool,
) -> Result<(Vec<Step>, usize)> {
    let steps = online::plan(client, arguments)?;
    let last = steps.iter().position(is_last).context("no such step")?;
    client.run(online::statements(&steps[..last]))?;
    Ok((steps, last))
}

/// The modes of the locks that this session holds on the tables of a schema.
fn held_locks(client: &mut Client, schema: &str) -> Result<Vec<String>> {
    let query = format!(
        "SELECT DISTINCT l.mode FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
         WHERE l.pid = pg_backend_pid() AND l.granted AND c.relkind = 'r'
           AND c.relnamespace = to_regnamespace('{schema}')"
    );
    client.column(&query)
}

/// The mode in `pg_locks` of a lock level as a plan writes it.
fn lock_mode(level: &str) -> String {
    let words = level.split(' ').filter(|word| !word.is_empty());
    let mode: String = words
        .map(|word| format!("{}{}", &word[..1], word[1..].to_lowercase()))
        .collect();
    mode + "Lock"
}

/// Kills the server, starts it and connects.
fn kill_and_start(cluster: &mut Cluster) -> Result<Client> {
    cluster.kill9_all()?;
    cluster.start()?;
    cluster.connect()
}

/// Waits until a backend waits for another session; false where `is_done` first.
fn waits(observer: &mut Client, pid: i32, is_done: impl Fn() -> bool) -> Result<bool> {
    let begun = Instant::now();
    let waiting = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND state = 'active' AND wait_event_type IN ('Lock', 'Timeout', 'Extension')"
    );
    let mut seen = 0;
    while seen < 3 {
        if is_done() {
            return Ok(false);
        }
        seen = if observer.number(&waiting)? > 0 {
            seen + 1
        } else {
            0
        };
        if begun.elapsed() > LIMIT {
            bail!(
                "it neither ends nor waits: {}",
                observer.value(&format!(
                        "SELECT concat_ws(' ', state, wait_event_type, wait_event, query) FROM pg_stat_activity WHERE pid = {pid}"
                    )
                )?
            );
        }
        thread::sleep(Duration::from_millis(8));
    }
    Ok(true)
}

/// Runs a statement while another session holds what `obstacle` takes, until
/// it waits, then does `interrupt` to it (if it has not ended before). Returns
/// whether it was seen to wait, and its answer.
fn interrupted(
    cluster: &Cluster,
    statement: &str,
    obstacle: &str,
    interrupt: impl FnOnce(&mut Client, i32) -> Result<()>,
) -> Result<(bool, Result<(), postgres::Error>)> {
    let mut holder = cluster.connect()?;
    let mut observer = cluster.connect()?;
    let mut holding = holder.transaction()?;
    holding.batch_execute(obstacle)?;
    let mut client = cluster.connect()?;
    let pid = ids::backend_pid(&mut client)?;
    let answer = thread::scope(|scope| -> Result<_> {
        let running = scope.spawn(|| client.batch_execute(statement));
        let is_waiting = waits(&mut observer, pid, || running.is_finished())?;
        if is_waiting {
            interrupt(&mut observer, pid)?;
        }
        Ok((is_waiting, running.join().expect("the session's thread")))
    });
    // The server may be gone.
    let _ = holding.rollback();
    answer
}

/// Calls a function with a backend's number.
fn signal(function: &str) -> impl FnOnce(&mut Client, i32) -> Result<()> {
    let function = function.to_owned();
    move |client, pid| Ok(client.batch_execute(&format!("SELECT {function}({pid})"))?)
}

/// The SQLSTATE of an interrupted statement; a connection may be closed before
/// its reason has arrived.
fn sqlstate(answer: Result<(), postgres::Error>) -> Result<String> {
    match answer {
        Ok(()) => bail!("it went through although it was interrupted"),
        Err(error) if error.is_closed() || error.code().is_none() => Ok("57P01".to_owned()),
        Err(error) => Ok(ServerError::from_error(error)?.sqlstate),
    }
}
