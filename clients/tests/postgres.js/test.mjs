// postgres.js, as the section on it in docs/clients.md says.
import postgres from "postgres";
import { check, database, notes, refusal, returned, version } from "../report.js";

version("postgres.js", "postgres");
const options = { ...database, username: database.user, max: 1, onnotice() {} };
const sql = postgres(options);
for (const table of ["orders", "bulk_rows"]) {
  await sql`CREATE TABLE ${sql(table)} (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)`;
}

async function insert(note) {
  const [{ id }] = await sql`INSERT INTO orders ${sql({ note })} RETURNING id`;
  return id; // a string
}

async function insertMany(notes) {
  return sql`INSERT INTO bulk_rows ${sql(notes.map((note) => ({ note })))} RETURNING id, note`;
}

// A new table, and many rows.
const id = await insert("first");
check(typeof id === "string", `an ID is a ${typeof id}`);
returned("orders", "first", id);
for (const row of await insertMany(notes)) returned("bulk_rows", row.note, row.id);

// IDs as BigInt.
const big = postgres({ ...options, types: { bigint: postgres.BigInt } });
const [{ id: asBigInt }] = await big`SELECT id FROM orders WHERE id = ${BigInt(id)}`;
check(asBigInt === BigInt(id), `with types.bigint an ID is a ${typeof asBigInt}`);
check(await refusal(Promise.resolve().then(() => JSON.stringify({ id: asBigInt }))), "JSON.stringify() refuses a BigInt");

// A table that is migrated, and a statement from before.
await sql`CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)`;
const insertTicket = (sql, note) => sql`INSERT INTO tickets (note) VALUES (${note}) RETURNING id`;
returned("tickets", "old", (await insertTicket(sql, "old"))[0].id);
await big`CALL snowflake_migrate.run('tickets')`;
const first = await refusal(insertTicket(sql, "first after"));
check(first === undefined, `a statement from before the migration: ${first ?? "is prepared again"}`);
returned("tickets", "new", (await insertTicket(big, "new"))[0].id);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await sql`SELECT id FROM bulk_rows WHERE id >= snowflake_min_id(${since})`;
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify({ id });
check(JSON.parse(sent).id === id, `JSON has the ID as text: ${sent}`);
await sql.end();
await big.end();
