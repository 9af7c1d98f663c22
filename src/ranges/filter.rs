//! Conditions on the time of an ID.
//!
//! The time is compared with anything that stays the same while the table is read. In
//! these cases the range is not equal to the condition but only follows from it. Then it
//! is added, and rows are counted twice in the estimate:
//!
//! - The time is shown in a time zone, read by its date, cut, or counted: see [`reading`].
//! - It is compared with one of several times. The range is from the first to the last.
//! - It is a column of `snowflake_decode` in FROM.
//! - The table has an index on the time itself, or is partitioned by it. The planner
//!   would no longer find what that index is for.

use pgrx::pg_sys;

use super::functions::{Functions, TimeOfId};
use super::reading::{Kind, Reading};
use crate::encoding;
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Comparison, Expr, OneOf, Operation};
use crate::settings;

/// Puts ranges in the place of the conditions on this relation, or beside them.
pub fn apply(relation: BaseRelation<'_>, functions: &Functions) {
    let mut planning = Planning {
        relation,
        functions,
        is_arranged: None,
    };
    relation.rewrite_conditions(|conditions| {
        // For nearly all queries there is nothing to do, and nothing is allocated.
        if !conditions.iter().any(|it| planning.is_about_time(it)) {
            return None;
        }
        planning.with_ranges(&conditions.iter().collect::<Vec<_>>())
    });
}

/// What is known while a table's conditions are looked at.
struct Planning<'a, 'f> {
    relation: BaseRelation<'a>,
    functions: &'f Functions,
    /// Looked up once, and only where there is a range.
    is_arranged: Option<bool>,
}

