//! Dumps by PostgreSQL's own programs, restored by the owner of the database
//! and by superusers, in the forms in which people do it.
//!
//! A dump must be restored without any error, with all rows; IDs continue above
//! the restored ones, also on a server with the same node number; and a table's
//! owner can revert or finish what was migrated before the dump. Where
//! `SNOWFLAKE_EARLIER_PG_CONFIG` names an earlier version, dumps are its.

use std::collections::HashSet;
use std::process::Output;

use snowflake_tests::os_user::OsUser;
use snowflake_tests::replica::Dump;
use snowflake_tests::scratch::Scratch;

use crate::migration::run_before;
use crate::support::*;

/// `app` owns the database, and has the rights of `shop`, which owns a table in
/// it. `reader` dumps.
const ROLES: &str = "CREATE ROLE app LOGIN; CREATE ROLE shop LOGIN; GRANT shop TO app;
    CREATE ROLE reader LOGIN; GRANT pg_read_all_data TO reader; CREATE ROLE stranger LOGIN";

/// How many rows each dump has at least, and how many IDs are made after each restore.
fn size() -> usize {
    tier::size(10_000, 100_000)
}

/// How long a server may run: a server with assertions takes minutes for all forms.
const LIMIT: Duration = Duration::from_secs(900);

/// `#` stands for [`size`].
const TABLES: &str = "
    CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
    INSERT INTO orders (note) SELECT 'x' FROM generate_series(1, # * 6 / 10);
    CREATE TABLE lines (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), order_id bigint REFERENCES orders);
    INSERT INTO lines (order_id) SELECT id FROM orders LIMIT # / 10;
    CREATE TABLE events (id bigint DEFAULT snowflake_nextval(), n int, PRIMARY KEY (id, n)) PARTITION BY LIST (n);
    CREATE TABLE events_0 PARTITION OF events FOR VALUES IN (0);
    CREATE TABLE events_1 PARTITION OF events FOR VALUES IN (1);
    INSERT INTO events (n) SELECT i % 2 FROM generate_series(1, # * 3 / 10) AS i;
    CREATE TABLE was_serial (id serial PRIMARY KEY, n int); INSERT INTO was_serial (n) SELECT 1 FROM generate_series(1, 10);
    CREATE TABLE was_identity (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n int);
    INSERT INTO was_identity (n) SELECT 1 FROM generate_series(1, 10);
    COMMENT ON SEQUENCE was_serial_id_seq IS 'kept in jsonb''s neighbour: \"a\\tb\"';
    CALL snowflake_migrate.run('was_serial'); CALL snowflake_migrate.run('was_identity');
    INSERT INTO was_serial (n) SELECT 1 FROM generate_series(1, 1000); INSERT INTO was_identity (n) VALUES (1);
    CREATE TABLE \"Dropped, later\" (id serial PRIMARY KEY); CALL snowflake_migrate.run('\"Dropped, later\"'); DROP TABLE \"Dropped, later\";
    CREATE TABLE under_way (id serial PRIMARY KEY, n int); INSERT INTO under_way (n) SELECT 1 FROM generate_series(1, 1000);
    CREATE TABLE refers (under_way_id int REFERENCES under_way); INSERT INTO refers SELECT id FROM under_way;
    CREATE SCHEMA store AUTHORIZATION shop; SET ROLE shop;
    CREATE TABLE store.\"It's \"\"here\" (id serial PRIMARY KEY, n int); INSERT INTO store.\"It's \"\"here\" (n) SELECT 1 FROM generate_series(1, 10);
    CALL snowflake_migrate.run('store.\"It''s \"\"here\"'); INSERT INTO store.\"It's \"\"here\" (n) VALUES (1);
    RESET ROLE";

const ALL_IDS: &str = "SELECT id FROM orders UNION ALL SELECT id FROM lines UNION ALL SELECT id FROM events
    UNION ALL SELECT id FROM was_serial UNION ALL SELECT id FROM was_identity UNION ALL SELECT id FROM under_way
    UNION ALL SELECT id FROM store.\"It's \"\"here\"";

/// A server in which [`fill`] has created a database.
fn source() -> Result<Cluster> {
    let source = Cluster::builder()
        .installation(Installation::earlier()?)
        .conf("snowflake.node_id", 1)
        .time_limit(LIMIT)
        .start()?;
    source.run(ROLES)?;
    Ok(source)
}

/// Creates the database `shop` with its tables, as its owner.
fn fill(source: &Cluster) -> Result<Client> {
    source.run("CREATE DATABASE shop OWNER app")?;
    let mut app = source.connect_as("app", "shop")?;
    app.batch_execute("CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate")?;
    app.batch_execute(&TABLES.replace('#', &size().to_string()))?;
    let (steps, backfill) = run_before(&mut app, "'under_way'", online::Step::is_backfill)?;
    app.run([&steps[backfill].statement])?;
    Ok(app)
}

/// A server to restore into. Its clock can be set.
fn target(node: i32) -> Result<ClusterBuilder> {
    Ok(Cluster::node(node).time_limit(LIMIT).movable_clock())
}

/// What a database that was dumped has.
struct Original {
    ids: Vec<i64>,
    mark: i64,
}

impl Original {
    fn of(client: &mut Client) -> Result<Self> {
        Ok(Original {
            ids: ids::fetch(client, ALL_IDS)?,
            mark: client.number("SELECT last_value FROM snowflake_internal.mark")?,
        })
    }
}

/// How a dump is made and restored.
struct Form {
    dumped_by: &'static str,
    dump: &'static [&'static str],
    program: &'static str,
    restored_by: &'static str,
    /// In each of these runs, one after the other.
    restore: &'static [&'static [&'static str]],
}

const STOP: &str = "--set=ON_ERROR_STOP=1";
const EXIT: &str = "--exit-on-error";

#[rustfmt::skip]
const FORMS: &[Form] = &[
    Form { dumped_by: "app", dump: &["-Fc"], program: "pg_restore", restored_by: "app", restore: &[&[EXIT]] },
    Form { dumped_by: "app", dump: &["-Fc"], program: "pg_restore", restored_by: "app", restore: &[&["-1"]] },
    Form { dumped_by: "app", dump: &["-Fc"], program: "pg_restore", restored_by: "app", restore: &[&["-j4", EXIT]] },
    Form { dumped_by: "app", dump: &["-Fd", "-j2"], program: "pg_restore", restored_by: "app", restore: &[&["-j4", EXIT]] },
    Form { dumped_by: "app", dump: &["-Fp"], program: "psql", restored_by: "app", restore: &[&["-1", STOP]] },
    Form { dumped_by: "app", dump: &["-Fp"], program: "psql", restored_by: "app", restore: &[&[STOP]] },
    Form { dumped_by: "app", dump: &["-Fp", "--inserts", "--rows-per-insert=50"], program: "psql", restored_by: "app", restore: &[&["-1", STOP]] },
    Form { dumped_by: "app", dump: &["-Fp", "--column-inserts", "--rows-per-insert=100", "--on-conflict-do-nothing"], program: "psql", restored_by: "app", restore: &[&[STOP]] },
    Form { dumped_by: "app", dump: &["-Fc", "--no-owner", "--no-privileges"], program: "pg_restore", restored_by: "app", restore: &[&["-1", "--no-owner"]] },
    Form { dumped_by: "postgres", dump: &["-Fc", "--role=app"], program: "pg_restore", restored_by: "app", restore: &[&["-1"]] },
    Form { dumped_by: "postgres", dump: &["-Fc"], program: "pg_restore", restored_by: "postgres", restore: &[&["-1", "--role=app"]] },
    Form { dumped_by: "postgres", dump: &["-Fc"], program: "pg_restore", restored_by: "postgres", restore: &[&["-1"]] },
    Form { dumped_by: "postgres", dump: &["-Fp"], program: "psql", restored_by: "postgres", restore: &[&["-1", STOP]] },
    Form { dumped_by: "reader", dump: &["-Fc"], program: "pg_restore", restored_by: "app", restore: &[&["-1"]] },
    Form { dumped_by: "app", dump: &["-Fc"], program: "pg_restore", restored_by: "app",
           restore: &[&["--section=pre-data", EXIT], &["--section=data", "-j4", EXIT], &["--section=post-data", EXIT]] },
    Form { dumped_by: "app", dump: &["-Fc"], program: "pg_restore", restored_by: "app",
           restore: &[&["--schema-only", "--section=pre-data", EXIT], &["--data-only", "-1"], &["--section=post-data", EXIT]] },
    Form { dumped_by: "postgres", dump: &["-Fc"], program: "pg_restore", restored_by: "postgres",
           restore: &[&["--schema-only", EXIT], &["--data-only", "--disable-triggers", "-1"]] },
];

/// The forms that are tested at each push: parallel, in one transaction, as inserts,
/// by a superuser, and in parts.
const PUSHED: [usize; 5] = [2, 4, 7, 11, 16];

impl Form {
    fn title(&self) -> String {
        let restores = self.restore.iter().map(|options| options.join(" "));
        format!(
            "pg_dump {} as {}, {} {} as {}",
            self.dump.join(" "),
            self.dumped_by,
            self.program,
            restores.collect::<Vec<_>>().join("; "),
            self.restored_by
        )
    }

    fn dump(&self, source: &Cluster) -> Result<Dump> {
        let user = format!("--username={}", self.dumped_by);
        source.dump("shop", &[&[user.as_str()], self.dump].concat())
    }

    /// Returns the errors.
    fn restore(&self, dump: &Dump, target: &Cluster, database: &str) -> Result<Vec<String>> {
        target.run(&format!("CREATE DATABASE {database} OWNER app"))?;
        let mut errors = Vec::new();
        for options in self.restore {
            let output = target.restore(dump, self.program, self.restored_by, database, options)?;
            errors.extend(errors_of(&output));
        }
        Ok(errors)
    }
}

/// Lines that report errors or warnings; at least one if the program failed.
fn errors_of(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stderr);
    let is_error =
        |line: &&str| line.contains("ERROR") || line.contains("error:") || line.contains("WARNING");
    let mut errors: Vec<String> = text.lines().filter(is_error).map(str::to_owned).collect();
    if !output.status.success() && errors.is_empty() {
        errors.push(format!("{}: {text}", output.status));
    }
    errors
}

