//! No role gains a right by operators, functions, types and casts that lay in
//! the target schema before CREATE EXTENSION; and what the catalog says of the
//! extension's routines, which keeps new holes of this kind out.
//!
//! CREATE EXTENSION parses views and SQL functions with the target schema on
//! the path. An operator of exactly the types in the text is preferred to one
//! of `pg_catalog` that needs a coercion, wherever it is.

use snowflake_tests::attack::calls;

use super::server;
use crate::support::*;

/// Every operator and function that the extension's SQL could pick by coercion:
/// those of types that it uses, as far as `pg_catalog` has none of them. `$1` is
/// a list of the extension's routines, each a name and its argument types, and
/// `$2` the names of functions that its SQL calls.
pub(crate) const PLANT: &str = r#"
DO $do$
DECLARE
    types CONSTANT text[] := '{oid,regclass,regtype,regproc,regnamespace,name,text,"\"char\"",int2,int4,int8,numeric,float4,float8,interval,timestamptz,timestamp,date,bool,varchar,bpchar,_int8,_int4,_int2,int2vector,oidvector,_oid,_text,_name,_regclass,_char,xid,tid,pg_lsn,jsonb,json,aclitem,_aclitem,int8multirange,int8range,arms.e}';
    short CONSTANT text[] := '{oid,regclass,name,text,int4,int8,numeric,float8,bool,timestamptz,interval}';
    l text;
    r text;
    name text;
    result text;
BEGIN
    FOREACH l IN ARRAY types LOOP
        FOREACH r IN ARRAY types LOOP
            EXECUTE format('CREATE FUNCTION arms.compare(%1$s, %2$s) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS ''BEGIN PERFORM arms.strike(); RETURN true; END'';
                            CREATE FUNCTION arms.combine(%1$s, %2$s) RETURNS %3$s LANGUAGE plpgsql IMMUTABLE AS ''BEGIN PERFORM arms.strike(); RETURN NULL; END''',
                           l, r, CASE WHEN l IN ('numeric', 'float8') OR r NOT IN ('numeric', 'float8') THEN l ELSE r END);
            FOREACH name IN ARRAY '{=,<>,<,>,<=,>=,@>,<@,&&,~,!~,+,-,*,/,%,||,->,->>}'::text[] LOOP
                IF NOT EXISTS (SELECT FROM pg_operator AS o WHERE o.oprname = name AND o.oprleft = l::regtype AND o.oprright = r::regtype) THEN
                    EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = arms.%s)', name, l, r,
                                   CASE WHEN name ~ '^[=<>@&~!]+$' AND name <> '&' THEN 'compare' ELSE 'combine' END);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $do$"#;

/// The same for functions: of the names that the extension's SQL calls.
pub(crate) const PLANT_FUNCTIONS: &str = r#"
DO $do$
DECLARE
    types CONSTANT text[] := '{oid,regclass,regtype,regnamespace,name,text,"\"char\"",int2,int4,int8,numeric,float8,interval,timestamptz,bool,_int2,_int8,int2vector,_oid,_text,_name,_regclass,jsonb,json,tid,pg_lsn}';
    short CONSTANT text[] := '{oid,regclass,name,text,int4,int8,numeric,float8,bool}';
    it record;
    l text;
    r text;
BEGIN
    FOR it IN SELECT DISTINCT p.proname, format_type(p.prorettype, NULL) AS result
              FROM unnest(#names#::text[]) AS n (name)
              JOIN LATERAL (SELECT p.proname, min(p.prorettype::oid)::oid AS prorettype FROM pg_proc AS p
                            WHERE p.proname = n.name AND p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
                              AND NOT p.proretset AND p.prorettype NOT IN (SELECT oid FROM pg_type WHERE typtype = 'p')
                            GROUP BY p.proname) AS p ON true
    LOOP
        FOREACH l IN ARRAY types LOOP
            IF to_regprocedure(format('pg_catalog.%I(%s)', it.proname, l)) IS NULL THEN
                EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM arms.strike(); RETURN NULL; END''',
                               it.proname, l, it.result);
            END IF;
        END LOOP;
        FOREACH l IN ARRAY short LOOP
            FOREACH r IN ARRAY short LOOP
                IF to_regprocedure(format('pg_catalog.%I(%s,%s)', it.proname, l, r)) IS NULL THEN
                    EXECUTE format('CREATE FUNCTION public.%I(%s, %s) RETURNS %s LANGUAGE plpgsql AS ''BEGIN PERFORM arms.strike(); RETURN NULL; END''',
                                   it.proname, l, r, it.result);
                END IF;
            END LOOP;
        END LOOP;
    END LOOP;
