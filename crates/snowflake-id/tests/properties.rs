//! Random layouts, times and histories of a slot.

#![cfg(not(loom))]

use std::num::NonZeroU32;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use snowflake_id::{
    Allowance, Answer, Borrow, ComposeError, Encoding, FieldError, Identity, Layout, LayoutError,
    Parts, Position, Run, Slot, SlotWalk, SnowflakeId, TextError, Tick, Time, TimeError,
};

const MICROS_PER_YEAR: i64 = 31_556_952_000_000;

/// The text of a layout: random widths and order, ticks of 1us to 1s, epochs of 4700 BC to 9900 AD.
/// It has fewer timestamp bits than drawn if it would end too late.
fn layout_text() -> impl Strategy<Value = String> {
    let widths = (1..=62_u32, 0..=31_u32, 0..=12_u32, 1..=31_u32).prop_map(
        |(timestamp, node, backend, sequence)| {
            // The timestamp takes what the others leave; else few of the cases would fit.
            let node = node.min(62 - sequence);
            let backend = backend.min(62 - sequence - node);
            let timestamp = timestamp.min(63 - sequence - node - backend);
            (timestamp, node, backend, sequence)
        },
    );
    let tick = prop_oneof![
        Just(1),
        Just(10),
        Just(1_000),
        Just(10_000),
        Just(1_000_000),
        1..=1_000_000_u32,
    ];
    let epoch = prop_oneof![
        -6_670 * MICROS_PER_YEAR..7_930 * MICROS_PER_YEAR,
        (-60..60_i64).prop_map(|years| years * MICROS_PER_YEAR),
    ];
    (widths, Just([0_usize, 1, 2]).prop_shuffle(), tick, epoch).prop_map(
        |((timestamp, node, backend, sequence), order, tick, epoch)| {
            let rest = [("node", node), ("backend", backend), ("sequence", sequence)];
            let mut text = String::new();
            for (name, bits) in order.map(|index| rest[index]) {
                if bits > 0 {
                    text += &format!(" {name}:{bits}");
                }
            }
            let epoch = jiff::Timestamp::from_microsecond(epoch).unwrap();
            let with =
                |timestamp| format!("timestamp:{timestamp}{text} tick:{tick}us epoch:{epoch}");
            match with(timestamp).parse::<Layout>() {
                Err(LayoutError::EndsTooLate { max, .. }) => with(max),
                _ => with(timestamp),
            }
        },
    )
}

fn layout() -> impl Strategy<Value = Layout> {
    layout_text().prop_map(|text| text.parse().unwrap())
}

/// A layout and an ID of it.
fn layout_and_id() -> impl Strategy<Value = (Layout, SnowflakeId)> {
    layout().prop_flat_map(|layout| {
        let id = prop_oneof![
            0..=layout.last_id().get(),
            Just(0),
            Just(layout.last_id().get()),
        ];
        (
            Just(layout),
            id.prop_map(|id| SnowflakeId::new(id).unwrap()),
        )
    })
}

/// A layout and an instant around one of its ticks, sometimes before its epoch or past its end.
fn layout_and_time() -> impl Strategy<Value = (Layout, Time)> {
    layout().prop_flat_map(|layout| {
        let tick = prop_oneof![
            0..=layout.last_tick().get(),
            0..=3_u64,
            layout.last_tick().get().saturating_sub(2)..=layout.last_tick().get() + 2,
        ];
        let micros = i64::from(layout.tick_micros());
        let shift = prop_oneof![Just(-1), Just(0), Just(1), -2 * micros..=2 * micros];
        (Just(layout), tick, shift).prop_map(|(layout, tick, shift)| {
            let begins = layout.time_of(Tick::new(tick)).postgres_micros();
            (
                layout,
                Time::from_postgres_micros(begins.saturating_add(shift)),
            )
        })
    })
}

