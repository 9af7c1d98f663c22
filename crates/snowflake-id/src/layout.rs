//! What the bits of an ID mean.

mod fleet;
mod parse;
mod presets;
mod tick;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

pub use parse::LayoutError;
pub use presets::{Preset, presets};

use crate::id::SnowflakeId;
use crate::time::{Tick, Time};
use tick::TickLength;

/// An ID is a `bigint` that is never negative.
const MAX_TOTAL_BITS: u32 = 63;

/// One field: `bits` bits, the lowest of which is bit `shift` of the ID. Both are 0 for a field
/// that the layout lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Field {
    bits: u8,
    shift: u8,
}

impl Field {
    const fn new(bits: u8, shift: u8) -> Self {
        Self { bits, shift }
    }

    const fn max(self) -> u64 {
        (1 << self.bits) - 1
    }

    const fn get(self, bits: u64) -> u64 {
        bits >> self.shift & self.max()
    }

    #[inline]
    const fn put(self, value: u64) -> u64 {
        value << self.shift
    }
}

/// A list of fields, the length of a tick and an epoch: what is needed to read an ID.
///
/// Its text form goes from the most significant bit down:
/// `timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z`. [`FromStr`]
/// takes that, or the name of a [preset](presets()). Tick, epoch, node and backend may be left out.
/// [`Display`](fmt::Display) writes it in full. Two layouts are equal if they give every ID the
/// same meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    timestamp: Field,
    node: Field,
    backend: Field,
    sequence: Field,
    tick: TickLength,
    epoch: Time,
}

impl Layout {
    /// The preset `default`: 64 nodes with 16 backend numbers each, 4096 IDs a millisecond and
    /// backend number, until 2094.
    pub const DEFAULT: Self = Self {
        timestamp: Field::new(41, 22),
        node: Field::new(6, 16),
        backend: Field::new(4, 12),
        sequence: Field::new(12, 0),
        tick: TickLength::from_micros(parse::DEFAULT_TICK_MICROS),
        epoch: parse::DEFAULT_EPOCH,
    };

    /// The longest text of a layout, without the space around it.
    pub const LONGEST_TEXT_BYTES: usize = 1 << 20;

    /// Width of the timestamp field, at least 1.
    pub const fn timestamp_bits(&self) -> u32 {
        self.timestamp.bits as u32
    }

    /// Width of the node field, 0 if the layout has none.
    pub const fn node_bits(&self) -> u32 {
        self.node.bits as u32
    }

    /// Width of the backend field, 0 if the layout has none.
    pub const fn backend_bits(&self) -> u32 {
        self.backend.bits as u32
    }

    /// Width of the sequence field, at least 1.
    pub const fn sequence_bits(&self) -> u32 {
        self.sequence.bits as u32
    }

    /// Width of all fields together, at most 63.
    pub const fn total_bits(&self) -> u32 {
        self.timestamp_bits() + self.timestamp.shift as u32
    }

    /// The largest node number, 0 if the layout has no node field.
    pub const fn max_node(&self) -> u32 {
        self.node.max() as u32
    }

    /// The largest backend number, 0 if the layout has no backend field.
    pub const fn max_backend(&self) -> u32 {
        self.backend.max() as u32
    }

    /// Whether a greater backend number makes a greater ID within one tick and node. It does not if
    /// the sequence is above the backend number, or if the layout has no backend number.
    pub const fn backend_is_above_sequence(&self) -> bool {
        self.backend.bits > 0 && self.backend.shift > self.sequence.shift
    }

    /// The largest sequence number.
    pub const fn max_sequence(&self) -> u32 {
        self.sequence.max() as u32
    }

    /// The last tick that the timestamp field holds.
    pub const fn last_tick(&self) -> Tick {
        Tick::new(self.timestamp.max())
    }

    /// The tick after the last one: time can be [reserved](crate::Allowance::reserved) up to here.
    pub const fn end_tick(&self) -> Tick {
        Tick::new(self.timestamp.max() + 1)
    }

    /// The largest ID of this layout.
    pub const fn last_id(&self) -> SnowflakeId {
        SnowflakeId::from_bits(
            self.last_tick().get() << self.timestamp.shift | self.below_timestamp(),
        )
    }

