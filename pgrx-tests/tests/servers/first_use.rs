//! A server that does not preload the library, from PostgreSQL 17 on: the first call that issues
//! an ID makes the shared memory, and decides the layout and the node number.
//!
//! What needs several sessions, or a server before its first ID. Each server here is new, and
//! no session loads the library before its first statement.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Barrier;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

use crate::support::*;

const NEXT: &str = "SELECT snowflake_nextval()";

fn without_preload() -> ClusterBuilder {
    Cluster::builder().without_preload()
}

/// A server with the extension whose configuration has node number 3.
fn server() -> Result<Cluster> {
    without_preload()
        .conf("snowflake.node_id", 3)
        .start_with_extension()
}

fn node_of(id: i64) -> i64 {
    DEFAULT.field(id, "node")
}

fn with_options(server: &Server, user: &str, options: &str) -> Result<Client> {
    Ok(server
        .config(user, "postgres")
        .options(options)
        .connect(NoTls)?)
}

/// As many sessions as call at once, each for its first time; the server's too.
fn at_once(server: &Server, sessions: usize, each: usize) -> Result<Vec<i64>> {
    let barrier = Barrier::new(sessions);
    let draw = || -> Result<Vec<i64>> {
        let mut client = server.connect()?;
        barrier.wait();
        ids::nextval(&mut client, each)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..sessions).map(|_| scope.spawn(draw)).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().expect("a thread")?);
        }
        Ok(all)
    })
}

#[test]
fn sixty_four_first_calls_at_once_make_one_memory() -> Result<()> {
    for kind in ["posix", "mmap", "sysv"] {
        let mut cluster = without_preload()
            .conf("snowflake.node_id", 3)
            .conf("dynamic_shared_memory_type", kind)
            .start_with_extension()?;
        let mut all = at_once(&cluster, 64, 500)?;
        // A process that ends by SIGKILL takes the memory of all along. It is made anew.
        let mut victim = cluster.connect()?;
        all.extend(ids::nextval(&mut victim, 500)?);
        let pid = ids::backend_pid(&mut victim)?;
        cluster.kill9_backend(pid)?;
        all.extend(at_once(&cluster, 64, 500)?);
        cluster.kill9_all()?;
        cluster.start()?;
        all.extend(at_once(&cluster, 64, 500)?);
        assert!(all.iter().all(|&id| node_of(id) == 3));
        let tally = Tally::of(all);
        println!("first use: {kind}: 64 sessions at once, three times: {tally}");
        tally.assert_unique();
        cluster.connect()?.answers(
            "SELECT count(*) FROM snowflake_status WHERE NOT preloaded AND ids >= 32000 AND node_id = 3",
            1,
        )?;
    }
    Ok(())
}

/// A setting, a value that is refused, and the message.
#[rustfmt::skip]
const INVALID: &[(&str, &str, &str)] = &[
    ("snowflake.node_id", "64", "invalid value for parameter \"snowflake.node_id\": 64"),
    ("snowflake.node_id", "abc", "invalid value for parameter \"snowflake.node_id\": \"abc\""),
    ("snowflake.layout", "nonsense", "invalid value for parameter \"snowflake.layout\": \"nonsense\""),
    ("snowflake.lease", "0", "invalid value for parameter \"snowflake.lease\": \"0\""),
    ("snowflake.layuot", "twitter", "unrecognized configuration parameter \"snowflake.layuot\""),
    ("snowflake.on_node_conflict", "warn", "invalid value for parameter \"snowflake.on_node_conflict\": \"warn\""),
    ("snowflake.enable_time_ranges", "perhaps", "invalid value for parameter \"snowflake.enable_time_ranges\": \"perhaps\""),
    ("snowflake.node_id_source", "address", "could not find the node number of this server: snowflake.node_id_source is \"address\""),
];