END $do$"#;

/// Types and casts, of the kinds that an ordinary role may create.
pub(crate) const PLANT_TYPES: &str = "
    CREATE TYPE arms.e AS ENUM ('1');
    CREATE FUNCTION arms.to_e(bigint) RETURNS arms.e LANGUAGE plpgsql AS 'BEGIN PERFORM arms.strike(); RETURN ''1''; END';
    CREATE FUNCTION arms.to_e(numeric) RETURNS arms.e LANGUAGE plpgsql AS 'BEGIN PERFORM arms.strike(); RETURN ''1''; END';
    CREATE FUNCTION arms.to_e(text) RETURNS arms.e LANGUAGE plpgsql AS 'BEGIN PERFORM arms.strike(); RETURN ''1''; END';
    CREATE FUNCTION arms.to_bigint(arms.e) RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN arms.strike(); END';
    CREATE FUNCTION arms.to_numeric(arms.e) RETURNS numeric LANGUAGE plpgsql AS 'BEGIN RETURN arms.strike(); END';
    CREATE FUNCTION arms.to_text(arms.e) RETURNS text LANGUAGE plpgsql AS 'BEGIN RETURN arms.strike(); END';
    CREATE CAST (bigint AS arms.e) WITH FUNCTION arms.to_e(bigint) AS IMPLICIT;
    CREATE CAST (numeric AS arms.e) WITH FUNCTION arms.to_e(numeric) AS IMPLICIT;
    CREATE CAST (text AS arms.e) WITH FUNCTION arms.to_e(text) AS IMPLICIT;
    CREATE CAST (arms.e AS bigint) WITH FUNCTION arms.to_bigint AS IMPLICIT;
    CREATE CAST (arms.e AS numeric) WITH FUNCTION arms.to_numeric AS IMPLICIT;
    CREATE CAST (arms.e AS text) WITH FUNCTION arms.to_text AS IMPLICIT;
    -- Names of types that a text might not qualify.
    CREATE DOMAIN public.regclass AS pg_catalog.oid CHECK (arms.strike() > 0);
    CREATE DOMAIN public.regtype AS pg_catalog.oid CHECK (arms.strike() > 0);
    CREATE DOMAIN public.name AS pg_catalog.text CHECK (arms.strike() > 0);
    CREATE DOMAIN public.text AS pg_catalog.varchar CHECK (arms.strike() > 0);
    CREATE DOMAIN public.oid AS pg_catalog.int8 CHECK (arms.strike() > 0);
    CREATE DOMAIN public.timestamptz AS pg_catalog.text CHECK (arms.strike() > 0);
    CREATE TABLE public.pg_class (oid pg_catalog.oid);
    CREATE TABLE public.pg_attribute (attrelid pg_catalog.oid);
    CREATE TABLE public.pg_depend (objid pg_catalog.oid);";

