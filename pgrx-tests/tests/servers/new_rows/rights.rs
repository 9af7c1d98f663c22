//! Who may ask, and what an ordinary role sees of other roles.

use super::{builder, insert, resolved_id, server};
use crate::support::*;

#[test]
fn a_role_sees_of_others_what_it_sees_in_pg_stat_activity() -> Result<()> {
    let server = server(builder())?;
    let mut owner = server.connect()?;
    owner.batch_execute("CREATE ROLE ordinary LOGIN; CREATE ROLE other LOGIN; GRANT INSERT, SELECT ON events TO PUBLIC")?;
    let mut holder = server.connect_as("other", "postgres")?;
    holder.batch_execute("BEGIN")?;
    let id = insert(&mut holder, "secret")?;
    let mut ordinary = server.connect_as("ordinary", "postgres")?;
    // The answer itself is for everybody who reads.
    assert!(resolved_id(&mut ordinary)?.is_some_and(|it| it <= id));
    let row = "SELECT format('%s %s %s %s %s %s', pid IS NOT NULL, usename, first_id IS NULL, first_id_at IS NULL,
                   age IS NULL, query) FROM snowflake_unresolved";
    ordinary.answers(row, "t other t t t <insufficient privilege>")?;
    let direct = "SELECT first_id FROM snowflake_internal.get_unresolved()";
    assert_eq!(ordinary.text(direct)?, None);
    holder.answers(direct, id)?;
    owner.batch_execute("GRANT pg_read_all_stats TO ordinary")?;
    ordinary.answers(direct, id)?;
    Ok(())
}

#[test]
fn a_server_that_issues_no_ids_says_why() -> Result<()> {
    let ask = "SELECT snowflake_resolved_id()";
    let server = Cluster::builder()
        .without_preload()
        .start_with_extension()?;
    let error = server.connect()?.refused(ask, "55000")?;
    assert!(error.message.contains(what_is_missing()?), "{error}");
    assert_eq!(
        server
            .connect()?
            .text("SELECT resolved_id::text FROM snowflake_status")?,
        None
    );
    let server = Cluster::node(-1).start_with_extension()?;
    let error = server.connect()?.refused(ask, "55000")?;
    assert!(error.message.contains("node_id"), "{error}");
    Ok(())
}
