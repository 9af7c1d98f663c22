from snowflake_id_sqlalchemy import snowflake_key
from sqlalchemy import BigInteger, ForeignKey
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column


class Before(DeclarativeBase):
    """The models before."""


class TicketBefore(Before):
    __tablename__ = "tickets"
    id: Mapped[int] = mapped_column(primary_key=True)
    note: Mapped[str] = mapped_column(unique=True)


class CommentBefore(Before):
    __tablename__ = "comments"
    id: Mapped[int] = mapped_column(primary_key=True)
    ticket_id: Mapped[int] = mapped_column(ForeignKey("tickets.id"))


class LegacyBefore(Before):
    __tablename__ = "legacy"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)


class Base(DeclarativeBase):
    """The models after."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)


class BulkRow(Base):
    __tablename__ = "bulk_rows"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)


class Ticket(Base):
    __tablename__ = "tickets"
    id: Mapped[int] = snowflake_key()
    note: Mapped[str] = mapped_column(unique=True)


class Comment(Base):
    __tablename__ = "comments"
    id: Mapped[int] = snowflake_key()
    ticket_id: Mapped[int] = mapped_column(ForeignKey("tickets.id"))


class Legacy(Base):
    """Is migrated by hand, and keeps its model."""

    __tablename__ = "legacy"
    id: Mapped[int] = mapped_column(BigInteger, primary_key=True)