/// A layout, an ID of it and an instant: near the ID's time, near the beginning of any tick, before
/// the epoch or past the end, often one microsecond off.
fn layout_id_and_time() -> impl Strategy<Value = (Layout, SnowflakeId, Time)> {
    layout_and_id().prop_flat_map(|(layout, id)| {
        let begin_of = move |tick| layout.time_of(Tick::new(tick)).postgres_micros();
        let (own, last) = (layout.tick_of(id).get(), layout.last_tick().get());
        let (epoch, end) = (
            layout.epoch().postgres_micros(),
            layout.expires_at().postgres_micros(),
        );
        let micros = i64::from(layout.tick_micros());
        let around = prop_oneof![
            6 => Just(begin_of(own)),
            2 => (own.saturating_sub(2)..=own + 2).prop_map(begin_of),
            2 => (0..=last).prop_map(begin_of),
            1 => Just(epoch),
            1 => Just(begin_of(last)),
            1 => Just(end),
            1 => i64::MIN..=epoch,
            1 => end..=i64::MAX,
        ];
        let beside = prop_oneof![
            Just(-1),
            Just(0),
            Just(1),
            Just(micros - 1),
            -2 * micros..=2 * micros,
        ];
        (Just(layout), Just(id), around, beside).prop_map(|(layout, id, around, beside)| {
            let micros = around.saturating_add(beside);
            (layout, id, Time::from_postgres_micros(micros))
        })
    })
}

/// Any ID, as many of each magnitude, and those around the powers of both bases.
fn any_id() -> impl Strategy<Value = SnowflakeId> {
    let beside = |base: u64, powers: u32| {
        (0..powers, -2..=2_i64).prop_map(move |(power, step)| {
            base.pow(power).saturating_add_signed(step) as i64 & i64::MAX
        })
    };
    prop_oneof![
        4 => 0..=i64::MAX,
        4 => (0..=i64::MAX, 0..63_u32).prop_map(|(id, shift)| id >> shift),
        1 => beside(32, 13),
        1 => beside(62, 11),
        1 => i64::MAX - 70..=i64::MAX,
        1 => 0..=70_i64,
    ]
    .prop_map(|id| SnowflakeId::new(id).unwrap())
}

/// A pair of IDs, often close together.
fn two_ids() -> impl Strategy<Value = (SnowflakeId, SnowflakeId)> {
    let near = (any_id(), -100..=100_i64).prop_map(|(id, step)| {
        let other = SnowflakeId::new(id.get().saturating_add(step));
        (id, other.unwrap_or(SnowflakeId::ZERO))
    });
    prop_oneof![(any_id(), any_id()), near]
}

fn encoding() -> impl Strategy<Value = Encoding> {
    prop::sample::select(&Encoding::ALL[..])
}

/// Any characters, mostly such as an ID has and about as many of them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => "[0-9A-Za-z]{11}|[0-9A-Za-z]{13}",
        2 => "[0-9A-TV-Za-tv-z]{13}",
        2 => "[0-9A-Ba-z][0-9A-Za-z]{10}|[0-8][0-9A-TV-Za-tv-z]{12}",
        1 => "[0-9A-Za-z]{0,15}",
        1 => "[0-9A-Za-z -]{10,14}",
        1 => "[0-9A-TV-Z]{5}.[0-9A-TV-Z]{5,7}",
        1 => ".{0,15}",
    ]
}

/// What decoding should give, the long way: Crockford's table with what it says of look-alikes, or
/// digits and letters in the order of ASCII.
fn decode_by_the_table(encoding: Encoding, text: &str) -> Result<SnowflakeId, TextError> {
    let value = |character: char| match encoding {
        Encoding::Base32 => match character {
            '0' | 'O' | 'o' => Some(0),
            '1' | 'I' | 'i' | 'L' | 'l' => Some(1),
            'U' | 'u' => None,
            _ => "0123456789ABCDEFGHJKMNPQRSTVWXYZ".find(character.to_ascii_uppercase()),
        },
        Encoding::Base62 => ('0'..='9')
            .chain('A'..='Z')
            .chain('a'..='z')
            .position(|digit| digit == character),
    };
    let (base, width) = match encoding {
        Encoding::Base32 => (32_u128, 13),
        Encoding::Base62 => (62, 11),
    };
    let mut number = 0_u128;
    for (index, character) in text.chars().enumerate() {
        let Some(value) = value(character) else {
            return Err(TextError::Character {
                encoding,
                character,
                position: index + 1,
            });
        };
        number = number * base + value as u128;
    }
    let found = text.chars().count();
    if found != width {
        return Err(TextError::Length { encoding, found });
    }
    if number > i64::MAX as u128 {
        return Err(TextError::TooLarge { encoding });
    }
    Ok(SnowflakeId::new(number as i64).unwrap())
}

