//! The sections of the documents, and their comparisons.

use anyhow::Result;

use crate::comparison::{Case, Comparison, Metric, Target, Until};
use crate::contenders::{
    BEFORE, CACHED_SEQUENCE, CONSTANT, Contender, LONG_LEASE, NOT_PRELOADED, NOW, OWN_SLOTS,
    PLPGSQL, PRELOADED, RANDOM_UUID, SEQUENCE, SNOWFLAKE, UUID_V7, WITHOUT_EXTENSION, read,
    read_from,
};
use crate::migrations;
use crate::new_rows;
use crate::report::Block;
use crate::run::{Count, Run};
use crate::servers;

/// Measures a section by code of its own.
type Own = fn(&Run) -> Result<Vec<Block>>;

/// A part of a run that can be chosen by name.
pub struct Section {
    pub name: &'static str,
    pub title: &'static str,
    /// What a reader has to know to read the tables.
    about: &'static str,
    comparisons: &'static [Comparison],
    own: Option<Own>,
    /// Measured only on request. It has a document of its own.
    pub is_alone: bool,
}

impl Section {
    pub fn blocks(&self, run: &Run) -> Result<Vec<Block>> {
        let mut blocks = Vec::new();
        if !self.about.is_empty() {
            blocks.push(Block::Text(self.about.to_owned()));
        }
        if let Some(own) = self.own {
            blocks.extend(own(run)?);
        }
        for comparison in self.comparisons {
            if run.has_before() || !comparison.needs_before() {
                blocks.extend(comparison.blocks(run)?);
            }
        }
        Ok(blocks)
    }
}

const PLAIN: Section = Section {
    name: "",
    title: "",
    about: "",
    comparisons: &[],
    own: None,
    is_alone: false,
};

/// In the order of the document.
pub static SECTIONS: &[Section] = &[
    Section {
        name: "call",
        title: "One call",
        about: "The constant function shows the cost of the query and of any function call. About once a second a call advances \
                the mark in the write-ahead log and flushes it; with a lease of an hour none does.",
        comparisons: &[CALLS],
        ..PLAIN
    },
    Section {
        name: "clients",
        title: "Calls by clients",
        about: "Each statement is a transaction. With `synchronous_commit = on`, every 32nd `nextval()` waits for a flush. Sessions that \
                generate in bulk share a slot until its 4,096 IDs of a millisecond are used up; another server has a layout that keeps \
                each in its own.",
        comparisons: &[LOOPS, SINGLE_CALLS, SHARED_CALLS],
        ..PLAIN
    },
    Section {
        name: "inserts",
        title: "Single-row INSERTs by clients",
        about: "With `synchronous_commit = off` the disk does not hide the cost of the column's default; `on` is the server's \
                default.",
        comparisons: &[INSERTS, INSERTS_WAITING],
        ..PLAIN
    },
    Section {
        name: "copy",
        title: "COPY",
        about: "COPY inserts in batches with `nextval()` and `snowflake_nextval()`, and row by row with other volatile defaults.",
        comparisons: &[COPY],
        ..PLAIN
    },
    Section {
        name: "first",
        title: "Without preload",
        about: "On PostgreSQL 17 and newer a session can load the library with its first call. A session that never calls it plans \
                as on a server without the extension.",
        comparisons: &[FIRST_COPY, PLANNING],
        ..PLAIN
    },
    Section {
        name: "index",
        title: "The index after many writers",
        about: "`pgstatindex` of the contrib extension `pgstattuple` examines the primary key's index. Fragmentation is the share \
                of leaf pages whose successor is before them in the file.",
        comparisons: &[BATCHES, SINGLE_ROWS, MIXES],
        ..PLAIN
    },
    Section {
        name: "reading",
        title: "Reading",
        about: "Comparable functions of core show the cost of reading the column, of building a row, and of a function in FROM.",
        comparisons: &[READING, RANGES],
        ..PLAIN
    },
    Section {
        name: "servers",
        title: "The index of a collector",
        own: Some(servers::blocks),
        is_alone: true,
        ..PLAIN
    },
    Section {
        name: "new-rows",
        title: "Reading new rows",
        own: Some(new_rows::blocks),
        comparisons: &[RESOLVED, BUILDS],
        is_alone: true,
        ..PLAIN
    },
    Section {
        name: "migrations",
        title: "What a migration needs",
        about: "What the plan of a table's key says, and what its migration to `bigint` takes: each row is one run, in a database of its \
                own. The time is without connecting, WAL is the server's, and the disk's is the most that the database grew.",
        own: Some(migrations::blocks),
        is_alone: true,
        ..PLAIN
    },
];