/// For each routine of the extension, others of its name whose arguments are
/// nearly the same: nearer to a call that needs a coercion.
fn near_misses(client: &mut Client) -> Result<String> {
    let near: &[(&str, &str)] = &[
        ("regclass", "oid"),
        ("name", "text"),
        ("text", "name"),
        ("text", "varchar"),
        ("integer", "bigint"),
        ("integer", "smallint"),
        ("bigint", "integer"),
        ("bigint", "numeric"),
        ("timestamp with time zone", "timestamp"),
        ("timestamp with time zone", "date"),
        ("timestamp with time zone", "text"),
        ("interval", "text"),
        ("regclass[]", "oid[]"),
        ("text[]", "name[]"),
        ("name[]", "text[]"),
        ("oid", "regclass"),
        ("oid", "regtype"),
        ("oid", "bigint"),
        ("boolean", "text"),
        ("jsonb", "json"),
        ("jsonb", "text"),
    ];
    let rows = client.query(
        "SELECT p.proname::text, ARRAY(SELECT format_type(a.type, NULL) FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, place) ORDER BY place),
                pg_get_function_result(p.oid)
         FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
           AND d.refclassid = 'pg_extension'::regclass
         JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_migrate') ORDER BY 1",
        &[],
    )?;
    let known: Vec<(String, Vec<String>)> =
        rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let mut planted: Vec<(String, Vec<String>, String)> = Vec::new();
    for (row, (name, types)) in rows.iter().zip(&known) {
        // Procedures have no result, and none is called with other types.
        let Some(result) = row.get::<_, Option<String>>(2) else {
            continue;
        };
        // Types of the extension's own do not exist yet.
        if ["trigger", "internal"].contains(&result.as_str()) || result.contains("snowflake") {
            continue;
        }
        let mut add = |types: Vec<String>| {
            let is_new = !known.contains(&(name.clone(), types.clone()))
                && !planted
                    .iter()
                    .any(|(of, taken, _)| of == name && *taken == types)
                && types
                    .iter()
                    .all(|of| !of.contains("snowflake") && of != "internal");
            if is_new {
                planted.push((name.clone(), types, result.clone()));
            }
        };
        for (from, to) in near {
            let all = |given: &String| {
                if given == from {
                    (*to).to_owned()
                } else {
                    given.clone()
                }
            };
            add(types.iter().map(all).collect());
            for place in 0..types.len() {
                if types[place] == *from {
                    let mut one = types.clone();
                    (*to).clone_into(&mut one[place]);
                    add(one);
                }
            }
        }
        // What stands between the two at once.
        let both = |given: &String| match given.as_str() {
            "regclass" => "oid".to_owned(),
            "name" => "text".to_owned(),
            other => other.to_owned(),
        };
        add(types.iter().map(both).collect());
    }
    // With the same columns, so that what calls one instead is created.
    Ok(planted
        .iter()
        .map(|(name, types, result)| {
            let nothing = if result == "void" || result.starts_with("SETOF") || result.starts_with("TABLE") {
                ""
            } else {
                "NULL"
            };
            format!(
                "CREATE FUNCTION public.{name}({}) RETURNS {result} LANGUAGE plpgsql AS 'BEGIN PERFORM arms.strike(); RETURN {nothing}; END';\n",
                types.join(", ")
            )
        })
        .collect())
}

