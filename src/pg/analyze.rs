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
/// for it; `None` if there is another number of statements, and for a CREATE RULE, whose
/// parts are analyzed.
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
        let analyze = |part: *mut pg_sys::Node| {
            put_stands(part, (&raw const stands).cast_mut().cast());
            (*query).stmt = part;
            let no_types = ptr::null();
            pg_sys::parse_analyze_fixedparams(query, text.as_ptr(), no_types, 0, ptr::null_mut())
        };
        let statement = (*query).stmt;
        if is_a(statement, pg_sys::NodeTag::T_RuleStmt) {
            for part in parts_of_rule(&*statement.cast(), &stands) {
                analyze(part);
            }
            return None;
        }
        let analyzed = analyze(statement);
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

/// The condition and the statements of a rule, with OLD and NEW among their relations.
/// Statements that cannot have these are left out.
///
/// # Safety
/// A rule of the parser.
unsafe fn parts_of_rule(rule: &pg_sys::RuleStmt, stands: &Stands<'_>) -> Vec<*mut pg_sys::Node> {
    // SAFETY: the caller's; the tags show what the statements are.
    unsafe {
        let Some(row) = stands.query_of(rule.relation) else {
            return Vec::new();
        };
        let add_rows = |from: *mut pg_sys::List| {
            let mut from = PgList::<pg_sys::Node>::from_pg(from);
            for name in [c"old", c"new"] {
                let alias = pg_sys::makeAlias(name.as_ptr(), ptr::null_mut());
                from.push(subselect(row, alias));
            }
            from.into_pg()
        };
        let mut condition = PgBox::<pg_sys::SelectStmt>::alloc_node(pg_sys::NodeTag::T_SelectStmt);
        condition.whereClause = rule.whereClause;
        let mut parts: Vec<*mut pg_sys::Node> = vec![condition.into_pg().cast()];
        for action in PgList::<pg_sys::Node>::from_pg(rule.actions).iter_ptr() {
            parts.push(if is_a(action, pg_sys::NodeTag::T_InsertStmt) {
                (*action.cast::<pg_sys::InsertStmt>()).selectStmt
            } else {
                action
            });
        }
        parts.retain(|part| match (**part).type_ {
            pg_sys::NodeTag::T_SelectStmt => {
                let select = part.cast::<pg_sys::SelectStmt>();
                if let Some(row) = PgList::<pg_sys::List>::from_pg((*select).valuesLists).head() {
                    (*select).valuesLists = ptr::null_mut();
                    (*select).targetList = targets(row);
                }
                (*select).fromClause = add_rows((*select).fromClause);
                (*select).op == pg_sys::SetOperation::SETOP_NONE
            }
            pg_sys::NodeTag::T_UpdateStmt => {
                let update = part.cast::<pg_sys::UpdateStmt>();
                (*update).fromClause = add_rows((*update).fromClause);
                true
            }
            pg_sys::NodeTag::T_DeleteStmt => {
                let delete = part.cast::<pg_sys::DeleteStmt>();
                (*delete).usingClause = add_rows((*delete).usingClause);
                true
            }
            _ => false,
        });
        parts
    }
}

/// The columns of a SELECT with these values.
///
/// # Safety
/// A list of expressions of the parser.
unsafe fn targets(values: *mut pg_sys::List) -> *mut pg_sys::List {
    // SAFETY: the caller's.
    unsafe {
        let mut targets = PgList::<pg_sys::Node>::new();
        for value in PgList::<pg_sys::Node>::from_pg(values).iter_ptr() {
            // Only INSERT can have it.
            if is_a(value, pg_sys::NodeTag::T_SetToDefault) {
                continue;
            }
            let mut target = PgBox::<pg_sys::ResTarget>::alloc_node(pg_sys::NodeTag::T_ResTarget);
            target.val = value;
            targets.push(target.into_pg().cast());
        }
        targets.into_pg()
    }
}

/// A query in parentheses, with a name.
///
/// # Safety
/// A query of the parser, which is copied.
unsafe fn subselect(query: *const pg_sys::Node, alias: *mut pg_sys::Alias) -> *mut pg_sys::Node {
    // SAFETY: the caller's; the new node lives as long as the tree.
    unsafe {
        let mut subselect =
            PgBox::<pg_sys::RangeSubselect>::alloc_node(pg_sys::NodeTag::T_RangeSubselect);
        subselect.subquery = pg_sys::copyObjectImpl(query.cast()).cast();
        subselect.alias = alias;
        subselect.into_pg().cast()
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
            // Of 16 bits, or of 32.
            flags as _,
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
        // SAFETY: the caller's; the tag shows what the node is.
        unsafe {
            let name = (*place).cast::<pg_sys::RangeVar>();
            if name.is_null() || !is_a(name.cast(), pg_sys::NodeTag::T_RangeVar) {
                return;
            }
            let Some(query) = self.query_of(name) else {
                return;
            };
            let alias = if (*name).alias.is_null() {
                pg_sys::makeAlias((*name).relname, ptr::null_mut())
            } else {
                (*name).alias
            };
            *place = subselect(query, alias).cast();
        }
    }

    /// The query that stands for a relation, if any.
    ///
    /// # Safety
    /// A name of the parser.
    unsafe fn query_of(&self, name: *const pg_sys::RangeVar) -> Option<*const pg_sys::Node> {
        // SAFETY: the caller's.
        unsafe {
            // The name of a WITH query has no schema.
            if (*name).schemaname.is_null() {
                return None;
            }
            let relation = pg_sys::RangeVarGetRelidExtended(
                name,
                pg_sys::NoLock as pg_sys::LOCKMODE,
                pg_sys::RVROption::RVR_MISSING_OK,
                None,
                ptr::null_mut(),
            );
            let index = self.relations.iter().position(|it| *it == relation)?;
            let query = self.queries.get_ptr(index + 1)?;
            Some((*query).stmt.cast_const())
        }
    }
}
