//! No role gains a privilege by owning the extensions.
//!
//! They are trusted: a role that may create objects in the database owns what CREATE
//! EXTENSION makes of it, and may add members to it. So an object is the library's by
//! its language, its symbol and its owner, not by its name or its extension. Each look-up
//! is attacked in each way; then a superuser runs what depends on it, on tables of its
//! own, in sessions begun before and after the attack.

use super::look_ups::{FUNCTIONS, RELATIONS, begin, calls, compare, reads, superuser, undisturbed};
use super::server;
use crate::support::*;

/// Where members are planted: schemas of the attacker that are older and younger than
/// those of the extension, and one of these, on which CREATE was granted by mistake.
const PLACES: [&str; 3] = ["arms", "later", "snowflake_internal"];

/// What the owner of the extension must not be able to do, even with CREATE on the
/// schemas of its internal objects.
const REFUSED: [&str; 11] = [
    "ALTER EXTENSION snowflake DROP SEQUENCE snowflake_internal.mark",
    "ALTER EXTENSION snowflake DROP FUNCTION ext.snowflake_nextval()",
    "ALTER EXTENSION snowflake SET SCHEMA arms",
    "ALTER SCHEMA snowflake_internal RENAME TO away",
    "ALTER SCHEMA snowflake_migrate_internal RENAME TO away",
    "ALTER TABLE snowflake_internal.accepted_layout RENAME TO away",
    "ALTER FUNCTION snowflake_internal.copy_nextval() RENAME TO away",
    "DROP SEQUENCE snowflake_internal.mark CASCADE",
    "CREATE SEQUENCE snowflake_internal.mark",
    "CREATE TABLE snowflake_migrate_internal.origins (target regclass)",
    "CREATE OR REPLACE FUNCTION snowflake_internal.copy_nextval() RETURNS bigint LANGUAGE sql AS 'SELECT arms.strike()'",
];

/// Each row is a function of this schema: its signature, its definition, and a
/// definition of the same signature in the schema `mine`, or in its own, that strikes.
const DEFINITIONS: &str = "
    SELECT format('%s', p.oid::regprocedure), pg_get_functiondef(p.oid),
           format('CREATE OR REPLACE %s %I.%I(%s) %s LANGUAGE plpgsql AS $body$ BEGIN PERFORM arms.strike(); RETURN %s; END $body$',
                  CASE p.prokind WHEN 'p' THEN 'PROCEDURE' ELSE 'FUNCTION' END, coalesce(to_regnamespace('mine')::text, n.nspname), p.proname,
                  pg_get_function_arguments(p.oid), 'RETURNS ' || pg_get_function_result(p.oid),
                  CASE WHEN p.proargmodes IS NULL AND p.prokind = 'f' AND NOT p.proretset AND p.prorettype <> 'void'::regtype THEN 'NULL' END)
    FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace";

const FORGED_RECORDS: &str = "
    CREATE SEQUENCE later.mark;
    CREATE TABLE later.accepted_layout (layout text, accepted_at timestamptz); INSERT INTO later.accepted_layout VALUES ('forged', now())";

/// Argument types that fit the same calls.
fn similar(types: &str) -> String {
    match types.split_once(',') {
        _ if types.is_empty() => "VARIADIC anyarray".to_owned(),
        Some(("anyelement", others)) => format!("date,{others}"),
        Some((_, others)) => format!("anyelement,{others}"),
        None => "anyelement".to_owned(),
    }
}

