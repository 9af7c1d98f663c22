//! Each SQL function beside a parallel scan, and those that are PARALLEL SAFE in parallel
//! workers: that needs processes, which golden files cannot ask for in each place.

use crate::support::*;

/// A value of each type that a function takes; NULL for others.
const VALUES: [(&str, &str); 14] = [
    ("regclass", "'orders'"),
    ("oid", "'orders'::regclass"),
    ("name", "'id'"),
    ("name[]", "'{id}'"),
    ("regclass[]", "'{orders}'"),
    ("oid[]", "ARRAY['orders'::regclass::oid]"),
    ("bigint", "250000000000000000"),
    ("integer", "1"),
    ("smallint", "1"),
    ("text", "'default'"),
    ("boolean", "false"),
    ("timestamp with time zone", "now()"),
    ("interval", "interval '1 day'"),
    ("snowflake_migrate_internal.key[]", "'{\"(orders,id)\"}'"),
];

/// Those that wait for something, or end the transaction.
const LEFT_OUT: [&str; 2] = [
    "snowflake_migrate_internal.wait",
    "snowflake_migrate_internal.stay",
];

struct Function {
    name: String,
    arguments: Vec<String>,
    returns_set: bool,
    is_safe: bool,
    is_unsafe: bool,
}

impl Function {
    fn all(client: &mut Client) -> Result<Vec<Self>> {
        let rows = client.query(
            "SELECT p.oid::regproc::text, ARRAY(SELECT t::regtype::text FROM unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (t, o) ORDER BY o),
                    p.proretset, p.proparallel = 's', p.proparallel = 'u'
             FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
             JOIN pg_extension AS e ON e.oid = d.refobjid
             WHERE e.extname IN ('snowflake', 'snowflake_migrate') AND p.prokind = 'f' AND p.prorettype <> 'trigger'::regtype
               AND NOT 'internal'::regtype = ANY (p.proargtypes)
             ORDER BY 1, 2",
            &[],
        )?;
        Ok(rows
            .iter()
            .map(|row| Function {
                name: row.get(0),
                arguments: row.get(1),
                returns_set: row.get(2),
                is_safe: row.get(3),
                is_unsafe: row.get(4),
            })
            .filter(|it| !LEFT_OUT.contains(&it.name.as_str()))
            .collect())
    }

    /// A call; of which each row evaluates the arguments if `of_row`.
    fn call(&self, of_row: bool) -> String {
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|ty| {
                let value = VALUES
                    .iter()
                    .find(|it| it.0 == ty)
                    .map_or("NULL", |it| it.1);
                let ty = match ty.as_str() {
                    "anyelement" => "date",
                    other => other,
                };
                if of_row {
                    format!("(CASE WHEN big.n > -1 THEN ({value})::{ty} END)")
                } else {
                    format!("({value})::{ty}")
                }
            })
            .collect();
        format!("{}({})", self.name, arguments.join(", "))
    }
}

/// The SQLSTATE of a statement that is undone.
fn sqlstate(client: &mut Client, statement: &str) -> Result<String> {
    client.batch_execute("BEGIN")?;
    let outcome = client.batch_execute(statement);
    client.batch_execute("ROLLBACK")?;
    let Err(error) = outcome else {
        return Ok("00000".to_owned());
    };
    let error = ServerError::from_error(error)?;
    ensure!(
        !error.sqlstate.starts_with("XX") && !error.message.contains("parallel"),
        "{statement}: {error}"
    );
    Ok(error.sqlstate)
}

/// Fails unless a statement ends as it does without parallel workers.
fn assert_same_alone(client: &mut Client, statement: &str) -> Result<()> {
    let answer = sqlstate(client, statement)?;
    client.batch_execute("SET max_parallel_workers_per_gather = 0")?;
    let alone = sqlstate(client, statement)?;
    client.batch_execute("SET max_parallel_workers_per_gather = 2")?;
    ensure!(answer == alone, "{statement}: {answer}, {alone} alone");
    Ok(())
}

/// Whether a statement has a parallel plan; `None` if it fails when it is planned, as an
/// IMMUTABLE function may with such constants.
fn has_gather(client: &mut Client, statement: &str) -> Option<bool> {
    let plan = client.query(&format!("EXPLAIN (COSTS off) {statement}"), &[]);
    plan.ok().map(|rows| {
        rows.iter()
            .any(|row| row.get::<_, &str>(0).contains("Gather"))
    })
}

#[test]
fn each_function_can_be_called_with_parallel_plans() -> Result<()> {
    let cluster = Cluster::node(5)
        .conf("max_worker_processes", 8)
        .start_with_migrate()?;
    let mut client = cluster.connect()?;
    let client = &mut client;
    client.batch_execute(
        "CREATE TABLE big (n int) WITH (parallel_workers = 2);
         INSERT INTO big SELECT generate_series(1, 20); ANALYZE big;
         CREATE TABLE orders (id bigserial PRIMARY KEY, n int); INSERT INTO orders (n) SELECT 1 FROM generate_series(1, 10);
         CALL snowflake_migrate.run('orders');
         INSERT INTO orders (n) SELECT 1 FROM generate_series(1, 10);
         SET statement_timeout = '60s'; SET client_min_messages = error;
         SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
         SET max_parallel_workers_per_gather = 2; SET parallel_leader_participation = off",
    )?;
    let functions = Function::all(client)?;
    let mut inside = 0;
    for function in &functions {
        let call = function.call(false);
        let statement = format!(
            "SELECT (SELECT count(*) FROM big WHERE n % 7 = 1), (SELECT count(*) FROM {call} AS f)"
        );
        let is_parallel = has_gather(client, &statement);
        ensure!(
            is_parallel != Some(function.is_unsafe),
            "the plan of {statement}"
        );
        assert_same_alone(client, &statement)?;
        if !function.is_safe {
            continue;
        }
        let call = function.call(true);
        let statement = if function.returns_set {
            format!("SELECT count(f) FROM big CROSS JOIN LATERAL {call} AS f")
        } else {
            format!("SELECT count({call}) FROM big")
        };
        let is_parallel = has_gather(client, &statement) == Some(true);
        assert_same_alone(client, &statement)?;
        inside += usize::from(is_parallel);
    }
    ensure!(inside > 30, "{inside} plans had a Gather");

    // And a wrong marking is found.
    client.batch_execute("ALTER FUNCTION snowflake_internal.audit PARALLEL RESTRICTED; ALTER FUNCTION snowflake_audit PARALLEL RESTRICTED;
        ALTER FUNCTION snowflake_internal.read PARALLEL RESTRICTED; ALTER FUNCTION snowflake_internal.read_audited PARALLEL RESTRICTED")?;
    let audit = "SELECT (SELECT count(*) FROM big WHERE n % 7 = 1), (SELECT count(*) FROM snowflake_audit('orders'))";
    let found = sqlstate(client, audit);
    let is_17 = client.number("SHOW server_version_num")? >= 170_000;
    ensure!(found.is_err() || is_17, "{found:?}");
    Ok(())
}
