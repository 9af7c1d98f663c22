"""Primary keys of the PostgreSQL extension snowflake in SQLAlchemy.

    class Order(Base):
        __tablename__ = "orders"
        id: Mapped[int] = snowflake_key()

The server generates the IDs. ``create_all()`` and Alembic write
``BIGINT DEFAULT snowflake_nextval()``, and the ORM inserts rows in pages of
1,000 with one statement a page. ``snowflake_column()`` is the same for SQLModel
and for tables of SQLAlchemy Core.
"""

from typing import Any, Optional

from sqlalchemy import BigInteger, Column, DefaultClause, Table, event, exc, func
from sqlalchemy.orm import MappedColumn, mapped_column
from sqlalchemy.types import Integer

__all__ = ["SnowflakeDefault", "snowflake_column", "snowflake_key"]


def _has_monotonic_functions() -> bool:
    """Whether this is SQLAlchemy 2.1, whose functions can be declared monotonic."""
    return hasattr(func.now(), "monotonic")


class SnowflakeDefault(DefaultClause):
    """The server default of a column with snowflake IDs.

    *function* is ``snowflake_nextval``, or ``snowflake_id``, which is the same
    function under another name. *schema* is the schema of the extension, if it
    is not in the search path.
    """

    def __init__(self, function: str = "snowflake_nextval", schema: Optional[str] = None) -> None:
        if schema == "snowflake_sql":
            raise exc.ArgumentError(
                "the IDs of sql/without_library.sql do not increase in the order of a statement's rows; "
                'use server_default=text("snowflake_sql.snowflake_nextval()")'
            )
        name = getattr(getattr(func, schema) if schema else func, function)
        # The IDs of one statement increase in the order of its rows. If
        # SQLAlchemy knows that, it can tell which ID belongs to which object,
        # and does not insert the objects one by one.
        super().__init__(name(monotonic=True) if _has_monotonic_functions() else name())
        self.function, self.schema = function, schema

    def _copy(self) -> "SnowflakeDefault":
        return SnowflakeDefault(self.function, self.schema)

    def _set_parent(self, column: Any, **kw: Any) -> None:
        super()._set_parent(column, **kw)
        if _has_monotonic_functions():
            # What insert_sentinel=True does. Without it, 2.1 fails on a
            # composite key of which one column has a monotonic default.
            column._insert_sentinel = True
        event.listen(column, "after_parent_attach", _check_and_declare)


def _check_and_declare(column: "Column[Any]", table: Any) -> None:
    if not isinstance(table, Table) or not isinstance(column.server_default, SnowflakeDefault):
        return
    if column.autoincrement is True:
        raise exc.ArgumentError(
            f"column {table.name}.{column.name} has autoincrement=True: it would become a "
            "BIGSERIAL, without snowflake IDs; leave autoincrement out"
        )
    if isinstance(column.type, Integer) and not isinstance(column.type, BigInteger):
        raise exc.ArgumentError(
            f"column {table.name}.{column.name} has {column.type!r}: snowflake IDs need BigInteger"
        )
    if not _has_monotonic_functions():
        _declare_monotonic(column, table)


def _declare_monotonic(column: "Column[Any]", table: Table) -> None:
    """Does for SQLAlchemy 2.0 what ``monotonic=True`` does for 2.1.

    2.0 relies on increasing values for SERIAL, and for no other server default.
    So the table gets the characteristics that it would have with SERIAL. They
    are not part of the public interface: without them, inserts return the same
    IDs, but need a statement for each row.
    """
    try:
        from sqlalchemy.sql.base import (
            _SentinelColumnCharacterization,
            _SentinelDefaultCharacterization,
        )
    except ImportError:
        return
    # A column that the model names comes first.
    if not column.primary_key or table._sentinel_column is not None:
        return
    table.__dict__["_sentinel_column_characteristics"] = _SentinelColumnCharacterization(
        (column,), False, True, _SentinelDefaultCharacterization.NONE
    )


def snowflake_key(
    *args: Any, function: str = "snowflake_nextval", function_schema: Optional[str] = None, **kw: Any
) -> MappedColumn[Any]:
    """A primary key with snowflake IDs: ``mapped_column()`` with a type and a default.

    Other arguments are those of ``mapped_column()``.
    """
    kw.setdefault("primary_key", True)
    return mapped_column(
        *args, type_=BigInteger(), server_default=SnowflakeDefault(function, function_schema), **kw
    )


def snowflake_column(
    *args: Any, function: str = "snowflake_nextval", function_schema: Optional[str] = None, **kw: Any
) -> "Column[int]":
    """A primary key with snowflake IDs, as a ``Column``.

    SQLModel ignores a ``sa_column`` that is a ``mapped_column()``. ``Annotated``
    types ignore a ``Column``. So there are two functions. Other arguments are
    those of ``Column()``.
    """
    kw.setdefault("primary_key", True)
    return Column(
        *args, type_=BigInteger(), server_default=SnowflakeDefault(function, function_schema), **kw
    )
