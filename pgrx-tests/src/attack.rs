//! Roles that try to gain privileges.
//!
//! The attacker has a function that detects when it runs with another role's
//! privileges. It then writes to the server's log, which no rollback undoes, and
//! makes the attacker a superuser. An attack is anything that could make another
//! role run it.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use postgres::{Client, NoTls, SimpleQueryMessage};

use crate::server::Server;

/// Creates an ordinary role's functions in a schema of its own, and a table and a
/// sequence of another role that no other role may read. A superuser runs it in a
/// database. The roles must exist.
pub const ATTACK_FUNCTIONS: &str = "
    DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO mallory', current_database()); END $$;
    CREATE SCHEMA arms AUTHORIZATION mallory;
    CREATE SCHEMA stranger AUTHORIZATION stranger;
    GRANT USAGE ON SCHEMA stranger TO PUBLIC;
    SET SESSION AUTHORIZATION stranger;
    CREATE TABLE stranger.secret (id int PRIMARY KEY, note text);
    INSERT INTO stranger.secret VALUES (1, 'SECRET-ROW-1');
    CREATE SEQUENCE stranger.seq; SELECT setval('stranger.seq', 424242424242, false);
    SELECT nextval('stranger.seq');
    SET SESSION AUTHORIZATION mallory;
    CREATE FUNCTION arms.strike() RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
    BEGIN
        IF current_user <> 'mallory' THEN
            RAISE LOG 'ATTACK: code of mallory runs as %', current_user;
            EXECUTE 'ALTER ROLE mallory SUPERUSER';
        ELSIF session_user <> 'mallory' THEN
            -- Called by another role with mallory's privileges: can it leave them?
            EXECUTE 'RESET SESSION AUTHORIZATION';
            EXECUTE 'RESET ROLE';
            IF current_user <> 'mallory' THEN
                RAISE LOG 'ATTACK: code of mallory became %', current_user;
                EXECUTE 'ALTER ROLE mallory SUPERUSER';
            END IF;
        END IF;
        RETURN 1;
    EXCEPTION WHEN OTHERS THEN
        RETURN 1;
    END $$;
    CREATE FUNCTION arms.quiet(anyelement) RETURNS anyelement LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN PERFORM arms.strike(); RETURN $1; END $$;
    CREATE FUNCTION arms.pull() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN PERFORM arms.strike(); RETURN coalesce(NEW, OLD); END $$;
    GRANT USAGE ON SCHEMA arms TO PUBLIC;
    RESET SESSION AUTHORIZATION;";

/// The roles of [`ATTACK_FUNCTIONS`].
pub const ROLES: &str = "CREATE ROLE mallory LOGIN; CREATE ROLE stranger LOGIN;";

/// The contents of the table and the sequence, in the forms in which they would
/// leak.
pub const SECRETS: [&str; 2] = ["424242424242", "SECRET-ROW"];

/// Counts attacks on one server.
pub struct Attacks<'a> {
    server: &'a Server,
    admin: Client,
    /// The byte of the log up to which it was searched.
    log_seen: u64,
    tried: usize,
    succeeded: Vec<String>,
}

impl<'a> Attacks<'a> {
    /// Starts to count.
    pub fn on(server: &'a Server) -> Result<Self> {
        Ok(Self {
            server,
            admin: server.connect()?,
            log_seen: server.log_after(0)?.1,
            tried: 0,
            succeeded: Vec::new(),
        })
    }

    /// Counts an attack that was just tried. It succeeded if the attacker's code
    /// ran with the privileges of another role, or a role is a superuser now.
    pub fn check(&mut self, what: impl Display) -> Result<()> {
        let (new, end) = self.server.log_after(self.log_seen)?;
        self.log_seen = end;
        let mut gained: Vec<&str> = new
            .lines()
            .filter_map(|line| line.split_once("ATTACK: ").map(|(_, said)| said))
            .collect();
        gained.dedup();
        let risen = self.admin.query(
            "SELECT rolname::text FROM pg_roles WHERE rolsuper AND rolname <> 'postgres'",
            &[],
        )?;
        let mut gained = gained.join("; ");
        for row in risen {
            let role: String = row.get(0);
            self.admin
                .batch_execute(&format!("ALTER ROLE {role} NOSUPERUSER"))?;
            gained += &format!("; {role} is a superuser");
        }
        self.record(!gained.is_empty(), format!("{what}: {gained}"));
        Ok(())
    }

    /// Counts an attack whose success the test has determined.
    pub fn record(&mut self, success: bool, what: impl Display) {
        self.tried += 1;
        if success {
            self.succeeded.push(what.to_string());
        }
    }

    /// Counts an attack that succeeded if a secret is in the answers.
    pub fn check_leak(&mut self, answers: &str, what: impl Display) {
        let leaks = SECRETS.iter().any(|secret| answers.contains(secret));
        self.record(leaks, format!("{what}: the answer contains a secret"));
    }

    /// Fails if an attack succeeded, and lists those.
    pub fn end(self, title: &str) {
        println!(
            "rights: {} attacks tried, {} succeeded: {title}",
            self.tried,
            self.succeeded.len()
        );
        assert!(self.tried > 0, "no attack was tried: {title}");
        assert!(
            self.succeeded.is_empty(),
            "{title}: {} of {} attacks succeeded:\n{}",
            self.succeeded.len(),
            self.tried,
            self.succeeded.join("\n")
        );
    }
}

