//! What a query means if the columns of relations had other types. Nothing is created,
//! planned or run.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use pgrx::{PgBox, PgList, is_a, pg_guard, pg_sys};

/// The queries that stand for relations, in the order of these, after another query.
struct Stands<'a> {
    relations: &'a [pg_sys::Oid],
    queries: PgList<pg_sys::RawStmt>,
}

/// Analyzes the first statement of a text, a query. The other statements are queries, one
/// for each of the relations, that take their places in it. Raises the error that a
/// statement would raise. Returns a query with the columns of the result, which can stand
/// for it; `None` if there is another number of statements.
pub fn result_columns(text: &CStr, relations: &[pg_sys::Oid]) -> Option<CString> {
    // SAFETY: a text with a zero byte at its end; the nodes of parser and analysis live in
    // the present memory context, as `stands` does.
    unsafe {
        let queries = PgList::<pg_sys::RawStmt>::from_pg(pg_sys::pg_parse_query(text.as_ptr()));
        if queries.len() != relations.len() + 1 {
            return None;
        }
        let query = queries.get_ptr(0)?;
        let stands = Stands { relations, queries };
        put_stands((*query).stmt, (&raw const stands).cast_mut().cast());
        let analyzed = pg_sys::parse_analyze_fixedparams(
            query,
            text.as_ptr(),
            ptr::null(),
            0,
            ptr::null_mut(),
        );
        let targets = PgList::<pg_sys::TargetEntry>::from_pg((*analyzed).targetList);
        let columns: Vec<_> = targets
            .iter_ptr()
            .filter(|target| !(**target).resjunk)
            .map(|target| column(target))
            .collect();
        let mut result = b"SELECT ".to_vec();
        result.extend(columns.join(&b", "[..]));
        CString::new(result).ok()
    }
}

/// A column of the same name and type.
///
/// # Safety
/// A column of an analyzed query.
unsafe fn column(target: *mut pg_sys::TargetEntry) -> Vec<u8> {
    // SAFETY: the caller's; both texts end with a zero byte.
    unsafe {
        let value = (*target).expr.cast::<pg_sys::Node>();
        let flags = pg_sys::FORMAT_TYPE_TYPEMOD_GIVEN | pg_sys::FORMAT_TYPE_FORCE_QUALIFY;
        let type_name = pg_sys::format_type_extended(
            pg_sys::exprType(value),
            pg_sys::exprTypmod(value),
            flags as pg_sys::bits16,
        );
        let name: *const c_char = if (*target).resname.is_null() {
            c"?column?".as_ptr()
        } else {
            (*target).resname
        };
        [
            &b"NULL::"[..],
            CStr::from_ptr(type_name).to_bytes(),
            b" AS ",
            CStr::from_ptr(pg_sys::quote_identifier(name)).to_bytes(),
        ]
        .concat()
    }
}

/// Walks a query and puts the stands into it.
#[pg_guard]
unsafe extern "C-unwind" fn put_stands(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: a node of the parser, whose tag shows what it is; the context is that of
    // `result_columns`.
    unsafe {
        if node.is_null() {
            return false;
        }
        let stands = &*context.cast::<Stands<'_>>();
        if is_a(node, pg_sys::NodeTag::T_SelectStmt) {
            let from = (*node.cast::<pg_sys::SelectStmt>()).fromClause;
            for index in 0..PgList::<pg_sys::Node>::from_pg(from).len() {
                stands.put(&raw mut (*(*from).elements.add(index)).ptr_value);
            }
        } else if is_a(node, pg_sys::NodeTag::T_JoinExpr) {
            let join = node.cast::<pg_sys::JoinExpr>();
            stands.put((&raw mut (*join).larg).cast());
            stands.put((&raw mut (*join).rarg).cast());
        }
        pg_sys::raw_expression_tree_walker(node, Some(put_stands), context)
    }
}

impl Stands<'_> {
    /// Replaces the name of a relation by the query that stands for it.
    ///
    /// # Safety
    /// The place of a node of the parser.
    unsafe fn put(&self, place: *mut *mut c_void) {
        // SAFETY: the caller's; the names end with a zero byte, and the new node lives as
        // long as the tree.
        unsafe {
            let name = (*place).cast::<pg_sys::RangeVar>();
            if name.is_null()
                || !is_a(name.cast(), pg_sys::NodeTag::T_RangeVar)
                // The name of a WITH query has no schema.
                || (*name).schemaname.is_null()
            {
                return;
            }
            let relation = pg_sys::RangeVarGetRelidExtended(
                name,
                pg_sys::NoLock as pg_sys::LOCKMODE,
                pg_sys::RVROption::RVR_MISSING_OK,
                None,
                ptr::null_mut(),
            );
            let Some(index) = self.relations.iter().position(|other| *other == relation) else {
                return;
            };
            let Some(query) = self.queries.get_ptr(index + 1) else {
                return;
            };
            let mut subselect =
                PgBox::<pg_sys::RangeSubselect>::alloc_node(pg_sys::NodeTag::T_RangeSubselect);
            subselect.subquery = pg_sys::copyObjectImpl((*query).stmt.cast()).cast();
            subselect.alias = if (*name).alias.is_null() {
                pg_sys::makeAlias((*name).relname, ptr::null_mut())
            } else {
                (*name).alias
            };
            *place = subselect.into_pg().cast();
        }
    }
}
