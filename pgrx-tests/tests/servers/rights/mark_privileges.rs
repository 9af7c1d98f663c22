//! The mark under roles that may not move it: neither privileges on all
//! sequences nor locks on it stop others' IDs, or carry them away.

use std::collections::HashSet;

use snowflake_tests::attack::ROLES;

use crate::faults::mark::{set_clock, with_and_without_the_mark};
use crate::support::*;

const SECOND: Duration = Duration::from_secs(1);

/// `snowflake.lease` of these servers, milliseconds.
const LEASE_MS: i64 = 500;

/// How privileges on the mark come about: before the extension, and after.
const GRANTS: &[(&str, &str)] = &[
    (
        "ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO mallory",
        "",
    ),
    (
        "",
        "GRANT ALL ON ALL SEQUENCES IN SCHEMA public, snowflake_internal TO mallory; GRANT ALL ON ALL ROUTINES IN SCHEMA public, snowflake_internal TO mallory",
    ),
    ("", "GRANT pg_write_all_data TO mallory"),
];

/// What a role with privileges on the mark does to it.
const MOVES: &[&str] = &[
    "SELECT setval('snowflake_internal.mark', snowflake_max_id(now() + interval '23 hours'))",
    "SELECT setval('snowflake_internal.mark', snowflake_max_id(now() + interval '10 minutes'), false)",
    "BEGIN; SELECT setval('snowflake_internal.mark', snowflake_max_id(now() + interval '5 hours')); ROLLBACK",
    "SELECT count(nextval('snowflake_internal.mark')) FROM generate_series(1, 1000)",
    "SELECT snowflake_start_after(snowflake_max_id(now() + interval '23 hours'))",
    "ALTER SEQUENCE snowflake_internal.mark RESTART WITH 4611686018427387904",
    "ALTER SEQUENCE snowflake_internal.mark INCREMENT BY 1000000000000000; SELECT nextval('snowflake_internal.mark')",
    "SELECT setval('snowflake_internal.mark', 1)",
    "SELECT setval('snowflake_internal.mark', 9223372036854775807)",
];

/// How long a call for an ID of the attacked database may wait.
const SHORT_WAIT: &str = "200ms";

/// The same for another database, whose calls do not wait unless an attack succeeds.
const LONG_WAIT: &str = "1min";

/// Takes IDs of a database, each time in a new session too. In each round, some of
/// the lease passes. Returns how far the IDs were ahead of the clock at most,
/// milliseconds, and the errors other than those of a clock that is behind.
fn take(
    cluster: &Cluster,
    database: &str,
    max_wait: &str,
    rounds: usize,
    received: &mut Vec<i64>,
) -> Result<(i64, Vec<String>)> {
    let connect = || -> Result<Client> {
        let mut client = cluster.connect_to(database)?;
        client.batch_execute(&format!("SET snowflake.max_wait = '{max_wait}'"))?;
        Ok(client)
    };
    let mut old = connect()?;
    let (mut lead, mut refused) = (0, Vec::new());
    for _ in 0..rounds {
        let mut new = connect()?;
        for client in [&mut old, &mut new] {
            match client.query(
                "SELECT snowflake_nextval() FROM generate_series(1, 20)",
                &[],
            ) {
                Ok(rows) => {
                    for row in rows {
                        let id: i64 = row.get(0);
                        lead = lead.max((DEFAULT.time_us(id) - cluster.true_us()) / 1_000);
                        received.push(id);
                    }
                }
                Err(error) => {
                    let refusal = ServerError::from_error(error)?;
                    // A slow machine may also need longer than the wait to move the
                    // mark; a call that has waited for that is refused with 55P03.
                    let is_slow = max_wait == SHORT_WAIT && refusal.sqlstate == "55P03";
                    if refusal.sqlstate != "58000" && !is_slow {
                        refused.push(refusal.to_string());
                    }
                }
            }
        }
        cluster.clock().pass(Duration::from_millis(150))?;
    }
    Ok((lead, refused))
}

