//! Two servers with the same node number, by mistake, and the patterns that must not
//! be taken for it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use crate::support::*;

const TABLE: &str =
    "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)";
const CONFLICTS: &str = "SELECT node_conflicts FROM snowflake_status";
const LOGGED: &str = "another server issues IDs with the node number of this server";
const TIMEOUT: Duration = Duration::from_secs(120);

fn builder(node: i32) -> ClusterBuilder {
    Cluster::node(node).conf("wal_level", "logical")
}

fn with_table(builder: ClusterBuilder) -> Result<Cluster> {
    let cluster = builder.start_with_extension()?;
    cluster.run(TABLE)?;
    Ok(cluster)
}

/// Publishes the table as `name`, and lets another server subscribe to it.
fn replicate(from: &Server, name: &str, to: &Server) -> Result<()> {
    from.run(&format!("CREATE PUBLICATION {name} FOR TABLE orders"))?;
    subscribe(&mut to.connect()?, from, name)
}

/// Waits until as many rows are there.
fn arrived(client: &mut Client, rows: i64) -> Result<()> {
    wait::until(format!("{rows} rows"), TIMEOUT, || {
        Ok(client.number("SELECT count(*) FROM orders")? >= rows)
    })
}

fn assert_no_conflict(server: &Server, what: &str) -> Result<()> {
    let mut client = server.connect()?;
    client.answers(CONFLICTS, 0)?;
    client.answers("SELECT stopped FROM snowflake_status", "f")?;
    ensure!(!server.log()?.contains(LOGGED), "{what}: {}", server.log()?);
    ids::one(&mut client)?;
    Ok(())
}

#[test]
fn the_first_row_of_a_second_server_with_this_number_is_noticed() -> Result<()> {
    let (here, there) = (with_table(builder(5))?, with_table(builder(5))?);
    let (mut client, mut other) = (here.connect()?, there.connect()?);
    client.batch_execute("CALL snowflake_watch('orders')")?;
    replicate(&there, "there", &here)?;
    ids::nextval(&mut client, 100)?;
    let id = ids::fetch(
        &mut other,
        "INSERT INTO orders (note) VALUES ('there') RETURNING id",
    )?[0];
    wait::until(
        "the conflict",
        TIMEOUT,
        || Ok(client.number(CONFLICTS)? > 0),
    )?;
    let log = here.log()?;
    for text in [
        LOGGED,
        &format!("ID {id} of 20"),
        "came to table \"orders\"",
        "HINT:  Give each server a node number of its own",
    ] {
        ensure!(log.contains(text), "the log has no {text:?}:\n{log}");
    }
    // A line a minute, whatever arrives.
    let rows = ids::fetch(
        &mut other,
        "INSERT INTO orders SELECT FROM generate_series(1, 5000) RETURNING id",
    )?;
    arrived(&mut client, 1 + rows.len() as i64)?;
    wait::until("the conflicts", TIMEOUT, || {
        Ok(client.number(CONFLICTS)? > 4_000)
    })?;
    assert_eq!(here.log()?.matches(LOGGED).count(), 1);
    // `log` does not stop anything.
    ids::nextval(&mut client, 1_000)?;
    let counted = client.number(CONFLICTS)?;
    let found = "SELECT ids FROM snowflake_audit_tables() WHERE table_name IS NULL";
    client.answers(found, counted)?;
    client.batch_execute("SELECT snowflake_stat_reset()")?;
    client.answers(CONFLICTS, 0)?;
    Ok(())
}