/// A value of the configuration that is not valid fails the call, as it fails the start of a
/// server that preloads the library; and decides nothing.
#[test]
fn a_call_with_an_invalid_setting_fails_and_decides_nothing() -> Result<()> {
    let cluster = without_preload().conf("snowflake.node_id", 1).start()?;
    let admin = &mut cluster.connect()?;
    // Nor do CREATE EXTENSION, the views and what reads IDs.
    admin.batch_execute(
        "CREATE ROLE ordinary LOGIN; CREATE EXTENSION snowflake_migrate CASCADE;
         CREATE TABLE t (id bigint); SELECT snowflake_timestamp(1); TABLE snowflake_status; TABLE snowflake_stat_slots;
         TABLE snowflake_unresolved; SELECT * FROM snowflake_audit('t', 'id'); SELECT * FROM snowflake_migrate.survey()",
    )?;
    admin.answers("SELECT pending_restart IS NULL FROM snowflake_status", "t")?;
    cluster.set_conf("snowflake.node_id", -1)?;
    let first = || -> Result<ServerError> {
        let error = cluster.connect()?.expect_error(NEXT)?;
        assert!(!error.message.contains("DSM"), "{error}");
        Ok(error)
    };
    let error = first()?;
    assert_eq!(error.sqlstate, "55000", "{error}");
    assert!(
        error.hint.contains("ALTER SYSTEM SET snowflake.node_id"),
        "{error}"
    );
    for &(name, text, message) in INVALID {
        let path = cluster.data().join("postgresql.conf");
        let before = std::fs::read(&path)?;
        cluster.set_conf(name, text)?;
        let error = first()?;
        assert_eq!(error.sqlstate, "22023", "{name} = {text}: {error}");
        assert_eq!(error.message, message);
        assert!(error.detail.contains("postgresql.conf"), "{error}");
        // The file's place is not for everybody.
        let error = cluster
            .connect_as("ordinary", "postgres")?
            .expect_error(NEXT)?;
        assert_eq!(error.message, message);
        assert!(!error.detail.contains("postgresql.conf"), "{error}");
        std::fs::write(&path, before)?;
    }
    cluster.append_conf("postgresql.conf", "work_mem = 'a")?;
    let error = first()?;
    assert_eq!(error.sqlstate, "F0000", "{error}");
    cluster.append_conf("postgresql.conf", "")?;
    let path = cluster.data().join("postgresql.conf");
    let lines = std::fs::read_to_string(&path)?.replace("work_mem = 'a", "");
    std::fs::write(&path, lines)?;
    cluster.set_conf("snowflake.node_id", 5)?;
    // No reload is needed.
    assert_eq!(node_of(ids::one(&mut cluster.connect()?)?), 5);
    Ok(())
}

/// What a client, a role or a database sets hides the configured value from a session that
/// loads the library. It has no effect, also in the first session of all.
#[test]
fn what_a_session_sets_hides_nothing() -> Result<()> {
    const ALL: &str = "-c snowflake.node_id=9 -c snowflake.layout=twitter -c snowflake.lease=77 \
                       -c snowflake.node_id_source=hostname -c snowflake.max_clock_step=1";
    let mut all = Vec::new();
    for way in ["options", "role", "database", "session"] {
        let cluster = server()?;
        let admin = &mut cluster.connect()?;
        admin.batch_execute("CREATE ROLE ordinary LOGIN")?;
        let mut client = match way {
            "options" => with_options(&cluster, "ordinary", ALL)?,
            _ => {
                for setting in [
                    "snowflake.node_id = 9",
                    "snowflake.layout = 'twitter'",
                    "snowflake.lease = 77",
                ] {
                    match way {
                        "role" => {
                            admin.batch_execute(&format!("ALTER ROLE ordinary SET {setting}"))?
                        }
                        "database" => admin
                            .batch_execute(&format!("ALTER DATABASE postgres SET {setting}"))?,
                        _ => {}
                    }
                }
                cluster.connect_as("ordinary", "postgres")?
            }
        };
        if way == "session" {
            client.batch_execute("SET snowflake.node_id = 9; SET snowflake.layout = 'twitter'; SET snowflake.lease = 77")?;
        }
        let id = ids::one(&mut client)?;
        assert_eq!(node_of(id), 3, "{way}");
        all.push(id);
        for (name, expected) in [
            ("node_id", "3"),
            ("layout", "default"),
            ("lease", "2s"),
            ("max_clock_step", "1d"),
        ] {
            client.answers(&format!("SHOW snowflake.{name}"), expected)?;
        }
        // What a session may set is as it was set.
        client.batch_execute("SET snowflake.max_wait = '1s'")?;
        client.refused("SET snowflake.node_id = 9", "55P02")?;
        all.push(ids::one(&mut cluster.connect()?)?);
    }
    Tally::of(all).assert_unique();
    // The command line counts more than the file.
    for argument in [
        "-c snowflake.node_id=7",
        "--snowflake.node-id=7",
        "-csnowflake.node_id=7",
    ] {
        let mut builder = without_preload().conf("snowflake.node_id", 3);
        for part in argument.split(' ') {
            builder = builder.argument(part);
        }
        let cluster = builder.start_with_extension()?;
        let client = &mut with_options(&cluster, "postgres", "-c snowflake.node_id=9")?;
        assert_eq!(node_of(ids::one(client)?), 7, "{argument}");
    }
    Ok(())
}

