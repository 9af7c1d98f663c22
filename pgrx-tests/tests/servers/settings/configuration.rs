//! What decides an ID's bits is what is written in the configuration, or the
//! server doesn't start.
//!
//! Postgres only warns about a bad value of an extension's setting when it
//! starts, and continues with the default. A server whose layout or node number
//! has a typing error in it would then issue IDs that another server also
//! issues, unnoticed until the rows meet.

use std::sync::{Arc, Mutex};

use crate::support::*;

/// Name, value, and what the line in the log must say.
#[rustfmt::skip]
const BAD: &[(&str, &str, &[&str])] = &[
    ("snowflake.layout", "timestamp:37 node:20 sequence:16", &["snowflake.layout", "73 bits", "63"]),
    ("snowflake.layout", "nonsense", &["snowflake.layout", "nonsense"]),
    ("snowflake.layout", "", &["snowflake.layout"]),
    ("snowflake.layout", "node:6 sequence:12", &["snowflake.layout", "timestamp"]),
    ("snowflake.node_id", "64", &["snowflake.node_id", "64", "63"]),
    ("snowflake.node_id", "abc", &["snowflake.node_id", "abc"]),
    ("snowflake.node_id", "", &["snowflake.node_id"]),
    ("snowflake.node_id", "-2", &["snowflake.node_id", "-2"]),
    ("snowflake.node_id", "99999999999", &["snowflake.node_id", "99999999999"]),
    ("snowflake.lease", "soon", &["snowflake.lease", "soon"]),
    ("snowflake.max_borrow", "-5", &["snowflake.max_borrow", "-5"]),
    ("snowflake.max_clock_step", "a day", &["snowflake.max_clock_step", "a day"]),
    ("snowflake.max_wait", "5 fortnights", &["snowflake.max_wait", "5 fortnights"]),
    ("snowflake.copy_multi_insert", "sometimes", &["snowflake.copy_multi_insert", "sometimes"]),
    // A slip in the name leaves the setting itself at its default.
    ("snowflake.layuot", "twitter", &["snowflake.layuot"]),
    ("snowflake.nodeid", "2", &["snowflake.nodeid"]),
];

#[derive(Debug, Clone, Copy)]
enum Way {
    ConfigurationFile,
    AutoConfigurationFile,
    CommandLine,
}

#[test]
fn a_bad_value_stops_the_start() -> Result<()> {
    let mut cluster = Cluster::node(1).prepare()?;
    let good = |file: &str, cluster: &Cluster| std::fs::read_to_string(cluster.data().join(file));
    for way in [
        Way::ConfigurationFile,
        Way::AutoConfigurationFile,
        Way::CommandLine,
    ] {
        for &(name, value, said) in BAD {
            let file = match way {
                Way::ConfigurationFile => "postgresql.conf",
                Way::AutoConfigurationFile | Way::CommandLine => "postgresql.auto.conf",
            };
            let before = good(file, &cluster)?;
            match way {
                Way::CommandLine => cluster.set_arguments(&["-c", &format!("{name}={value}")]),
                Way::ConfigurationFile | Way::AutoConfigurationFile => {
                    cluster.append_conf(file, &format!("{name} = '{value}'"))?;
                }
            }
            let log = cluster.start_expecting_failure()?;
            let fatal = log
                .lines()
                .skip_while(|line| !line.contains("FATAL:"))
                .collect::<Vec<_>>()
                .join("\n");
            assert!(
                !fatal.is_empty(),
                "{name} = '{value}' by {way:?}: no FATAL line:\n{log}"
            );
            let place = match way {
                Way::CommandLine => format!("{name} is set on the command line."),
                Way::ConfigurationFile | Way::AutoConfigurationFile => format!(
                    "{name} is set in \"{}\", line {}.",
                    cluster.data().join(file).display(),
                    good(file, &cluster)?.lines().count()
                ),
            };
            for part in said.iter().copied().chain([place.as_str()]) {
                assert!(
                    fatal.contains(part),
                    "{name} = '{value}' by {way:?}: the log doesn't say \"{part}\":\n{fatal}"
                );
            }
            assert!(
                !log.contains("ready to accept connections"),
                "{name} = '{value}': it ran first:\n{log}"
            );
            std::fs::write(cluster.data().join(file), before)?;
            cluster.set_arguments(&[]);
        }
    }
    // With the error corrected the same server starts, and issues IDs.
    cluster.start()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE EXTENSION snowflake")?;
    assert_eq!(DEFAULT.field(ids::one(&mut client)?, "node"), 1);
    Ok(())
}

