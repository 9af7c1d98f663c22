//! What is made with functions.
#![allow(clippy::undocumented_unsafe_blocks)] // one contract, at `related`

use pgrx::pg_sys;

use super::catalog::each_row;

/// `pg_depend` and its indexes, and `pg_constraint`. Not in pgrx's bindings, but fixed.
const PG_DEPEND: u32 = 2608;
const DEPENDER_INDEX: u32 = 2673;
const REFERENCE_INDEX: u32 = 2674;
const PG_CONSTRAINT: pg_sys::Oid = pg_sys::Oid::from_u32(2606);

/// The catalog and the OID of an object.
type Object = [pg_sys::Oid; 2];

/// The tables that have an index, a partition key or a CHECK with a call of one of these
/// functions, or of a function in SQL that calls one and whose body PostgreSQL has parsed.
pub fn tables_arranged_by(functions: &[pg_sys::Oid]) -> Vec<pg_sys::Oid> {
    let mut functions = functions.to_vec();
    let mut tables = Vec::new();
    let mut next = 0;
    while let Some(function) = functions.get(next).copied() {
        next += 1;
        for [class, object] in dependents_of([pg_sys::ProcedureRelationId, function]) {
            match class {
                pg_sys::ProcedureRelationId if !functions.contains(&object) => {
                    functions.push(object);
                }
                pg_sys::RelationRelationId => tables.push(table_of(object)),
                PG_CONSTRAINT => tables.extend(
                    references_of([class, object])
                        .into_iter()
                        .filter(|[class, _]| *class == pg_sys::RelationRelationId)
                        .map(|[_, table]| table),
                ),
                _ => {}
            }
        }
    }
    tables.sort_unstable_by_key(|table| table.to_u32());
    tables.dedup();
    tables
}

/// What depends on an object.
fn dependents_of(object: Object) -> Vec<Object> {
    related(REFERENCE_INDEX, [4, 5], object, |[depender, _]| depender)
}

/// What an object depends on.
fn references_of(object: Object) -> Vec<Object> {
    related(DEPENDER_INDEX, [1, 2], object, |[_, reference]| reference)
}

fn related(
    index: u32,
    columns: [u32; 2],
    object: Object,
    other: fn([Object; 2]) -> Object,
) -> Vec<Object> {
    let mut objects = Vec::new();
    // SAFETY: the catalog is open while it is read. Its rows have no variable part: the
    // depender, the number of its column, the reference, and the number of its column.
    unsafe {
        let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
        let catalog = pg_sys::table_open(pg_sys::Oid::from(PG_DEPEND), lock);
        let keys = [(columns[0], object[0]), (columns[1], object[1])];
        each_row(catalog, index, &keys, |row| {
            let [class, id, _, of_class, of_id] =
                *pg_sys::GETSTRUCT(row).cast::<[pg_sys::Oid; 5]>();
            objects.push(other([[class, id], [of_class, of_id]]));
        });
        pg_sys::table_close(catalog, lock);
    }
    objects
}

/// The table of an index; any other relation itself.
fn table_of(relation: pg_sys::Oid) -> pg_sys::Oid {
    let kind = unsafe { pg_sys::get_rel_relkind(relation) } as u8;
    if kind == pg_sys::RELKIND_INDEX || kind == pg_sys::RELKIND_PARTITIONED_INDEX {
        unsafe { pg_sys::IndexGetRelation(relation, true) }
    } else {
        relation
    }
}