#[test]
fn privileges_on_all_sequences_move_no_other_databases_ids() -> Result<()> {
    let mut cluster = Cluster::node(1)
        .conf("snowflake.lease", format!("{LEASE_MS}ms"))
        .movable_clock()
        .start()?;
    let mut client = cluster.connect()?;
    client.batch_execute(ROLES)?;
    cluster.connect_to_new_database("bystander")?;
    let mut successes = Vec::new();
    let mut received = Vec::new();
    let (mut tried, mut went_through) = (0, 0);
    let limit = LEASE_MS + 1_000;
    for (place, (before, after)) in GRANTS.iter().enumerate() {
        let template = format!("template_{place}");
        client.batch_execute(&format!("CREATE DATABASE {template}"))?;
        cluster
            .connect_to(&template)?
            .batch_execute(&format!("{before}; CREATE EXTENSION snowflake; {after}"))?;
        // A session that has disconnected may still be ending.
        client.wait_until(&format!(
            "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = '{template}'"
        ))?;
        for attack in MOVES {
            let what = format!("{before}{after}: {attack}");
            tried += 1;
            let attacked = format!("attacked{tried}");
            client.batch_execute(&format!("CREATE DATABASE {attacked} TEMPLATE {template}"))?;
            take(&cluster, &attacked, SHORT_WAIT, 1, &mut received)?;
            let mut session = Session::connect(&cluster, "mallory", &attacked)?;
            let (worked, _) = session.attempt(attack)?;
            if worked {
                went_through += 1;
                let (_, refused) = take(&cluster, &attacked, SHORT_WAIT, 5, &mut received)?;
                if !refused.is_empty() {
                    successes.push(format!("{what}: there: {}", refused[0]));
                }
            }
            let (lead, refused) = take(&cluster, "bystander", LONG_WAIT, 5, &mut received)?;
            if lead > limit || !refused.is_empty() {
                successes.push(format!(
                    "{what}: IDs of another database are {lead} ms ahead of the clock, {refused:?}"
                ));
            }
        }
        // The only one of these grants that is not the database's own.
        client.batch_execute("REVOKE pg_write_all_data FROM mallory")?;
    }
    // After a restart, no other database is carried away either.
    cluster.kill9_all()?;
    cluster.start()?;
    let (lead, refused) = take(&cluster, "bystander", LONG_WAIT, 5, &mut received)?;
    tried += 1;
    if lead > limit || !refused.is_empty() {
        successes.push(format!(
            "after a crash: IDs of another database are {lead} ms ahead of the clock, {refused:?}"
        ));
    }
    let different: HashSet<i64> = received.iter().copied().collect();
    println!(
        "rights: {tried} attacks tried, {} succeeded: the mark moved by privileges on all sequences ({went_through} statements went through; {} IDs)",
        successes.len(),
        grouped(received.len())
    );
    assert_eq!(different.len(), received.len(), "IDs twice");
    assert!(successes.is_empty(), "{}", successes.join("\n"));

    // The superuser's way.
    let mut admin = cluster.connect_to("bystander")?;
    let after = admin.number("SELECT snowflake_max_id(now() + interval '1 hour')")?;
    admin.batch_execute(&format!("SELECT snowflake_start_after({after})"))?;
    let next = ids::one(&mut admin)?;
    assert!(next > after, "{next} comes after {after}");
    Ok(())
}

/// How long IDs are taken at a time.
const WHILE: Duration = Duration::from_millis(400);

