//! The corpus, each entry migrated in a maintenance window and online, and
//! reverted, beside an application that has to continue to work. What PostgreSQL
//! itself refuses is shown to be refused by PostgreSQL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use snowflake_tests::corpus::{APPLICATION, Entry, Next, OWNER, Outcome, entries};
use snowflake_tests::migration::{Contents, dump, foreign_keys};
use snowflake_tests::online::Columns;

use crate::support::*;

/// The notices of a session.
type Notices = Arc<Mutex<Vec<String>>>;

/// What an entry's test saw, for the table that is printed.
#[derive(Debug, Default)]
struct Line {
    plan: String,
    result: String,
    back: String,
    took: Duration,
    problem: Option<String>,
}

/// The roles of all entries.
pub(super) fn roles(cluster: &Cluster) -> Result<()> {
    cluster.run(&format!(
        "CREATE ROLE {OWNER} LOGIN; CREATE ROLE {APPLICATION} LOGIN; CREATE ROLE reader; CREATE ROLE auditor; CREATE ROLE reporter; CREATE ROLE \"Other \"\"Reader\";
         GRANT SET ON PARAMETER session_replication_role TO {OWNER}"
    ))
}

/// Makes a database one that the entries' databases are copied from.
pub(super) fn template(mut client: Client) -> Result<()> {
    Ok(client.batch_execute(&format!(
        "CREATE SCHEMA shop AUTHORIZATION {OWNER}; GRANT USAGE ON SCHEMA shop TO {APPLICATION}, reader, auditor;
         CREATE FUNCTION expect(condition boolean, what text) RETURNS void LANGUAGE plpgsql AS
             $$ BEGIN IF condition IS NOT TRUE THEN RAISE EXCEPTION 'not so: %', what USING ERRCODE = 'assert_failure'; END IF; END $$"
    ))?)
}

/// An entry in a database of its own.
pub(super) struct Trial<'a> {
    cluster: &'a Cluster,
    entry: &'static Entry,
    pub(super) database: String,
    online: bool,
    /// Whether the columns keep their sequences.
    keeps: bool,
    pub(super) superuser: Client,
    owner: Client,
    application: Client,
    notices: Notices,
}