impl<'a> Planning<'a, '_> {
    fn is_about_time(&self, condition: Expr<'a>) -> bool {
        match condition.alternatives().or_else(|| condition.parts()) {
            Some(parts) => parts.iter().any(|part| self.is_about_time(part)),
            None => Condition::read(condition, self.relation, self.functions).is_some(),
        }
    }

    /// The conditions with their ranges, in their order, if there is a range.
    fn with_ranges(&mut self, conditions: &[Expr<'a>]) -> Option<Vec<Expr<'a>>> {
        let conditions: Vec<_> = conditions.iter().map(|it| self.planned(*it)).collect();
        if conditions.iter().all(|it| matches!(it, Planned::AsIs(_))) {
            return None;
        }
        let has_lower_bound = |id: Expr<'_>| {
            conditions.iter().any(|it| {
                matches!(it, Planned::Range(_, range) if range.lower.is_some() && range.id.is_same(id))
            })
        };
        let (relation, readers) = (self.relation, self.functions.readers());
        let mut all: Vec<Expr<'a>> = Vec::new();
        for planned in &conditions {
            let (condition, range) = match planned {
                Planned::AsIs(condition) | Planned::Rewritten(condition) => {
                    all.push(*condition);
                    continue;
                }
                Planned::Range(condition, range) => (*condition, range),
            };
            all.extend(range.lower.into_iter().chain(range.upper));
            let is_arranged = &mut self.is_arranged;
            if !range.is_equal
                || *is_arranged.get_or_insert_with(|| relation.is_arranged_by(&readers))
            {
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
        Some(all)
    }

    fn planned(&mut self, condition: Expr<'a>) -> Planned<'a> {
        if let Some(alternatives) = condition.alternatives() {
            if !self.is_about_time(condition) {
                return Planned::AsIs(condition);
            }
            let mut has_range = false;
            let alternatives: Vec<_> = alternatives
                .iter()
                .map(|it| {
                    let parts = it
                        .parts()
                        .map_or_else(|| vec![it], |all| all.iter().collect());
                    let rewritten = self.with_ranges(&parts);
                    has_range |= rewritten.is_some();
                    rewritten.map_or(it, |parts| Expr::all_of(&parts))
                })
                .collect();
            return if has_range {
                Planned::Rewritten(Expr::any_of(&alternatives))
            } else {
                Planned::AsIs(condition)
            };
        }
        let range = Condition::read(condition, self.relation, self.functions)
            .and_then(|it| it.range(self.relation, self.functions));
        match range {
            Some(range) => Planned::Range(condition, range),
            None => Planned::AsIs(condition),
        }
    }
}

/// A condition, and what was found about it.
enum Planned<'a> {
    AsIs(Expr<'a>),
    /// An OR with ranges in it.
    Rewritten(Expr<'a>),
    Range(Expr<'a>, Range<'a>),
}

/// A condition that compares the time of an ID with something.
struct Condition<'a> {
    time: TimeOfId<'a>,
    reading: Reading<'a>,
    operator: pg_sys::Oid,
    /// The time is on the right side.
    is_commuted: bool,
    other: Other<'a>,
}

/// What a time is compared with.
#[derive(Clone, Copy)]
enum Other<'a> {
    One(Expr<'a>),
    OneOf(OneOf<'a>),
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
        let read = |expr| Reading::of(expr, relation, functions);
        if let Some(one_of) = condition.one_of() {
            let (time, reading) = read(one_of.left)?;
            return Some(Condition {
                time,
                reading,
                operator: one_of.operator,
                is_commuted: false,
                other: Other::OneOf(one_of),
            });
        }
        let Operation {
            operator,
            left,
            right,
        } = condition.operation()?;
        let (is_commuted, (time, reading), other) = match read(left) {
            Some(read) => (false, read, right),
            None => (true, read(right)?, left),
        };
        Some(Condition {
            time,
            reading,
            operator,
            is_commuted,
            other: Other::One(other),
        })
    }

    fn range(self, relation: BaseRelation<'a>, functions: &Functions) -> Option<Range<'a>> {
        let comparison = match self.reading.kind {
            Kind::Epoch => Comparison::of_numbers(self.operator)?,
            Kind::Instant | Kind::Local(_) => Comparison::of_times(self.operator)?,
        };
        let comparison = if self.is_commuted {
            comparison.commuted()
        } else {
            comparison
        };
        let last = Last::of(self.time.layout)?;
        let (first_other, last_other) = match self.other {
            Other::One(other) => (other, other),
            Other::OneOf(one_of) if comparison == Comparison::Equal => one_of.ends()?,
            Other::OneOf(_) => return None,
        };
        if !first_other.is_fixed() || !last_other.is_fixed() {
            return None;
        }
        let bounds = Bounds {
            time: self.time,
            saturated: Saturated::of(&self.reading, first_other.type_of(), functions)?,
            relation,
            functions,
        };
        if !bounds.may_call() {
            return None;
        }
        let id = self.time.id;
        let Reading { early, late, .. } = self.reading;
        let is_exact = self.reading.is_exact && matches!(self.other, Other::One(_));
        let from = || above(id, bounds.before(first_other, early.saturating_neg()));
        let above_it = || {
            if is_exact {
                above(id, bounds.at(first_other, 0))
            } else {
                from()
            }
        };
        let up_to = |bound: Expr<'a>| id.copy().compare(Comparison::LessOrEqual, bound);
        let to = || up_to(bounds.at(last_other, late));
        let below = || {
            if is_exact {
                up_to(bounds.before(last_other, 0))
            } else {
                to()
            }
        };
        let (lower, upper) = match comparison {
            Comparison::Less => (None, Some(below())),
            Comparison::LessOrEqual => (None, Some(to())),
            Comparison::Equal => (Some(from()), Some(to())),
            Comparison::GreaterOrEqual => (Some(from()), None),
            Comparison::Greater => (Some(above_it()), None),
        };
        Some(Range {
            id,
            lower,
            upper,
            last: last
                .bound(&bounds)
                .map(|bound| id.copy().compare(Comparison::LessOrEqual, bound)),
            is_equal: is_exact,
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

/// How a value that a time is compared with becomes a time.
#[derive(Clone, Copy)]
enum Saturated<'a> {
    /// In the session's time zone.
    InSession(pg_sys::Oid),
    /// In a named zone, which does not matter for what has none.
    In(pg_sys::Oid, Option<Expr<'a>>),
}

impl<'a> Saturated<'a> {
    fn of(reading: &Reading<'a>, of_type: pg_sys::Oid, functions: &Functions) -> Option<Self> {
        let is_time = of_type == pg_sys::TIMESTAMPTZOID;
        let has_no_zone = of_type == pg_sys::TIMESTAMPOID || of_type == pg_sys::DATEOID;
        let is_number = of_type == pg_sys::NUMERICOID || of_type == pg_sys::FLOAT8OID;
        match reading.kind {
            Kind::Instant | Kind::Local(None) if is_time => {
                Some(Saturated::In(functions.saturated_in_zone, None))
            }
            Kind::Instant | Kind::Local(None) if has_no_zone => {
                Some(Saturated::InSession(functions.saturated))
            }
            Kind::Local(zone @ Some(_)) if has_no_zone => {
                Some(Saturated::In(functions.saturated_in_zone, zone))
            }
            Kind::Epoch if is_number => Some(Saturated::In(functions.saturated_in_zone, None)),
            _ => None,
        }
    }

    fn function(self) -> pg_sys::Oid {
        match self {
            Saturated::InSession(function) | Saturated::In(function, _) => function,
        }
    }
}

/// Builds IDs from what a time is compared with.
struct Bounds<'a, 'f> {
    time: TimeOfId<'a>,
    saturated: Saturated<'a>,
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
            .chain([self.saturated.function()])
            .all(pg::privileges::may_execute)
    }

    /// The last ID before the time, which is moved by microseconds.
    fn before(&self, other: Expr<'a>, micros: i64) -> Expr<'a> {
        let function = self.functions.max_id_before.form(self.time.layout);
        self.bound(function, other, micros)
    }

    /// The last ID at or before the time, which is moved by microseconds.
    fn at(&self, other: Expr<'a>, micros: i64) -> Expr<'a> {
        let function = self.functions.max_id.form(self.time.layout);
        self.bound(function, other, micros)
    }

    fn bound(&self, function: pg_sys::Oid, other: Expr<'a>, micros: i64) -> Expr<'a> {
        let at = self.moved(other, micros).folded(self.relation);
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

    fn moved(&self, other: Expr<'a>, micros: i64) -> Expr<'a> {
        let at = other.copy();
        if micros == 0 && other.type_of() == pg_sys::TIMESTAMPTZOID {
            return at;
        }
        let micros = Expr::bigint(micros);
        let arguments = match self.saturated {
            Saturated::InSession(..) => vec![at, micros],
            Saturated::In(_, zone) => {
                vec![
                    at,
                    micros,
                    zone.map_or_else(|| Expr::text("UTC"), Expr::copy),
                ]
            }
        };
        Expr::call_of(
            self.saturated.function(),
            pg_sys::TIMESTAMPTZOID,
            &arguments,
        )
    }
}
