//! Queries that are being planned: the conditions on a table, and the sort order.
//!
//! `get_relation_info_hook` is called once for each table of a query, after views were
//! pulled up, SQL functions inlined and constants folded, and before conditions are
//! given to tables, partitions pruned and paths made. What changes in the query then is
//! planned as if it had been written so.
//!
//! The query may be changed: it belongs to the planning that is going on. A plan that
//! is kept, a sub-select, a subquery and the query for a `min()` are all copied before
//! they are planned. Lists may be shared within it, so they are replaced and not
//! written to.
//!
//! (From PostgreSQL 19 on the hook is `build_simple_rel_hook`.)

use std::ffi::{CStr, c_int, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;
use std::{ptr, slice};

use pgrx::{PgBox, PgList, is_a, pg_guard, pg_sys};

use super::text::Text;

/// Nodes of a list.
#[derive(Clone, Copy)]
pub struct Exprs<'a>(&'a [pg_sys::ListCell]);

impl<'a> Exprs<'a> {
    /// # Safety
    /// A list of expressions, or null, that lives for `'a`.
    unsafe fn new(list: *const pg_sys::List) -> Self {
        // SAFETY: the caller's; a list has as many elements as it says. They are read
        // directly, because a guarded call for each would be felt in large queries.
        unsafe {
            match list.as_ref() {
                Some(list) if list.length > 0 => {
                    Exprs(slice::from_raw_parts(list.elements, list.length as usize))
                }
                _ => Exprs(&[]),
            }
        }
    }

    /// The element at this position, from 0.
    pub fn get(self, position: usize) -> Option<Expr<'a>> {
        self.0.get(position).map(Expr::of_cell)
    }

    /// The only two elements.
    fn pair(self) -> Option<(Expr<'a>, Expr<'a>)> {
        match self.0 {
            [first, second] => Some((Expr::of_cell(first), Expr::of_cell(second))),
            _ => None,
        }
    }

    /// All elements.
    pub fn iter(self) -> impl Iterator<Item = Expr<'a>> {
        self.0.iter().map(Expr::of_cell)
    }
}

/// An expression of a query. It lives as long as the planning.
#[derive(Clone, Copy)]
pub struct Expr<'a> {
    /// May be null: a list of expressions can have such elements.
    node: *mut pg_sys::Node,
    lifetime: PhantomData<&'a ()>,
}

/// A call of a function.
#[derive(Clone, Copy)]
pub struct FunctionCall<'a> {
    /// The function.
    pub function: pg_sys::Oid,
    /// Its arguments.
    pub arguments: Exprs<'a>,
}

/// An operator with two operands.
#[derive(Clone, Copy)]
pub struct Operation<'a> {
    /// The operator.
    pub operator: pg_sys::Oid,
    /// What is on its left.
    pub left: Expr<'a>,
    /// What is on its right.
    pub right: Expr<'a>,
}

/// `= ANY`, which `IN` is too: an operator with one of several operands on its right.
#[derive(Clone, Copy)]
pub struct OneOf<'a> {
    /// The operator.
    pub operator: pg_sys::Oid,
    /// What is on its left.
    pub left: Expr<'a>,
    array: Expr<'a>,
}

/// How a value compares: the strategies of a B-tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Comparison {
    /// Of times, if the operator is of PostgreSQL's operator family for these.
    pub fn of_times(operator: pg_sys::Oid) -> Option<Self> {
        // SAFETY: a catalog lookup.
        let family = unsafe { pg_sys::get_opclass_family(pg_sys::TIMESTAMPTZ_BTREE_OPS_OID) };
        Self::in_family(operator, family)
    }

    /// Of numbers as `extract` and `date_part` return them, likewise.
    pub fn of_numbers(operator: pg_sys::Oid) -> Option<Self> {
        [pg_sys::NUMERIC_BTREE_OPS_OID, pg_sys::FLOAT8_BTREE_OPS_OID]
            .into_iter()
            .find_map(|class| {
                // SAFETY: a catalog lookup.
                let family = unsafe { pg_sys::get_opclass_family(class) };
                Self::in_family(operator, family)
            })
    }

    /// Of integers, likewise.
    pub fn of_integers(operator: pg_sys::Oid) -> Option<Self> {
        Self::in_family(operator, pg_sys::INTEGER_BTREE_FAM_OID)
    }

    fn in_family(operator: pg_sys::Oid, family: pg_sys::Oid) -> Option<Self> {
        // SAFETY: a catalog lookup; 0 if the operator is not in the family.
        let strategy = unsafe { pg_sys::get_op_opfamily_strategy(operator, family) };
        match strategy as u32 {
            pg_sys::BTLessStrategyNumber => Some(Self::Less),
            pg_sys::BTLessEqualStrategyNumber => Some(Self::LessOrEqual),
            pg_sys::BTEqualStrategyNumber => Some(Self::Equal),
            pg_sys::BTGreaterEqualStrategyNumber => Some(Self::GreaterOrEqual),
            pg_sys::BTGreaterStrategyNumber => Some(Self::Greater),
            _ => None,
        }
    }

    /// The same with the operands exchanged.
    pub fn commuted(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Equal => Self::Equal,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Greater => Self::Less,
        }
    }

    /// The operator of `bigint`.
    fn of_bigint(self) -> pg_sys::Oid {
        pg_sys::Oid::from(match self {
            Self::Less => pg_sys::Int8LessOperator,
            // Not in Postgres' headers, but fixed: pg_operator.dat.
            Self::LessOrEqual => 414,
            Self::Equal => 410,
            Self::GreaterOrEqual => 415,
            Self::Greater => 413,
        })
    }
}

