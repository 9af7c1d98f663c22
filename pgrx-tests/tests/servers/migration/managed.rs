//! `docs/managed.md`, followed as printed: between a server without a file of the extension, and
//! a throwaway one that the reader starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use snowflake_tests::scratch::Scratch;

use crate::support::*;

/// An extension of the managed service, which cannot be installed elsewhere.
const VENDOR: &str = "
    CREATE DOMAIN @extschema@.email AS text;
    CREATE FUNCTION @extschema@.clean(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT lower($1)';
    CREATE FUNCTION @extschema@.stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';";

/// The tables, and 90 % of the numbers used.
const SHOP: &str = "
    CREATE TABLE orders (id serial PRIMARY KEY, email vendor.email, note text);
    CREATE TABLE lines (id serial PRIMARY KEY, order_id int NOT NULL REFERENCES orders, n int);
    CREATE INDEX ON lines (order_id) TABLESPACE fast;
    CREATE INDEX ON orders (vendor.clean(note));
    CREATE TRIGGER stamping BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION vendor.stamp();
    CREATE VIEW sold AS SELECT o.id, o.email, l.n FROM orders AS o JOIN lines AS l ON l.order_id = o.id;
    GRANT SELECT ON sold TO reporting;
    INSERT INTO orders (email, note) SELECT 'a@b', repeat('n', 100) FROM generate_series(1, 5000);
    INSERT INTO lines (order_id, n) SELECT 1 + i % 5000, i FROM generate_series(1, 9000) AS i;
    SELECT setval('orders_id_seq', 1932735283);";

/// What differs between two readers.
#[derive(Debug, Clone, Copy)]
struct Reader {
    /// `pg_dump` can dump statistics, and does.
    statistics: bool,
    /// The throwaway server has the vendor's extension.
    has_extension: bool,
    online: bool,
}

/// The tree of a server, with the vendor's extension or without, in a directory of its own.
fn tree(installation: Installation, directory: &Path, has_extension: bool) -> Result<Installation> {
    let tree = installation.copy_to(directory)?;
    if has_extension {
        let file = |name: &str| tree.extensions.join(name);
        fs::write(
            file("vendor.control"),
            "default_version = '1'\nrelocatable = false\nschema = vendor\n",
        )?;
        fs::write(file("vendor--1.sql"), VENDOR)?;
    }
    Ok(tree)
}

/// A managed server: no file of the extension, and objects that belong to the cluster.
fn managed(tree: Installation) -> Result<Cluster> {
    for entry in fs::read_dir(&tree.extensions)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("snowflake") {
            fs::remove_file(entry.path())?;
        }
    }
    let cluster = Cluster::builder()
        .without_preload()
        .installation(tree)
        .start()?;
    cluster.connect()?.run([
        "CREATE ROLE app LOGIN",
        "CREATE ROLE reporting",
        "SET allow_in_place_tablespaces = on",
        "CREATE TABLESPACE fast LOCATION ''",
        "GRANT CREATE ON TABLESPACE fast TO app",
        "CREATE DATABASE shop OWNER app TEMPLATE template0",
    ])?;
    let mut client = cluster.connect_to("shop")?;
    client.batch_execute(
        "CREATE SCHEMA vendor; CREATE EXTENSION vendor; GRANT USAGE ON SCHEMA vendor TO app",
    )?;
    client.batch_execute(&format!(
        "GRANT ALL ON SCHEMA public TO app; SET ROLE app; {SHOP}"
    ))?;
    client.batch_execute("ANALYZE")?;
    Ok(cluster)
}

/// A terminal in a clone of the repository.
struct Terminal<'a> {
    managed: &'a Cluster,
    path: String,
    directory: PathBuf,
    typed: usize,
}

impl Terminal<'_> {
    /// What a shell, or psql, prints for lines of the document.
    fn types(&mut self, program: &str, text: &str) -> Result<String> {
        self.typed += text.lines().filter(|line| !line.is_empty()).count();
        let sockets = self.managed.sockets().display();
        let managed = |user| {
            let port = self.managed.port();
            format!("host={sockets} port={port} dbname=shop user={user}")
        };
        let os_user = self.managed.os_user();
        let mut command = os_user.command("bash", &self.directory);
        let output = command
            .args(["-c", &format!("{program} 2>&1")])
            .env("PATH", &self.path)
            .env("MANAGED", managed("postgres"))
            .env("MANAGED_AS_OWNER", managed("app"))
            .env(
                "COPY",
                format!(
                    "host={} port=5499 user=postgres dbname=copy",
                    self.directory.display()
                ),
            )
            .stdin(self.file(text)?)
            .stderr(Stdio::inherit())
            .output()?;
        let output = String::from_utf8(output.stdout)?;
        println!("{text}{output}");
        Ok(output)
    }

    /// The lines, with another directory than `/tmp`, as a file to read from.
    fn file(&self, text: &str) -> Result<fs::File> {
        let path = self.directory.join("typed");
        fs::write(
            &path,
            text.replace("/tmp", &self.directory.to_string_lossy()),
        )?;
        Ok(fs::File::open(path)?)
    }
}