/// What a restored database has, and the IDs that it issues then.
struct Restored {
    rows: usize,
    first: i64,
    later: Vec<i64>,
}

/// Checks a restored database, and uses it.
fn check(target: &Cluster, database: &str, original: &Original, what: &str) -> Result<Restored> {
    let mut app = target.connect_as("app", database)?;
    let Original { ids, mark } = Original::of(&mut app)?;
    let (mut wanted, mut restored) = (original.ids.clone(), ids);
    wanted.sort_unstable();
    restored.sort_unstable();
    assert!(wanted == restored, "{what}: other rows");
    assert!(
        mark >= original.mark,
        "{what}: the mark is {mark}, not {}",
        original.mark
    );
    let stored = "SELECT count(*) FROM snowflake_internal.restore";
    app.answers(stored, 0)?;
    let layouts =
        "SELECT count(*) || ' ' || count(DISTINCT layout) FROM snowflake_internal.accepted_layout";
    app.answers(layouts, "1 1")?;
    let origins = "SELECT string_agg(target::text || ' ' || kind, ', ' ORDER BY target::text COLLATE \"C\") FROM snowflake_migrate_internal.visible_origins()";
    app.answers(
        origins,
        "store.\"It's \"\"here\" serial, under_way serial, was_identity identity always, was_serial serial",
    )?;
    let mut later = ids::nextval(&mut app, size() / 2)?;
    let first = later[0];
    let mut second = target.connect_as("app", database)?;
    later.extend(ids::nextval(&mut second, size() - size() / 2)?);
    let highest = wanted.last().context("no rows")?;
    assert!(first > *highest, "{what}: {first} is below {highest}");
    // What was migrated is reverted, and what was begun is finished, by the owners.
    for table in ["was_serial", "was_identity", "store.\"It''s \"\"here\""] {
        app.batch_execute(&format!("CALL snowflake_migrate.revert('{table}')"))
            .with_context(|| format!("{what}: reverting {table}"))?;
        let name = table.replace("''", "'");
        let insert = format!("INSERT INTO {name} (n) VALUES (1) RETURNING id");
        app.answers(&insert, 11)?;
    }
    let kind = "SELECT attidentity::text FROM pg_attribute WHERE attrelid = 'was_identity'::regclass AND attname = 'id'";
    app.answers(kind, "a")?;
    let comment = "SELECT obj_description('was_serial_id_seq'::regclass, 'pg_class')";
    app.answers(comment, "kept in jsonb's neighbour: \"a\\tb\"")?;
    // PostgreSQL: ENABLE TRIGGER ALL forgets ENABLE ALWAYS.
    app.batch_execute(
        "DO $$ DECLARE shadow record; BEGIN
             FOR shadow IN SELECT tgrelid::regclass AS relation, tgname FROM pg_trigger
                           WHERE tgfoid = 'snowflake_migrate_internal.shadow'::regproc AND tgenabled <> 'A'
             LOOP EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', shadow.relation, shadow.tgname); END LOOP;
         END $$",
    )?;
    ensure!(
        online::migrate(&mut app, "'under_way'")? > 0,
        "{what}: the online migration was lost"
    );
    let new = app.number("INSERT INTO under_way (n) VALUES (1) RETURNING id")?;
    assert!(new > 1 << 40, "{what}: {new}");
    later.push(new);
    Ok(Restored {
        rows: restored.len(),
        first,
        later,
    })
}

