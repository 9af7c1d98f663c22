// Kysely, as the section on it in docs/clients.md says.
import { Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import { check, database, notes, returned, version } from "../report.js";

version("Kysely", "kysely");
const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool(database) }) });

// The migration of a new table.
async function up(db) {
  await db.schema
    .createTable("orders")
    .addColumn("id", "bigint", (column) => column.primaryKey().defaultTo(sql`snowflake_nextval()`))
    .addColumn("note", "text", (column) => column.unique())
    .execute();
}

// The migration of a table in use.
async function migrateTickets(db) {
  await sql`CALL snowflake_migrate.run('tickets')`.execute(db);
}

await up(db);
await db.schema
  .createTable("bulk_rows")
  .addColumn("id", "bigint", (column) => column.primaryKey().defaultTo(sql`snowflake_nextval()`))
  .addColumn("note", "text", (column) => column.unique())
  .execute();
await db.schema
  .createTable("tickets")
  .addColumn("id", "serial", (column) => column.primaryKey())
  .addColumn("note", "text", (column) => column.unique())
  .execute();

// A new table, and many rows.
const insert = (note) => db.insertInto("orders").values({ note }).returning("id").executeTakeFirstOrThrow();
const insertMany = (notes) =>
  db.insertInto("bulk_rows").values(notes.map((note) => ({ note }))).returning(["id", "note"]).execute();
const { id } = await insert("first");
check(typeof id === "string", `an ID is a ${typeof id}`);
returned("orders", "first", id);
for (const row of await insertMany(notes)) returned("bulk_rows", row.note, row.id);

// A table that is migrated.
const insertTicket = (note) => db.insertInto("tickets").values({ note }).returning("id").executeTakeFirstOrThrow();
returned("tickets", "old", (await insertTicket("old")).id);
await migrateTickets(db);
returned("tickets", "new", (await insertTicket("new")).id);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await db
  .selectFrom("bulk_rows")
  .select("id")
  .where("id", ">=", sql`snowflake_min_id(${since})`)
  .execute();
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify({ id });
check(JSON.parse(sent).id === id, `JSON has the ID as text: ${sent}`);
await db.destroy();