#[test]
fn with_stop_no_id_is_issued_until_a_superuser_accepts_it() -> Result<()> {
    let mut here = with_table(builder(5).conf("snowflake.on_node_conflict", "stop"))?;
    let there = with_table(builder(5))?;
    let mut client = here.connect()?;
    client.batch_execute("CALL snowflake_watch()")?;
    replicate(&there, "there", &here)?;
    let noticed = AtomicBool::new(false);
    // Sessions that know nothing of it draw IDs as fast as they can.
    let (lists, at_stop) = thread::scope(|scope| -> Result<_> {
        let sessions: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| draw_until_refused(&here)))
            .collect();
        wait::until("IDs of the sessions", TIMEOUT, || {
            Ok(client.number("SELECT ids FROM snowflake_status")? > 1_000)
        })?;
        // One row is not enough where its slot is in use here; a few are.
        let mut other = there.connect()?;
        wait::until("the stop", TIMEOUT, || {
            other.batch_execute("INSERT INTO orders (note) VALUES ('there')")?;
            Ok(client.value("SELECT stopped FROM snowflake_status")? == "t")
        })?;
        let at_stop =
            client.number("SELECT max(bound) FROM snowflake_internal.get_stat_slots()")?;
        noticed.store(true, Relaxed);
        let lists: Vec<_> = sessions
            .into_iter()
            .map(|session| session.join().expect("a session"))
            .collect::<Result<_>>()?;
        Ok((lists, at_stop))
    })?;
    let mut all = lists.concat();
    let after = all.iter().filter(|&&id| id > at_stop).count();
    assert_eq!(after, 0, "IDs above {at_stop}");
    println!(
        "8 sessions: {} IDs, then refused; above the last one of the stopped slots: {after}",
        grouped(all.len() as u64)
    );

    for sql in [
        "SELECT snowflake_nextval()",
        "SELECT count(*) FROM snowflake_nextvals(10)",
        "INSERT INTO orders DEFAULT VALUES",
    ] {
        let error = client.refused(sql, "55000")?;
        ensure!(
            error.message.contains("another server has its node number"),
            "{error}"
        );
    }
    // Rows still arrive, and old IDs are still read.
    let mut other = there.connect()?;
    other.batch_execute("INSERT INTO orders SELECT FROM generate_series(1, 100)")?;
    let rows = other.number("SELECT count(*) FROM orders")?;
    arrived(&mut client, rows)?;
    // It stays, after a crash and after a restart.
    let pid: i32 = client.query_one("SELECT pg_backend_pid()", &[])?.get(0);
    here.kill9_backend(pid)?;
    here.connect()?
        .refused("SELECT snowflake_nextval()", "55000")?;
    here.restart()?;
    let mut client = here.connect()?;
    client.refused("SELECT snowflake_nextval()", "55000")?;
    client.answers("SELECT stopped FROM snowflake_status", "t")?;
    client.answers(
        "SELECT count(*) FROM snowflake_audit_tables() WHERE table_name IS NULL",
        1,
    )?;

    client.batch_execute("CREATE ROLE ordinary; GRANT EXECUTE ON FUNCTION snowflake_accept_node_id TO ordinary; SET ROLE ordinary")?;
    assert_eq!(
        client
            .expect_error("SELECT snowflake_accept_node_id()")?
            .sqlstate,
        "42501"
    );
    // Rows that a crash has lost arrive once more. Each of them stops the server again,
    // so the subscription ends before that is accepted.
    client.run(["RESET ROLE", "ALTER SUBSCRIPTION of_there DISABLE"])?;
    let ended = "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type LIKE 'logical replication%worker' \
                 AND datname = current_database()";
    wait::until("the end of the subscription's worker", TIMEOUT, || {
        Ok(client.value(ended)? == "t")
    })?;
    client.batch_execute("SELECT snowflake_accept_node_id()")?;
    let highest = client.number("SELECT max(id) FROM orders")?;
    let later = ids::nextval(&mut client, 1_000)?;
    ensure!(
        later.iter().all(|&id| id > highest),
        "IDs continue below those of the other server"
    );
    all.extend(later);
    Tally::of(all).assert_unique();
    Ok(())
}

