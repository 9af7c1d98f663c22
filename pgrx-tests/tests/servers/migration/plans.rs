//! A plan for a maintenance window: the locks of its steps, and their notes. The steps are in a
//! golden file (`migration`).

use snowflake_tests::migration::plan;

use super::{held_locks, lock_mode};
use crate::support::*;

/// A key that is fed by a default, and a table that references it.
const PLANNED: &str =
    "CREATE SEQUENCE s; CREATE TABLE t (id int PRIMARY KEY DEFAULT nextval('s') CONSTRAINT sane CHECK (id > 0));
     CREATE TABLE u (id int DEFAULT nextval('s'), t_id int REFERENCES t); INSERT INTO t SELECT FROM generate_series(1, 1000)";

#[test]
fn a_plans_note_does_not_list_partitions_whose_defaults_change() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE p (id bigserial, k int) PARTITION BY RANGE (k);
         CREATE TABLE p_0 PARTITION OF p FOR VALUES FROM (0) TO (10);
         CREATE TABLE other (id bigint DEFAULT nextval('p_id_seq'))",
    )?;
    let steps = online::plan_for(client, "'p'", false)?;
    let note = &steps[steps.len() - 1].note;
    assert!(
        note.contains(". The sequence is still used by public.other.id. "),
        "{note}"
    );
    client.batch_execute("CALL snowflake_migrate.run('p'); INSERT INTO p_0 (k) VALUES (1)")?;
    let id: i64 = client.query_one("SELECT id FROM p_0", &[])?.get(0);
    assert!(id > 1 << 40, "{id}");
    Ok(())
}

#[test]
fn a_plans_notes_name_what_is_to_be_known() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    let steps = online::plan_for(client, "'t'", false)?;
    for part in [
        "2^53",
        "integer",
        "first moments after the epoch",
        "sequence is still used by public.u.id",
        "check constraints sane",
    ] {
        assert!(
            steps[3].note.contains(part),
            "no {part:?} in {}",
            steps[3].note
        );
    }
    let note = &steps[1].note;
    assert!(note.contains("kB") && note.contains("WAL"), "{note}");
    // Of several columns with sequences, the primary key is meant.
    client.batch_execute(
        "CREATE TABLE several (n serial, id serial PRIMARY KEY, m int GENERATED ALWAYS AS IDENTITY)",
    )?;
    let of_key = plan(client, "'several', 'id'")?;
    assert!(!of_key.is_empty());
    assert_eq!(plan(client, "'several'")?, of_key);
    Ok(())
}

#[test]
fn a_plans_steps_take_the_locks_that_it_names() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    for step in online::plan_for(client, "'t'", false)? {
        client.run(["BEGIN", &step.statement])?;
        let held = held_locks(client, "public")?;
        client.batch_execute("COMMIT")?;
        let wanted = lock_mode(&step.lock_level);
        assert!(
            held.contains(&wanted),
            "{}: {held:?}, not {wanted}",
            step.statement
        );
        let strongest = "AccessExclusiveLock".to_owned();
        assert!(
            wanted == strongest || !held.contains(&strongest),
            "{}: {held:?}",
            step.statement
        );
    }
    // The new columns have statistics.
    let analyzed = "SELECT count(*) FROM pg_stats WHERE tablename = 't' AND attname = 'id'";
    client.answers(analyzed, 1)?;
    Ok(())
}

#[test]
fn a_table_that_references_a_migrated_one_later_is_widened_too() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(PLANNED)?;
    client.batch_execute(
        "CALL snowflake_migrate.run('t'); CREATE TABLE late (t_id int REFERENCES t);
         CREATE VIEW seen AS SELECT t_id FROM late",
    )?;
    let note = "SELECT count(*) FROM snowflake_migrate.plan('t') WHERE note LIKE '%drops and re-creates 1 object: view public.seen%'";
    client.answers(note, 1)?;
    assert_eq!(plan(client, "'t'")?.len(), 2);
    client.batch_execute("CALL snowflake_migrate.run('t')")?;
    assert!(plan(client, "'t'")?.is_empty());
    Ok(())
}