/// A mark that was set to a lower number, then kill -9 with the clock set back
/// to when the IDs were made.
#[test]
fn a_mark_set_back_by_privileges_repeats_no_id() -> Result<()> {
    let case = |builder: ClusterBuilder, _| {
        // After a crash, the sessions wait until the clock has reached the mark.
        let mut cluster = builder
            .conf("snowflake.lease", "500ms")
            .conf("snowflake.max_wait", "100s")
            .prepare()?;
        cluster
            .clock()
            .set_offset(Offset::back(Duration::from_secs(30)))?;
        cluster.start()?;
        let mut client = cluster.connect()?;
        client.batch_execute(ROLES)?;
        client.batch_execute(
            "CREATE EXTENSION snowflake; GRANT ALL ON ALL SEQUENCES IN SCHEMA public, snowflake_internal TO mallory",
        )?;
        let mut received = Vec::new();
        for lower in [
            "SELECT setval('snowflake_internal.mark', 1)",
            "SELECT setval('snowflake_internal.mark', 1, false)",
            // The server's now() is not behind.
            "SELECT setval('snowflake_internal.mark', snowflake_max_id(now() - interval '50 seconds'))",
        ] {
            let began = cluster.clock().now_us();
            let mut client = cluster.connect()?;
            take_for(&mut client, WHILE, &mut received)?;
            // Refused is as good.
            Session::connect(&cluster, "mallory", "postgres")?.attempt(lower)?;
            take_for(&mut client, WHILE, &mut received)?;
            Session::connect(&cluster, "mallory", "postgres")?.attempt(lower)?;
            cluster.kill9_all()?;
            // However long the start takes, the session is connected when the clock
            // shows that time again.
            set_clock(&cluster, began - 60_000_000)?;
            cluster.start()?;
            let mut client = cluster.connect()?;
            set_clock(&cluster, began)?;
            take_for(&mut client, 3 * WHILE, &mut received)?;
        }
        Ok(received)
    };
    with_and_without_the_mark("set back 6 times by a role with privileges", case)
}

/// IDs without a pause.
fn take_for(client: &mut Client, time: Duration, received: &mut Vec<i64>) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < time {
        received.extend(ids::nextval(client, 2_000)?);
    }
    Ok(())
}

/// Statements that wait for a strong lock on the mark before anything looks
/// whether their role may run them.
const STRONG_LOCKS: &[&str] = &[
    "CREATE RULE r AS ON INSERT TO snowflake_internal.mark DO INSTEAD NOTHING",
    "CREATE TRIGGER t BEFORE INSERT ON snowflake_internal.mark FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "COMMENT ON SEQUENCE snowflake_internal.mark IS 'mine'",
    "ALTER SEQUENCE snowflake_internal.mark CACHE 2",
    "BEGIN; LOCK TABLE snowflake_internal.mark IN ACCESS EXCLUSIVE MODE",
];

/// How long a call takes, and what it answered.
fn call(client: &mut Client) -> Result<(Duration, Result<i64, ServerError>)> {
    let begun = Instant::now();
    let answer = match client.query_one("SELECT snowflake_nextval()", &[]) {
        Ok(row) => Ok(row.get(0)),
        Err(error) => Err(ServerError::from_error(error)?),
    };
    Ok((begun.elapsed(), answer))
}

/// A call that waited for the lock would take all of this, which no machine is
/// so busy as to take by itself.
const PATIENT: &str = "SET statement_timeout = '110s'; SET snowflake.max_wait = '100s'";

/// How long a statement may take that waits for nothing: no machine is so slow.
const AT_ONCE: Duration = Duration::from_secs(60);

/// `snowflake.lease` in this test, in which a machine makes some calls however slow
/// it is.
const LONG_LEASE: Duration = Duration::from_secs(60);