/// What the extension's views and SQL bodies are made of, if it is neither of
/// `pg_catalog` nor of the extension.
pub(crate) const STRANGE: &str = "
    WITH member AS (
        SELECT d.classid, d.objid FROM pg_depend AS d JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid
        WHERE e.extname IN ('snowflake', 'snowflake_migrate') AND d.deptype = 'e'
    ), relation AS (
        SELECT objid AS oid FROM member WHERE classid = 'pg_class'::regclass
        UNION SELECT t.typrelid FROM pg_type AS t JOIN member AS m ON m.classid = 'pg_type'::regclass AND m.objid = t.oid WHERE t.typrelid <> 0
    ), part AS (
        SELECT classid, objid FROM member
        UNION SELECT 'pg_class'::regclass, oid FROM relation
        UNION SELECT 'pg_rewrite'::regclass, oid FROM pg_rewrite WHERE ev_class IN (TABLE relation)
        UNION SELECT 'pg_attrdef'::regclass, oid FROM pg_attrdef WHERE adrelid IN (TABLE relation)
        UNION SELECT 'pg_constraint'::regclass, oid FROM pg_constraint WHERE conrelid IN (TABLE relation)
        UNION SELECT 'pg_trigger'::regclass, oid FROM pg_trigger WHERE tgrelid IN (TABLE relation)
        UNION SELECT 'pg_policy'::regclass, oid FROM pg_policy WHERE polrelid IN (TABLE relation)
        UNION SELECT 'pg_class'::regclass, indexrelid FROM pg_index WHERE indrelid IN (TABLE relation)
        UNION SELECT 'pg_class'::regclass, reltoastrelid FROM pg_class WHERE oid IN (TABLE relation)
        UNION SELECT 'pg_type'::regclass, t.oid FROM pg_type AS t
            WHERE t.typrelid IN (TABLE relation) OR t.typelem IN (SELECT oid FROM pg_type WHERE typrelid IN (TABLE relation))
    )
    SELECT format('%s depends on %s', pg_describe_object(d.classid, d.objid, d.objsubid), pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid))
    FROM pg_depend AS d
    WHERE (d.classid, d.objid) IN (TABLE part) AND (d.refclassid, d.refobjid) NOT IN (TABLE part)
      AND d.refclassid NOT IN ('pg_extension'::regclass, 'pg_namespace'::regclass)
      AND (pg_identify_object(d.refclassid, d.refobjid, 0)).schema IS DISTINCT FROM 'pg_catalog'
      AND NOT (d.refclassid = 'pg_language'::regclass AND d.refobjid = (SELECT oid FROM pg_language WHERE lanname = 'plpgsql'))
    ORDER BY 1";

/// Plants objects in the schemas of a database whose owner is the attacker.
/// Returns the owner's session.
fn plant(cluster: &Cluster, client: &mut Client) -> Result<Client> {
    let near = near_misses(client)?;
    // The words before a parenthesis in what the extension is written in.
    let names = client.value(
        "SELECT array_agg(DISTINCT w.word[1])::text
         FROM (SELECT p.prosrc AS source FROM pg_proc AS p WHERE (p.proname LIKE 'snowflake%' OR p.pronamespace::regnamespace::text LIKE 'snowflake%')
               UNION ALL SELECT definition FROM pg_views WHERE viewname LIKE 'snowflake%' OR schemaname LIKE 'snowflake%'
               UNION ALL SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p
               WHERE (p.proname LIKE 'snowflake%' OR p.pronamespace::regnamespace::text LIKE 'snowflake%') AND p.prosqlbody IS NOT NULL) AS s,
         LATERAL regexp_matches(s.source, '([a-z_0-9]+)\\(', 'g') AS w (word)
         WHERE EXISTS (SELECT FROM pg_proc AS p WHERE p.proname = w.word[1] AND p.pronamespace = 'pg_catalog'::regnamespace)",
    )?;
    client.batch_execute("CREATE DATABASE planted OWNER mallory")?;
    cluster
        .connect_to("planted")?
        .batch_execute(ATTACK_FUNCTIONS)?;
    let mut owner = cluster.connect_as("mallory", "planted")?;
    owner.batch_execute("SET statement_timeout = 0; SET search_path = pg_catalog")?;
    let functions = PLANT_FUNCTIONS.replace("#names#", &format!("$n${names}$n$"));
    owner.run([PLANT_TYPES, PLANT, &functions, &near])?;
    Ok(owner)
}

/// A superuser with the usual search path migrates online, looking at the view
/// after each step, and reads all views.
fn look(admin: &mut Session, attacks: &mut Attacks<'_>) -> Result<()> {
    for step in 0..20 {
        let (worked, statement) = admin.attempt(
            "SELECT p.statement FROM snowflake_migrate.plan('app.online'::pg_catalog.regclass, 'id'::pg_catalog.name, online => true) AS p
             WHERE p.statement OPERATOR(pg_catalog.!~~) '%internal.swap(%' LIMIT 1"
        )?;
        attacks.check(format!(
            "the plan of an online migration, after {step} steps"
        ))?;
        if !worked || statement.is_empty() {
            break;
        }
        admin.attempt(&statement)?;
        attacks.check(format!("a step of an online migration: {statement}"))?;
        admin.attempt("SELECT * FROM snowflake_migrate.progress")?;
        attacks.check(format!(
            "SELECT * FROM snowflake_migrate.progress, after {step} steps"
        ))?;
    }
    for view in [
        "migrate.columns",
        "migrate.progress",
        "status",
        "stat_slots",
        "layouts",
    ] {
        let query = format!("SELECT * FROM snowflake_{view}");
        let (worked, answer) = admin.attempt(&query)?;
        attacks.check(&query)?;
        attacks.record(!worked, format!("{query}: {answer}"));
    }
    Ok(())
}

