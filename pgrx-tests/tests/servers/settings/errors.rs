//! Answers to a person who made a mistake: the right SQLSTATE, for programs;
//! a message, detail and hint, for people. No mistake of a user's ends in
//! XX000 (an internal error, which DBAs take for a bug and monitoring for an
//! alarm) or costs the connection.

use crate::support::*;

/// PostgreSQL's error style guide, as far as a program can check it. The
/// reason why a layout is invalid may be a phrase: the same words are part of a
/// sentence elsewhere.
fn assert_style(refused: &ServerError) {
    let first = refused.message.chars().next().unwrap_or('?');
    assert!(
        !first.is_uppercase() && !refused.message.ends_with('.') && !refused.message.contains('\n'),
        "the message is one line, no sentence: {refused}"
    );
    let reason_of_a_layout = refused.message.contains("layout: ");
    for (part, may_be_a_phrase) in [
        (&refused.detail, reason_of_a_layout),
        (&refused.hint, false),
    ] {
        assert!(
            may_be_a_phrase
                || part.is_empty()
                || part.ends_with(['.', '?']) && !part.starts_with(char::is_lowercase),
            "detail and hint are sentences: {refused}"
        );
    }
}

/// Runs a statement with a mistake, whose answer has this SQLSTATE and these parts.
fn mistake(client: &mut Client, sql: &str, sqlstate: &str, parts: &[&str]) -> Result<ServerError> {
    let refused = client.refused(sql, sqlstate)?;
    assert_style(&refused);
    let all = refused.to_string();
    for part in parts {
        assert!(all.contains(part), "{sql}: \"{part}\" is not in: {refused}");
    }
    Ok(refused)
}

#[test]
fn administrative_functions_need_their_rights() -> Result<()> {
    let cluster = Cluster::node(1).start()?;
    let mut superuser = cluster.connect()?;
    for statement in [
        "CREATE ROLE maker LOGIN",
        "CREATE ROLE ordinary LOGIN",
        "CREATE DATABASE shop",
        "GRANT CREATE ON DATABASE shop TO maker",
    ] {
        superuser.batch_execute(statement)?;
    }
    let mut ordinary = cluster.connect_as("ordinary", "shop")?;
    mistake(&mut ordinary, "CREATE EXTENSION snowflake", "42501", &[])?;
    // Trusted: a role that may create in a database may create the extension.
    let mut maker = cluster.connect_as("maker", "shop")?;
    maker.batch_execute("CREATE SCHEMA ids; CREATE EXTENSION snowflake SCHEMA ids")?;
    maker.batch_execute("GRANT USAGE ON SCHEMA ids TO ordinary")?;
    for client in [&mut ordinary, &mut maker] {
        client.batch_execute("SET search_path = ids, public")?;
        let mut made = ids::nextval(client, 10)?;
        made.extend(ids::fetch(client, "SELECT * FROM snowflake_nextvals(10)")?);
        ids::assert_increasing(&made, "an ordinary role");
        // A mark that is too low lets IDs repeat; one that is too high
        // stops everything. Only a superuser may say where it is.
        for statement in [
            "SELECT setval('snowflake_internal.mark', 1)",
            "SELECT setval('snowflake_internal.mark', 9223372036854775807)",
            "SELECT nextval('snowflake_internal.mark')",
            "ALTER SEQUENCE snowflake_internal.mark RESTART",
            "ALTER SEQUENCE snowflake_internal.mark SET UNLOGGED",
            "DROP SEQUENCE snowflake_internal.mark",
            "UPDATE snowflake_internal.mark SET last_value = 1",
        ] {
            let refused = client.expect_error(statement)?;
            // The schema is maker's, who may drop what is in it: there it is
            // the extension that keeps the sequence.
            assert!(
                ["42501", "2BP01"].contains(&refused.sqlstate.as_str()),
                "{statement}: {refused}"
            );
        }
    }
    let mut superuser = cluster.connect_to("shop")?;
    mistake(
        &mut superuser,
        "DROP SEQUENCE snowflake_internal.mark",
        "2BP01",
        &[],
    )?;
    // The one who made it may drop it, and make it again.
    maker.batch_execute("DROP EXTENSION snowflake; CREATE EXTENSION snowflake SCHEMA ids")?;
    Ok(())
}

