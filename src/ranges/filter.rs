//! Conditions on the time of an ID.
//!
//! The time is compared with anything that stays the same while the table is read. In
//! two cases the range is not equal to the condition but only follows from it. Then it is
//! added, and rows are counted twice in the estimate:
//!
//! - The time is read by its date, or cut by `date_trunc`. Where a change of the clocks
//!   makes a midnight ambiguous or leaves it out, the day of a time does not begin when
//!   PostgreSQL says that it does. The two differ by as much as the clocks change: by a
//!   day at most, where a country went to the other side of the date line. So the range
//!   is wider by a day.
//! - The table has an index on the time itself, or is partitioned by it. The planner
//!   would no longer find what that index is for.

use pgrx::pg_sys;

use super::functions::{Functions, TimeOfId};
use crate::encoding;
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Comparison, Expr, Exprs, Operation};
use crate::settings;

/// Puts ranges in the place of the conditions on this relation, or beside them.
pub fn apply(relation: BaseRelation<'_>, functions: &Functions) {
    // Asked for once, and only where there is a range.
    let mut is_arranged = None;
    relation.rewrite_conditions(|conditions| {
        let is_about_time = |it| Condition::read(it, relation, functions).is_some();
        if !conditions.iter().any(is_about_time) {
            return None;
        }
        let ranges = ranges_of(conditions, relation, functions);
        if ranges.iter().all(Option::is_none) {
            return None;
        }
        let is_arranged =
            *is_arranged.get_or_insert_with(|| relation.is_arranged_by(&functions.readers()));
        Some(with_ranges(conditions, &ranges, is_arranged))
    });
}

fn ranges_of<'a>(
    conditions: Exprs<'a>,
    relation: BaseRelation<'a>,
    functions: &Functions,
) -> Vec<Option<Range<'a>>> {
    conditions
        .iter()
        .map(|it| Condition::read(it, relation, functions)?.range(relation, functions))
        .collect()
}

/// The conditions with their ranges, in their order.
fn with_ranges<'a>(
    conditions: Exprs<'a>,
    ranges: &[Option<Range<'a>>],
    keep_conditions: bool,
) -> Vec<Expr<'a>> {
    let has_lower_bound = |id: Expr<'_>| {
        let mut ranges = ranges.iter().flatten();
        ranges.any(|range| range.lower.is_some() && range.id.is_same(id))
    };
    let mut all: Vec<Expr<'a>> = Vec::new();
    for (condition, range) in conditions.iter().zip(ranges) {
        let Some(range) = range else {
            all.push(condition);
            continue;
        };
        all.extend(range.lower.into_iter().chain(range.upper));
        if keep_conditions || !range.is_equal {
            // It reads every ID that the range contains, and raises its error.
            all.push(condition);
            continue;
        }
        let id = range.id;
        // No bound from below is under -1.
        let zero = (!has_lower_bound(id)).then(|| {
            id.copy()
                .compare(Comparison::GreaterOrEqual, Expr::bigint(0))
        });
        for limit in zero.into_iter().chain(range.last) {
            if !all.iter().any(|it| it.is_same(limit)) {
                all.push(limit);
            }
        }
    }
    all
}

/// A condition that compares the time of an ID with something.
struct Condition<'a> {
    time: TimeOfId<'a>,
    reading: Reading,
    operator: pg_sys::Oid,
    /// The time is on the right side.
    is_commuted: bool,
    other: Expr<'a>,
}

/// How the time is read.
#[derive(Clone, Copy)]
enum Reading {
    /// As it is.
    Time,
    /// By its date.
    Date,
    /// Cut to a unit of at most so many days.
    Cut { days: i32 },
}

/// What takes the place of a condition, or follows from it.
struct Range<'a> {
    id: Expr<'a>,
    lower: Option<Expr<'a>>,
    upper: Option<Expr<'a>>,
    /// That an ID is not above those of the layout, where one could be.
    last: Option<Expr<'a>>,
    /// Whether it is equal to the condition.
    is_equal: bool,
}

