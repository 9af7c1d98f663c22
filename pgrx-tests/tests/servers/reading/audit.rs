//! `snowflake_audit`: finds what is wrong with a table's IDs, each finding with
//! its number of IDs and an example, and finds nothing in IDs that are right:
//! under load, after restarts and crashes, after a clock step, on a standby.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use snowflake_tests::clock::Offset;
use snowflake_tests::ids::{self, DEFAULT, Fields, SHORT_SEQUENCE, grouped};
use snowflake_tests::migration::{self};
use snowflake_tests::query::{number, value};
use snowflake_tests::server_error::expect_error;
use snowflake_tests::threads::SetOnDrop;
use snowflake_tests::{Cluster, Stop};

use crate::support::{refused, run, wait_until, what_is_missing};

const DUPLICATES: &str = "duplicates";
const FUTURE: &str = "IDs from the future";
const NEGATIVE: &str = "negative numbers";
const OUTSIDE: &str = "numbers outside of this server's layout";
const NOT_EXPECTED: &str = "IDs of unexpected nodes";
const BELOW: &str = "numbers below the boundary";
const NO_BOUNDARY: &str = "numbers below all IDs, and no boundary is set";
const NOT_OWN: &str = "IDs with this server's node number that it cannot have issued";

const HOUR: Duration = Duration::from_secs(3_600);

/// A finding: what, how many, an example.
type Finding = (String, i64, i64);

fn audit(client: &mut Client, arguments: &str) -> Result<Vec<Finding>> {
    let query = format!("SELECT finding, ids, example FROM snowflake_audit({arguments})");
    Ok(client
        .query(&query, &[])
        .with_context(|| format!("running: {query}"))?
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect())
}

fn assert_clean(client: &mut Client, arguments: &str) -> Result<()> {
    assert_eq!(audit(client, arguments)?, [], "{arguments}");
    Ok(())
}

fn found(finding: &str, count: usize, example: i64) -> Finding {
    (finding.to_owned(), count as i64, example)
}

/// What was found, without the examples.
fn kinds(findings: &[Finding]) -> Vec<(&str, i64)> {
    findings.iter().map(|it| (it.0.as_str(), it.1)).collect()
}

const TABLE: &str = "CREATE TABLE t (id bigint DEFAULT snowflake_nextval())";

/// Rows of `t` from as many sessions at once as it takes to use several slots.
fn insert_by_sessions(
    cluster: &Cluster,
    database: &str,
    sessions: usize,
    rows: usize,
) -> Result<()> {
    let mut clients = Vec::new();
    for _ in 0..sessions {
        clients.push(cluster.connect_to(database)?);
    }
    for client in &mut clients {
        client.batch_execute(&format!(
            "INSERT INTO t SELECT snowflake_nextval() FROM generate_series(1, {rows})"
        ))?;
    }
    Ok(())
}

/// The rows of one server's table into another's, by COPY.
fn copy(from: &mut Client, to: &mut Client) -> Result<u64> {
    let mut rows = Vec::new();
    from.copy_out("COPY t TO STDOUT")?.read_to_end(&mut rows)?;
    let mut writer = to.copy_in("COPY t FROM STDIN")?;
    writer.write_all(&rows)?;
    Ok(writer.finish()?)
}

fn slots(ids: &[i64], fields: &Fields) -> usize {
    let used: BTreeSet<i64> = ids.iter().map(|&id| fields.field(id, "backend")).collect();
    used.len()
}

/// Audits two tables while sessions insert into them. Returns how many audits
/// there were, how many rows a part of them read, and how far the highest ID
/// was ahead of the clock, milliseconds.
fn audit_for_a_while(
    client: &mut Client,
    fields: &Fields,
    first: i64,
    inserted: &AtomicU64,
) -> Result<(u32, i64, i64)> {
    let (mut audits, mut rows, mut highest_lead) = (0, 0, i64::MIN);
    while number(client, "SELECT count(*) FROM t")? == 0 {}
    while audits < 6 || inserted.load(Ordering::Relaxed) <= 5_000 {
        for table in ["t", "keyed"] {
            assert_clean(client, &format!("'{table}'"))?;
            assert_clean(
                client,
                &format!("'{table}', expected_nodes => '{{1}}', boundary => {first}"),
            )?;
            audits += 2;
        }
        // A transaction's snapshot stays as it was.
        let mut before = client
            .build_transaction()
            .isolation_level(postgres::IsolationLevel::RepeatableRead)
            .start()?;
        let row = before.query_one("SELECT count(*), max(id) FROM t", &[])?;
        rows += row.get::<_, i64>(0);
        highest_lead = highest_lead.max(fields.lead_ms(row.get(1)));
        assert!(
            before
                .query("SELECT * FROM snowflake_audit('t')", &[])?
                .is_empty()
        );
        before.rollback()?;
        audits += 1;
    }
    Ok((audits, rows, highest_lead))
}

/// What sessions insert, and how many rows that is.
const INSERTS: [(&str, u64); 4] = [
    (
        "INSERT INTO t DEFAULT VALUES; INSERT INTO keyed DEFAULT VALUES",
        2,
    ),
    (
        "INSERT INTO t SELECT snowflake_nextval() FROM generate_series(1, 20)",
        20,
    ),
    (
        "INSERT INTO keyed SELECT snowflake_nextval() FROM generate_series(1, 20)",
        20,
    ),
    (
        "INSERT INTO t SELECT snowflake_nextvals(3000); SELECT pg_sleep(0.05)",
        3_000,
    ),
];

