//! SQL: the presets. The view over the function is in `sql/public/layouts.sql`.

use pgrx::prelude::*;
use snowflake_id::presets;

use crate::sql::values::timestamptz;

#[allow(clippy::type_complexity)] // the columns of a view
#[pg_extern(sql = r#"
CREATE FUNCTION snowflake_internal.get_layouts() RETURNS TABLE (
    name text, layout text, expires_at timestamp with time zone,
    ids_per_second bigint, nodes bigint, backends bigint
) IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', '@FUNCTION_NAME@';
COMMENT ON FUNCTION snowflake_internal.get_layouts() IS
    'Used by the view snowflake_layouts';
"#)]
fn snowflake_get_layouts() -> TableIterator<
    'static,
    (
        name!(name, &'static str),
        name!(layout, &'static str),
        name!(expires_at, Option<TimestampWithTimeZone>),
        name!(ids_per_second, i64),
        name!(nodes, i64),
        name!(backends, i64),
    ),
> {
    TableIterator::new(presets().iter().map(|preset| {
        let layout = preset.layout();
        let backends = i64::from(layout.max_backend()) + 1;
        (
            preset.name,
            preset.text,
            timestamptz(layout.expires_at()),
            layout.ids_per_second() as i64 * backends,
            i64::from(layout.max_node()) + 1,
            backends,
        )
    }))
}
