//! Calls of functions in FROM, in the place of which a planner support function puts a
//! query (PostgreSQL 19 and newer).

use pgrx::{PgList, pg_sys};

use super::plan_tree::{Expr, FunctionCall};
use super::planner::Replacement;

/// The request to put a query in the place of a call in FROM.
#[derive(Clone, Copy)]
pub struct InlineInFrom<'a>(&'a pg_sys::SupportRequestInlineInFrom);

impl<'a> InlineInFrom<'a> {
    pub(super) fn new(request: &'a pg_sys::SupportRequestInlineInFrom) -> Self {
        InlineInFrom(request)
    }

    /// The call.
    pub fn call(self) -> Option<FunctionCall<'a>> {
        // SAFETY: the function in FROM, which lives as long as the request.
        Expr::new(unsafe { (*self.0.rtfunc).funcexpr }).call()
    }

    /// Whether the query that is planned has an outer join.
    pub fn is_beside_outer_joins(self) -> bool {
        // SAFETY: the query of the planning; its relations are a list of such entries.
        unsafe {
            self.0.root.is_null()
                || PgList::<pg_sys::RangeTblEntry>::from_pg((*(*self.0.root).parse).rtable)
                    .iter_ptr()
                    .any(|entry| {
                        (*entry).rtekind == pg_sys::RTEKind::RTE_JOIN
                            && (*entry).jointype != pg_sys::JoinType::JOIN_INNER
                    })
        }
    }

    /// A row of functions, each called with the arguments of the call: the functions and what
    /// they return. The caller has the types right.
    pub fn row_of(self, columns: &[(pg_sys::Oid, pg_sys::Oid)]) -> Option<Replacement> {
        let types: Vec<_> = self.call()?.arguments.iter().map(Expr::type_of).collect();
        let calls: Vec<_> = columns
            .iter()
            .map(|(function, result)| {
                let arguments: Vec<_> = (1..)
                    .zip(&types)
                    .map(|(n, it)| Expr::argument(n, *it))
                    .collect();
                Expr::call_of(*function, *result, &arguments)
            })
            .collect();
        Some(Replacement(Expr::select(&calls).cast()))
    }
}