/// The IDs of a session until there are no more.
fn draw_until_refused(server: &Server) -> Result<Vec<i64>> {
    let mut client = server.connect()?;
    let mut all = Vec::new();
    loop {
        match client.query(
            "SELECT snowflake_nextval() FROM generate_series(1, 50)",
            &[],
        ) {
            Ok(rows) => all.extend(rows.iter().map(|row| row.get::<_, i64>(0))),
            Err(error) => {
                let code = error.code().map(|code| code.code().to_owned());
                assert_eq!(code.as_deref(), Some("55000"), "{error:?}");
                return Ok(all);
            }
        }
    }
}

#[test]
fn another_node_number_ends_a_stop() -> Result<()> {
    let mut here = with_table(builder(5).conf("snowflake.on_node_conflict", "stop"))?;
    let there = with_table(builder(5))?;
    here.run("CALL snowflake_watch('orders')")?;
    replicate(&there, "there", &here)?;
    there.run("INSERT INTO orders (note) VALUES ('there')")?;
    let mut client = here.connect()?;
    wait::until("the stop", TIMEOUT, || {
        Ok(client.value("SELECT stopped FROM snowflake_status")? == "t")
    })?;
    // PostgreSQL does not resume an initial copy that a shutdown interrupts at its end.
    wait::until("the end of the initial copy", TIMEOUT, || {
        Ok(client.number("SELECT count(*) FROM pg_subscription_rel WHERE srsubstate <> 'r'")? == 0)
    })?;
    here.set_conf("snowflake.node_id", 6)?;
    here.restart()?;
    let mut client = here.connect()?;
    there.run("INSERT INTO orders SELECT FROM generate_series(1, 100)")?;
    arrived(&mut client, 101)?;
    client.answers(CONFLICTS, 0)?;
    client.answers("SELECT snowflake_node_id(snowflake_nextval())", 6)?;
    // Back to the number: the conflict was forgotten with it.
    Ok(())
}

/// Initial copies of own rows, rows that return by an update of the partition key,
/// restored dumps, and COPY beside replication.
#[test]
fn rows_of_this_server_that_come_back_are_no_conflict() -> Result<()> {
    let partitioned = "CREATE TABLE orders (id bigint DEFAULT snowflake_nextval(), place int, note text, PRIMARY KEY (id, place)) PARTITION BY LIST (place);
        CREATE TABLE orders_1 PARTITION OF orders FOR VALUES IN (1);
        CREATE TABLE orders_2 PARTITION OF orders FOR VALUES IN (2)";
    let stop = || builder(1).conf("snowflake.on_node_conflict", "stop");
    let (here, there) = (
        stop().start_with_extension()?,
        builder(2).start_with_extension()?,
    );
    let (mut client, mut other) = (here.connect()?, there.connect()?);
    client.batch_execute(partitioned)?;
    other.batch_execute(partitioned)?;
    client.batch_execute("CALL snowflake_watch()")?;
    let insert = |place: i32| {
        format!("INSERT INTO orders (place) SELECT {place} FROM generate_series(1, 2000)")
    };
    client.batch_execute(&insert(1))?;
    other.batch_execute(&insert(1))?;
    other.batch_execute("CREATE PUBLICATION there FOR TABLE orders")?;
    subscribe(&mut client, &there, "there")?;
    arrived(&mut client, 4_000)?;
    assert_no_conflict(&here, "initial copy of another server's rows")?;
    // What the other server has is copied again: this server's own rows come back.
    client.run(["DROP SUBSCRIPTION of_there", "TRUNCATE orders"])?;
    other.batch_execute(&format!("CREATE TABLE kept AS TABLE orders; {}", insert(2)))?;
    let rows = other.number("SELECT count(*) FROM orders")?;
    subscribe(&mut client, &there, "there")?;
    arrived(&mut client, rows)?;
    assert_no_conflict(&here, "copied again after a TRUNCATE")?;
    // Rows of this server, on the other one by a dump, move between partitions there,
    // which arrives as a deletion and an insertion.
    let own = ids::fetch(
        &mut client,
        "INSERT INTO orders (place) SELECT 1 FROM generate_series(1, 500) RETURNING id",
    )?;
    let list = own
        .iter()
        .map(|id| format!("({id}, 1)"))
        .collect::<Vec<_>>()
        .join(",");
    client.batch_execute("DELETE FROM orders WHERE place = 1 AND snowflake_node_id(id) = 1")?;
    other.batch_execute(&format!(
        "INSERT INTO orders (id, place) VALUES {list}; UPDATE orders SET place = 2 WHERE place = 1"
    ))?;
    // Each partition is followed by itself until its initial copy is over.
    let query = "SELECT count(*) FILTER (WHERE place = 1) = 0 AND count(*) FILTER (WHERE snowflake_node_id(id) = 1) >= 500 FROM orders";
    wait::until("the update", TIMEOUT, || Ok(client.value(query)? == "t"))?;
    assert_no_conflict(
        &here,
        "restored on the other server, and moved to another partition there",
    )?;
    // A restart, and everything copied once more.
    drop(client);
    let mut here = here;
    here.restart()?;
    let mut client = here.connect()?;
    ids::nextval(&mut client, 10)?;
    client.run(["DROP SUBSCRIPTION of_there", "TRUNCATE orders"])?;
    subscribe(&mut client, &there, "there")?;
    let rows = other.number("SELECT count(*) FROM orders")?;
    arrived(&mut client, rows)?;
    assert_no_conflict(&here, "copied again after a restart")?;
    // A load by a superuser with replication's role, as tools for dumps do.
    let data = ids::nextval(&mut client, 1_000)?;
    let list = data
        .iter()
        .map(|id| format!("({id}, 1)"))
        .collect::<Vec<_>>()
        .join(",");
    client.batch_execute(&format!(
        "SET session_replication_role = replica; INSERT INTO orders (id, place) VALUES {list}"
    ))?;
    assert_no_conflict(
        &here,
        "loaded by a session with session_replication_role = replica",
    )?;
    Ok(())
}

