//! The test servers themselves. A harness that leaves servers behind fills a
//! CI machine until nothing starts; one that ends or reaches a server that
//! isn't its own can do real harm; one whose "crash" is a clean stop makes
//! every crash test pass. None of this needs the extension.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use snowflake_tests::installation::{Installation, PG_CONFIG};
use snowflake_tests::time_limit;

use crate::support::*;

/// Set in the child of [`a_killed_test_leaves_nothing`].
const CHILD: &str = "SNOWFLAKE_HARNESS_CHILD";

/// Set in the children of [`a_test_that_hangs_fails`].
const HANGING_CHILD: &str = "SNOWFLAKE_HARNESS_HANGING_CHILD";

fn plain() -> Result<ClusterBuilder> {
    Ok(Cluster::builder()
        .installation(Installation::from_variable(PG_CONFIG)?)
        .without_preload())
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_is_private_and_leaves_nothing() -> Result<()> {
    let cluster = plain()?.conf("work_mem", "5MB").start()?;
    let mut client = cluster.connect()?;
    let row = client.query_one(
        "SELECT current_setting('work_mem'), current_setting('listen_addresses'),
                current_setting('data_directory')",
        &[],
    )?;
    assert_eq!(row.get::<_, &str>(0), "5MB");
    assert_eq!(row.get::<_, &str>(1), "", "it must not listen on TCP");
    let data = PathBuf::from(row.get::<_, &str>(2));
    assert_eq!(data, cluster.data());
    let pid = cluster.pid()?;
    drop(cluster);
    assert!(!processes::is_alive(pid), "the postmaster is still there");
    assert!(
        !data.parent().is_some_and(Path::exists),
        "its directory too"
    );
    Ok(())
}

/// The POSIX shared memory that a server has mapped. It has no other record
/// outside of the server.
fn segments(cluster: &Cluster) -> Result<Vec<PathBuf>> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", cluster.pid()?))?;
    let found: std::collections::BTreeSet<PathBuf> = maps
        .lines()
        .filter_map(|line| Some(PathBuf::from(&line[line.find("/dev/shm/")?..])))
        .collect();
    Ok(found.into_iter().collect())
}

#[test]
fn a_test_that_ends_after_a_crash_leaves_no_shared_memory() -> Result<()> {
    let mut cluster = plain()?.start()?;
    let segments = segments(&cluster)?;
    assert!(!segments.is_empty(), "this server has no segment to leave");
    cluster.kill9_all()?;
    assert!(segments.iter().all(|segment| segment.exists()));
    drop(cluster);
    assert!(!segments.iter().any(|segment| segment.exists()));
    Ok(())
}

#[test]
fn a_panicking_test_leaves_nothing() -> Result<()> {
    let seen = std::sync::Mutex::new((0, PathBuf::new()));
    let panicked = std::panic::catch_unwind(|| -> () {
        let cluster = plain().and_then(ClusterBuilder::start).expect("a server");
        if let Ok(mut seen) = seen.lock() {
            *seen = (cluster.pid().expect("running"), cluster.data().to_owned());
        }
        // Unwinds like a panic, without a backtrace on the screen.
        std::panic::resume_unwind(Box::new("on purpose"));
    });
    assert!(panicked.is_err());
    let (pid, data) = seen.into_inner().expect("not poisoned");
    assert!(!processes::is_alive(pid));
    assert!(!data.exists());
    Ok(())
}