const ALL: &[Contender] = &[
    SNOWFLAKE,
    SEQUENCE,
    CACHED_SEQUENCE,
    RANDOM_UUID,
    UUID_V7,
    PLPGSQL,
];

/// Without the one that repeats IDs if many sessions use it.
const FOR_MANY: &[Contender] = &[SNOWFLAKE, SEQUENCE, CACHED_SEQUENCE, RANDOM_UUID, UUID_V7];

const OURS_AND_SEQUENCE: &[Contender] = &[SNOWFLAKE, SEQUENCE];

const CLIENTS: &[usize] = &[1, 2, 4, 8, 16, 32];

const ROWS: Count = Count(1_000_000, 200_000);

const SINGLE_CALL: Case = Case {
    name: "one call",
    script: include_str!("../sql/call.sql"),
    items: Count(1, 1),
    until: Until::Seconds(1),
    table: Target::None,
    commit: "on",
};

const LOOP: Case = Case {
    name: "10,000 calls",
    script: include_str!("../sql/calls.sql"),
    items: Count(10_000, 10_000),
    ..SINGLE_CALL
};

const INSERT: Case = Case {
    name: "single rows",
    script: include_str!("../sql/insert.sql"),
    table: Target::Keyed,
    commit: "off",
    ..SINGLE_CALL
};

/// Rows a transaction.
const fn batch(name: &'static str, items: u64, until: Until) -> Case {
    Case {
        name,
        script: include_str!("../sql/batch.sql"),
        items: Count(items, items),
        until,
        ..INSERT
    }
}

const ONCE: Until = Until::Executions(Count(1, 1));

const COMPARISON: Comparison = Comparison {
    name: "",
    title: "",
    contenders: FOR_MANY,
    baseline: 1,
    cases: &[],
    clients: &[1],
    metrics: &[Metric::Rate],
    rounds: Count(5, 2),
    peer_rounds: 3,
    setup: "",
    teardown: "",
};

/// Many short rounds, because other virtual machines on the host slow single seconds down by half.
const CALLS: Comparison = Comparison {
    name: "one-call",
    title: "One call in SQL",
    contenders: &[
        SNOWFLAKE,
        SEQUENCE,
        CONSTANT,
        LONG_LEASE,
        CACHED_SEQUENCE,
        RANDOM_UUID,
        UUID_V7,
        PLPGSQL,
    ],
    cases: &[Case {
        items: Count(400_000, 400_000),
        until: ONCE,
        ..LOOP
    }],
    metrics: &[Metric::Nanos],
    rounds: Count(25, 5),
    peer_rounds: 25,
    ..COMPARISON
};

const LOOPS: Comparison = Comparison {
    name: "calls-in-loops",
    title: "Calls a second, 10,000 calls a statement",
    cases: &[LOOP],
    clients: CLIENTS,
    ..COMPARISON
};

const SINGLE_CALLS: Comparison = Comparison {
    name: "single-calls",
    title: "Calls a second, one call a statement",
    cases: &[SINGLE_CALL],
    clients: CLIENTS,
    ..COMPARISON
};

const SHARED_CALLS: Comparison = Comparison {
    name: "shared-slot-calls",
    title: "Calls a second of sessions that share a slot",
    contenders: &[SNOWFLAKE, OWN_SLOTS, SEQUENCE],
    cases: &[LOOP],
    clients: &[2, 16, 64],
    rounds: Count(3, 1),
    ..COMPARISON
};