    /// The fields that the layout has, from the most significant bit down. The timestamp is the
    /// first, no bits lie between two fields, and the lowest bit of the last one is bit 0.
    pub fn fields(&self) -> impl Iterator<Item = FieldBits> + use<> {
        let mut fields = [
            ("timestamp", self.timestamp),
            ("node", self.node),
            ("backend", self.backend),
            ("sequence", self.sequence),
        ];
        fields.sort_unstable_by_key(|(_, field)| std::cmp::Reverse(field.shift));
        fields
            .into_iter()
            .filter(|(_, field)| field.bits > 0)
            .map(|(name, field)| FieldBits {
                name,
                bits: field.bits.into(),
                shift: field.shift.into(),
            })
    }

    /// The length of a tick in microseconds, 1 to 1,000,000.
    pub const fn tick_micros(&self) -> u32 {
        self.tick.micros()
    }

    /// The beginning of tick 0.
    pub const fn epoch(&self) -> Time {
        self.epoch
    }

    /// The first time that can't be represented: the end of the last tick.
    pub const fn expires_at(&self) -> Time {
        self.time_of(self.end_tick())
    }

    /// How many IDs a second one backend number of one node can issue in the long run, rounded
    /// down.
    pub const fn ids_per_second(&self) -> u64 {
        (self.sequence.max() + 1) * 1_000_000 / self.tick_micros() as u64
    }

    /// The tick in which `time` falls.
    ///
    /// # Errors
    ///
    /// If `time` is before the epoch or past the end.
    #[inline]
    pub fn tick_at(&self, time: Time) -> Result<Tick, TimeError> {
        match time.micros_since(self.epoch) {
            Some(micros) => self.tick_after(micros).ok_or_else(|| self.after_end(time)),
            None => Err(TimeError::BeforeEpoch {
                time,
                epoch: self.epoch,
            }),
        }
    }

    /// The tick that many microseconds after the epoch; `None` past the last tick.
    #[inline]
    pub fn tick_after(&self, micros: u64) -> Option<Tick> {
        let tick = self.tick.ticks_in(micros);
        (tick <= self.timestamp.max()).then_some(Tick::new(tick))
    }

    /// When `tick` begins. Ticks past the last one have a time too, up to [`Time::MAX`].
    pub const fn time_of(&self, tick: Tick) -> Time {
        let micros = tick.get().saturating_mul(self.tick_micros() as u64);
        self.epoch.plus_micros(micros)
    }

    /// The fields of an ID.
    ///
    /// # Errors
    ///
    /// If bits are set above those of the layout: the number is not an ID of this layout.
    pub fn decode(&self, id: SnowflakeId) -> Result<Parts, DecodeError> {
        if id > self.last_id() {
            return Err(DecodeError {
                id,
                total_bits: self.total_bits(),
            });
        }
        Ok(Parts {
            time: self.time_of(self.tick_of(id)),
            node: self.node.get(id.bits()) as u32,
            backend: self.backend.get(id.bits()) as u32,
            sequence: self.sequence.get(id.bits()) as u32,
        })
    }

    /// The ID with these fields; the inverse of [`decode`](Self::decode). A time within a tick
    /// counts as its beginning.
    ///
    /// # Errors
    ///
    /// If a number or the time does not fit.
    pub fn compose(&self, parts: Parts) -> Result<SnowflakeId, ComposeError> {
        let tick = self.tick_at(parts.time)?;
        self.check_field("node", parts.node, self.node)?;
        self.check_field("backend", parts.backend, self.backend)?;
        self.check_field("sequence", parts.sequence, self.sequence)?;
        Ok(SnowflakeId::from_bits(
            self.timestamp.put(tick.get())
                | self.node.put(parts.node.into())
                | self.backend.put(parts.backend.into())
                | self.sequence.put(parts.sequence.into()),
        ))
    }

    /// The smallest ID whose time (its tick's beginning) is at or after `time`; 0 for a time before
    /// the epoch.
    ///
    /// # Errors
    ///
    /// If `time` is later than the beginning of the last tick: no ID is that late.
    pub fn min_id(&self, time: Time) -> Result<SnowflakeId, TimeError> {
        if time <= self.epoch() {
            return Ok(SnowflakeId::ZERO);
        }
        let floor = self.tick_at(time)?;
        let tick = if self.time_of(floor) < time {
            Tick::new(floor.get() + 1)
        } else {
            floor
        };
        if tick > self.last_tick() {
            return Err(self.after_end(time));
        }
        Ok(self.first_id_of(tick))
    }