impl<'a> Condition<'a> {
    fn read(
        condition: Expr<'a>,
        relation: BaseRelation<'a>,
        functions: &Functions,
    ) -> Option<Self> {
        let Operation {
            operator,
            left,
            right,
        } = condition.operation()?;
        let read = |expr| read_time(expr, relation, functions);
        let (is_commuted, (time, reading), other) = match read(left) {
            Some(read) => (false, read, right),
            None => (true, read(right)?, left),
        };
        Some(Condition {
            time,
            reading,
            operator,
            is_commuted,
            other,
        })
    }

    fn range(self, relation: BaseRelation<'a>, functions: &Functions) -> Option<Range<'a>> {
        let comparison = Comparison::of_times(self.operator)?;
        let comparison = if self.is_commuted {
            comparison.commuted()
        } else {
            comparison
        };
        let last = Last::of(self.time.layout)?;
        let of_type = self.other.type_of();
        // A date compared with a time is the beginning of that day: another range.
        let is_other_type = matches!(self.reading, Reading::Date) && of_type != pg_sys::DATEOID;
        if is_other_type || !self.other.is_fixed() {
            return None;
        }
        let bounds = Bounds {
            time: self.time,
            other: self.other,
            of_type,
            saturated: functions.saturated(of_type)?,
            relation,
            functions,
        };
        if !bounds.may_call() {
            return None;
        }
        let id = self.time.id;
        let above = |bound: Expr<'a>| Some(above(id, bound));
        let up_to = |bound: Expr<'a>| Some(id.copy().compare(Comparison::LessOrEqual, bound));
        let Reading::Time = self.reading else {
            let (early, late) = widened(self.reading, comparison);
            return Some(Range {
                id,
                lower: early.and_then(|days| above(bounds.before(days))),
                upper: late.and_then(|days| up_to(bounds.before(days))),
                last: None,
                is_equal: false,
            });
        };
        let (lower, upper) = match comparison {
            Comparison::Less => (None, up_to(bounds.before(0))),
            Comparison::LessOrEqual => (None, up_to(bounds.at(0))),
            Comparison::Equal => (above(bounds.before(0)), up_to(bounds.at(0))),
            Comparison::GreaterOrEqual => (above(bounds.before(0)), None),
            Comparison::Greater => (above(bounds.at(0)), None),
        };
        Some(Range {
            id,
            lower,
            upper,
            last: last
                .bound(&bounds)
                .map(|bound| id.copy().compare(Comparison::LessOrEqual, bound)),
            is_equal: true,
        })
    }
}

/// That an ID is above a bound. `>=` where that is known to be the same: the planner does
/// not know that there is nothing between two integers, and would not leave out the
/// partition that ends with the bound.
fn above<'a>(id: Expr<'a>, bound: Expr<'a>) -> Expr<'a> {
    match bound.constant_bigint().and_then(|it| it.checked_add(1)) {
        Some(first) => id
            .copy()
            .compare(Comparison::GreaterOrEqual, Expr::bigint(first)),
        None => id.copy().compare(Comparison::Greater, bound),
    }
}

/// By how many days the bounds of what follows are off what is compared with.
fn widened(reading: Reading, comparison: Comparison) -> (Option<i32>, Option<i32>) {
    const EARLY: Option<i32> = Some(-1);
    let length = match reading {
        Reading::Time => 0,
        Reading::Date => 1,
        Reading::Cut { days } => days,
    };
    match comparison {
        Comparison::Less | Comparison::LessOrEqual => (None, Some(length + 1)),
        Comparison::Equal => (EARLY, Some(length + 1)),
        Comparison::GreaterOrEqual | Comparison::Greater => (EARLY, None),
    }
}

fn read_time<'a>(
    expr: Expr<'a>,
    relation: BaseRelation<'a>,
    functions: &Functions,
) -> Option<(TimeOfId<'a>, Reading)> {
    if let Some(time) = functions.time_of(expr, relation) {
        return Some((time, Reading::Time));
    }
    let call = expr.bare().call()?;
    match u32::from(call.function) {
        pg_sys::F_DATE_TIMESTAMPTZ => {
            let time = functions.time_of(call.arguments.get(0)?, relation)?;
            Some((time, Reading::Date))
        }
        pg_sys::F_DATE_TRUNC_TEXT_TIMESTAMPTZ => {
            let time = functions.time_of(call.arguments.get(1)?, relation)?;
            let unit = call.arguments.get(0)?.constant_text()?;
            let days = longest_days(unit.bytes())?;
            Some((time, Reading::Cut { days }))
        }
        _ => None,
    }
}

