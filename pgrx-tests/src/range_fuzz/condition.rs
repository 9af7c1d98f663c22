//! Conditions at random, in every form that `src/ranges/reading.rs` knows and in some that
//! it does not.

use super::statement::{Generator, Source};

const OPERATORS: [&str; 5] = ["<", "<=", "=", ">=", ">"];

#[rustfmt::skip]
const UNITS: [&str; 13] = [
    "microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter",
    "year", "decade", "century", "millennium",
];

/// What is named in AT TIME ZONE: places, POSIX zones and abbreviations.
#[rustfmt::skip]
const NAMED_ZONES: [&str; 13] = [
    "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu", "UTC", "EST5EDT", "MET",
    "EST", "MSK", "XYZ-14", "America/Sao_Paulo", "Antarctica/Troll", "AAA-160BBB160,M3.2.0,M11.1.0",
];

impl Generator {
    /// A condition on some of these sources.
    pub(super) fn condition(&mut self, sources: &[Source]) -> String {
        self.nested_condition(sources, 0)
    }

    fn nested_condition(&mut self, sources: &[Source], depth: u32) -> String {
        let shape = if depth > 2 { 0 } else { self.below(100) };
        let part = |it: &mut Self| it.nested_condition(sources, depth + 1);
        match shape {
            0..55 => self.comparison(sources),
            55..72 => format!("({} AND {})", part(self), part(self)),
            72..92 => format!("({} OR {})", part(self), part(self)),
            _ => format!("(NOT {})", part(self)),
        }
    }

    fn comparison(&mut self, sources: &[Source]) -> String {
        const TIME: &str = "timestamptz";
        let source = &sources[self.below(sources.len())];
        let alias = &source.alias;
        let t = self.time_of(source);
        let o = self.pick(&OPERATORS);
        let unit = self.pick(&UNITS);
        let zone = self.pick(&NAMED_ZONES);
        match self.below(32) {
            0..5 => format!("{t} {o} {}", self.value(TIME)),
            5 => format!("{} {o} {t}", self.value(TIME)),
            6 => format!("{t} {o} {}", self.value("timestamp")),
            7 => format!("{t} {o} {}", self.value("date")),
            8 => format!("{t}::date {o} {}", self.value("date")),
            9 => {
                let of_type = self.pick(&["timestamp", TIME, "date"]);
                format!("{t}::timestamp {o} {}", self.value(of_type))
            }
            10 => {
                let of_type = self.pick(&["timestamp", TIME, "date"]);
                format!("date_trunc('{unit}', {t}) {o} {}", self.value(of_type))
            }
            11 => {
                let negated = self.pick(&["", "NOT "]);
                let symmetric = self.pick(&["", "SYMMETRIC "]);
                let (from, to) = (self.value(TIME), self.value(TIME));
                format!("{t} {negated}BETWEEN {symmetric}{from} AND {to}")
            }
            12 => format!(
                "({t} AT TIME ZONE '{zone}') {o} {}",
                self.value("timestamp")
            ),
            13 => format!(
                "({t} AT TIME ZONE '{zone}')::date {o} {}",
                self.value("date")
            ),
            14 => format!(
                "date_trunc('{unit}', {t} AT TIME ZONE '{zone}') AT TIME ZONE '{zone}' {o} {}",
                self.value(TIME)
            ),
            15 => format!(
                "date_trunc('{unit}', {t}, '{zone}') {o} {}",
                self.value(TIME)
            ),
            16 => {
                let minutes = self.below(5_000) + 1;
                let origin = self.pick(&["'2001-01-01'", "'2026-01-01 00:00+00'", "now()"]);
                let value = self.value(TIME);
                format!("date_bin('{minutes} minutes', {t}, {origin}) {o} {value}")
            }
            17 => {
                let seconds = self.seconds();
                format!("extract(epoch FROM {t}) {o} {seconds}::numeric")
            }
            18 => format!("date_part('epoch', {t}) {o} {}::float8", self.seconds()),
            19 => {
                let negated = self.pick(&["", "NOT "]);
                let list = [self.value(TIME), self.value(TIME), self.value(TIME)].join(", ");
                format!("{t} {negated}IN ({list})")
            }
            20 => {
                let first = self.value(TIME);
                let second = if self.chance(10) {
                    t.clone()
                } else {
                    self.value(TIME)
                };
                format!("{t} = ANY (ARRAY[{first}, {second}, NULL])")
            }
            21 => {
                let negated = self.pick(&["", "NOT "]);
                if self.chance(50) {
                    format!("{t} IS {negated}NULL")
                } else {
                    format!("{t} IS {negated}DISTINCT FROM {}", self.value(TIME))
                }
            }
            22 => {
                let id = self.below(1_000_000_000_000_000_000);
                format!("({t}, {alias}.id) {o} ({}, {id})", self.value(TIME))
            }
            23 => {
                let (when, value) = (self.below(2), self.value(TIME));
                format!(
                    "CASE WHEN {alias}.n % 2 = {when} THEN {t} {o} {value} ELSE {alias}.n > 20 END"
                )
            }
            24 => {
                let list = [self.value("date"), self.value("date")].join(", ");
                format!("{t}::date IN ({list})")
            }
            25 => format!("coalesce({t}, now()) {o} {}", self.value(TIME)),
            26 => {
                let other = &sources[self.below(sources.len())];
                format!("{t} {o} {}", self.time_of(other))
            }
            27 => format!("{alias}.n % {} = {}", self.below(4) + 2, self.below(2)),
            28 => format!("{alias}.id {o} {}", self.below(400_000_000_000_000_000)),
            29 => {
                let since = self.instant();
                format!("{alias}.id IN (SELECT since_in_tokyo(timestamp '{since}'))")
            }
            30 => format!("{t}::date::timestamptz {o} {}", self.value("date")),
            _ => format!(
                "date_trunc('{unit}', {t}::timestamp)::date {o} {}",
                self.value("date")
            ),
        }
    }