    /// The largest ID whose time (its tick's beginning) is at or before `time`: the layout's last
    /// ID for a time past its end. `None` for a time before the epoch: there is no such ID.
    pub fn max_id(&self, time: Time) -> Option<SnowflakeId> {
        match self.tick_at(time) {
            Ok(tick) => Some(SnowflakeId::from_bits(
                self.timestamp.put(tick.get()) | self.below_timestamp(),
            )),
            Err(TimeError::BeforeEpoch { .. }) => None,
            Err(TimeError::AfterEnd { .. }) => Some(self.last_id()),
        }
    }

    /// The largest ID whose time (its tick's beginning) is strictly before `time`: the layout's
    /// last ID for a time past its end. `None` for a time at or before the epoch: there is no such
    /// ID.
    ///
    /// Together with [`min_id`](Self::min_id) of its beginning it bounds a half-open range of time.
    pub fn last_id_before(&self, time: Time) -> Option<SnowflakeId> {
        let micros = time.micros_since(self.epoch)?.checked_sub(1)?;
        // Ticks begin at whole microseconds.
        self.max_id(self.epoch.plus_micros(micros))
    }

    /// The smallest ID of `tick`, all other fields 0. [`SnowflakeId::MAX`] for a tick past the last
    /// one whose smallest ID would be greater than that.
    pub fn first_id_of(&self, tick: Tick) -> SnowflakeId {
        if tick.get() > SnowflakeId::MAX.bits() >> self.timestamp.shift {
            return SnowflakeId::MAX;
        }
        SnowflakeId::from_bits(tick.get() << self.timestamp.shift)
    }

    /// The tick of an ID. Past the last one if the ID is not one of this layout.
    pub const fn tick_of(&self, id: SnowflakeId) -> Tick {
        Tick::new(id.bits() >> self.timestamp.shift)
    }

    /// The first tick whose IDs, and those of all later ticks, are at or above `bound_id`. It may
    /// be past the last one.
    pub const fn tick_above(&self, bound_id: SnowflakeId) -> Tick {
        Tick::new((bound_id.bits() + self.below_timestamp()) >> self.timestamp.shift)
    }

    /// The bits of a tick in an ID.
    #[inline]
    pub(crate) const fn put_tick(&self, tick: Tick) -> u64 {
        self.timestamp.put(tick.get())
    }

    /// The bits of a node number in an ID.
    ///
    /// # Errors
    ///
    /// If the field does not hold the number.
    pub(crate) fn put_node(&self, node: u32) -> Result<u64, FieldError> {
        self.check_field("node", node, self.node)?;
        Ok(self.node.put(node.into()))
    }

    /// The bits of a backend number in an ID.
    #[inline]
    pub(crate) const fn put_backend(&self, backend: u32) -> u64 {
        self.backend.put(backend as u64)
    }

    /// The bits of a sequence number in an ID.
    #[inline]
    pub(crate) const fn put_sequence(&self, sequence: u32) -> u64 {
        self.sequence.put(sequence as u64)
    }

    /// All bits below the timestamp.
    const fn below_timestamp(&self) -> u64 {
        (1 << self.timestamp.shift) - 1
    }

    fn after_end(&self, time: Time) -> TimeError {
        TimeError::AfterEnd {
            time,
            last: self.time_of(self.last_tick()),
            expires_at: self.expires_at(),
        }
    }

    fn check_field(&self, name: &'static str, value: u32, field: Field) -> Result<(), FieldError> {
        if u64::from(value) <= field.max() {
            return Ok(());
        }
        Err(FieldError {
            name,
            value: value.into(),
            max: field.max() as u32,
        })
    }
}

impl Default for Layout {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    /// Takes the name of a preset or the text form.
    fn from_str(text: &str) -> Result<Self, LayoutError> {
        let text = text.trim_ascii();
        match presets().iter().find(|preset| preset.name == text) {
            Some(preset) => Ok(preset.layout()),
            None => parse::parse(text),
        }
    }
}

