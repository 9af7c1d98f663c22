//! CHECK constraints that refuse nothing, but tell something: `column >= from OR column <=
//! last OR true`. Where tables are copied, dumped or rebuilt, they are, too.

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use super::plan_tree::{Comparison, Expr};
use super::text::Text;

/// An expression as the catalog has it. No role can make a value of this type from a text.
#[derive(Clone, Copy)]
pub struct NodeTree<'a>(Text<'a>);

impl<'a> NodeTree<'a> {
    /// The two numbers, if it is a condition of this form on the column of this number.
    pub fn told_of(self, column: pg_sys::AttrNumber) -> Option<(i64, i64)> {
        // SAFETY: Postgres has written it.
        let condition = unsafe { Expr::of_text(self.0.to_c_str()) };
        let alternatives = condition.alternatives()?;
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|number| alternatives.get(number));
        let number = |comparison: Option<Expr<'a>>, wanted| {
            let operation = comparison?.operation()?;
            (operation.left.is_column(column)
                && Comparison::of_integers(operation.operator) == Some(wanted))
            .then(|| operation.right.constant_integer())
            .flatten()
        };
        if !third?.is_true() || fourth.is_some() {
            return None;
        }
        Some((
            number(first, Comparison::GreaterOrEqual)?,
            number(second, Comparison::LessOrEqual)?,
        ))
    }
}

// SAFETY: a `pg_node_tree` is laid out as a `text`.
unsafe impl<'fcx> ArgAbi<'fcx> for NodeTree<'fcx> {
    unsafe fn unbox_arg_unchecked(arg: Arg<'_, 'fcx>) -> Self {
        // SAFETY: the caller's.
        NodeTree(unsafe { Text::unbox_arg_unchecked(arg) })
    }
}

super::sql_type!(argument NodeTree<'_>, SqlMappingRef::As("pg_node_tree"));
