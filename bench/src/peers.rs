//! The contenders: how each generates an ID in SQL, and tables with them.

use anyhow::Result;
use plotters::style::RGBColor;
use postgres::Client;

/// A way to generate an ID on the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// No ID: the cost of any call.
    Constant,
    Snowflake,
    Sequence,
    CachedSequence,
    RandomUuid,
    UuidV7,
    OsspUuid,
    PlPgSql,
}

use Peer::{CachedSequence, Constant, OsspUuid, PlPgSql, RandomUuid, Sequence, Snowflake, UuidV7};

/// A snowflake function as published in articles: 41 bits of milliseconds, 10 of
/// the server's number, 12 of a sequence. (Most have a sequence of 10 bits, with
/// which 16 writers repeat IDs, so that the table's key rejects them.)
const IN_PLPGSQL: &str = "
    CREATE SEQUENCE plpgsql_sequence;
    CREATE FUNCTION plpgsql_snowflake() RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        epoch CONSTANT bigint := 1735689600000;
        server CONSTANT bigint := 1;
        milliseconds bigint;
    BEGIN
        milliseconds := floor(extract(epoch FROM clock_timestamp()) * 1000) - epoch;
        RETURN (milliseconds << 22) | (server << 12) | (nextval('plpgsql_sequence') % 4096);
    END $$";

/// The table that measurements insert into.
pub const TABLE: &str = "t";

/// A statement that inserts that many rows.
pub fn insert(batch: u64) -> String {
    match batch {
        1 => format!("INSERT INTO {TABLE} (v) VALUES (1)"),
        _ => format!("INSERT INTO {TABLE} (v) SELECT generate_series(1, {batch})"),
    }
}

/// Whether the table has an index on the ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    None,
    Primary,
}

impl Key {
    /// For a heading.
    pub fn describe(self) -> &'static str {
        match self {
            Key::None => "without an index",
            Key::Primary => "with a primary key",
        }
    }
}

impl Peer {
    /// Those that generate IDs and exist on this server, ours first. Creates what
    /// they need in the database.
    pub fn set_up(client: &mut Client) -> Result<Vec<Self>> {
        client.batch_execute("CREATE SEQUENCE plain; CREATE SEQUENCE cached CACHE 1000")?;
        client.batch_execute(IN_PLPGSQL)?;
        let has_v7: bool = client
            .query_one("SELECT to_regprocedure('uuidv7()') IS NOT NULL", &[])?
            .get(0);
        let has_ossp: bool = client
            .query_one(
                "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'uuid-ossp')",
                &[],
            )?
            .get(0);
        let mut peers = vec![Snowflake, Sequence, CachedSequence, RandomUuid];
        if has_v7 {
            peers.push(UuidV7);
        }
        if has_ossp {
            client.batch_execute("CREATE EXTENSION \"uuid-ossp\"")?;
            peers.push(OsspUuid);
        }
        peers.push(PlPgSql);
        Ok(peers)
    }

    /// The expression that generates one.
    pub fn call(self) -> &'static str {
        match self {
            Constant => "pg_backend_pid()",
            Snowflake => "snowflake_nextval()",
            Sequence => "nextval('plain')",
            CachedSequence => "nextval('cached')",
            RandomUuid => "gen_random_uuid()",
            UuidV7 => "uuidv7()",
            OsspUuid => "uuid_generate_v4()",
            PlPgSql => "plpgsql_snowflake()",
        }
    }

    /// For tables and legends.
    pub fn name(self) -> &'static str {
        match self {
            Constant => "a constant function",
            Snowflake => "snowflake_nextval()",
            Sequence => "nextval(), cache 1",
            CachedSequence => "nextval(), cache 1000",
            RandomUuid => "gen_random_uuid()",
            UuidV7 => "uuidv7()",
            OsspUuid => "uuid_generate_v4()",
            PlPgSql => "a PL/pgSQL snowflake",
        }
    }

    /// Its description.
    pub fn describe(self) -> &'static str {
        match self {
            Constant => "`pg_backend_pid()`: the cost of calling any C function",
            Snowflake => "this extension, with the default layout and settings",
            Sequence => "a plain sequence, as of `bigserial` and identity columns",
            CachedSequence => {
                "a sequence with `CACHE 1000`: each session fetches 1,000 numbers at a time, so IDs do not ascend across sessions"
            }
            RandomUuid => "core's UUID version 4: random order",
            UuidV7 => "core's UUID version 7 (PostgreSQL 18)",
            OsspUuid => {
                "UUID version 4 of contrib's extension `uuid-ossp`, by the system's library; in the tables only, because it would make the plots' other bars too short to compare"
            }
            PlPgSql => {
                "a function as published in articles: the clock, a server's number, and a sequence modulo 4,096. It does not prevent repeated IDs"
            }
        }
    }

    /// The column's type.
    pub fn id_type(self) -> &'static str {
        match self {
            RandomUuid | UuidV7 | OsspUuid => "uuid",
            Constant => "int",
            Snowflake | Sequence | CachedSequence | PlPgSql => "bigint",
        }
    }

    /// How many bytes an ID takes.
    pub fn bytes(self) -> u32 {
        match self.id_type() {
            "uuid" => 16,
            "bigint" => 8,
            _ => 4,
        }
    }

    /// Whether it is on the first page, with the usual choices.
    pub fn is_usual(self) -> bool {
        matches!(self, Snowflake | Sequence | RandomUuid | UuidV7)
    }

    /// Whether it is in plots with bars. Beside one that takes many times as long,
    /// the others' bars would be too short to compare.
    pub fn is_drawn(self) -> bool {
        self != OsspUuid
    }

    /// The same in every plot, from a set for colour-blind readers (Okabe and Ito).
    pub fn colour(self) -> RGBColor {
        match self {
            Constant => RGBColor(0x60, 0x60, 0x60),
            Snowflake => RGBColor(0x00, 0x72, 0xB2),
            Sequence => RGBColor(0xE6, 0x9F, 0x00),
            CachedSequence => RGBColor(0xD5, 0x5E, 0x00),
            RandomUuid => RGBColor(0x00, 0x9E, 0x73),
            UuidV7 => RGBColor(0xCC, 0x79, 0xA7),
            OsspUuid => RGBColor(0x56, 0xB4, 0xE9),
            PlPgSql => RGBColor(0x99, 0x99, 0x99),
        }
    }

    /// Creates an empty [`TABLE`] of two columns, the ID and an integer. A checkpoint
    /// ensures that no measurement writes the data of another.
    pub fn new_table(self, client: &mut Client, key: Key) -> Result<()> {
        let primary = match key {
            Key::None => "",
            Key::Primary => "PRIMARY KEY",
        };
        client.batch_execute(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
        match self {
            // As usual, with a sequence of its own.
            Sequence => client.batch_execute(&format!(
                "CREATE TABLE {TABLE} (id bigserial {primary}, v int)"
            ))?,
            CachedSequence => client.batch_execute(&format!(
                "CREATE TABLE {TABLE} (id bigserial {primary}, v int);
                 ALTER SEQUENCE {TABLE}_id_seq CACHE 1000"
            ))?,
            _ => client.batch_execute(&format!(
                "CREATE TABLE {TABLE} (id {} NOT NULL DEFAULT {} {primary}, v int)",
                self.id_type(),
                self.call()
            ))?,
        }
        client.batch_execute("CHECKPOINT")?;
        Ok(())
    }
}
