//! Code that a migration breaks is searched for in time, whatever its length and number. What
//! is found has a golden file (`findings`).

use crate::support::*;

/// Also text that is no SQL.
#[test]
fn long_bodies_are_searched_in_proportion_to_their_length() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE t (id serial PRIMARY KEY); CREATE TABLE h (id int);
         SET check_function_bodies = off",
    )?;
    for (number, piece) in [
        "(",
        "f(",
        "'",
        "''",
        "$a$",
        "$",
        "/*",
        "--",
        "\"",
        "insert into ",
        "insert into x select * from ",
        "new.id ",
        "nextval('",
        "a,",
        "E'\\",
    ]
    .iter()
    .enumerate()
    {
        client.execute(
            &format!("DO $do$ BEGIN EXECUTE format('CREATE FUNCTION long{number}() RETURNS trigger LANGUAGE plpgsql AS %L', repeat($p${piece}$p$, 1000000 / {})); END $do$", piece.len()), &[])?;
        client.batch_execute(&format!("CREATE TRIGGER long{number} AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION long{number}()"))?;
        // Two minutes would be too long for a statement.
        client.batch_execute("SELECT * FROM snowflake_migrate_internal.findings(ARRAY[('t', 'id')::snowflake_migrate_internal.key], true)")?;
        client.batch_execute(&format!("DROP FUNCTION long{number} CASCADE"))?;
    }
    Ok(())
}

#[test]
fn five_thousand_functions_are_searched_in_seconds() -> Result<()> {
    let cluster = Cluster::with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    let functions = tier::size(500, 5000);
    client.batch_execute(&format!(
        "CREATE TABLE t (id serial PRIMARY KEY, n int); CREATE TABLE h (id int, n int);
         DO $do$ BEGIN FOR i IN 1..{functions} LOOP EXECUTE format('CREATE FUNCTION f%s(x int) RETURNS int LANGUAGE plpgsql AS %L', i,
             'DECLARE v int; BEGIN -- nextval' || repeat(E'\\n IF v > 1 THEN PERFORM abs(v), ''a''; UPDATE t SET n = n + 1 WHERE id = x; END IF; ', 12)
             || CASE WHEN i % 50 = 0 THEN 'v := nextval(''t_id_seq'');' ELSE '' END
             || CASE WHEN i % 500 = 0 THEN 'INSERT INTO h SELECT * FROM t;' ELSE '' END || ' RETURN v; END'); END LOOP; END $do$",
    ))?;
    client.answers(
        "SELECT string_agg(stage || ' ' || n, ' ' ORDER BY stage) FROM (SELECT stage, count(*) AS n FROM snowflake_migrate_internal.findings(ARRAY[('t', 'id')::snowflake_migrate_internal.key], true) GROUP BY stage) AS s",
        format!(
            "default {0} held {0} shadow {1}",
            functions / 50,
            functions / 500
        ),
    )?;
    Ok(())
}