/// Waits until a statement waits for a lock on the mark; false where it `is_over`.
fn waits_for_the_mark(cluster: &Cluster, is_over: impl Fn() -> bool) -> Result<bool> {
    let mut watcher = cluster.connect()?;
    let query = "SELECT 1 FROM pg_locks WHERE relation = 'snowflake_internal.mark'::regclass AND NOT granted";
    let begun = Instant::now();
    while begun.elapsed() < AT_ONCE {
        // Before the query: a statement that has ended may have waited.
        let is_over = is_over();
        if watcher.query_opt(query, &[])?.is_some() {
            return Ok(true);
        }
        if is_over {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("the statement neither waits for the mark nor ends")
}

/// While reserved time is left, calls of old and new sessions are not held up.
/// When nothing is left, a call fails after `snowflake.max_wait`.
fn call_while_locked(
    cluster: &Cluster,
    client: &mut Client,
    attacks: &mut Attacks<'_>,
    statement: &str,
) -> Result<()> {
    let mut slowest = Duration::ZERO;
    let mut refused = None;
    for _ in 0..10 {
        let mut new = cluster.connect()?;
        new.batch_execute(PATIENT)?;
        for client in [&mut *client, &mut new] {
            let (took, answer) = call(client)?;
            slowest = slowest.max(took);
            refused = refused.or(answer.err());
        }
    }
    attacks.record(
        slowest > AT_ONCE || refused.is_some(),
        format!(
            "{statement}: with reserved time left, a call took {slowest:?}, refused: {refused:?}"
        ),
    );
    client.batch_execute("SET snowflake.max_wait = '500ms'")?;
    cluster.clock().pass(LONG_LEASE + SECOND)?;
    // The session may still have a number of the last tick of the lease.
    let mut said = None;
    for _ in 0..10 {
        let (took, answer) = call(client)?;
        said = answer.err().map(|refusal| (took, refusal));
        if said.is_some() {
            break;
        }
    }
    let is_bounded = said.as_ref().is_some_and(|(took, refusal)| {
        refusal.sqlstate == "55P03" && *took >= Duration::from_millis(400) && *took <= AT_ONCE
    });
    attacks.record(
        !is_bounded,
        format!("{statement}: with nothing left: {said:?}"),
    );
    Ok(())
}

#[test]
fn strong_locks_on_the_mark_hold_up_no_session() -> Result<()> {
    let cluster = Cluster::node(1)
        .conf("snowflake.lease", format!("{}s", LONG_LEASE.as_secs()))
        .movable_clock()
        .start_with_extension()?;
    cluster.run(ROLES)?;
    let mut attacks = Attacks::on(&cluster)?;
    let mut waited_for = 0;
    for statement in STRONG_LOCKS {
        let mut holder = cluster.connect_as("mallory", "postgres")?;
        holder.batch_execute("BEGIN; SELECT last_value FROM snowflake_internal.mark")?;
        let mut blocked = cluster.connect_as("mallory", "postgres")?;
        let token = blocked.cancel_token();
        let mut client = cluster.connect()?;
        client.batch_execute(PATIENT)?;
        call(&mut client)?.1.ok();
        std::thread::scope(|scope| -> Result<()> {
            let waiting = scope.spawn(|| blocked.batch_execute(statement));
            if waits_for_the_mark(&cluster, || waiting.is_finished())? {
                waited_for += 1;
                call_while_locked(&cluster, &mut client, &mut attacks, statement)?;
            } else {
                attacks.record(false, format!("{statement}: refused at once"));
            }
            // The attacker leaves.
            holder.batch_execute("ROLLBACK")?;
            token.cancel_query(NoTls).ok();
            let answer = waiting.join().expect("the attacker's thread");
            ensure!(answer.is_err(), "{statement} was allowed");
            Ok(())
        })?;
        client.batch_execute(PATIENT)?;
        let begun = Instant::now();
        let mut previous = i64::MIN;
        for _ in 0..101 {
            let next = call(&mut client)?.1.ok();
            let next = next.context("no ID after the attacker left")?;
            ensure!(next > previous);
            previous = next;
        }
        attacks.record(
            begun.elapsed() > AT_ONCE,
            format!("{statement}: slow afterwards"),
        );
    }
    ensure!(waited_for > 0, "no statement waited for the mark");
    attacks.end("strong locks on the mark that are waited for");
    Ok(())
}
