//! The survey of a large database takes time in proportion to its tables; and the search path
//! that an audit uses. What a survey lists has golden files (`survey`, `unlinked`, `citus`).

use crate::support::*;

/// Tables that reference each other, in a database of their own.
fn tables(cluster: &Cluster, count: usize) -> Result<Client> {
    let mut client = cluster.connect_to_new_database(&format!("of_{count}"))?;
    let mut first = 1;
    // A transaction can hold a limited number of locks.
    while first <= count {
        let last = (first + 299).min(count);
        client.batch_execute(&format!(
            "DO $do$ BEGIN FOR i IN {first}..{last} LOOP
                 EXECUTE format('CREATE TABLE t%s (id serial PRIMARY KEY, n int, parent_id int%s)', i,
                                CASE WHEN i > 1 THEN ' REFERENCES t' || i / 2 ELSE '' END);
             END LOOP; END $do$"
        ))?;
        first = last + 1;
    }
    client.batch_execute("SELECT nextval('t1_id_seq')")?;
    Ok(client)
}

/// What a query costs on any machine: the rows that its nodes read, and the pages
/// that it and the functions it calls look at.
fn work(client: &mut Client, query: &str) -> Result<f64> {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF) {query}");
    // The first run fills the session's caches of the catalogs.
    client.batch_execute(&explain)?;
    let lines = client.query(&explain, &[])?;
    let (mut rows, mut pages, mut loops) = (0.0, None, 1.0);
    for line in &lines {
        let line: &str = line.get(0);
        let number = |after: &str| -> Option<f64> {
            let rest = &line[line.find(after)? + after.len()..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            rest[..end.unwrap_or(rest.len())].parse().ok()
        };
        if let (Some(read), Some(times)) = (number("(actual rows="), number(" loops=")) {
            loops = times;
            rows += read * times;
        } else if line.contains("Rows Removed by") {
            rows += number(": ").unwrap_or(0.0) * loops;
        } else if pages.is_none() {
            // Those of the top node include those of all others.
            pages = number("shared hit=");
        }
    }
    ensure!(rows > 0.0, "no rows in the plan of {query}");
    Ok(rows + pages.unwrap_or(0.0))
}

#[test]
fn serial_columns_take_time_in_proportion_to_the_tables() -> Result<()> {
    const VIEW: &str = "SELECT * FROM snowflake_migrate.columns";
    const SOURCE: &str = "SELECT * FROM snowflake_migrate_internal.source('t7', 'id')";
    let cluster = Cluster::with_migrate()?;
    let (mut works, mut source_works) = (Vec::new(), Vec::new());
    let counts = tier::size([100, 500, 1000], [300, 1500, 3000]);
    for count in counts {
        let mut client = tables(&cluster, count)?;
        client.answers(
            "SELECT count(*) FROM snowflake_migrate.columns",
            count as i64,
        )?;
        client.answers(
            "SELECT sum(cardinality(referenced_by)) FROM snowflake_migrate.columns",
            count as i64 - 1,
        )?;
        // The plan depends on the statistics, which autovacuum may collect.
        client.batch_execute("ANALYZE")?;
        works.push(work(&mut client, VIEW)?);
        source_works.push(work(&mut client, SOURCE)?);
    }
    assert!(works[2] / works[1] < 3.0, "not linear: {works:?}");
    // It was the work of the view.
    assert!(
        source_works[2] < works[2] / 4.0,
        "{source_works:?} {works:?}"
    );
    Ok(())
}

#[test]
fn a_database_with_three_hundred_columns_is_surveyed_in_seconds() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    // A statement that takes two minutes ends with an error.
    let count = tier::size(100, 300);
    let mut client = tables(&cluster, count)?;
    client.answers(
        "SELECT count(*) FROM snowflake_migrate.survey() WHERE online_way = 'possible'",
        i64::try_from(count)?,
    )?;
    Ok(())
}

/// A function of an index that finds another one by the search path: the table's owner
/// can audit it, with the own path. A superuser's path may have a schema of a third role,
/// and gets a remedy instead.
#[test]
fn audits_use_the_search_path_of_the_owner_only() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run(
        "CREATE ROLE app LOGIN; CREATE SCHEMA app AUTHORIZATION app; CREATE ROLE other LOGIN; CREATE SCHEMA other AUTHORIZATION other",
    )?;
    let mut app = cluster.connect_as("app", "postgres")?;
    app.batch_execute(
        "CREATE FUNCTION app.inner_one(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT $1';
         CREATE FUNCTION app.outer_one(bigint) RETURNS bigint LANGUAGE sql IMMUTABLE AS 'SELECT inner_one($1)';
         SET search_path = app, public;
         CREATE TABLE app.t (id bigint DEFAULT snowflake_nextval() PRIMARY KEY); CREATE INDEX ON app.t (app.outer_one(id));
         INSERT INTO app.t DEFAULT VALUES",
    )?;
    let audit = "SELECT count(*) FROM snowflake_audit('app.t')";
    let mut owner = cluster.connect_as("app", "postgres")?;
    owner.batch_execute("SET search_path = app, public")?;
    owner.answers(audit, 0)?;
    cluster.connect_as("other", "postgres")?.batch_execute(
        "CREATE TABLE other.ran (who name); GRANT ALL ON other.ran TO public; GRANT USAGE ON SCHEMA other TO public;
         CREATE FUNCTION other.inner_one(bigint) RETURNS bigint LANGUAGE plpgsql AS
             $$ BEGIN INSERT INTO other.ran VALUES (current_user); RETURN $1; END $$",
    )?;
    let mut superuser = cluster.connect()?;
    superuser.batch_execute("SET search_path = other, app, public")?;
    let error = superuser.refused(audit, "42883")?;
    ensure!(error.hint.contains("ALTER FUNCTION"), "{}", error.hint);
    superuser.answers("SELECT count(*) FROM other.ran", 0)?;
    Ok(())
}
