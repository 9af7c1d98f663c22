//! The text form of a layout.

use jiff::fmt::temporal::{Pieces, PiecesOffset};
use jiff::tz::Offset;
use thiserror::Error;

use super::tick::TickLength;
use super::{Field, Layout, MAX_TOTAL_BITS};
use crate::time::Time;

pub(super) const DEFAULT_TICK_MICROS: u32 = 1_000;
/// 2025-01-01T00:00:00Z
pub(super) const DEFAULT_EPOCH: Time = Time::from_unix_micros(1_735_689_600_000_000);

/// The fields, in the order of [`Field`] names below, and the most bits each may have. The
/// timestamp is limited by the total only.
const FIELDS: [(&str, u32); 4] = [
    ("timestamp", MAX_TOTAL_BITS),
    ("node", 31),
    ("backend", 12),
    ("sequence", 31),
];
const TIMESTAMP: usize = 0;
const NODE: usize = 1;
const BACKEND: usize = 2;
const SEQUENCE: usize = 3;

/// What is wrong with the text of a layout. The message is for the user, and does not repeat the
/// whole text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// The text has nothing but space.
    #[error("the text is empty")]
    Empty,
    /// The text is longer than any layout.
    #[error("the text has more than {} bytes", Layout::LONGEST_TEXT_BYTES)]
    TooLong,
    /// The text is no preset's name and has no `name:value`. A hint with the names of the presets
    /// helps here.
    #[error(
        "\"{0}\" is neither the name of a preset nor a list of fields such as timestamp:41 node:10 sequence:12"
    )]
    NeitherPresetNorFields(String),
    /// A word among pairs is no pair.
    #[error("\"{0}\" is not of the form name:value")]
    NotAPair(String),
    /// The name of a pair is unknown.
    #[error(
        "\"{0}\" is not a part of a layout; the parts are timestamp, node, backend, sequence, tick and epoch"
    )]
    UnknownName(String),
    /// A name is given twice.
    #[error("\"{0}\" is given more than once")]
    Repeated(&'static str),
    /// `timestamp` or `sequence` is missing.
    #[error("the field \"{0}\" is missing")]
    Missing(&'static str),
    /// Another field comes before the timestamp.
    #[error("the field \"timestamp\" must come first; otherwise IDs do not sort by time")]
    TimestampNotFirst,
    /// The width of a field is no number.
    #[error("\"{value}\" is not a number of bits for the field \"{field}\"")]
    NotANumberOfBits {
        /// The field.
        field: &'static str,
        /// What is written in place of the number.
        value: String,
    },
    /// An optional field has 0 bits.
    #[error("the field \"{0}\" has 0 bits; leave it out instead")]
    NoBits(&'static str),
    /// A required field has 0 bits.
    #[error("the field \"{0}\" has 0 bits; it needs at least 1")]
    NeedsBits(&'static str),
    /// One field is too wide.
    #[error("the field \"{field}\" has {bits} bits; it may have at most {max}")]
    FieldTooWide {
        /// The field.
        field: &'static str,
        /// Its bits.
        bits: u32,
        /// The most it may have.
        max: u32,
    },
    /// All fields together are too wide.
    #[error("the fields take {0} bits; an ID has 63")]
    TooManyBits(u64),
    /// The tick is not a whole number of a unit.
    #[error("the tick \"{0}\" is not a whole number of us, ms or s")]
    NotATick(String),
    /// The tick is too short or too long.
    #[error("the tick \"{0}\" is out of range; it may be 1us to 1s")]
    TickOutOfRange(String),
    /// The epoch is not an ISO 8601 time.
    #[error("the epoch \"{0}\" is not an ISO 8601 time such as 2025-01-01T00:00:00Z")]
    NotAnEpoch(String),
    /// The epoch has digits below the microsecond.
    #[error("the epoch \"{0}\" is more precise than a microsecond")]
    EpochTooPrecise(String),
    /// The epoch is before the first time of PostgreSQL's `timestamptz`.
    #[error("the epoch \"{0}\" is before {min}, the first time of timestamptz", min = Time::MIN)]
    EpochTooEarly(String),
    /// The ticks last longer than PostgreSQL's `timestamptz`.
    #[error(
        "the field \"timestamp\" has {bits} bits; it may have at most {max} with this tick and \
         epoch, because the layout must end by {end}, the last time of timestamptz",
        end = Time::MAX
    )]
    EndsTooLate {
        /// The bits of the timestamp.
        bits: u32,
        /// The most that it may have with this tick and epoch.
        max: u32,
    },
}

/// Parses the text form. The names of presets are not known here.
pub(super) fn parse(text: &str) -> Result<Layout, LayoutError> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Err(LayoutError::Empty);
    }
    if text.len() > Layout::LONGEST_TEXT_BYTES {
        return Err(LayoutError::TooLong);
    }
    if !text.contains(':') {
        return Err(LayoutError::NeitherPresetNorFields(text.to_owned()));
    }

    // Field number and width, in the order of the text.
    let mut fields: Vec<(usize, u32)> = Vec::with_capacity(FIELDS.len());
    let mut tick = None;
    let mut epoch = None;
    for word in text.split_ascii_whitespace() {
        let (name, value) = word
            .split_once(':')
            .ok_or_else(|| LayoutError::NotAPair(word.to_owned()))?;
        match name {
            "tick" if tick.is_some() => return Err(LayoutError::Repeated("tick")),
            "tick" => tick = Some(parse_tick(value)?),
            "epoch" if epoch.is_some() => return Err(LayoutError::Repeated("epoch")),
            "epoch" => epoch = Some(parse_epoch(value)?),
            _ => {
                let field = FIELDS
                    .iter()
                    .position(|&(known, _)| known == name)
                    .ok_or_else(|| LayoutError::UnknownName(name.to_owned()))?;
                if fields.iter().any(|&(seen, _)| seen == field) {
                    return Err(LayoutError::Repeated(FIELDS[field].0));
                }
                fields.push((field, parse_bits(FIELDS[field].0, value)?));
            }
        }
    }

    for required in [TIMESTAMP, SEQUENCE] {
        if !fields.iter().any(|&(field, _)| field == required) {
            return Err(LayoutError::Missing(FIELDS[required].0));
        }
    }
    if fields[0].0 != TIMESTAMP {
        return Err(LayoutError::TimestampNotFirst);
    }
    // Before the limit of a single field: the message for `timestamp:64 …` shows how many bits an
    // ID has.
    let total: u64 = fields.iter().map(|&(_, bits)| u64::from(bits)).sum();
    if total > MAX_TOTAL_BITS.into() {
        return Err(LayoutError::TooManyBits(total));
    }

    let mut placed = [Field::new(0, 0); FIELDS.len()];
    let mut shift = 0;
    for &(field, bits) in fields.iter().rev() {
        let (name, max) = FIELDS[field];
        if bits > max {
            return Err(LayoutError::FieldTooWide {
                field: name,
                bits,
                max,
            });
        }
        placed[field] = Field::new(bits as u8, shift);
        shift += bits as u8;
    }
    let tick_micros = tick.unwrap_or(DEFAULT_TICK_MICROS);
    let epoch = epoch.unwrap_or(DEFAULT_EPOCH);
    let bits = u32::from(placed[TIMESTAMP].bits);
    let max = max_timestamp_bits(tick_micros, epoch);
    if bits > max {
        return Err(LayoutError::EndsTooLate { bits, max });
    }
    Ok(Layout {
        timestamp: placed[TIMESTAMP],
        node: placed[NODE],
        backend: placed[BACKEND],
        sequence: placed[SEQUENCE],
        tick: TickLength::from_micros(tick_micros),
        epoch,
    })
}

