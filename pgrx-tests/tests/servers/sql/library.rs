//! The functions of the library and their declarations in `sql/` agree.
//!
//! pgrx writes into the library what each function takes and returns. The catalog says
//! what PostgreSQL passes and expects. Nothing else compares the two: a declaration
//! with another type is a wrong value at best.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol};
use pgrx_sql_entity_graph::metadata::{Returns, SqlArrayMapping, SqlMapping};
use pgrx_sql_entity_graph::section::{ELF_SECTION_NAME, decode_entities};
use pgrx_sql_entity_graph::{PgExternEntity, PgExternReturnEntity, SqlGraphEntity, UsedTypeEntity};

use super::{one, outcome, run, session, texts};
use crate::support::*;

/// What the symbol of a function has to be declared with: its arguments, its result,
/// and what happens with NULL.
type Signatures = BTreeMap<String, String>;

fn mapped(mapping: &SqlMapping, ty: &UsedTypeEntity) -> Result<Option<String>> {
    let composite = || ty.composite_type.context("a row without a type");
    Ok(match mapping {
        SqlMapping::Skip => None,
        SqlMapping::As(sql) => Some(sql.clone()),
        SqlMapping::Composite => Some(composite()?.to_owned()),
        SqlMapping::Array(SqlArrayMapping::As(element)) => Some(format!("{element}[]")),
        SqlMapping::Array(SqlArrayMapping::Composite) => Some(format!("{}[]", composite()?)),
    })
}

/// A type as the catalog prints it.
fn printed(name: &str) -> String {
    one(&format!("SELECT to_regtype('{name}')::text"))
}

fn returned(ty: &UsedTypeEntity) -> Result<String> {
    let (Returns::One(mapping) | Returns::SetOf(mapping)) = ty.metadata.return_sql.clone()? else {
        anyhow::bail!("{} is not one column", ty.full_path);
    };
    let name = mapped(&mapping, ty)?.context("nothing is returned")?;
    Ok(printed(&name))
}

fn result(function: &PgExternEntity) -> Result<String> {
    Ok(match &function.fn_return {
        PgExternReturnEntity::None => "void".to_owned(),
        PgExternReturnEntity::Trigger => "trigger".to_owned(),
        PgExternReturnEntity::Type { ty } => returned(ty)?,
        PgExternReturnEntity::SetOf { ty } => format!("SETOF {}", returned(ty)?),
        PgExternReturnEntity::Iterated { tys } => {
            let columns: Vec<_> = tys
                .iter()
                .map(|column| {
                    Ok(format!(
                        "{} {}",
                        column.name.unwrap_or("").trim_matches('"'),
                        returned(&column.ty)?
                    ))
                })
                .collect::<Result<_>>()?;
            format!("TABLE({})", columns.join(", "))
        }
    })
}

/// What pgrx wrote into the library, by the symbols that PostgreSQL calls.
fn implemented(library: &[u8]) -> Result<Signatures> {
    let file = object::File::parse(library)?;
    let section = file
        .section_by_name(ELF_SECTION_NAME)
        .context("the library has no section of pgrx")?;
    let entities = decode_entities(section.data()?).map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut signatures = Signatures::new();
    for entity in &entities {
        let SqlGraphEntity::Function(function) = entity else {
            continue;
        };
        let mut arguments = Vec::new();
        let mut nullable = Vec::new();
        for argument in &function.fn_args {
            let ty = &argument.used_ty;
            if let Some(name) = mapped(&ty.metadata.argument_sql.clone()?, ty)? {
                arguments.push(printed(&name));
                nullable.push(ty.optional);
            }
        }
        ensure!(
            nullable.windows(2).all(|pair| pair[0] == pair[1]),
            "{} takes NULL for some of its arguments only",
            function.full_path
        );
        // Without arguments it makes no difference.
        let null = match nullable.first() {
            None => "-",
            Some(true) => "CALLED ON NULL INPUT",
            Some(false) => "STRICT",
        };
        signatures.insert(
            format!("{}_wrapper", function.unaliased_name),
            format!("({}) {} {null}", arguments.join(", "), result(function)?),
        );
    }
    let exported = file.dynamic_symbols().filter_map(|symbol| {
        symbol
            .name()
            .ok()?
            .strip_prefix("pg_finfo_")
            .map(str::to_owned)
    });
    for symbol in exported {
        ensure!(
            signatures.contains_key(&symbol),
            "{symbol} has no description"
        );
    }
    Ok(signatures)
}