/// Runs this test binary again as a child, which starts a server and waits,
/// and kills it with SIGKILL.
#[test]
fn a_killed_test_leaves_nothing() -> Result<()> {
    let marks = tempfile::tempdir()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([
            "--exact",
            "harness::child_that_waits_to_be_killed",
            "--nocapture",
        ])
        .env(CHILD, marks.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mark = marks.path().join("server");
    wait_until("the child's server didn't start", || mark.exists());
    let text = std::fs::read_to_string(&mark)?;
    let (pid, data) = text.split_once(' ').expect("two words");
    let pid: i32 = pid.parse()?;
    let data = Path::new(data);
    assert!(processes::works_in(pid, data));
    child.kill()?;
    child.wait()?;
    wait_until("its server outlived a killed test", || {
        !processes::works_in(pid, data)
    });
    wait_until("its directory outlived a killed test", || {
        !data.parent().is_some_and(Path::exists)
    });
    Ok(())
}

#[test]
fn child_that_waits_to_be_killed() -> Result<()> {
    let Some(marks) = std::env::var_os(CHILD) else {
        // Run as an ordinary test it has nothing to wait for.
        return Ok(());
    };
    let cluster = plain()?.start()?;
    let text = format!("{} {}", cluster.pid()?, cluster.data().display());
    let marks = PathBuf::from(marks);
    std::fs::write(marks.join("new"), text)?;
    std::fs::rename(marks.join("new"), marks.join("server"))?;
    std::thread::sleep(Duration::from_secs(120));
    Ok(())
}

/// Runs this test binary again as children that hang: in a statement, and
/// where the end of its server wakes no thread.
#[test]
fn a_test_that_hangs_fails() -> Result<()> {
    let marks = tempfile::tempdir()?;
    let cases = [
        ("statement", "the server exceeded its time limit"),
        ("elsewhere", "continues without its server"),
    ];
    let begun = Instant::now();
    let mut children = Vec::new();
    for (place, verdict) in cases {
        let errors = marks.path().join(place);
        let child = Command::new(std::env::current_exe()?)
            .args(["--exact", "harness::child_that_hangs", "--nocapture"])
            .env(HANGING_CHILD, place)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&errors)?)
            .spawn()?;
        children.push((place, verdict, errors, child));
    }
    for (place, verdict, errors, mut child) in children {
        let mut status = None;
        // Collecting stacks takes a while.
        while status.is_none() && begun.elapsed() < Duration::from_secs(180) {
            std::thread::sleep(Duration::from_millis(50));
            status = child.try_wait()?;
        }
        let took = begun.elapsed();
        child.kill()?;
        child.wait()?;
        let said = std::fs::read_to_string(&errors)?;
        let code = status.and_then(|status| status.code());
        assert_eq!(code, Some(101), "{place}, after {took:?}:\n{said}");
        for part in [
            "The server of the test \"harness::child_that_hangs\" exceeded its limit of 1s",
            "postgres: postgres postgres [local] SELECT",
            "ready to accept connections",
            verdict,
        ] {
            assert!(said.contains(part), "\"{part}\" is not in:\n{said}");
        }
    }
    Ok(())
}

#[test]
fn child_that_hangs() -> Result<()> {
    let Some(place) = std::env::var_os(HANGING_CHILD) else {
        // Run as an ordinary test it has nothing to wait for.
        return Ok(());
    };
    let cluster = plain()?.start()?;
    let mut client = cluster.connect()?;
    // How the client reacts to the server's end does not matter: the test
    // fails though it forgets about it.
    let call = std::thread::spawn(move || {
        let _ = client.simple_query("SELECT pg_sleep(600)");
    });
    let mut observer = cluster.connect()?;
    let hangs = "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    wait_until("the statement does not hang", || {
        observer
            .query(hangs, &[])
            .is_ok_and(|rows| !rows.is_empty())
    });
    drop(observer);
    // From now on, so that it does not matter how long the server took to start.
    let is_elsewhere = place == "elsewhere";
    let grace = Duration::from_secs(if is_elsewhere { 1 } else { 100 });
    time_limit::shorten(Duration::from_secs(1), grace);
    if is_elsewhere {
        std::thread::sleep(Duration::from_secs(600));
    }
    let _ = call.join();
    Ok(())
}

#[test]
fn a_crash_loses_what_a_stop_keeps() -> Result<()> {
    let mut cluster = plain()?.start()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (1)")?;
    let before = cluster.pid()?;
    let killed = cluster.kill9_all()?;
    assert!(killed > 3, "a server has more than {killed} processes");
    assert!(!processes::is_alive(before));
    assert!(client.simple_query("SELECT 1").is_err());
    cluster.start()?;
    let log = cluster.log_since_start()?;
    assert!(log.contains("was not properly shut down"), "{log}");
    let mut client = cluster.connect()?;
    assert_eq!(client.query("SELECT * FROM kept", &[])?.len(), 1);

    cluster.restart()?;
    let log = cluster.log_since_start()?;
    assert!(log.contains("was shut down at"), "{log}");

    cluster.stop(Stop::Immediate)?;
    cluster.start()?;
    let log = cluster.log_since_start()?;
    assert!(log.contains("was not properly shut down"), "{log}");

    let mut client = cluster.connect()?;
    let mut bystander = cluster.connect()?;
    let victim = snowflake_tests::ids::backend_pid(&mut client)?;
    let postmaster = cluster.pid()?;
    cluster.kill9_backend(victim)?;
    assert_eq!(cluster.pid()?, postmaster, "the postmaster stays");
    assert!(bystander.simple_query("SELECT 1").is_err());
    assert!(cluster.connect().is_ok());
    Ok(())
}

#[test]
fn a_server_that_refuses_to_start_says_why() -> Result<()> {
    let mut cluster = plain()?.conf("max_connections", "many").prepare()?;
    let log = cluster.start_expecting_failure()?;
    assert!(log.contains("max_connections"), "{log}");
    cluster.set_conf("max_connections", 20)?;
    cluster.start()?;
    assert!(
        cluster.start_expecting_failure().is_err(),
        "it is running already"
    );
    Ok(())
}