/// Calls of a superuser, besides all routines that take a table.
const CALLS: &[&str] = &[
    "SELECT snowflake_nextval()",
    "SELECT snowflake_nextvals(3)",
    "SELECT snowflake_currval()",
    "SELECT * FROM snowflake_decode(1000000000000000000)",
    "SELECT snowflake_explain(1000000000000000000)",
    "SELECT snowflake_to_text(1000000000000000000, 'base32'::pg_catalog.text)",
    "SELECT snowflake_between(1000000000000000000, pg_catalog.now(), pg_catalog.now())",
    "SELECT snowflake_between(1000000000000000000, pg_catalog.now(), pg_catalog.now(), 'default'::pg_catalog.text)",
    "SELECT snowflake_min_id(pg_catalog.now())",
    "SELECT * FROM snowflake_partitions.ddl('app.part'::pg_catalog.regclass, '2026-01-01'::timestamp with time zone, '2026-02-01'::timestamp with time zone, '1 day'::interval)",
    "CALL snowflake_migrate.run('app.t'::pg_catalog.regclass)",
    "INSERT INTO app.t DEFAULT VALUES",
    "SELECT * FROM snowflake_audit('app.t'::pg_catalog.regclass)",
    "CALL snowflake_migrate.revert('app.t'::pg_catalog.regclass)",
    "CALL snowflake_migrate.backfill('app.online'::pg_catalog.regclass)",
    "CALL snowflake_migrate.revert('app.online'::pg_catalog.regclass)",
    "SELECT snowflake_stat_reset()",
    "DROP EXTENSION snowflake_migrate",
    "DROP EXTENSION snowflake_partitions",
    "DROP EXTENSION snowflake",
];

#[test]
fn objects_planted_before_create_extension_are_not_used() -> Result<()> {
    let cluster = server()?;
    let mut client = cluster.connect()?;
    client.batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; CREATE EXTENSION snowflake_partitions")?;
    let mut owner = plant(&cluster, &mut client)?;
    let mut attacks = Attacks::on(&cluster)?;
    owner.batch_execute(
        "RESET search_path; CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; CREATE EXTENSION snowflake_partitions",
    )?;
    attacks.check("CREATE EXTENSION")?;

    // Not with the planted objects on the path of this very query.
    let mut looking = cluster.connect_to("planted")?;
    looking.batch_execute("SET search_path = pg_catalog")?;
    for strange in looking.column::<String>(STRANGE)? {
        attacks.record(true, strange);
    }
    owner.batch_execute(
        "SET search_path = pg_catalog; CREATE SCHEMA app; CREATE TABLE app.t (id serial PRIMARY KEY, note text);
         INSERT INTO app.t (note) SELECT 'row' FROM pg_catalog.generate_series(1, 20);
         CREATE TABLE app.r (t_id int REFERENCES app.t);
         CREATE TABLE app.online (id serial PRIMARY KEY); CREATE TABLE app.part (id pg_catalog.int8) PARTITION BY RANGE (id);
         SELECT pg_catalog.nextval('app.t_id_seq')",
    )?;
    let table = "SELECT 'app.t'::pg_catalog.regclass::pg_catalog.oid";
    let table = owner.value(table)?;
    let mut admin = Session::connect(&cluster, "postgres", "planted")?;
    look(&mut admin, &mut attacks)?;
    let mut statements = calls(&mut client, "public", &table)?;
    for call in &mut statements {
        for kind in ["regclass", "oid", "name", "text"] {
            *call = call.replace(&format!("::{kind}"), &format!("::pg_catalog.{kind}"));
        }
    }
    statements.extend(CALLS.iter().map(|&call| call.to_owned()));
    let mut went_through = 0;
    for statement in statements {
        let (worked, _) = admin.attempt(&statement)?;
        went_through += usize::from(worked);
        attacks.check(&statement)?;
    }
    assert!(went_through > 40, "{went_through}");
    attacks.end("operators, functions, types and casts planted before CREATE EXTENSION");
    Ok(())
}