/// What the catalog says of the functions of the library. A regclass is passed as an
/// oid, and the library does not know the types of rows.
fn declared() -> Vec<(String, String)> {
    texts(
        "WITH passed (type, name) AS (
             SELECT t.oid, CASE WHEN t.typtype = 'c' THEN 'record' WHEN t.oid = 'regclass'::regtype THEN 'oid' ELSE t.oid::regtype::text END
             FROM pg_type AS t)
         SELECT format('%s|(%s) %s %s', p.prosrc,
             (SELECT string_agg(t.name, ', ' ORDER BY a.position)
              FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, position) JOIN passed AS t USING (type)),
             CASE WHEN p.proretset AND p.proallargtypes IS NOT NULL
                  THEN (SELECT format('TABLE(%s)', string_agg(concat_ws(' ', a.name, t.name), ', ' ORDER BY a.position))
                        FROM unnest(p.proallargtypes, p.proargmodes, p.proargnames) WITH ORDINALITY AS a (type, mode, name, position)
                        JOIN passed AS t USING (type) WHERE a.mode IN ('t', 'o'))
                  ELSE concat(CASE WHEN p.proretset THEN 'SETOF ' END, (SELECT t.name FROM passed AS t WHERE t.type = p.prorettype)) END,
             CASE WHEN p.pronargs = 0 THEN '-' WHEN p.proisstrict THEN 'STRICT' ELSE 'CALLED ON NULL INPUT' END)
         FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
         WHERE l.lanname = 'c' AND p.probin LIKE '%snowflake%' ORDER BY 1",
    )
    .into_iter()
    .map(|line| {
        let (symbol, signature) = line.split_once('|').expect("a separator");
        (symbol.to_owned(), signature.to_owned())
    })
    .collect()
}

/// Functions that SQL of the extensions calls under a name of its own
/// (sql/snowflake/own.sql).
const WITH_TWO_NAMES: [&str; 5] = [
    "snowflake_backend_id_wrapper",
    "snowflake_max_id_wrapper",
    "snowflake_min_id_wrapper",
    "snowflake_node_id_wrapper",
    "snowflake_timestamp_wrapper",
];

/// Where the library and the catalog disagree.
fn disagreements(implemented: &Signatures) -> Vec<String> {
    let mut found = Vec::new();
    let declared = declared();
    for (symbol, signature) in implemented {
        let declarations: Vec<_> = declared.iter().filter(|it| it.0 == *symbol).collect();
        if declarations.is_empty() {
            found.push(format!("{symbol} is not declared"));
        }
        if declarations.len() > 1 && !WITH_TWO_NAMES.contains(&symbol.as_str()) {
            found.push(format!("{symbol} is declared {} times", declarations.len()));
        }
        for (_, declaration) in declarations {
            if declaration != signature {
                found.push(format!(
                    "{symbol} is declared {declaration}, not {signature}"
                ));
            }
        }
    }
    for (symbol, _) in &declared {
        if !implemented.contains_key(symbol) {
            found.push(format!("{symbol} is not in the library"));
        }
    }
    found
}

fn signatures() -> Result<Signatures> {
    let directory: String = one("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'");
    implemented(&std::fs::read(format!("{directory}/snowflake.so"))?)
}