#[test]
fn a_later_change_waits_for_the_restart() -> Result<()> {
    let mut cluster = server()?;
    let old = &mut cluster.connect()?;
    assert_eq!(node_of(ids::one(old)?), 3);
    let pending = "SELECT pending_restart FROM snowflake_status";
    old.answers(pending, "f")?;
    old.batch_execute("ALTER SYSTEM SET snowflake.node_id = 5")?;
    cluster.reload()?;
    cluster.connect()?.answers(pending, "t")?;
    assert_eq!(node_of(ids::one(&mut cluster.connect()?)?), 3);
    assert_eq!(node_of(ids::one(old)?), 3);
    assert!(
        cluster
            .log()?
            .contains("the layout or the node number of this server was changed")
    );
    cluster.restart()?;
    let new = &mut cluster.connect()?;
    assert_eq!(node_of(ids::one(new)?), 5);
    new.answers(pending, "f")?;
    Ok(())
}

/// Where the first call can be made.
#[test]
fn the_first_call_works_anywhere() -> Result<()> {
    let parallel = "SET debug_parallel_query = on; SET parallel_leader_participation = off;
                    SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0";
    for (what, statements) in [
        ("a subtransaction that is rolled back", "BEGIN; SAVEPOINT s; SELECT snowflake_nextval(); ROLLBACK TO s; COMMIT"),
        ("a failed transaction", "DO $$ BEGIN PERFORM snowflake_nextval(); RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN NULL; END $$"),
        ("a trigger", "CREATE TABLE t (id bigint); CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := snowflake_nextval(); RETURN NEW; END $$;
                       CREATE TRIGGER f BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); INSERT INTO t VALUES (1)"),
        ("with a statement_timeout", "SET statement_timeout = '10s'; SELECT snowflake_nextval()"),
        ("a read-only transaction", "BEGIN READ ONLY; SELECT snowflake_nextval(); COMMIT"),
        ("a prepared transaction", "BEGIN; SELECT snowflake_nextval(); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p'"),
    ] {
        let cluster = without_preload()
            .conf("snowflake.node_id", 3)
            .conf("max_prepared_transactions", 2)
            .start_with_extension()?;
        let mut first = cluster.connect()?;
        for statement in statements.split_inclusive(if statements.contains("$$") { '\0' } else { ';' }) {
            first.batch_execute(statement).context(what)?;
        }
        let mut all = ids::nextval(&mut first, 1_000)?;
        all.extend(ids::nextval(&mut cluster.connect()?, 1_000)?);
        let resolved = "SELECT snowflake_resolved_id() IS NOT NULL";
        cluster.connect()?.answers(resolved, "t")?;
        Tally::of(all).assert_unique();
    }
    // In a parallel worker, for a transaction that fails, of a session that ends: nothing holds back readers.
    let cluster = server()?;
    let mut leader = cluster.connect()?;
    leader.batch_execute(parallel)?;
    leader.batch_execute(
        "CREATE TABLE big AS SELECT n FROM generate_series(1, 20000) AS n; ANALYZE big",
    )?;
    leader.batch_execute(
        "BEGIN; CREATE TABLE made AS SELECT snowflake_nextval() AS id FROM big; ROLLBACK",
    )?;
    drop(leader);
    let mut reader = cluster.connect()?;
    let id = ids::one(&mut reader)?;
    reader.wait_until(&format!("SELECT snowflake_resolved_id() > {id}"))?;
    // In a parallel worker: directly, and in a function, of which the leader does not know that it
    // is the library's.
    let cluster = server()?;
    let first = &mut cluster.connect()?;
    first.batch_execute(
        "CREATE TABLE big AS SELECT n FROM generate_series(1, 20000) AS n; ANALYZE big;
         CREATE FUNCTION wrapped() RETURNS bigint PARALLEL SAFE LANGUAGE plpgsql AS $$ BEGIN RETURN snowflake_nextval(); END $$",
    )?;
    let mut all: Vec<i64> = Vec::new();
    let leader = &mut cluster.connect()?;
    leader.batch_execute(parallel)?;
    leader.batch_execute("CREATE TABLE made AS SELECT snowflake_nextval() AS id FROM big")?;
    all.extend(ids::fetch(leader, "SELECT id FROM made")?);
    // What the workers have published is cleared.
    let held = "SELECT snowflake_resolved_id() > max(id) FROM made";
    std::thread::sleep(std::time::Duration::from_millis(50));
    cluster.connect()?.answers(held, "t")?;
    let unloaded = &mut cluster.connect()?;
    unloaded.batch_execute(parallel)?;
    let error = unloaded.refused(
        "CREATE TABLE other AS SELECT wrapped() AS id FROM big",
        "55000",
    )?;
    assert!(error.hint.contains("LOAD 'snowflake'"), "{error}");
    unloaded
        .batch_execute("LOAD 'snowflake'; CREATE TABLE other AS SELECT wrapped() AS id FROM big")?;
    all.extend(ids::fetch(unloaded, "SELECT id FROM other")?);
    let tally = Tally::of(all);
    println!("first use: by parallel workers: {tally}");
    tally.assert_unique();
    Ok(())
}