#[test]
fn nothing_is_found_under_concurrent_inserts() -> Result<()> {
    // With few sequence numbers a tick, bursts run ahead of the clock.
    for fields in [DEFAULT, SHORT_SEQUENCE] {
        let cluster = Cluster::builder()
            .conf("snowflake.node_id", 1)
            .conf("snowflake.layout", fields.layout)
            .start_with_migrate()?;
        let mut client = cluster.connect()?;
        client.batch_execute(TABLE)?;
        client.batch_execute(
            "CREATE TABLE keyed (id bigint PRIMARY KEY DEFAULT snowflake_nextval())",
        )?;
        let first = number(&mut client, "SELECT snowflake_min_id(now())")?;
        let over = AtomicBool::new(false);
        let inserted = AtomicU64::new(0);
        let (audits, rows, highest_lead) = std::thread::scope(|scope| {
            let (cluster, inserted, is_over) = (&cluster, &inserted, &over);
            let sessions = INSERTS.map(|(statement, rows)| {
                scope.spawn(move || -> Result<()> {
                    let mut client = cluster.connect()?;
                    while !is_over.load(Ordering::Relaxed) {
                        client.batch_execute(statement)?;
                        inserted.fetch_add(rows, Ordering::Relaxed);
                    }
                    Ok(())
                })
            });
            let over = SetOnDrop(&over);
            let audits = audit_for_a_while(&mut client, &fields, first, inserted);
            drop(over);
            for session in sessions {
                session.join().expect("a session panicked")?;
            }
            audits
        })?;
        let inserted = inserted.load(Ordering::Relaxed);
        println!(
            "audit: {}: {audits} audits while 4 sessions inserted {} IDs (up to {highest_lead} ms ahead \
             of the clock), {} rows read by a fifth of them: no findings",
            fields.layout,
            grouped(inserted),
            grouped(rows as u64),
        );
    }
    Ok(())
}

/// A server whose table `t` has a thousand IDs and two NULLs; the IDs.
fn thousand_rows() -> Result<(Cluster, Client, Vec<i64>)> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), note text);
         INSERT INTO t SELECT FROM generate_series(1, 1000); INSERT INTO t VALUES (NULL), (NULL)",
    )?;
    let own = ids::fetch(
        &mut client,
        "SELECT id FROM t WHERE id IS NOT NULL ORDER BY id",
    )?;
    assert_clean(&mut client, "'t'")?;
    Ok((cluster, client, own))
}

/// What is found after a change, which is rolled back.
fn expect(client: &mut Client, change: &str, arguments: &str, want: &[Finding]) -> Result<()> {
    client.batch_execute(&format!("BEGIN; {change}"))?;
    let got = audit(client, arguments)?;
    client.batch_execute("ROLLBACK")?;
    assert_eq!(got, want, "{change}");
    assert_clean(client, "'t'")
}

/// An ID of a time and a node.
fn compose(client: &mut Client, time: &str, node: i32) -> Result<i64> {
    number(
        client,
        &format!("SELECT snowflake_compose({time}, {node}, 0, 0)"),
    )
}

const IN_AN_HOUR: &str = "clock_timestamp() + interval '1 hour'";

#[test]
fn duplicates_and_negative_numbers_are_found() -> Result<()> {
    let (_cluster, mut client, own) = thousand_rows()?;
    // Three rows too many: two of one, one of another; NULLs are no duplicates.
    let change = format!(
        "INSERT INTO t VALUES ({0}), ({0}), ({1})",
        own[10], own[500]
    );
    expect(
        &mut client,
        &change,
        "'t'",
        &[found(DUPLICATES, 3, own[500])],
    )?;
    expect(
        &mut client,
        "INSERT INTO t VALUES (-7), (-1), (-9223372036854775808)",
        "'t'",
        &[found(NEGATIVE, 3, -1)],
    )
}

/// Another server's: an hour ahead, and as far ahead as bursts are after a start.
#[test]
fn ids_from_the_future_are_found() -> Result<()> {
    let (_cluster, mut client, _) = thousand_rows()?;
    let client = &mut client;
    let hour = compose(client, IN_AN_HOUR, 2)?;
    let half = compose(client, "clock_timestamp() + interval '2500 ms'", 2)?;
    let change = format!("INSERT INTO t VALUES ({hour}), ({half}), ({hour} + 1)");
    expect(client, &change, "'t'", &[found(FUTURE, 2, hour + 1)])?;
    client.batch_execute("CREATE INDEX ON t (id)")?;
    expect(
        client,
        &change,
        "'t', expected_nodes => '{1,2,NULL}'",
        &[found(FUTURE, 2, hour + 1)],
    )
}

#[test]
fn ids_of_nodes_not_expected_are_found() -> Result<()> {
    let (_cluster, mut client, own) = thousand_rows()?;
    let client = &mut client;
    let second = compose(client, "'2026-01-01'", 2)?;
    let third = compose(client, "'2026-01-02'", 3)?;
    let others = format!("INSERT INTO t VALUES ({second}), ({second} + 1), ({third})");
    for (arguments, want) in [
        ("'t'", &[][..]),
        ("'t', expected_nodes => '{1,2,3}'", &[]),
        (
            "'t', expected_nodes => '{3,1}'",
            &[found(NOT_EXPECTED, 2, second + 1)],
        ),
        (
            "'t', expected_nodes => '{}'",
            &[found(NOT_EXPECTED, 1_003, own[999])],
        ),
    ] {
        expect(client, &others, arguments, want)?;
    }
    Ok(())
}

/// Some are below 0, as after positive numbers had run out.
#[test]
fn old_serial_ids_are_found() -> Result<()> {
    let (_cluster, mut client, own) = thousand_rows()?;
    let client = &mut client;
    let old = "INSERT INTO t SELECT -5 + i FROM generate_series(0, 104) AS i";
    expect(
        client,
        old,
        "'t', expected_nodes => '{1}'",
        &[found(NEGATIVE, 5, -1), found(NO_BOUNDARY, 100, 99)],
    )?;
    expect(
        client,
        old,
        &format!("'t', expected_nodes => '{{1}}', boundary => {}", own[0]),
        &[found(BELOW, 105, 99)],
    )?;
    expect(
        client,
        &format!("{old}; INSERT INTO t VALUES (50), (50)"),
        &format!("'t', NULL, '{{1}}', {}", own[1]),
        &[found(DUPLICATES, 2, 50), found(BELOW, 108, own[0])],
    )
}