/// A stranger's row each second, whose time has passed here, with as many sessions on
/// the only slot as a pool has. No ID waits for it or runs ahead because of it.
#[test]
fn rows_of_a_stranger_hold_up_no_session() -> Result<()> {
    const SESSIONS: usize = 100;
    const SECONDS: u32 = 60;
    const LEASE_US: i64 = 2_000_000;
    let mut here = with_table(
        builder(1)
            .conf("snowflake.layout", "timestamp:41 node:10 sequence:12")
            .conf("max_connections", SESSIONS + 20)
            .movable_clock(),
    )?;
    let mut stranger = here.connect()?;
    stranger
        .batch_execute("CALL snowflake_watch('orders'); SET session_replication_role = replica")?;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(here.connect()?);
    }
    let (mut made, mut highest_lead) = (Vec::new(), i64::MIN);
    for second in 0..SECONDS {
        stranger.batch_execute(
            "INSERT INTO orders SELECT snowflake_compose(snowflake_timestamp(snowflake_nextval()) - interval '1 second', 1, 0, 0)",
        )?;
        for session in &mut sessions {
            // A transaction without an ID, then one with an ID.
            session.batch_execute("SELECT 1")?;
            let id = ids::fetch(
                session,
                "INSERT INTO orders (note) VALUES ('here') RETURNING id",
            )?[0];
            highest_lead = highest_lead.max(
                session.number(&format!(
                    "SELECT (extract(epoch FROM snowflake_timestamp({id})) * 1000000)::bigint"
                ))? - here.clock().now_us(),
            );
            made.push(id);
        }
        here.clock().pass(Duration::from_secs(1))?;
        ensure!(
            stranger.number("SELECT waits FROM snowflake_status")? == 0,
            "calls waited in second {second}"
        );
    }
    drop(sessions);
    here.kill9_all()?;
    here.start()?;
    let mut client = here.connect()?;
    let id = ids::one(&mut client)?;
    let lead = client.number(&format!(
        "SELECT (extract(epoch FROM snowflake_timestamp({id})) * 1000000)::bigint"
    ))? - here.clock().now_us();
    made.push(id);
    let tally = Tally::of(made);
    println!(
        "{SECONDS} rows of a stranger beside {SESSIONS} sessions: {tally}, at most {highest_lead} us ahead of the clock, after a crash {lead} us"
    );
    tally.assert_unique();
    // One ID at a time leaves the slot no reason to be ahead of the clock.
    ensure!(
        highest_lead <= 10_000 && lead <= LEASE_US,
        "{highest_lead} {lead}"
    );
    Ok(())
}