/// With the most rounds, because these figures vary most.
const INSERTS: Comparison = Comparison {
    name: "inserts-not-waiting",
    title: "Single-row INSERTs a second, synchronous_commit = off",
    cases: &[INSERT],
    clients: CLIENTS,
    metrics: &[Metric::Rate, Metric::Processor, Metric::Wal],
    rounds: Count(9, 2),
    ..COMPARISON
};

/// If each commit waits for the disk, all others have the same rate.
const INSERTS_WAITING: Comparison = Comparison {
    name: "inserts-waiting",
    title: "Single-row INSERTs a second, synchronous_commit = on",
    contenders: OURS_AND_SEQUENCE,
    cases: &[Case {
        commit: "on",
        ..INSERT
    }],
    ..INSERTS
};

const COPY_KEYED: Case = Case {
    name: "with a primary key",
    script: include_str!("../sql/copy.sql"),
    items: ROWS,
    until: ONCE,
    commit: "on",
    ..INSERT
};

const COPY: Comparison = Comparison {
    name: "copy",
    title: "COPY of narrow rows",
    contenders: ALL,
    cases: &[
        Case {
            name: "without an index",
            table: Target::Heap,
            ..COPY_KEYED
        },
        COPY_KEYED,
    ],
    metrics: &[Metric::Millis, Metric::Wal],
    rounds: Count(9, 2),
    ..COMPARISON
};

/// Connecting is not measured; loading the library and making its memory are.
const FIRST_COPY: Comparison = Comparison {
    name: "first-copy",
    title: "COPY as the first statement of a session",
    contenders: &[SNOWFLAKE, SEQUENCE, NOT_PRELOADED],
    cases: &[Case {
        until: Until::NewSession(Count(1, 1)),
        ..COPY_KEYED
    }],
    metrics: &[Metric::Millis],
    peer_rounds: 9,
    ..COPY
};

const PLANNING: Comparison = Comparison {
    name: "planning",
    title: "Planning a query that has nothing to do with IDs",
    contenders: &[PRELOADED, WITHOUT_EXTENSION, NOT_PRELOADED],
    cases: &[Case {
        script: include_str!("../sql/plan.sql"),
        until: Until::NewSession(Count(1_000, 500)),
        table: Target::None,
        ..COPY_KEYED
    }],
    metrics: &[Metric::Micros],
    rounds: Count(51, 5),
    peer_rounds: 51,
    ..COMPARISON
};

const OF_INDEX: &[Metric] = &[
    Metric::IndexSize,
    Metric::Density,
    Metric::Fragmentation,
    Metric::Rate,
];

/// An index has almost the same size each time, so the others take part once.
const BATCHES: Comparison = Comparison {
    name: "index-batches",
    title: "Index after 16 writers, 100 rows a transaction",
    cases: &[batch("", 100, Until::Rows(Count(5_000_000, 500_000)))],
    clients: &[16],
    metrics: OF_INDEX,
    peer_rounds: 1,
    ..COMPARISON
};

const SINGLE_ROWS: Comparison = Comparison {
    name: "index-single-rows",
    title: "Index after 16 writers, a row a transaction",
    cases: &[Case {
        until: Until::Rows(Count(300_000, 50_000)),
        ..INSERT
    }],
    ..BATCHES
};

const MIX: Until = Until::Rows(Count(2_000_000, 640_000));

const MIXES: Comparison = Comparison {
    name: "index-mixes",
    title: "Index after other writers",
    contenders: OURS_AND_SEQUENCE,
    cases: &[
        batch("10 rows a transaction", 10, MIX),
        batch("100 rows a transaction", 100, MIX),
        batch("10,000 rows a transaction", 10_000, MIX),
        Case {
            name: "COPY of 10,000 rows",
            script: include_str!("../sql/copy.sql"),
            ..batch("", 10_000, MIX)
        },
    ],
    clients: &[4, 16, 64],
    metrics: &[Metric::IndexSize, Metric::Density],
    rounds: Count(3, 1),
    ..COMPARISON
};