#[test]
fn alter_system_warns_of_a_number_that_the_layout_does_not_have() -> Result<()> {
    let cluster = Cluster::node(1).start()?;
    let mut session = Session::connect(&cluster, "postgres", "postgres")?;
    let warning =
        "snowflake.node_id = 64 does not fit the present layout The highest node number of";
    session.run("SET statement_timeout = '60s'")?;
    let said = session.run("ALTER SYSTEM SET snowflake.node_id = 64")?;
    assert!(said.contains(warning), "{said}");
    // The layout that has it, then a number that fits, and a reload.
    session.run("ALTER SYSTEM SET snowflake.layout = 'twitter'")?;
    let said = session.run("ALTER SYSTEM SET snowflake.node_id = 63")?;
    assert!(said.is_empty(), "{said}");
    session.run("SELECT pg_reload_conf()")?;
    let log = cluster.log()?;
    assert_eq!(
        log.matches("does not fit the present layout").count(),
        1,
        "{log}"
    );
    Ok(())
}

#[test]
fn layout_and_node_number_can_change_together() -> Result<()> {
    let mut cluster = Cluster::node(5).start_with_extension()?;
    let mut client = cluster.connect()?;
    // Neither would be good without the other.
    const GAME: Fields = Fields {
        layout: "timestamp:31 node:20 sequence:12 tick:1s",
        bits: &[("node", 20), ("sequence", 12)],
        tick_us: 1_000_000,
        epoch: DEFAULT.epoch,
    };
    client.batch_execute(&format!(
        "ALTER SYSTEM SET snowflake.layout = '{}'",
        GAME.layout
    ))?;
    client.batch_execute("ALTER SYSTEM SET snowflake.node_id = 1000000")?;
    cluster.restart()?;
    let mut client = cluster.connect_to_new_database("game")?;
    client.answers("SHOW snowflake.layout", GAME.layout)?;
    client.answers("SHOW snowflake.node_id", "1000000")?;
    assert_eq!(GAME.field(ids::one(&mut client)?, "node"), 1_000_000);
    Ok(())
}

#[test]
fn no_session_and_no_reload_changes_what_decides_an_ids_bits() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let client = cluster.connect()?;
    // By a session's start-up options; what SET says has a golden file (settings).
    let error = cluster
        .config("postgres", "postgres")
        .options("-c snowflake.node_id=2")
        .connect(postgres::NoTls)
        .err()
        .expect("the connection should be refused");
    assert_eq!(ServerError::from_error(error)?.sqlstate, "55P02");

    cluster.set_conf("snowflake.node_id", 2)?;
    cluster.set_conf("snowflake.layout", "twitter")?;
    cluster.reload()?;
    for mut client in [client, cluster.connect()?] {
        client.answers("SHOW snowflake.node_id", "1")?;
        client.answers("SHOW snowflake.layout", "default")?;
        assert_eq!(DEFAULT.field(ids::one(&mut client)?, "node"), 1);
    }
    let mut client = cluster.connect()?;
    client.answers(
        "SELECT count(*) FROM pg_settings WHERE name LIKE 'snowflake.%' AND pending_restart",
        "2",
    )?;

    // What may change while the server runs, does; and a bad value doesn't.
    cluster.set_conf("snowflake.max_borrow", "7s")?;
    cluster.set_conf("snowflake.lease", "soon")?;
    cluster.reload()?;
    client.answers("SHOW snowflake.lease", "2s")?;
    cluster.set_conf("snowflake.lease", "3s")?;
    cluster.reload()?;
    client.answers("SHOW snowflake.lease", "3s")?;
    client.answers("SHOW snowflake.max_borrow", "7s")?;
    Ok(())
}