#[test]
fn members_of_the_extension_are_not_taken_for_the_librarys() -> Result<()> {
    let cluster = server()?;
    let (mut admin, mut mallory) = begin(&cluster, "ext", "postgres")?;
    let mut attacks = Attacks::on(&cluster)?;
    let before = undisturbed(&mut admin, "ext")?;
    admin
        .run("GRANT CREATE ON SCHEMA snowflake_internal, snowflake_migrate_internal TO mallory")?;
    for statement in REFUSED {
        let (worked, _) = mallory.attempt(statement)?;
        attacks.record(worked, statement);
    }
    let (mut ways, mut planted) = (0, 0);
    for (number, (name, types, result, _)) in FUNCTIONS.into_iter().enumerate() {
        let all = PLACES
            .iter()
            .flat_map(|place| [(place, types.to_owned()), (place, similar(types))]);
        // In a push one way for each function.
        let (first, step) = tier::size((number % 6, 6), (0, 1));
        for (place, types) in all.skip(first).step_by(step) {
            let function = format!("{place}.{name}({types})");
            let (worked, _) = mallory.attempt(&format!(
                "CREATE FUNCTION {function} RETURNS {result} LANGUAGE plpgsql IMMUTABLE AS 'BEGIN PERFORM arms.strike(); RETURN NULL; END';
                 ALTER EXTENSION snowflake ADD FUNCTION {function}"
            ))?;
            ways += 1;
            planted += usize::from(worked);
            for session in [&mut admin, &mut superuser(&cluster)?] {
                let after = reads(session, "ext")?;
                attacks.check(&function)?;
                compare(&mut attacks, &function, &before.plans, &after.plans, false);
                compare(&mut attacks, &function, &before.rows, &after.rows, false);
            }
            if worked {
                mallory.run(&format!(
                    "ALTER EXTENSION snowflake DROP FUNCTION {function}; DROP FUNCTION {function}"
                ))?;
            }
        }
    }
    // All but the exact ones in the schema that has the originals.
    let refused = tier::size(0..=1, 3..=3);
    ensure!(
        refused.contains(&(ways - planted)),
        "{planted} of {ways} were planted"
    );

    let before = calls(&mut admin, "ext")?;
    for (extension, name) in &RELATIONS[..tier::size(3, RELATIONS.len())] {
        for place in &PLACES[..tier::size(1, 2)] {
            let relation = format!("{place}.{name}");
            let (kind, plant) = if *name == "mark" {
                ("SEQUENCE", String::new())
            } else {
                let columns = "(target regclass, column_name name, relation regclass, first_id bigint, layout text, record text, CHECK (arms.strike() > 0))";
                let trigger = format!(
                    "; CREATE TRIGGER struck BEFORE INSERT ON {relation} FOR EACH ROW EXECUTE FUNCTION arms.pull()"
                );
                ("TABLE", format!("{columns}{trigger}"))
            };
            mallory.run(&format!(
                "CREATE {kind} {relation} {plant}; ALTER EXTENSION {extension} ADD {kind} {relation}"
            ))?;
            let after = calls(&mut superuser(&cluster)?, "ext")?;
            attacks.check(&relation)?;
            compare(&mut attacks, &relation, &before, &after, false);
            mallory.run(&format!(
                "ALTER EXTENSION {extension} DROP {kind} {relation}; DROP {kind} {relation}"
            ))?;
        }
    }
    attacks.end("members of the extension, planted by its owner");
    Ok(())
}