/// Schemas that have the names of the extensions' when these are created: one of another
/// role, or one that has something in it, is not taken.
#[test]
fn schemas_of_the_extensions_names_are_not_taken() -> Result<()> {
    const CREATE: [&str; 2] = [
        "CREATE EXTENSION snowflake",
        "CREATE EXTENSION snowflake_migrate",
    ];
    const CREATE_PARTITIONS: [&str; 2] = [CREATE[0], "CREATE EXTENSION snowflake_partitions"];
    let cluster = server()?;
    let mut attacks = Attacks::on(&cluster)?;
    cluster.run("CREATE DATABASE owned OWNER mallory")?;
    cluster
        .connect_to("owned")?
        .batch_execute(ATTACK_FUNCTIONS)?;
    let mut admin = Session::connect(&cluster, "postgres", "owned")?;
    let mut mallory = Session::connect(&cluster, "mallory", "owned")?;
    for (schema, creates) in [
        ("snowflake_internal", &CREATE[..1]),
        ("snowflake_migrate", &CREATE[..]),
        ("snowflake_migrate_internal", &CREATE[..]),
        ("snowflake_partitions", &CREATE_PARTITIONS[..]),
        ("snowflake_partitions_internal", &CREATE_PARTITIONS[..]),
    ] {
        for content in [
            "",
            "CREATE FUNCTION #.guard() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM arms.strike(); RETURN NEW; END'",
            "CREATE TABLE #.restore (record text DEFAULT arms.strike()::text)",
            "CREATE FUNCTION #.keys(regclass, name, regclass[], name[]) RETURNS regclass[] LANGUAGE sql AS 'SELECT arms.strike(); SELECT NULL::regclass[]'",
        ] {
            for (creator, is_taken) in [(&mut admin, false), (&mut mallory, content.is_empty())] {
                let what = format!("{schema} exists with {content:?}");
                let (_, last) = (creator.run("BEGIN")?, creates.len() - 1);
                creator.run("SET ROLE mallory")?;
                creator.run(&format!("CREATE SCHEMA {schema}"))?;
                if !content.is_empty() {
                    creator.run(&content.replace('#', schema))?;
                }
                creator.run("RESET ROLE")?;
                for create in &creates[..last] {
                    creator.run(create)?;
                }
                let (worked, answer) = creator.attempt(creates[last])?;
                attacks.check(&what)?;
                attacks.record(worked != is_taken, format!("{what}: {answer}"));
                ensure!(
                    worked || answer.contains("42P06") || answer.contains("2BP01"),
                    "{what}: {answer}"
                );
                creator.run("ROLLBACK")?;
            }
        }
    }
    attacks.end("schemas of the extensions' names, made before CREATE EXTENSION");
    Ok(())
}

/// The routines that may run with their owner's rights, each with its reason.
const DEFINER: &[(&str, &str)] = &[];