impl<'a> Expr<'a> {
    fn of_cell(cell: &pg_sys::ListCell) -> Self {
        // SAFETY: only lists of nodes are made into `Exprs`.
        Self::new(unsafe { cell.ptr_value.cast() })
    }

    pub(super) fn new(node: *mut pg_sys::Node) -> Self {
        Expr {
            node,
            lifetime: PhantomData,
        }
    }

    /// # Safety
    /// `T` is the node of this tag.
    unsafe fn downcast<T>(self, tag: pg_sys::NodeTag) -> Option<&'a T> {
        // SAFETY: the tag shows what the node is, which lives for `'a`.
        unsafe { is_a(self.node, tag).then(|| &*self.node.cast::<T>()) }
    }

    /// What a change of its type that leaves the value as it is was put around.
    pub fn bare(self) -> Self {
        let mut bare = self;
        while let Some(inner) = bare.relabeled() {
            bare = inner;
        }
        bare
    }

    fn relabeled(self) -> Option<Self> {
        // SAFETY: the tag's type.
        let relabel =
            unsafe { self.downcast::<pg_sys::RelabelType>(pg_sys::NodeTag::T_RelabelType)? };
        Some(Expr::new(relabel.arg.cast()))
    }

    /// If it is the call of a function by its name or as a cast.
    pub fn call(self) -> Option<FunctionCall<'a>> {
        // SAFETY: the tag's type; its arguments are a list.
        unsafe {
            let call = self.downcast::<pg_sys::FuncExpr>(pg_sys::NodeTag::T_FuncExpr)?;
            Some(FunctionCall {
                function: call.funcid,
                arguments: Exprs::new(call.args),
            })
        }
    }

    /// If it is a field of a row: the row, and the field's number from 1.
    pub fn field(self) -> Option<(Expr<'a>, pg_sys::AttrNumber)> {
        // SAFETY: the tag's type.
        let field =
            unsafe { self.downcast::<pg_sys::FieldSelect>(pg_sys::NodeTag::T_FieldSelect)? };
        Some((Expr::new(field.arg.cast()), field.fieldnum))
    }

    /// If it is an operator with two operands.
    pub fn operation(self) -> Option<Operation<'a>> {
        // SAFETY: the tag's type; its operands are a list.
        unsafe {
            let operation = self.downcast::<pg_sys::OpExpr>(pg_sys::NodeTag::T_OpExpr)?;
            let (left, right) = Exprs::new(operation.args).pair()?;
            Some(Operation {
                operator: operation.opno,
                left,
                right,
            })
        }
    }

    /// If it is `= ANY`, or another operator with ANY.
    pub fn one_of(self) -> Option<OneOf<'a>> {
        // SAFETY: the tag's type; its operands are a list.
        unsafe {
            let tag = pg_sys::NodeTag::T_ScalarArrayOpExpr;
            let operation = self.downcast::<pg_sys::ScalarArrayOpExpr>(tag)?;
            let (left, array) = Exprs::new(operation.args).pair()?;
            operation.useOr.then_some(OneOf {
                operator: operation.opno,
                left,
                array,
            })
        }
    }

    /// If it is an OR: its operands.
    pub fn alternatives(self) -> Option<Exprs<'a>> {
        self.operands(pg_sys::BoolExprType::OR_EXPR)
    }

    /// If it is an AND: its operands.
    pub fn parts(self) -> Option<Exprs<'a>> {
        self.operands(pg_sys::BoolExprType::AND_EXPR)
    }

    fn operands(self, of: pg_sys::BoolExprType::Type) -> Option<Exprs<'a>> {
        // SAFETY: the tag's type; its operands are a list.
        unsafe {
            let expr = self.downcast::<pg_sys::BoolExpr>(pg_sys::NodeTag::T_BoolExpr)?;
            (expr.boolop == of).then(|| Exprs::new(expr.args))
        }
    }

    /// An OR of at least one expression.
    pub fn any_of(alternatives: &[Self]) -> Self {
        // SAFETY: nodes of no other tree, or of one that this takes the place of.
        Expr::new(unsafe { pg_sys::make_orclause(list_of(alternatives)) }.cast())
    }

    /// An AND of at least one expression.
    pub fn all_of(parts: &[Self]) -> Self {
        // SAFETY: as above.
        Expr::new(unsafe { pg_sys::make_ands_explicit(list_of(parts)) }.cast())
    }

    /// If it is a column of a function in FROM, which is called with columns of this
    /// relation: the call, and the column's number from 1.
    pub fn column_of_function(
        self,
        relation: BaseRelation<'a>,
    ) -> Option<(Self, pg_sys::AttrNumber)> {
        let var = self.column()?;
        // SAFETY: the tags' types; the array has an entry for each relation of the query.
        unsafe {
            if var.varlevelsup != 0 || var.varno as pg_sys::Index == relation.relid() {
                return None;
            }
            let position = usize::try_from(var.varno).ok()?;
            if position >= usize::try_from((*relation.root).simple_rel_array_size).ok()? {
                return None;
            }
            let entry = (*(*relation.root).simple_rte_array.add(position)).as_ref()?;
            if entry.rtekind != pg_sys::RTEKind::RTE_FUNCTION || !entry.lateral {
                return None;
            }
            let functions = Exprs::new(entry.functions);
            let (function, None) = (functions.get(0)?, functions.get(1)) else {
                return None;
            };
            let function = function.node.cast::<pg_sys::RangeTblFunction>();
            Some((Expr::new((*function).funcexpr), var.varattno))
        }
    }

    /// Whether it is a column.
    #[cfg(feature = "pg19")]
    pub fn is_a_column(self) -> bool {
        self.column().is_some()
    }

    fn column(self) -> Option<&'a pg_sys::Var> {
        // SAFETY: the tag's type.
        unsafe { self.bare().downcast::<pg_sys::Var>(pg_sys::NodeTag::T_Var) }
    }

    /// A copy of this column of the relation for the place in the query where a column
    /// stands of a function that was called with it. There, outer joins around the call
    /// can have made both NULL.
    #[cfg(feature = "pg15")]
    pub fn beside(self, _column: Self, _relation: BaseRelation<'a>) -> Option<Self> {
        Some(self.copy())
    }

    /// A copy of this column of the relation for the place in the query where a column
    /// stands of a function that was called with it. There, outer joins around the call
    /// can have made both NULL, which a column says of itself.
    #[cfg(not(feature = "pg15"))]
    pub fn beside(self, column: Self, relation: BaseRelation<'a>) -> Option<Self> {
        let outer_joins = column.column()?.varnullingrels;
        let copy = self.copy();
        // SAFETY: a set of joins of the query, which is read in the order of its members.
        // The copy is a column of its own.
        unsafe {
            let var = copy.bare().node.cast::<pg_sys::Var>();
            let mut join = pg_sys::bms_next_member(outer_joins, -1);
            while join >= 0 {
                if relation.is_nulled_by(join)? {
                    (*var).varnullingrels = pg_sys::bms_add_member((*var).varnullingrels, join);
                }
                join = pg_sys::bms_next_member(outer_joins, join);
            }
        }
        Some(copy)
    }

    fn constant(self) -> Option<&'a pg_sys::Const> {
        // SAFETY: the tag's type.
        unsafe { self.downcast(pg_sys::NodeTag::T_Const) }
    }

    /// Whether it is a constant that is not NULL.
    pub fn is_constant(self) -> bool {
        self.constant()
            .is_some_and(|constant| !constant.constisnull)
    }

    /// If it is a constant `text` that is not NULL.
    pub fn constant_text(self) -> Option<Text<'a>> {
        let constant = self.constant()?;
        if constant.consttype != pg_sys::TEXTOID || constant.constisnull {
            return None;
        }
        // SAFETY: a text, which lives as long as the constant.
        Some(unsafe { Text::from_datum(constant.constvalue) })
    }

    /// An expression that the catalog has as text.
    ///
    /// # Safety
    /// A node as text, which Postgres has written.
    pub(super) unsafe fn of_text(text: &CStr) -> Self {
        // SAFETY: the caller's.
        Expr::new(unsafe { pg_sys::stringToNode(text.as_ptr()) }.cast())
    }

    /// Whether it is the column of this number of the only relation.
    pub(super) fn is_column(self, number: pg_sys::AttrNumber) -> bool {
        self.column()
            .is_some_and(|var| var.varlevelsup == 0 && var.varattno == number)
    }

    /// Whether it is the constant `true`.
    pub(super) fn is_true(self) -> bool {
        self.constant().is_some_and(|constant| {
            constant.consttype == pg_sys::BOOLOID
                && !constant.constisnull
                && constant.constvalue.value() != 0
        })
    }

    /// If it is a constant of an integer type that is not NULL.
    pub(super) fn constant_integer(self) -> Option<i64> {
        let constant = self.constant()?;
        let value = constant.constvalue.value();
        match constant.consttype {
            _ if constant.constisnull => None,
            pg_sys::INT8OID => Some(value as i64),
            pg_sys::INT4OID => Some(i64::from(value as i32)),
            pg_sys::INT2OID => Some(i64::from(value as i16)),
            _ => None,
        }
    }

    /// If it is a constant `bigint` that is not NULL.
    pub fn constant_bigint(self) -> Option<i64> {
        let constant = self.constant()?;
        (constant.consttype == pg_sys::INT8OID && !constant.constisnull)
            .then(|| constant.constvalue.value() as i64)
    }

    /// If it is a constant `interval` without months: its length, with days of 24 hours.
    pub fn constant_interval_micros(self) -> Option<i64> {
        let constant = self.constant()?;
        if constant.consttype != pg_sys::INTERVALOID || constant.constisnull {
            return None;
        }
        // SAFETY: the type's form.
        let interval = unsafe { &*constant.constvalue.cast_mut_ptr::<pg_sys::Interval>() };
        let days = i64::from(interval.day).checked_mul(24 * 60 * 60 * 1_000_000)?;
        let micros = interval.time.checked_add(days)?;
        (interval.month == 0 && micros > 0).then_some(micros)
    }

    /// Whether it is a parameter of the whole query.
    pub fn is_parameter(self) -> bool {
        // SAFETY: the tag's type.
        let param = unsafe { self.downcast::<pg_sys::Param>(pg_sys::NodeTag::T_Param) };
        param.is_some_and(|param| param.paramkind == pg_sys::ParamKind::PARAM_EXTERN)
    }

    /// Its type.
    pub fn type_of(self) -> pg_sys::Oid {
        // SAFETY: an expression.
        unsafe { pg_sys::exprType(self.node) }
    }

    /// Whether its value stays the same while a table is read: no column, no volatile
    /// function, and no sub-select that is evaluated for each row.
    pub fn is_fixed(self) -> bool {
        // SAFETY: an expression.
        unsafe {
            !pg_sys::contain_var_clause(self.node)
                && !pg_sys::contain_volatile_functions(self.node)
                && !pg_sys::contain_subplans(self.node)
        }
    }

    /// Whether it is a column of type `bigint` of this relation, perhaps of a domain
    /// over it.
    pub fn is_bigint_column_of(self, relation: BaseRelation<'_>) -> bool {
        self.column().is_some_and(|var| {
            var.varno as pg_sys::Index == relation.relid()
                && var.varlevelsup == 0
                && var.varattno > 0
        }) && self.type_of() == pg_sys::INT8OID
    }

    /// Whether both are the same expression.
    pub fn is_same(self, other: Expr<'_>) -> bool {
        // SAFETY: expressions.
        unsafe { pg_sys::equal(self.node.cast(), other.node.cast()) }
    }

    /// A copy. Nodes must not be in a tree twice. (A column's copy has the outer joins
    /// that can make it NULL there, so it belongs to the same place in the query.)
    pub fn copy(self) -> Self {
        // SAFETY: a node; the copy is in the memory of the planning.
        Expr::new(unsafe { pg_sys::copyObjectImpl(self.node.cast()).cast() })
    }

    /// A constant.
    pub fn bigint(value: i64) -> Self {
        // SAFETY: the type is passed by value, with this length.
        let constant = unsafe {
            pg_sys::makeConst(
                pg_sys::INT8OID,
                -1,
                pg_sys::InvalidOid,
                size_of::<i64>() as c_int,
                pg_sys::Datum::from(value),
                false,
                true,
            )
        };
        Expr::new(constant.cast())
    }

    /// A constant.
    pub fn text(value: &CStr) -> Self {
        // SAFETY: a text of its own, in the memory of the planning.
        let constant = unsafe {
            let text = pg_sys::cstring_to_text(value.as_ptr());
            pg_sys::makeConst(
                pg_sys::TEXTOID,
                -1,
                pg_sys::DEFAULT_COLLATION_OID,
                -1,
                pg_sys::Datum::from(text),
                false,
                false,
            )
        };
        Expr::new(constant.cast())
    }

    /// The argument of this number, from 1, of a function whose body is a query.
    #[cfg(feature = "pg19")]
    pub(super) fn argument(number: usize, of_type: pg_sys::Oid) -> Self {
        // SAFETY: a node of its own.
        unsafe {
            let mut param = PgBox::<pg_sys::Param>::alloc_node(pg_sys::NodeTag::T_Param);
            param.paramkind = pg_sys::ParamKind::PARAM_EXTERN;
            param.paramid = number as c_int;
            param.paramtype = of_type;
            param.paramtypmod = -1;
            param.paramcollid = pg_sys::get_typcollation(of_type);
            param.location = -1;
            Expr::new(param.into_pg().cast())
        }
    }

    /// A query of one row, with these columns.
    #[cfg(feature = "pg19")]
    pub(super) fn select(columns: &[Expr<'a>]) -> *mut pg_sys::Query {
        let mut targets = PgList::<pg_sys::TargetEntry>::new();
        for (position, column) in columns.iter().enumerate() {
            // SAFETY: a node of no other tree. A column without a name has that of the call.
            targets.push(unsafe {
                let number = position as pg_sys::AttrNumber + 1;
                pg_sys::makeTargetEntry(column.node.cast(), number, ptr::null_mut(), false)
            });
        }
        // SAFETY: nodes of their own.
        unsafe {
            let mut query = PgBox::<pg_sys::Query>::alloc_node(pg_sys::NodeTag::T_Query);
            query.commandType = pg_sys::CmdType::CMD_SELECT;
            query.canSetTag = true;
            query.jointree = pg_sys::makeFromExpr(ptr::null_mut(), ptr::null_mut());
            query.targetList = targets.into_pg();
            query.into_pg()
        }
    }

    /// `IS NOT NULL`, of an expression that is no row.
    pub fn is_not_null(self) -> Self {
        // SAFETY: a node of its own.
        unsafe {
            let mut test = PgBox::<pg_sys::NullTest>::alloc_node(pg_sys::NodeTag::T_NullTest);
            test.arg = self.node.cast();
            test.nulltesttype = pg_sys::NullTestType::IS_NOT_NULL;
            test.location = -1;
            Expr::new(test.into_pg().cast())
        }
    }

    /// The call of a function that returns this type, which has no collation.
    /// The caller has the arguments' types right.
    pub fn call_of(function: pg_sys::Oid, result: pg_sys::Oid, arguments: &[Expr<'a>]) -> Self {
        // SAFETY: the function exists, and the arguments are nodes of no other tree.
        let call = unsafe {
            pg_sys::makeFuncExpr(
                function,
                result,
                list_of(arguments),
                pg_sys::InvalidOid,
                // For texts among the arguments, as the parser does it.
                pg_sys::DEFAULT_COLLATION_OID,
                pg_sys::CoercionForm::COERCE_EXPLICIT_CALL,
            )
        };
        Expr::new(call.cast())
    }

    /// The comparison of two expressions of type `bigint`.
    pub fn compare(self, comparison: Comparison, other: Expr<'a>) -> Self {
        // SAFETY: the operands are nodes of no other tree, and of the operator's types.
        unsafe {
            let condition = pg_sys::make_opclause(
                comparison.of_bigint(),
                pg_sys::BOOLOID,
                false,
                self.node.cast(),
                other.node.cast(),
                pg_sys::InvalidOid,
                pg_sys::InvalidOid,
            );
            pg_sys::set_opfuncid(condition.cast());
            Expr::new(condition.cast())
        }
    }

    /// With what is immutable and constant in it computed.
    pub fn folded(self, relation: BaseRelation<'a>) -> Self {
        // SAFETY: an expression of the query that is being planned.
        Expr::new(unsafe { pg_sys::eval_const_expressions(relation.root, self.node) })
    }

    /// Computed also where it is STABLE. Only for what gives the same result for as long
    /// as the plan may be kept.
    pub fn computed(self, relation: BaseRelation<'a>) -> Self {
        // SAFETY: an expression of the query that is being planned.
        Expr::new(unsafe { pg_sys::estimate_expression_value(relation.root, self.node) })
    }
}

impl<'a> OneOf<'a> {
    /// The least and the greatest of the operands, if they are written one by one.
    pub fn ends(self) -> Option<(Expr<'a>, Expr<'a>)> {
        let (of_type, elements) = self.elements()?;
        let end = |operation| {
            // SAFETY: a node of its own, with copies of the elements.
            unsafe {
                let copies: Vec<_> = elements.iter().map(|it| it.copy()).collect();
                let mut end =
                    PgBox::<pg_sys::MinMaxExpr>::alloc_node(pg_sys::NodeTag::T_MinMaxExpr);
                end.minmaxtype = of_type;
                end.op = operation;
                end.args = list_of(&copies);
                end.location = -1;
                Expr::new(end.into_pg().cast())
            }
        };
        Some((
            end(pg_sys::MinMaxOp::IS_LEAST),
            end(pg_sys::MinMaxOp::IS_GREATEST),
        ))
    }

    /// The type of the operands, and those that are not NULL.
    fn elements(self) -> Option<(pg_sys::Oid, Vec<Expr<'a>>)> {
        // SAFETY: the tags' types. The array is one of the type of the constant.
        unsafe {
            let tag = pg_sys::NodeTag::T_ArrayExpr;
            if let Some(array) = self.array.downcast::<pg_sys::ArrayExpr>(tag) {
                let elements = Exprs::new(array.elements).iter().collect();
                return (!array.multidims).then_some((array.element_typeid, elements));
            }
            let array = self.array.constant()?;
            let of_type = pg_sys::get_element_type(array.consttype);
            if array.constisnull || of_type == pg_sys::InvalidOid {
                return None;
            }
            let (mut length, mut by_value, mut alignment) = (0, false, 0);
            pg_sys::get_typlenbyvalalign(
                of_type,
                &raw mut length,
                &raw mut by_value,
                &raw mut alignment,
            );
            let (mut values, mut nulls, mut count) = (ptr::null_mut(), ptr::null_mut(), 0);
            pg_sys::deconstruct_array(
                pg_sys::pg_detoast_datum(array.constvalue.cast_mut_ptr()).cast(),
                of_type,
                c_int::from(length),
                by_value,
                alignment,
                &raw mut values,
                &raw mut nulls,
                &raw mut count,
            );
            let elements: Vec<_> = (0..usize::try_from(count).ok()?)
                .filter(|it| !*nulls.add(*it))
                .map(|it| {
                    let constant = pg_sys::makeConst(
                        of_type,
                        -1,
                        array.constcollid,
                        c_int::from(length),
                        *values.add(it),
                        false,
                        by_value,
                    );
                    Expr::new(constant.cast())
                })
                .collect();
            (!elements.is_empty()).then_some((of_type, elements))
        }
    }
}

fn list_of(exprs: &[Expr<'_>]) -> *mut pg_sys::List {
    let mut list = PgList::<pg_sys::Node>::new();
    for expr in exprs {
        list.push(expr.node);
    }
    list.into_pg()
}

/// A key of the ORDER BY.
#[derive(Clone, Copy)]
pub struct SortKey<'a> {
    /// What is sorted by.
    pub expr: Expr<'a>,
    /// The operator that puts it in order.
    pub operator: pg_sys::Oid,
    /// Where a NULL goes.
    pub nulls_first: bool,
}

/// A table of the query that is being planned; a partitioned table as a whole.
#[derive(Clone, Copy)]
pub struct BaseRelation<'a> {
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    lifetime: PhantomData<&'a ()>,
}

