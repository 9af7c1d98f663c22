from snowflake_id_sqlalchemy import snowflake_key
from sqlalchemy import BigInteger, ForeignKey, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)


class OrderLine(Base):
    __tablename__ = "order_lines"
    id: Mapped[int] = snowflake_key()
    order_id: Mapped[int] = mapped_column(ForeignKey("orders.id"))


class BulkRow(Base):
    __tablename__ = "bulk_rows"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)


class AsyncRow(Base):
    __tablename__ = "async_rows"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str]


class RowByRow(Base):
    """What does not do: SQLAlchemy cannot tell that these IDs increase."""

    __tablename__ = "row_by_row"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True, server_default=text("snowflake_nextval()"))
    note: Mapped[str]


class Wrong(Base):
    """What does not do: this becomes a BIGSERIAL."""

    __tablename__ = "not_a_snowflake"
    id: Mapped[int] = mapped_column(
        BigInteger, primary_key=True, autoincrement=True, server_default=text("snowflake_nextval()")
    )
    note: Mapped[str]


class Before(DeclarativeBase):
    pass


class TicketBefore(Before):
    """The table before its migration, which SQLAlchemy makes a SERIAL."""

    __tablename__ = "tickets"
    id: Mapped[int] = mapped_column(primary_key=True)
    note: Mapped[str] = mapped_column(unique=True)


class After(DeclarativeBase):
    pass


class Ticket(After):
    __tablename__ = "tickets"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)