#[test]
fn a_library_that_is_not_preloaded_decodes_and_names_the_setting() -> Result<()> {
    let cluster = Cluster::builder()
        .without_preload()
        // Before PostgreSQL 17, no setting of that name is known then: a text for the decoders.
        .conf("snowflake.layout", "twitter")
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE ROLE ordinary LOGIN; CREATE TABLE t (id bigint DEFAULT snowflake_nextval(), n int)",
    )?;
    for mut client in [client, cluster.connect_as("ordinary", "postgres")?] {
        for statement in [
            "SELECT snowflake_nextval()",
            "SELECT * FROM snowflake_nextvals(3)",
        ] {
            let refused = client.expect_error(statement)?;
            assert_eq!(refused.sqlstate, "55000", "{refused}");
            assert!(refused.message.contains(what_is_missing()?), "{refused}");
            assert!(refused.hint.contains(what_is_missing()?), "{refused}");
        }
        let refused = client.expect_error("SELECT snowflake_currval()")?;
        assert_eq!(refused.sqlstate, "55000", "{refused}");
        // The example of Twitter's documentation, by name and by the setting's
        // text. Its 10 node bits, 347, are data centre 10 and worker 27.
        let query = "SELECT (created_at AT TIME ZONE 'UTC') || ' ' || node_id || ' ' || backend_id || ' ' || sequence FROM snowflake_decode(1050118621198921728";
        let named = client.text(&format!("{query}, 'twitter')"))?;
        let by_setting = client.text(&format!("{query})"))?;
        assert_eq!(named, by_setting);
        assert_eq!(named.as_deref(), Some("2018-10-10 20:19:24.211 10 27 0"));
    }
    Ok(())
}

/// Every function that reads IDs, by the setting: from `postgresql.conf`, in a new
/// session each, so that the call itself loads the library; and of a session.
#[test]
fn functions_read_the_setting_where_the_library_is_not_preloaded() -> Result<()> {
    const ID: &str = "154181560360603648";
    const AT: &str = "timestamptz '2027-02-03 04:05:06+00'";
    const INSTAGRAM: &str = "timestamp:40 node:13 sequence:10 epoch:2011-08-24T21:07:01.721Z";
    let time = format!("({AT}");
    let id = format!("({ID}");
    let calls = [
        format!("decode{id}"),
        format!("timestamp{id}"),
        format!("node_id{id}"),
        format!("backend_id{id}"),
        format!("sequence{id}"),
        format!("compose{time}, 3, 0, 5"),
        format!("min_id{time}"),
        format!("max_id{time}"),
        format!("between(snowflake_min_id{time}), {AT}, '2027-02-04'"),
        format!("explain{id}"),
    ];
    let cluster = Cluster::builder()
        .without_preload()
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE EXTENSION snowflake_partitions; CREATE TABLE p (id bigint) PARTITION BY RANGE (id)",
    )?;
    for (written, layout) in [
        (None, "default"),
        (Some("twitter"), "twitter"),
        (Some(INSTAGRAM), "instagram"),
    ] {
        if let Some(written) = written {
            cluster.set_conf("snowflake.layout", written)?;
            cluster.reload()?;
        }
        for call in &calls {
            let client = &mut cluster.connect()?;
            let found = client.text(&format!("SELECT snowflake_{call})::text"))?;
            let named = client.text(&format!("SELECT snowflake_{call}, '{layout}')::text"))?;
            assert!(found.is_some());
            assert_eq!(found, named, "{call} by snowflake.layout = {written:?}");
        }
        let client = &mut cluster.connect()?;
        let partitions = "SELECT string_agg(statement, '; ')
             FROM snowflake_partitions.ddl('p', '2027-01-01', '2028-01-01', '1 year') AS statement";
        let expected = format!(
            "SELECT format('CREATE TABLE public.p_p2027 PARTITION OF public.p FOR VALUES FROM (%L) TO (%L)',
                           snowflake_min_id('2027-01-01', '{layout}'), snowflake_min_id('2028-01-01', '{layout}'))"
        );
        assert_eq!(client.text(partitions)?, client.text(&expected)?);
    }

    if what_is_missing()? != "shared_preload_libraries" {
        // Set before the library is loaded: refused then, and the configured one counts.
        let mut client = cluster.connect()?;
        client.batch_execute("SET snowflake.layout = 'twitter'")?;
        let same =
            format!("SELECT snowflake_timestamp({ID}) = snowflake_timestamp({ID}, 'instagram')");
        client.answers(&same, "t")?;
        client.refused("SET snowflake.layout = 'twitter'", "55P02")?;
        return Ok(());
    }
    // Without the library's own setting it is a text that any role may set.
    client.batch_execute("SET snowflake.layout = 'timestamp:70 sequence:3'")?;
    let refused = client.expect_error("SELECT snowflake_timestamp(1)")?;
    assert_eq!(refused.sqlstate, "22023", "{refused}");
    assert_eq!(refused.detail, "The fields take 73 bits; an ID has 63.");
    client.answers("SELECT snowflake_sequence(5, 'default')", "5")?;
    client.batch_execute(
        "CREATE DATABASE japanese TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'",
    )?;
    let client = &mut cluster.connect_to("japanese")?;
    client.batch_execute("CREATE EXTENSION snowflake")?;
    for setting in ["日本", "é", "日本é", "aｱ", "日本日本é"] {
        client.batch_execute(&format!("SET snowflake.layout = '{setting}'"))?;
        let refused = client.expect_error("SELECT snowflake_timestamp(1)")?;
        assert_eq!(refused.sqlstate, "22023", "{setting}: {refused}");
    }
    client.batch_execute("SET snowflake.layout = 'discord'")?;
    let same = "SELECT snowflake_timestamp(1) = snowflake_timestamp(1, 'discord')";
    client.answers(same, "t")?;
    Ok(())
}