/// How long a unit of `date_trunc` lasts at most, in days.
fn longest_days(unit: &[u8]) -> Option<i32> {
    const UNITS: [(&str, i32); 13] = [
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
    UNITS
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name.as_bytes()))
        .map(|&(_, days)| days)
}

/// The last ID of the layout by which a time is read. A number above it raises an error
/// when it is read, so a range must not contain it.
enum Last<'a> {
    /// No `bigint` is above it.
    Highest,
    /// Known while planning.
    Known(i64),
    /// Of the layout in a parameter.
    Named(Expr<'a>),
}

impl<'a> Last<'a> {
    /// `None` if the layout is not the same for all rows, or if the text is none: then the
    /// condition raises an error for the first row, and not before.
    fn of(layout: Option<Expr<'a>>) -> Option<Self> {
        let layout = match layout {
            // The hook is set only if the library was preloaded.
            None => *settings::layout()?,
            Some(named) if named.is_parameter() => return Some(Last::Named(named)),
            Some(named) => encoding::layout(named.constant_text()?.bytes()).ok()?,
        };
        Some(match layout.last_id().get() {
            i64::MAX => Last::Highest,
            last => Last::Known(last),
        })
    }

    fn bound(self, bounds: &Bounds<'a, '_>) -> Option<Expr<'a>> {
        match self {
            Last::Highest => None,
            Last::Known(last) => Some(Expr::bigint(last)),
            Last::Named(layout) => Some(Expr::call_of(
                bounds.functions.max_id.form(Some(layout)),
                pg_sys::INT8OID,
                &[Expr::infinity(), layout.copy()],
            )),
        }
    }
}

/// Builds IDs from what a time is compared with.
struct Bounds<'a, 'f> {
    time: TimeOfId<'a>,
    other: Expr<'a>,
    of_type: pg_sys::Oid,
    saturated: pg_sys::Oid,
    relation: BaseRelation<'a>,
    functions: &'f Functions,
}

impl<'a> Bounds<'a, '_> {
    /// Whether the user may execute what a bound calls. Otherwise the error would name
    /// functions that the user has not written.
    fn may_call(&self) -> bool {
        let Functions {
            max_id,
            max_id_before,
            ..
        } = *self.functions;
        [max_id, max_id_before]
            .map(|pair| pair.form(self.time.layout))
            .into_iter()
            .chain([self.saturated])
            .all(pg::privileges::may_execute)
    }

    /// The last ID before the time, which is moved by days.
    fn before(&self, days: i32) -> Expr<'a> {
        let function = self.functions.max_id_before.form(self.time.layout);
        self.bound(function, days)
    }

    /// The last ID at or before the time, which is moved by days.
    fn at(&self, days: i32) -> Expr<'a> {
        let function = self.functions.max_id.form(self.time.layout);
        self.bound(function, days)
    }

    fn bound(&self, function: pg_sys::Oid, days: i32) -> Expr<'a> {
        let at = self.moved(days).folded(self.relation);
        let is_constant = at.is_constant();
        let arguments = [Some(at), self.time.layout.map(Expr::copy)];
        let arguments: Vec<_> = arguments.into_iter().flatten().collect();
        let bound = Expr::call_of(function, pg_sys::INT8OID, &arguments);
        match self.time.layout {
            // STABLE, because a restart can change this server's layout. No plan lives
            // longer than the server.
            None if is_constant => bound.computed(self.relation),
            _ => bound.folded(self.relation),
        }
    }

    fn moved(&self, days: i32) -> Expr<'a> {
        let other = self.other.copy();
        if days == 0 && self.of_type == pg_sys::TIMESTAMPTZOID {
            return other;
        }
        Expr::call_of(
            self.saturated,
            pg_sys::TIMESTAMPTZOID,
            &[other, Expr::integer(days)],
        )
    }
}