/// The canonical text: every field that the layout has, the tick in its largest unit, the epoch in
/// UTC.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for field in self.fields() {
            write!(f, "{}:{} ", field.name, field.bits)?;
        }
        let (count, unit) = match self.tick_micros() {
            micros if micros % 1_000_000 == 0 => (micros / 1_000_000, "s"),
            micros if micros % 1_000 == 0 => (micros / 1_000, "ms"),
            micros => (micros, "us"),
        };
        write!(f, "tick:{count}{unit} epoch:{}", self.epoch())
    }
}

/// The place of a field in an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FieldBits {
    /// `timestamp`, `node`, `backend` or `sequence`.
    pub name: &'static str,
    /// How many bits wide it is, at least 1.
    pub bits: u32,
    /// The number of its lowest bit, 0 being the ID's least significant one.
    pub shift: u32,
}

/// The values of an ID's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// When the ID's tick began.
    pub time: Time,
    /// The node number; 0 if the layout has none.
    pub node: u32,
    /// The backend number; 0 if the layout has none.
    pub backend: u32,
    /// The sequence number.
    pub sequence: u32,
}

/// A number that is too large for its field, or negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{name} {value} is out of range; the layout holds 0 to {max}")]
pub struct FieldError {
    /// `node`, `backend` or `sequence`.
    pub name: &'static str,
    /// The number. Wider than the field so that a caller with signed numbers can report one that is
    /// negative.
    pub value: i64,
    /// The largest number that fits.
    pub max: u32,
}

/// A time that a layout can't represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimeError {
    /// Earlier than tick 0.
    #[error("{time} is before the layout's epoch, {epoch}")]
    BeforeEpoch {
        /// The time asked for.
        time: Time,
        /// The layout's epoch.
        epoch: Time,
    },
    /// Later than any ID.
    #[error("{time} is later than the layout's last tick, which begins at {last}")]
    AfterEnd {
        /// The time asked for.
        time: Time,
        /// The beginning of the last tick: the time of the layout's last IDs.
        last: Time,
        /// The end of the last tick.
        expires_at: Time,
    },
}

/// Why [`Layout::compose`] returned no ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ComposeError {
    /// A number does not fit its field.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// The time does not fit.
    #[error(transparent)]
    Time(#[from] TimeError),
}