/// The most bits with which the last tick ends at or before [`Time::MAX`].
fn max_timestamp_bits(tick_micros: u32, epoch: Time) -> u32 {
    let micros = Time::MAX.micros_since(epoch).unwrap_or(0);
    // jiff's last epoch, in the year 9999, leaves far more than one tick.
    (micros / u64::from(tick_micros)).ilog2()
}

fn parse_bits(field: &'static str, value: &str) -> Result<u32, LayoutError> {
    match parse_digits(value).and_then(|bits| u32::try_from(bits).ok()) {
        Some(0) if matches!(field, "timestamp" | "sequence") => Err(LayoutError::NeedsBits(field)),
        Some(0) => Err(LayoutError::NoBits(field)),
        Some(bits) => Ok(bits),
        None => Err(LayoutError::NotANumberOfBits {
            field,
            value: value.to_owned(),
        }),
    }
}

/// Microseconds.
fn parse_tick(value: &str) -> Result<u32, LayoutError> {
    let unit_at = value.find(|c: char| !c.is_ascii_digit());
    let (digits, unit) = value.split_at(unit_at.unwrap_or(value.len()));
    let unit_micros = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => return Err(LayoutError::NotATick(value.to_owned())),
    };
    if digits.is_empty() {
        return Err(LayoutError::NotATick(value.to_owned()));
    }
    parse_digits(digits)
        .and_then(|count| count.checked_mul(unit_micros))
        .filter(|micros| (1..=1_000_000).contains(micros))
        .map(|micros| micros as u32)
        .ok_or_else(|| LayoutError::TickOutOfRange(value.to_owned()))
}