/// The document from its first line to the end of the migration.
fn follow(managed: &Cluster, bin: &Path, reader: Reader) -> Result<()> {
    let page = document::read("docs/managed.md")?;
    let blocks = document::blocks(&page);
    let block = |what: &str| -> Result<&str> {
        let found = blocks.iter().find(|block| block.text.contains(what));
        Ok(&found.with_context(|| format!("no block has {what}"))?.text)
    };
    let scratch = Scratch::new(managed.os_user())?;
    let directory = scratch.subdirectory("clone", managed.os_user())?;
    let copied = std::process::Command::new("cp")
        .args(["-r", "--parents", "docs/managed"])
        .arg(&directory)
        .current_dir(document::root())
        .status()?;
    ensure!(copied.success(), "copying docs/managed failed");
    let mut terminal = Terminal {
        managed,
        path: format!("{}:{}", bin.display(), std::env::var("PATH")?),
        directory,
        typed: 0,
    };
    let begun = Instant::now();

    let statistics = "--no-data --statistics --sequence-data";
    let mut dumping = block("needs.out")?.to_owned();
    ensure!(dumping.contains(statistics), "{dumping}");
    if !reader.statistics {
        dumping = dumping.replace(statistics, "--schema-only");
    }
    let printed = terminal.types("bash", &dumping)?;
    ensure!(printed.is_empty(), "{printed}");
    let printed = terminal.types("bash", block("initdb")?)?;
    let errors: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains("ERROR"))
        .collect();
    let explained = |error: &&str| {
        error.contains("already exists")
            || error.contains("unrecognized configuration parameter")
            || !reader.has_extension && error.contains("extension \"vendor\"")
    };
    ensure!(errors.iter().all(explained), "{errors:?}");

    let mut asked = block("\\g orders.sql")?.to_owned();
    if reader.online {
        asked += block("online => true) \\g orders.sql")?;
    }
    let printed = terminal.types("psql -X -v ON_ERROR_STOP=1 \"$COPY\"", &asked)?;
    ensure!(!printed.contains("ERROR"), "{printed}");
    // Sizes and the sequence's value are those of the managed server.
    let sizes = "SELECT concat_ws(' ', round(percent_used), row_estimate) FROM snowflake_migrate.survey() WHERE table_name = 'orders'::regclass";
    let found = terminal.types("psql -XAt \"$COPY\"", sizes)?;
    ensure!(found.trim() == "90 5000", "{found}");

    let printed = terminal.types("bash", block("check_only=on")?)?;
    ensure!(
        printed.contains("nothing differs; nothing was changed"),
        "{printed}"
    );
    let printed = terminal.types("bash", block("psql -X -f orders.sql")?)?;
    ensure!(printed.contains("done. Let clients reconnect"), "{printed}");
    let seconds = begun.elapsed().as_secs();

    let client = &mut managed.connect_to("shop")?;
    let types = "SELECT string_agg(attrelid::regclass || '.' || attname, ' ' ORDER BY attrelid::regclass::text, attname) FROM pg_attribute
        WHERE atttypid = 'int8'::regtype AND attrelid IN ('orders'::regclass, 'lines'::regclass, 'sold'::regclass)";
    client.answers(types, "lines.id lines.order_id orders.id sold.id")?;
    let rows = "SELECT concat_ws(' ', (SELECT sum(id) FROM orders), (SELECT sum(order_id) FROM lines), (SELECT count(*) FROM sold))";
    client.answers(rows, "12502500 20508500 9000")?;
    client.answers(
        "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'snowflake%'",
        0,
    )?;
    client.answers(
        "SELECT has_table_privilege('reporting', 'sold', 'SELECT')",
        "t",
    )?;
    let (from, to) = (
        managed.installation().major,
        Installation::under_test()?.major,
    );
    let lines = terminal.typed - 1;
    println!("managed: {reader:?}: from {from} by way of {to}: {lines} lines typed, {seconds} s");
    terminal.types("bash", "pg_ctl -D /tmp/copy -m immediate stop")?;
    Ok(())
}

/// It needs two servers, and the second is started by the lines of the document.
#[test]
fn the_page_on_managed_services_works_as_printed() -> Result<()> {
    let under_test = Installation::under_test()?;
    let directory = Scratch::new(&snowflake_tests::os_user::OsUser::for_servers()?)?;
    let place = |name: &str| directory.path().join(name);
    let (with, without) = (
        tree(under_test.clone(), &place("with"), true)?,
        tree(under_test.clone(), &place("without"), false)?,
    );
    let mut servers = vec![Installation::earlier()?];
    if servers[0].major != under_test.major {
        servers.push(under_test.clone());
    }
    for (number, server) in servers.into_iter().enumerate() {
        let tree = tree(server, &place(&format!("managed{number}")), true)?;
        for online in [false, true] {
            for statistics in [false, true] {
                // A statistics dump needs pg_dump 18.
                if statistics && under_test.major < 18 {
                    continue;
                }
                let reader = Reader {
                    statistics,
                    has_extension: online == statistics,
                    online,
                };
                let bin = if reader.has_extension {
                    &with.bin
                } else {
                    &without.bin
                };
                follow(&managed(tree.clone())?, bin, reader)
                    .with_context(|| format!("{reader:?}"))?;
            }
        }
    }
    Ok(())
}