/// How many IDs made later are among the restored ones, or repeat each other.
fn repeated(original: &Original, later: &[i64]) -> usize {
    let known: HashSet<i64> = original.ids.iter().copied().collect();
    later.iter().filter(|id| known.contains(id)).count() + Tally::of(later.to_vec()).duplicates
}

#[test]
fn every_form_of_a_dump_is_restored_without_an_error() -> Result<()> {
    let source = source()?;
    let mut app = fill(&source)?;
    let target = target(1)?.start()?;
    target.run(ROLES)?;
    let original = Original::of(&mut app)?;
    ensure!(original.ids.len() > size(), "{}", original.ids.len());
    let mut failures = Vec::new();
    let forms = FORMS.iter().enumerate();
    for (number, form) in forms.filter(|(number, _)| tier::is_full() || PUSHED.contains(number)) {
        let title = form.title();
        let dump = form.dump(&source)?;
        let database = format!("restored_{number}");
        let begun = Instant::now();
        let errors = form.restore(&dump, &target, &database)?;
        let took = begun.elapsed();
        if !errors.is_empty() {
            println!("dumps: | {title} | {} errors: {errors:#?}", errors.len());
            failures.push(format!("{title}: {errors:#?}"));
            continue;
        }
        let restored = check(&target, &database, &original, &title)?;
        let repeated = repeated(&original, &restored.later);
        println!(
            "dumps: | {title} | errors 0 | rows {} | IDs made later {} | repeated {repeated} | {:.1} s |",
            grouped(restored.rows),
            grouped(restored.later.len()),
            took.as_secs_f64()
        );
        assert_eq!(repeated, 0, "{title}");
        target.run(&format!("DROP DATABASE {database}"))?;
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// The whole server, into a server with another node number. The original is
/// used after the dump, too: the two never repeat each other's IDs.
#[test]
fn a_dump_of_the_whole_server_is_restored() -> Result<()> {
    let source = source()?;
    let mut app = fill(&source)?;
    let original = Original::of(&mut app)?;
    let dump = source.dump_all(&[])?;
    let target = target(2)?.start()?;
    let output = target.restore(&dump, "psql", "postgres", "postgres", &[])?;
    let errors: Vec<String> = errors_of(&output)
        .into_iter()
        .filter(|line| !line.contains("role \"postgres\" already exists"))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let restored = check(&target, "shop", &original, "pg_dumpall")?;
    let of_original = ids::nextval(&mut app, size())?;
    let both = [restored.later.clone(), of_original].concat();
    let repeated = repeated(&original, &both);
    println!(
        "dumps: | pg_dumpall as postgres, psql as postgres, another node number | errors 0 | rows {} | IDs made later {}, {} of them by the original | repeated {repeated} |",
        grouped(restored.rows),
        grouped(both.len()),
        grouped(size())
    );
    assert_eq!(repeated, 0);
    Ok(())
}

/// The clock of the restoring server is a little behind that of the dumped one:
/// its first ID waits, or begins above the restored ones.
#[test]
fn ids_continue_above_restored_ones_with_the_clock_behind() -> Result<()> {
    const BEHIND: Duration = Duration::from_secs(1);
    let source = source()?;
    let mut app = fill(&source)?;
    // Rows up to the moment of the dump.
    let begun = Instant::now();
    app.batch_execute("INSERT INTO orders (note) SELECT 'last' FROM generate_series(1, 10000)")?;
    let dump = source.dump("shop", &["--username=app", "-Fc"])?;
    let original = Original::of(&mut app)?;
    let mut target = target(1)?.prepare()?;
    target
        .clock()
        .set_offset(Offset::back(begun.elapsed() + BEHIND))?;
    target.start()?;
    target.run(ROLES)?;
    // Until the mark is no further ahead of the clock than a lease.
    target.run("ALTER ROLE app SET snowflake.max_wait = '1min'")?;
    target.run("CREATE DATABASE shop OWNER app")?;
    let output = target.restore(&dump, "pg_restore", "app", "shop", &["-1"])?;
    assert_eq!(errors_of(&output), Vec::<String>::new());
    let begun = Instant::now();
    let restored = check(&target, "shop", &original, "clock behind")?;
    let repeated = repeated(&original, &restored.later);
    let highest = original.ids.iter().max().context("no rows")?;
    println!(
        "dumps: | clock 1 s behind, the same node number | errors 0 | rows {} | IDs made later {} | repeated {repeated} | first one above by {} | {:.1} s |",
        grouped(restored.rows),
        grouped(restored.later.len()),
        grouped(restored.first - highest),
        begun.elapsed().as_secs_f64()
    );
    assert_eq!(repeated, 0);
    Ok(())
}

/// Tables that are excluded, tables of other owners, and rows that exist: the
/// dump is restored otherwise, and each record that is not is reported.
#[test]
fn records_that_cannot_be_restored_are_reported() -> Result<()> {
    let source = source()?;
    fill(&source)?;
    let target = target(1)?.start()?;
    let mut admin = target.connect()?;
    admin.batch_execute(ROLES)?;
    admin.batch_execute("CREATE DATABASE shop OWNER app")?;
    let without = source.dump(
        "shop",
        &["--username=app", "-Fc", "--exclude-table=was_serial"],
    )?;
    // pg_restore shows warnings with --verbose; the server's log has them anyway.
    let output = target.restore(&without, "pg_restore", "app", "shop", &["-1", "--verbose"])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    let warning = "the migration of column \"id\" of \"public\".\"was_serial\" was not restored";
    assert!(said.contains(warning), "{said}");
    assert!(said.contains("The table does not exist."), "{said}");
    // Once more: what is recorded stays.
    let mut app = target.connect_as("app", "shop")?;
    app.batch_execute("CREATE TABLE was_serial (id bigint)")?;
    let mut owner = target.connect_to("shop")?;
    owner.batch_execute("ALTER TABLE was_serial OWNER TO stranger")?;
    let records = "SELECT string_agg(o::text, ';' ORDER BY o::text) FROM snowflake_migrate_internal.visible_origins() AS o";
    let before = app.value(records)?;
    let rows = source.dump(
        "shop",
        &[
            "--username=app",
            "-Fp",
            "--data-only",
            "--exclude-table-data=public.*",
            "--exclude-table-data=store.*",
        ],
    )?;
    let output = target.restore(&rows, "psql", "app", "shop", &["-1", STOP])?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "{said}");
    assert!(
        said.contains("A migration of this column is recorded already."),
        "{said}"
    );
    assert!(
        said.contains("The current role does not have the privileges of the table's owner."),
        "{said}"
    );
    app.answers(records, before)?;
    Ok(())
}

/// Into a database that is in use, on a server with the same node number: what is
/// reserved there is above the restored mark, and the slots may be below it. Single
/// tables have the mark if the extension's table is named as well.
#[test]
fn ids_continue_above_rows_restored_into_a_database_in_use() -> Result<()> {
    let source = source()?;
    let mut app = fill(&source)?;
    let target = target(1)?.conf("snowflake.lease", "60s").start()?;
    target.run(ROLES)?;
    target.run("CREATE DATABASE used OWNER app")?;
    let mut used = target.connect_as("app", "used")?;
    used.batch_execute(
        "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate; CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text);
         INSERT INTO orders DEFAULT VALUES; DELETE FROM orders",
    )?;
    app.batch_execute("INSERT INTO orders (note) SELECT 'last' FROM generate_series(1, 10000)")?;
    let begun = Instant::now();
    let dump = source.dump(
        "shop",
        &[
            "--username=app",
            "-Fc",
            "--data-only",
            "--table=orders",
            "--table=snowflake_internal.restore",
        ],
    )?;
    let highest = app.number("SELECT max(id) FROM orders")?;
    let output = target.restore(&dump, "pg_restore", "app", "used", &["-1"])?;
    assert_eq!(errors_of(&output), Vec::<String>::new());
    // The clock goes back to when the rows were written, and a little further.
    target
        .clock()
        .set_offset(Offset::back(begun.elapsed() + Duration::from_secs(1)))?;
    for client in [&mut used, &mut target.connect_as("app", "used")?] {
        let first = ids::one(client)?;
        assert!(first > highest, "{first} is below {highest}");
    }
    Ok(())
}

/// What only the tool knows may be lost; boundaries, the audit and new IDs are not:
/// whether it was dropped before the dump, or its files are missing where the dump is
/// restored. By the owner of the database, who is no superuser.
#[test]
fn boundaries_are_restored_without_the_tool() -> Result<()> {
    const BOUNDARIES: &str = "SELECT concat_ws(' ', snowflake_id_boundary('was_serial'), snowflake_id_boundary('was_identity'),
        snowflake_id_boundary('store.\"It''s \"\"here\"'), snowflake_id_boundary('orders'))";
    let source = source()?;
    let mut app = fill(&source)?;
    let boundaries = app.value(BOUNDARIES)?;
    let highest = app.number("SELECT max(id) FROM was_serial")?;
    let with = source.dump("shop", &["--username=app", "-Fc"])?;
    // An online migration under way keeps the tool.
    app.refused("DROP EXTENSION snowflake_migrate", "2BP01")?;
    app.run([
        "CALL snowflake_migrate.revert('under_way')",
        "DROP EXTENSION snowflake_migrate",
    ])?;
    let without = source.dump("shop", &["--username=app", "-Fc"])?;

    let directory = Scratch::new(&OsUser::for_servers()?)?;
    let bare = Installation::under_test()?.copy_to(directory.path())?;
    for file in std::fs::read_dir(&bare.extensions)? {
        let path = file?.path();
        if path.to_string_lossy().contains("snowflake_migrate") {
            std::fs::remove_file(path)?;
        }
    }
    for (dump, installation) in [
        (&without, Installation::under_test()?),
        (&without, bare.clone()),
        (&with, bare),
    ] {
        let has_tool = installation
            .extensions
            .join("snowflake_migrate.control")
            .exists();
        let target = target(1)?.installation(installation).start()?;
        let mut admin = target.connect()?;
        admin.batch_execute(ROLES)?;
        admin.batch_execute("CREATE DATABASE shop OWNER app")?;
        let output = target.restore(dump, "pg_restore", "app", "shop", &[])?;
        let errors = errors_of(&output);
        if std::ptr::eq(dump, &without) {
            assert_eq!(errors, Vec::<String>::new());
        } else {
            ensure!(
                !errors.is_empty()
                    && errors.iter().all(|line| line.contains("snowflake_migrate")
                        || line.contains("errors ignored on restore")),
                "{errors:#?}"
            );
        }
        let mut restored = target.connect_as("app", "shop")?;
        restored.answers("SELECT max(id) FROM was_serial", highest)?;
        restored.answers(BOUNDARIES, &boundaries)?;
        let old = "SELECT count(*) FROM was_serial WHERE id < snowflake_id_boundary('was_serial')";
        restored.answers(old, 10)?;
        restored.answers(
            "SELECT coalesce(string_agg(a::text, ';'), '') FROM snowflake_audit_tables() AS a",
            "",
        )?;
        let new = "INSERT INTO was_serial (n) VALUES (1) RETURNING id";
        ensure!(restored.number(new)? > highest, "below {highest}");
        if has_tool {
            restored.batch_execute("CREATE EXTENSION snowflake_migrate")?;
            let refused = restored.expect_error("CALL snowflake_migrate.revert('was_serial')")?;
            assert_eq!(refused.sqlstate, "55000", "{refused}");
            ensure!(
                refused.message.contains("is not known any more"),
                "{refused}"
            );
        }
    }
    Ok(())
}

