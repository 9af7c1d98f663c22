"""Tortoise ORM, as the section on it in docs/clients.md says."""

import asyncio
import json
from datetime import datetime, timedelta, timezone

import tortoise
from report import DATABASE, HOST, PASSWORD, PORT, USER, check, returned, version
from tortoise import Tortoise, connections, fields
from tortoise.expressions import RawSQL
from tortoise.models import Model


class SnowflakeField(fields.BigIntField):
    """A key that the database generates, and that RETURNING brings back."""

    def __init__(self, **options):
        super().__init__(primary_key=True, generated=True, **options)

    class _db_postgres:
        GENERATED_SQL = "BIGINT NOT NULL PRIMARY KEY DEFAULT snowflake_nextval()"


class Order(Model):
    id = SnowflakeField()
    note = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "orders"


class BulkRow(Model):
    id = SnowflakeField()
    note = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "bulk_rows"


class Entry(Model):
    id = SnowflakeField()
    note = fields.CharField(max_length=100)

    class Meta:
        table = "entries"


class Ticket(Model):
    note = fields.CharField(max_length=100, unique=True)

    class Meta:
        table = "tickets"


async def insert_many(connection, notes):
    return await connection.execute_query_dict(
        "INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note", [notes]
    )


async def main():
    version(f"Tortoise ORM {tortoise.__version__}")
    await Tortoise.init(
        db_url=f"asyncpg://{USER}:{PASSWORD}@{HOST}:{PORT}/{DATABASE}", modules={"models": ["__main__"]}
    )
    await Tortoise.generate_schemas()
    connection = connections.get("default")

    # A new table, and many rows.
    order = await Order.create(note="first")
    returned("orders", "first", order.id)
    notes = [f"row {number}" for number in range(2000)]
    for row in await insert_many(connection, notes):
        returned("bulk_rows", row["note"], row["id"])
    entries = [Entry(note=note) for note in notes]
    await Entry.bulk_create(entries)
    statements = await connection.execute_query_dict(
        "SELECT sum(calls) AS calls FROM pg_stat_statements WHERE query LIKE 'INSERT INTO \"entries\"%'"
    )
    check(statements[0]["calls"] == 2000, f"bulk_create(): {statements[0]['calls']} statements for 2000 rows")
    check(all(entry.pk is None for entry in entries), "bulk_create() does not return IDs")

    # A table that is migrated. Its model stays: the key's type in Python is int.
    returned("tickets", "old", (await Ticket.create(note="old")).id)
    await connection.execute_script("CALL snowflake_migrate.run('tickets')")
    await connection.close()
    new = await Ticket.create(note="new")
    returned("tickets", "new", new.id)
    check((await Ticket.get(id=new.id)).note == "new", "get() of a migrated table")

    # A range of time.
    since = datetime.now(timezone.utc) - timedelta(hours=1)
    found = await BulkRow.filter(id__gte=RawSQL(f"snowflake_min_id('{since.isoformat()}')")).count()
    check(found == 2000, f"{found} of 2000 rows are found by time")

    # As text.
    sent = json.dumps({"id": str(order.id)})
    check(json.loads(sent)["id"] == str(order.id), f"JSON has the ID as text: {sent}")
    await Tortoise.close_connections()


asyncio.run(main())