/// For each slot an ID with this server's number right above those that the
/// slot knows to have issued; and how many slots have issued any.
fn above_the_slots(client: &mut Client, own: &[i64]) -> Result<(Vec<i64>, usize)> {
    let mut above = Vec::new();
    let mut used = 0;
    for row in client.query(
        "SELECT backend_id, bound FROM snowflake_internal.get_stat_slots() ORDER BY 1",
        &[],
    )? {
        let (backend, bound): (i32, Option<i64>) = (row.get(0), row.get(1));
        used += usize::from(bound.is_some());
        let id = match bound {
            Some(bound) => {
                let issued = |id: &&i64| DEFAULT.field(**id, "backend") == i64::from(backend);
                assert_eq!(Some(&bound), own.iter().rfind(issued));
                bound + 1
            }
            // The slot never issued an ID.
            None => number(
                client,
                &format!("SELECT snowflake_compose('2026-01-01', 1, {backend}, 7)"),
            )?,
        };
        assert_eq!(DEFAULT.field(id, "backend"), i64::from(backend));
        above.push(id);
    }
    Ok((above, used))
}

#[test]
fn ids_that_no_slot_of_this_server_issued_are_found() -> Result<()> {
    let (_cluster, mut client, own) = thousand_rows()?;
    let client = &mut client;
    let (not_own, used) = above_the_slots(client, &own)?;
    assert_eq!((used, not_own.len()), (slots(&own, &DEFAULT), 16));
    let highest = *not_own.iter().max().context("no slots")?;
    let values: Vec<String> = not_own.iter().map(|id| format!("({id})")).collect();
    let change = format!("INSERT INTO t VALUES {}", values.join(", "));
    expect(client, &change, "'t'", &[found(NOT_OWN, 16, highest)])?;
    // One of them below the boundary, one above, in the same slot.
    let free = not_own
        .iter()
        .find(|&&id| id < own[0])
        .context("every slot was used")?;
    // In the tick after the last one: all of them may be of one tick.
    let late = (((own[999] >> 22) + 1) << 22) | (free & ((1 << 22) - 1));
    expect(
        client,
        &format!("INSERT INTO t VALUES ({free}), ({late})"),
        &format!("'t', boundary => {}", own[0]),
        &[found(BELOW, 1, *free), found(NOT_OWN, 1, late)],
    )?;
    let later = compose(client, IN_AN_HOUR, 1)?;
    expect(
        client,
        &format!("INSERT INTO t VALUES ({later})"),
        "'t'",
        &[found(FUTURE, 1, later), found(NOT_OWN, 1, later)],
    )?;

    // All kinds of findings at once.
    let hour = compose(client, IN_AN_HOUR, 2)?;
    let third = compose(client, "'2026-01-02'", 3)?;
    expect(
        client,
        &format!(
            "INSERT INTO t VALUES (-3), ({third}), ({hour}), (1), (1), ({0}), ({1})",
            own[5], not_own[0]
        ),
        "'t', expected_nodes => '{1}', boundary => -10",
        &[
            found(DUPLICATES, 2, own[5]),
            found(FUTURE, 1, hour),
            found(NEGATIVE, 1, -3),
            found(NOT_EXPECTED, 4, hour),
            found(NOT_OWN, 1, not_own[0]),
        ],
    )
}

#[test]
fn numbers_above_a_narrow_layouts_bits_are_found() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.layout", "js53")
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute("INSERT INTO t SELECT FROM generate_series(1, 10)")?;
    assert_clean(client, "'t', NULL, '{1}'")?;
    let widest = 1_i64 << 53;
    expect(
        client,
        &format!("INSERT INTO t VALUES ({widest}), (9223372036854775807)"),
        "'t', NULL, '{1}'",
        &[found(OUTSIDE, 2, i64::MAX)],
    )?;
    let last = widest - 1;
    expect(
        client,
        &format!("INSERT INTO t VALUES ({last})"),
        "'t'",
        &[found(FUTURE, 1, last)],
    )
}

#[test]
fn without_node_and_backend_numbers_every_id_is_this_servers() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.layout", "timestamp:41 sequence:12")
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute("INSERT INTO t SELECT FROM generate_series(1, 10)")?;
    assert_clean(client, "'t', NULL, '{0}'")?;
    let top = number(client, "SELECT max(id) FROM t")?;
    expect(
        client,
        "INSERT INTO t SELECT max(id) + n FROM t, generate_series(1, 5) AS n GROUP BY n",
        "'t'",
        &[found(NOT_OWN, 5, top + 5)],
    )
}