/// A superuser has given some of the extension's objects to the attacker. Then there is no
/// range, and an error or NULL in the place of a record, but no other answer.
#[test]
fn objects_of_the_extension_with_another_owner_are_not_used() -> Result<()> {
    let cluster = server()?;
    let (mut admin, mut mallory) = begin(&cluster, "ext", "postgres")?;
    let mut attacks = Attacks::on(&cluster)?;
    let before = undisturbed(&mut admin, "ext")?;
    admin.run(
        "GRANT CREATE ON SCHEMA ext, snowflake_internal, snowflake_migrate_internal TO mallory",
    )?;
    // A superuser who calls a function by name runs whatever it is.
    for (name, types, ..) in FUNCTIONS.iter().filter(|(.., is_called)| !is_called) {
        let schema = if name.starts_with("snowflake") {
            "ext"
        } else {
            "snowflake_internal"
        };
        let row = admin.client.query_one(
            &format!("{DEFINITIONS} WHERE p.oid = '{schema}.{name}({types})'::regprocedure"),
            &[],
        )?;
        let [signature, original, forged]: [String; 3] = [row.get(0), row.get(1), row.get(2)];
        admin.run(&format!("ALTER FUNCTION {signature} OWNER TO mallory"))?;
        mallory.run(&forged)?;
        for session in [&mut admin, &mut superuser(&cluster)?] {
            let after = reads(session, "ext")?;
            attacks.check(format!("{signature} is replaced by its new owner"))?;
            compare(&mut attacks, &signature, &before.rows, &after.rows, false);
        }
        admin.run(&original)?;
        admin.run(&format!("ALTER FUNCTION {signature} OWNER TO postgres"))?;
    }
    let before = calls(&mut admin, "ext")?;
    for (extension, name) in &RELATIONS[..tier::size(3, RELATIONS.len())] {
        let relation = format!("{extension}_internal.{name}");
        let (kind, changes) = if *name == "mark" {
            ("SEQUENCE", vec![format!("SELECT setval('{relation}', 1)")])
        } else {
            let trigger = format!(
                "CREATE TRIGGER struck BEFORE INSERT OR UPDATE OR DELETE ON {relation} FOR EACH ROW EXECUTE FUNCTION arms.pull()"
            );
            let check = format!(
                "ALTER TABLE {relation} ADD CONSTRAINT struck CHECK (arms.strike() > 0) NOT VALID"
            );
            ("TABLE", vec![trigger, check])
        };
        admin.run(&format!("ALTER {kind} {relation} OWNER TO mallory"))?;
        for change in &changes {
            mallory.attempt(change)?;
        }
        let after = calls(&mut superuser(&cluster)?, "ext")?;
        attacks.check(format!("{relation} belongs to the attacker"))?;
        compare(&mut attacks, &relation, &before, &after, true);
        admin.run(&format!("ALTER {kind} {relation} OWNER TO postgres"))?;
        if *name != "mark" {
            admin.run(&format!(
                "DROP TRIGGER IF EXISTS struck ON {relation}; ALTER TABLE {relation} DROP CONSTRAINT IF EXISTS struck"
            ))?;
        }
    }
    // Where the functions are shows where the relations are.
    for (extension, function) in [("snowflake", "guard"), ("snowflake_migrate", "shadow")] {
        let function = format!("{extension}_internal.{function}()");
        admin.run(&format!("ALTER FUNCTION {function} OWNER TO mallory"))?;
        mallory.attempt(&format!("ALTER FUNCTION {function} SET SCHEMA later"))?;
    }
    mallory.run(FORGED_RECORDS)?;
    let after = calls(&mut superuser(&cluster)?, "ext")?;
    let what = "functions in another schema, with forged records beside them";
    attacks.check(what)?;
    compare(&mut attacks, what, &before, &after, true);
    attacks.end("objects of the extension with another owner");
    Ok(())
}

/// The extension's schema belongs to the attacker, who renames it and creates another
/// one, with functions of the same names. What a superuser's views and defaults mean, they
/// mean by OID.
#[test]
fn the_extensions_schema_is_not_found_by_its_former_name() -> Result<()> {
    let cluster = server()?;
    let (mut admin, mut mallory) = begin(&cluster, "mine", "mallory")?;
    let mut attacks = Attacks::on(&cluster)?;
    let rows = undisturbed(&mut admin, "mine")?.rows;
    let before = calls(&mut admin, "mine")?;
    mallory.run(
        "ALTER SCHEMA mine RENAME TO moved; CREATE SCHEMA mine; GRANT USAGE ON SCHEMA mine TO PUBLIC",
    )?;
    let forged: Vec<String> = admin.client.column(&format!(
        "SELECT d.forged FROM ({DEFINITIONS} WHERE n.nspname = 'moved') AS d (signature, original, forged)"
    ))?;
    mallory.client.run(&forged)?;
    mallory.run(
        "CREATE VIEW mine.snowflake_status AS SELECT s.*, arms.strike() AS struck FROM moved.snowflake_status AS s;
         GRANT SELECT ON mine.snowflake_status TO PUBLIC",
    )?;
    for session in [&mut admin, &mut superuser(&cluster)?] {
        let after = reads(session, "moved")?;
        attacks.check("times are read, and rows copied")?;
        compare(&mut attacks, "reads", &rows, &after.rows, false);
        let after = calls(session, "moved")?;
        attacks.check("records are read, and a table is migrated")?;
        compare(&mut attacks, "calls", &before, &after, false);
    }
    ensure!(forged.len() > 30, "{}", forged.len());
    attacks.end("a schema of the extension that its owner has renamed");
    Ok(())
}
