//! Scripts for servers without the extension: run by an owner's own login, stopped
//! after each of their statements, and in databases that have changed.

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
fn script(cluster: &Cluster) -> Result<String> {
    let mut client = cluster.connect_to_new_database("planned")?;
    client.batch_execute("GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper")?;
    client.batch_execute(SHOP)?;
    let script = value(
        &mut client,
        "SELECT snowflake_migrate.script('orders', also => '{lines}')",
    )?;
    // What the plan of the extension leaves.
    client.batch_execute(
        "CALL snowflake_migrate.run('orders', also => '{lines}', keep_sequence => true); RESET ROLE;
         DROP EXTENSION snowflake_migrate; DROP EXTENSION snowflake",
    )?;
    Ok(script)
}

/// A database without the extension, in which the owner may create schemas.
fn target(cluster: &Cluster, name: &str) -> Result<()> {
    cluster
        .connect()?
        .batch_execute(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))?;
    cluster
        .connect()?
        .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))?;
    let mut client = cluster.connect_to(name)?;
    client.batch_execute(&format!(
        "GRANT CREATE ON DATABASE {name} TO keeper; GRANT ALL ON SCHEMA public TO keeper; SET ROLE keeper"
    ))?;
    client.batch_execute(SHOP)?;
    Ok(())
}

/// The lines at which a statement of psql ends, outside of dollar quotes.
fn ends(lines: &[&str]) -> Vec<usize> {
    let mut open: Option<&str> = None;
    let mut ends = Vec::new();
    for (place, line) in lines.iter().enumerate() {
        if open.is_none() && line.starts_with("--") {
            continue;
        }
        open = match open {
            Some(tag) => (!line.contains(tag)).then_some(tag),
            None => ["$do$", "$procedure$", "$sql$", "$sql1$"]
                .into_iter()
                .filter_map(|tag| line.find(tag).map(|place| (place, tag)))
                .min()
                .map(|(_, tag)| tag)
                .filter(|tag| line.matches(tag).count() % 2 == 1),
        };
        if open.is_none() && (line.ends_with(';') || line.contains("\\gset")) {
            ends.push(place + 1);
        }
    }
    ends
}

/// A script is stopped by the end of its session, which no single session shows.
#[test]
fn a_script_continues_after_a_stop_behind_any_statement() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster
        .connect()?
        .batch_execute("CREATE ROLE keeper LOGIN")?;
    let script = script(&cluster)?;
    let expected = schema(&cluster, "planned")?;
    let lines: Vec<&str> = script.lines().collect();
    let ends = ends(&lines);
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
        answers(&mut client, "SELECT n::text FROM counted", "1")?;
    }
    Ok(())
}

/// What is different in the database, and what is said of it.
#[rustfmt::skip]
const CHANGES: &[(&str, &str)] = &[
    ("CREATE OR REPLACE VIEW sold AS SELECT o.id, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id AND l.n > 0", "view public.sold"),
    ("CREATE VIEW later AS SELECT order_id FROM lines", "view public.later"),
    ("CREATE OR REPLACE VIEW noted AS SELECT id FROM orders WHERE note::varchar IN ('a', 'c')", "view public.noted"),
    ("ALTER TABLE orders DROP CONSTRAINT known, ADD CONSTRAINT known CHECK (note::varchar IN ('a', 'c'))", "constraint known"),
    ("GRANT INSERT ON sold TO PUBLIC", "privileges of view public.sold"),
    ("ALTER TABLE lines ADD later int", "type of column later"),
    ("CREATE TABLE later (order_id int REFERENCES orders)", "public.later"),
    ("ALTER TABLE orders ADD CHECK (id < 2000000000)", "CHECK of id"),
    ("ALTER TABLE orders DROP CONSTRAINT orders_id_check, ADD CONSTRAINT orders_id_check CHECK (id > 1 OR id = 1)", "orders_id_check"),
    ("CREATE RULE later AS ON DELETE TO orders DO INSTEAD NOTHING", "rule later"),
    ("RESET ROLE; ALTER TABLE lines DISABLE TRIGGER ALL", "disabled triggers of foreign keys"),
    ("RESET ROLE; CREATE ROLE other; ALTER VIEW sold OWNER TO other", "must be owner of view sold"),
];

/// It depends on the role that has logged in, and on what a database has by then.
#[test]
fn a_script_stops_before_a_change_where_the_database_differs() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    cluster
        .connect()?
        .batch_execute("CREATE ROLE keeper LOGIN")?;
    let script = script(&cluster)?;
    for &(change, named) in CHANGES {
        target(&cluster, "target")?;
        let mut client = cluster.connect_to("target")?;
        client.batch_execute(&format!("SET ROLE keeper; {change}"))?;
        let before = schema(&cluster, "target")?;
        let stopped = psql(&cluster, "keeper", "target", &script, true)?;
        ensure!(
            !stopped.success && stopped.errors.contains(named),
            "{change}: {stopped:?}"
        );
        assert_same_schema(&before, &schema(&cluster, "target")?, change);
    }
    // The script would take it for its own, and insert into it.
    cluster.connect_to("target")?.batch_execute(
        "CREATE ROLE stranger; CREATE SCHEMA shared AUTHORIZATION keeper;
         CREATE TABLE shared.widening_unit (number integer, done_at timestamp with time zone);
         ALTER TABLE shared.widening_unit OWNER TO stranger",
    )?;
    let shared = psql(
        &cluster,
        "keeper",
        "target",
        &format!("\\set schema shared\n{script}"),
        true,
    )?;
    ensure!(
        !shared.success && shared.errors.contains("is not for the script only"),
        "{shared:?}"
    );
    let superuser = psql(&cluster, "postgres", "target", &script, true)?;
    ensure!(
        superuser
            .errors
            .contains("has to be run by role \"keeper\""),
        "{superuser:?}"
    );
    Ok(())
}