impl<'a> BaseRelation<'a> {
    fn rel(self) -> &'a pg_sys::RelOptInfo {
        // SAFETY: the hook's, as long as it runs. Nothing here writes to it.
        unsafe { &*self.rel }
    }

    fn relid(self) -> pg_sys::Index {
        self.rel().relid
    }

    /// The relation in the query's range table.
    fn entry(self) -> *mut pg_sys::RangeTblEntry {
        // SAFETY: the array has an entry for each relation.
        unsafe { *(*self.root).simple_rte_array.add(self.relid() as usize) }
    }

    /// Offers each list of conditions that can restrict this relation, all of which must
    /// hold, and puts the answer in its place, if any. The answer must be true for the
    /// same rows.
    pub fn rewrite_conditions(self, mut rewrite: impl FnMut(Exprs<'a>) -> Option<Vec<Expr<'a>>>) {
        // SAFETY: the query's own tree, and what was made of its conditions before: lists.
        unsafe {
            self.visit((*(*self.root).parse).jointree.cast(), &mut rewrite);
            // Of policies, and of views through which a statement writes: a list for each
            // level, which must not be mixed.
            let levels = (*self.entry()).securityQuals;
            if let Some(levels) = levels.as_ref() {
                for level in 0..levels.length as usize {
                    let cell = levels.elements.add(level);
                    let conditions = (*cell).ptr_value.cast();
                    if let Some(rewritten) = rewritten(conditions, &mut rewrite) {
                        (*cell).ptr_value = rewritten.cast();
                    }
                }
            }
        }
    }

    /// # Safety
    /// A node of the join tree.
    unsafe fn visit(
        self,
        node: *mut pg_sys::Node,
        rewrite: &mut dyn FnMut(Exprs<'a>) -> Option<Vec<Expr<'a>>>,
    ) {
        // SAFETY: the tags show what the nodes are.
        unsafe {
            if is_a(node, pg_sys::NodeTag::T_FromExpr) {
                let from = node.cast::<pg_sys::FromExpr>();
                for child in Exprs::new((*from).fromlist).iter() {
                    self.visit(child.node, rewrite);
                }
                if let Some(rewritten) = rewritten((*from).quals, rewrite) {
                    (*from).quals = rewritten;
                }
            } else if is_a(node, pg_sys::NodeTag::T_JoinExpr) {
                let join = node.cast::<pg_sys::JoinExpr>();
                // What an outer join evaluates for rows of its own is true or not of them. A condition
                // on a column of this relation, which is outside, would leave the join.
                if (*join).jointype != pg_sys::JoinType::JOIN_INNER && !self.is_in(node) {
                    return;
                }
                self.visit((*join).larg, rewrite);
                self.visit((*join).rarg, rewrite);
                let restricts = match (*join).jointype {
                    pg_sys::JoinType::JOIN_INNER | pg_sys::JoinType::JOIN_SEMI => true,
                    // Rows of the left side come out whether the condition holds or not.
                    pg_sys::JoinType::JOIN_LEFT | pg_sys::JoinType::JOIN_ANTI => {
                        self.is_in((*join).rarg)
                    }
                    _ => false,
                };
                if restricts && let Some(rewritten) = rewritten((*join).quals, rewrite) {
                    (*join).quals = rewritten;
                }
            }
        }
    }

    /// Whether an outer join, by its number, can make the relation's columns NULL. `None`
    /// if there is no such join.
    #[cfg(not(feature = "pg15"))]
    fn is_nulled_by(self, join: c_int) -> Option<bool> {
        // SAFETY: the query's own tree.
        unsafe { self.is_nulled_in((*(*self.root).parse).jointree.cast(), join) }
    }

    /// The same in a part of the join tree.
    ///
    /// # Safety
    /// A node of the join tree.
    #[cfg(not(feature = "pg15"))]
    unsafe fn is_nulled_in(self, node: *mut pg_sys::Node, join: c_int) -> Option<bool> {
        // SAFETY: the tags show what the nodes are.
        unsafe {
            if is_a(node, pg_sys::NodeTag::T_FromExpr) {
                let from = node.cast::<pg_sys::FromExpr>();
                Exprs::new((*from).fromlist)
                    .iter()
                    .find_map(|child| self.is_nulled_in(child.node, join))
            } else if is_a(node, pg_sys::NodeTag::T_JoinExpr) {
                let expr = &*node.cast::<pg_sys::JoinExpr>();
                if expr.rtindex != join {
                    return self
                        .is_nulled_in(expr.larg, join)
                        .or_else(|| self.is_nulled_in(expr.rarg, join));
                }
                // Those to the right were turned round before.
                let is_full = expr.jointype == pg_sys::JoinType::JOIN_FULL;
                Some(self.is_in(expr.rarg) || is_full && self.is_in(expr.larg))
            } else {
                None
            }
        }
    }

    /// Whether the relation is in this part of the join tree.
    ///
    /// # Safety
    /// A node of the join tree.
    unsafe fn is_in(self, node: *mut pg_sys::Node) -> bool {
        // SAFETY: the tags show what the nodes are.
        unsafe {
            if is_a(node, pg_sys::NodeTag::T_RangeTblRef) {
                let reference = node.cast::<pg_sys::RangeTblRef>();
                (*reference).rtindex as pg_sys::Index == self.relid()
            } else if is_a(node, pg_sys::NodeTag::T_FromExpr) {
                let from = node.cast::<pg_sys::FromExpr>();
                Exprs::new((*from).fromlist)
                    .iter()
                    .any(|child| self.is_in(child.node))
            } else if is_a(node, pg_sys::NodeTag::T_JoinExpr) {
                let join = node.cast::<pg_sys::JoinExpr>();
                self.is_in((*join).larg) || self.is_in((*join).rarg)
            } else {
                false
            }
        }
    }

    /// The table.
    pub fn table(self) -> pg_sys::Oid {
        // SAFETY: the query's own entry.
        unsafe { (*self.entry()).relid }
    }

    /// Makes statistics take the statement for another one.
    #[cfg(feature = "testing")]
    pub fn change_query_id(self) {
        // SAFETY: the query that is planned, which is this planner's own.
        unsafe { (*(*self.root).parse).queryId ^= 1 };
    }

    /// Its indexes, those that another extension has made up too.
    #[cfg(feature = "testing")]
    pub fn indexes(self) -> impl Iterator<Item = pg_sys::Oid> {
        // SAFETY: Postgres' own list, which lives as long as the planner.
        unsafe {
            let list = PgList::<pg_sys::IndexOptInfo>::from_pg(self.rel().indexlist);
            let oids: Vec<_> = list.iter_ptr().map(|index| (*index).indexoid).collect();
            oids.into_iter()
        }
    }

    /// Whether it has children or partitions.
    pub fn has_children(self) -> bool {
        // SAFETY: the query's own entry.
        unsafe { (*self.entry()).inh }
    }

    /// Whether an index of the relation, or how it is partitioned, has a call of one of
    /// these functions, also in a function in SQL that was inlined.
    pub fn is_arranged_by(self, functions: &[pg_sys::Oid]) -> bool {
        let rel = self.rel();
        // SAFETY: Postgres' own lists of expressions; a partitioned relation has as many
        // as it has columns in its key. The walk does not write to the functions.
        unsafe {
            let has_call = |list: *mut pg_sys::List| {
                visit_calls(list.cast(), (&raw const functions).cast_mut().cast())
            };
            for index in PgList::<pg_sys::IndexOptInfo>::from_pg(rel.indexlist).iter_ptr() {
                if has_call((*index).indexprs) || has_call((*index).indpred) {
                    return true;
                }
            }
            match rel.part_scheme.as_ref() {
                Some(scheme) if !rel.partexprs.is_null() => {
                    slice::from_raw_parts(rel.partexprs, scheme.partnatts as usize)
                        .iter()
                        .any(|column| has_call(*column))
                }
                _ => false,
            }
        }
    }

    /// Has a kept plan made anew for another role.
    pub fn plan_for_role(self) {
        // SAFETY: the planning's own state, which only this thread changes.
        unsafe { (*(*self.root).glob).dependsOnRole = true }
    }

    /// The keys of the ORDER BY, if it decides nothing but the order in which a SELECT
    /// returns its rows.
    pub fn sort_keys(self) -> Option<Vec<SortKey<'a>>> {
        // SAFETY: the query that is being planned; its clauses are lists of their nodes.
        unsafe {
            let query = &*(*self.root).parse;
            if query.sortClause.is_null()
                || query.commandType != pg_sys::CmdType::CMD_SELECT
                || !query.distinctClause.is_null()
                || !query.groupClause.is_null()
                || !query.groupingSets.is_null()
                || !query.windowClause.is_null()
                || !query.setOperations.is_null()
                || !query.havingQual.is_null()
                || query.hasAggs
                || query.hasWindowFuncs
                || query.limitOption == pg_sys::LimitOption::LIMIT_OPTION_WITH_TIES
            {
                return None;
            }
            Exprs::new(query.sortClause)
                .iter()
                .map(|key| {
                    let key = key.node.cast::<pg_sys::SortGroupClause>();
                    let entry = self.entry_sorted_by((*key).tleSortGroupRef)?;
                    Some(SortKey {
                        expr: Expr::new((*entry).expr.cast()),
                        operator: (*key).sortop,
                        nulls_first: (*key).nulls_first,
                    })
                })
                .collect()
        }
    }

    /// The columns of the result, with those that are only computed for the query itself.
    fn target_list(self) -> Exprs<'a> {
        // SAFETY: a list of nodes.
        unsafe { Exprs::new((*self.root).processed_tlist) }
    }

    fn targets(self) -> impl Iterator<Item = *mut pg_sys::TargetEntry> {
        self.target_list().iter().map(|entry| entry.node.cast())
    }

    /// The column of the result that this number of a sort key means.
    fn entry_sorted_by(self, number: pg_sys::Index) -> Option<*mut pg_sys::TargetEntry> {
        self.targets().find(|entry| {
            // SAFETY: a column of the result.
            unsafe { (**entry).ressortgroupref == number }
        })
    }

    /// Sorts the result by this column alone, in the direction and with the NULLs of the
    /// first key. What was sorted by is still computed, for it may be part of the result,
    /// and may raise an error.
    pub fn sort_by(self, column: Expr<'a>, is_descending: bool) {
        // SAFETY: the query that is being planned. Columns and clauses are copied before
        // they are changed, and the lists are new.
        unsafe {
            let query = (*self.root).parse;
            let former = PgList::<pg_sys::SortGroupClause>::from_pg((*query).sortClause);
            let Some(first) = former.head() else { return };
            let is_column =
                |entry: *mut pg_sys::TargetEntry| Expr::new((*entry).expr.cast()).is_same(column);
            // A number that no column has.
            let unused = self
                .targets()
                .map(|entry| (*entry).ressortgroupref)
                .max()
                .unwrap_or(0)
                + 1;
            let mut number = 0;
            let mut list = PgList::<pg_sys::TargetEntry>::new();
            for entry in self.targets() {
                let entry = pg_sys::flatCopyTargetEntry(entry);
                // Nothing but the ORDER BY used them.
                (*entry).ressortgroupref = 0;
                if number == 0 && is_column(entry) {
                    number = unused;
                    (*entry).ressortgroupref = number;
                }
                list.push(entry);
            }
            if number == 0 {
                number = unused;
                let position = list.len() as pg_sys::AttrNumber + 1;
                let entry = pg_sys::makeTargetEntry(
                    column.copy().node.cast(),
                    position,
                    ptr::null_mut(),
                    true,
                );
                (*entry).ressortgroupref = number;
                list.push(entry);
            }
            let key: *mut pg_sys::SortGroupClause =
                pg_sys::copyObjectImpl(first.cast_const().cast()).cast();
            (*key).tleSortGroupRef = number;
            (*key).eqop = Comparison::Equal.of_bigint();
            (*key).sortop = if is_descending {
                Comparison::Greater.of_bigint()
            } else {
                Comparison::Less.of_bigint()
            };
            let mut keys = PgList::<pg_sys::SortGroupClause>::new();
            keys.push(key);
            // The order of a query for a min() is looked up in the one list, that of other
            // queries in the other.
            let list = list.into_pg();
            (*self.root).processed_tlist = list;
            (*query).targetList = list;
            (*query).sortClause = keys.into_pg();
        }
    }
}