impl<'a> Trial<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        entry: &'static Entry,
        (online, keeps): (bool, bool),
        (template, place): (&str, usize),
    ) -> Result<Self> {
        let database = format!("{template}_{place}");
        cluster.run(&format!("CREATE DATABASE {database} TEMPLATE {template}"))?;
        let path = "SET search_path = shop, public";
        let mut superuser = cluster.connect_to(&database)?;
        superuser.batch_execute(path)?;
        superuser
            .batch_execute(&format!("SET ROLE {OWNER}; {}; RESET ROLE", entry.setup))
            .context("creating the tables")?;
        superuser.batch_execute(&format!(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA shop TO {APPLICATION};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA shop TO {APPLICATION};
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA shop TO {APPLICATION};
             SET enable_indexscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off"
        ))?;
        let notices = Notices::default();
        let sink = Arc::clone(&notices);
        let user = if entry.by_superuser {
            "postgres"
        } else {
            OWNER
        };
        let mut owner = cluster
            .config(user, &database)
            .notice_callback(move |notice| {
                let line = format!(
                    "{} {}",
                    notice.message(),
                    notice.detail().unwrap_or_default()
                );
                sink.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(line);
            })
            .connect(NoTls)?;
        // A thousand partitions take longer than the tests' limit.
        owner.batch_execute(&format!("{path}; SET statement_timeout = 0"))?;
        let mut application = cluster.connect_as(APPLICATION, &database)?;
        application.batch_execute(path)?;
        Ok(Self {
            cluster,
            entry,
            database,
            online,
            keeps,
            superuser,
            owner,
            application,
            notices,
        })
    }

    /// The arguments of plan, run and others.
    pub(super) fn arguments(&self) -> String {
        let keeps = if self.keeps {
            ", keep_sequence => true"
        } else {
            ""
        };
        self.entry.arguments() + keeps
    }

    /// Runs what the application does.
    pub(super) fn apply(&mut self, when: &str) -> Result<()> {
        self.application
            .batch_execute(self.entry.application)
            .with_context(|| format!("the application, {when}"))
    }

    /// Does what a warning asks for.
    pub(super) fn cure(&mut self) -> Result<()> {
        if let Outcome::Warned { cure, .. } = self.entry.outcome(self.online) {
            self.owner.batch_execute(cure).context("the cure")?;
            self.apply("cured")?;
        }
        Ok(())
    }

    /// The schema, with its lines in an order that does not depend on that of the columns.
    fn schema(&self) -> Result<String> {
        Ok(lines_of(&schema(self.cluster, &self.database)?))
    }

    /// How many rows repeat a key of a unique index, and how many have no row
    /// that they reference, by reading the tables.
    fn broken_rows(&mut self) -> Result<(i64, i64)> {
        let duplicates = "
            SELECT string_agg(format('SELECT count(*) FROM (SELECT FROM ONLY %s WHERE %s AND %s GROUP BY %s HAVING count(*) > 1) AS d', i.indrelid::regclass,
                                     CASE WHEN i.indnullsnotdistinct THEN 'true' ELSE format('num_nulls(%s) = 0', k.columns) END,
                                     coalesce(pg_get_expr(i.indpred, i.indrelid), 'true'), k.columns), ' UNION ALL ')
            FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indrelid AND c.relkind = 'r' AND c.relnamespace = 'shop'::regnamespace
            CROSS JOIN LATERAL (SELECT string_agg(pg_get_indexdef(i.indexrelid, n, false), ', ') FROM generate_series(1, i.indnkeyatts) AS n) AS k (columns)
            WHERE i.indisunique";
        let orphans = "
            SELECT string_agg(format('SELECT count(*) FROM %s AS a WHERE num_nulls(%s) = 0 AND NOT EXISTS (SELECT FROM %s AS b WHERE (%s) = (%s))',
                                     k.conrelid::regclass, m.mine, CASE r.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || k.confrelid::regclass, m.theirs, m.mine), ' UNION ALL ')
            FROM pg_constraint AS k JOIN pg_class AS r ON r.oid = k.confrelid
            CROSS JOIN LATERAL (SELECT string_agg(format('a.%I', a.attname), ', '), string_agg(format('b.%I', b.attname), ', ')
                                FROM ROWS FROM (unnest(k.conkey), unnest(k.confkey)) AS u (x, y)
                                JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = u.x
                                JOIN pg_attribute AS b ON b.attrelid = k.confrelid AND b.attnum = u.y) AS m (mine, theirs)
            WHERE k.contype = 'f' AND k.conparentid = 0";
        let mut count = |generator: &str| -> Result<i64> {
            match self.superuser.text(generator)? {
                Some(query) => self
                    .superuser
                    .number(&format!("SELECT sum(n) FROM ({query}) AS q (n)")),
                None => Ok(0),
            }
        };
        Ok((count(duplicates)?, count(orphans)?))
    }

    /// The triggers, also those of foreign keys, and whether they are enabled.
    fn triggers(&mut self) -> Result<Vec<String>> {
        self.superuser.column(
            "SELECT format('%s %s %s %s', t.tgrelid::regclass, coalesce(k.conname, t.tgname), t.tgfoid::regproc, t.tgenabled::text)
             FROM pg_trigger AS t LEFT JOIN pg_constraint AS k ON k.oid = t.tgconstraint ORDER BY 1",
        )
    }

    /// What may not change from before the migration to after it.
    pub(super) fn facts(&mut self) -> Result<String> {
        let keys = foreign_keys(&mut self.superuser)?;
        let (duplicates, orphans) = self.broken_rows()?;
        let indexes = "SELECT count(*) FILTER (WHERE indisvalid AND indisready) || ' of ' || count(*) FROM pg_index";
        let indexes = self.superuser.text(indexes)?.unwrap_or_default();
        Ok(format!(
            "{} foreign keys, {} validated; {duplicates} duplicates, {orphans} rows without the row that they reference; {indexes} indexes valid\n{}",
            keys.0,
            keys.1,
            self.triggers()?.join("\n")
        ))
    }

    /// Lets the application insert, and counts the new IDs that are snowflake IDs.
    fn apply_and_count(&mut self, when: &str) -> Result<i64> {
        // By number, not by time: a slot may be ahead of the clock.
        let query = format!(
            "SELECT \"{}\"::bigint FROM {} WHERE \"{0}\" > 1::bigint << 40",
            self.entry.column.replace('"', "\"\""),
            self.entry.table
        );
        let before: Vec<i64> = self.superuser.column(&query)?;
        self.apply(when)?;
        let after: Vec<i64> = self.superuser.column(&query)?;
        let new = after.iter().filter(|id| !before.contains(id)).count();
        Ok(i64::try_from(new)?)
    }

    /// The refusal, and that nothing has changed.
    fn refused(&mut self, sqlstate: &str, obstacle: &str) -> Result<String> {
        let before = self.schema()?;
        let query = format!(
            "SELECT snowflake_migrate.plan({}, online => {})",
            self.arguments(),
            self.online
        );
        let Err(error) = self.owner.simple_query(&query) else {
            bail!("planned, but {obstacle:?} was expected to prevent it");
        };
        let answer = error.as_db_error().context("not an error of the server")?;
        let detail = answer.detail().unwrap_or_default();
        ensure!(
            answer.code().code() == sqlstate && detail.contains(obstacle),
            "refused, but not with {sqlstate} and {obstacle:?}: {} {} {detail}",
            answer.code().code(),
            answer.message()
        );
        ensure!(
            self.schema()? == before,
            "a refused plan has changed the schema"
        );
        self.apply("refused")?;
        Ok(format!("{sqlstate}: {obstacle}"))
    }

    /// That PostgreSQL refuses it too.
    fn refused_by_postgres(&mut self, statement: &str, sqlstate: &str) -> Result<String> {
        let answer = self.superuser.expect_error(statement)?;
        ensure!(
            answer.sqlstate == sqlstate,
            "PostgreSQL answers with {answer}, not {sqlstate}: {statement}"
        );
        Ok(format!("PostgreSQL: {}", answer.message))
    }

    /// The plan's warnings and notes.
    fn warnings(&mut self) -> Result<String> {
        self.notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        let arguments = self.arguments();
        let steps = online::plan_for(&mut self.owner, &arguments, self.online)?;
        let mut lines = self
            .notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        lines.extend(steps.into_iter().map(|step| step.note));
        Ok(lines.join("\n"))
    }

    /// Runs the migration, which leads to the same schema as what `snowflake_migrate.ddl`
    /// prints. Returns what [`migrate`](Self::migrate) does.
    fn migrate_both_ways(&mut self) -> Result<(usize, usize, i64)> {
        let by_hand = if self.entry.can_be_restored {
            Some(self.migrated_by_hand()?)
        } else {
            None
        };
        let counts = self.migrate()?;
        if let Some(by_hand) = by_hand {
            same(
                &by_hand,
                &self.schema()?,
                "by the plan, not by hand",
                |_| false,
            )?;
        }
        Ok(counts)
    }

    /// Runs the migration. The rows are the same before and after it. Returns
    /// the number of steps, tables and rows.
    fn migrate(&mut self) -> Result<(usize, usize, i64)> {
        if self.entry.next.is_some() {
            return self.migrate_by_psql();
        }
        let arguments = self.arguments();
        let columns = online::columns(&mut self.superuser)?;
        let before: Contents;
        let steps =
            online::plan_for(&mut self.owner, &arguments, self.online).context("the plan")?;
        if self.online {
            let copying = steps.iter().position(online::Step::is_backfill);
            let (adding, rest) = steps.split_at(copying.unwrap_or(0));
            self.owner.run(online::statements(adding))?;
            if copying.is_some() {
                self.apply("between the new columns and the copying of rows")?;
            }
            before = online::contents(&mut self.superuser, &columns)?;
            for step in rest {
                if step.is_swap() {
                    // Its rows would differ.
                    self.application.batch_execute("BEGIN")?;
                    self.apply("before the swap")?;
                    self.application
                        .batch_execute("SET CONSTRAINTS ALL IMMEDIATE; ROLLBACK")?;
                }
                self.owner.run([&step.statement])?;
            }
        } else {
            before = online::contents(&mut self.superuser, &columns)?;
            self.owner.run(
                // The second time for the step that drops the former sequences.
                vec![format!("CALL snowflake_migrate.run({arguments})"); 2],
            )?;
        }
        let (tables, rows) = self.check_migrated(&columns, &before)?;
        Ok((steps.len(), tables, rows))
    }

    /// The same through psql's `\gexec`, each statement in a transaction of its own.
    fn migrate_by_psql(&mut self) -> Result<(usize, usize, i64)> {
        let arguments = self.arguments();
        let columns = online::columns(&mut self.superuser)?;
        let before = online::contents(&mut self.superuser, &columns)?;
        let steps =
            online::plan_for(&mut self.owner, &arguments, self.online).context("the plan")?;
        let script = format!(
            "SET search_path = shop, public;\n\
             SELECT statement FROM snowflake_migrate.plan({arguments}, online => {}) ORDER BY step \\gexec\n",
            self.online
        );
        let written = psql(self.cluster, OWNER, &self.database, &script, true)?;
        ensure!(
            written.success && !written.errors.contains("ERROR"),
            "psql failed:\n{script}\n{}",
            written.errors
        );
        let (tables, rows) = self.check_migrated(&columns, &before)?;
        Ok((steps.len(), tables, rows))
    }

    /// The rows are the same as before, the columns have their places, and nothing
    /// is left to do. Returns the number of tables and rows.
    fn check_migrated(&mut self, columns: &Columns, before: &Contents) -> Result<(usize, i64)> {
        let arguments = self.arguments();
        let after = online::contents(&mut self.superuser, columns)?;
        for (table, rows) in before {
            ensure!(
                after.get(table) == Some(rows),
                "the rows of {table} have changed: {rows:?}, now {:?}",
                after.get(table)
            );
        }
        if self.online {
            let now = online::columns(&mut self.superuser)?;
            online::check_order(columns, &now, self.entry.widened)?;
        }
        let left = online::plan_for(&mut self.owner, &arguments, self.online)?;
        ensure!(
            left.is_empty(),
            "left to do: {:?}",
            online::statements(&left)
        );
        Ok((before.len(), before.values().map(|it| it.0).sum()))
    }

    /// The statement that reverts the migration.
    fn revert(&self) -> String {
        format!("CALL snowflake_migrate.revert({})", self.entry.arguments())
    }

    /// The migrated database, dumped, restored and reverted there. `before` is the
    /// schema that is expected.
    fn revert_a_copy(&self, next: Next, before: &str) -> Result<()> {
        let copy = self.copy()?;
        let mut owner = self.cluster.connect_as(OWNER, &copy)?;
        owner.run(["SET search_path = shop, public".to_owned(), self.revert()])?;
        let found = lines_of(&schema(self.cluster, &copy)?);
        same(
            before,
            &without_casts(&found, self.entry.widened),
            "reverted after a restore",
            |_| false,
        )?;
        let id = owner.number(&self.insert())?;
        ensure!(
            id == next.first,
            "after a restore, {id} is the next number, not {}",
            next.first
        );
        drop(owner);
        self.drop_database(&copy)
    }

    /// What `snowflake_migrate.ddl` prints, run by hand in a copy of the database. Returns
    /// the copy's schema.
    fn migrated_by_hand(&self) -> Result<String> {
        let copy = self.copy()?;
        let user = if self.entry.by_superuser {
            "postgres"
        } else {
            OWNER
        };
        let path = "SET search_path = shop, public;\n";
        let mut client = self.cluster.connect_as(user, &copy)?;
        client.batch_execute(path)?;
        let query = format!(
            "SELECT coalesce(string_agg(statement, E'\\n'), '') FROM snowflake_migrate.ddl({}, online => {})",
            self.arguments(),
            self.online
        );
        let statements = client.value(&query).context("ddl")?;
        drop(client);
        let (begin, end) = if self.online {
            ("", "")
        } else {
            ("BEGIN;\n", "\nCOMMIT;\n")
        };
        // As the script says where roles are trusted: most of these cannot log in.
        let script = format!("{path}\\set set_role on\n{begin}{statements}{end}");
        let written = psql(self.cluster, user, &copy, &script, true)?;
        ensure!(
            written.success && !written.errors.contains("ERROR"),
            "by hand: {}\n{script}",
            written.errors
        );
        let found = lines_of(&schema(self.cluster, &copy)?);
        self.drop_database(&copy)?;
        Ok(found)
    }

    /// A copy of the database, by a dump.
    fn copy(&self) -> Result<String> {
        let copy = format!("{}_copy", self.database);
        self.cluster.run(&format!("CREATE DATABASE {copy}"))?;
        let dumped = dump(self.cluster, &self.database, &[])?;
        let written = psql(self.cluster, "postgres", &copy, &dumped, true)?;
        ensure!(written.success, "restoring: {}", written.errors);
        Ok(copy)
    }

    fn drop_database(&self, database: &str) -> Result<()> {
        let statement = format!("DROP DATABASE {database} WITH (FORCE)");
        self.cluster.run(&statement)?;
        Ok(())
    }

    /// Inserts a row by the column's default, and returns its ID.
    fn insert(&self) -> String {
        format!(
            "INSERT INTO {} (note) VALUES ('next') RETURNING id",
            self.entry.table
        )
    }

    /// Reverted, the sequence continues with the numbers that follow; in a window
    /// also when the table has been migrated and reverted again, by a call.
    fn check_numbers(&mut self, next: Next, before: &str) -> Result<()> {
        let (insert, revert) = (self.insert(), self.revert());
        let rounds = if self.online { 1 } else { 2 };
        for round in 0..rounds {
            if round > 0 {
                let columns = online::columns(&mut self.superuser)?;
                let rows = online::contents(&mut self.superuser, &columns)?;
                let migrate = format!("CALL snowflake_migrate.run({})", self.entry.arguments());
                // The mark that was restored in the copy has raised the slots, so that IDs
                // of before the revert may be ahead of the clock by a lease.
                let passed = format!(
                    "SELECT NOT EXISTS (SELECT FROM {} WHERE id >= snowflake_migrate_internal.first_id_at(clock_timestamp()))",
                    self.entry.table
                );
                self.superuser.wait_until(&passed)?;
                // The second call has nothing to do.
                self.owner.run([&migrate, &migrate, &revert])?;
                ensure!(
                    online::contents(&mut self.superuser, &columns)? == rows,
                    "rows have changed"
                );
                same(
                    before,
                    &without_casts(&self.schema()?, self.entry.widened),
                    "reverted again",
                    |_| false,
                )?;
            }
            for n in 0..2 {
                let id = self.application.number(&insert)?;
                let expected = next.first + (next.taken * round + n) * next.step;
                ensure!(
                    id == expected,
                    "{id} is the next number, not {expected}, in round {round}"
                );
            }
            let refused = self.owner.expect_error(&revert)?;
            ensure!(refused.sqlstate == "55000", "reverted twice: {refused}");
        }
        Ok(())
    }

    /// Widens the columns, which keep their sequences. What is refused only for the sake of
    /// snowflake IDs is widened.
    fn widen(&mut self, line: &mut Line) -> Result<()> {
        self.apply("before")?;
        let query = format!(
            "SELECT snowflake_migrate.plan({}, online => {})",
            self.arguments(),
            self.online
        );
        let may_be_refused = !matches!(
            self.entry.outcome(self.online),
            Outcome::Migrates | Outcome::Warned { .. }
        );
        if may_be_refused && let Err(error) = self.owner.simple_query(&query) {
            let answer = error.as_db_error().context("not an error of the server")?;
            line.plan = format!("refused: {}", answer.detail().unwrap_or_default());
            return Ok(());
        }
        self.cure()?;
        let columns = self.entry.widened;
        // The last number before, unless there is none left.
        let insert = self.insert();
        let mut former = match self.entry.next {
            Some(_) => self.application.number(&insert).ok(),
            None => None,
        };
        // Sequences become bigint, too, and what ended at the end of integer does not.
        let of_sequences = |dump: &str| -> String {
            let words = |line: &str| -> Vec<String> {
                line.split_whitespace().map(str::to_owned).collect()
            };
            let lines = dump.lines().map(|line| words(line).join(" "));
            lines
                .map(|line| line.replace(" AS integer", "").replace(" AS smallint", ""))
                .map(|line| line.replace(" MAXVALUE 2147483647", " NO MAXVALUE"))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let before = of_sequences(&widened(&schema(self.cluster, &self.database)?, columns)?);
        let facts = self.facts()?;
        let (steps, tables, rows) = self.migrate_both_ways()?;
        line.plan += &format!("{steps} steps");
        same(&facts, &self.facts()?, "widened", |_| false)?;
        let after = of_sequences(&without_casts(&self.schema()?, columns));
        same(&before, &after, "widened", |_| false)?;
        let new = self.apply_and_count("widened")?;
        ensure!(new == 0, "{new} new rows have snowflake IDs");
        if let Some(next) = self.entry.next {
            for _ in 0..2 {
                let id = self.application.number(&insert)?;
                // A session that has taken several values at once leaves out the rest.
                let after = id - former.unwrap_or(next.first - next.step);
                ensure!(
                    after % next.step == 0 && after.signum() == next.step.signum(),
                    "{id} is the next number, after {former:?}"
                );
                former = Some(id);
            }
        }
        let limited = format!(
            "SELECT count(*) FROM snowflake_migrate.columns
             WHERE abs(last_possible::numeric) IN (32767, 32768, 2147483647, 2147483648)
               AND format('%I.%I', schema_name, table_name)::regclass = '{}'::regclass AND column_name::text = '{}'",
            self.entry.table.replace('\'', "''"),
            self.entry.column.replace('\'', "''")
        );
        let left = self.superuser.number(&limited)?;
        ensure!(left == 0, "it still ends as an integer");
        line.result = format!("{rows} rows of {tables} tables as before, the sequence goes on");
        Ok(())
    }

    /// The whole way, there and back.
    fn run(&mut self, line: &mut Line) -> Result<()> {
        if self.keeps {
            return self.widen(line);
        }
        self.apply("before")?;
        match self.entry.outcome(self.online) {
            Outcome::Refused {
                sqlstate,
                obstacle,
                postgres: (statement, code),
            } => {
                line.plan = self.refused(sqlstate, obstacle)?;
                line.result = self.refused_by_postgres(statement, code)?;
                return Ok(());
            }
            Outcome::Avoided {
                sqlstate,
                obstacle,
                reason,
            } => {
                line.plan = self.refused(sqlstate, obstacle)?;
                line.result = reason.to_owned();
                return Ok(());
            }
            Outcome::Warned { warning, cure } => {
                let warnings = self.warnings()?;
                ensure!(
                    warnings.contains(warning),
                    "no warning of {warning:?} in: {warnings}"
                );
                self.owner.batch_execute(cure).context("the cure")?;
                self.apply("cured")?;
                line.plan = format!("warns: {warning}; ");
            }
            Outcome::Migrates => {}
        }
        let columns = self.entry.widened;
        let before = widened(&schema(self.cluster, &self.database)?, columns)?;
        let facts = self.facts()?;
        let (steps, tables, rows) = self.migrate_both_ways()?;
        line.plan += &format!("{steps} steps");
        same(&facts, &self.facts()?, "migrated", |_| false)?;
        // The default differs, the boundary is set, and the column does not use its sequence.
        let after = without_casts(&self.schema()?, columns);
        same(
            &without_defaults(&before),
            &without_defaults(&after),
            "migrated",
            |it| {
                it.ends_with(" SET;")
                    || it.ends_with(" SET DEFAULT NULL;")
                    || [
                        " snowflake_id_boundary CHECK ",
                        "SEQUENCE",
                        "nextval(",
                        "AS IDENTITY",
                    ]
                    .iter()
                    .any(|part| it.contains(part))
            },
        )?;
        let new = self.apply_and_count("migrated")?;
        ensure!(new > 0, "no new row has a snowflake ID");
        line.result = format!("{rows} rows of {tables} tables as before, {new} snowflake IDs");
        if let Some(next) = self.entry.next.filter(|_| !self.online) {
            self.revert_a_copy(next, &before)?;
        }

        let revert = self.revert();
        self.owner.run([revert])?;
        same(
            &before,
            &without_casts(&self.schema()?, columns),
            "reverted",
            |_| false,
        )?;
        same(&facts, &self.facts()?, "reverted", |_| false)?;
        let new = self.apply_and_count("reverted")?;
        ensure!(new == 0, "{new} rows have snowflake IDs after reverting");
        if let Some(next) = self.entry.next {
            self.check_numbers(next, &before)?;
        }
        "the same schema, old IDs".clone_into(&mut line.back);
        Ok(())
    }
}