#[test]
fn ids_of_a_second_server_with_the_same_number_are_found() -> Result<()> {
    let start = |node: i32| -> Result<Cluster> {
        let cluster = Cluster::builder()
            .conf("snowflake.node_id", node)
            .conf("snowflake.lease", "500ms")
            .start_with_migrate()?;
        cluster.connect()?.batch_execute(TABLE)?;
        Ok(cluster)
    };
    let (here, same, other) = (start(1)?, start(1)?, start(2)?);
    // This server's first, then the others': the later ones can be distinguished.
    insert_by_sessions(&here, "postgres", 6, 500)?;
    insert_by_sessions(&same, "postgres", 6, 500)?;
    insert_by_sessions(&other, "postgres", 6, 500)?;
    let (mut at, mut twin, mut stranger) = (here.connect()?, same.connect()?, other.connect()?);

    let copied = copy(&mut stranger, &mut at)?;
    assert_clean(&mut at, "'t'")?;
    assert_clean(&mut at, "'t', expected_nodes => '{1,2}'")?;
    let theirs = ids::fetch(&mut stranger, "SELECT id FROM t ORDER BY id")?;
    assert_eq!(
        audit(&mut at, "'t', expected_nodes => '{1}'")?,
        [found(
            NOT_EXPECTED,
            3_000,
            *theirs.last().context("no rows")?
        )]
    );
    println!(
        "audit: {copied} rows of a server with another number: none wrong, all of a node not expected"
    );

    copy(&mut twin, &mut at)?;
    let theirs = ids::fetch(&mut twin, "SELECT id FROM t ORDER BY id")?;
    let last = *theirs.last().context("no rows")?;
    for arguments in ["'t'", "'t', expected_nodes => '{1,2}'"] {
        assert_eq!(
            audit(&mut at, arguments)?,
            [found(NOT_OWN, 3_000, last)],
            "{arguments}"
        );
    }
    // The other one sees it too, and its own rows are not among them.
    let before = ids::fetch(&mut twin, "SELECT id FROM t")?;
    insert_by_sessions(&here, "postgres", 3, 100)?;
    twin.batch_execute("CREATE TABLE own AS TABLE t; TRUNCATE t")?;
    copy(&mut at, &mut twin)?;
    let rows = audit(&mut twin, "'t'")?;
    let brought = number(&mut at, "SELECT count(*) FROM t")?;
    ensure!(
        rows.len() == 1 && rows[0].0 == NOT_OWN && (300..=3_300).contains(&rows[0].1),
        "{rows:?}"
    );
    assert!(!before.contains(&rows[0].2), "{rows:?}");
    println!(
        "audit: of a server with the same number, 3,000 of 3,000 rows ({} slots) in one, {} of 3,300 \
         among {brought} in the other, where the rest is older than its own slots' last IDs",
        slots(&theirs, &DEFAULT),
        rows[0].1
    );

    // A restart here: the mark and the floor are ahead of the clock, so what
    // the other made before cannot be distinguished any more; what it issues later can.
    let mut here = here;
    here.restart()?;
    wait_until(&mut here.connect()?, ABOVE_THE_MARK)?;
    twin.batch_execute("TRUNCATE t")?;
    insert_by_sessions(&same, "postgres", 6, 500)?;
    let mut at = here.connect()?;
    at.batch_execute("TRUNCATE t")?;
    copy(&mut twin, &mut at)?;
    let last = number(&mut twin, "SELECT max(id) FROM t")?;
    assert_eq!(audit(&mut at, "'t'")?, [found(NOT_OWN, 3_000, last)]);
    println!(
        "audit: after a restart, before the first ID, all 3,000 rows that came after the lease"
    );
    Ok(())
}

/// Whether what is generated now is above what the database had reserved.
const ABOVE_THE_MARK: &str =
    "SELECT snowflake_min_id(clock_timestamp() - interval '100 ms') > last_value
    FROM snowflake_internal.mark";

/// Ends a server in one of five ways, and starts it again.
fn disturb(cluster: &mut Cluster, round: i32) -> Result<()> {
    match round {
        0 => return cluster.restart(),
        2 => cluster.stop(Stop::Immediate)?,
        3 => {
            let mut victim = cluster.connect()?;
            let pid = ids::backend_pid(&mut victim)?;
            return cluster.kill9_backend(pid);
        }
        _ => {
            if round == 4 {
                cluster.connect()?.batch_execute("CHECKPOINT")?;
            }
            cluster.kill9_all()?;
        }
    }
    cluster.start()
}

/// The IDs of one database in a table of another one of the same server.
fn copy_to_second(cluster: &Cluster) -> Result<()> {
    let all = ids::fetch(&mut cluster.connect()?, "SELECT id FROM t")?;
    let list: Vec<String> = all.iter().map(i64::to_string).collect();
    cluster.connect_to("second")?.batch_execute(&format!(
        "TRUNCATE copied; INSERT INTO copied SELECT unnest('{{{}}}'::bigint[]); CHECKPOINT",
        list.join(",")
    ))?;
    Ok(())
}

#[test]
fn nothing_is_found_after_restarts_and_crashes() -> Result<()> {
    let mut cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .conf("snowflake.lease", "500ms")
        .start_with_migrate()?;
    cluster.connect()?.batch_execute(TABLE)?;
    let mut second = cluster.connect_to_new_database("second")?;
    second.batch_execute(TABLE)?;
    second.batch_execute("CREATE TABLE copied (id bigint)")?;
    let mut rows = 0;
    for round in 0..5 {
        insert_by_sessions(&cluster, "second", 2, 400)?;
        if round == 1 {
            // What follows is above the second one's mark.
            wait_until(&mut cluster.connect_to("second")?, ABOVE_THE_MARK)?;
        }
        insert_by_sessions(&cluster, "postgres", 5, 400)?;
        copy_to_second(&cluster)?;
        disturb(&mut cluster, round)?;
        let mut client = cluster.connect()?;
        let mut second = cluster.connect_to("second")?;
        let audit_all = |client: &mut Client, second: &mut Client| -> Result<()> {
            assert_clean(client, "'t', NULL, '{1}'")?;
            assert_clean(second, "'t', NULL, '{1}'")?;
            assert_clean(second, "'copied', 'id', '{1}'")
        };
        // Before the first ID, after that of one database, of both.
        audit_all(&mut client, &mut second)?;
        let one = ids::one(&mut client)?;
        audit_all(&mut client, &mut second)?;
        second.batch_execute("INSERT INTO t DEFAULT VALUES")?;
        audit_all(&mut client, &mut second)?;
        rows = number(&mut client, "SELECT count(*) FROM t")?;
        // An ID of a slot that has issued none is still found.
        let above = one ^ (1 << 12);
        second.batch_execute(&format!("BEGIN; INSERT INTO copied VALUES ({above})"))?;
        let used = number(
            &mut second,
            &format!(
                "SELECT count(*) FROM snowflake_internal.get_stat_slots()
                 WHERE backend_id = {} AND bound >= {above}",
                DEFAULT.field(above, "backend")
            ),
        )?;
        if used == 0 {
            assert_eq!(
                audit(&mut second, "'copied', 'id'")?,
                [found(NOT_OWN, 1, above)]
            );
        }
        second.batch_execute("ROLLBACK")?;
    }
    println!(
        "audit: {} rows through 5 restarts and crashes: no findings",
        grouped(rows as u64)
    );
    Ok(())
}

