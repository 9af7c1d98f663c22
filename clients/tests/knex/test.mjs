// Knex, as the section on it in docs/clients.md says.
import Knex from "knex";
import { check, database, notes, returned, version } from "../report.js";

version("Knex", "knex");
const knex = Knex({ client: "pg", connection: database });

// The migration of a new table.
const createOrders = {
  async up(knex) {
    await knex.schema.createTable("orders", (table) => {
      table.bigInteger("id").primary().defaultTo(knex.raw("snowflake_nextval()"));
      table.text("note").unique();
    });
  },
  async down(knex) {
    await knex.schema.dropTable("orders");
  },
};

// The migration of a table in use.
const snowflakeTickets = {
  async up(knex) {
    await knex.raw("CALL snowflake_migrate.run('tickets')");
  },
  async down(knex) {
    await knex.raw("CALL snowflake_migrate.revert('tickets')");
  },
};

await createOrders.up(knex);
await knex.schema.createTable("bulk_rows", (table) => {
  table.bigInteger("id").primary().defaultTo(knex.raw("snowflake_nextval()"));
  table.text("note").unique();
});
await knex.schema.createTable("tickets", (table) => {
  table.increments("id");
  table.text("note").unique();
});

// A new table, and many rows.
const [{ id }] = await knex("orders").insert({ note: "first" }).returning("id");
check(typeof id === "string", `an ID is a ${typeof id}`);
const rows = await knex("bulk_rows").insert(notes.map((note) => ({ note }))).returning(["id", "note"]);
for (const row of rows) returned("bulk_rows", row.note, row.id);

// A table that is migrated, and back.
returned("tickets", "old", (await knex("tickets").insert({ note: "old" }).returning("id"))[0].id);
await snowflakeTickets.up(knex);
const [{ id: ticket }] = await knex("tickets").insert({ note: "new" }).returning("id");
returned("tickets", "new", ticket);
await snowflakeTickets.down(knex);
const [{ id: reverted }] = await knex("tickets").insert({ note: "reverted" }).returning("id");
check(Number(reverted) === 2, `the migration is reverted: ${reverted}`);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await knex("bulk_rows").whereRaw("id >= snowflake_min_id(?)", [since]).select("id");
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify({ id });
check(JSON.parse(sent).id === id, `JSON has the ID as text: ${sent}`);
await createOrders.down(knex);
await createOrders.up(knex);
const again = await knex("orders").insert({ note: "first" }).returning("id");
check(BigInt(again[0].id) > BigInt(id), "a table that is created again has later IDs");
returned("orders", "first", again[0].id);
await knex.destroy();