/// Failures found are kept beside this file and tried first in the next run.
fn cases(cases: u32) -> ProptestConfig {
    let found = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/properties.regressions");
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(found))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases(4_000))]

    #[test]
    fn text_round_trip(text in layout_text()) {
        let layout: Layout = text.parse().unwrap();
        let canonical = layout.to_string();
        prop_assert_eq!(canonical.parse::<Layout>().unwrap(), layout);
        prop_assert_eq!(canonical.parse::<Layout>().unwrap().to_string(), canonical.clone());
        // The fields stay as they were written; only the tick's unit may differ, and jiff writes
        // the epoch our way.
        let fields = |text: &str| text.split(" tick:").next().unwrap().to_owned();
        let epoch = |text: &str| text.split(" epoch:").nth(1).unwrap().to_owned();
        prop_assert_eq!(fields(&canonical), fields(&text));
        prop_assert_eq!(epoch(&canonical), epoch(&text));
    }

    #[test]
    fn a_fleet_gets_a_number_for_each_server_and_no_bit_is_lost(
        servers in (0..=24_u32, any::<u32>()).prop_map(|(bits, number)| number & ((1 << bits) - 1)),
        more in 0..=3_u32,
    ) {
        let layout = Layout::for_servers(servers).unwrap();
        prop_assert!(layout.max_node() >= servers.saturating_sub(1));
        // The next power of 2 has room for them, and no smaller one has, above the default's.
        prop_assert!(layout.max_node() / 2 < servers.max(64));
        prop_assert_eq!(layout.total_bits(), 63);
        prop_assert!(layout.backend_is_above_sequence());
        prop_assert!(layout.backend_bits() >= 2 && layout.sequence_bits() >= 6);
        prop_assert!(layout.expires_at() > Time::from_unix_micros(123 * MICROS_PER_YEAR));
        prop_assert_eq!(layout.epoch(), Layout::DEFAULT.epoch());
        prop_assert_eq!(layout.to_string().parse(), Ok(layout));
        // More servers get no more IDs each, and no shorter ticks.
        let of_a_server = |layout: Layout| {
            u64::from(layout.max_backend() + 1) * u64::from(layout.max_sequence() + 1) * 1_000_000
                / u64::from(layout.tick_micros())
        };
        if let Some(larger) = Layout::for_servers(servers.saturating_mul(2).saturating_add(more)) {
            prop_assert!(of_a_server(larger) <= of_a_server(layout));
            prop_assert!(larger.tick_micros() >= layout.tick_micros());
        }
    }

    #[test]
    fn any_text_is_a_layout_or_an_error(text in "[a-z0-9:. +TZ-]{0,60}|(timestamp|node|sequence|tick|epoch):.{0,12}( (sequence|epoch|tick):.{0,12}){0,2}") {
        match text.parse::<Layout>() {
            Ok(layout) => prop_assert_eq!(layout.to_string().parse::<Layout>(), Ok(layout)),
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn times_print_as_jiff_prints_them(
        micros in Time::MIN.unix_micros()..=jiff::Timestamp::MAX.as_microsecond(),
        whole_seconds in any::<bool>(),
    ) {
        let micros = if whole_seconds { micros / 1_000_000 * 1_000_000 } else { micros };
        let expected = jiff::Timestamp::from_microsecond(micros).unwrap().to_string();
        prop_assert_eq!(Time::from_unix_micros(micros).to_string(), expected);
    }

    #[test]
    fn any_time_prints(micros in any::<i64>()) {
        prop_assert!(Time::from_unix_micros(micros).to_string().ends_with('Z'));
    }

    #[test]
    fn compose_is_the_inverse_of_decode((layout, id) in layout_and_id()) {
        let parts = layout.decode(id).unwrap();
        prop_assert_eq!(layout.compose(parts), Ok(id));
        prop_assert_eq!(layout.tick_at(parts.time), Ok(layout.tick_of(id)));
        let identity = Identity::new(layout, parts.node).unwrap();
        prop_assert_eq!(identity.id(parts.backend, layout.tick_of(id), parts.sequence), id);
    }

    #[test]
    fn decode_is_the_inverse_of_compose(
        (layout, time) in layout_and_time(),
        node in any::<u32>(), backend in any::<u32>(), sequence in any::<u32>(),
    ) {
        let parts = Parts {
            time,
            node: node & layout.max_node(),
            backend: backend & layout.max_backend(),
            sequence: sequence & layout.max_sequence(),
        };
        match layout.compose(parts) {
            Ok(id) => {
                let decoded = layout.decode(id).unwrap();
                let late = time.postgres_micros() - decoded.time.postgres_micros();
                prop_assert!((0..i64::from(layout.tick_micros())).contains(&late));
                prop_assert_eq!(Parts { time, ..decoded }, parts);
            }
            Err(ComposeError::Time(TimeError::BeforeEpoch { .. })) => {
                prop_assert!(time < layout.epoch());
            }
            Err(ComposeError::Time(TimeError::AfterEnd { .. })) => {
                prop_assert!(time >= layout.expires_at());
            }
            Err(ComposeError::Field(error)) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn a_number_too_large_for_its_field_is_refused(
        (layout, id) in layout_and_id(),
        beyond in prop_oneof![Just(0), Just(u32::MAX), 0..=3_u32, any::<u32>()],
    ) {
        let parts = layout.decode(id).unwrap();
        for (name, max) in [
            ("node", layout.max_node()),
            ("backend", layout.max_backend()),
            ("sequence", layout.max_sequence()),
        ] {
            let value = (max + 1).saturating_add(beyond);
            let parts = match name {
                "node" => Parts { node: value, ..parts },
                "backend" => Parts { backend: value, ..parts },
                _ => Parts { sequence: value, ..parts },
            };
            let error = FieldError { name, value: value.into(), max };
            prop_assert_eq!(layout.compose(parts), Err(ComposeError::Field(error)));
            if name == "node" {
                prop_assert_eq!(Identity::new(layout, parts.node), Err(error));
            }
        }
    }

    #[test]
    fn fields_are_the_bits_of_the_id((layout, id) in layout_and_id()) {
        let parts = layout.decode(id).unwrap();
        let mut above = layout.total_bits();
        let mut names = Vec::new();
        for field in layout.fields() {
            prop_assert!(field.bits > 0);
            // Without a gap, down to bit 0.
            prop_assert_eq!(field.shift + field.bits, above);
            above = field.shift;
            names.push(field.name);

            let value = id.get() as u64 >> field.shift & ((1 << field.bits) - 1);
            let expected = match field.name {
                "timestamp" => layout.tick_of(id).get(),
                "node" => parts.node.into(),
                "backend" => parts.backend.into(),
                "sequence" => parts.sequence.into(),
                other => panic!("{other}"),
            };
            prop_assert_eq!(value, expected, "{}", field.name);
        }
        prop_assert_eq!(above, 0);
        prop_assert_eq!(names[0], "timestamp");
        for (name, bits) in [
            ("node", layout.node_bits()),
            ("backend", layout.backend_bits()),
            ("sequence", layout.sequence_bits()),
        ] {
            let times = names.iter().filter(|field| **field == name).count();
            prop_assert_eq!(times, usize::from(bits > 0), "{}", name);
        }
    }

    #[test]
    fn ids_above_the_layout_do_not_decode(layout in layout(), id in any::<i64>()) {
        let id = SnowflakeId::new(id & i64::MAX).unwrap();
        prop_assert_eq!(layout.decode(id).is_ok(), id.get() >> layout.total_bits() == 0);
    }

    /// The neighbours decide: `min_id` is at or after the time and the ID before it is not;
    /// `max_id` the other way.
    #[test]
    fn bounds_are_exact((layout, time) in layout_and_time()) {
        let time_of = |id: SnowflakeId| layout.decode(id).unwrap().time;
        let neighbour = |id: SnowflakeId, step| {
            SnowflakeId::new(id.get().checked_add(step)?).filter(|id| *id <= layout.last_id())
        };
        match layout.min_id(time) {
            Ok(min) => {
                prop_assert!(time_of(min) >= time);
                if let Some(below) = neighbour(min, -1) {
                    prop_assert!(time_of(below) < time);
                }
            }
            Err(TimeError::AfterEnd { .. }) => prop_assert!(time_of(layout.last_id()) < time),
            Err(error) => prop_assert!(false, "{error}"),
        }
        match layout.max_id(time) {
            Some(max) => {
                prop_assert!(time_of(max) <= time);
                if let Some(above) = neighbour(max, 1) {
                    prop_assert!(time_of(above) > time);
                }
            }
            None => prop_assert!(time < layout.epoch()),
        }
        match layout.last_id_before(time) {
            Some(last) => {
                prop_assert!(time_of(last) < time);
                if let Some(above) = neighbour(last, 1) {
                    prop_assert!(time_of(above) >= time);
                }
            }
            None => prop_assert!(time <= layout.epoch()),
        }
    }

    #[test]
    fn ticks_around_a_bound((layout, bound) in layout_and_id()) {
        let above = layout.tick_above(bound);
        if above <= layout.last_tick() {
            prop_assert!(layout.first_id_of(above) >= bound);
        }
        if let Some(below) = above.get().checked_sub(1) {
            prop_assert!(layout.first_id_of(Tick::new(below)) < bound);
        }
        prop_assert!(layout.first_id_of(layout.tick_of(bound)) <= bound);
        prop_assert!(above.get() - layout.tick_of(bound).get() <= 1);
    }
}

proptest! {
    #![proptest_config(cases(20_000))]

    /// A comparison with a bound selects the IDs that their times select.
    #[test]
    fn bounds_select_what_times_select((layout, id, time) in layout_id_and_time()) {
        let own = layout.decode(id).unwrap().time;
        // No ID of the layout is as late where there is no `min_id`, none as early where there is
        // no `max_id`.
        let at_or_after = layout.min_id(time).is_ok_and(|min| id >= min);
        prop_assert_eq!(at_or_after, own >= time);
        let at_or_before = layout.max_id(time).is_some_and(|max| id <= max);
        prop_assert_eq!(at_or_before, own <= time);
        let before = layout.last_id_before(time).is_some_and(|last| id <= last);
        prop_assert_eq!(before, own < time);
    }

    #[test]
    fn texts_are_the_inverse_of_ids(encoding in encoding(), id in any_id()) {
        let text = encoding.encode(id);
        prop_assert_eq!(text.as_str().len(), encoding.width());
        prop_assert_eq!(encoding.decode(text.as_str()), Ok(id));
        prop_assert_eq!(decode_by_the_table(encoding, text.as_str()), Ok(id));
        if encoding == Encoding::Base32 {
            prop_assert_eq!(encoding.decode(&text.as_str().to_lowercase()), Ok(id));
        }
    }

    #[test]
    fn texts_sort_as_ids(encoding in encoding(), (a, b) in two_ids()) {
        let (text_a, text_b) = (encoding.encode(a), encoding.encode(b));
        prop_assert_eq!(text_a.as_bytes().cmp(text_b.as_bytes()), a.cmp(&b));
        prop_assert_eq!(text_a.cmp(&text_b), a.cmp(&b));
    }

    #[test]
    fn any_text_is_an_id_or_an_error(encoding in encoding(), text in text()) {
        let decoded = encoding.decode(&text);
        prop_assert_eq!(decoded, decode_by_the_table(encoding, &text));
        match decoded {
            Ok(id) => {
                let normalised = match encoding {
                    Encoding::Base32 => text.to_ascii_uppercase().replace(['I', 'L'], "1").replace('O', "0"),
                    Encoding::Base62 => text,
                };
                prop_assert_eq!(encoding.encode(id).to_string(), normalised);
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Next,
    Run(u32),
    MoveClock(i64),
    MaxBorrow(u64),
    Reserve(u64),
    Raise(i64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Next),
        6 => prop_oneof![1..=20_u32, 1..=5_000_u32, any::<u32>().prop_map(|n| n.max(1))].prop_map(Op::Run),
        4 => prop_oneof![-3..=3_i64, -500..=500_i64].prop_map(Op::MoveClock),
        1 => prop_oneof![Just(0), 0..=3_u64, 0..=200_u64].prop_map(Op::MaxBorrow),
        2 => (0..=300_u64).prop_map(Op::Reserve),
        1 => (-20..=20_i64).prop_map(Op::Raise),
    ]
}

/// The table of states, written down row by row: (tick, sequence) afterwards and the answer.
fn by_the_table(
    (tick, sequence): (u64, u32),
    sequence_bits: u32,
    allowance: Allowance,
    wanted: u32,
) -> ((u64, u32), Answer) {
    let range = 1_u64 << sequence_bits;
    let limit = allowance.now.get() + allowance.max_borrow;
    let start = match range / 16 {
        0 => 0,
        sixteenth => ((u64::from(sequence) + 1) % sixteenth) as u32,
    };
    let used_up = u64::from(sequence) + 1 == range;
    let until = |tick: u64| Answer::Wait {
        until: Tick::new(tick - allowance.max_borrow),
    };
    let (new_tick, first) = if tick > limit {
        let earliest = if used_up { tick + 1 } else { tick };
        return ((tick, sequence), until(earliest));
    } else if tick < allowance.now.get() {
        (allowance.now.get(), start)
    } else if !used_up {
        (tick, sequence + 1)
    } else if tick < limit {
        (tick + 1, start)
    } else {
        return ((tick, sequence), until(tick + 1));
    };
    if new_tick >= allowance.reserved.get() {
        let tick_wanted = Tick::new(new_tick);
        return ((tick, sequence), Answer::Reserve { tick: tick_wanted });
    }
    let count = u64::from(wanted).min(range - u64::from(first)) as u32;
    (
        (new_tick, first + (count - 1)),
        Answer::Issued(Run {
            tick: Tick::new(new_tick),
            first,
            count,
        }),
    )
}

proptest! {
    #![proptest_config(cases(3_000))]

    /// Random histories of one slot: every answer is the table's, and all that is issued ascends,
    /// stays below the reserved time, within what may be borrowed and above what was raised.
    #[test]
    fn slots_keep_to_the_table(
        sequence_bits in prop_oneof![1..=6_u32, 1..=31_u32],
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let slot = Slot::new();
        let mut state = (0, 0);
        let mut allowance = Allowance {
            now: Tick::new(1_000),
            max_borrow: 3,
            reserved: Tick::new(1_200),
        };
        let mut raised = 0;
        let mut last_word: Option<u64> = None;
        for op in ops {
            let (wanted, answer) = match op {
                Op::Next => (1, slot.next(sequence_bits, allowance)),
                Op::Run(count) => {
                    let wanted = NonZeroU32::new(count).unwrap();
                    (count, slot.next_run(sequence_bits, allowance, wanted, Borrow::Yes))
                }
                Op::MoveClock(by) => {
                    allowance.now = Tick::new(allowance.now.get().saturating_add_signed(by));
                    continue;
                }
                Op::MaxBorrow(ticks) => {
                    allowance.max_borrow = ticks;
                    continue;
                }
                Op::Reserve(ahead) => {
                    allowance.reserved = allowance.reserved.max(Tick::new(allowance.now.get() + ahead));
                    continue;
                }
                Op::Raise(by) => {
                    let to = allowance.now.get().saturating_add_signed(by);
                    slot.raise_to(sequence_bits, Tick::new(to));
                    raised = raised.max(to);
                    let before = (to << sequence_bits).saturating_sub(1);
                    let word = state.0 << sequence_bits | u64::from(state.1);
                    let word = word.max(before);
                    state = (word >> sequence_bits, (word & ((1 << sequence_bits) - 1)) as u32);
                    prop_assert_eq!(slot.last(sequence_bits), (Tick::new(state.0), state.1));
                    continue;
                }
            };
            let (after, expected) = by_the_table(state, sequence_bits, allowance, wanted);
            prop_assert_eq!(answer, expected);
            prop_assert_eq!(slot.last(sequence_bits), (Tick::new(after.0), after.1));
            state = after;

            match answer {
                Answer::Issued(Run { tick, first, count }) => {
                    prop_assert!(count >= 1 && count <= wanted);
                    let word = tick.get() << sequence_bits | u64::from(first);
                    prop_assert!(last_word.is_none_or(|last| last < word));
                    last_word = Some(word + u64::from(count - 1));
                    prop_assert_eq!(last_word.unwrap() >> sequence_bits, tick.get(), "one tick only");
                    prop_assert!(tick < allowance.reserved);
                    prop_assert!(tick >= allowance.now);
                    prop_assert!(tick.get() <= allowance.now.get() + allowance.max_borrow);
                    prop_assert!(tick.get() >= raised);
                }
                Answer::Wait { until } => {
                    // The earliest: it still waits a tick before, and does something else then.
                    let mut then = allowance;
                    then.now = Tick::new(until.get() - 1);
                    let early = by_the_table(state, sequence_bits, then, wanted).1;
                    prop_assert!(matches!(early, Answer::Wait { .. }), "{:?}", early);
                    then.now = until;
                    let due = by_the_table(state, sequence_bits, then, wanted).1;
                    prop_assert!(!matches!(due, Answer::Wait { .. }), "{:?}", due);
                }
                Answer::Reserve { tick } => prop_assert!(tick >= allowance.reserved),
                Answer::Closed => prop_assert!(false, "no slot is closed"),
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Move {
    /// This session asks for so many.
    Ask(usize, u32),
    Clock(i64),
    MaxBorrow(u64),
    /// What is reserved from now on ends so many ticks ahead.
    Reserve(u64),
    Raise(u64),
}

fn step() -> impl Strategy<Value = Move> {
    prop_oneof![
        12 => (0..6_usize, prop_oneof![4 => Just(1), 2 => 1..=40_u32]).prop_map(|(who, count)| Move::Ask(who, count)),
        3 => prop_oneof![Just(1_i64), -3..=3_i64, -50..=50_i64].prop_map(Move::Clock),
        1 => prop_oneof![Just(0), 0..=3_u64, 0..=40_u64].prop_map(Move::MaxBorrow),
        1 => prop_oneof![0..=4_u64, 0..=60_u64].prop_map(Move::Reserve),
        1 => (0..=5_u64).prop_map(Move::Raise),
    ]
}

proptest! {
    #![proptest_config(cases(500))]

    /// Random histories of sessions that share slots and go from one to another, asked as the
    /// extension asks: no ID repeats, each session's ascend as numbers, none is of time that is
    /// not reserved, and a session that waits could not have had one of its own slot either.
    #[test]
    fn sessions_ascend_and_repeat_nothing(
        text in prop_oneof![
            (0..=3_u32, 1..=6_u32).prop_map(|(backend, sequence)| format!("timestamp:41 node:2 backend:{backend} sequence:{sequence}")),
            (1..=3_u32, 1..=6_u32).prop_map(|(backend, sequence)| format!("timestamp:41 backend:{backend} node:2 sequence:{sequence}")),
            (1..=3_u32, 1..=6_u32).prop_map(|(backend, sequence)| format!("timestamp:41 sequence:{sequence} backend:{backend}")),
        ].prop_map(|text| text.replace(" backend:0", "")),
        homes in prop::collection::vec(any::<u32>(), 6),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let layout: Layout = text.parse().unwrap();
        let slots: Vec<Slot> = (0..=layout.max_backend()).map(|_| Slot::new()).collect();
        let homes = homes.iter().map(|home| home & layout.max_backend());
        let mut sessions: Vec<_> = homes
            .map(|home| SlotWalk::new(&layout, &slots, home))
            .map(|walk| (walk, walk.start(), None))
            .collect();
        let identity = Identity::new(layout, 0).unwrap();
        let mut allowance = Allowance {
            now: Tick::new(1_000),
            max_borrow: 3,
            reserved: layout.end_tick(),
        };
        let mut all = Vec::new();
        for step in steps {
            let (who, count) = match step {
                Move::Ask(who, count) => (who, NonZeroU32::new(count).unwrap()),
                Move::Clock(by) => {
                    allowance.now = Tick::new(allowance.now.get().saturating_add_signed(by));
                    continue;
                }
                Move::MaxBorrow(ticks) => {
                    allowance.max_borrow = ticks;
                    continue;
                }
                Move::Reserve(ahead) => {
                    allowance.reserved = Tick::new(allowance.now.get() + ahead).min(layout.end_tick());
                    continue;
                }
                Move::Raise(by) => {
                    for slot in &slots {
                        slot.raise_to(layout.sequence_bits(), Tick::new(allowance.now.get() + by));
                    }
                    continue;
                }
            };
            let (walk, position, last) = &mut sessions[who];
            let before = *position;
            prop_assert_eq!(Position::from_words(before.words()), before);
            let at_once = || {
                let slot = &slots[before.slot() as usize];
                let bits = layout.sequence_bits();
                match slot.next_run(bits, allowance, NonZeroU32::MIN, Borrow::No) {
                    answer @ Answer::Issued(run) => Some((before.after(run), answer)),
                    _ => None,
                }
            };
            let (after, answer) = Some(before)
                .filter(|position| count.get() == 1 && position.may_stay(allowance.now))
                .and_then(|_| at_once())
                .unwrap_or_else(|| walk.next_run(before, allowance, count));
            *position = after;
            let number = after.slot();
            match answer {
                Answer::Issued(run) => {
                    prop_assert!(run.tick >= allowance.now && run.tick < allowance.reserved);
                    prop_assert!(run.tick.get() <= allowance.now.get() + allowance.max_borrow);
                    for sequence in run.first..run.first + run.count {
                        let id = identity.id(number, run.tick, sequence);
                        prop_assert!(last.is_none_or(|last| last < id), "{:?} then {:?}", last, id);
                        *last = Some(id);
                        all.push(id);
                    }
                }
                Answer::Wait { until } => {
                    prop_assert_eq!(after, before);
                    prop_assert!(until > allowance.now);
                    let is_past = last.is_none_or(|last| allowance.now > layout.tick_of(last));
                    let own = if is_past { walk.home() } else { before.slot() };
                    let bits = layout.sequence_bits();
                    let alone = slots[own as usize].next_run(bits, allowance, count, Borrow::Yes);
                    prop_assert_eq!(alone, answer);
                }
                Answer::Reserve { tick } => {
                    prop_assert_eq!(after, before);
                    prop_assert!(tick >= allowance.reserved);
                }
                Answer::Closed => prop_assert!(false, "no slot is closed"),
            }
        }
        let issued = all.len();
        all.sort_unstable();
        all.dedup();
        prop_assert_eq!(all.len(), issued);
    }
}
