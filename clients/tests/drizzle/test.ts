// Drizzle ORM and drizzle-kit push, as the section on them in docs/clients.md says.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { eq, gte, sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import pg from "pg";
import { check, notes, returned, url, version } from "../report.js";
import { tickets } from "./after.ts";
import { tickets as formerTickets } from "./before.ts";
import { bulkRows, orderLines, orders } from "./schema.ts";

version("Drizzle ORM", "drizzle-orm");
const client = new pg.Client(url);
await client.connect();
const db = drizzle(client);

/** What drizzle-kit prints. */
function kit(schema: string, ...args: string[]) {
  const { stdout, stderr } = spawnSync("../../../node_modules/.bin/drizzle-kit", args, {
    env: { ...process.env, SCHEMA: schema, DATABASE_URL: url, NO_COLOR: "1" },
    encoding: "utf8",
    timeout: 100_000,
  });
  return `${stdout}${stderr}`.replaceAll(/\x1b\[[0-9;?]*[a-zA-Z]/g, "");
}

const push = (schema: string, config = "drizzle.config.ts") => kit(schema, "push", "--force", "--verbose", `--config=${config}`);

const unfiltered = push("./before.ts", "unfiltered.config.ts");
check(/snowflake_/.test(unfiltered), `without tablesFilter push touches objects of the extension: ${unfiltered.match(/[^\n]*snowflake_(layouts|status|serial_columns)[^\n]*/)?.[0] ?? unfiltered.slice(-300)}`);
const created = push("./before.ts");
check(/Changes applied|No changes/.test(created), `push creates the tables: ${created.slice(-60)}`);
check(/No changes detected/.test(push("./before.ts")), "a second push finds no changes");

// A new table, and many rows.
const [{ id }] = await db.insert(orders).values({ note: "first" }).returning({ id: orders.id });
check(typeof id === "bigint", `an ID is a ${typeof id}`);
returned("orders", "first", id);
const rows = await db.insert(bulkRows).values(notes.map((note) => ({ note }))).returning();
for (const row of rows) returned("bulk_rows", row.note, row.id);
await db.insert(orderLines).values({ orderId: id });

// What drizzle-kit pull writes: a mode that changes digits, which the guide has replaced.
const pulling = kit("", "pull", "--config=pull.config.ts");
const pulled = readFileSync("pulled/schema.ts", "utf8");
check(/\sid: bigint\(\{ mode: "number" \}\)/.test(pulled), `pull writes the mode "number": ${pulling.slice(-100)}`);
check(!/snowflake_status/.test(pulled), "pull with tablesFilter writes no view of the extension");
writeFileSync("pulled/schema.ts", pulled.replaceAll('mode: "number"', 'mode: "bigint"'));
const { orders: pulledOrders } = await import("./pulled/schema.ts");
const [pulledRow] = await db.insert(pulledOrders).values({ note: "pulled" }).returning();
returned("orders", "pulled", pulledRow.id);

// A table that is migrated, with both schemas.
returned("tickets", "old", (await db.insert(formerTickets).values({ note: "old" }).returning())[0].id);
await db.execute(sql`CALL snowflake_migrate.run('tickets')`);
// As the migration's notice says; otherwise push does.
await db.execute(sql`DROP SEQUENCE tickets_id_seq_former`);
const pushed = push("./after.ts");
check(/No changes detected/.test(pushed), `push with the new schema: ${pushed.slice(-200)}`);
const [ticket] = await db.insert(tickets).values({ note: "new" }).returning();
returned("tickets", "new", ticket.id);
const columnDefault = async () =>
  (await client.query("SELECT column_default, data_type FROM information_schema.columns WHERE table_name = 'tickets' AND column_name = 'id'")).rows[0];
check((await columnDefault()).column_default === "snowflake_nextval()", `the default afterwards: ${(await columnDefault()).column_default}`);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await db.select().from(bulkRows).where(gte(bulkRows.id, sql`snowflake_min_id(${since})`));
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);
check((await db.select().from(orders).where(eq(orders.id, id))).length === 1, "a row by its ID");

// As text.
const sent = JSON.stringify({ id: id.toString() });
check(BigInt(JSON.parse(sent).id) === id, `JSON has the ID as text: ${sent}`);

// The schema that still has a serial.
const former = push("./before.ts");
const { column_default, data_type } = await columnDefault();
check(/type "serial" does not exist/.test(former), `push with the former schema: ${former.match(/error:[^\n]*/i)?.[0] ?? "no error"}`);
check(data_type === "bigint" && column_default === "snowflake_nextval()", `afterwards the key is ${data_type} with default ${column_default}`);
await client.end();
