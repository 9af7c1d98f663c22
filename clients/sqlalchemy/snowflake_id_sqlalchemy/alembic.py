"""Snowflake IDs in Alembic's autogenerate. In ``env.py``:

    from snowflake_id_sqlalchemy.alembic import PLUGIN, include_name, rewriter

    context.configure(
        connection=connection,
        target_metadata=target_metadata,
        compare_server_default=True,
        autogenerate_plugins=["alembic.autogenerate.*", PLUGIN],
        include_name=include_name,
        process_revision_directives=rewriter,
    )
"""

import re
import sys
from typing import Any, Optional

from alembic.autogenerate.rewriter import Rewriter
from alembic.operations import ops
from alembic.runtime.plugins import Plugin
from alembic.util import DispatchPriority, PriorityDispatchResult, warn
from sqlalchemy.dialects import postgresql

__all__ = ["PLUGIN", "include_name", "rewriter"]

PLUGIN = "snowflake_id_sqlalchemy"
_SCHEMAS = {
    "snowflake_internal",
    "snowflake_migrate",
    "snowflake_migrate_internal",
    "snowflake_partitions",
    "snowflake_partitions_internal",
}
_DEFAULT = re.compile(r'(?:(?:\w+|"(?:[^"]|"")+")\.)?snowflake_(?:nextval|id)\(\)')


def _is_snowflake(server_default: Any) -> bool:
    argument = getattr(server_default, "arg", None)
    return argument is not None and _DEFAULT.fullmatch(str(argument)) is not None


def _compare_server_default(
    autogen_context: Any,
    alter_column_op: ops.AlterColumnOp,
    schema: Optional[str],
    table_name: str,
    column_name: str,
    inspected_column: Any,
    metadata_column: Any,
) -> PriorityDispatchResult:
    """Compares the default of a column that the model gives snowflake IDs.

    Alembic compares defaults that are written differently (``snowflake_id()``,
    a schema) by evaluating both. Two snowflake IDs are never equal. It does not
    expect that an identity column becomes one with a default.
    """
    if not _is_snowflake(metadata_column.server_default):
        if metadata_column.identity is None or not _is_snowflake(inspected_column.server_default):
            return PriorityDispatchResult.CONTINUE
        # Alembic's own comparison fails. Nothing is to be changed: more likely
        # the model was forgotten than that the migration is to be reverted.
        warn(f"column {table_name}.{column_name} has snowflake IDs, and Identity() in the model")
        return PriorityDispatchResult.STOP
    if not _is_snowflake(inspected_column.server_default):
        alter_column_op.modify_server_default = metadata_column.server_default
    return PriorityDispatchResult.STOP


def setup(plugin: Plugin) -> None:
    plugin.add_autogenerate_comparator(
        _compare_server_default, "column", "server_default", priority=DispatchPriority.FIRST
    )


Plugin.setup_plugin_from_module(sys.modules[__name__], PLUGIN)


def include_name(name: Optional[str], type_: str, parent_names: Any) -> bool:
    """Keeps the extensions' tables out, with ``include_schemas=True``."""
    return not (type_ == "schema" and name in _SCHEMAS)


rewriter = Rewriter()


@rewriter.rewrites(ops.AlterColumnOp)
def _migrate(context: Any, revision: Any, op: ops.AlterColumnOp) -> Any:
    """Has the extension snowflake_migrate migrate a column, instead of only changing its default.

    It also widens the columns that reference it, checks for obstacles, and
    remembers the sequence for the way back.
    """
    # False means that the default does not change.
    if op.modify_server_default is False:
        return op
    after, before = _is_snowflake(op.modify_server_default), _is_snowflake(op.existing_server_default)
    if after == before:
        return op
    table = _quote(op.table_name)
    if op.schema is not None:
        table = f"{_quote(op.schema)}.{table}"
    routine = "snowflake_migrate.run" if after else "snowflake_migrate.revert"
    call = ops.ExecuteSQLOp(f"CALL {routine}({_literal(table)}, {_literal(op.column_name)})")
    op.modify_server_default = False
    op.modify_type = None
    return [call, op] if op.has_changes() else [call]


def _quote(name: str) -> str:
    # The dialect doubles percent signs, and so does op.execute().
    return postgresql.dialect().identifier_preparer.quote(name).replace("%%", "%")


def _literal(value: str) -> str:
    # op.execute() takes a colon for the beginning of a parameter.
    return "'" + value.replace("'", "''").replace(":", r"\:") + "'"
