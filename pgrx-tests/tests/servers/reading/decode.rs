//! Reading IDs in SQL: published ones and those of every preset, far times,
//! text forms, drawings; where immutable functions may stand and what must not
//! change their answers; databases of other encodings; a server that doesn't
//! preload the library.

use std::io::Write as _;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use postgres::Client;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use snowflake_tests::Cluster;
use snowflake_tests::ids::grouped;
use snowflake_tests::outcome::{Refusal, refusal, text};

/// IDs that others have published, with their time, node and sequence.
const VECTORS: &str = include_str!("../../../../crates/snowflake-id/tests/data/vectors.tsv");

/// The presets of the contract: name, canonical text, and the epoch in
/// microseconds since 1970, written down a second time.
const PRESETS: [(&str, &str, i64); 13] = [
    (
        "default",
        "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
    (
        "twitter",
        "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z",
        1_288_834_974_657_000,
    ),
    (
        "discord",
        "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z",
        1_420_070_400_000_000,
    ),
    (
        "instagram",
        "timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z",
        1_314_220_021_721_000,
    ),
    (
        "sonyflake",
        "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z",
        1_409_529_600_000_000,
    ),
    (
        "uid-generator",
        "timestamp:28 node:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z",
        1_463_673_600_000_000,
    ),
    (
        "tsid",
        "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z",
        1_577_836_800_000_000,
    ),
    (
        "mastodon",
        "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01T00:00:00Z",
        0,
    ),
    (
        "clickhouse",
        "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z",
        0,
    ),
    (
        "pgedge",
        "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01T00:00:00Z",
        1_672_531_200_000_000,
    ),
    (
        "ipv4",
        "timestamp:28 node:24 sequence:11 tick:1s epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
    (
        "game",
        "timestamp:31 node:20 sequence:12 tick:1s epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
    (
        "js53",
        "timestamp:38 node:5 sequence:10 tick:10ms epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
];

/// Epochs before 1970, ticks from 1 us to 1 s, and timestamps far past what
/// Postgres can show; the epochs again in microseconds since 1970.
const FAR: [(&str, i64); 13] = [
    (
        "timestamp:41 sequence:22 tick:10us epoch:1900-01-01T00:00:00Z",
        -2_208_988_800_000_000,
    ),
    (
        "timestamp:52 node:3 sequence:8 tick:10us epoch:0001-01-01T00:00:00Z",
        -62_135_596_800_000_000,
    ),
    (
        "timestamp:45 backend:2 sequence:16 tick:100us epoch:1582-10-15",
        -12_219_292_800_000_000,
    ),
    (
        "timestamp:40 sequence:10 node:13 tick:1s epoch:1969-12-31T23:59:59.999999Z",
        -1,
    ),
    (
        "timestamp:33 node:10 sequence:20 tick:500ms epoch:1969-07-20T20:17:40",
        -14_182_940_000_000,
    ),
    (
        "timestamp:41 node:10 sequence:12 epoch:2025-01-01T01:00:00+01:00",
        1_735_689_600_000_000,
    ),
    (
        "timestamp:50 sequence:4 tick:1us epoch:1970-01-01T00:00:00Z",
        0,
    ),
    // The first day that a timestamptz holds.
    (
        "timestamp:60 sequence:3 tick:1us epoch:-004713-11-24T00:00:00Z",
        -210_866_803_200_000_000,
    ),
    // And long before.
    (
        "timestamp:50 sequence:13 tick:1ms epoch:-009999-01-03T00:00:00Z",
        -377_704_944_000_000_000,
    ),
    (
        "timestamp:62 sequence:1 tick:1us epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
    (
        "timestamp:62 sequence:1 tick:2us epoch:1970-01-01T00:00:00Z",
        0,
    ),
    (
        "timestamp:60 sequence:3 tick:1ms epoch:1970-01-01T00:00:00Z",
        0,
    ),
    (
        "timestamp:62 sequence:1 tick:1s epoch:2025-01-01T00:00:00Z",
        1_735_689_600_000_000,
    ),
];

/// The first microsecond that a timestamptz holds and the first that it
/// doesn't (4714-11-24 BC, 294277-01-01), since 1970.
const FIRST: i128 = -210_866_803_200_000_000;
const END: i128 = 9_224_318_016_000_000_000;

/// What the bits of an ID mean, from a layout's text, with an epoch that is
/// not read from it.
struct Reading {
    /// Bits by name from the most significant down, the timestamp first.
    fields: Vec<(String, u32)>,
    /// Microseconds.
    tick: i64,
    /// Microseconds since 1970.
    epoch: i64,
}

impl Reading {
    fn new(layout: &str, epoch: i64) -> Result<Self> {
        let mut fields = Vec::new();
        let mut tick = 1_000;
        for part in layout.split(' ') {
            let (name, value) = part.split_once(':').context("no pair")?;
            match name {
                "epoch" => {}
                "tick" => {
                    let unit = value.find(char::is_alphabetic).context("no unit")?;
                    tick = value[..unit].parse::<i64>()?
                        * match &value[unit..] {
                            "us" => 1,
                            "ms" => 1_000,
                            _ => 1_000_000,
                        };
                }
                _ => fields.push((name.to_owned(), value.parse()?)),
            }
        }
        Ok(Self {
            fields,
            tick,
            epoch,
        })
    }

    fn bits(&self) -> u32 {
        self.fields.iter().map(|(_, bits)| bits).sum()
    }

    fn shift(&self) -> u32 {
        self.bits() - self.fields[0].1
    }

    fn last_id(&self) -> i64 {
        i64::MAX >> (63 - self.bits())
    }

    fn field(&self, id: i64, name: &str) -> i32 {
        let mut shift = 0;
        for (field, bits) in self.fields.iter().rev() {
            if field == name {
                return ((id >> shift) & ((1 << bits) - 1)) as i32;
            }
            shift += bits;
        }
        0
    }

    /// Microseconds since 2000, where a timestamptz holds them.
    fn time(&self, id: i64) -> Option<i64> {
        let time = i128::from(self.epoch) + i128::from(id >> self.shift()) * i128::from(self.tick);
        let since_2000 = i64::try_from(time - 946_684_800_000_000).ok();
        since_2000.filter(|_| (FIRST..END).contains(&time))
    }

    /// The first and the last IDs of all, and of what Postgres can show.
    fn edges(&self) -> Vec<i64> {
        let mut edges = vec![0, 1, self.last_id(), self.last_id() - 1];
        for edge in [FIRST, END] {
            let tick = (edge - i128::from(self.epoch)) / i128::from(self.tick);
            for tick in tick - 2..=tick + 2 {
                if let Ok(id) = i64::try_from(tick << self.shift())
                    && (0..=self.last_id()).contains(&id)
                {
                    edges.extend([id, id | ((1 << self.shift()) - 1)]);
                }
            }
        }
        edges
    }
}

fn value(client: &mut Client, query: &str) -> Result<String> {
    text(client, query)?.with_context(|| format!("NULL came from: {query}"))
}

fn count(client: &mut Client, query: &str) -> Result<i64> {
    Ok(value(client, query)?.parse()?)
}

/// IDs with what they mean, in the table `cases`.
#[derive(Default)]
struct Cases {
    layouts: Vec<String>,
    ids: Vec<i64>,
    times: Vec<Option<i64>>,
    parts: [Vec<i32>; 3],
}

impl Cases {
    fn add(&mut self, layout: &str, id: i64, reading: &Reading) {
        self.layouts.push(layout.to_owned());
        self.ids.push(id);
        self.times.push(reading.time(id));
        for (list, name) in self.parts.iter_mut().zip(["node", "backend", "sequence"]) {
            list.push(reading.field(id, name));
        }
    }

    /// Fails unless every function reads every ID as it should, and says 22003
    /// where there is no time to show. Returns how many of those there were.
    fn check(&self, client: &mut Client, what: &str) -> Result<usize> {
        client.batch_execute(
            "DROP TABLE IF EXISTS cases;
             CREATE TABLE cases (layout text, id bigint, time bigint, node int, backend int,
                                 sequence int, created_at timestamptz)",
        )?;
        client.execute(
            "INSERT INTO cases
             SELECT *, time_or_null(id, layout)
             FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::int[], $5::int[], $6::int[])
                  AS c(layout, id, time, node, backend, sequence)",
            &[
                &self.layouts,
                &self.ids,
                &self.times,
                &self.parts[0],
                &self.parts[1],
                &self.parts[2],
            ],
        )?;
        for condition in [
            "((extract(epoch FROM created_at) - 946684800) * 1000000)::bigint IS DISTINCT FROM time",
            "snowflake_node_id(id, layout) <> node",
            "snowflake_backend_id(id, layout) <> backend",
            "snowflake_sequence(id, layout) <> sequence",
            "CASE WHEN time IS NULL THEN decode_state(id, layout) <> '22003'
                  ELSE snowflake_decode(id, layout) <> (created_at, node, backend, sequence) END",
            "CASE WHEN time IS NULL THEN false
                  ELSE snowflake_compose(created_at, node, backend, sequence, layout) <> id END",
            "CASE WHEN time IS NULL THEN false
                  ELSE NOT (id BETWEEN snowflake_min_id(created_at, layout)
                                   AND snowflake_max_id(created_at, layout)) END",
        ] {
            let row = client.query_one(
                &format!(
                    "SELECT count(*), min(c::text) FROM cases AS c
                     WHERE ({condition}) IS DISTINCT FROM false"
                ),
                &[],
            )?;
            let (wrong, example): (i64, Option<String>) = (row.get(0), row.get(1));
            assert_eq!(wrong, 0, "{what}: {condition}, for example {example:?}");
        }
        Ok(self.times.iter().filter(|time| time.is_none()).count())
    }
}

/// Functions that say with a NULL or a text that they were answered with an
/// error; one that was not expected they pass on.
const HELPERS: &str = "
CREATE FUNCTION time_or_null(id bigint, layout text) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
    RETURN snowflake_timestamp(id, layout);
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN NULL;
END $$;
CREATE FUNCTION decode_state(id bigint, layout text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM snowflake_decode(id, layout);
    RETURN '00000';
EXCEPTION WHEN others THEN
    RETURN SQLSTATE;
END $$;
";

#[test]
fn ids_of_all_kinds() -> Result<()> {
    let seed: u64 = rand::random();
    println!("reading: seed {seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    client.batch_execute(HELPERS)?;
    published_ids(&mut client)?;
    presets(&mut client, &mut random)?;
    far_times(&mut client, &mut random)?;
    texts(&mut client, &mut random)?;
    drawings(&mut client, &mut random)
}

fn published_ids(client: &mut Client) -> Result<()> {
    let (mut rows, mut by_preset) = (0, 0);
    for line in VECTORS.lines().skip(1) {
        let mut columns = line.split('\t');
        let mut column = || columns.next().context("a column is missing");
        let id: i64 = column()?.parse()?;
        let (layout, created_at) = (column()?, column()?);
        let (node, sequence): (i32, i32) = (column()?.parse()?, column()?.parse()?);
        let row = client.query_one(
            "SELECT d.created_at = $3::text::timestamptz AND d.node_id = $4 AND d.backend_id = 0
                    AND d.sequence = $5
                    AND snowflake_timestamp($1, $2) = d.created_at
                    AND snowflake_node_id($1, $2) = d.node_id
                    AND snowflake_backend_id($1, $2) = d.backend_id
                    AND snowflake_sequence($1, $2) = d.sequence
                    AND snowflake_compose($3::text::timestamptz, $4, 0, $5, $2) = $1,
                    d::text
             FROM snowflake_decode($1, $2) AS d",
            &[&id, &layout, &created_at, &node, &sequence],
        )?;
        assert!(row.get::<_, bool>(0), "{line}\n{}", row.get::<_, &str>(1));
        rows += 1;
        // The same by the name of the preset that has its bits and epoch. Two
        // fields of five bits are what the table calls a node of ten.
        let epoch = layout.rsplit(' ').next().unwrap_or_default();
        let vector = Reading::new(layout, 0)?;
        for (name, preset, _) in PRESETS {
            let reading = Reading::new(preset, 0)?;
            let same_epoch =
                epoch.replace(".000Z", "Z") == preset.rsplit(' ').next().unwrap_or_default();
            if same_epoch && (vector.tick, vector.shift()) == (reading.tick, reading.shift()) {
                let row = client.query_one(
                    "SELECT created_at = $3::text::timestamptz
                            AND node_id * $4 + backend_id = $5 AND sequence = $6, d::text
                     FROM snowflake_decode($1, $2) AS d",
                    &[
                        &id,
                        &name,
                        &created_at,
                        &(reading.field(i64::MAX, "backend") + 1),
                        &node,
                        &sequence,
                    ],
                )?;
                assert!(
                    row.get::<_, bool>(0),
                    "{name}: {line}\n{}",
                    row.get::<_, &str>(1)
                );
                by_preset += 1;
            }
        }
    }
    assert_eq!(rows, 25, "published IDs");
    assert!(by_preset >= 15, "{by_preset} of presets");
    println!(
        "reading: {rows} published IDs: time, node and sequence by their layout's text; {by_preset} \
         of them by a preset's name too"
    );
    Ok(())
}

fn presets(client: &mut Client, random: &mut StdRng) -> Result<()> {
    let listed: Vec<(String, String)> = client
        .query("SELECT name, layout FROM snowflake_layouts", &[])?
        .iter()
        .map(|row| (row.get(0), row.get(1)))
        .collect();
    let expected: Vec<(String, String)> = PRESETS
        .iter()
        .map(|(name, layout, _)| ((*name).to_owned(), (*layout).to_owned()))
        .collect();
    assert_eq!(listed, expected);
    let mut cases = Cases::default();
    for (name, layout, epoch) in PRESETS {
        let reading = Reading::new(layout, epoch)?;
        let mut ids = reading.edges();
        ids.extend((0..1_000).map(|_| random.random_range(0..=reading.last_id())));
        for id in ids {
            cases.add(name, id, &reading);
        }
    }
    let past = cases.check(client, "presets")?;
    assert_eq!(past, 0, "no preset reaches past what Postgres can show");
    println!(
        "reading: {} IDs of {} presets by name, every function",
        grouped(cases.ids.len()),
        PRESETS.len()
    );
    Ok(())
}

fn far_times(client: &mut Client, random: &mut StdRng) -> Result<()> {
    let mut cases = Cases::default();
    let mut refused = 0;
    for (layout, epoch) in FAR {
        let reading = Reading::new(layout, epoch)?;
        let mut ids = reading.edges();
        ids.extend((0..1_000).map(|_| random.random_range(0..=reading.last_id())));
        for id in ids {
            cases.add(layout, id, &reading);
        }
        // Numbers that are no IDs of the layout.
        let mut wrong = vec![-1, i64::MIN];
        if reading.bits() < 63 {
            wrong.extend([reading.last_id() + 1, i64::MAX]);
        }
        for id in wrong {
            for function in ["decode", "timestamp", "node_id", "sequence", "explain"] {
                let refusal = refusal(
                    client,
                    &format!("SELECT snowflake_{function}({id}, '{layout}')"),
                )?;
                assert_eq!(refusal.sqlstate, "22003", "{function}({id}): {refusal}");
                refused += 1;
            }
        }
    }
    let past = cases.check(client, "far times")?;
    assert!(past > 1_000, "{past} IDs past what Postgres can show");
    let refusal = refusal(
        client,
        "SELECT snowflake_timestamp(9223372036854775807, 'timestamp:62 sequence:1 tick:1s')",
    )?;
    assert_eq!(
        refusal,
        Refusal {
            sqlstate: "22003".to_owned(),
            message: "the time of 9223372036854775807 is out of range for timestamp with time zone"
                .to_owned(),
            detail: String::new(),
            hint: "Name the layout that the ID was made with.".to_owned(),
        }
    );
    println!(
        "reading: {} IDs of {} layouts with epochs from 10000 BC on and ticks from 1 us to 1 s: \
         right, or 22003 ({} past what Postgres can show, at the edges too); {refused} numbers \
         that are no IDs refused",
        grouped(cases.ids.len()),
        FAR.len(),
        grouped(past)
    );
    Ok(())
}

/// An ID as digits, the alphabet and width written down a second time.
fn digits(id: i64, encoding: &str) -> String {
    let (alphabet, width): (&[u8], usize) = match encoding {
        "base32" => (b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", 13),
        _ => (
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
            11,
        ),
    };
    let mut rest = id as usize;
    let mut text = vec![b'0'; width];
    for byte in text.iter_mut().rev() {
        *byte = alphabet[rest % alphabet.len()];
        rest /= alphabet.len();
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn texts(client: &mut Client, random: &mut StdRng) -> Result<()> {
    let mut ids: Vec<i64> = vec![0, 1, 31, 32, 61, 62, i64::MAX - 1, i64::MAX];
    ids.extend((0..63).map(|bit| 1_i64 << bit));
    // Numbers of every size, and many that have their first bits in common.
    while ids.len() < 100_000 {
        let id = random.random_range(0..=i64::MAX) >> random.random_range(0..63);
        ids.extend([id, id ^ random.random_range(0..64)]);
    }
    for encoding in ["base32", "base62"] {
        let texts: Vec<String> = ids.iter().map(|&id| digits(id, encoding)).collect();
        let row = client.query_one(
            "WITH given AS MATERIALIZED (
                 SELECT id, expected, snowflake_to_text(id, $3) AS code
                 FROM unnest($1::bigint[], $2::text[]) AS g(id, expected)
             ), sorted AS (
                 SELECT id, code, lag(id) OVER (ORDER BY code COLLATE \"C\") AS id_before,
                        lag(code) OVER (ORDER BY id) AS before
                 FROM given
             )
             SELECT (SELECT count(*) FROM given WHERE code = expected),
                    (SELECT count(*) FROM given WHERE snowflake_from_text(code, $3) = id),
                    (SELECT count(*) FROM given WHERE octet_length(code) = $4),
                    (SELECT count(*) FROM sorted WHERE id_before > id),
                    (SELECT count(*) FROM sorted WHERE before COLLATE \"C\" > code COLLATE \"C\")",
            &[&ids, &texts, &encoding, &(texts[0].len() as i32)],
        )?;
        let counts: [i64; 5] = std::array::from_fn(|column| row.get(column));
        let all = ids.len() as i64;
        assert_eq!(counts, [all, all, all, 0, 0], "{encoding}");
    }
    // What people read and type for a 0 or a 1, and small letters.
    let mut typed = 0;
    for change in [
        "lower(code)",
        "translate(code, '01', 'OI')",
        "translate(code, '01', 'oi')",
        "translate(code, '01', 'OL')",
        "translate(code, '01', 'ol')",
    ] {
        let wrong: i64 = client
            .query_one(
                &format!(
                    "SELECT count(*) FROM unnest($1::bigint[]) AS id,
                            LATERAL (SELECT snowflake_to_text(id) AS code) AS t
                     WHERE snowflake_from_text({change}) <> id"
                ),
                &[&&ids[..10_000]],
            )?
            .get(0);
        assert_eq!(wrong, 0, "{change}");
        typed += 10_000;
    }
    println!(
        "reading: {} IDs as base32 and base62: as they should be, of fixed width, sorted as the IDs \
         under COLLATE \"C\", and back; {} as people type them",
        grouped(ids.len()),
        grouped(typed as u64)
    );

    let mut refused = 0;
    for (call, sqlstate, message, detail) in [
        (
            "snowflake_from_text('0123456789ABU')",
            "22P02",
            "invalid text of a snowflake ID: \"0123456789ABU\"",
            "Character \"U\" at position 13 is not a base32 digit.",
        ),
        (
            "snowflake_from_text('06Z-0000')",
            "22P02",
            "invalid text of a snowflake ID: \"06Z-0000\"",
            "Character \"-\" at position 4 is not a base32 digit.",
        ),
        (
            "snowflake_from_text('0000000000é00')",
            "22P02",
            "invalid text of a snowflake ID: \"0000000000é00\"",
            "Character \"é\" at position 11 is not a base32 digit.",
        ),
        (
            "snowflake_from_text(' 000000000000')",
            "22P02",
            "invalid text of a snowflake ID: \" 000000000000\"",
            "Character \" \" at position 1 is not a base32 digit.",
        ),
        (
            "snowflake_from_text(E'000000000000\\n')",
            "22P02",
            "invalid text of a snowflake ID: \"000000000000\n\"",
            "Character \"\\n\" at position 13 is not a base32 digit.",
        ),
        (
            "snowflake_from_text('0000000000+', 'base62')",
            "22P02",
            "invalid text of a snowflake ID: \"0000000000+\"",
            "Character \"+\" at position 11 is not a base62 digit.",
        ),
        (
            "snowflake_from_text('')",
            "22P02",
            "invalid text of a snowflake ID: \"\"",
            "It has 0 characters; a base32 ID has 13.",
        ),
        (
            "snowflake_from_text('00000000000', 'base32')",
            "22P02",
            "invalid text of a snowflake ID: \"00000000000\"",
            "It has 11 characters; a base32 ID has 13.",
        ),
        (
            "snowflake_from_text('000000000000', 'base62')",
            "22P02",
            "invalid text of a snowflake ID: \"000000000000\"",
            "It has 12 characters; a base62 ID has 11.",
        ),
        (
            "snowflake_from_text('8000000000000')",
            "22003",
            "\"8000000000000\" is out of range for a snowflake ID",
            "The largest ID is \"7ZZZZZZZZZZZZ\".",
        ),
        (
            "snowflake_from_text('ZZZZZZZZZZZZZ')",
            "22003",
            "\"ZZZZZZZZZZZZZ\" is out of range for a snowflake ID",
            "The largest ID is \"7ZZZZZZZZZZZZ\".",
        ),
        (
            "snowflake_from_text('AzL8n0Y58m8', 'base62')",
            "22003",
            "\"AzL8n0Y58m8\" is out of range for a snowflake ID",
            "The largest ID is \"AzL8n0Y58m7\".",
        ),
        (
            "snowflake_from_text('0000000000000', 'Base32')",
            "22023",
            "invalid encoding of snowflake IDs: \"Base32\"",
            "",
        ),
        (
            "snowflake_to_text(1, '')",
            "22023",
            "invalid encoding of snowflake IDs: \"\"",
            "",
        ),
        (
            "snowflake_to_text(-1)",
            "22003",
            "-1 is not a snowflake ID",
            "Snowflake IDs are never negative.",
        ),
    ] {
        let refusal = refusal(client, &format!("SELECT {call}"))?;
        assert_eq!(
            (
                refusal.sqlstate.as_str(),
                refusal.message.as_str(),
                refusal.detail.as_str()
            ),
            (sqlstate, message, detail),
            "{call}"
        );
        refused += 1;
    }
    for call in [
        "snowflake_to_text(NULL)",
        "snowflake_to_text(1, NULL)",
        "snowflake_from_text(NULL)",
        "snowflake_from_text('1', NULL)",
    ] {
        assert_eq!(text(client, &format!("SELECT {call}"))?, None, "{call}");
    }
    println!(
        "reading: {refused} texts, encodings and numbers refused: 22P02, 22003 or 22023, with the character"
    );
    Ok(())
}

/// Where the words of a line begin.
fn starts(line: &str) -> Vec<usize> {
    let bytes = line.as_bytes();
    (0..bytes.len())
        .filter(|&at| bytes[at] != b' ' && (at == 0 || bytes[at - 1] == b' '))
        .collect()
}

/// Fails unless the drawing is of this ID.
fn check_drawing(drawing: &str, id: i64, layout: &str, time: &str) -> Result<()> {
    let reading = Reading::new(layout, 0)?;
    let lines: Vec<&str> = drawing.lines().collect();
    ensure!(lines.len() == 5, "five lines:\n{drawing}");
    let mut expected: Vec<(String, u32)> = reading.fields.clone();
    let unused = 63 - reading.bits();
    if unused > 0 {
        expected.insert(0, ("unused".to_owned(), unused));
    }
    let names: Vec<String> = expected
        .iter()
        .map(|(name, bits)| format!("{name}:{bits}"))
        .collect();
    let found: Vec<&str> = lines[0].split_ascii_whitespace().collect();
    assert_eq!(found, names, "{drawing}");
    let bits: Vec<&str> = lines[1].split_ascii_whitespace().collect();
    let widths: Vec<u32> = bits.iter().map(|it| it.len() as u32).collect();
    let expected: Vec<u32> = expected.iter().map(|&(_, bits)| bits).collect();
    assert_eq!(widths, expected, "{drawing}");
    assert_eq!(bits.concat(), format!("{id:063b}"), "{drawing}");
    let values: Vec<u64> = lines[2]
        .split_ascii_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let first = usize::from(unused > 0);
    let expected: Vec<u64> = bits[first..]
        .iter()
        .map(|it| u64::from_str_radix(it, 2))
        .collect::<Result<_, _>>()?;
    assert_eq!(values, expected, "{drawing}");
    assert_eq!(lines[3].trim(), time, "{drawing}");
    assert_eq!(lines[4], format!("layout {layout}"), "{drawing}");
    // Each field's parts stand one under the other.
    let heads = starts(lines[0]);
    assert_eq!(starts(lines[1]), heads, "{drawing}");
    assert_eq!(starts(lines[2]), heads[first..], "{drawing}");
    assert_eq!(starts(lines[3])[0], heads[first], "{drawing}");
    Ok(())
}

fn drawings(client: &mut Client, random: &mut StdRng) -> Result<()> {
    assert_eq!(
        value(client, "SELECT snowflake_explain(249431905924104192)")?,
        "timestamp:41                               node:6  backend:4  sequence:12\n\
         00000110111011000101000111111110011010001  000001  0100       000000000000\n\
         59469200593                                1       4          0\n\
         2026-11-20 07:13:20.593+00\n\
         layout timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z"
    );
    let mut drawn = 0;
    let zones = [
        ("UTC", "ISO"),
        ("America/New_York", "ISO"),
        ("Asia/Kolkata", "German"),
        ("Europe/Berlin", "SQL, DMY"),
        ("Australia/Lord_Howe", "Postgres, MDY"),
    ];
    for (name, layout, epoch) in PRESETS {
        let reading = Reading::new(layout, epoch)?;
        for (zone, style) in zones {
            client.batch_execute(&format!(
                "SET TimeZone = '{zone}'; SET DateStyle = '{style}'"
            ))?;
            for id in (0..20).map(|_| random.random_range(0..=reading.last_id())) {
                for named in [name, layout] {
                    let row = client.query_one(
                        "SELECT snowflake_explain($1, $2), snowflake_timestamp($1, $2)::text",
                        &[&id, &named],
                    )?;
                    check_drawing(row.get(0), id, layout, row.get(1))?;
                    drawn += 1;
                }
            }
        }
    }
    let mut times = Vec::new();
    for (zone, style) in zones {
        client.batch_execute(&format!(
            "SET TimeZone = '{zone}'; SET DateStyle = '{style}'"
        ))?;
        let drawing = value(client, "SELECT snowflake_explain(249431905924104192)")?;
        times.push(drawing.lines().nth(3).unwrap_or_default().to_owned());
    }
    client.batch_execute("RESET TimeZone; RESET DateStyle")?;
    assert_eq!(
        times,
        [
            "2026-11-20 07:13:20.593+00",
            "2026-11-20 02:13:20.593-05",
            "20.11.2026 12:43:20.593 IST",
            "20/11/2026 08:13:20.593 CET",
            "Fri Nov 20 18:13:20.593 2026 +11",
        ]
    );
    // Past what Postgres can show there is still something to see.
    for (id, layout, time) in [
        (
            i64::MAX,
            "timestamp:62 sequence:1 tick:1s epoch:1970-01-01T00:00:00Z",
            "+146138514283-06-19T07:45:03Z",
        ),
        (
            ((END / 1_000) << 3) as i64,
            "timestamp:60 sequence:3 tick:1ms epoch:1970-01-01T00:00:00Z",
            "+294277-01-01T00:00:00Z",
        ),
        (
            0,
            "timestamp:50 sequence:13 tick:1ms epoch:-009999-01-03T00:00:00Z",
            "-009999-01-03T00:00:00Z",
        ),
        (
            ((END / 1_000 - 1) << 3) as i64,
            "timestamp:60 sequence:3 tick:1ms epoch:1970-01-01T00:00:00Z",
            "294276-12-31 23:59:59.999+00",
        ),
    ] {
        let row = client.query_one("SELECT snowflake_explain($1, $2)", &[&id, &layout])?;
        check_drawing(row.get(0), id, layout, time)?;
        drawn += 1;
    }
    println!(
        "reading: {drawn} drawings of {} presets in {} time zones: 63 bits, the ID's own, its time \
         as the session prints it",
        PRESETS.len(),
        zones.len()
    );
    Ok(())
}

/// Every function that reads IDs over 200 of them, as one number that doesn't
/// depend on how a time is printed.
const DIGEST: &str = "
SELECT md5(string_agg(concat_ws(' ',
           id, extract(epoch FROM snowflake_timestamp(id, layout)), snowflake_node_id(id, layout),
           snowflake_backend_id(id, layout), snowflake_sequence(id, layout),
           (d.decoded).node_id, (d.decoded).sequence, extract(epoch FROM (d.decoded).created_at),
           snowflake_compose(t.at, 1, 2, 3, layout), snowflake_min_id(t.at, layout),
           snowflake_max_id(t.at, layout),
           snowflake_between(id, t.at - make_interval(secs => 1e9), t.at, layout),
           snowflake_to_text(id), snowflake_to_text(id, 'base62'),
           snowflake_from_text(snowflake_to_text(id)),
           snowflake_from_text(lower(snowflake_to_text(id)))), ',' ORDER BY layout COLLATE \"C\", id))
FROM unnest(ARRAY['default', 'twitter', 'timestamp:41 node:6 backend:4 sequence:12 epoch:2025-01-01',
                  'timestamp:41 node:6 backend:4 sequence:12 epoch:2020-07-01T12:30:00',
                  'timestamp:41 node:6 backend:4 sequence:12 epoch:2020-03-29T02:30:00+01:00']) AS layout,
     (SELECT n * 92233720368547758 + n AS id FROM generate_series(0, 40) AS n) AS ids,
     LATERAL (SELECT to_timestamp(1893456000 + id % 1000000)) AS t(at),
     LATERAL (SELECT snowflake_decode(id, layout)) AS d(decoded)";

#[test]
fn immutable_where_it_can_be() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let client = &mut client;

    // Volatility, parallel safety, strictness, of what the contract lists.
    let marked: Vec<String> = client
        .query(
            "SELECT format('%s(%s) %s%s%s', proname, oidvectortypes(proargtypes), provolatile,
                           proparallel, CASE WHEN proisstrict THEN ' strict' END)
             FROM pg_proc
             WHERE proname ~ ('^snowflake_(decode|timestamp|node_id|backend_id|sequence|compose'
                              '|min_id|max_id|between|explain|to_text|from_text|partition_ddl)$')
             ORDER BY 1",
            &[],
        )?
        .iter()
        .map(|row| row.get(0))
        .collect();
    let mut expected = Vec::new();
    for (name, arguments) in [
        ("decode", "bigint"),
        ("timestamp", "bigint"),
        ("node_id", "bigint"),
        ("backend_id", "bigint"),
        ("sequence", "bigint"),
        (
            "compose",
            "timestamp with time zone, integer, integer, integer",
        ),
        ("min_id", "timestamp with time zone"),
        ("max_id", "timestamp with time zone"),
    ] {
        expected.push(format!("snowflake_{name}({arguments}) ss strict"));
        expected.push(format!("snowflake_{name}({arguments}, text) is strict"));
    }
    let times = "timestamp with time zone, timestamp with time zone";
    expected.extend([
        format!("snowflake_between(bigint, {times}) ss"),
        format!("snowflake_between(bigint, {times}, text) is"),
        "snowflake_explain(bigint) ss strict".to_owned(),
        "snowflake_explain(bigint, text) ss strict".to_owned(),
        "snowflake_to_text(bigint, text) is strict".to_owned(),
        "snowflake_from_text(text, text) is strict".to_owned(),
        format!("snowflake_partition_ddl(regclass, {times}, interval) ss strict"),
    ]);
    expected.sort();
    assert_eq!(marked, expected);

    client.batch_execute(
        "CREATE TABLE orders (
             id bigint PRIMARY KEY,
             created_at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id, 'default')) STORED,
             code text GENERATED ALWAYS AS (snowflake_to_text(id)) STORED,
             CHECK (snowflake_between(id, '2026-01-01 00:00+00', '2027-01-01 00:00+00', 'default'))
         );
         CREATE INDEX by_time ON orders (snowflake_timestamp(id, 'default'));
         CREATE INDEX of_node ON orders (snowflake_node_id(id, 'default'), snowflake_sequence(id, 'default'));
         CREATE INDEX of_may ON orders ((id % 7))
             WHERE snowflake_between(id, '2026-05-01 00:00+00', '2026-06-01 00:00+00', 'default');
         INSERT INTO orders SELECT snowflake_compose(at, (extract(day FROM at))::int, 3, 5)
         FROM generate_series(timestamptz '2026-01-01', '2026-12-31', '1 hour') AS at;
         ANALYZE orders;
         CREATE TABLE by_year (id bigint) PARTITION BY RANGE (snowflake_timestamp(id, 'default'));
         CREATE TABLE by_year_2025 PARTITION OF by_year
             FOR VALUES FROM ('2025-01-01 00:00+00') TO ('2026-01-01 00:00+00');
         CREATE TABLE by_year_2026 PARTITION OF by_year
             FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2027-01-01 00:00+00');
         CREATE TABLE by_node (id bigint) PARTITION BY LIST (snowflake_node_id(id, 'default'));
         CREATE TABLE by_node_1 PARTITION OF by_node FOR VALUES IN (1);
         CREATE TABLE by_node_2 PARTITION OF by_node FOR VALUES IN (2);
         INSERT INTO by_year SELECT snowflake_compose(at, 1, 0, 0)
         FROM generate_series(timestamptz '2025-01-01', '2026-12-31 23:00', '1 hour') AS at;
         INSERT INTO by_node SELECT snowflake_compose('2026-01-01', 1 + n % 2, 0, n)
         FROM generate_series(0, 999) AS n",
    )?;
    let rows = count(client, "SELECT count(*) FROM orders")?;
    assert_eq!(
        count(
            client,
            "SELECT count(*) FROM orders WHERE created_at = snowflake_timestamp(id)
                 AND created_at = date_trunc('hour', created_at) AND code = snowflake_to_text(id)",
        )?,
        rows
    );
    for (query, index) in [
        (
            "SELECT * FROM orders WHERE snowflake_timestamp(id, 'default') >= '2026-05-01'
                 AND snowflake_timestamp(id, 'default') < '2026-05-02'",
            "by_time",
        ),
        (
            "SELECT * FROM orders WHERE snowflake_node_id(id, 'default') = 7",
            "of_node",
        ),
        (
            "SELECT * FROM orders WHERE id % 7 = 3
                 AND snowflake_between(id, '2026-05-01 00:00+00', '2026-06-01 00:00+00', 'default')",
            "of_may",
        ),
    ] {
        client.batch_execute("SET enable_seqscan = off")?;
        let plan = client.query(&format!("EXPLAIN (COSTS off) {query}"), &[])?;
        let plan: Vec<&str> = plan.iter().map(|row| row.get(0)).collect();
        assert!(plan.join("\n").contains(index), "{}", plan.join("\n"));
        client.batch_execute("RESET enable_seqscan")?;
    }
    assert_eq!(
        count(
            client,
            "SELECT count(*) FROM by_year WHERE tableoid::regclass::text
                       = 'by_year_' || extract(year FROM snowflake_timestamp(id))"
        )?,
        2 * 365 * 24
    );
    assert_eq!(
        count(
            client,
            "SELECT count(*) FROM by_node WHERE tableoid::regclass::text
                       = 'by_node_' || snowflake_node_id(id)"
        )?,
        1_000
    );
    assert_eq!(
        refusal(
            client,
            "INSERT INTO orders SELECT snowflake_compose('2027-01-01', 0, 0, 0)"
        )?
        .sqlstate,
        "23514"
    );
    for statement in [
        "CREATE INDEX ON orders (snowflake_timestamp(id))",
        "CREATE INDEX ON orders ((snowflake_decode(id)))",
        "CREATE INDEX ON orders (id) WHERE snowflake_between(id, '2026-05-01', '2026-06-01')",
        "CREATE INDEX ON orders (snowflake_explain(id, 'default'))",
        "CREATE TABLE no (id bigint, at timestamptz GENERATED ALWAYS AS (snowflake_timestamp(id)) STORED)",
        "CREATE TABLE no (id bigint) PARTITION BY RANGE (snowflake_timestamp(id))",
    ] {
        assert_eq!(refusal(client, statement)?.sqlstate, "42P17", "{statement}");
    }
    println!(
        "reading: {} functions marked as the contract says; generated columns, a check, three \
         indexes in their plans, two partition keys over {rows} and {} rows; six times refused \
         without a layout",
        marked.len(),
        2 * 365 * 24 + 1_000
    );

    // pg_dump's output runs with an empty search path.
    client.batch_execute("CREATE DATABASE restored")?;
    let dump = cluster.client_command("pg_dump", "postgres").output()?;
    ensure!(
        dump.status.success(),
        "{}",
        String::from_utf8_lossy(&dump.stderr)
    );
    let mut psql = cluster
        .client_command("psql", "restored")
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    psql.stdin
        .take()
        .context("no pipe")?
        .write_all(&dump.stdout)?;
    ensure!(psql.wait()?.success(), "the dump was not restored");
    let contents = "SELECT md5(string_agg(o::text, ',' ORDER BY id)) FROM orders AS o";
    let mut restored = cluster.connect_to("restored")?;
    assert_eq!(value(&mut restored, contents)?, value(client, contents)?);
    println!("reading: all of it dumped and restored");

    // Nothing that a session or a database may set changes an answer.
    let digest = value(client, DIGEST)?;
    let mut sessions = 0;
    for zone in [
        "UTC",
        "America/New_York",
        "Asia/Kolkata",
        "Europe/Berlin",
        "Pacific/Apia",
    ] {
        for style in ["ISO, MDY", "German", "SQL, DMY", "Postgres, YMD"] {
            for (interval, numeric) in [("postgres", "C"), ("iso_8601", "C.UTF-8")] {
                client.batch_execute(&format!(
                    "SET TimeZone = '{zone}'; SET DateStyle = '{style}';
                     SET IntervalStyle = '{interval}'; SET lc_numeric = '{numeric}';
                     SET lc_time = '{numeric}'; SET lc_monetary = '{numeric}';
                     SET extra_float_digits = -10"
                ))?;
                assert_eq!(
                    value(client, DIGEST)?,
                    digest,
                    "{zone}, {style}, {interval}"
                );
                sessions += 1;
            }
        }
    }
    client.batch_execute("RESET ALL")?;
    let mut locales = vec![("c_utf8", "LC_COLLATE 'C.UTF-8' LC_CTYPE 'C.UTF-8'")];
    // A build without ICU may have collations of it in its catalog all the same.
    let icu = "CREATE COLLATION pg_temp.trial (provider = icu, locale = 'tr')";
    if client.batch_execute(icu).is_ok() {
        // Where "I" in lower case is not "i", and where letters sort elsewhere.
        locales.push(("turkish", "LOCALE_PROVIDER icu ICU_LOCALE 'tr'"));
        locales.push(("estonian", "LOCALE_PROVIDER icu ICU_LOCALE 'et'"));
    }
    for (name, locale) in &locales {
        client.batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 {locale}"
        ))?;
        let mut client = cluster.connect_to(name)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        // lower() in the digest must not be the locale's.
        let digest_of = DIGEST.replace(
            "lower(snowflake_to_text(id))",
            "lower(snowflake_to_text(id) COLLATE \"C\")",
        );
        assert_eq!(value(&mut client, &digest_of)?, digest, "{name}");
    }
    println!(
        "reading: the same answers in {sessions} sessions of other time zones and styles and in {} \
         databases of other locales",
        locales.len()
    );
    Ok(())
}

#[test]
fn other_encodings_and_long_texts() -> Result<()> {
    let cluster = Cluster::with_extension()?;
    let mut client = cluster.connect()?;
    let mut refused = 0;
    for (encoding, strings) in [
        ("UTF8", vec!["'é'", "'日本'", "'🐘'", "U&'\\00A0default'"]),
        // Half characters too: nothing checks them there.
        (
            "SQL_ASCII",
            vec![
                "'é'",
                "'日本'",
                "E'\\xe9'",
                "E'\\xff\\xfe'",
                "E'default\\xa0'",
            ],
        ),
        ("LATIN1", vec!["'é'", "'default' || chr(160)", "chr(255)"]),
        ("EUC_JP", vec!["'日本'", "'default日'", "'ｱ'"]),
    ] {
        let name = format!("of_{}", encoding.to_lowercase());
        client.batch_execute(&format!(
            "CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}'
             LC_COLLATE 'C' LC_CTYPE 'C'"
        ))?;
        let mut client = cluster.connect_to(&name)?;
        client.batch_execute("CREATE EXTENSION snowflake")?;
        let backend = value(&mut client, "SELECT pg_backend_pid()")?;
        assert_eq!(value(&mut client, "SHOW server_encoding")?, encoding);
        for string in &strings {
            let layout = format!("{string}::text");
            for (call, sqlstate) in [
                (format!("snowflake_from_text({string})"), "22P02"),
                (
                    format!("snowflake_from_text('000000000' || {string})"),
                    "22P02",
                ),
                (format!("snowflake_from_text({string}, 'base62')"), "22P02"),
                (
                    format!("snowflake_from_text('0000000000000', {string})"),
                    "22023",
                ),
                (format!("snowflake_to_text(1, {string})"), "22023"),
                (
                    format!("snowflake_to_text(1, 'base32' || {string})"),
                    "22023",
                ),
                (format!("snowflake_decode(1, {layout})"), "22023"),
                (format!("snowflake_timestamp(1, {layout})"), "22023"),
                (format!("snowflake_node_id(1, {layout})"), "22023"),
                (format!("snowflake_backend_id(1, {layout})"), "22023"),
                (format!("snowflake_sequence(1, {layout})"), "22023"),
                (
                    format!("snowflake_compose('2026-01-01', 0, 0, 0, {layout})"),
                    "22023",
                ),
                (format!("snowflake_min_id('2026-01-01', {layout})"), "22023"),
                (format!("snowflake_max_id('2026-01-01', {layout})"), "22023"),
                (
                    format!("snowflake_between(1, now(), now(), {layout})"),
                    "22023",
                ),
                (format!("snowflake_explain(1, {layout})"), "22023"),
                (
                    format!("snowflake_explain(1, 'timestamp:41 ' || {string} || ' sequence:12')"),
                    "22023",
                ),
                (
                    format!("snowflake_explain(1, 'timestamp:41 sequence:12 epoch:' || {string})"),
                    "22023",
                ),
            ] {
                let refusal = refusal(&mut client, &format!("SELECT {call}"))
                    .with_context(|| format!("{encoding}: {call}"))?;
                assert_eq!(refusal.sqlstate, sqlstate, "{encoding}: {call}: {refusal}");
                refused += 1;
            }
        }
        assert_eq!(value(&mut client, "SELECT pg_backend_pid()")?, backend);
        let message = refusal(
            &mut client,
            &format!("SELECT snowflake_from_text('00' || {})", strings[0]),
        )?;
        let shown = if encoding == "UTF8" {
            "\"é\""
        } else {
            "\"?\""
        };
        assert_eq!(
            message.detail,
            format!("Character {shown} at position 3 is not a base32 digit.")
        );
        // What is right is right there too.
        assert_eq!(
            value(
                &mut client,
                "SELECT snowflake_from_text(snowflake_to_text(1541815603606036480)) || ' '
                        || (snowflake_decode(1541815603606036480, 'twitter'))::text",
            )?,
            "1541815603606036480 (\"2022-06-28 16:07:40.105+00\",11,26,0)"
        );
    }
    println!(
        "reading: {refused} non-ASCII texts refused in databases of 4 encodings, in one session each"
    );

    // Layouts from a table: compressed, and out of line.
    client.batch_execute(
        "CREATE TABLE layouts (storage text, layout text);
         ALTER TABLE layouts ALTER layout SET STORAGE EXTENDED;
         INSERT INTO layouts
             SELECT 'compressed', 'timestamp:41' || repeat(' ', length) || 'node:6 backend:4 sequence:12'
             FROM unnest(ARRAY[1, 90, 100, 200, 3000, 100000, 10000000]) AS length;
         ALTER TABLE layouts ALTER layout SET STORAGE EXTERNAL;
         INSERT INTO layouts
             SELECT 'out of line', 'timestamp:41' || repeat(' ', length) || 'node:6 backend:4 sequence:12'
             FROM unnest(ARRAY[3000, 100000]) AS length",
    )?;
    let row = client.query_one(
        "SELECT count(*), count(*) FILTER (WHERE pg_column_size(layout) < octet_length(layout)),
                bool_and(snowflake_decode(id, layout) = snowflake_decode(id, 'default')),
                bool_and(snowflake_compose(snowflake_timestamp(id, layout), snowflake_node_id(id, layout),
                                           snowflake_backend_id(id, layout),
                                           snowflake_sequence(id, layout), layout) = id),
                bool_and(snowflake_min_id(snowflake_timestamp(id), layout) <= id),
                bool_and(snowflake_max_id(snowflake_timestamp(id), layout) >= id),
                bool_and(snowflake_explain(id, layout) = snowflake_explain(id))
         FROM layouts, (SELECT 249431905924104192) AS i(id)",
        &[],
    )?;
    let (all, compressed): (i64, i64) = (row.get(0), row.get(1));
    assert!(
        all == 9 && compressed >= 3,
        "{compressed} of {all} compressed"
    );
    for column in 2..7 {
        assert!(row.get::<_, bool>(column), "column {column}");
    }
    let mut refused = 0;
    for (call, sqlstate) in [
        ("snowflake_from_text(layout)", "22P02"),
        ("snowflake_from_text(repeat('0', length(layout)))", "22P02"),
        ("snowflake_to_text(1, layout)", "22023"),
        ("snowflake_timestamp(1, layout || 'x')", "22023"),
    ] {
        for storage in ["compressed", "out of line"] {
            let refusal = refusal(
                &mut client,
                &format!(
                    "SELECT {call} FROM layouts
                     WHERE storage = '{storage}' AND octet_length(layout) BETWEEN 3000 AND 200000"
                ),
            )?;
            assert_eq!(refusal.sqlstate, sqlstate, "{call}");
            refused += 1;
        }
    }
    println!(
        "reading: {all} layouts from a table, {compressed} of them compressed, up to 10 MB; {refused} long texts refused"
    );
    Ok(())
}

#[test]
fn without_preload() -> Result<()> {
    let mut functions = 0;
    for (written, layout) in [
        ("twitter", "twitter"),
        (
            "timestamp:40 node:13 sequence:10 epoch:2011-08-24T21:07:01.721Z",
            "instagram",
        ),
        ("", "default"),
    ] {
        let mut builder = Cluster::builder().without_preload();
        if !written.is_empty() {
            builder = builder.conf("snowflake.layout", written);
        }
        let cluster = builder.start_with_extension()?;
        // A new session for each: the library is loaded by the call itself.
        for (call, arguments) in [
            ("snowflake_decode", "154181560360603648"),
            ("snowflake_timestamp", "154181560360603648"),
            ("snowflake_node_id", "154181560360603648"),
            ("snowflake_backend_id", "154181560360603648"),
            ("snowflake_sequence", "154181560360603648"),
            (
                "snowflake_compose",
                "timestamptz '2027-02-03 04:05:06+00', 3, 0, 5",
            ),
            ("snowflake_min_id", "timestamptz '2027-02-03 04:05:06+00'"),
            ("snowflake_max_id", "timestamptz '2027-02-03 04:05:06+00'"),
            (
                "snowflake_between",
                "snowflake_min_id(timestamptz '2027-02-03 04:05:06+00'), '2027-02-03 04:05:06+00', '2027-02-04'",
            ),
            ("snowflake_explain", "154181560360603648"),
        ] {
            let mut client = cluster.connect()?;
            let found = value(&mut client, &format!("SELECT {call}({arguments})::text"))?;
            let named = value(
                &mut client,
                &format!("SELECT {call}({arguments}, '{layout}')::text"),
            )?;
            assert_eq!(found, named, "{call} by snowflake.layout = '{written}'");
            functions += 1;
        }
        let mut client = cluster.connect()?;
        client.batch_execute("CREATE TABLE p (id bigint) PARTITION BY RANGE (id)")?;
        assert_eq!(
            value(
                &mut client,
                "SELECT string_agg(statement, '; ')
                 FROM snowflake_partition_ddl('p', '2027-01-01', '2028-01-01', '1 year') AS statement"
            )?,
            value(
                &mut client,
                &format!(
                    "SELECT format('CREATE TABLE public.p_p2027 PARTITION OF public.p FOR VALUES FROM (%L) TO (%L)',
                                   snowflake_min_id('2027-01-01', '{layout}'), snowflake_min_id('2028-01-01', '{layout}'))"
                )
            )?
        );
        assert_eq!(
            refusal(&mut client, "SELECT snowflake_nextval()")?.sqlstate,
            "55000"
        );
        functions += 1;
    }
    println!("reading: {functions} functions by the setting's text without the library preloaded");

    let cluster = Cluster::builder()
        .without_preload()
        .conf("snowflake.layout", "timestamp:70 sequence:3")
        .start_with_extension()?;
    let mut client = cluster.connect()?;
    let refusal = refusal(&mut client, "SELECT snowflake_timestamp(1)")?;
    assert_eq!(refusal.sqlstate, "22023", "{refusal}");
    assert_eq!(refusal.detail, "the fields take 73 bits; an ID has 63");
    assert_eq!(
        value(&mut client, "SELECT snowflake_sequence(5, 'default')")?,
        "5"
    );

    println!("reading: a bad setting refuses what needs it and nothing else: {refusal}");
    Ok(())
}

#[test]
fn without_preload_in_another_encoding() -> Result<()> {
    let cluster = Cluster::builder().without_preload().start()?;
    let mut client = cluster.connect()?;
    client.batch_execute(
        "CREATE DATABASE japanese TEMPLATE template0 ENCODING 'EUC_JP' LC_COLLATE 'C' LC_CTYPE 'C'",
    )?;
    let mut client = cluster.connect_to("japanese")?;
    client.batch_execute("CREATE EXTENSION snowflake")?;
    // Without the library's own setting it is a text that anyone may set.
    for text in ["日本", "é", "日本é", "aｱ", "日本日本é"] {
        client.batch_execute(&format!("SET snowflake.layout = '{text}'"))?;
        let refusal = refusal(&mut client, "SELECT snowflake_timestamp(1)")?;
        assert_eq!(refusal.sqlstate, "22023", "{text}: {refusal}");
    }
    client.batch_execute("SET snowflake.layout = 'discord'")?;
    assert_eq!(
        value(
            &mut client,
            "SELECT snowflake_timestamp(1) = snowflake_timestamp(1, 'discord')"
        )?,
        "t"
    );
    println!("reading: 5 settings that are not UTF-8 refused with the right SQLSTATE");
    Ok(())
}
