//! What tests of several subjects share.

use std::sync::{Arc, Mutex};

use postgres::types::FromSql;

pub(crate) use snowflake_tests::prelude::*;

/// The first column of a query's rows.
pub(crate) fn column<T: for<'a> FromSql<'a>>(client: &mut Client, query: &str) -> Result<Vec<T>> {
    let rows = client
        .query(query, &[])
        .with_context(|| format!("running: {query}"))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// What an error says where the library is not preloaded and nothing is configured: before
/// PostgreSQL 17 it has to be.
pub(crate) fn what_is_missing() -> Result<&'static str> {
    Ok(if Installation::under_test()?.major < 17 {
        "shared_preload_libraries"
    } else {
        "snowflake.node_id"
    })
}

/// Runs statements one by one.
pub(crate) fn run<S: AsRef<str>>(
    client: &mut Client,
    statements: impl IntoIterator<Item = S>,
) -> Result<()> {
    for statement in statements {
        client
            .batch_execute(statement.as_ref())
            .with_context(|| format!("running: {}", statement.as_ref()))?;
    }
    Ok(())
}

/// Runs statements that must be refused with this SQLSTATE.
pub(crate) fn refused(client: &mut Client, sql: &str, sqlstate: &str) -> Result<ServerError> {
    let refused = expect_error(client, sql)?;
    assert_eq!(refused.sqlstate, sqlstate, "{sql}: {refused}");
    // An error that a caller can make does not name the functions that found it.
    let is_mistake = [
        "22023", "3F000", "42703", "42710", "42809", "42P01", "55000",
    ]
    .contains(&sqlstate);
    assert!(
        !is_mistake || !refused.context.contains("snowflake_internal."),
        "{sql}: {refused} CONTEXT: {}",
        refused.context
    );
    Ok(refused)
}

/// Waits until a query's answer is `true`. A busy machine may need a minute, and a statement
/// that takes two ends with an error.
pub(crate) fn wait_until(client: &mut Client, query: &str) -> Result<()> {
    wait::until(query, Duration::from_secs(100), || {
        Ok(value(client, query)? == "t")
    })
}

/// A session, and the notices it got since this was last called.
pub(crate) fn listening(
    server: &Server,
    role: &str,
) -> Result<(Client, impl Fn() -> Vec<String> + use<>)> {
    let notices = Arc::new(Mutex::new(Vec::new()));
    let mut config = server.config(role, "postgres");
    let said = Arc::clone(&notices);
    config.notice_callback(move |notice| {
        let message = notice.message().to_owned();
        said.lock().expect("no panic").push(message);
    });
    let client = config.connect(NoTls)?;
    Ok((client, move || {
        std::mem::take(&mut *notices.lock().expect("no panic"))
    }))
}

/// Waits until a session (the one of this process, if any is named) waits in
/// the extension, and returns the wait event that `pg_stat_activity` shows.
pub(crate) fn wait_event(observer: &mut Client, pid: Option<i32>) -> Result<String> {
    let mut event = None;
    wait::until("a session that waits", Duration::from_secs(120), || {
        event = observer.query_opt(
            "SELECT wait_event_type || ' ' || wait_event FROM pg_stat_activity
             WHERE pid <> pg_backend_pid() AND ($1::int IS NULL OR pid = $1) AND state = 'active'
               AND wait_event_type = 'Extension' AND backend_type = 'client backend' LIMIT 1",
            &[&pid],
        )?;
        Ok(event.is_some())
    })?;
    Ok(event.context("no wait event")?.get(0))
}

/// What several sessions of a database received, each by the same function.
pub(crate) fn in_sessions(
    cluster: &Cluster,
    database: &str,
    sessions: usize,
    take: impl Fn(&mut Client) -> Result<Vec<i64>> + Sync,
) -> Result<Vec<i64>> {
    let lists = thread::scope(|scope| {
        let take = &take;
        let threads: Vec<_> = (0..sessions)
            .map(|_| scope.spawn(move || take(&mut cluster.connect_to(database)?)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a session's thread"))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(lists.concat())
}

/// A publisher and a subscriber, with the nodes 1 and 2.
pub(crate) fn publisher_and_subscriber() -> Result<(Cluster, Cluster)> {
    let start = |node: i32| {
        Cluster::builder()
            .conf("snowflake.node_id", node)
            .conf("wal_level", "logical")
            .start_with_migrate()
    };
    Ok((start(1)?, start(2)?))
}

/// Subscribes to a publication.
pub(crate) fn subscribe(
    subscriber: &mut Client,
    publisher: &Server,
    publication: &str,
) -> Result<()> {
    subscriber.batch_execute(&format!(
        "CREATE SUBSCRIPTION of_{publication} CONNECTION 'host={} port={} user=postgres dbname=postgres' \
         PUBLICATION {publication}",
        publisher.sockets().display(),
        publisher.port()
    ))?;
    Ok(())
}
