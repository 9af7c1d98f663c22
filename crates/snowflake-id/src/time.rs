//! Times, the clocks that show them, and ticks.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::Offset;

/// The calendar repeats after 400 years.
const YEARS_PER_ERA: i64 = 400;
const MICROS_PER_ERA: i64 = 146_097 * 86_400 * 1_000_000;

/// 2000-01-01T00:00:00Z, from which PostgreSQL counts, in microseconds since 1970.
const POSTGRES_EPOCH_MICROS: i64 = 946_684_800_000_000;

/// A time that PostgreSQL's `timestamptz` can show: from 4713 BC to 294276 AD, in microseconds
/// without leap seconds. What is outside becomes the nearest of the two ends.
// Microseconds since 2000, as in PostgreSQL: counted from 1970, 64 bits end in the year 294247.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

impl Time {
    /// -004713-11-24T00:00:00Z.
    pub const MIN: Self = Self(-211_813_488_000_000_000);

    /// +294276-12-31T23:59:59.999999Z.
    pub const MAX: Self = Self(9_223_371_331_199_999_999);

    /// The time `micros` microseconds after (negative: before) 1970-01-01T00:00:00Z.
    pub const fn from_unix_micros(micros: i64) -> Self {
        Self::from_postgres_micros(micros.saturating_sub(POSTGRES_EPOCH_MICROS))
    }

    /// Microseconds since 1970-01-01T00:00:00Z; [`i64::MAX`] in the years that 64 bits do not
    /// reach.
    pub const fn unix_micros(self) -> i64 {
        self.0.saturating_add(POSTGRES_EPOCH_MICROS)
    }

    /// The time `micros` microseconds after (negative: before) 2000-01-01T00:00:00Z: a finite
    /// `timestamptz`.
    pub const fn from_postgres_micros(micros: i64) -> Self {
        if micros < Self::MIN.0 {
            Self::MIN
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Microseconds since 2000-01-01T00:00:00Z: the value of a `timestamptz`.
    #[inline]
    pub const fn postgres_micros(self) -> i64 {
        self.0
    }

    /// How many microseconds this is after `earlier`; `None` if it is before.
    #[inline]
    pub(crate) const fn micros_since(self, earlier: Self) -> Option<u64> {
        if self.0 < earlier.0 {
            return None;
        }
        Some(self.0.abs_diff(earlier.0))
    }

    #[inline]
    pub(crate) const fn plus_micros(self, micros: u64) -> Self {
        Self::from_postgres_micros(self.0.saturating_add_unsigned(micros))
    }
}

/// ISO 8601 in UTC, without trailing zeros in the fraction: `2025-01-01T00:00:00Z`,
/// `2010-11-04T01:42:54.657Z`.
///
/// Years outside 0000 to 9999 have a sign and at least six digits, the standard's expanded form.
/// The calendar is the proleptic Gregorian one.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // jiff's calendar ends in the year 9999: it gets a time of the 400 years from 2000 on.
        let era = self.0.div_euclid(MICROS_PER_ERA);
        let within_era = POSTGRES_EPOCH_MICROS + self.0.rem_euclid(MICROS_PER_ERA);
        let timestamp = Timestamp::from_microsecond(within_era).map_err(|_| fmt::Error)?;
        let at = Offset::UTC.to_datetime(timestamp);
        let year = i64::from(at.year()) + era * YEARS_PER_ERA;
        if (0..=9999).contains(&year) {
            write!(f, "{year:04}")?;
        } else {
            write!(f, "{year:+07}")?;
        }
        write!(
            f,
            "-{:02}-{:02}T{:02}:{:02}:{:02}",
            at.month(),
            at.day(),
            at.hour(),
            at.minute(),
            at.second()
        )?;
        let fraction = at.subsec_nanosecond() / 1_000;
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
/// Sums and differences of this and of the two types below are limited to what 64 bits hold:
/// 292,000 years.
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
        Self::from_unix_micros(wall.0)
    }
}

/// A time after the last [`WallTime`] becomes that.
impl From<Time> for WallTime {
    fn from(time: Time) -> Self {
        Self(time.unix_micros())
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Time::from(*self).fmt(f)
    }
}

/// What a clock that cannot be set shows: microseconds since a fixed time, usually the machine's
/// boot.
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

/// By how many microseconds a wall clock is ahead of a clock that cannot be set. It changes only
/// when the wall clock steps.
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

    /// What a server trusts that makes its shared memory with its first ID, when this is the
    /// offset. That of its start, `at_start`, is known less exactly, and includes how long the
    /// start took: it counts where a clock was set since, by more than a minute. That is to be
    /// noticed as if the memory had been made at the start.
    pub const fn at_first_use(self, at_start: Self) -> Self {
        const LONGEST_START_MICROS: u64 = 60_000_000;
        if self.0.abs_diff(at_start.0) > LONGEST_START_MICROS {
            at_start
        } else {
            self
        }
    }

    /// By how many microseconds the wall clock has stepped since it had the offset `earlier`:
    /// forward, or, negative, back.
    #[inline]
    pub const fn step_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
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

    fn text(micros: i64) -> String {
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
        assert_eq!(text(i64::MAX), "+294247-01-10T04:00:54.775807Z");
        assert_eq!(Time::MIN.to_string(), "-004713-11-24T00:00:00Z");
        assert_eq!(Time::MAX.to_string(), "+294276-12-31T23:59:59.999999Z");
    }

    #[test]
    fn times_that_timestamptz_cannot_show_become_its_ends() {
        assert_eq!(Time::from_unix_micros(i64::MIN), Time::MIN);
        assert_eq!(Time::from_postgres_micros(i64::MIN), Time::MIN);
        assert_eq!(Time::from_postgres_micros(i64::MAX), Time::MAX);
        assert_eq!(Time::MIN.plus_micros(u64::MAX), Time::MAX);
        assert_eq!(Time::MIN.micros_since(Time::MAX), None);
        let all = Time::MAX.micros_since(Time::MIN).unwrap();
        assert_eq!(Time::MIN.plus_micros(all), Time::MAX);
        assert_eq!(Time::MIN.unix_micros(), -210_866_803_200_000_000);
        assert_eq!(Time::MAX.unix_micros(), i64::MAX);
    }

    #[test]
    fn clock_readings_do_not_overflow() {
        let (wall, boot) = (WallTime::from_unix_micros, BootTime::from_micros);
        assert_eq!(wall(5).micros_since(wall(7)), -2);
        assert_eq!(wall(i64::MAX).micros_since(WallTime::MIN), i64::MAX);
        assert_eq!(wall(i64::MAX - 1).plus_micros(9), wall(i64::MAX));
        assert_eq!(WallTime::MIN.minus_micros(1), WallTime::MIN);
        assert_eq!(wall(0).to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(WallTime::from(Time::MAX), wall(i64::MAX));
        let before = ClockOffset::between(wall(100), boot(40));
        assert_eq!(before.micros(), 60);
        let after = ClockOffset::between(wall(95), boot(45));
        assert_eq!(after.step_since(before), -10);
        assert_eq!(boot(45).micros_since(boot(40)), 5);
    }
}