/// An ID with bits above those of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{id} has bits above the {total_bits} of the layout")]
pub struct DecodeError {
    /// The number that is no ID of the layout.
    pub id: SnowflakeId,
    /// How many bits the layout has.
    pub total_bits: u32,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn layout(text: &str) -> Layout {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn time(text: &str) -> Time {
        let timestamp: jiff::Timestamp = text.parse().unwrap();
        Time::from_unix_micros(timestamp.as_microsecond())
    }

    fn id(bits: i64) -> SnowflakeId {
        SnowflakeId::new(bits).unwrap()
    }

    #[test]
    fn default_is_what_its_text_says() {
        let default = Layout::default();
        assert_eq!(default, layout("default"));
        assert_eq!(
            default,
            layout("timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z")
        );
        assert_eq!(
            (
                default.timestamp_bits(),
                default.node_bits(),
                default.backend_bits(),
                default.sequence_bits(),
                default.total_bits(),
            ),
            (41, 6, 4, 12, 63)
        );
        assert_eq!(
            (
                default.max_node(),
                default.max_backend(),
                default.max_sequence()
            ),
            (63, 15, 4095)
        );
        assert_eq!(default.last_id(), SnowflakeId::MAX);
        assert_eq!(default.ids_per_second(), 4_096_000);
        assert_eq!(default.expires_at(), time("2094-09-07T15:47:35.552Z"));
    }

    #[test]
    fn decode_reads_every_field() {
        let id = id(249_431_905_924_104_192);
        let parts = Parts {
            time: time("2026-11-20T07:13:20.593Z"),
            node: 1,
            backend: 4,
            sequence: 0,
        };
        assert_eq!(Layout::DEFAULT.decode(id), Ok(parts));
        assert_eq!(Layout::DEFAULT.compose(parts), Ok(id));
    }

    #[test]
    fn fields_may_come_in_any_order() {
        let parts = Parts {
            time: time("2025-01-01T00:00:00.001Z"),
            node: 1,
            backend: 2,
            sequence: 3,
        };
        let composed = |text| layout(text).compose(parts).unwrap().get();
        assert_eq!(
            composed("timestamp:8 node:8 backend:8 sequence:8"),
            0x01_01_02_03
        );
        assert_eq!(
            composed("timestamp:8 sequence:8 backend:8 node:8"),
            0x01_03_02_01
        );
        assert_eq!(
            composed("timestamp:8 backend:8 sequence:8 node:8"),
            0x01_02_03_01
        );
    }

    #[test]
    fn bits_above_the_layout_are_refused() {
        let js53 = layout("js53");
        assert!(js53.decode(id((1 << 53) - 1)).is_ok());
        let error = js53.decode(id(1 << 53)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "9007199254740992 has bits above the 53 of the layout"
        );
        assert!(Layout::DEFAULT.decode(SnowflakeId::MAX).is_ok());
    }

    #[test]
    fn compose_names_the_field_that_does_not_fit() {
        let good = Parts {
            time: time("2026-01-01T00:00:00Z"),
            node: 63,
            backend: 15,
            sequence: 4095,
        };
        let message = |parts| Layout::DEFAULT.compose(parts).unwrap_err().to_string();
        assert!(Layout::DEFAULT.compose(good).is_ok());
        assert_eq!(
            message(Parts { node: 64, ..good }),
            "node 64 is out of range; the layout holds 0 to 63"
        );
        assert_eq!(
            message(Parts {
                backend: 16,
                ..good
            }),
            "backend 16 is out of range; the layout holds 0 to 15"
        );
        assert_eq!(
            message(Parts {
                sequence: u32::MAX,
                ..good
            }),
            "sequence 4294967295 is out of range; the layout holds 0 to 4095"
        );
        assert_eq!(
            message(Parts {
                time: time("2024-12-31T23:59:59.999999Z"),
                ..good
            }),
            "2024-12-31T23:59:59.999999Z is before the layout's epoch, 2025-01-01T00:00:00Z"
        );
        assert_eq!(
            message(Parts {
                time: time("2094-09-07T15:47:35.552Z"),
                ..good
            }),
            "2094-09-07T15:47:35.552Z is later than the layout's last tick, which begins at \
             2094-09-07T15:47:35.551Z"
        );
        // A layout without the field holds 0 and nothing else.
        let mastodon = layout("mastodon");
        assert!(
            mastodon
                .compose(Parts {
                    node: 1,
                    backend: 0,
                    ..good
                })
                .is_err()
        );
    }

    #[test]
    fn bounds_of_a_range_of_time() {
        let layout = Layout::DEFAULT;
        let before = time("2024-12-31T23:59:59.999999Z");
        assert_eq!(layout.min_id(before), Ok(SnowflakeId::ZERO));
        assert_eq!(layout.max_id(before), None);

        assert_eq!(layout.min_id(layout.epoch()), Ok(SnowflakeId::ZERO));
        assert_eq!(layout.max_id(layout.epoch()), Some(id((1 << 22) - 1)));

        // Within a tick: its own IDs are earlier than that, so the smallest ID is one of the next
        // tick.
        let within = time("2025-01-01T00:00:00.001001Z");
        assert_eq!(layout.min_id(within), Ok(id(2 << 22)));
        assert_eq!(layout.max_id(within), Some(id((2 << 22) - 1)));

        let last = time("2094-09-07T15:47:35.551Z");
        assert_eq!(
            layout.min_id(last),
            Ok(layout.first_id_of(layout.last_tick()))
        );
        for late in [
            "2094-09-07T15:47:35.551001Z",
            "2094-09-07T15:47:35.552Z",
            "9999-01-01T00:00:00Z",
        ] {
            assert_eq!(
                layout.min_id(time(late)),
                Err(TimeError::AfterEnd {
                    time: time(late),
                    last,
                    expires_at: layout.expires_at(),
                }),
            );
            assert_eq!(layout.max_id(time(late)), Some(layout.last_id()));
        }
    }

    #[test]
    fn the_open_end_of_a_range_of_time() {
        let layout = Layout::DEFAULT;
        let before = |text| layout.last_id_before(time(text));
        let last_of = |tick: i64| Some(id((tick << 22) - 1));

        assert_eq!(before("2024-12-31T23:59:59.999999Z"), None);
        assert_eq!(layout.last_id_before(layout.epoch()), None);
        assert_eq!(before("2025-01-01T00:00:00.000001Z"), last_of(1));
        assert_eq!(before("2025-01-01T00:00:00.001Z"), last_of(1));
        assert_eq!(before("2025-01-01T00:00:00.001001Z"), last_of(2));

        let last = layout.last_id();
        assert_eq!(
            before("2094-09-07T15:47:35.551Z"),
            id(layout.first_id_of(layout.last_tick()).get() - 1).into()
        );
        assert_eq!(before("2094-09-07T15:47:35.551001Z"), Some(last));
        assert_eq!(before("9999-01-01T00:00:00Z"), Some(last));

        // Days meet without a gap and without an ID in both.
        let midnight = time("2026-03-29T00:00:00Z");
        assert_eq!(
            layout.last_id_before(midnight).unwrap().get() + 1,
            layout.min_id(midnight).unwrap().get()
        );
    }

    #[test]
    fn fields_from_the_top_down() {
        let fields = |text| -> Vec<_> {
            let fields = layout(text).fields();
            fields.map(|f| (f.name, f.bits, f.shift)).collect()
        };
        assert_eq!(
            fields("default"),
            [
                ("timestamp", 41, 22),
                ("node", 6, 16),
                ("backend", 4, 12),
                ("sequence", 12, 0)
            ]
        );
        assert_eq!(
            fields("sonyflake"),
            [("timestamp", 39, 24), ("sequence", 8, 16), ("node", 16, 0)]
        );
        assert_eq!(
            fields("timestamp:1 sequence:1"),
            [("timestamp", 1, 1), ("sequence", 1, 0)]
        );
    }

    #[test]
    fn ticks_and_bounds_that_are_ids() {
        let layout = Layout::DEFAULT;
        for (bound, floor, ceiling) in [
            (0, 0, 0),
            (1, 0, 1),
            ((1 << 22) - 1, 0, 1),
            (1 << 22, 1, 1),
            ((1 << 22) + 1, 1, 2),
            (i64::MAX, (1 << 41) - 1, 1 << 41),
        ] {
            assert_eq!(layout.tick_of(id(bound)), Tick::new(floor));
            assert_eq!(layout.tick_above(id(bound)), Tick::new(ceiling));
        }
        assert_eq!(layout.first_id_of(Tick::new(5)), id(5 << 22));
        // The end of a layout of 63 bits is no ID; the bound stays one, on the safe side.
        assert_eq!(layout.first_id_of(layout.end_tick()), SnowflakeId::MAX);
        assert_eq!(layout.first_id_of(Tick::new(u64::MAX)), SnowflakeId::MAX);
        assert_eq!(
            self::layout("js53").first_id_of(Tick::new(1 << 38)),
            id(1 << 53)
        );
    }

    #[test]
    fn times_far_outside_are_errors_not_overflows() {
        for text in [
            "default",
            "timestamp:62 sequence:1 tick:2us epoch:1970-01-01",
            "timestamp:1 sequence:1 tick:1us",
        ] {
            let layout = layout(text);
            for time in [Time::MIN, Time::MAX] {
                let is_late = time == Time::MAX;
                assert!(layout.tick_at(time).is_err());
                assert_eq!(layout.min_id(time).is_ok(), !is_late);
                assert_eq!(layout.max_id(time).is_some(), is_late);
                assert_eq!(layout.last_id_before(time).is_some(), is_late);
            }
            assert_eq!(layout.time_of(Tick::new(u64::MAX)), Time::MAX);
        }
    }

    #[test]
    fn a_layout_may_have_every_time_of_timestamptz() {
        let layout = layout("timestamp:43 sequence:1 tick:1s epoch:-004713-11-24");
        assert_eq!(layout.epoch(), Time::MIN);
        assert_eq!(layout.tick_at(Time::MIN), Ok(Tick::new(0)));
        assert_eq!(layout.last_id_before(Time::MIN), None);
        assert_eq!(layout.max_id(Time::MIN).map(SnowflakeId::get), Some(1));
        assert!(layout.expires_at() <= Time::MAX);
    }
}
