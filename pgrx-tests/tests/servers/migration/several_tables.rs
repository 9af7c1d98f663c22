//! Several keys in one plan: each table is rewritten, or copied, once.

use crate::support::*;

/// Four keys; one table references three of the others, and one references two
/// with a composite foreign key.
const TABLES: &str = "
    CREATE TABLE users (id serial PRIMARY KEY, name text);
    CREATE TABLE groups (id serial PRIMARY KEY, owner_id int REFERENCES users);
    CREATE TABLE projects (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, group_id int NOT NULL REFERENCES groups,
        creator_id int REFERENCES users, UNIQUE (group_id, id));
    CREATE TABLE issues (id serial PRIMARY KEY, project_id int NOT NULL REFERENCES projects, author_id int REFERENCES users,
        group_id int NOT NULL, FOREIGN KEY (group_id, project_id) REFERENCES projects (group_id, id));
    CREATE INDEX ON issues (project_id, author_id, id);
    INSERT INTO users (name) SELECT 'u' || n FROM generate_series(1, 300) AS n;
    INSERT INTO groups (owner_id) SELECT n FROM generate_series(1, 200) AS n;
    INSERT INTO projects (group_id, creator_id) SELECT n, n FROM generate_series(1, 200) AS n;
    INSERT INTO issues (project_id, author_id, group_id) SELECT 1 + n % 200, 1 + n % 300, 1 + n % 200 FROM generate_series(1, 2000) AS n";

const KEYS: &str = "'users', also => '{groups,projects,issues}'";

fn cluster() -> Result<(Cluster, Client)> {
    let cluster = Cluster::node(3).start_with_migrate()?;
    let mut client = cluster.connect()?;
    client.batch_execute(TABLES)?;
    Ok((cluster, client))
}

fn plan(client: &mut Client, online: bool) -> Result<Vec<Step>> {
    online::plan_for(client, KEYS, online)
}

fn statements(client: &mut Client, online: bool) -> Result<Vec<String>> {
    Ok(plan(client, online)?
        .into_iter()
        .map(|step| step.statement)
        .collect())
}

/// All rows, with the columns in the order of their names.
fn rows(client: &mut Client) -> Result<String> {
    let mut all = String::new();
    for table in ["users", "groups", "projects", "issues"] {
        all += &client.value(&format!(
            "SELECT md5(string_agg(r::text, ',' ORDER BY id)) FROM (SELECT t.id, (SELECT jsonb_object_agg(e.key, e.value) FROM jsonb_each(to_jsonb(t)) AS e) AS r FROM {table} AS t) AS t"
        ))?;
    }
    Ok(all)
}

/// New rows get snowflake IDs, and the foreign keys hold.
fn assert_migrated(client: &mut Client, foreign_keys: i64) -> Result<()> {
    client.answers(
        "SELECT count(*) FROM pg_attribute WHERE attrelid = ANY ('{users,groups,projects,issues}'::regclass[]) AND attnum > 0 AND NOT attisdropped AND atttypid = 'int4'::regtype",
        0,
    )?;
    client.answers(
        "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND convalidated",
        foreign_keys,
    )?;
    let id = client.number(
        "WITH u AS (INSERT INTO users (name) VALUES ('new') RETURNING id), g AS (INSERT INTO groups (owner_id) SELECT id FROM u RETURNING id, owner_id),
              p AS (INSERT INTO projects (group_id, creator_id) SELECT id, owner_id FROM g RETURNING id, group_id, creator_id)
         INSERT INTO issues (project_id, author_id, group_id) SELECT id, creator_id, group_id FROM p RETURNING id",
    )?;
    assert!(id > 1 << 40, "{id} is no snowflake ID");
    client.refused(
        "INSERT INTO issues (project_id, group_id) VALUES (1, 2)",
        "23503",
    )?;
    Ok(())
}

#[test]
fn one_plan_rewrites_each_table_once() -> Result<()> {
    let (_cluster, mut client) = cluster()?;
    let before = rows(&mut client)?;
    let steps = plan(&mut client, false)?;
    let rewrites = steps.iter().filter(|step| step.rewrites).count();
    let mut one_by_one = 0;
    for key in ["users", "groups", "projects", "issues"] {
        one_by_one += client.number(&format!(
            "SELECT count(*) FROM snowflake_migrate.plan('{key}') WHERE rewrites"
        ))?;
    }
    assert_eq!((rewrites, one_by_one), (4, 10));
    let statements_to_run = statements(&mut client, false)?;
    client.run(statements_to_run)?;
    assert_eq!(rows(&mut client)?, before);
    assert_migrated(&mut client, 6)?;
    assert!(statements(&mut client, false)?.is_empty());
    client.batch_execute(&format!("CALL snowflake_migrate.run({KEYS})"))?;
    Ok(())
}