/// What sessions of ordinary roles and of the owner do with the trigger has no effect.
#[test]
fn ordinary_roles_cannot_feign_a_conflict() -> Result<()> {
    let here = with_table(builder(5).conf("snowflake.on_node_conflict", "stop"))?;
    let mut client = here.connect()?;
    let future = client.number("SELECT snowflake_compose(now() + interval '1 hour', 5, 3, 7)")?;
    client.batch_execute(
        "CREATE ROLE mallory; GRANT CREATE ON SCHEMA public TO mallory; CALL snowflake_watch('orders');
         GRANT INSERT, TRIGGER ON orders TO mallory; SET ROLE mallory;
         CREATE TABLE mine (id bigint DEFAULT snowflake_nextval());
         CREATE TRIGGER feigned AFTER INSERT ON mine FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION snowflake_internal.watch();
         ALTER TABLE mine ENABLE ALWAYS TRIGGER feigned;
         CREATE TRIGGER too AFTER INSERT ON orders FOR EACH ROW WHEN (NEW.id > 0) EXECUTE FUNCTION snowflake_internal.watch()",
    )?;
    client.run([
        format!("INSERT INTO mine VALUES ({future})"),
        format!("INSERT INTO orders VALUES ({future})"),
        format!("SELECT snowflake_internal.has_this_node({future})"),
    ])?;
    for (sql, sqlstate) in [
        ("SET session_replication_role = replica", "42501"),
        ("SELECT snowflake_internal.watch()", "39P01"),
        ("CALL snowflake_watch('orders')", "42501"),
        ("SELECT snowflake_accept_node_id()", "42501"),
    ] {
        client.refused(sql, sqlstate)?;
    }
    for (sql, sqlstate) in [
        (
            "CREATE TRIGGER wrong BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION snowflake_internal.watch(); INSERT INTO mine VALUES (1)",
            "39P01",
        ),
        (
            "CREATE TRIGGER wrong AFTER INSERT ON mine EXECUTE FUNCTION snowflake_internal.watch(); INSERT INTO mine VALUES (1)",
            "39P01",
        ),
        (
            "CREATE TRIGGER wrong AFTER UPDATE ON mine FOR EACH ROW EXECUTE FUNCTION snowflake_internal.watch(); UPDATE mine SET id = 1",
            "39P01",
        ),
    ] {
        client.refused(sql, sqlstate)?;
    }
    client.batch_execute("RESET ROLE")?;
    client.answers(CONFLICTS, 0)?;
    ids::one(&mut client)?;
    // A superuser with replication's role can.
    client.run([format!(
        "SET session_replication_role = replica; INSERT INTO orders VALUES ({})",
        future + 1
    )])?;
    client.answers(CONFLICTS, 1)?;
    client.refused("SELECT snowflake_nextval()", "55000")?;
    // An ID that the clock does not reach soon is named, and can be left out.
    let far = client.number("SELECT snowflake_compose('2090-01-01Z', 5, 3, 7)")?;
    client.run([
        format!("INSERT INTO orders VALUES ({far})"),
        "RESET session_replication_role".into(),
    ])?;
    let error = client.refused("SELECT snowflake_accept_node_id()", "55000")?;
    ensure!(error.message.contains(&format!("ID {far},")), "{error}");
    client.run([format!("SELECT snowflake_accept_node_id({far})")])?;
    ids::one(&mut client)?;
    Ok(())
}