/// The list of conditions that takes the place of this one, if any.
///
/// # Safety
/// Conditions of the query that is being planned.
unsafe fn rewritten<'a>(
    conditions: *mut pg_sys::Node,
    rewrite: &mut dyn FnMut(Exprs<'a>) -> Option<Vec<Expr<'a>>>,
) -> Option<*mut pg_sys::Node> {
    // SAFETY: the tag shows that it is a list, as conditions are at this time.
    unsafe {
        if !is_a(conditions, pg_sys::NodeTag::T_List) {
            return None;
        }
        let answer = rewrite(Exprs::new(conditions.cast()))?;
        let mut list = PgList::<pg_sys::Node>::new();
        for condition in answer {
            list.push(condition.node);
        }
        Some(list.into_pg().cast())
    }
}

/// Whether there is a call of one of the functions; the context is a slice of these.
#[pg_guard]
unsafe extern "C-unwind" fn visit_calls(node: *mut pg_sys::Node, functions: *mut c_void) -> bool {
    // SAFETY: the context is that of `is_arranged_by`, and the tag shows what the node is.
    unsafe {
        if node.is_null() {
            return false;
        }
        if is_a(node, pg_sys::NodeTag::T_FuncExpr) {
            let sought = *functions.cast_const().cast::<&[pg_sys::Oid]>();
            if sought.contains(&(*node.cast::<pg_sys::FuncExpr>()).funcid) {
                return true;
            }
        }
        pg_sys::expression_tree_walker(node, Some(visit_calls), functions)
    }
}