/// What each role's dump has, with each option that leaves something out, and what of it a
/// restore by the owner of the database brings. The records are those of the tables whose
/// owner the role is; `reader` and the owner of the database have all of them.
#[test]
fn each_role_dumps_what_it_may_see() -> Result<()> {
    const ROWS: i64 = 20;
    /// Options, whether the dump creates the extensions, and whether it has rows, the mark,
    /// and origins.
    const OPTIONS: [(&[&str], [bool; 4]); 7] = [
        (&[], [true; 4]),
        (&["--schema-only"], [true, false, false, false]),
        (&["--data-only"], [false, true, true, true]),
        (&["--table=own.*"], [false, true, false, false]),
        (&["--schema=own"], [false, true, false, false]),
        (
            &["--exclude-schema=snowflake_internal"],
            [true, true, false, true],
        ),
        (
            &["--exclude-table-data=snowflake_internal.*"],
            [true, true, false, true],
        ),
    ];
    const EXTENSIONS: &str = "CREATE EXTENSION snowflake; CREATE EXTENSION snowflake_migrate";
    let source = source()?;
    let mut admin = source.connect()?;
    admin.batch_execute("CREATE DATABASE matrix OWNER app")?;
    let mut app = source.connect_as("app", "matrix")?;
    app.batch_execute(EXTENSIONS)?;
    app.batch_execute("CREATE SCHEMA own AUTHORIZATION shop")?;
    let tables = |name: &str| {
        format!(
            "CREATE TABLE {name} (id serial PRIMARY KEY, n int); INSERT INTO {name} (n) SELECT 1 FROM generate_series(1, 10);
             CALL snowflake_migrate.run('{name}'); CALL snowflake_migrate.run('{name}'); INSERT INTO {name} (n) SELECT 1 FROM generate_series(11, {ROWS})"
        )
    };
    app.batch_execute(&format!(
        "{}; GRANT SELECT ON own.t, own.t_id_seq TO shop",
        tables("own.t")
    ))?;
    let mut shop = source.connect_as("shop", "matrix")?;
    shop.batch_execute(&tables("own.of_shop"))?;
    let mark = app.number("SELECT last_value FROM snowflake_internal.mark")?;
    let boundary = app.number("SELECT snowflake_id_boundary('own.of_shop')")?;
    let target = target(1)?.start()?;
    target.run(ROLES)?;
    println!("dumps: role | option | rc | rows | mark | boundaries | origins");
    for (role, all) in [
        ("app", true),
        ("shop", false),
        ("postgres", true),
        ("reader", true),
    ] {
        let pushed = ["app", "shop"].contains(&role);
        for (options, [has_extensions, has_rows, has_mark, has_origins]) in OPTIONS {
            if !tier::is_full() && !pushed {
                continue;
            }
            let user = format!("--username={role}");
            let dump = source.dump("matrix", &[&["-Fc", user.as_str()], options].concat())?;
            target.run("CREATE DATABASE part OWNER app")?;
            let mut restored = target.connect_as("app", "part")?;
            if !has_extensions {
                restored.batch_execute(EXTENSIONS)?;
            }
            let is_data = options == ["--data-only"];
            if is_data || options == ["--table=own.*"] {
                restored.batch_execute("CREATE SCHEMA own AUTHORIZATION shop")?;
            }
            if is_data {
                restored.batch_execute("CREATE TABLE own.t (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int); CREATE SEQUENCE own.t_id_seq")?;
                target.connect_as("shop", "part")?.batch_execute("CREATE TABLE own.of_shop (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), n int); CREATE SEQUENCE own.of_shop_id_seq")?;
            }
            let restore: &[&str] = if options.is_empty() || is_data {
                &["-1"]
            } else {
                &["--exit-on-error"]
            };
            let output = target.restore(&dump, "pg_restore", "app", "part", restore)?;
            let what = format!("{role} | {} ", options.join(" "));
            assert_eq!(errors_of(&output), Vec::<String>::new(), "{what}");
            let rows = restored.number(
                "SELECT (SELECT count(*) FROM own.t) + (SELECT count(*) FROM own.of_shop)",
            )?;
            let later = restored.number("SELECT last_value FROM snowflake_internal.mark")?;
            let origins = restored
                .number("SELECT count(*) FROM snowflake_migrate_internal.visible_origins()")?;
            let boundaries = restored.number(
                "SELECT count(*) FROM pg_constraint WHERE conname = 'snowflake_id_boundary'",
            )?;
            println!(
                "dumps: {what}| 0 | {rows} | {} | {boundaries} | {origins}",
                later >= mark
            );
            assert_eq!(rows, if has_rows { 2 * ROWS } else { 0 }, "{what}");
            assert_eq!(later >= mark, has_mark, "{what}");
            assert_eq!(boundaries, if is_data { 0 } else { 2 }, "{what}");
            let visible = if all { 2 } else { 1 };
            assert_eq!(origins, if has_origins { visible } else { 0 }, "{what}");
            // The rows without their boundary are not deleted by time.
            let asked = "SELECT snowflake_id_boundary('own.of_shop')";
            if is_data {
                assert_eq!(restored.expect_error(asked)?.sqlstate, "55000", "{what}");
            } else {
                restored.answers(asked, boundary)?;
            }
            drop(restored);
            target.run("DROP DATABASE part")?;
        }
    }
    Ok(())
}

/// A role that owns neither the database nor the extension restores no records.
#[test]
fn other_roles_do_not_restore_the_mark() -> Result<()> {
    let source = source()?;
    fill(&source)?;
    let mut shop = source.connect_as("shop", "shop")?;
    let insert = "INSERT INTO snowflake_internal.restore (record, mark) VALUES ('mark', 1)";
    let refused = shop.expect_error(insert)?;
    assert_eq!(refused.sqlstate, "42501", "{refused}");
    assert!(refused.hint.contains("owner of the database"), "{refused}");
    Ok(())
}
