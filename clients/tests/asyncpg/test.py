"""asyncpg, as the section on it in docs/clients.md says."""

import asyncio
import json
from datetime import datetime, timedelta, timezone

import asyncpg
from report import check, returned, version

NOTES = [f"row {number}" for number in range(2000)]


async def insert(connection, note):
    return await connection.fetchval("INSERT INTO orders (note) VALUES ($1) RETURNING id", note)


async def insert_many(connection, notes):
    return await connection.fetch("INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note", notes)


async def load(connection, notes):
    await connection.copy_records_to_table("copied", columns=["note"], records=[(note,) for note in notes])


async def main():
    version(f"asyncpg {asyncpg.__version__}")
    connection = await asyncpg.connect()
    for table in ["orders", "bulk_rows", "copied"]:
        await connection.execute(
            f"CREATE TABLE {table} (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)"
        )
    id = await insert(connection, "first")
    returned("orders", "first", id)
    for row in await insert_many(connection, NOTES):
        returned("bulk_rows", row["note"], row["id"])
    await load(connection, NOTES)
    distinct = await connection.fetchval("SELECT count(DISTINCT id) FROM copied")
    check(distinct == 2000, f"copy_records_to_table: {distinct} distinct IDs")

    # A table that is migrated, and statements that asyncpg has prepared before.
    await connection.execute("CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)")
    insert_ticket = "INSERT INTO tickets (note) VALUES ($1) RETURNING id"
    returned("tickets", "old", await connection.fetchval(insert_ticket, "old"))
    by_id = "SELECT note FROM tickets WHERE id = $1"
    await connection.fetchval(by_id, 1)
    other = await asyncpg.connect()
    await other.execute("CALL snowflake_migrate.run('tickets')")
    new = await other.fetchval(insert_ticket, "new")
    returned("tickets", "new", new)
    try:
        await connection.fetchval(by_id, new)
        refused = None
    except asyncpg.DataError as error:
        refused = error
    check("int32" in str(refused), f"a statement from before the migration: {refused}")
    await connection.reload_schema_state()
    check(await connection.fetchval(by_id, new) == "new", "the same after reload_schema_state()")
    returned("tickets", "newer", await connection.fetchval(insert_ticket, "newer"))

    # A range of time.
    found = await connection.fetchval(
        "SELECT count(*) FROM bulk_rows WHERE id >= snowflake_min_id($1)",
        datetime.now(timezone.utc) - timedelta(hours=1),
    )
    check(found == 2000, f"{found} of 2000 rows are found by time")

    # As text.
    sent = json.dumps({"id": str(id)})
    check(json.loads(sent)["id"] == str(id), f"JSON has the ID as text: {sent}")


asyncio.run(main())