/// Sessions of two versions of the library in one server: those of the other form issue no IDs.
#[test]
fn a_library_of_another_form_issues_no_ids() -> Result<()> {
    let cluster = server()?;
    let old = &mut cluster.connect()?;
    let mut all = ids::nextval(old, 1_000)?;
    let switch = cluster.data().join("snowflake.other_form");
    std::fs::write(&switch, "")?;
    let new = &mut cluster.connect()?;
    let error = new.refused(NEXT, "55000")?;
    assert_eq!(error.hint, "Restart the server.", "{error}");
    assert!(
        new.text(&format!("SELECT snowflake_timestamp({})", all[0]))?
            .is_some()
    );
    new.answers("SELECT count(*) FROM snowflake_status", "1")?;
    all.extend(ids::nextval(old, 1_000)?);
    std::fs::remove_file(&switch)?;
    all.extend(ids::nextval(&mut cluster.connect()?, 1_000)?);
    let tally = Tally::of(all);
    println!("first use: beside a library of another form: {tally}");
    tally.assert_unique();
    Ok(())
}

/// A database gets the OID of one that was dropped by a session without the library, and its mark
/// the same number: it is not taken for that one's.
#[test]
fn a_database_with_the_oid_of_another_has_a_mark_of_its_own() -> Result<()> {
    let databases = tier::size(40, 300);
    let cluster = server()?;
    let mut admin = cluster.connect()?;
    admin.batch_execute("CREATE DATABASE template_of_all")?;
    cluster
        .connect_to("template_of_all")?
        .batch_execute("CREATE EXTENSION snowflake")?;
    let mut all = Vec::new();
    for round in 0..databases {
        // A session that has not loaded the library.
        admin.batch_execute(
            "CREATE DATABASE again TEMPLATE template_of_all OID 70000 STRATEGY file_copy",
        )?;
        let mut client = cluster.connect_to("again")?;
        all.extend(ids::nextval(&mut client, 3)?);
        let covered =
            "SELECT last_value > snowflake_currval() AND log_cnt < 0 FROM snowflake_internal.mark";
        client.answers(covered, "t")?;
        drop(client);
        admin.batch_execute("DROP DATABASE again WITH (FORCE)")?;
        if round % 50 == 0 {
            admin.batch_execute("CHECKPOINT")?;
        }
    }
    let tally = Tally::of(all);
    println!("first use: {databases} databases with one OID: {tally}");
    tally.assert_unique();
    Ok(())
}

