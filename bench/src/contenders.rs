//! The contenders: how each generates an ID in SQL, and its column.

use plotters::style::RGBColor;

use crate::run::Server;

/// A way to generate an ID, or another expression that is compared.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// For tables and legends.
    pub name: &'static str,
    /// `{call}` in scripts.
    pub call: &'static str,
    /// `{from}` in scripts: what is read.
    pub from: &'static str,
    /// The column `id` of the table `t`, without its key.
    pub column: &'static str,
    /// A statement after the table was created.
    pub then: &'static str,
    /// The condition, in SQL, under which a server has it.
    pub requires: &'static str,
    pub server: Server,
    /// The same in every plot, from a set for colour-blind readers (Okabe and Ito).
    pub colour: RGBColor,
}

/// No ID: the cost of calling any C function.
pub const CONSTANT: Contender = Contender {
    name: "a constant function",
    call: "pg_backend_pid()",
    from: "by_id",
    column: "id int DEFAULT pg_backend_pid()",
    then: "",
    requires: "true",
    server: Server::Common,
    colour: RGBColor(0x60, 0x60, 0x60),
};

pub const SNOWFLAKE: Contender = Contender {
    name: "snowflake_nextval()",
    call: "snowflake_nextval()",
    column: "id bigint NOT NULL DEFAULT snowflake_nextval()",
    colour: RGBColor(0x00, 0x72, 0xB2),
    ..CONSTANT
};

/// As of `bigserial` and identity columns.
pub const SEQUENCE: Contender = Contender {
    name: "nextval(), cache 1",
    call: "nextval('plain')",
    column: "id bigserial",
    colour: RGBColor(0xE6, 0x9F, 0x00),
    ..CONSTANT
};

/// Each session fetches 1,000 numbers at a time, so IDs do not ascend across sessions.
pub const CACHED_SEQUENCE: Contender = Contender {
    name: "nextval(), cache 1000",
    call: "nextval('cached')",
    then: "ALTER SEQUENCE t_id_seq CACHE 1000",
    colour: RGBColor(0xD5, 0x5E, 0x00),
    ..SEQUENCE
};

pub const RANDOM_UUID: Contender = Contender {
    name: "gen_random_uuid()",
    call: "gen_random_uuid()",
    column: "id uuid NOT NULL DEFAULT gen_random_uuid()",
    colour: RGBColor(0x00, 0x9E, 0x73),
    ..CONSTANT
};

pub const UUID_V7: Contender = Contender {
    name: "uuidv7()",
    call: "uuidv7()",
    column: "id uuid NOT NULL DEFAULT uuidv7()",
    requires: "to_regprocedure('uuidv7()') IS NOT NULL",
    colour: RGBColor(0xCC, 0x79, 0xA7),
    ..CONSTANT
};

pub const PLPGSQL: Contender = Contender {
    name: "a PL/pgSQL snowflake",
    call: "plpgsql_snowflake()",
    column: "id bigint NOT NULL DEFAULT plpgsql_snowflake()",
    colour: RGBColor(0x99, 0x99, 0x99),
    ..CONSTANT
};

/// With this layout each session stays in its own slot, because a greater backend number does not
/// make a greater ID.
pub const OWN_SLOTS: Contender = Contender {
    name: "the same, own slots",
    server: Server::With(
        "snowflake.layout",
        "timestamp:41 node:6 sequence:12 backend:4",
    ),
    colour: RGBColor(0x56, 0xB4, 0xE9),
    ..SNOWFLAKE
};

/// No call advances the mark in the write-ahead log during a measurement.
pub const LONG_LEASE: Contender = Contender {
    name: "the same, lease 1h",
    server: Server::With("snowflake.lease", "1h"),
    colour: RGBColor(0x56, 0xB4, 0xE9),
    ..SNOWFLAKE
};

/// Each session loads the library with its first call.
pub const NOT_PRELOADED: Contender = Contender {
    name: "the same, not preloaded",
    requires: "current_setting('server_version_num')::int >= 170000",
    server: Server::WithoutPreload,
    colour: RGBColor(0x56, 0xB4, 0xE9),
    ..SNOWFLAKE
};

pub const PRELOADED: Contender = Contender {
    name: "preloaded",
    ..SNOWFLAKE
};

pub const WITHOUT_EXTENSION: Contender = Contender {
    name: "without the extension",
    server: Server::WithoutExtension,
    ..CONSTANT
};

pub const NOW: Contender = Contender {
    name: "now",
    ..SNOWFLAKE
};

pub const BEFORE: Contender = Contender {
    name: "before",
    server: Server::Before,
    colour: RGBColor(0x99, 0x99, 0x99),
    ..SNOWFLAKE
};

/// A function of core, or one of ours, for example over a table of IDs.
pub const fn read(call: &'static str) -> Contender {
    read_from(call, call, CONSTANT.from)
}

/// The same for a function in FROM.
pub const fn read_from(name: &'static str, call: &'static str, from: &'static str) -> Contender {
    Contender {
        name,
        call,
        from,
        ..CONSTANT
    }
}
