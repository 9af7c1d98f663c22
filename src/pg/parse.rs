//! The parser: the names in an expression.

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use pgrx::{PgList, is_a, pg_guard, pg_sys};

/// A name without a schema or a table in an expression.
pub struct PlainName {
    /// Where it begins, as bytes of the expression.
    pub start: usize,
    /// Of what it is the name.
    pub kind: NameKind,
    /// The name, without the quotes.
    pub name: CString,
}

/// What has a name in an expression.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A column.
    Column,
    /// A function or a type.
    Object,
    /// An operator.
    Operator,
    /// A collation; the name begins after `COLLATE`.
    Collation,
}

/// What is found in an expression.
struct Found {
    names: Vec<PlainName>,
    /// Whether all references are plain names of columns.
    is_plain: bool,
}

impl Found {
    /// Takes a name at a location of the parsed text, unless it is qualified. The
    /// grammar qualifies the names that its own words stand for.
    ///
    /// # Safety
    /// A list of names of the parser, or null.
    unsafe fn add(&mut self, kind: NameKind, names: *mut pg_sys::List, location: i32) {
        // SAFETY: the tag shows what the node is, and its text ends with a zero
        // byte.
        unsafe {
            let names = PgList::<pg_sys::Node>::from_pg(names);
            let start = usize::try_from(location)
                .ok()
                .and_then(|location| location.checked_sub(BEFORE.len()));
            if let (1, Some(name), Some(start)) = (names.len(), names.get_ptr(0), start)
                && is_a(name, pg_sys::NodeTag::T_String)
            {
                if self.names.len() == MOST_NAMES {
                    self.is_plain = false;
                    return;
                }
                let name = CStr::from_ptr((*name.cast::<pg_sys::String>()).sval).to_owned();
                self.names.push(PlainName { start, kind, name });
                return;
            }
        }
        // A qualified column, or a star.
        self.is_plain &= kind != NameKind::Column;
    }
}

/// Any role can pass any text: an expression with more names is not a plain one.
const MOST_NAMES: usize = 10_000;

/// Before the expression, so that it is parsed as one.
const BEFORE: &[u8] = b"SELECT (";
const AFTER: &[u8] = b"\n)\0";

/// The plain names in an expression; `None` unless the text is one
/// expression whose references are plain names of columns. Raises a syntax error
/// for a text that is not SQL.
pub fn plain_names(expression: &CStr) -> Option<Vec<PlainName>> {
    let mut found = Found {
        names: Vec::new(),
        is_plain: true,
    };
    // SAFETY: a text with a zero byte at its end, in memory of its size. The parser
    // returns a list of statements, whose nodes live in the present memory context. The
    // walker passes `found` on, which outlives it.
    unsafe {
        let parts = [BEFORE, expression.to_bytes(), AFTER];
        let text = pg_sys::palloc(parts.iter().map(|part| part.len()).sum()).cast::<u8>();
        let mut end = text;
        for part in parts {
            ptr::copy_nonoverlapping(part.as_ptr(), end, part.len());
            end = end.add(part.len());
        }
        let statements = PgList::<pg_sys::RawStmt>::from_pg(pg_sys::raw_parser(
            text.cast(),
            pg_sys::RawParseMode::RAW_PARSE_DEFAULT,
        ));
        if statements.len() != 1 {
            return None;
        }
        let value = only_value((*statements.get_ptr(0)?).stmt)?;
        visit(value, (&raw mut found).cast());
    }
    found.is_plain.then_some(found.names)
}

/// The value of `SELECT (value)`, if the statement is that and no more.
///
/// # Safety
/// A node of the parser.
unsafe fn only_value(statement: *mut pg_sys::Node) -> Option<*mut pg_sys::Node> {
    // SAFETY: the tags show what the nodes are.
    unsafe {
        if statement.is_null() || !is_a(statement, pg_sys::NodeTag::T_SelectStmt) {
            return None;
        }
        let select = &*statement.cast::<pg_sys::SelectStmt>();
        let is_more = select.op != pg_sys::SetOperation::SETOP_NONE
            || !select.intoClause.is_null()
            || !select.whereClause.is_null()
            || !select.havingClause.is_null()
            || !select.limitOffset.is_null()
            || !select.limitCount.is_null()
            || !select.withClause.is_null()
            || [
                select.distinctClause,
                select.fromClause,
                select.groupClause,
                select.windowClause,
                select.valuesLists,
                select.sortClause,
                select.lockingClause,
            ]
            .iter()
            .any(|list| !list.is_null());
        let targets = PgList::<pg_sys::Node>::from_pg(select.targetList);
        if is_more || targets.len() != 1 {
            return None;
        }
        let target = targets.get_ptr(0)?;
        if !is_a(target, pg_sys::NodeTag::T_ResTarget) {
            return None;
        }
        let target = &*target.cast::<pg_sys::ResTarget>();
        (target.name.is_null() && !target.val.is_null()).then_some(target.val)
    }
}

/// Walks an expression; true ends the walk.
#[pg_guard]
unsafe extern "C-unwind" fn visit(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    // SAFETY: the context is `plain_names`'s, the node one of the parser's.
    unsafe {
        if node.is_null() {
            return false;
        }
        let found = &mut *context.cast::<Found>();
        match (*node).type_ {
            pg_sys::NodeTag::T_ColumnRef => {
                let column = &*node.cast::<pg_sys::ColumnRef>();
                found.add(NameKind::Column, column.fields, column.location);
                return !found.is_plain;
            }
            pg_sys::NodeTag::T_FuncCall => {
                let call = &*node.cast::<pg_sys::FuncCall>();
                found.add(NameKind::Object, call.funcname, call.location);
            }
            pg_sys::NodeTag::T_TypeName => {
                let name = &*node.cast::<pg_sys::TypeName>();
                found.add(NameKind::Object, name.names, name.location);
            }
            pg_sys::NodeTag::T_CollateClause => {
                let clause = &*node.cast::<pg_sys::CollateClause>();
                found.add(NameKind::Collation, clause.collname, clause.location);
            }
            // Others, like NULLIF, have the operator in no place of the text.
            pg_sys::NodeTag::T_A_Expr => {
                let operation = &*node.cast::<pg_sys::A_Expr>();
                if [
                    pg_sys::A_Expr_Kind::AEXPR_OP,
                    pg_sys::A_Expr_Kind::AEXPR_OP_ANY,
                    pg_sys::A_Expr_Kind::AEXPR_OP_ALL,
                ]
                .contains(&operation.kind)
                {
                    found.add(NameKind::Operator, operation.name, operation.location);
                }
            }
            _ => (),
        }
        // The names in a query could be those of other tables.
        if is_a(node, pg_sys::NodeTag::T_SubLink) {
            found.is_plain = false;
            return true;
        }
        pg_sys::raw_expression_tree_walker(node, Some(visit), context)
    }
}

/// A name as SQL writes it, with quotes if it needs them.
pub fn quoted(name: &CStr) -> CString {
    // SAFETY: a name that ends with a zero byte; the result does too.
    unsafe { CStr::from_ptr(pg_sys::quote_identifier(name.as_ptr())).to_owned() }
}