/// A standby that is promoted, and its former primary, both without preload. The standby has had its memory
/// since before a transaction was prepared that has drawn from the primary's.
#[test]
fn a_promoted_standby_continues() -> Result<()> {
    let primary = without_preload()
        .conf("snowflake.node_id", 3)
        .conf("wal_level", "replica")
        .conf("max_prepared_transactions", 2)
        .start_with_extension()?;
    let mut client = primary.connect()?;
    client.batch_execute("CREATE TABLE t (id bigint PRIMARY KEY DEFAULT snowflake_nextval())")?;
    client.batch_execute("INSERT INTO t SELECT FROM generate_series(1, 5000)")?;
    let mut standby = without_preload().prepare_standby_of(&primary)?;
    standby.start()?;
    standby.catch_up_with(&primary)?;
    let reader = &mut standby.connect()?;
    reader.refused(NEXT, "25006")?;
    reader.answers("SELECT count(snowflake_timestamp(id)) FROM t", 5_000)?;
    reader.batch_execute("SELECT snowflake_internal.has_this_node(1)")?;
    client.batch_execute("BEGIN; INSERT INTO t DEFAULT VALUES; PREPARE TRANSACTION 'it'")?;
    standby.catch_up_with(&primary)?;
    standby.promote()?;
    let client = &mut standby.connect()?;
    client.answers("SELECT snowflake_resolved_id() IS NULL", "t")?;
    client.batch_execute("COMMIT PREPARED 'it'")?;
    client.batch_execute("INSERT INTO t SELECT FROM generate_series(1, 5000)")?;
    let tally = Tally::of(ids::fetch(client, "SELECT id FROM t")?);
    println!("first use: a promoted standby: {tally}");
    tally.assert_unique();
    standby.stop(Stop::Immediate)?;
    Ok(())
}

/// The directory of POSIX shared memory, which this thread and the servers that it starts see
/// with a size of its own. The servers' files may be below it, and stay where they are.
fn with_shared_memory_of(size: &str) -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNS).context("making a mount namespace")?;
    let nothing = None::<&str>;
    let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(nothing, "/", nothing, private, nothing).context("making mounts private")?;
    let files = std::env::temp_dir();
    let kept = File::open(&files)?;
    let (kind, options) = (Some("tmpfs"), format!("size={size},mode=1777"));
    mount(
        kind,
        "/dev/shm",
        kind,
        MsFlags::empty(),
        Some(options.as_str()),
    )
    .context("mounting shared memory")?;
    if files.starts_with("/dev/shm") {
        fs::create_dir(&files)?;
        let kept = format!("/proc/self/fd/{}", kept.as_raw_fd());
        let bind = MsFlags::MS_BIND;
        mount(Some(kept.as_str()), &files, nothing, bind, nothing)
            .context("mounting the servers' files")?;
    }
    Ok(())
}

/// Leaves no page of it.
fn fill_shared_memory() -> Result<&'static str> {
    const PATH: &str = "/dev/shm/fill";
    let mut file = File::create(PATH)?;
    while file.write_all(&[0; 4_096]).is_ok() {}
    Ok(PATH)
}

#[test]
fn shared_memory_without_room_is_an_error_until_there_is_room() -> Result<()> {
    with_shared_memory_of("3m")?;
    let cluster = without_preload()
        .conf("snowflake.node_id", 3)
        .conf("shared_buffers", "16MB")
        .conf("max_parallel_workers_per_gather", 0)
        .start()?;
    let full = fill_shared_memory()?;
    for statement in ["CREATE EXTENSION snowflake", NEXT] {
        let refused = cluster.connect()?.expect_error(statement)?;
        let expected = if statement == NEXT { "42883" } else { "53100" };
        assert_eq!(refused.sqlstate, expected, "{refused}");
    }
    fs::remove_file(full)?;
    cluster.run("CREATE EXTENSION snowflake")?;

    // Its control segment exists now.
    let full = fill_shared_memory()?;
    let refused = cluster.connect()?.expect_error(NEXT)?;
    assert_eq!(refused.sqlstate, "53100", "{refused}");
    fs::remove_file(full)?;
    let mut all = ids::nextval(&mut cluster.connect()?, 1_000)?;

    // What exists needs no more room.
    let full = fill_shared_memory()?;
    for _ in 0..8 {
        all.extend(ids::nextval(&mut cluster.connect()?, 1_000)?);
    }
    fs::remove_file(full)?;
    assert!(all.iter().all(|&id| node_of(id) == 3));
    let tally = Tally::of(all);
    println!("first use, shared memory without room three times: {tally}");
    tally.assert_unique();
    Ok(())
}
