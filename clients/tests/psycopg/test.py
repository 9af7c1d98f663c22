"""psycopg 3, as the section on it in docs/clients.md says."""

import io
import json
from datetime import datetime, timedelta, timezone

import pandas
import psycopg
from report import check, returned, version

version(f"psycopg {psycopg.__version__}")
connection = psycopg.connect(autocommit=True)
connection.execute("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)")
connection.execute("CREATE TABLE bulk_rows (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)")
connection.execute("CREATE TABLE one_by_one (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)")
connection.execute("CREATE TABLE copied (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text)")
notes = [f"row {number}" for number in range(2000)]


def insert(note):
    return connection.execute("INSERT INTO orders (note) VALUES (%s) RETURNING id", [note]).fetchone()[0]


def insert_many(notes):
    return connection.execute(
        "INSERT INTO bulk_rows (note) SELECT unnest(%s::text[]) RETURNING id, note", [notes]
    ).fetchall()


def load(notes):
    with connection.cursor() as cursor, cursor.copy("COPY copied (note) FROM STDIN") as copy:
        for note in notes:
            copy.write_row([note])


def of_last_hours(hours):
    since = datetime.now(timezone.utc) - timedelta(hours=hours)
    return connection.execute("SELECT id FROM bulk_rows WHERE id >= snowflake_min_id(%s)", [since]).fetchall()


# A new table, and many rows.
id = insert("first")
returned("orders", "first", id)
check(isinstance(id, int), "an ID is an int")
for bulk_id, note in insert_many(notes):
    returned("bulk_rows", note, bulk_id)
load(notes)
distinct = connection.execute("SELECT count(DISTINCT id) FROM copied").fetchone()[0]
check(distinct == 2000, f"COPY: {distinct} distinct IDs")
with connection.cursor() as cursor:
    cursor.executemany("INSERT INTO one_by_one (note) VALUES (%s)", [[note] for note in notes])
statements = connection.execute(
    "SELECT sum(calls) FROM pg_stat_statements WHERE query LIKE 'INSERT INTO one_by_one%'"
).fetchone()[0]
check(statements == 2000, f"executemany: {statements} statements for 2000 rows")

# A table that is migrated, and a statement that psycopg has prepared before.
connection.execute("CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)")
insert_ticket = "INSERT INTO tickets (note) VALUES (%s) RETURNING id"
returned("tickets", "old", connection.execute(insert_ticket, ["old"]).fetchone()[0])
for number in range(6):
    connection.execute(insert_ticket, [f"frequent {number}"])
with psycopg.connect(autocommit=True) as other:
    other.execute("CALL snowflake_migrate.run('tickets')")
try:
    connection.execute(insert_ticket, ["refused"])
    state = "none"
except psycopg.Error as error:
    state = error.sqlstate
check(state == "0A000", f"a frequent statement, on a connection from before the migration: {state}")
with psycopg.connect(autocommit=True) as fresh:
    returned("tickets", "new", fresh.execute(insert_ticket, ["new"]).fetchone()[0])

# A range of time.
found = len(of_last_hours(1))
check(found == 2000, f"{found} of 2000 rows are found by time")

# As text, and in pandas.
sent = json.dumps({"id": str(id)})
check(json.loads(sent)["id"] == str(id), f"JSON has the ID as text: {sent}")
orders = pandas.DataFrame({"id": [id | 1, id + 2]})
lines = pandas.DataFrame({"order_id": [id | 1]})
outer = orders.merge(lines, how="left", left_on="id", right_on="order_id")
check(str(outer["order_id"].dtype) == "float64", f"an outer join of pandas makes the IDs {outer['order_id'].dtype}")
check(int(outer["order_id"][0]) != id | 1, f"and {id | 1} becomes {int(outer['order_id'][0])}")
rows = [{"id": id | 1}, {"id": None}]
too_late = pandas.DataFrame(rows).astype("Int64")
lost = too_late["id"][0]
check(lost != id | 1, f"a column with NULL: {id | 1} becomes {lost}, also with astype() afterwards")
in_time = pandas.DataFrame(rows, dtype="Int64")
check(in_time["id"][0] == id | 1, f"with the type given at once it stays {in_time['id'][0]}")
for text in [f"id\n{id | 1}\n\n", f"id\n{id | 1}\nNULL\n"]:
    table = pandas.read_csv(io.StringIO(text), dtype={"id": "Int64"})
    check(table["id"][0] == id | 1, f"read_csv() with Int64 keeps {table['id'][0]}")
outer = orders.astype("Int64").merge(lines.astype("Int64"), how="left", left_on="id", right_on="order_id")
check(outer["order_id"][0] == id | 1, f"with Int64 it stays {outer['order_id'][0]}")