/// Called for each table of each query.
static WATCHER: OnceLock<fn(BaseRelation<'_>)> = OnceLock::new();

/// The hook that was installed before this one.
static NEXT: OnceLock<Hook> = OnceLock::new();

#[cfg(not(feature = "pg19"))]
type Hook = pg_sys::get_relation_info_hook_type;
#[cfg(feature = "pg19")]
type Hook = pg_sys::build_simple_rel_hook_type;

/// Calls `watcher` for each table of each query that is planned, from now on. Only the
/// first call has an effect.
pub fn watch_relations(watcher: fn(BaseRelation<'_>)) {
    WATCHER.get_or_init(|| watcher);
    NEXT.get_or_init(|| {
        // SAFETY: a variable of this process, which has one thread.
        unsafe {
            #[cfg(not(feature = "pg19"))]
            let hook = &raw mut pg_sys::get_relation_info_hook;
            #[cfg(feature = "pg19")]
            let hook = &raw mut pg_sys::build_simple_rel_hook;
            hook.replace(Some(relation_info))
        }
    });
}

/// Not guarded by pgrx, and nothing to drop: an error of the next hook passes it as it
/// passes C.
#[cfg(feature = "pg19")]
unsafe extern "C-unwind" fn relation_info(
    root: *mut pg_sys::PlannerInfo,
    rel: *mut pg_sys::RelOptInfo,
    entry: *mut pg_sys::RangeTblEntry,
) {
    // SAFETY: Postgres calls its hook with a relation of the query that it plans. Before
    // 19, it was called for tables alone.
    unsafe {
        if let Some(next) = NEXT.get().copied().flatten() {
            next(root, rel, entry);
        }
        if (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL
            && (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION
        {
            watch(root, rel);
        }
    }
}

/// Not guarded by pgrx, and nothing to drop: an error of the next hook passes it as it
/// passes C.
#[cfg(not(feature = "pg19"))]
unsafe extern "C-unwind" fn relation_info(
    root: *mut pg_sys::PlannerInfo,
    relation: pg_sys::Oid,
    is_parent: bool,
    rel: *mut pg_sys::RelOptInfo,
) {
    // SAFETY: Postgres calls its hook with a relation of the query that it plans.
    unsafe {
        if let Some(next) = NEXT.get().copied().flatten() {
            next(root, relation, is_parent, rel);
        }
        // The conditions on children are made of their parent's, later.
        if (*rel).reloptkind == pg_sys::RelOptKind::RELOPT_BASEREL {
            watch(root, rel);
        }
    }
}

/// Guarded: what it raises leaves it as an error of Postgres.
#[pg_guard]
unsafe extern "C-unwind" fn watch(root: *mut pg_sys::PlannerInfo, rel: *mut pg_sys::RelOptInfo) {
    if let Some(watcher) = WATCHER.get() {
        watcher(BaseRelation {
            root,
            rel,
            lifetime: PhantomData,
        });
    }
}