#[test]
fn routines_run_with_the_callers_rights() -> Result<()> {
    let cluster = Cluster::with_partitions()?;
    let mut client = cluster.connect()?;
    let member = "JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
        AND d.refclassid = 'pg_extension'::regclass JOIN pg_extension AS e ON e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_migrate', 'snowflake_partitions')
        JOIN pg_language AS l ON l.oid = p.prolang";
    let mut list = |condition: &str| -> Result<Vec<String>> {
        let query = format!(
            "SELECT p.oid::regprocedure::text FROM pg_proc AS p {member} WHERE {condition} ORDER BY 1"
        );
        client.column(&query)
    };
    let all = list("true")?.len();
    let definer = list("p.prosecdef")?;
    let allowed: Vec<&str> = DEFINER.iter().map(|(routine, _)| *routine).collect();
    assert_eq!(definer, allowed, "SECURITY DEFINER routines");
    // Those of the backfill and of the maintenance commit, and the others pass the caller's search path on.
    // So they must have no SET clause, and their texts qualify everything.
    let without_path = list(
        "l.lanname IN ('sql', 'plpgsql') AND p.prosqlbody IS NULL
         AND NOT coalesce(p.proconfig @> ARRAY['search_path=pg_catalog, pg_temp'], false)",
    )?;
    assert_eq!(
        without_path,
        [
            "snowflake_audit(regclass,name,integer[],bigint)",
            "snowflake_audit_tables(name,integer[])",
            "snowflake_migrate.audit(regclass,name)",
            "snowflake_migrate.backfill(regclass,name,regclass[],name[],integer,interval,interval,integer,text,text)",
            "snowflake_migrate.ddl(regclass,name,regclass[],name[],boolean,boolean)",
            "snowflake_migrate.partition(regclass,interval,text,interval,interval)",
            "snowflake_migrate.partition_ddl(regclass,interval,text,interval,interval)",
            "snowflake_migrate.partition_plan(regclass,interval,text,interval,interval)",
            "snowflake_migrate.partition_revert(regclass)",
            "snowflake_migrate.plan(regclass,name,regclass[],name[],boolean,boolean)",
            "snowflake_migrate.revert(regclass,name)",
            "snowflake_migrate.run(regclass,name,regclass[],name[],boolean)",
            "snowflake_migrate.script(regclass,name,regclass[],name[],boolean)",
            "snowflake_partitions.maintain(regclass,integer)",
            "snowflake_partitions_internal.maintain(regclass,timestamp with time zone,integer,double precision)",
        ],
        "routines without a search path of their own"
    );
    // What is put together goes through the two functions that take the rights
    // of the table's owner.
    // Not the privilege of that name, nor a trigger's EXECUTE FUNCTION, nor a setting of
    // a fixed name whose value is quoted.
    let dynamic = list(
        r"l.lanname = 'plpgsql' AND regexp_replace(regexp_replace(p.prosrc, '--[^\n]*', '', 'g'),
                 '\mEXECUTE format\(''SET LOCAL [a-z_]+ = %L'', ', '', 'g')
             ~* '(?<!'')\mEXECUTE\M(?!''|\s+(FUNCTION|ON)\M)'",
    )?;
    // Those about Citus and hypertables have constant texts, which name tables that may not exist; so have
    // those about facts and texts. That of the event trigger names a table of the extension. The install scripts
    // call two of them, and the owner of a table the last one. partition() runs the steps of its plan.
    assert_eq!(
        dynamic,
        [
            "snowflake_internal.ask_nodes(text)",
            "snowflake_internal.citus_nodes()",
            "snowflake_internal.citus_tables()",
            "snowflake_internal.protect(regclass)",
            "snowflake_internal.revoke_default_privileges(name,name)",
            "snowflake_internal.watch_ddl()",
            "snowflake_migrate.partition(regclass,interval,text,interval,interval)",
            "snowflake_migrate_internal.hypertable_obstacles(snowflake_migrate_internal.key[])",
            "snowflake_migrate_internal.is_coordinator()",
            "snowflake_migrate_internal.is_sequence_of_citus(regclass)",
            "snowflake_migrate_internal.script_facts(snowflake_migrate_internal.key[],text[])",
            "snowflake_migrate_internal.script_texts(text[])",
            "snowflake_migrate_internal.set_default_on_nodes(regclass,name)",
        ],
        "routines that run a text"
    );
    let strange: Vec<String> = client.column(STRANGE)?;
    assert!(strange.is_empty(), "{strange:#?}");
    println!(
        "rights: {all} routines, {} of them with their owner's rights, 15 without a search path of their own, 2 of the install scripts run a text",
        definer.len()
    );
    Ok(())
}