/// Any role that may write to a published table elsewhere can write an ID of tomorrow. IDs
/// follow the real ones of the other server, and not that one.
#[test]
fn ids_do_not_follow_one_that_was_written_by_hand_far_ahead() -> Result<()> {
    let here = with_table(
        builder(5)
            .conf("snowflake.on_node_conflict", "stop")
            .conf("snowflake.lease", "2s"),
    )?;
    let mut client = here.connect()?;
    let compose = |ahead: &str| {
        here.connect()?.number(&format!(
            "SELECT snowflake_compose(now() + interval '{ahead}', 5, 3, 7)"
        ))
    };
    let arrives = |client: &mut Client, id: i64| {
        client.run([
            "SET session_replication_role = replica".to_owned(),
            format!("INSERT INTO orders VALUES ({id})"),
            "RESET session_replication_role".to_owned(),
        ])
    };
    client.batch_execute("CALL snowflake_watch('orders')")?;
    ids::one(&mut client)?;
    // Beyond snowflake.max_clock_step, and within it.
    for ahead in ["3 days", "23 hours"] {
        let (real, by_hand) = (compose("1.5 seconds")?, compose(ahead)?);
        arrives(&mut client, by_hand)?;
        arrives(&mut client, real)?;
        for sql in [
            "SELECT snowflake_accept_node_id()".to_owned(),
            "SELECT snowflake_nextval()".to_owned(),
        ] {
            client.refused(&sql, "55000")?;
        }
        let error = client.refused("SELECT snowflake_accept_node_id()", "55000")?;
        ensure!(error.message.contains(&by_hand.to_string()), "{error}");
        ensure!(
            error
                .hint
                .contains(&format!("SELECT snowflake_accept_node_id({by_hand})")),
            "{error}"
        );
        for other in [0, -1, real, by_hand - 1] {
            client.refused(
                &format!("SELECT snowflake_accept_node_id({other})"),
                "22023",
            )?;
        }
        client.refused("SELECT snowflake_nextval()", "55000")?;
        client.run([format!("SELECT snowflake_accept_node_id({by_hand})")])?;
        let id = ids::one(&mut client)?;
        let ahead_ms = ids::DEFAULT.lead_ms(id);
        ensure!(id > real, "{id} is below {real} of the other server");
        ensure!(ahead_ms <= 5_000, "{ahead_ms} ms ahead of the clock");
        // Once accepted, there is nothing to ignore.
        client.refused(
            &format!("SELECT snowflake_accept_node_id({by_hand})"),
            "22023",
        )?;
    }
    // If it is another server's, a superuser follows it on purpose.
    let far = compose("1 hour")?;
    arrives(&mut client, far)?;
    client.refused("SELECT snowflake_accept_node_id()", "55000")?;
    client.run([
        format!("SELECT snowflake_start_after({far})"),
        "SELECT snowflake_accept_node_id()".to_owned(),
    ])?;
    let id = ids::one(&mut client)?;
    ensure!(id > far, "{id} is below {far}");
    Ok(())
}