/// CREATE EXTENSION warns where the server cannot issue IDs yet. Its hint, and the
/// hint of a call, name all lines that are missing.
#[test]
fn create_extension_warns_of_missing_settings() -> Result<()> {
    let cases = [
        (
            Cluster::builder().without_preload(),
            match what_is_missing()? {
                "shared_preload_libraries" => {
                    &["shared_preload_libraries", "snowflake.node_id"][..]
                }
                _ => &["snowflake.node_id"],
            },
        ),
        (Cluster::builder(), &["snowflake.node_id"]),
        (Cluster::node(1), &[]),
    ];
    for (builder, named) in cases {
        let cluster = builder.start()?;
        let hints = Arc::new(Mutex::new(Vec::new()));
        let mut config = cluster.config("postgres", "postgres");
        let said = Arc::clone(&hints);
        config.notice_callback(move |notice| {
            assert_eq!(notice.severity(), "WARNING", "{notice}");
            let hint = notice.hint().unwrap_or_default().to_owned();
            said.lock().expect("no panic").push(hint);
        });
        let mut client = config.connect(NoTls)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        let hints = std::mem::take(&mut *hints.lock().expect("no panic"));
        assert_eq!(hints.len(), usize::from(!named.is_empty()), "{hints:?}");
        if named.is_empty() {
            client.batch_execute("SELECT snowflake_nextval()")?;
            continue;
        }
        for call in [
            "SELECT snowflake_nextval()",
            "SELECT * FROM snowflake_nextvals(3)",
        ] {
            let refused = client.expect_error(call)?;
            assert_eq!(refused.sqlstate, "55000", "{refused}");
            assert!(refused.message.contains(named[0]), "{refused}");
            assert!(refused.hint.contains("snowflake.node_id = 0"), "{refused}");
            for name in named {
                assert!(hints[0].contains(name), "{hints:?}");
                assert!(refused.hint.contains(name), "{refused}");
            }
        }
    }
    Ok(())
}