/// As a dump sets it; no ID was issued since then. So far ahead of the clock a
/// superuser has to confirm it before IDs are issued again.
#[test]
fn nothing_is_found_below_a_mark_that_was_set() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    insert_by_sessions(&cluster, "postgres", 5, 400)?;
    let ahead = number(
        client,
        "SELECT snowflake_compose(clock_timestamp() + interval '10 minutes', 1, 3, 0)",
    )?;
    client.batch_execute(&format!("INSERT INTO t VALUES ({ahead})"))?;
    assert_eq!(
        audit(client, "'t'")?,
        [found(FUTURE, 1, ahead), found(NOT_OWN, 1, ahead)]
    );
    client.batch_execute(&format!(
        "SELECT setval('snowflake_internal.mark', {ahead} + 1)"
    ))?;
    assert_clean(client, "'t'")?;
    client.batch_execute(
        "SELECT snowflake_start_after(last_value - 1) FROM snowflake_internal.mark",
    )?;
    assert_clean(client, "'t'")?;
    insert_by_sessions(&cluster, "postgres", 3, 10)?;
    assert_clean(client, "'t'")
}

#[test]
fn only_ids_of_the_future_are_found_after_a_clock_step() -> Result<()> {
    let mut cluster = Cluster::builder()
        .conf("snowflake.node_id", 1)
        // The audit compares with the server's clock_timestamp().
        .faketime()
        .start_with_migrate()?;
    cluster.connect()?.batch_execute(TABLE)?;
    let mut audits = 0;
    let mut clean = |cluster: &Cluster| -> Result<()> {
        audits += 1;
        assert_clean(&mut cluster.connect()?, "'t', NULL, '{1}'")
    };
    insert_by_sessions(&cluster, "postgres", 4, 200)?;
    clean(&cluster)?;
    cluster.clock().step(Offset::back(HOUR))?;
    clean(&cluster)?;
    for _ in 0..3 {
        insert_by_sessions(&cluster, "postgres", 4, 200)?;
        clean(&cluster)?;
    }
    let mut client = cluster.connect()?;
    let behind = "SELECT clock_behind > interval '59 min' FROM snowflake_status";
    assert_eq!(value(&mut client, behind)?, "t");
    // Others' IDs may be as far ahead as this server's, no further.
    let later = number(
        &mut client,
        "SELECT snowflake_compose(clock_timestamp() + interval '2 hours', 2, 0, 0)",
    )?;
    client.batch_execute(&format!("BEGIN; INSERT INTO t VALUES ({later})"))?;
    assert_eq!(audit(&mut client, "'t'")?, [found(FUTURE, 1, later)]);
    client.batch_execute("ROLLBACK")?;

    // A crash in the meantime.
    cluster.kill9_all()?;
    cluster.start()?;
    clean(&cluster)?;
    insert_by_sessions(&cluster, "postgres", 4, 200)?;
    clean(&cluster)?;

    // A step of a day or more is not slewed: this server issues no IDs, and
    // those that exist are later than its clock allows.
    cluster.clock().step(Offset::back(48 * HOUR))?;
    let mut client = cluster.connect()?;
    refused(&mut client, "SELECT snowflake_nextval()", "58000")?;
    let rows = number(&mut client, "SELECT count(*) FROM t")?;
    let last = number(&mut client, "SELECT max(id) FROM t")?;
    assert_eq!(
        audit(&mut client, "'t'")?,
        [found(FUTURE, rows as usize, last)]
    );
    println!(
        "audit: {audits} audits of {rows} own IDs around a step back of an hour and a crash: no findings; \
         {rows} from the future by a clock that is 49 hours behind"
    );
    Ok(())
}

/// How many scans of tables this transaction has begun.
fn scans(client: &mut Client, tables: &str) -> Result<i64> {
    number(
        client,
        &format!(
            "SELECT sum(seq_scan + coalesce(idx_scan, 0)) FROM pg_stat_xact_user_tables WHERE relname ~ '{tables}'"
        ),
    )
}

#[test]
fn duplicates_across_partitions_and_children_are_found() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    // The same numbers in two partitions, each with a unique index of its own.
    client.batch_execute(
        "CREATE TABLE parts (region text NOT NULL, id bigint DEFAULT snowflake_nextval(), PRIMARY KEY (region, id))
             PARTITION BY LIST (region);
         CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a');
         CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b');
         CREATE UNIQUE INDEX ON parts_a (id); CREATE UNIQUE INDEX ON parts_b (id);
         INSERT INTO parts (region) SELECT 'a' FROM generate_series(1, 300);
         INSERT INTO parts SELECT 'b', id FROM parts ORDER BY id LIMIT 25",
    )?;
    let example = number(client, "SELECT max(id) FROM parts_b")?;
    assert_eq!(audit(client, "'parts'")?, [found(DUPLICATES, 25, example)]);
    assert_clean(client, "'parts_a'")?;
    assert_clean(client, "'parts_b', 'id'")?;

    client.batch_execute(
        "CREATE TABLE parent (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
         INSERT INTO parent SELECT FROM generate_series(1, 100);
         INSERT INTO child TABLE parent LIMIT 7",
    )?;
    let example = number(client, "SELECT max(id) FROM child")?;
    assert_eq!(audit(client, "'parent'")?, [found(DUPLICATES, 7, example)]);
    assert_clean(client, "'child'")
}

/// Tables, how many scans an audit of each takes, and how many findings it has:
/// one scan where an index proves that no ID is repeated, otherwise two.
const SCANS: &[(&str, i64, usize)] = &[
    ("keyed", 1, 0),
    ("bare", 2, 0),
    ("partial", 2, 0),
    ("twofold", 2, 0),
    ("covering", 1, 0),
    ("late", 2, 0),
    ("broken", 2, 1),
    ("by_id", 1, 0),
    ("only_parent", 2, 1),
];