#[test]
fn one_online_plan_copies_each_table_once() -> Result<()> {
    let (_cluster, mut client) = cluster()?;
    let before = rows(&mut client)?;
    client.batch_execute("SELECT pg_stat_force_next_flush()")?;
    let updates =
        "SELECT sum(n_tup_upd)::bigint FROM pg_stat_user_tables WHERE schemaname = 'public'";
    let earlier = client.number(updates)?;
    let steps = plan(&mut client, true)?;
    let backfill = steps
        .iter()
        .position(Step::is_backfill)
        .context("no backfill")?;
    assert_eq!(steps.iter().filter(|step| step.is_backfill()).count(), 1);
    assert_eq!(steps.iter().filter(|step| step.is_swap()).count(), 1);
    client.run(steps[..=backfill].iter().map(|step| &step.statement))?;
    client.batch_execute("SELECT pg_stat_force_next_flush(); SELECT pg_sleep(0.1)")?;
    let written = client.number(updates)? - earlier;
    assert_eq!(written, 300 + 200 + 200 + 2000);
    client.answers(
        "SELECT count(DISTINCT rows_done) FROM snowflake_migrate.progress WHERE column_name = 'id'",
        1,
    )?;
    client.answers("SELECT count(*) FROM snowflake_migrate.progress", 4)?;

    // A part of the keys stands for all of them; others cannot join.
    let rest = statements(&mut client, true)?;
    let of_one = online::plan(&mut client, "'groups'")?;
    assert_eq!(online::statements(&of_one), rest);
    client.batch_execute("CREATE TABLE labels (id serial PRIMARY KEY)")?;
    let error = client.refused(
        "SELECT * FROM snowflake_migrate.plan('users', also => '{labels}', online => true)",
        "55000",
    )?;
    assert!(error.detail.contains("has begun"));
    client.refused("SELECT * FROM snowflake_migrate.plan('users')", "55000")?;

    client.run(rest)?;
    client.batch_execute("DROP TABLE labels")?;
    assert_eq!(rows(&mut client)?, before);
    assert_migrated(&mut client, 6)?;
    client.answers("SELECT count(*) FROM snowflake_migrate.progress", 0)?;
    for table in ["users", "groups", "projects", "issues"] {
        client.batch_execute(&format!("CALL snowflake_migrate.revert('{table}')"))?;
    }
    Ok(())
}

#[test]
fn cancelling_one_key_cancels_the_whole_plan() -> Result<()> {
    let (_cluster, mut client) = cluster()?;
    let steps = plan(&mut client, true)?;
    let last = steps.iter().position(Step::is_swap).context("no swap")?;
    for cancelled_after in [5, last] {
        let steps = plan(&mut client, true)?;
        client.run(steps[..cancelled_after].iter().map(|step| &step.statement))?;
        client.batch_execute("CALL snowflake_migrate.revert('projects')")?;
        let left =
            "SELECT count(*) FROM pg_attribute WHERE attname LIKE 'snowflake%' AND NOT attisdropped
                      AND attrelid = ANY ('{users,groups,projects,issues}'::regclass[])";
        client.answers(left, 0)?;
        client.answers(
            "SELECT count(*) FROM snowflake_migrate_internal.progress",
            0,
        )?;
        client.answers(
            "SELECT count(*) FROM snowflake_migrate_internal.origins WHERE reverted_at IS NULL",
            0,
        )?;
    }
    Ok(())
}

#[test]
fn senseless_lists_of_tables_are_refused() -> Result<()> {
    let (_cluster, mut client) = cluster()?;
    for (arguments, sqlstate) in [
        ("NULL", "42P01"),
        ("'users', NULL, '{groups}', '{}'", "22023"),
        ("'users', NULL, '{groups}', '{id,id}'", "22023"),
        ("'users', NULL, NULL, '{id}'", "22023"),
        ("'users', also => ARRAY[NULL]::regclass[]", "42P01"),
        (
            "'users', also => '{groups}', also_columns => '{nothing}'",
            "42703",
        ),
    ] {
        for call in [
            "SELECT snowflake_migrate.plan",
            "CALL snowflake_migrate.run",
            "CALL snowflake_migrate.backfill",
        ] {
            client.refused(&format!("{call}({arguments})"), sqlstate)?;
        }
    }
    // Named twice is named once.
    let of_one = "SELECT count(*) FROM snowflake_migrate.plan('users') WHERE rewrites";
    let of_one = client.number(of_one)?;
    let of_twice =
        "SELECT count(*) FROM snowflake_migrate.plan('users', also => '{users}') WHERE rewrites";
    client.answers(of_twice, of_one)?;
    Ok(())
}

/// The obstacles do not say which of many keys they are of, so the hint does. The names of
/// more than ten keys are not listed.
#[test]
fn a_refused_plan_names_the_keys_to_leave_out() -> Result<()> {
    let (_cluster, mut client) = cluster()?;
    client.batch_execute(
        "ALTER TABLE groups ADD half integer GENERATED ALWAYS AS (id / 2) STORED;
         DO $$ BEGIN FOR n IN 1 .. 9 LOOP EXECUTE format('CREATE TABLE t%s (id serial PRIMARY KEY)', n); END LOOP; END $$",
    )?;
    for online in [false, true] {
        let plan = |keys: &str| {
            format!(
                "SELECT snowflake_migrate.plan({keys}, online => {online}, keep_sequence => true)"
            )
        };
        let many = format!("{KEYS} || '{{t1,t2,t3,t4,t5,t6,t7,t8,t9}}'::regclass[]");
        let error = client.refused(&plan(&many), "55000")?;
        assert!(error.message.ends_with("t6.id, and 3 more"), "{error}");
        assert_eq!(
            error.hint,
            "Nothing was changed. Remove the obstacles, or leave out public.groups.id, then request the plan again."
        );
        // All of the keys: nothing would be left.
        let error = client.refused(&plan("'groups'"), "55000")?;
        assert_eq!(
            error.hint,
            "Nothing was changed. Remove the obstacles, then request the plan again."
        );
        let others = "'users', also => '{projects,issues,t1}'";
        ensure!(!client.query(&plan(others), &[])?.is_empty());
    }
    Ok(())
}
