"""What docs/clients.md says about SQLAlchemy 2.0 and 2.1, with a server."""

import asyncio
import json
import os
from datetime import timedelta

import sqlalchemy
from models import After, AsyncRow, Base, Before, BulkRow, Order, OrderLine, RowByRow, Ticket, TicketBefore, Wrong
from sqlalchemy import create_engine, func, inspect, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

OUT = os.environ["OUT"]
ids = open(f"{OUT}/ids", "w")
checks = open(f"{OUT}/checks", "a")


def check(passed, what):
    checks.write(f"{'ok' if passed else 'failed'}\t{what}\n")


def returned(row):
    ids.write(f"{row.__table__.name}\t{row.note}\t{row.id}\n")


def inserts_into(session, table):
    return session.scalar(
        text(
            "SELECT coalesce(sum(calls), 0)::int FROM pg_stat_statements JOIN pg_database AS d ON d.oid = dbid"
            " WHERE datname = current_database() AND toplevel AND query ~* :pattern"
        ),
        {"pattern": rf"^insert\s+into\s+{table}\y"},
    )


def new_tables(engine):
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        order = Order(note="first")
        session.add(order)
        session.flush()
        print(order.id)  # an int, from RETURNING
        session.add(OrderLine(order_id=order.id))
        session.commit()
        returned(order)

        rows = [BulkRow(note=f"row {i}") for i in range(2000)]
        session.add_all(rows)
        session.commit()
        for row in rows:
            returned(row)

        last_hour = select(Order).where(Order.id >= func.snowflake_min_id(func.now() - timedelta(hours=1)))
        orders = session.scalars(last_hour).all()
        check([o.note for o in orders] == ["first"], "a range of the key finds the order of the last hour")
        long_ago = func.snowflake_between(Order.id, func.now() - timedelta(hours=2), func.now() - timedelta(hours=1))
        check(not session.scalars(select(Order).where(long_ago)).all(), "an earlier range finds no order")

        message = json.dumps({"id": str(order.id), "note": order.note})
        same = session.get(Order, int(json.loads(message)["id"]))
        check(same is order, "an ID that was sent as text finds its row")
        changed = sum(int(float(row.id)) != row.id for row in rows)
        check(changed > 1000, "most IDs would change as JSON numbers of a browser")


def migrated_table(engine):
    Before.metadata.create_all(engine)
    with Session(engine) as session:
        ticket = TicketBefore(note="before")
        session.add(ticket)
        session.commit()
        returned(ticket)
        check(ticket.id == 1, "the ticket before the migration has the number 1")

    with engine.begin() as connection:
        connection.execute(text("CALL snowflake_migrate.run('tickets')"))
    # Connections from before the migration have statements for integers.
    engine.dispose()

    with Session(engine) as session:
        ticket = Ticket(note="after")
        session.add(ticket)
        session.commit()
        returned(ticket)
        new_id = ticket.id
        check(new_id > 1 << 40, "the ticket after the migration has a snowflake ID")
        check(session.get(Ticket, 1).note == "before", "the old ticket is found by its number")
        session.add_all([Ticket(note=f"more {i}") for i in range(2000)])
        session.commit()
        check(inserts_into(session, "tickets") == 4, "2 statements insert 2,000 rows into the migrated table")

    # After is only the mapping: create_all() must not change the table.
    After.metadata.create_all(engine)

    # The mapping from before, with Integer: the trap of the guide.
    with Session(engine) as session:
        try:
            session.get(TicketBefore, new_id)
            check(False, "a mapping with Integer fails to find a snowflake ID")
        except DBAPIError as error:
            check(error.orig.sqlstate == "22003", "a mapping with Integer fails to find a snowflake ID (22003)")


def traps(engine):
    with Session(engine) as session:
        session.add_all([RowByRow(note=str(i)) for i in range(2000)])
        session.commit()
        naive, ours = inserts_into(session, "row_by_row"), inserts_into(session, "bulk_rows")
        check(naive == 2000, 'server_default=text("snowflake_nextval()"): 2000 statements for 2,000 rows')
        check(ours == 2, "snowflake_key(): 2 statements for 2,000 rows")

    def default(table):
        return next(c["default"] for c in inspect(engine).get_columns(table) if c["name"] == "id")

    check("nextval('" in default(Wrong.__tablename__), "autoincrement=True: create_all() makes a BIGSERIAL")
    check(default("orders") == "snowflake_nextval()", "snowflake_key(): create_all() makes the default")
    columns = {c["name"]: c["type"] for c in inspect(engine).get_columns("order_lines")}
    check(isinstance(columns["order_id"], sqlalchemy.BigInteger), "a column that references the key is a bigint")


async def asynchronous():
    engine = create_async_engine("postgresql+asyncpg://")
    async with AsyncSession(engine, expire_on_commit=False) as session:
        rows = [AsyncRow(note=str(i)) for i in range(2000)]
        session.add_all(rows)
        await session.commit()
        stored = dict((await session.execute(select(AsyncRow.note, AsyncRow.id))).all())
    await engine.dispose()
    check({row.note: row.id for row in rows} == stored, "asyncpg: each of 2,000 objects has the ID of its row")


with open(f"{OUT}/version", "w") as file:
    file.write(f"SQLAlchemy {sqlalchemy.__version__}\n")
engine = create_engine("postgresql+psycopg://")
new_tables(engine)
migrated_table(engine)
traps(engine)
asyncio.run(asynchronous())
with Session(engine) as session:
    check(inserts_into(session, "async_rows") == 2, "asyncpg: 2 statements for 2,000 rows")