#[test]
fn a_unique_index_saves_a_scan() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE keyed (id bigint PRIMARY KEY DEFAULT snowflake_nextval());
         CREATE TABLE bare (id bigint DEFAULT snowflake_nextval());
         CREATE TABLE partial (id bigint DEFAULT snowflake_nextval(), is_live boolean);
         CREATE UNIQUE INDEX ON partial (id) WHERE is_live;
         CREATE TABLE twofold (id bigint DEFAULT snowflake_nextval(), n int, UNIQUE (id, n));
         CREATE TABLE covering (id bigint DEFAULT snowflake_nextval(), n int);
         CREATE UNIQUE INDEX ON covering (id) INCLUDE (n);
         CREATE TABLE late (id bigint DEFAULT snowflake_nextval() UNIQUE DEFERRABLE INITIALLY DEFERRED);
         CREATE TABLE broken (id bigint DEFAULT snowflake_nextval());
         CREATE TABLE by_id (id bigint PRIMARY KEY DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         CREATE TABLE by_id_1 PARTITION OF by_id DEFAULT;
         CREATE TABLE only_parent (id bigint DEFAULT snowflake_nextval()) PARTITION BY RANGE (id);
         CREATE TABLE only_parent_1 PARTITION OF only_parent DEFAULT;
         CREATE UNIQUE INDEX ON ONLY only_parent (id)",
    )?;
    let mut counted = Vec::new();
    for &(table, ..) in SCANS {
        client.batch_execute(&format!(
            "INSERT INTO {table} (id) SELECT snowflake_nextval() FROM generate_series(1, 50)"
        ))?;
        if table == "broken" {
            client.batch_execute("INSERT INTO broken SELECT max(id) FROM broken")?;
            expect_error(client, "CREATE UNIQUE INDEX CONCURRENTLY ON broken (id)")?;
        }
        if table == "only_parent" {
            client.batch_execute("INSERT INTO only_parent SELECT max(id) FROM only_parent")?;
        }
        client.batch_execute("BEGIN")?;
        let before = scans(client, &format!("^{table}"))?;
        let rows = audit(client, &format!("'{table}'"))?;
        let after = scans(client, &format!("^{table}"))?;
        client.batch_execute("COMMIT")?;
        counted.push((table, after - before, rows.len()));
    }
    assert_eq!(counted, SCANS);
    // A constraint that is not checked yet.
    client.batch_execute("BEGIN; INSERT INTO late SELECT min(id) FROM late")?;
    let example = number(client, "SELECT min(id) FROM late")?;
    assert_eq!(audit(client, "'late'")?, [found(DUPLICATES, 1, example)]);
    client.batch_execute("ROLLBACK")?;
    Ok(())
}

/// Also types that are no bigint, and the column where none is named.
#[test]
fn tables_and_columns_with_any_name_are_audited() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE SCHEMA \"Other Schema\";
         CREATE TABLE \"Other Schema\".\"Mixed \"\"Case\"\" 'name' %s\" (gone int, \"The \"\"ID\"\" %I\" bigint DEFAULT snowflake_nextval());
         ALTER TABLE \"Other Schema\".\"Mixed \"\"Case\"\" 'name' %s\" DROP COLUMN gone;
         INSERT INTO \"Other Schema\".\"Mixed \"\"Case\"\" 'name' %s\" VALUES (DEFAULT), (DEFAULT), (-5), (-5);
         CREATE TABLE \"t; DROP TABLE bare --\" (\"id; DROP TABLE bare --\" bigint DEFAULT snowflake_nextval());
         INSERT INTO \"t; DROP TABLE bare --\" VALUES (DEFAULT), (-1);
         CREATE TEMP TABLE passing (id bigint DEFAULT snowflake_nextval()); INSERT INTO passing VALUES (-1);
         CREATE DOMAIN number AS bigint; CREATE DOMAIN positive AS number CHECK (VALUE <> 0);
         CREATE TABLE of_domain (id positive DEFAULT snowflake_nextval()); INSERT INTO of_domain VALUES (-1), (DEFAULT);
         CREATE TABLE old (id serial, parent smallint); INSERT INTO old (parent) SELECT -1 FROM generate_series(1, 9);
         CREATE TABLE two (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), other bigint DEFAULT snowflake_nextval());
         INSERT INTO two VALUES (-1, DEFAULT);
         CREATE TABLE fed (n serial, id bigint DEFAULT snowflake_nextval()); INSERT INTO fed VALUES (1, -1)",
    )?;
    for (arguments, count) in [
        ("'\"Other Schema\".\"Mixed \"\"Case\"\" ''name'' %s\"'", 2),
        (
            "'\"Other Schema\".\"Mixed \"\"Case\"\" ''name'' %s\"', 'The \"ID\" %I'",
            2,
        ),
        ("'\"t; DROP TABLE bare --\"'", 1),
        ("'passing'", 1),
        ("'of_domain'", 1),
        ("'old', 'parent'", 9),
        ("'two'", 1),
        ("'fed'", 1),
    ] {
        let rows = audit(client, arguments)?;
        let negative = rows.iter().find(|(finding, ..)| finding == NEGATIVE);
        assert_eq!(
            negative.map(|it| it.1),
            Some(count),
            "{arguments}: {rows:?}"
        );
    }
    assert_eq!(audit(client, "'old'")?, [found(NO_BOUNDARY, 9, 9)]);
    assert_clean(client, "'two', 'other'")?;
    assert_eq!(
        audit(client, "'old', boundary => 1000")?,
        [found(BELOW, 9, 9)]
    );
    Ok(())
}