    /// What a time can be compared with, of a type: constant, parameter, stable, computed
    /// by a sub-select, NULL.
    pub(super) fn value(&mut self, of_type: &'static str) -> String {
        let literal = if of_type == "date" {
            self.day()
        } else {
            self.instant()
        };
        if self.chance(60) {
            let value = (!self.chance(6)).then(|| literal.clone());
            if let Some(parameter) = self.parameter(of_type, value) {
                return parameter;
            }
        }
        let is_ordinary = literal.starts_with("202");
        let sign = self.pick(&["+", "-"]);
        match self.below(100) {
            0..72 => format!("{of_type} '{literal}'"),
            72..78 => format!("(SELECT {of_type} '{literal}')"),
            78..82 => {
                format!("(SELECT max(v) FROM (VALUES ({of_type} '{literal}'), (NULL)) AS vs (v))")
            }
            82..88 if is_ordinary && of_type == "date" => {
                format!("(date '{literal}' {sign} {})", self.below(40))
            }
            82..88 if is_ordinary => {
                let (months, days, hours) = (self.below(14), self.below(40), self.below(30));
                format!(
                    "({of_type} '{literal}' {sign} interval '{months} months {days} days {hours} hours')"
                )
            }
            88..91 => format!("(now() - interval '{} days')::{of_type}", self.below(700)),
            91..93 => format!(
                "(localtimestamp - interval '{} days')::{of_type}",
                self.below(700)
            ),
            93..95 => format!("NULL::{of_type}"),
            95..97 => format!("coalesce(NULL, {of_type} '{literal}')"),
            97..99 => {
                let when = self.pick(&["true", "false"]);
                format!("(CASE WHEN {when} THEN {of_type} '{literal}' ELSE now()::{of_type} END)")
            }
            _ => format!("{of_type} '{literal}'"),
        }
    }

    /// A time near what tables have, or at an end.
    #[rustfmt::skip]
    fn instant(&mut self) -> String {
        const ENDS: [&str; 11] = [
            "infinity", "-infinity", "1990-01-01", "2025-01-01 00:00+00", "2025-06-30 23:59:60",
            "2094-09-07 15:47:35.551+00", "2094-09-07 15:47:35.552+00", "2200-01-01", "294000-01-01",
            "4000-01-01 BC", "0001-12-31 BC",
        ];
        let (hour, minute) = (self.below(24), self.below(60));
        match self.below(100) {
            0..15 => self.pick(&ENDS).to_owned(),
            15..25 => format!("2025-01-01 00:00:{}.{:06}+00", self.below(3), self.below(1_000_000)),
            25..55 => format!("2025-03-{:02} {hour:02}:{minute:02}", self.below(24) + 7),
            55..70 => format!("2025-06-0{} {hour:02}:00+00", self.below(3) + 1),
            70..90 => format!("2025-1{}-{:02} {hour:02}:{minute:02}", self.below(2), self.below(30) + 1),
            _ => format!("202{}-0{}-15", self.below(4) + 4, self.below(9) + 1),
        }
    }

    fn day(&mut self) -> String {
        const ENDS: [&str; 4] = ["infinity", "-infinity", "5874897-12-31", "4714-11-24 BC"];
        match self.below(10) {
            0 => self.pick(&ENDS).to_owned(),
            1..6 => format!("2025-03-{:02}", self.below(24) + 7),
            6 => format!("2025-06-0{}", self.below(3) + 1),
            _ => format!("2025-1{}-{:02}", self.below(2), self.below(30) + 1),
        }
    }

    /// Seconds since 1970.
    fn seconds(&mut self) -> String {
        const ENDS: [&str; 6] = [
            "'NaN'",
            "1e300",
            "(-1e300)",
            "'infinity'",
            "'-infinity'",
            "0",
        ];
        match self.below(6) {
            0 => self.pick(&ENDS).to_owned(),
            1 => format!("1735689600.{:06}", self.below(1_000_000)),
            _ => format!("{}.25", self.below(65_000_000) + 1_735_000_000),
        }
    }
}
