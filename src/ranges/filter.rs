//! Conditions on the time of an ID.
//!
//! The time is compared with anything that stays the same while the table is read. In
//! these cases the range is not equal to the condition but only follows from it. Then it
//! is added, and rows are counted twice in the estimate:
//!
//! - The time is shown in a time zone, read by its date, cut, or counted: see [`super::reading`].
//! - It is compared with one of several times. The range is from the first to the last.
//! - It is a column of `snowflake_decode` in FROM.
//! - The table, or one of its children, is arranged by the time: see [`super::arranged`].

use pgrx::pg_sys;

use super::arranged::is_arranged;
use super::functions::{Functions, TimeOfId};
use super::reading::{Kind, Reading};
use crate::encoding;
use crate::generator::accepted_layout;
use crate::pg;
use crate::pg::plan_tree::{BaseRelation, Comparison, Expr, OneOf, Operation};
use crate::pg::time::Zone;
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
        // The columns with a bound from below. A table has few; a query can have thousands
        // of conditions.
        let mut bounded: Vec<Expr<'a>> = Vec::new();
        for planned in &conditions {
            if let Planned::Range(_, range) = planned
                && range.lower.is_some()
                && !bounded.iter().any(|it| it.is_same(range.id))
            {
                bounded.push(range.id);
            }
        }
        let mut limits: Vec<Expr<'a>> = Vec::new();
        let mut all: Vec<Expr<'a>> = Vec::new();
        for planned in conditions {
            let (condition, range) = match planned {
                Planned::AsIs(condition) | Planned::Rewritten(condition) => {
                    all.push(condition);
                    continue;
                }
                Planned::Range(condition, range) => (condition, range),
            };
            all.extend(range.lower.into_iter().chain(range.upper));
            if !range.is_equal || self.is_arranged() {
                // It reads every ID that the range contains, and raises its error.
                all.push(condition);
                continue;
            }
            let id = range.id;
            // No bound from below is under -1.
            let zero = (!bounded.iter().any(|it| it.is_same(id))).then(|| {
                id.copy()
                    .compare(Comparison::GreaterOrEqual, Expr::bigint(0))
            });
            for limit in zero.into_iter().chain(range.check) {
                if !limits.iter().any(|it| it.is_same(limit)) {
                    limits.push(limit);
                    all.push(limit);
                }
            }
        }
        Some(all)
    }

    fn is_arranged(&mut self) -> bool {
        let (relation, functions) = (self.relation, self.functions);
        *self
            .is_arranged
            .get_or_insert_with(|| is_arranged(relation, functions.readers()))
    }

    fn planned(&mut self, condition: Expr<'a>) -> Planned<'a> {
        if let Some(alternatives) = condition.alternatives() {
            pg::process::check_stack();
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
    /// Reads the ID, where a number that is above those of the layout could be one of the
    /// range: that raises the condition's error.
    check: Option<Expr<'a>>,
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
        let has_all_bits = has_all_bits(self.time.layout)?;
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
            check: (!has_all_bits).then(|| self.time.read().is_not_null()),
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

/// Whether every `bigint` from 0 on is an ID of the layout by which a time is read. `None`
/// if that is not the same for all rows, or if the text is no layout: then the condition
/// raises an error for the first row, and not before. The same if the database's IDs were
/// generated with another layout than this server's: their reader is to say so.
fn has_all_bits(layout: Option<Expr<'_>>) -> Option<bool> {
    let layout = match layout {
        None if accepted_layout::is_other() => return None,
        None => settings::layout_for_reading().ok()?,
        Some(named) if named.is_parameter() => return Some(false),
        Some(named) => encoding::layout(named.constant_text()?.bytes()).ok()?,
    };
    Some(layout.last_id().get() == i64::MAX)
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
    /// Whether the user may execute what a bound calls, and what it is made of. Otherwise
    /// the error would name functions that the user has not written, or would be missing.
    fn may_call(&self) -> bool {
        let Functions {
            max_id,
            max_id_before,
            ..
        } = *self.functions;
        let mut called = [max_id, max_id_before]
            .map(|pair| pair.form(self.time.layout))
            .into_iter()
            .chain([
                self.saturated.function(),
                self.time.reader,
                self.time.timestamp,
            ]);
        called.all(|function| {
            // As nearly always. Then the plan is that of every role.
            pg::privileges::all_may_execute(function) || {
                self.relation.plan_for_role();
                pg::privileges::may_execute(function)
            }
        })
    }

    /// The last ID before the time, which is moved by microseconds.
    fn before(&self, other: Expr<'a>, micros: i64) -> Expr<'a> {
        #[cfg(feature = "testing")]
        if crate::unprotected::is("range_side") {
            return self.at(other, micros);
        }
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
            // longer than the server. Without preload, the layout may be decided after it.
            None if is_constant && settings::layout().is_some() => bound.computed(self.relation),
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
                vec![at, micros, zone.map_or_else(Self::session_zone, Expr::copy)]
            }
        };
        Expr::call_of(
            self.saturated.function(),
            pg_sys::TIMESTAMPTZOID,
            &arguments,
        )
    }

    /// For what has no zone, but was perhaps cut in that of the session.
    fn session_zone() -> Expr<'a> {
        let zone = Zone::of_session();
        if zone.has_long_changes() {
            Expr::text(zone.name())
        } else {
            Expr::text(c"UTC")
        }
    }
}
