//! What tests of several subjects share.

use std::sync::{Arc, Mutex};

pub(crate) use snowflake_tests::prelude::*;

/// What an error says where the library is not preloaded and nothing is configured: before
/// PostgreSQL 17 it has to be.
pub(crate) fn what_is_missing() -> Result<&'static str> {
    Ok(if Installation::under_test()?.major < 17 {
        "shared_preload_libraries"
    } else {
        "snowflake.node_id"
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
        Cluster::node(node)
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
