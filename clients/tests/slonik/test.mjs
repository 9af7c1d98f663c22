// Slonik, as the section on it in docs/clients.md says.
import { createPool, sql } from "slonik";
import * as slonik33 from "slonik-33";
import { check, notes, returned, url, version } from "../report.js";

version("Slonik", "slonik");
const pool = await createPool(url);
for (const table of ["orders", "bulk_rows", "trapped", "kept"]) {
  const name = sql.identifier([table]);
  await pool.query(sql.unsafe`CREATE TABLE ${name} (id bigint PRIMARY KEY DEFAULT snowflake_nextval(), note text UNIQUE)`);
}

async function insert(note) {
  return pool.oneFirst(sql.unsafe`INSERT INTO orders (note) VALUES (${note}) RETURNING id`); // a BigInt
}

async function insertMany(notes) {
  return pool.any(sql.unsafe`
    INSERT INTO bulk_rows (note) SELECT unnest(${sql.array(notes, "text")}) RETURNING id, note
  `);
}

// A new table, and many rows.
const id = await insert("first");
check(typeof id === "bigint" && id > 2n ** 53n, `an ID above 2^53 is a ${typeof id}: ${id}`);
returned("orders", "first", id);
for (const row of await insertMany(notes)) returned("bulk_rows", row.note, row.id);
const found = await pool.maybeOneFirst(sql.unsafe`SELECT note FROM orders WHERE id = ${id}`);
check(found === "first", `a row is found by its ID: ${found}`);
const changed = await pool.any(sql.unsafe`UPDATE orders SET note = note WHERE id = ${id} RETURNING note`);
check(changed.length === 1, `an update by ID changes ${changed.length} row`);

// Slonik before 36, as it is, and with a type parser.
const before36 = await slonik33.createPool(url);
const remedied = await slonik33.createPool(url, {
  typeParsers: [...slonik33.createTypeParserPreset(), { name: "int8", parse: (value) => value }],
});
const inserting = (table) => slonik33.sql.unsafe`
  INSERT INTO ${slonik33.sql.identifier([table])} (note) SELECT unnest(${slonik33.sql.array(notes, "text")}) RETURNING id, note
`;
const trapped = await before36.any(inserting("trapped"));
const stored = new Map(
  (await pool.any(sql.unsafe`SELECT note, id::text AS id FROM trapped`)).map((row) => [row.note, row.id]),
);
const lost = trapped.filter((row) => BigInt(row.id) !== BigInt(stored.get(row.note)));
check(lost.length > 1000, `Slonik 33 without a type parser: ${lost.length} of ${trapped.length} IDs are not the row's`);
const wrong = await before36.any(slonik33.sql.unsafe`UPDATE trapped SET note = note WHERE id = ${lost[0].id} RETURNING note`);
check(
  wrong[0]?.note !== lost[0].note,
  `and an update of "${lost[0].note}" by its ID changes ${wrong.length ? `"${wrong[0].note}"` : "no row"}`,
);
const kept = await remedied.any(inserting("kept"));
for (const row of kept) returned("kept", row.note, row.id);
check(kept.every((row) => typeof row.id === "string"), `with a type parser an ID is a ${typeof kept[0].id}`);
const right = await remedied.any(slonik33.sql.unsafe`UPDATE kept SET note = note WHERE id = ${kept[0].id} RETURNING note`);
check(right.length === 1 && right[0].note === kept[0].note, `and an update by ID changes ${right.length} row`);

// A table that is migrated.
await pool.query(sql.unsafe`CREATE TABLE tickets (id serial PRIMARY KEY, note text UNIQUE)`);
const insertTicket = (note) => sql.unsafe`INSERT INTO tickets (note) VALUES (${note}) RETURNING id`;
const old = await pool.oneFirst(insertTicket("old"));
check(typeof old === "number", `an integer is a ${typeof old}`);
returned("tickets", "old", old);
await pool.query(sql.unsafe`CALL snowflake_migrate.run('tickets')`);
const ticket = await pool.oneFirst(insertTicket("new"));
check(typeof ticket === "bigint", `after the migration it is a ${typeof ticket}`);
returned("tickets", "new", ticket);

// A range of time.
const since = new Date(Date.now() - 3_600_000).toISOString();
const recent = await pool.any(sql.unsafe`SELECT id FROM bulk_rows WHERE id >= snowflake_min_id(${since})`);
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify({ id: id.toString() });
check(JSON.parse(sent).id === String(id), `JSON has the ID as text: ${sent}`);
for (const each of [pool, before36, remedied]) await each.end();