/// Decimal digits only: `parse` alone also takes a plus sign.
fn parse_digits(value: &str) -> Option<u64> {
    if value.bytes().all(|byte| byte.is_ascii_digit()) {
        value.parse().ok()
    } else {
        None
    }
}

/// A date without a time is its midnight; without a zone, UTC.
fn parse_epoch(value: &str) -> Result<Time, LayoutError> {
    let not_an_epoch = || LayoutError::NotAnEpoch(value.to_owned());
    // A leap second: jiff takes it for the second before, which would silently move every ID by a
    // second.
    if value.contains(":60") {
        return Err(not_an_epoch());
    }
    let pieces = Pieces::parse(value).map_err(|_| not_an_epoch())?;
    // `[Europe/Berlin]`: the meaning of the text would change with the zone's rules.
    if pieces.time_zone_annotation().is_some() {
        return Err(not_an_epoch());
    }
    let offset = match pieces.offset() {
        Some(PiecesOffset::Numeric(offset)) => offset.offset(),
        _ => Offset::UTC,
    };
    let time = pieces.time().unwrap_or(jiff::civil::Time::midnight());
    if time.subsec_nanosecond() % 1_000 != 0 {
        return Err(LayoutError::EpochTooPrecise(value.to_owned()));
    }
    let micros = offset
        .to_timestamp(pieces.date().to_datetime(time))
        .map_err(|_| not_an_epoch())?
        .as_microsecond();
    if micros < Time::MIN.unix_micros() {
        return Err(LayoutError::EpochTooEarly(value.to_owned()));
    }
    Ok(Time::from_unix_micros(micros))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        text.parse::<Layout>()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .to_string()
    }

    fn refused(text: &str) -> String {
        match text.parse::<Layout>() {
            Ok(layout) => panic!("{text} was taken for {layout}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn what_is_left_out_is_filled_in() {
        assert_eq!(
            canonical("timestamp:41 sequence:12"),
            "timestamp:41 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z"
        );
        assert_eq!(
            canonical("  tick:10ms\ttimestamp:39  sequence:8 epoch:2014-09-01\nnode:16 "),
            "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z"
        );
        assert_eq!(canonical(" default "), Layout::DEFAULT.to_string());
    }

    #[test]
    fn ticks() {
        for (text, expected) in [
            ("1us", "1us"),
            ("999us", "999us"),
            ("1000us", "1ms"),
            ("1500us", "1500us"),
            ("1ms", "1ms"),
            ("010ms", "10ms"),
            ("1000ms", "1s"),
            ("1000000us", "1s"),
            ("1s", "1s"),
        ] {
            assert_eq!(
                canonical(&format!("timestamp:28 sequence:13 tick:{text}")),
                format!("timestamp:28 sequence:13 tick:{expected} epoch:2025-01-01T00:00:00Z")
            );
        }
        for text in [
            "",
            "1",
            "ms",
            "1m",
            "1.5ms",
            "-1ms",
            "+1ms",
            "1 ms",
            "1MS",
            "1ns",
            "\u{663}ms",
        ] {
            let message = refused(&format!("timestamp:28 sequence:13 tick:{text}"));
            assert!(
                message.ends_with("is not a whole number of us, ms or s")
                    || message == "\"ms\" is not of the form name:value",
                "{text}: {message}"
            );
        }
        for text in [
            "0us",
            "0ms",
            "0s",
            "2s",
            "1001ms",
            "1000001us",
            "18446744073709551615s",
            "18446744073709551616us",
        ] {
            assert_eq!(
                refused(&format!("timestamp:28 sequence:13 tick:{text}")),
                format!("the tick \"{text}\" is out of range; it may be 1us to 1s")
            );
        }
    }

    #[test]
    fn epochs() {
        for (text, expected) in [
            ("2025-01-01", "2025-01-01T00:00:00Z"),
            ("20250101", "2025-01-01T00:00:00Z"),
            ("2025-01-01T00:00", "2025-01-01T00:00:00Z"),
            ("2025-01-01T00:00:00", "2025-01-01T00:00:00Z"),
            ("2025-01-01T00:00:00.000Z", "2025-01-01T00:00:00Z"),
            ("2025-01-01T00:00:00.000000000Z", "2025-01-01T00:00:00Z"),
            ("2010-11-04T01:42:54.657Z", "2010-11-04T01:42:54.657Z"),
            ("2010-11-04T01:42:54,657Z", "2010-11-04T01:42:54.657Z"),
            ("2010-11-04T01:42:54.6570000", "2010-11-04T01:42:54.657Z"),
            ("2016-05-20T00:00:00+08:00", "2016-05-19T16:00:00Z"),
            ("2016-05-20T00:00:00+0800", "2016-05-19T16:00:00Z"),
            ("2016-05-19T10:30:00-05:30", "2016-05-19T16:00:00Z"),
            ("1601-01-01", "1601-01-01T00:00:00Z"),
            ("1969-12-31T23:59:59.999999", "1969-12-31T23:59:59.999999Z"),
            ("-000753-04-21", "-000753-04-21T00:00:00Z"),
            ("-004713-11-24", "-004713-11-24T00:00:00Z"),
        ] {
            assert_eq!(
                canonical(&format!("timestamp:41 sequence:12 epoch:{text}")),
                format!("timestamp:41 sequence:12 tick:1ms epoch:{expected}")
            );
        }
        for text in [
            "",
            "today",
            "2025",
            "2025-13-01",
            "2025-02-29",
            "2025-01-01T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "2025-01-01Z",
            "2025-01-01+02:00",
            "2025-01-01T00:00:00[Europe/Berlin]",
            "2025-01-01T00:00:00Z[UTC]",
            "2025-01-01T00:00:00Zx",
            "infinity",
            "1735689600",
            "+012025-01-01",
            "9999-12-31T23:59:59-12:00",
        ] {
            assert_eq!(
                refused(&format!("timestamp:41 sequence:12 epoch:{text}")),
                format!(
                    "the epoch \"{text}\" is not an ISO 8601 time such as 2025-01-01T00:00:00Z"
                )
            );
        }
        assert_eq!(
            refused("timestamp:41 sequence:12 epoch:2025-01-01T00:00:00.0000001Z"),
            "the epoch \"2025-01-01T00:00:00.0000001Z\" is more precise than a microsecond"
        );
        assert_eq!(
            refused("timestamp:41 sequence:12 epoch:-004713-11-23T23:59:59.999999Z"),
            "the epoch \"-004713-11-23T23:59:59.999999Z\" is before -004713-11-24T00:00:00Z, the \
             first time of timestamptz"
        );
    }

    #[test]
    fn a_layout_ends_by_the_last_time_of_timestamptz() {
        for (max, other_fields, tick_and_epoch) in [
            (53, "sequence:9", "tick:1ms epoch:2025-01-01"),
            (43, "sequence:19", "tick:1s epoch:1970-01-01"),
            (43, "sequence:19", "tick:1s epoch:-004713-11-24"),
            (43, "sequence:19", "tick:1s epoch:9999-12-30"),
            (61, "sequence:1", "tick:2us epoch:2025-01-01"),
            // 2^63 microseconds end in the year 294247.
            (62, "sequence:1", "tick:2us epoch:1970-01-01"),
        ] {
            let text = |bits: u32| format!("timestamp:{bits} {other_fields} {tick_and_epoch}");
            let layout: Layout = text(max).parse().unwrap();
            assert!(layout.expires_at() <= Time::MAX, "{layout}");
            if max < 62 {
                assert_eq!(
                    refused(&text(max + 1)),
                    format!(
                        "the field \"timestamp\" has {} bits; it may have at most {max} with this \
                         tick and epoch, because the layout must end by \
                         +294276-12-31T23:59:59.999999Z, the last time of timestamptz",
                        max + 1
                    )
                );
            }
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, message) in [
            (
                "timestamp:37 node:20 sequence:16",
                "the fields take 73 bits; an ID has 63",
            ),
            (
                "timestamp:64 sequence:1",
                "the fields take 65 bits; an ID has 63",
            ),
            (
                "timestamp:4294967295 node:4294967295 sequence:4294967295",
                "the fields take 12884901885 bits; an ID has 63",
            ),
            (
                "timestamp:41 backend:13 sequence:9",
                "the field \"backend\" has 13 bits; it may have at most 12",
            ),
            (
                "timestamp:1 node:32 sequence:30",
                "the field \"node\" has 32 bits; it may have at most 31",
            ),
            (
                "timestamp:1 sequence:32",
                "the field \"sequence\" has 32 bits; it may have at most 31",
            ),
            (
                "timestamp:41 node:0 sequence:12",
                "the field \"node\" has 0 bits; leave it out instead",
            ),
            (
                "timestamp:41 backend:0 sequence:12",
                "the field \"backend\" has 0 bits; leave it out instead",
            ),
            (
                "timestamp:41 sequence:0",
                "the field \"sequence\" has 0 bits; it needs at least 1",
            ),
            (
                "timestamp:0 sequence:12",
                "the field \"timestamp\" has 0 bits; it needs at least 1",
            ),
            ("timestamp:41", "the field \"sequence\" is missing"),
            ("node:10 sequence:12", "the field \"timestamp\" is missing"),
            ("tick:1ms", "the field \"timestamp\" is missing"),
            (
                "node:10 timestamp:41 sequence:12",
                "the field \"timestamp\" must come first; otherwise IDs do not sort by time",
            ),
            (
                "timestamp:41 node:5 node:5 sequence:12",
                "\"node\" is given more than once",
            ),
            (
                "timestamp:41 timestamp:1 sequence:12",
                "\"timestamp\" is given more than once",
            ),
            (
                "timestamp:41 sequence:12 tick:1ms tick:1ms",
                "\"tick\" is given more than once",
            ),
            (
                "timestamp:41 sequence:12 epoch:2025-01-01 epoch:2025-01-01",
                "\"epoch\" is given more than once",
            ),
            (
                "timestamp:41 machine:10 sequence:12",
                "\"machine\" is not a part of a layout; the parts are timestamp, node, backend, sequence, tick and epoch",
            ),
            (
                "Timestamp:41 sequence:12",
                "\"Timestamp\" is not a part of a layout; the parts are timestamp, node, backend, sequence, tick and epoch",
            ),
            (
                ":41 sequence:12",
                "\"\" is not a part of a layout; the parts are timestamp, node, backend, sequence, tick and epoch",
            ),
            (
                "timestamp:41 sequence:",
                "\"\" is not a number of bits for the field \"sequence\"",
            ),
            (
                "timestamp:41 sequence:+12",
                "\"+12\" is not a number of bits for the field \"sequence\"",
            ),
            (
                "timestamp:41 sequence:-1",
                "\"-1\" is not a number of bits for the field \"sequence\"",
            ),
            (
                "timestamp:41 sequence:12,",
                "\"12,\" is not a number of bits for the field \"sequence\"",
            ),
            (
                "timestamp:41 sequence:99999999999999999999",
                "\"99999999999999999999\" is not a number of bits for the field \"sequence\"",
            ),
            (
                "timestamp:41 sequence",
                "\"sequence\" is not of the form name:value",
            ),
            (
                "default tick:10ms",
                "\"default\" is not of the form name:value",
            ),
            (
                "snowflake",
                "\"snowflake\" is neither the name of a preset nor a list of fields such as timestamp:41 node:10 sequence:12",
            ),
            (
                "Default",
                "\"Default\" is neither the name of a preset nor a list of fields such as timestamp:41 node:10 sequence:12",
            ),
            ("", "the text is empty"),
            (" \n", "the text is empty"),
        ] {
            assert_eq!(refused(text), message, "{text}");
        }
    }

    #[test]
    fn the_widest_layouts() {
        for text in [
            "timestamp:53 sequence:10",
            "timestamp:1 node:31 sequence:31",
            "timestamp:8 node:31 backend:12 sequence:12",
            "timestamp:1 sequence:1",
        ] {
            let layout: Layout = text.parse().unwrap();
            assert_eq!(
                layout.to_string(),
                format!("{text} tick:1ms epoch:2025-01-01T00:00:00Z")
            );
        }
    }
}