#[test]
fn a_search_path_with_traps_changes_nothing() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(TABLE)?;
    client.batch_execute(
        "INSERT INTO t SELECT FROM generate_series(1, 50);
         CREATE SCHEMA trap;
         CREATE FUNCTION trap.snowflake_node_id(bigint) RETURNS int LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''sprung''; END';
         CREATE FUNCTION trap.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''sprung''; END';
         CREATE FUNCTION trap.more(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''sprung''; END';
         CREATE OPERATOR trap.> (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = trap.more);
         CREATE TABLE trap.mark (last_value bigint, log_cnt bigint);
         SET search_path = trap, pg_catalog, public",
    )?;
    assert_clean(client, "'t'")?;

    // The extension in a schema of its own, out of the search path.
    run(client, ["RESET search_path", "CREATE DATABASE apart"])?;
    let mut apart = cluster.connect_to("apart")?;
    apart.batch_execute(
        "CREATE SCHEMA \"Ids %s Of\"; CREATE EXTENSION snowflake SCHEMA \"Ids %s Of\"; CREATE EXTENSION snowflake_migrate;
         CREATE TABLE t (id bigint DEFAULT \"Ids %s Of\".snowflake_nextval()); INSERT INTO t VALUES (DEFAULT), (-1)",
    )?;
    let row = apart.query_one("SELECT * FROM \"Ids %s Of\".snowflake_audit('t')", &[])?;
    assert_eq!(row.get::<_, &str>(0), NEGATIVE);
    Ok(())
}

#[test]
fn roles_that_may_read_the_column_may_audit_it() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE reader LOGIN; CREATE ROLE of_column LOGIN; CREATE ROLE stranger LOGIN;
         CREATE ROLE seer LOGIN BYPASSRLS;
         CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), secret text);
         INSERT INTO t SELECT FROM generate_series(1, 100);
         INSERT INTO t SELECT id FROM t LIMIT 4;
         INSERT INTO t VALUES (-1), (snowflake_compose(clock_timestamp() + interval '1 hour', 1, 0, 0));
         GRANT SELECT ON t TO reader, seer; GRANT SELECT (id) ON t TO of_column",
    )?;
    let all = audit(&mut client, "'t'")?;
    assert_eq!(
        kinds(&all),
        [(DUPLICATES, 4), (FUTURE, 1), (NEGATIVE, 1), (NOT_OWN, 1)]
    );
    for role in ["reader", "of_column", "seer"] {
        let mut its = cluster.connect_as(role, "postgres")?;
        assert_eq!(audit(&mut its, "'t'")?, all, "{role}");
    }
    let query = "SELECT * FROM snowflake_audit('t')";
    let denied = refused(
        &mut cluster.connect_as("stranger", "postgres")?,
        query,
        "42501",
    )?;
    assert_eq!(denied.message, "permission denied for table t");

    // Rows that a policy hides would be missing: an error, not a wrong answer.
    client.batch_execute(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY hiding ON t USING (id > 0)",
    )?;
    let denied = refused(
        &mut cluster.connect_as("reader", "postgres")?,
        query,
        "42501",
    )?;
    assert!(
        denied.message.contains("row-level security policy"),
        "{denied}"
    );
    assert_eq!(
        audit(&mut cluster.connect_as("seer", "postgres")?, "'t'")?,
        all
    );
    assert_eq!(audit(&mut client, "'t'")?, all);
    Ok(())
}

#[test]
fn relations_and_columns_without_ids_are_refused() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), secret text);
         CREATE VIEW seen AS TABLE t;
         CREATE SEQUENCE numbers;
         CREATE TABLE mixed (id uuid, at timestamptz, price numeric, a bigint DEFAULT snowflake_nextval(),
                             b bigint DEFAULT snowflake_nextval());
         CREATE TABLE plain (id bigint)",
    )?;
    for (arguments, sqlstate) in [
        ("'seen'", "42809"),
        ("'numbers'", "42809"),
        ("'seen', 'id'", "42809"),
        ("0, 'id'", "42P01"),
        ("NULL, 'id'", "42P01"),
        ("NULL", "42P01"),
        ("'t', 'nothing'", "42703"),
        ("'t', 'ctid'", "42703"),
        ("'t', 'secret'", "42804"),
        ("'mixed', 'id'", "42804"),
        ("'mixed', 'at'", "42804"),
        ("'mixed', 'price'", "42804"),
        ("'mixed'", "22023"),
        ("'plain'", "55000"),
    ] {
        refused(
            &mut client,
            &format!("SELECT * FROM snowflake_audit({arguments})"),
            sqlstate,
        )?;
    }
    Ok(())
}

/// An audit through psql: the rows and the notices.
fn notices(cluster: &Cluster, arguments: &str) -> Result<String> {
    let script = format!("SELECT * FROM snowflake_audit({arguments})");
    let written = migration::psql(cluster, "postgres", "postgres", &script, true)?;
    ensure!(written.success, "{written:?}");
    Ok(written.output + &written.errors)
}

const NOTICE: &str =
    "NOTICE:  IDs that this server cannot have issued are not searched for\nDETAIL:  ";

/// A standby of the same number, before and after it is promoted.
#[test]
fn a_standby_looks_for_all_but_ids_of_its_own_number() -> Result<()> {
    let primary = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .can_be_copied()
        .start_with_migrate()?;
    primary.connect()?.batch_execute(TABLE)?;
    insert_by_sessions(&primary, "postgres", 4, 100)?;
    let mut standby = Cluster::builder()
        .conf("snowflake.node_id", 1)
        .prepare_standby_of(&primary)?;
    standby.start()?;
    insert_by_sessions(&primary, "postgres", 4, 100)?;
    standby.catch_up_with(&primary)?;
    assert_eq!(
        notices(&standby, "'t', NULL, '{1}'")?,
        format!("{NOTICE}A standby issues no IDs. Run the audit on its primary server.\n")
    );
    assert_eq!(notices(&primary, "'t', NULL, '{1}'")?, "");
    let mut client = standby.connect()?;
    assert_eq!(
        kinds(&audit(&mut client, "'t', NULL, '{2}'")?)[0],
        (NOT_EXPECTED, 800)
    );
    drop(primary);
    standby.promote()?;
    assert_eq!(notices(&standby, "'t', NULL, '{1}'")?, "");
    insert_by_sessions(&standby, "postgres", 3, 100)?;
    assert_eq!(notices(&standby, "'t', NULL, '{1}'")?, "");
    println!("audit: 800 rows on a standby, 1,100 after its promotion: no findings");
    Ok(())
}