const READ_ROWS: Count = Count(2_000_000, 300_000);

const READ: Case = Case {
    script: include_str!("../sql/read.sql"),
    items: READ_ROWS,
    until: ONCE,
    ..SINGLE_CALL
};

const READING: Comparison = Comparison {
    name: "reading",
    title: "A call for each row of a table",
    contenders: &[
        CONSTANT,
        read("int8abs(id)"),
        read("snowflake_node_id(id)"),
        read("snowflake_node_id(id, 'default')"),
        read("snowflake_timestamp(id)"),
        read("snowflake_timestamp(id, 'default')"),
        read("ROW(now(), 1, 2, 3)"),
        read("snowflake_decode(id)"),
        read("snowflake_decode(id, 'default')"),
        read("id::text"),
        read("snowflake_to_text(id)"),
        read("length(t)"),
        read("snowflake_from_text(t)"),
        read_from("FROM …, int8abs(id)", "f", "by_id, int8abs(id) AS f"),
        read_from(
            "FROM …, snowflake_decode(id)",
            "f.node_id",
            "by_id, snowflake_decode(id) AS f",
        ),
    ],
    baseline: 0,
    cases: &[READ],
    metrics: &[Metric::Nanos],
    rounds: Count(9, 2),
    peer_rounds: 9,
    setup: include_str!("../sql/reading.sql"),
    teardown: "DROP TABLE by_id, by_column",
    ..COMPARISON
};

/// The rows of a day in the middle. The bounds are values, like the parameters of an application's
/// prepared statement.
const RANGES: Comparison = Comparison {
    name: "size-with-time",
    title: "The rows of one day of 30",
    contenders: &[
        Contender {
            name: "one index on the ID",
            call: "snowflake_between(id, (date_trunc('day', now()) - interval '15 days'), \
                   (date_trunc('day', now()) - interval '14 days'))",
            ..SNOWFLAKE
        },
        Contender {
            name: "and one on created_at",
            call: "created_at >= (date_trunc('day', now()) - interval '15 days') \
                   AND created_at < (date_trunc('day', now()) - interval '14 days')",
            from: "by_column",
            ..SEQUENCE
        },
    ],
    baseline: 0,
    cases: &[Case {
        script: include_str!("../sql/range.sql"),
        ..READ
    }],
    metrics: &[Metric::TotalSize, Metric::Millis],
    ..READING
};

/// What a reader's bound costs, including the round trip.
const RESOLVED: Comparison = Comparison {
    name: "resolved-id",
    title: "The call of a reader",
    contenders: &[
        read("snowflake_resolved_id()::text"),
        read("pg_current_snapshot()::text"),
        CONSTANT,
    ],
    cases: &[Case {
        until: Until::Executions(Count(2_000, 2_000)),
        ..SINGLE_CALL
    }],
    metrics: &[Metric::Micros],
    ..COMPARISON
};

/// Beside an earlier build, to see whether a change slows the fast path down. Short rounds, because
/// other work on the machine slows whole seconds down.
const BUILDS: Comparison = Comparison {
    name: "builds",
    title: "Beside the build of SNOWFLAKE_BEFORE_PG_CONFIG",
    contenders: &[NOW, BEFORE],
    cases: &[
        // What is compared is the processor's work, not the disk's.
        Case {
            until: Until::Executions(Count(200, 200)),
            commit: "off",
            ..SINGLE_CALL
        },
        Case {
            name: "a row",
            until: Until::Executions(Count(500, 500)),
            commit: "off",
            ..INSERT
        },
        Case {
            name: "100,000 calls in a transaction",
            items: Count(100_000, 100_000),
            until: ONCE,
            commit: "off",
            ..LOOP
        },
    ],
    metrics: &[Metric::Micros],
    rounds: Count(301, 31),
    ..COMPARISON
};
