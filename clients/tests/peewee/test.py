"""peewee, as the section on it in docs/clients.md says."""

import json
from datetime import datetime, timedelta, timezone

import peewee
from peewee import SQL, BigAutoField, ForeignKeyField, Model, PostgresqlDatabase, TextField, fn
from report import DATABASE, HOST, PASSWORD, PORT, USER, check, returned, version

version(f"peewee {peewee.__version__}")
database = PostgresqlDatabase(DATABASE, host=HOST, port=PORT, user=USER, password=PASSWORD)


class SnowflakeField(BigAutoField):
    field_type = "BIGINT"

    def __init__(self, **options):
        super().__init__(constraints=[SQL("DEFAULT snowflake_nextval()")], **options)


class Base(Model):
    class Meta:
        database = database


class Order(Base):
    id = SnowflakeField()
    note = TextField(unique=True)

    class Meta:
        table_name = "orders"


class OrderLine(Base):
    id = SnowflakeField()
    order = ForeignKeyField(Order)


class BulkRow(Base):
    id = SnowflakeField()
    note = TextField(unique=True)

    class Meta:
        table_name = "bulk_rows"


class Ticket(Base):
    note = TextField(unique=True)

    class Meta:
        table_name = "tickets"


database.create_tables([Order, OrderLine, BulkRow, Ticket])

# A new table, and many rows.
order = Order.create(note="first")
returned("orders", "first", order.id)
rows = [{"note": f"row {number}"} for number in range(2000)]
for id, note in BulkRow.insert_many(rows).returning(BulkRow.id, BulkRow.note).tuples():
    returned("bulk_rows", note, id)
line = OrderLine.create(order=order)
check(OrderLine.get(OrderLine.order == order).id == line.id, "a row that references the key")
types = database.execute_sql(
    "SELECT string_agg(DISTINCT data_type, ',') FROM information_schema.columns"
    " WHERE table_name IN ('orders', 'orderline') AND column_name IN ('id', 'order_id')"
).fetchone()[0]
check(types == "bigint", f"keys and references are {types}")

# A table that is migrated. Its model stays: the key's type in Python is int.
returned("tickets", "old", Ticket.create(note="old").id)
database.execute_sql("CALL snowflake_migrate.run('tickets')")
new = Ticket.create(note="new")
returned("tickets", "new", new.id)
check(Ticket.get_by_id(new.id).note == "new", "get_by_id() of a migrated table")

# A range of time.
since = datetime.now(timezone.utc) - timedelta(hours=1)
found = BulkRow.select().where(BulkRow.id >= fn.snowflake_min_id(since)).count()
check(found == 2000, f"{found} of 2000 rows are found by time")

# As text.
sent = json.dumps({"id": str(order.id)})
check(json.loads(sent)["id"] == str(order.id), f"JSON has the ID as text: {sent}")