/// A session whose notices are kept.
pub struct Session {
    /// The session.
    pub client: Client,
    notices: Arc<Mutex<String>>,
}

impl Session {
    /// Connects as a role, with a statement timeout of two seconds.
    pub fn connect(server: &Server, role: &str, database: &str) -> Result<Self> {
        let notices = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&notices);
        let mut client = server
            .config(role, database)
            .notice_callback(move |notice| {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                *kept += &format!(
                    "{} {}\n",
                    notice.message(),
                    notice.detail().unwrap_or_default()
                );
            })
            .connect(NoTls)?;
        client.batch_execute("SET statement_timeout = '2s'")?;
        Ok(Self { client, notices })
    }

    /// Runs statements that may fail. Returns whether they succeeded, and the
    /// rows, notices and the error as text.
    pub fn attempt(&mut self, sql: &str) -> Result<(bool, String)> {
        let result = self.client.simple_query(sql);
        let mut answer =
            std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner));
        match result {
            Ok(messages) => {
                for message in messages {
                    if let SimpleQueryMessage::Row(row) = message {
                        for column in 0..row.len() {
                            answer += row.get(column).unwrap_or("NULL");
                            answer += " ";
                        }
                        answer += "\n";
                    }
                }
                Ok((true, answer))
            }
            Err(error) => {
                let Some(said) = error.as_db_error() else {
                    return Err(error).with_context(|| format!("running: {sql}"));
                };
                answer += &format!("{}: {said:?}", said.code().code());
                Ok((false, answer))
            }
        }
    }

    /// Runs statements that must succeed.
    pub fn run(&mut self, sql: &str) -> Result<String> {
        match self.attempt(sql)? {
            (true, answer) => Ok(answer),
            (false, answer) => bail!("{answer}\nrunning: {sql}"),
        }
    }
}

/// Statements that call each routine of both extensions with a table argument for
/// the table with that OID, procedures by CALL. `schema` is that of `snowflake`; the
/// internal functions are included.
pub fn calls(client: &mut Client, schema: &str, table: &str) -> Result<Vec<String>> {
    let rows = client.query(
        "SELECT format('%s %I.%I(%s)', CASE p.prokind WHEN 'p' THEN 'CALL' ELSE 'SELECT' END, n.nspname, p.proname,
                (SELECT string_agg(CASE
                     WHEN t.oid = 'regclass'::regtype THEN '#::oid::regclass'
                     WHEN t.oid = 'regclass[]'::regtype THEN 'ARRAY[#::oid::regclass]'
                     WHEN t.oid = to_regtype('snowflake_migrate_internal.key[]') THEN 'ARRAY[(#::oid::regclass, ''id'')::snowflake_migrate_internal.key]'
                     WHEN t.oid = 'oid'::regtype THEN '#::oid'
                     WHEN t.oid = 'name'::regtype THEN '''id''::name'
                     WHEN t.oid = 'boolean'::regtype THEN 'false'
                     WHEN t.oid = 'integer'::regtype THEN '10'
                     WHEN t.oid = 'interval'::regtype AND p.proname ~ 'partition' THEN '''1 day''::interval'
                     WHEN t.oid = 'interval'::regtype AND p.proname !~ 'backfill' THEN '''0''::interval'
                     WHEN t.oid = 'text'::regtype THEN '''SHARE ROW EXCLUSIVE''::text'
                     WHEN t.oid = 'text[]'::regtype THEN '''{}''::text[]'
                     WHEN t.oid = 'jsonb'::regtype THEN '''{}''::jsonb'
                     WHEN t.oid = 'timestamptz'::regtype THEN 'now()'
                     WHEN t.typtype = 'c' THEN format(
                         'jsonb_populate_record(NULL::%s, jsonb_build_object(''target'', ''#'', ''relation'', ''#'',
                              ''column_name'', ''id'', ''kind'', ''serial'', ''data_type'', ''integer'', ''first_id_ever'', 1000, ''first_id'', 1000,
                              ''sequence_schema'', ''app'', ''sequence_name'', ''t_id_seq'', ''sequence_options'', ''{}''::jsonb,
                              ''default_expression'', ''nextval(''''app.t_id_seq''''::regclass)''))', t.oid::regtype)
                     ELSE 'NULL::' || t.oid::regtype::text END, ', ' ORDER BY a.place)
                 FROM unnest(p.proargtypes) WITH ORDINALITY AS a (type, place) JOIN pg_type AS t ON t.oid = a.type))
         FROM pg_proc AS p
         JOIN pg_namespace AS n ON n.oid = p.pronamespace
         JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
         JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND e.oid = d.refobjid AND e.extname IN ('snowflake', 'snowflake_migrate')
         WHERE n.nspname IN ($1, 'snowflake_internal', 'snowflake_migrate', 'snowflake_migrate_internal')
           AND EXISTS (SELECT FROM unnest(p.proargtypes) AS a (type) JOIN pg_type AS t ON t.oid = a.type
                       WHERE t.oid IN ('regclass'::regtype, 'regclass[]'::regtype, to_regtype('snowflake_migrate_internal.key[]')) OR t.typtype = 'c')
         ORDER BY p.oid::regprocedure::text",
        &[&schema],
    )?;
    Ok(rows
        .iter()
        .map(|row| row.get::<_, String>(0).replace('#', table))
        .collect())
}
