//! The forms in which the time of an ID is read.
//!
//! Each form keeps the order of times, but for an hour or a day in which clocks are
//! changed: a midnight may be ambiguous or left out, and a country may go to the other
//! side of the date line. So a form is described by how much later or earlier than what it
//! shows a time can be.

use pgrx::pg_sys;

use super::functions::{Functions, TimeOfId};
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Expr};
use crate::pg::time::Zone;

const MICROS_PER_DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// What a double can be off from the microseconds of any layout's times, and much more.
const EPOCH_ERROR_MICROS: i64 = 1_000;

/// How a time is read.
#[derive(Clone, Copy)]
pub struct Reading<'a> {
    /// What is shown.
    pub kind: Kind<'a>,
    /// The time itself is compared, and nothing that only follows from it.
    pub is_exact: bool,
    /// How much a time can be before what is shown, in microseconds.
    pub early: i64,
    /// How much a time can be after what is shown, in microseconds.
    pub late: i64,
}

/// What a time is shown as.
#[derive(Clone, Copy)]
pub enum Kind<'a> {
    /// `timestamptz`
    Instant,
    /// `timestamp` or `date`, in a zone that is named by a constant, or in the session's.
    Local(Option<Expr<'a>>),
    /// Seconds since 1970, as `numeric` or `double precision`.
    Epoch,
}

impl<'a> Reading<'a> {
    /// If an expression shows the time of an ID of this relation.
    pub fn of(
        expr: Expr<'a>,
        relation: BaseRelation<'a>,
        functions: &Functions,
    ) -> Option<(TimeOfId<'a>, Self)> {
        use Kind::{Epoch, Instant, Local};
        if let Some(time) = functions.time_of(expr, relation) {
            let reading = Reading {
                kind: Instant,
                is_exact: !time.is_joined,
                early: 0,
                late: 0,
            };
            return Some((time, reading));
        }
        let call = expr.bare().call()?;
        let argument = |number: usize| call.arguments.get(number);
        let inner = |number: usize| {
            pg::process::check_stack();
            Self::of(argument(number)?, relation, functions)
        };
        let unit = || longest_micros(argument(0)?.constant_text()?.bytes());
        let (time, inner, kind, early, late) = match u32::from(call.function) {
            pg_sys::F_TIMESTAMP_TIMESTAMPTZ => {
                let (time, inner) = inner(0)?;
                (
                    time,
                    inner,
                    inner.shown_in(None)?,
                    MICROS_PER_DAY,
                    MICROS_PER_DAY,
                )
            }
            pg_sys::F_TIMEZONE_TEXT_TIMESTAMPTZ => {
                let (time, inner) = inner(1)?;
                let zone = argument(0)?;
                Zone::named(zone.constant_text()?)?;
                let kind = inner.shown_in(Some(zone))?;
                (time, inner, kind, MICROS_PER_DAY, MICROS_PER_DAY)
            }
            pg_sys::F_TIMESTAMPTZ_TIMESTAMP | pg_sys::F_TIMESTAMPTZ_DATE => {
                let (time, inner) = inner(0)?;
                let Local(None) = inner.kind else { return None };
                (time, inner, Instant, MICROS_PER_DAY, MICROS_PER_DAY)
            }
            pg_sys::F_TIMEZONE_TEXT_TIMESTAMP => {
                let (time, inner) = inner(1)?;
                let Local(Some(zone)) = inner.kind else {
                    return None;
                };
                if !zone.is_same(argument(0)?) || has_long_changes(zone)? {
                    return None;
                }
                (time, inner, Instant, MICROS_PER_DAY, MICROS_PER_DAY)
            }
            pg_sys::F_DATE_TIMESTAMPTZ => {
                let (time, inner) = inner(0)?;
                (
                    time,
                    inner,
                    inner.shown_in(None)?,
                    MICROS_PER_DAY,
                    2 * MICROS_PER_DAY,
                )
            }
            pg_sys::F_DATE_TIMESTAMP => {
                let (time, inner) = inner(0)?;
                (time, inner, inner.kind, 0, MICROS_PER_DAY)
            }
            pg_sys::F_TIMESTAMP_DATE => {
                let (time, inner) = inner(0)?;
                (time, inner, inner.kind, 0, 0)
            }
            // The bounds allow for long changes in the zone of the session only.
            pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT if has_long_changes(argument(2)?)? => {
                return None;
            }
            pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ
            | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ_TEXT
            | pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMP => {
                let (time, inner) = inner(1)?;
                (
                    time,
                    inner,
                    inner.kind,
                    MICROS_PER_DAY,
                    unit()? + MICROS_PER_DAY,
                )
            }
            // Some minor releases return the bin before if a time is before the origin.
            pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMPTZ_TIMESTAMPTZ
            | pg_sys::F_DATE_BIN_INTERVAL_TIMESTAMP_TIMESTAMP => {
                let (time, inner) = inner(1)?;
                let length = argument(0)?.constant_interval_micros()?;
                (time, inner, inner.kind, 0, length.checked_mul(2)?)
            }
            pg_sys::F_EXTRACT_TEXT_TIMESTAMPTZ | pg_sys::F_DATE_PART_TEXT_TIMESTAMPTZ => {
                let (time, inner) = inner(1)?;
                let field = argument(0)?.constant_text()?;
                let Instant = inner.kind else { return None };
                if !field.bytes().eq_ignore_ascii_case(b"epoch") {
                    return None;
                }
                (time, inner, Epoch, EPOCH_ERROR_MICROS, EPOCH_ERROR_MICROS)
            }
            _ => return None,
        };
        #[cfg(feature = "testing")]
        let (early, late) = if crate::unprotected::is("range_zone") {
            (early - MICROS_PER_DAY, late - MICROS_PER_DAY)
        } else {
            (early, late)
        };
        let reading = Reading {
            kind,
            is_exact: false,
            early: inner.early.checked_add(early)?,
            late: inner.late.checked_add(late)?,
        };
        Some((time, reading))
    }

    fn shown_in(self, zone: Option<Expr<'a>>) -> Option<Kind<'a>> {
        matches!(self.kind, Kind::Instant).then_some(Kind::Local(zone))
    }
}

/// Whether clocks of a zone may be changed by more than a day; `None` unless it is named by a constant.
fn has_long_changes(zone: Expr<'_>) -> Option<bool> {
    Some(Zone::named(zone.constant_text()?)?.has_long_changes())
}

/// How long a unit of `date_trunc` lasts at most, in microseconds.
fn longest_micros(unit: &[u8]) -> Option<i64> {
    const DAYS: [(&str, i64); 13] = [
        ("microseconds", 1),
        ("milliseconds", 1),
        ("second", 1),
        ("minute", 1),
        ("hour", 1),
        ("day", 1),
        ("week", 7),
        ("month", 31),
        ("quarter", 92),
        ("year", 366),
        ("decade", 3_660),
        ("century", 36_600),
        ("millennium", 366_000),
    ];
    DAYS.iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()))
        .map(|&(_, days)| days * MICROS_PER_DAY)
}
