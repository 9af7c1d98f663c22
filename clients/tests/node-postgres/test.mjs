// node-postgres, as the section on it in docs/clients.md says.
import pg from "pg";
import { check, database, notes, refusal, returned, version } from "../report.js";

version("node-postgres", "pg");
const client = new pg.Client(database);
await client.connect();
for (const table of ["orders", "bulk_rows"]) {
  await client.query(`CREATE TABLE ${table} (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)`);
}

async function insert(note) {
  const { rows } = await client.query("INSERT INTO orders (note) VALUES ($1) RETURNING id", [note]);
  return rows[0].id; // a string
}

async function insertMany(notes) {
  const { rows } = await client.query(
    "INSERT INTO bulk_rows (note) SELECT unnest($1::text[]) RETURNING id, note",
    [notes],
  );
  return rows;
}

// A new table, and many rows.
const id = await insert("first");
check(typeof id === "string", `an ID is a ${typeof id}`);
returned("orders", "first", id);
for (const row of await insertMany(notes)) returned("bulk_rows", row.note, row.id);

// A table that is migrated, and a named statement from before.
await client.query("CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)");
const insertTicket = (note) => ({ name: "ticket", text: "INSERT INTO tickets (note) VALUES ($1) RETURNING id", values: [note] });
const old = (await client.query(insertTicket("old"))).rows[0].id;
check(typeof old === "number", `an integer is a ${typeof old}`);
returned("tickets", "old", old);
const other = new pg.Client(database);
await other.connect();
await other.query("CALL snowflake_migrate.run('tickets')");
const refused = await refusal(client.query(insertTicket("refused")));
check(refused?.includes("cached plan must not change result type"), `a named statement from before the migration: ${refused}`);
const [{ id: ticket }] = (await other.query(insertTicket("new"))).rows;
check(typeof ticket === "string", `after the migration it is a ${typeof ticket}`);
returned("tickets", "new", ticket);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const { rows: recent } = await client.query("SELECT id FROM bulk_rows WHERE id >= snowflake_min_id($1)", [since]);
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify({ id });
check(JSON.parse(sent).id === id, `JSON has the ID as text: ${sent}`);
const odd = (BigInt(id) | 1n).toString();
check(String(Number(odd)) !== odd, `Number(): ${odd} becomes ${BigInt(Number(odd))}`);
const { rows: [{ made }] } = await client.query("SELECT json_build_object('id', $1::bigint) AS made", [odd]);
check(String(made.id) !== odd, `json_build_object() without ::text: ${odd} becomes ${BigInt(made.id)}`);
await client.end();
await other.end();