/// The mark set to something odd by a superuser: refused or obeyed, in words.
#[test]
fn an_odd_mark_is_no_internal_error() -> Result<()> {
    for value in ["1", "4194304", "9223372036854775807", "9223372036854775806"] {
        let mut cluster = Cluster::with_extension()?;
        let mut client = cluster.connect()?;
        let mut before = ids::nextval(&mut client, 100)?;
        client.batch_execute(&format!(
            "SELECT setval('snowflake_internal.mark', {value})"
        ))?;
        cluster.restart()?;
        let mut client = cluster.connect()?;
        match client.simple_query("SELECT snowflake_nextval()") {
            Err(error) => {
                let refused = ServerError::from_error(error)?;
                assert_eq!(refused.sqlstate, "58000", "{refused}");
                assert_style(&refused);
            }
            Ok(_) => {
                before.extend(ids::nextval(&mut client, 100)?);
                ids::assert_increasing(&before, "before and after");
                println!("errors: mark = {value}: IDs are still issued");
            }
        }
    }
    Ok(())
}

/// An error of Postgres' that passes through the extension is shown as it is,
/// also where the server's environment asks Rust for backtraces: to the client
/// and in the log. Other programs and libraries find that environment as it was.
#[test]
fn no_answer_or_log_has_a_backtrace() -> Result<()> {
    let builder = || {
        Cluster::node(1)
            .environment("RUST_BACKTRACE", "1")
            .environment("RUST_LIB_BACKTRACE", "full")
    };

    // The first ID of a session, cancelled in the middle of a move of the mark,
    // which another session's lock holds up.
    let cluster = builder().start_with_extension()?;
    let mut blocker = cluster.connect()?;
    blocker.batch_execute("BEGIN; ALTER SEQUENCE snowflake_internal.mark CACHE 1")?;
    let mut client = cluster.connect()?;
    client.batch_execute("SET snowflake.max_wait = '100s'")?;
    let (pid, token) = (ids::backend_pid(&mut client)?, client.cancel_token());
    let call = std::thread::spawn(move || client.expect_error("SELECT snowflake_nextval()"));
    let waits = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock'";
    let mut observer = cluster.connect()?;
    wait::until("the call to wait", Duration::from_secs(60), || {
        Ok(observer.query_opt(waits, &[&pid])?.is_some())
    })?;
    token.cancel_query(NoTls)?;
    let cancelled = call.join().expect("the thread of the call")?;
    assert_eq!(cancelled.sqlstate, "57014", "{cancelled}");
    assert_eq!(cancelled.detail, "", "{cancelled}");
    assert_no_backtrace(&cluster)?;

    // Loaded late, by a session.
    let cluster = builder().without_preload().start_with_extension()?;
    cluster
        .connect()?
        .refused("SELECT snowflake_decode(-1)", "22003")?;
    assert_no_backtrace(&cluster)
}

fn assert_no_backtrace(cluster: &Cluster) -> Result<()> {
    let mut client = cluster.connect()?;
    client.answers(
        "LOAD 'snowflake'; \
         CREATE TEMP TABLE environment (line text); \
         COPY environment FROM PROGRAM 'env'; \
         SELECT string_agg(line, ' ' ORDER BY line) FROM environment \
         WHERE line ~ '^RUST_(LIB_)?BACKTRACE='",
        "RUST_BACKTRACE=1 RUST_LIB_BACKTRACE=full",
    )?;
    let log = cluster.log()?;
    for trace in ["pgrx_pg_sys::", "rust_end_short_backtrace"] {
        assert!(!log.contains(trace), "\"{trace}\" in the log:\n{log}");
    }
    Ok(())
}