/// A dump's lines, those of columns that become bigint changed.
fn widened(dump: &str, columns: &[(&str, &str)]) -> Result<String> {
    let mut found = vec![false; columns.len()];
    let mut lines: Vec<String> = Vec::new();
    let mut table = None;
    for line in dump.lines() {
        let mut line = line.to_owned();
        if let Some(rest) = ["CREATE TABLE ", "CREATE UNLOGGED TABLE "]
            .iter()
            .find_map(|head| line.strip_prefix(head))
        {
            table = rest.strip_suffix(" (").map(str::to_owned);
        } else if line.starts_with(')') {
            table = None;
        } else if let Some(table) = &table {
            for ((of, name), found) in columns.iter().zip(&mut found) {
                let is_it = of
                    .strip_suffix('*')
                    .map_or(of == table, |start| table.starts_with(start));
                if let Some(rest) = line.strip_prefix(&format!("    {name} ")).filter(|_| is_it)
                    && let Some(options) = rest
                        .strip_prefix("integer")
                        .or_else(|| rest.strip_prefix("smallint"))
                {
                    line = format!("    {name} bigint{options}");
                    *found = true;
                }
            }
        }
        lines.push(line);
    }
    for (column, found) in columns.iter().zip(found) {
        ensure!(found, "no narrow column {column:?} in the dump");
    }
    // A view that depends on a primary key is dumped in two parts, the first with the
    // types of its columns.
    let dump = columns.iter().fold(lines.join("\n"), |dump, (_, name)| {
        dump.replace(
            &format!("NULL::integer AS {name}"),
            &format!("NULL::bigint AS {name}"),
        )
    });
    Ok(without_casts(&lines_of(&dump), columns))
}

