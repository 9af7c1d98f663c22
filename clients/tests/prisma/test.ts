// Prisma, as the section on it in docs/clients.md says.
import { readFileSync } from "node:fs";
import { PrismaPg } from "@prisma/adapter-pg";
import pg from "pg";
import { check, notes, refusal, returned, url, version } from "../report.js";
import { PrismaClient } from "./generated/client.ts";

version("Prisma", "@prisma/client");
const client = new pg.Client(url);
await client.connect();
await client.query(readFileSync("migration.sql", "utf8"));
const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });

// A new table, and many rows.
const order = await prisma.order.create({ data: { note: "first", lines: { create: [{}] } }, include: { lines: true } });
check(typeof order.id === "bigint" && order.lines[0].orderId === order.id, `an ID is a ${typeof order.id}`);
returned("orders", "first", order.id);
const rows = await prisma.bulkRow.createManyAndReturn({ data: notes.map((note) => ({ note })) });
for (const row of rows) returned("bulk_rows", row.note, row.id);

// A table that is migrated, with both declarations.
returned("tickets", "old", (await prisma.formerTicket.create({ data: { note: "old" } })).id);
await client.query("CALL snowflake_migrate.run('former_tickets')");
const refused = await refusal(prisma.formerTicket.create({ data: { note: "refused" } }));
check(refused, `an Int after the migration: ${refused?.slice(-150)}`);
await client.query("ALTER TABLE former_tickets RENAME TO tickets");
await client.query("ALTER TABLE tickets ADD UNIQUE (note)");
const { rows: inserted } = await client.query("SELECT count(*) FROM tickets WHERE note = 'refused'");
check(inserted[0].count === "1", `rows that were inserted in spite of the error: ${inserted[0].count}`);
returned("tickets", "new", (await prisma.ticket.create({ data: { note: "new" } })).id);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const [{ first }] = await prisma.$queryRaw<[{ first: bigint }]>`SELECT snowflake_min_id(${since}) AS first`;
const recent = await prisma.bulkRow.findMany({ where: { id: { gte: first } } });
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
check(await refusal(Promise.resolve().then(() => JSON.stringify(order))), "JSON.stringify() refuses a BigInt");
const toText = (_key: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value);
const sent = JSON.stringify({ id: order.id }, toText);
check(BigInt(JSON.parse(sent).id) === order.id, `JSON has the ID as text: ${sent}`);
await prisma.$disconnect();
await client.end();
