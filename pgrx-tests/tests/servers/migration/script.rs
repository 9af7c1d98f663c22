//! Scripts for servers without the extension: run by an owner's own login, stopped
//! after each of their statements, and in databases that have changed.

use regex::Regex;

use crate::support::*;

/// What the script is made for. PostgreSQL prints IN otherwise after it has read it once.
const SHOP: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, note text, CHECK (id > 0));
    CREATE TABLE lines (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id int REFERENCES orders, n int);
    CREATE VIEW sold AS SELECT o.id, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id;
    CREATE MATERIALIZED VIEW counted AS SELECT id, count(*) AS n FROM sold GROUP BY id;
    CREATE UNIQUE INDEX ON counted (id);
    CREATE VIEW noted AS SELECT id FROM orders WHERE note::varchar IN ('a', 'b');
    ALTER TABLE orders ADD CONSTRAINT known CHECK (note::varchar IN ('a', 'b'));
    COMMENT ON VIEW sold IS 'of an order'; GRANT SELECT ON sold TO PUBLIC;
    INSERT INTO orders (note) VALUES ('a'); INSERT INTO lines (order_id, n) VALUES (1, 3);
    REFRESH MATERIALIZED VIEW counted;";

/// The script of both keys.
pub(super) fn script(cluster: &Cluster) -> Result<String> {
    let mut client = cluster.connect_to_new_database("planned")?;
    client.batch_execute("GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper")?;
    client.batch_execute(SHOP)?;
    let script = client.value("SELECT snowflake_migrate.script('orders', also => '{lines}')")?;
    // What the plan of the extension leaves.
    client.batch_execute(
        "CALL snowflake_migrate.run('orders', also => '{lines}', keep_sequence => true); RESET ROLE;
         DROP EXTENSION snowflake_migrate; DROP EXTENSION snowflake",
    )?;
    Ok(script)
}

/// A database without the extension, in which the owner may create schemas.
pub(super) fn target(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
    cluster.run(&format!("CREATE DATABASE {name} TEMPLATE template0"))?;
    let mut client = cluster.connect_to(name)?;
    client.batch_execute(&format!(
        "GRANT CREATE ON DATABASE {name} TO keeper; GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper"
    ))?;
    client.batch_execute(SHOP)?;
    Ok(())
}

/// The lines at which a statement of psql ends, outside of quotes.
pub(super) fn ends(lines: &[&str]) -> Result<Vec<usize>> {
    let token = Regex::new(r#"\$[a-z0-9]*\$|'(?:[^']|'')*'|"(?:[^"]|"")*""#)?;
    let mut open: Option<&str> = None;
    let mut ends = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        if open.is_none() && line.starts_with("--") {
            continue;
        }
        let mut rest = *line;
        loop {
            let end = match open {
                Some(tag) => rest.find(tag).map(|place| (place + tag.len(), None)),
                None => token.find(rest).map(|found| {
                    let is_dollar = found.as_str().starts_with('$');
                    (found.end(), is_dollar.then_some(found.as_str()))
                }),
            };
            let Some((end, next)) = end else { break };
            (rest, open) = (&rest[end..], next);
        }
        if open.is_none() && (line.ends_with(';') || line.contains("\\gset")) {
            ends.push(place + 1);
        }
    }
    Ok(ends)
}

/// A script is stopped by the end of its session, which no single session shows.
#[test]
fn a_script_continues_after_a_stop_behind_any_statement() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN")?;
    let script = script(&cluster)?;
    let expected = schema(&cluster, "planned")?;
    let lines: Vec<&str> = script.lines().collect();
    let ends = ends(&lines)?;
    ensure!(ends.len() > 30, "{} statements", ends.len());
    // The last statement ends the script.
    for end in ends[..ends.len() - 1].iter().step_by(tier::size(9, 1)) {
        target(&cluster, "target")?;
        let part = lines[..*end].join("\n") + "\n";
        psql(&cluster, "keeper", "target", &part, true)?;
        // The backend of the former psql may still be ending.
        let mut again = psql(&cluster, "keeper", "target", &script, true)?;
        for _ in 0..50 {
            if !again.errors.contains("another session runs this script") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
            again = psql(&cluster, "keeper", "target", &script, true)?;
        }
        ensure!(again.success, "after line {end}: {again:?}");
        assert_same_schema(
            &expected,
            &schema(&cluster, "target")?,
            &format!("after line {end}"),
        );
        let mut client = cluster.connect_to("target")?;
        client.answers("SELECT n::text FROM counted", "1")?;
    }
    Ok(())
}

/// It depends on the role that has logged in.
#[test]
fn a_script_takes_neither_a_shared_schema_nor_another_login() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster.run("CREATE ROLE keeper LOGIN")?;
    let script = script(&cluster)?;
    target(&cluster, "target")?;
    // The script would take it for its own, and insert into it.
    cluster.connect_to("target")?.batch_execute(
        "CREATE ROLE stranger; CREATE SCHEMA shared AUTHORIZATION keeper;
         CREATE TABLE shared.widening_unit (number integer, done_at timestamp with time zone);
         ALTER TABLE shared.widening_unit OWNER TO stranger;
         CREATE SCHEMA named AUTHORIZATION keeper;
         SET ROLE keeper;
         CREATE FUNCTION named.widening_mine() RETURNS integer RETURN 1",
    )?;
    for (name, error) in [
        ("shared", "is not for the script only"),
        ("named", "has objects whose names begin with"),
    ] {
        let script = format!("\\set schema {name}\n{script}");
        let refused = psql(&cluster, "keeper", "target", &script, true)?;
        ensure!(
            !refused.success && refused.errors.contains(error),
            "{refused:?}"
        );
    }
    let superuser = psql(&cluster, "postgres", "target", &script, true)?;
    ensure!(
        superuser
            .errors
            .contains("has to be run by role \"keeper\""),
        "{superuser:?}"
    );
    Ok(())
}