/// A dump as lines whose order does not matter: one for each statement, column
/// and privilege. Privileges are listed with their grantors.
fn lines_of(dump: &str) -> String {
    let dump = online::unordered(&format!("{dump}\n"));
    let mut lines: Vec<String> = Vec::new();
    for line in dump.lines() {
        // Their columns are in the order of the table's.
        if let Some((head, rest)) = line.split_once(" ON ")
            && head.starts_with("CREATE STATISTICS")
            && let Some((names, rest)) = rest.split_once(" FROM ")
        {
            let mut names: Vec<&str> = names.split(", ").collect();
            names.sort_unstable();
            lines.push(format!("{head} ON {} FROM {rest}", names.join(", ")));
            continue;
        }
        if !line.contains("GRANT ") {
            lines.push(line.to_owned());
            continue;
        }
        let mut grantor = "the owner";
        for statement in line.trim_end_matches(';').split("; ") {
            if let Some(role) = statement.strip_prefix("SET SESSION AUTHORIZATION ") {
                grantor = role;
            } else if statement == "RESET SESSION AUTHORIZATION" {
                grantor = "the owner";
            } else {
                lines.push(format!("{statement}, by {grantor}"));
            }
        }
    }
    lines.join("\n")
}

/// A dump whose expressions do not cast those columns, or numbers, to bigint:
/// whether they have to depends on the columns' types.
fn without_casts(dump: &str, columns: &[(&str, &str)]) -> String {
    let mut parts = dump.split(")::bigint");
    let mut kept = String::new();
    let mut last = parts.next().unwrap_or_default();
    for part in parts {
        match last.rsplit_once('(') {
            Some((before, inner))
                if inner.parse::<i64>().is_ok()
                    || columns.iter().any(|(_, name)| *name == inner) =>
            {
                kept += &format!("{before}{inner}");
            }
            _ => kept += &format!("{last})::bigint"),
        }
        last = part;
    }
    kept + last
}

