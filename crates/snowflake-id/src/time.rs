//! Times, the clocks that show them, and ticks.

use std::fmt;

const MICROS_PER_SECOND: i128 = 1_000_000;
const MICROS_PER_DAY: i128 = 86_400 * MICROS_PER_SECOND;

/// A time: microseconds since 1970-01-01T00:00:00Z without leap seconds, as in PostgreSQL and Unix.
///
/// It has 128 bits because a layout may have 62 bits of one-second ticks: more microseconds than 64 bits hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i128);

impl Time {
    /// The time `micros` microseconds after (negative: before) 1970-01-01T00:00:00Z.
    pub const fn from_unix_micros(micros: i128) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    pub const fn unix_micros(self) -> i128 {
        self.0
    }
}

/// ISO 8601 in UTC, without trailing zeros in the fraction: `2025-01-01T00:00:00Z`, `2010-11-04T01:42:54.657Z`.
///
/// Years outside 0000 to 9999 have a sign and at least six digits, the standard's expanded form. The calendar is the
/// proleptic Gregorian one.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil_from_days(self.0.div_euclid(MICROS_PER_DAY));
        let micros = self.0.rem_euclid(MICROS_PER_DAY);
        let (seconds, fraction) = (micros / MICROS_PER_SECOND, micros % MICROS_PER_SECOND);
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+07}")?;
        }
        write!(
            f,
            "-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        )?;
        if fraction != 0 {
            let digits = format!("{fraction:06}");
            write!(f, ".{}", digits.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Time({self})")
    }
}

/// What a wall clock shows: microseconds since 1970-01-01T00:00:00Z. It can be set, so it may jump.
///
/// Sums and differences of this and of the two types below are limited to what 64 bits hold: 292,000 years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct WallTime(i64);

impl WallTime {
    /// Before every time that a clock can show.
    pub const MIN: Self = Self(i64::MIN);

    /// The time `micros` microseconds after (negative: before) 1970-01-01T00:00:00Z.
    #[inline]
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since 1970-01-01T00:00:00Z.
    #[inline]
    pub const fn unix_micros(self) -> i64 {
        self.0
    }

    /// How many microseconds this is after `earlier`; negative if it is before.
    #[inline]
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// That many microseconds later.
    #[inline]
    pub const fn plus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_add(micros))
    }

    /// That many microseconds earlier.
    #[inline]
    pub const fn minus_micros(self, micros: i64) -> Self {
        Self(self.0.saturating_sub(micros))
    }
}

impl From<WallTime> for Time {
    fn from(wall: WallTime) -> Self {
        Self::from_unix_micros(wall.0.into())
    }
}

/// A time after the last [`WallTime`] becomes that.
impl From<Time> for WallTime {
    fn from(time: Time) -> Self {
        Self(i64::try_from(time.unix_micros()).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Time::from(*self).fmt(f)
    }
}

/// What a clock that cannot be set shows: microseconds since a fixed time, usually the machine's boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct BootTime(i64);

impl BootTime {
    /// That many microseconds after the fixed time.
    #[inline]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the fixed time.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// How many microseconds this is after `earlier`; negative if it is before.
    #[inline]
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// By how many microseconds a wall clock is ahead of a clock that cannot be set. It changes only when the wall clock
/// steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct ClockOffset(i64);

impl ClockOffset {
    /// The offset of two clocks that were read at the same time.
    #[inline]
    pub const fn between(wall: WallTime, boot: BootTime) -> Self {
        Self(wall.0.saturating_sub(boot.0))
    }

    /// The offset of this many microseconds.
    #[inline]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The offset in microseconds.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// By how many microseconds the wall clock has stepped since it had the offset `earlier`: forward, or, negative,
    /// back.
    #[inline]
    pub const fn step_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Year, month and day of a day counted from 1970-01-01, for any year.
///
/// This is `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms": years that begin on
/// 1 March, in eras of 400 years. Calendar libraries end at the year 9999; a layout with many timestamp bits does not.
fn civil_from_days(days: i128) -> (i128, i128, i128) {
    const DAYS_PER_ERA: i128 = 146_097;
    let days = days + 719_468; // from 1970-01-01 to 0000-03-01
    let era = days.div_euclid(DAYS_PER_ERA);
    let day_of_era = days.rem_euclid(DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + i128::from(month <= 2);
    (year, month, day)
}

/// The unit of a layout's timestamp, as counted since the layout's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Tick(u64);

impl Tick {
    /// The tick that begins `ticks` ticks after the epoch.
    pub const fn new(ticks: u64) -> Self {
        Self(ticks)
    }

    /// Ticks since the epoch.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn text(micros: i128) -> String {
        Time::from_unix_micros(micros).to_string()
    }

    #[test]
    fn a_time_prints_as_iso_8601_without_trailing_zeros() {
        assert_eq!(text(0), "1970-01-01T00:00:00Z");
        assert_eq!(text(-1), "1969-12-31T23:59:59.999999Z");
        assert_eq!(text(1_288_834_974_657_000), "2010-11-04T01:42:54.657Z");
        assert_eq!(text(951_782_400_000_001), "2000-02-29T00:00:00.000001Z");
        assert_eq!(
            format!("{:?}", Time::from_unix_micros(0)),
            "Time(1970-01-01T00:00:00Z)"
        );
    }

    #[test]
    fn years_of_more_or_fewer_than_four_digits_have_a_sign_or_zeros() {
        assert_eq!(text(253_402_300_799_999_999), "9999-12-31T23:59:59.999999Z");
        assert_eq!(text(253_402_300_800_000_000), "+010000-01-01T00:00:00Z");
        assert_eq!(text(-62_167_219_200_000_000), "0000-01-01T00:00:00Z");
        assert_eq!(
            text(-62_167_219_200_000_001),
            "-000001-12-31T23:59:59.999999Z"
        );
        // 62 bits of one-second ticks
        assert_eq!(
            text((1 << 62) * MICROS_PER_SECOND),
            "+146138514283-06-19T07:45:04Z"
        );
    }

    #[test]
    fn the_ends_of_128_bits_do_not_overflow() {
        assert!(text(i128::MAX).starts_with('+'));
        assert!(text(i128::MIN).starts_with('-'));
    }
    #[test]
    fn clock_readings_do_not_overflow() {
        let (wall, boot) = (WallTime::from_unix_micros, BootTime::from_micros);
        assert_eq!(wall(5).micros_since(wall(7)), -2);
        assert_eq!(wall(i64::MAX).micros_since(WallTime::MIN), i64::MAX);
        assert_eq!(wall(i64::MAX - 1).plus_micros(9), wall(i64::MAX));
        assert_eq!(WallTime::MIN.minus_micros(1), WallTime::MIN);
        assert_eq!(wall(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(
            WallTime::from(Time::from_unix_micros(i128::MAX)),
            wall(i64::MAX)
        );
        let before = ClockOffset::between(wall(100), boot(40));
        assert_eq!(before.micros(), 60);
        let after = ClockOffset::between(wall(95), boot(45));
        assert_eq!(after.step_since(before), -10);
        assert_eq!(boot(45).micros_since(boot(40)), 5);
    }
}
