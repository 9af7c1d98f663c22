//! IDs, their fields and the bounds of a time against arithmetic that shares nothing with the
//! crate's: fields are read from a layout's text by hand, and its epoch is given as a number beside
//! the text.

#![cfg(not(loom))]

use jiff::tz::Offset;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use snowflake_id::{Layout, Parts, SnowflakeId, Time, presets};

/// The presets of the contract: name, canonical text, and the epoch in microseconds since 1970.
#[rustfmt::skip]
const PRESETS: [(&str, &str, i64); 13] = [
    ("default", "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
    ("twitter", "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z", 1_288_834_974_657_000),
    ("discord", "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z", 1_420_070_400_000_000),
    ("instagram", "timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z", 1_314_220_021_721_000),
    ("sonyflake", "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z", 1_409_529_600_000_000),
    ("uid-generator", "timestamp:28 node:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z", 1_463_673_600_000_000),
    ("tsid", "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z", 1_577_836_800_000_000),
    ("mastodon", "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01T00:00:00Z", 0),
    ("clickhouse", "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z", 0),
    ("pgedge", "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01T00:00:00Z", 1_672_531_200_000_000),
    ("ipv4", "timestamp:28 node:24 sequence:11 tick:1s epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
    ("game", "timestamp:31 node:20 sequence:12 tick:1s epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
    ("js53", "timestamp:38 node:5 sequence:10 tick:10ms epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
];

/// Epochs before 1970 and in other notations, ticks from 1 us to 1 s, times after the year 9999.
#[rustfmt::skip]
const FAR: [(&str, i64); 13] = [
    ("timestamp:41 sequence:22 tick:10us epoch:1900-01-01T00:00:00Z", -2_208_988_800_000_000),
    ("timestamp:52 node:3 sequence:8 tick:10us epoch:0001-01-01T00:00:00Z", -62_135_596_800_000_000),
    ("timestamp:45 backend:2 sequence:16 tick:100us epoch:1582-10-15", -12_219_292_800_000_000),
    ("timestamp:40 sequence:10 node:13 tick:1s epoch:1969-12-31T23:59:59.999999Z", -1),
    ("timestamp:33 node:10 sequence:20 tick:500ms epoch:1969-07-20T20:17:40", -14_182_940_000_000),
    ("timestamp:41 node:10 sequence:12 epoch:2025-01-01T01:00:00+01:00", 1_735_689_600_000_000),
    ("timestamp:50 sequence:4 tick:1us epoch:1970-01-01T00:00:00Z", 0),
    ("timestamp:60 sequence:3 tick:1us epoch:-004713-11-25T00:00:00Z", -210_866_716_800_000_000),
    ("timestamp:50 sequence:13 tick:1ms epoch:-000753-04-21T00:00:00Z", -85_920_048_000_000_000),
    ("timestamp:62 sequence:1 tick:1us epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
    ("timestamp:62 sequence:1 tick:2us epoch:1970-01-01T00:00:00Z", 0),
    ("timestamp:53 sequence:10 tick:1ms epoch:1970-01-01T00:00:00Z", 0),
    ("timestamp:43 sequence:20 tick:1s epoch:2025-01-01T00:00:00Z", 1_735_689_600_000_000),
];

/// 2000-01-01, from which PostgreSQL counts, and the last time of its `timestamptz`, in
/// microseconds since 1970.
const POSTGRES_EPOCH: i128 = 946_684_800_000_000;
const LAST_TIME: i128 = 9_224_318_015_999_999_999;

/// The crate's time; the nearest one that it has.
fn time(micros: i128) -> Time {
    let micros = (micros - POSTGRES_EPOCH).clamp(i64::MIN.into(), i64::MAX.into());
    Time::from_postgres_micros(micros as i64)
}

/// A time in microseconds since 1970; node, backend and sequence number.
type Fields = (i128, [u32; 3]);

/// The crate, called with numbers.
struct Crate(Layout);

impl Crate {
    fn new(text: &str) -> Self {
        Self(
            text.parse()
                .unwrap_or_else(|error| panic!("{text}: {error}")),
        )
    }

    fn decode(&self, id: i64) -> Option<Fields> {
        let parts = self.0.decode(SnowflakeId::new(id)?).ok()?;
        Some((
            i128::from(parts.time.postgres_micros()) + POSTGRES_EPOCH,
            [parts.node, parts.backend, parts.sequence],
        ))
    }

    fn compose(&self, (micros, [node, backend, sequence]): Fields) -> Option<i64> {
        let parts = Parts {
            time: time(micros),
            node,
            backend,
            sequence,
        };
        Some(self.0.compose(parts).ok()?.get())
    }

    fn min_id(&self, micros: i128) -> Option<i64> {
        Some(self.0.min_id(time(micros)).ok()?.get())
    }

    /// -1 where no ID is that early.
    fn max_id(&self, micros: i128) -> i64 {
        self.0.max_id(time(micros)).map_or(-1, SnowflakeId::get)
    }

    /// -1 where no ID is that early.
    fn max_id_before(&self, micros: i128) -> i64 {
        self.0
            .last_id_before(time(micros))
            .map_or(-1, SnowflakeId::get)
    }
}

/// The same, calculated here.
#[derive(Clone, Debug)]
struct Model {
    /// Name and width, from the most significant bit down. The timestamp is the first.
    fields: Vec<(String, u32)>,
    /// Microseconds.
    tick: i128,
    /// Microseconds since 1970.
    epoch: i128,
}

impl Model {
    fn new(text: &str, epoch: i64) -> Self {
        let (mut fields, mut tick) = (Vec::new(), 1_000);
        for (name, value) in text.split(' ').map(|pair| pair.split_once(':').unwrap()) {
            match name {
                "epoch" => {}
                "tick" => {
                    let (count, unit) = value.split_at(value.find(char::is_alphabetic).unwrap());
                    let micros = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
                    let (_, micros) = micros.iter().find(|it| it.0 == unit).unwrap();
                    tick = count.parse::<i128>().unwrap() * micros;
                }
                _ => fields.push((name.to_owned(), value.parse().unwrap())),
            }
        }
        Self {
            fields,
            tick,
            epoch: epoch.into(),
        }
    }

    /// How many bits are below the timestamp.
    fn shift(&self) -> u32 {
        self.fields[1..].iter().map(|(_, bits)| bits).sum()
    }

    fn last_tick(&self) -> i128 {
        (1 << self.fields[0].1) - 1
    }

    fn last_id(&self) -> i64 {
        self.last_of(self.last_tick())
    }

    fn first_of(&self, tick: i128) -> i64 {
        (tick << self.shift()).try_into().unwrap()
    }

    fn last_of(&self, tick: i128) -> i64 {
        (((tick + 1) << self.shift()) - 1).try_into().unwrap()
    }

    fn begin_of(&self, tick: i128) -> i128 {
        self.epoch + tick * self.tick
    }

    fn time(&self, id: i64) -> i128 {
        self.begin_of((id >> self.shift()).into())
    }

    fn field(&self, id: i64, name: &str) -> u32 {
        let place = self.fields.iter().position(|(field, _)| field == name);
        let below = |place: usize| {
            self.fields[place + 1..]
                .iter()
                .map(|(_, bits)| bits)
                .sum::<u32>()
        };
        place.map_or(0, |place| {
            ((id >> below(place)) % (1 << self.fields[place].1)) as u32
        })
    }

    fn numbers(&self, id: i64) -> [u32; 3] {
        ["node", "backend", "sequence"].map(|name| self.field(id, name))
    }

    fn fits(&self, (micros, numbers): Fields) -> bool {
        let mut numbers = numbers.iter().zip(self.numbers(i64::MAX));
        (self.epoch..self.begin_of(self.last_tick() + 1)).contains(&micros)
            && numbers.all(|(it, max)| *it <= max)
    }

    /// How many ticks have begun before `micros`.
    fn begun_before(&self, micros: i128) -> i128 {
        ((micros - self.epoch + self.tick - 1).div_euclid(self.tick)).clamp(0, self.last_tick() + 1)
    }

    fn min_id(&self, micros: i128) -> Option<i64> {
        let tick = self.begun_before(micros);
        (tick <= self.last_tick()).then(|| self.first_of(tick))
    }

    fn max_id_before(&self, micros: i128) -> i64 {
        self.last_of(self.begun_before(micros) - 1)
    }
}

/// The text of a layout with all that can be chosen, and its epoch. Epochs are written as `to_char`
/// of PostgreSQL does, with an offset, and as jiff does.
fn random_layout() -> impl Strategy<Value = (String, Model)> {
    let bits = (0..4_u32, 1..=62_u32, 0..=31_u32, 0..=12_u32, 1..=31_u32);
    let order = Just([0_usize, 1, 2]).prop_shuffle();
    let tick = prop_oneof![
        prop::sample::select(vec![1, 10, 1_000, 10_000, 1_000_000]),
        1..=1_000_000_i64
    ];
    // The years 1000 to 2100.
    let epoch = prop_oneof![
        -30_610_224_000_000_000..4_102_444_800_000_000_i64,
        (0..4_102_444_800_i64).prop_map(|seconds| seconds * 1_000_000),
    ];
    let random = (bits, order, tick, epoch, 0..3);
    random.prop_map(
        |((full, timestamp, node, backend, sequence), order, tick, epoch, notation)| {
            let node = node.min(62 - sequence);
            let backend = backend.min(62 - sequence - node);
            // A layout ends at or before the last time.
            let ticks = (LAST_TIME - i128::from(epoch)) / i128::from(tick);
            let most = (63 - sequence - node - backend).min(ticks.ilog2());
            let timestamp = if full == 0 { most } else { timestamp.min(most) };
            let mut text = format!("timestamp:{timestamp}");
            for (name, bits) in
                order.map(|n| [("node", node), ("backend", backend), ("sequence", sequence)][n])
            {
                if bits > 0 {
                    text += &format!(" {name}:{bits}");
                }
            }
            let at = jiff::Timestamp::from_microsecond(epoch).unwrap();
            let at = match notation {
                0 => at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
                1 => at
                    .display_with_offset(Offset::from_seconds(19_800).unwrap())
                    .to_string(),
                _ => at.to_string(),
            };
            text += &format!(" tick:{tick}us epoch:{at}");
            let model = Model::new(&text, epoch);
            (text, model)
        },
    )
}

/// A layout as it is named or written, and what it means.
fn layout() -> impl Strategy<Value = (String, Model)> {
    let preset = prop::sample::select(&PRESETS[..]);
    let far = prop::sample::select(&FAR[..]);
    prop_oneof![
        6 => random_layout(),
        3 => preset.prop_map(|(name, text, epoch)| (name.to_owned(), Model::new(text, epoch))),
        2 => far.prop_map(|(text, epoch)| (text.to_owned(), Model::new(text, epoch))),
    ]
}

/// An ID: any, the first, the last, one of the first or last tick, or of the next 300 years.
fn id_of(model: &Model) -> impl Strategy<Value = i64> + use<> {
    let (last, soon) = (
        model.last_id(),
        model.begun_before(model.epoch + 10_000_000_000_000_000),
    );
    prop_oneof![
        4 => 0..=last,
        4 => 0..=model.last_of(soon - 1),
        1 => prop::sample::select(vec![0, 1, last - 1, last]),
        1 => 0..=model.last_of(3.min(model.last_tick())),
        1 => model.first_of(model.last_tick())..=last,
    ]
}

/// A time in microseconds since 1970: near that of an ID, near the beginning or the end of the
/// layout, or any.
fn time_near(model: &Model, id: i64) -> impl Strategy<Value = i128> + use<> {
    let (epoch, end, own) = (
        model.epoch,
        model.begin_of(model.last_tick() + 1),
        model.time(id),
    );
    let (tick, hour) = (model.tick, 3_600_000_000_i128);
    let at = prop_oneof![4 => Just(own), 1 => Just(epoch), 1 => Just(end - tick), 1 => Just(end)];
    let beside = prop_oneof![
        -2_i128..=2,
        Just(tick),
        Just(-tick),
        -tick..=tick,
        -hour..=hour
    ];
    prop_oneof![
        7 => (at, beside).prop_map(|(at, beside)| at + beside),
        1 => epoch..end,
        1 => i128::MIN / 4..i128::MAX / 4,
    ]
}

/// A layout, an ID of it and two times.
fn layout_id_and_times() -> impl Strategy<Value = ((String, Model), i64, i128, i128)> {
    layout()
        .prop_flat_map(|(text, model)| {
            let id = id_of(&model);
            (Just((text, model)), id)
        })
        .prop_flat_map(|((text, model), id)| {
            let times = (time_near(&model, id), time_near(&model, id));
            (Just((text, model)), Just(id), times.0, times.1)
        })
}

/// The failures found are kept beside this file and tried first in the next run.
fn cases() -> ProptestConfig {
    let found = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reading.regressions");
    ProptestConfig {
        cases: 20_000,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(found))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn ids_mean_what_the_text_of_their_layout_says(
        ((text, model), id, within) in layout().prop_flat_map(|(text, model)| {
            let (id, within) = (id_of(&model), 0..model.tick);
            (Just((text, model)), id, within)
        }),
        beyond in any::<i64>(),
    ) {
        let layout = Crate::new(&text);
        prop_assert_eq!(layout.decode(id), Some((model.time(id), model.numbers(id))));
        // Any time of the tick belongs to the same ID.
        prop_assert_eq!(layout.compose((model.time(id) + within, model.numbers(id))), Some(id));
        for other in [beyond, -1, model.last_id().wrapping_add(1)] {
            prop_assert_eq!(layout.decode(other).is_some(), (0..=model.last_id()).contains(&other));
        }
    }

    #[test]
    fn compose_takes_what_fits_and_nothing_else(
        ((text, model), id, micros, _) in layout_id_and_times(),
        field in 0..6_usize,
        beside in prop_oneof![0..=2_u32, Just(u32::MAX), any::<u32>()],
    ) {
        let mut numbers = model.numbers(id);
        if let Some(number) = numbers.get_mut(field) {
            // From its largest value on.
            *number = model.numbers(i64::MAX)[field].saturating_add(beside);
        }
        let composed = Crate::new(&text).compose((micros, numbers));
        prop_assert_eq!(composed.is_some(), model.fits((micros, numbers)));
        if let Some(composed) = composed {
            prop_assert_eq!(model.numbers(composed), numbers);
            prop_assert!((0..model.tick).contains(&(micros - model.time(composed))));
        }
    }

    /// The bounds themselves, and what a comparison with them selects.
    #[test]
    fn a_range_of_time_is_a_range_of_ids(
        ((text, model), id, since, until) in layout_id_and_times(),
    ) {
        let layout = Crate::new(&text);
        let own = model.time(id);
        prop_assert_eq!(layout.min_id(since), model.min_id(since));
        prop_assert_eq!(layout.max_id_before(until), model.max_id_before(until));
        // Ticks begin at whole microseconds.
        prop_assert_eq!(layout.max_id(until), model.max_id_before(until + 1));
        prop_assert_eq!(layout.min_id(since).is_some_and(|min| id >= min), own >= since);
        prop_assert_eq!(id <= layout.max_id(until), own <= until);
        prop_assert_eq!(id <= layout.max_id_before(until), own < until);
        if let Some(min) = layout.min_id(since) {
            let inside = (min..=layout.max_id_before(until)).contains(&id);
            prop_assert_eq!(inside, since <= own && own < until);
        }
    }
}

#[test]
fn presets_are_those_of_the_contract() {
    let found: Vec<_> = presets().iter().map(|it| (it.name, it.text)).collect();
    assert_eq!(found, PRESETS.map(|(name, text, _)| (name, text)));
}

/// Every layout, at its first and last microsecond and one before and after.
#[test]
fn a_layout_has_times_from_its_epoch_to_its_end() {
    let named = PRESETS.map(|(name, text, epoch)| (name, Model::new(text, epoch)));
    let far = FAR.map(|(text, epoch)| (text, Model::new(text, epoch)));
    for (text, model) in named.into_iter().chain(far) {
        let layout = Crate::new(text);
        let (epoch, last) = (model.epoch, model.begin_of(model.last_tick()));
        let bounds = |micros| {
            (
                layout.min_id(micros),
                layout.max_id(micros),
                layout.max_id_before(micros),
            )
        };
        let (first_tick, all) = (model.last_of(0), model.last_id());
        assert_eq!(bounds(epoch - 1), (Some(0), -1, -1), "{text}");
        assert_eq!(bounds(epoch), (Some(0), first_tick, -1), "{text}");
        assert_eq!(layout.max_id_before(epoch + 1), first_tick, "{text}");
        let last_tick = model.first_of(model.last_tick());
        assert_eq!(
            bounds(last),
            (Some(last_tick), all, last_tick - 1),
            "{text}"
        );
        assert_eq!(bounds(last + 1), (None, all, all), "{text}");
        assert_eq!(layout.compose((epoch, [0; 3])), Some(0), "{text}");
        assert_eq!(layout.compose((epoch - 1, [0; 3])), None, "{text}");
        assert_eq!(
            layout.compose((last + model.tick - 1, [0; 3])),
            Some(last_tick),
            "{text}"
        );
        assert_eq!(layout.compose((last + model.tick, [0; 3])), None, "{text}");
    }
}