#[test]
fn a_server_that_issues_no_ids_looks_for_all_but_its_own() -> Result<()> {
    let fill = "CREATE TABLE t (id bigint);
         INSERT INTO t SELECT snowflake_compose(timestamptz '2026-01-01' + n * interval '1 min', n % 3, 0, 0)
         FROM generate_series(1, 300) AS n;
         INSERT INTO t SELECT min(id) FROM t; INSERT INTO t VALUES (-4), (3);
         INSERT INTO t VALUES (snowflake_compose(clock_timestamp() + interval '1 hour', 0, 0, 0))";
    for (builder, reason) in [
        (
            Cluster::builder().without_preload(),
            match what_is_missing()? {
                "shared_preload_libraries" => "snowflake is not in shared_preload_libraries.",
                _ => "snowflake.node_id is not set.",
            },
        ),
        (Cluster::builder(), "snowflake.node_id is not set."),
    ] {
        let cluster = builder.start_with_migrate()?;
        let mut client = cluster.connect()?;
        client.batch_execute(fill)?;
        assert_eq!(
            kinds(&audit(&mut client, "'t', 'id', '{0,1}', 100")?),
            [
                (DUPLICATES, 1),
                (FUTURE, 1),
                (NOT_EXPECTED, 100),
                (BELOW, 2)
            ],
            "{reason}"
        );
        let said = notices(&cluster, "'t', 'id', '{0,1,2}', 100")?;
        assert!(said.contains(&format!("{NOTICE}{reason}\n")), "{said}");
    }
    Ok(())
}

/// The boundary of a migrated column is set, and is the default of `boundary`.
#[test]
fn old_rows_of_a_migrated_column_are_below_its_boundary() -> Result<()> {
    let cluster = Cluster::builder()
        .conf("snowflake.node_id", 0)
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE orders (id serial PRIMARY KEY, n int, note text);
         INSERT INTO orders (n) SELECT n FROM generate_series(1, 50000) AS n;
         CREATE ROLE reader LOGIN; GRANT SELECT (id) ON orders TO reader;
         CALL snowflake_migrate.run('orders'); INSERT INTO orders (n) SELECT 1 FROM generate_series(1, 100)",
    )?;
    // They are no finding, and a large number that no integer column had is one.
    assert_clean(client, "'orders'")?;
    let planted = number(
        client,
        "INSERT INTO orders (id) VALUES (snowflake_compose('2025-06-01 00:00+00', 5, 0, 0)) RETURNING id",
    )?;
    assert_eq!(audit(client, "'orders'")?, [found(BELOW, 1, planted)]);
    client.batch_execute(&format!("DELETE FROM orders WHERE id = {planted}"))?;
    // Above the boundary, the other server is found by its number.
    let planted = number(
        client,
        "INSERT INTO orders (id) VALUES (snowflake_compose(now(), 5, 0, 0)) RETURNING id",
    )?;
    assert_eq!(
        audit(client, "'orders', expected_nodes => '{0}'")?,
        [found(NOT_EXPECTED, 1, planted)]
    );
    client.batch_execute(&format!("DELETE FROM orders WHERE id = {planted}"))?;
    assert_eq!(
        number(
            client,
            "SELECT count(*) FROM snowflake_audit_tables('public', '{0}')"
        )?,
        0
    );
    // For roles that may read the column, too.
    let boundary = "SELECT snowflake_id_boundary('orders', 'id')";
    let set = number(client, boundary)?;
    let mut reader = cluster.connect_as("reader", "postgres")?;
    assert_eq!(number(&mut reader, boundary)?, set);
    assert_clean(&mut reader, "'orders', 'id'")?;
    // An explicit one takes precedence.
    let explicit = audit(client, "'orders', boundary => 11")?;
    assert_eq!(explicit[0], found(BELOW, 10, 10));
    assert_eq!(explicit[1].0, NOT_OWN);
    Ok(())
}

/// What the tool's audit finds: IDs, and the largest.
fn former(client: &mut Client, arguments: &str) -> Result<Vec<(i64, i64)>> {
    let found = client.query(
        &format!(
            "SELECT ids, example FROM snowflake_migrate.audit({arguments})
             WHERE finding = 'IDs from the former sequence since the migration'"
        ),
        &[],
    )?;
    Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Something other than the default continues to use the sequence.
#[test]
fn rows_from_the_former_sequence_are_found() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE t (id bigserial PRIMARY KEY, n int); INSERT INTO t (n) SELECT 1 FROM generate_series(1, 100);
         INSERT INTO t VALUES (5000);
         CREATE ROLE reader LOGIN; GRANT SELECT ON t TO reader;
         CALL snowflake_migrate.run('t'); INSERT INTO t (n) VALUES (1)",
    )?;
    // A value that no row has is not one.
    client.batch_execute("SELECT nextval('t_id_seq')")?;
    assert_eq!(former(client, "'t'")?, []);
    client.batch_execute(
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.id := nextval(''t_id_seq''); RETURN NEW; END';
         CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f();
         INSERT INTO t (n) SELECT 1 FROM generate_series(1, 7)",
    )?;
    assert_eq!(former(client, "'t'")?, [(7, 1107)]);
    assert_eq!(former(client, "")?, [(7, 1107)]);
    assert_clean(client, "'t'")?;
    // The sequence's value is recorded for the table's owner only.
    let mut reader = cluster.connect_as("reader", "postgres")?;
    assert_eq!(former(&mut reader, "'t'")?, []);
    client.batch_execute(
        "DROP TRIGGER f ON t; CALL snowflake_migrate.revert('t'); INSERT INTO t (n) VALUES (2)",
    )?;
    assert_eq!(former(client, "'t'")?, []);
    Ok(())
}