#[test]
fn each_function_of_the_library_is_declared_as_it_is() -> Result<()> {
    session()?;
    let implemented = signatures()?;
    assert_eq!(disagreements(&implemented), Vec::<String>::new());

    // And what does not agree is found.
    let library: String = one("SELECT probin FROM pg_proc WHERE proname = 'snowflake_nextval'");
    for (change, expected) in [
        (
            "UPDATE pg_proc SET proargtypes = '23' WHERE oid = 'snowflake_node_id(bigint)'::regprocedure".to_owned(),
            "snowflake_node_id_wrapper is declared (integer) integer STRICT, not (bigint) integer STRICT",
        ),
        (
            "ALTER FUNCTION snowflake_node_id(bigint) CALLED ON NULL INPUT".to_owned(),
            "snowflake_node_id_wrapper is declared (bigint) integer CALLED ON NULL INPUT, not (bigint) integer STRICT",
        ),
        (
            "ALTER EXTENSION snowflake DROP FUNCTION snowflake_currval(); DROP FUNCTION snowflake_currval()".to_owned(),
            "snowflake_currval_wrapper is not declared",
        ),
        (
            format!("CREATE FUNCTION planted() RETURNS bigint LANGUAGE c AS '{library}', 'snowflake_currval_wrapper'"),
            "snowflake_currval_wrapper is declared 2 times",
        ),
        (
            "UPDATE pg_proc SET prosrc = 'gone_wrapper' WHERE proname = 'snowflake_currval'".to_owned(),
            "gone_wrapper is not in the library",
        ),
    ] {
        run(&format!("SAVEPOINT planted; {change}"));
        let found = disagreements(&implemented);
        assert!(found.contains(&expected.to_owned()), "{change}: {found:?}");
        run("ROLLBACK TO planted");
    }
    Ok(())
}

/// A value of each type that a function takes.
const VALUES: [(&str, &str); 17] = [
    ("bigint", "1"),
    ("integer", "1"),
    ("smallint", "1"),
    ("text", "'x'"),
    ("name", "'x'"),
    ("text[]", "'{x}'"),
    ("name[]", "'{x}'"),
    ("oid", "1"),
    ("oid[]", "'{1}'"),
    ("regclass", "'pg_catalog.pg_class'"),
    ("timestamp with time zone", "'2030-01-01 00:00:00+00'"),
    ("internal", "NULL"),
    ("pg_node_tree", "NULL"),
    ("anyelement", "'2026-01-01'"),
    ("snowflake_migrate_internal.origins", "NULL"),
    ("snowflake_migrate_internal.progress", "NULL"),
    ("snowflake_migrate_internal.pace", "NULL"),
];

#[test]
fn each_function_of_the_library_can_be_called() -> Result<()> {
    session()?;
    run("CREATE ROLE somebody");
    let functions = texts(
        "SELECT format('%s|%s|%s', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, p.oid::regproc,
                       (SELECT string_agg(format('%s', t::regtype), ';' ORDER BY o) FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (t, o)))
         FROM pg_proc AS p JOIN pg_language AS l ON l.oid = p.prolang
         WHERE l.lanname = 'c' AND p.probin LIKE '%snowflake%' ORDER BY 1",
    );
    for function in &functions {
        let [command, name, types] = function.splitn(3, '|').collect::<Vec<_>>()[..] else {
            anyhow::bail!("{function}");
        };
        let types: Vec<_> = types.split(';').filter(|it| !it.is_empty()).collect();
        let values = types
            .iter()
            .map(|ty| VALUES.iter().find(|it| it.0 == *ty).map(|it| it.1))
            .collect::<Option<Vec<_>>>()
            .with_context(|| format!("{name} takes a type without a value here: {types:?}"))?;
        // Once as it is meant, and with each argument NULL.
        for null in 0..=types.len() {
            let arguments: Vec<_> = types
                .iter()
                .zip(&values)
                .enumerate()
                .map(|(at, (ty, value))| {
                    let ty = if *ty == "anyelement" { "date" } else { ty };
                    format!("{}::{ty}", if at + 1 == null { "NULL" } else { value })
                })
                .collect();
            let call = format!("{command} {name}({})", arguments.join(", "));
            for role in ["postgres", "somebody"] {
                let [state, message, ..] = outcome(&format!("SET LOCAL ROLE {role}; {call}"));
                run("RESET ROLE");
                assert!(!state.starts_with("XX"), "{call}: {state} {message}");
            }
        }
    }
    Ok(())
}