/// A dump whose columns do not have the defaults that a migration replaces.
fn without_defaults(dump: &str) -> String {
    // A child of its own default NULL has its parent's while that is migrated.
    let mut rest = dump
        .replace(" DEFAULT public.snowflake_nextval()", "")
        .replace(" DEFAULT NULL", "");
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once(" DEFAULT nextval('") {
        let Some((_, after)) = after.split_once("'::regclass)") else {
            break;
        };
        kept += before;
        rest = after.to_owned();
    }
    let kept = kept + &rest;
    // A default that computes with the number.
    if let Some((before, after)) = kept.split_once(" DEFAULT (1000 + nextval(")
        && let Some((_, after)) = after.split_once("::regclass))")
    {
        return format!("{before}{after}");
    }
    kept
}

/// Fails with the lines that differ, except for those that may.
pub(super) fn same(
    before: &str,
    after: &str,
    when: &str,
    may_differ: impl Fn(&str) -> bool,
) -> Result<()> {
    let mut lines: BTreeMap<&str, i64> = BTreeMap::new();
    for line in before.lines() {
        *lines.entry(line).or_default() -= 1;
    }
    for line in after.lines() {
        *lines.entry(line).or_default() += 1;
    }
    let differing: Vec<String> = lines
        .into_iter()
        .filter(|(line, number)| *number != 0 && !may_differ(line))
        .map(|(line, number)| format!("{} {line}", if number < 0 { '-' } else { '+' }))
        .collect();
    ensure!(
        differing.is_empty(),
        "{when}, these lines differ:\n{}",
        differing.join("\n")
    );
    Ok(())
}

