//! `snowflake_audit` finds nothing in IDs that are right, and finds those of others: under
//! load, after restarts and crashes, after a clock step, on a standby, with other layouts.
//! What it finds in one session has a golden file (`audit`).

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use snowflake_tests::ids::SHORT_SEQUENCE;
use snowflake_tests::migration;

use crate::support::*;

const DUPLICATES: &str = "duplicates";
const FUTURE: &str = "IDs from the future";
const OUTSIDE: &str = "numbers outside of this server's layout";
const NOT_EXPECTED: &str = "IDs of unexpected nodes";
const BELOW: &str = "numbers below the boundary";
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
    while client.number("SELECT count(*) FROM t")? == 0 {}
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
#[rustfmt::skip]
const INSERTS: [(&str, u64); 4] = [
    ("INSERT INTO t DEFAULT VALUES; INSERT INTO keyed DEFAULT VALUES", 2),
    ("INSERT INTO t SELECT snowflake_nextval() FROM generate_series(1, 20)", 20),
    ("INSERT INTO keyed SELECT snowflake_nextval() FROM generate_series(1, 20)", 20),
    ("INSERT INTO t SELECT snowflake_nextvals(3000); SELECT pg_sleep(0.05)", 3_000),
];

#[test]
fn nothing_is_found_under_concurrent_inserts() -> Result<()> {
    // With few sequence numbers a tick, bursts run ahead of the clock.
    for fields in [DEFAULT, SHORT_SEQUENCE] {
        let cluster = Cluster::node(1)
            .conf("snowflake.layout", fields.layout)
            .start_with_migrate()?;
        let mut client = cluster.connect()?;
        client.batch_execute(TABLE)?;
        client.batch_execute(
            "CREATE TABLE keyed (id bigint PRIMARY KEY DEFAULT snowflake_nextval())",
        )?;
        let first = client.number("SELECT snowflake_min_id(now())")?;
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

/// What is found after a change, which is rolled back.
fn expect(client: &mut Client, change: &str, arguments: &str, want: &[Finding]) -> Result<()> {
    client.batch_execute(&format!("BEGIN; {change}"))?;
    let got = audit(client, arguments)?;
    client.batch_execute("ROLLBACK")?;
    assert_eq!(got, want, "{change}");
    assert_clean(client, "'t'")
}

#[test]
fn numbers_above_a_narrow_layouts_bits_are_found() -> Result<()> {
    let cluster = Cluster::node(1)
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
    let top = client.number("SELECT max(id) FROM t")?;
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
        let cluster = Cluster::node(node)
            .conf("snowflake.lease", "500ms")
            .start_with_migrate()?;
        cluster.run(TABLE)?;
        Ok(cluster)
    };
    let (here, same, other) = (start(1)?, start(1)?, start(2)?);
    // This server's first, then the others': the later ones can be distinguished.
    insert_by_sessions(&here, "postgres", 6, 500)?;
    insert_by_sessions(&same, "postgres", 6, 500)?;
    insert_by_sessions(&other, "postgres", 6, 500)?;
    let (mut at, mut twin, mut stranger) = (here.connect()?, same.connect()?, other.connect()?);

    copy(&mut stranger, &mut at)?;
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
    let brought = at.number("SELECT count(*) FROM t")?;
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
    here.connect()?.wait_until(ABOVE_THE_MARK)?;
    twin.batch_execute("TRUNCATE t")?;
    insert_by_sessions(&same, "postgres", 6, 500)?;
    let mut at = here.connect()?;
    at.batch_execute("TRUNCATE t")?;
    copy(&mut twin, &mut at)?;
    let last = twin.number("SELECT max(id) FROM t")?;
    assert_eq!(audit(&mut at, "'t'")?, [found(NOT_OWN, 3_000, last)]);
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
                cluster.run("CHECKPOINT")?;
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
    let mut cluster = Cluster::node(1)
        .conf("snowflake.lease", "500ms")
        .start_with_migrate()?;
    cluster.run(TABLE)?;
    let mut second = cluster.connect_to_new_database("second")?;
    second.batch_execute(TABLE)?;
    second.batch_execute("CREATE TABLE copied (id bigint)")?;
    for round in 0..5 {
        insert_by_sessions(&cluster, "second", 2, 400)?;
        if round == 1 {
            // What follows is above the second one's mark.
            cluster.connect_to("second")?.wait_until(ABOVE_THE_MARK)?;
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
        // An ID of a slot that has issued none is still found.
        let above = one ^ (1 << 12);
        second.batch_execute(&format!("BEGIN; INSERT INTO copied VALUES ({above})"))?;
        let used = second.number(&format!(
            "SELECT count(*) FROM snowflake_internal.get_stat_slots()
                 WHERE backend_id = {} AND bound >= {above}",
            DEFAULT.field(above, "backend")
        ))?;
        if used == 0 {
            assert_eq!(
                audit(&mut second, "'copied', 'id'")?,
                [found(NOT_OWN, 1, above)]
            );
        }
        second.batch_execute("ROLLBACK")?;
    }
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
    let ahead = client
        .number("SELECT snowflake_compose(clock_timestamp() + interval '10 minutes', 1, 3, 0)")?;
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
    let mut cluster = Cluster::node(1)
        // The audit compares with the server's clock_timestamp().
        .faketime()
        .start_with_migrate()?;
    cluster.run(TABLE)?;
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
    client.answers(behind, "t")?;
    // Others' IDs may be as far ahead as this server's, no further.
    let later = client
        .number("SELECT snowflake_compose(clock_timestamp() + interval '2 hours', 2, 0, 0)")?;
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
    client.refused("SELECT snowflake_nextval()", "58000")?;
    let rows = client.number("SELECT count(*) FROM t")?;
    let last = client.number("SELECT max(id) FROM t")?;
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
    let primary = Cluster::node(1).can_be_copied().start_with_migrate()?;
    primary.run(TABLE)?;
    insert_by_sessions(&primary, "postgres", 4, 100)?;
    let mut standby = Cluster::node(1).prepare_standby_of(&primary)?;
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