#[test]
fn tables_of_any_shape_are_watched() -> Result<()> {
    let here = builder(5).start_with_extension()?;
    let mut client = here.connect()?;
    client.batch_execute(
        "CREATE SCHEMA \"Odd \"\"schema\"\"\"; SET search_path = \"Odd \"\"schema\"\"\", public;
         CREATE TABLE \"Odd table\" (\"the id\" bigint DEFAULT snowflake_nextval(), \"Other\" bigint DEFAULT snowflake_id());
         CREATE TABLE parted (x int, id bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE (x);
         CREATE TABLE part_1 (id bigint, x int); ALTER TABLE parted ATTACH PARTITION part_1 FOR VALUES FROM (0) TO (10);
         CREATE TABLE collected (id bigint PRIMARY KEY, note text);
         CREATE DOMAIN key AS bigint; CREATE TABLE by_domain (id key DEFAULT snowflake_nextval());
         CREATE TABLE none (id int PRIMARY KEY);
         CREATE TABLE other_trigger (id bigint DEFAULT snowflake_nextval());
         CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
         CREATE TRIGGER snowflake_watch AFTER INSERT ON other_trigger FOR EACH ROW EXECUTE FUNCTION f()",
    )?;
    let refused_text = client.refused("CALL snowflake_watch('other_trigger')", "42710")?;
    ensure!(
        refused_text.message.contains("other_trigger"),
        "{refused_text}"
    );
    client.batch_execute("DROP TABLE other_trigger; CALL snowflake_watch(); CALL snowflake_watch(); CALL snowflake_watch('collected')")?;
    client.refused("CALL snowflake_watch('none')", "22023")?;
    client.batch_execute(
        "CREATE TABLE part_2 PARTITION OF parted FOR VALUES FROM (10) TO (20);
         ALTER TABLE collected RENAME COLUMN id TO renamed",
    )?;
    let triggers = "SELECT string_agg(tgrelid::regclass || ' ' || tgenabled::text, ', ' ORDER BY tgrelid::regclass::text)
                    FROM pg_trigger WHERE tgname = 'snowflake_watch'";
    client.answers(
        triggers,
        "\"Odd table\" R, by_domain R, collected R, part_1 R, part_2 R, parted R",
    )?;
    let id = |client: &mut Client, n: i32| {
        client.number(&format!(
            "SELECT snowflake_compose(now() + interval '{n} min', 5, 1, {n})"
        ))
    };
    let mut expected = 0;
    client.batch_execute("SET session_replication_role = replica")?;
    for (n, statement) in [
        "INSERT INTO \"Odd table\" VALUES ($, NULL)",
        "INSERT INTO \"Odd table\" VALUES (1, $)",
        "INSERT INTO parted VALUES (1, $)",
        "INSERT INTO parted VALUES (11, $)",
        "INSERT INTO collected VALUES ($)",
        "INSERT INTO by_domain VALUES ($)",
    ]
    .iter()
    .enumerate()
    {
        let id = id(&mut client, n as i32 + 1)?;
        client.batch_execute(&statement.replace('$', &id.to_string()))?;
        expected += 1;
        client.answers(CONFLICTS, expected)?;
    }
    client.batch_execute("INSERT INTO \"Odd table\" VALUES (NULL, NULL); INSERT INTO collected VALUES (-5), (0), (1), (9223372036854775807)")?;
    // A dump has the trigger as it is.
    client.batch_execute("RESET session_replication_role; DROP TRIGGER snowflake_watch ON collected; DROP TRIGGER snowflake_watch ON parted")?;
    client.answers(triggers, "\"Odd table\" R, by_domain R")?;
    Ok(())
}

/// Sessions that are not replication's keep what COPY does in batches.
#[test]
fn copy_inserts_in_batches_into_a_watched_table() -> Result<()> {
    let here = with_table(builder(5))?;
    let mut client = here.connect()?;
    client.batch_execute(
        "CREATE EXTENSION IF NOT EXISTS pg_walinspect; CALL snowflake_watch('orders')",
    )?;
    let before = client.value("SELECT pg_current_wal_insert_lsn()")?;
    client.batch_execute("COPY orders (note) FROM PROGRAM 'seq 10000'")?;
    let query = format!(
        "SELECT sum(count) FROM pg_get_wal_stats('{before}', pg_current_wal_flush_lsn(), true)
         WHERE \"resource_manager/record_type\" = 'Heap2/MULTI_INSERT'"
    );
    let batches = client.number(&query)?;
    ensure!((1..500).contains(&batches));
    Ok(())
}