/// Why an entry is left out on this server, if it is.
pub(super) fn left_out(cluster: &Cluster, entry: &Entry) -> Result<Option<&'static str>> {
    let Some((condition, reason)) = entry.left_out else {
        return Ok(None);
    };
    let is_left_out = cluster.connect()?.value(&format!("SELECT {condition}"))? == "t";
    Ok(is_left_out.then_some(reason))
}

/// Runs the entries of this tier in one way, and prints the table.
fn run_corpus(online: bool, keeps: bool) -> Result<()> {
    let way = match (online, keeps) {
        (false, false) => "window",
        (true, false) => "online",
        (false, true) => "window, keeping sequences",
        (true, true) => "online, keeping sequences",
    };
    let builder = if keeps {
        Cluster::builder().without_preload()
    } else {
        Cluster::node(1)
    };
    let cluster = builder
        // A thousand partitions are rewritten in one transaction.
        .conf("max_locks_per_transaction", 256)
        .conf("wal_level", "logical")
        // A minute on an idle machine.
        .time_limit(Duration::from_secs(1800))
        .start_with_migrate()?;
    roles(&cluster)?;
    template(cluster.connect_to_new_database("corpus")?)?;
    let mut lines: Vec<(&str, Line)> = Vec::new();
    let entries = entries().filter(|entry| entry.is_pushed || tier::is_full());
    for (place, entry) in entries.enumerate() {
        let started = Instant::now();
        let mut line = Line::default();
        if let Some(reason) = left_out(&cluster, entry)? {
            line.plan = format!("left out: {reason}");
            lines.push((entry.name, line));
            continue;
        }
        let answer = Trial::new(&cluster, entry, (online, keeps), ("corpus", place))
            .and_then(|mut trial| trial.run(&mut line));
        line.problem = answer.err().map(|error| format!("{error:#}"));
        line.took = started.elapsed();
        cluster.run(&format!("DROP DATABASE corpus_{place} WITH (FORCE)"))?;
        lines.push((entry.name, line));
    }
    println!("{way}\n\n| pattern | plan | result | reverted | s |\n|---|---|---|---|---|");
    for (name, line) in &lines {
        let plan = if line.problem.is_some() {
            "FAILED"
        } else {
            &line.plan
        };
        println!(
            "| {name} | {plan} | {} | {} | {:.1} |",
            line.result,
            line.back,
            line.took.as_secs_f64()
        );
    }
    let problems: Vec<String> = lines
        .iter()
        .filter_map(|(name, line)| Some(format!("{name}: {}", line.problem.as_ref()?)))
        .collect();
    assert!(lines.len() >= tier::size(25, 95), "{} entries", lines.len());
    assert!(
        problems.is_empty(),
        "{} of {} entries, {way}:\n\n{}",
        problems.len(),
        lines.len(),
        problems.join("\n\n")
    );
    Ok(())
}

#[test]
fn real_schemas_are_migrated_in_a_window_and_reverted() -> Result<()> {
    run_corpus(false, false)
}

#[test]
fn real_schemas_are_migrated_online_and_reverted() -> Result<()> {
    run_corpus(true, false)
}

/// On a server that neither preloads the library nor has a node number.
#[test]
fn real_schemas_are_widened_in_a_window_and_keep_their_sequences() -> Result<()> {
    run_corpus(false, true)
}

#[test]
fn real_schemas_are_widened_online_and_keep_their_sequences() -> Result<()> {
    run_corpus(true, true)
}
