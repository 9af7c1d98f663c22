// MikroORM, as the section on it in docs/clients.md says.
import { BigIntType, EntitySchema, MikroORM, raw } from "@mikro-orm/postgresql";
import { check, database, notes, refusal, returned, version } from "../report.js";

version("MikroORM", "@mikro-orm/postgresql");

const Order = new EntitySchema({
  name: "Order",
  tableName: "orders",
  properties: {
    id: { type: new BigIntType("string"), primary: true, autoincrement: false, defaultRaw: "snowflake_nextval()" },
    note: { type: "text", unique: true },
  },
});
const OrderLine = new EntitySchema({
  name: "OrderLine",
  tableName: "order_lines",
  properties: {
    id: { type: new BigIntType("string"), primary: true, autoincrement: false, defaultRaw: "snowflake_nextval()" },
    order: { kind: "m:1", entity: () => Order },
  },
});
const BulkRow = new EntitySchema({
  name: "BulkRow",
  tableName: "bulk_rows",
  properties: {
    id: { type: new BigIntType("string"), primary: true, autoincrement: false, defaultRaw: "snowflake_nextval()" },
    note: { type: "text", unique: true },
  },
});
// What was there before the migration.
const Ticket = new EntitySchema({
  name: "Ticket",
  tableName: "tickets",
  properties: { id: { type: "integer", primary: true }, note: { type: "text", unique: true } },
});
// The same table, as it is declared after the migration.
const MigratedTicket = new EntitySchema({
  name: "MigratedTicket",
  tableName: "tickets",
  properties: {
    id: { type: new BigIntType("string"), primary: true, autoincrement: false, defaultRaw: "snowflake_nextval()" },
    note: { type: "text", unique: true },
  },
});

const ignoreSchema = ["snowflake_internal", "snowflake_migrate", "snowflake_migrate_internal", "snowflake_partitions", "snowflake_partitions_internal"];
const schemaGenerator = { ignoreSchema, skipTables: [/^snowflake_/], skipViews: [/^snowflake_/] };
const { database: dbName, ...server } = database;
const connect = (entities, options) => MikroORM.init({ ...server, dbName, entities, ...options });

/** The statements of the diff between the entities and the database. */
async function changes(orm) {
  return (await orm.schema.getUpdateSchemaSQL({ wrap: false })).split("\n").filter((line) => line.trim());
}
const inserted = async (orm, entity, note) => {
  const em = orm.em.fork();
  const row = em.create(entity, { note });
  await em.persist(row).flush();
  return row;
};

const orm = await connect([Order, OrderLine, BulkRow], { schemaGenerator });
await orm.schema.create();
const left = await changes(orm);
check(left.length === 0, `after create() the diff has ${left.length} statements: ${left}`);

// The schema's diff without and with the settings that keep the extension out of
// it, as the role that has created the extension: others do not see its views.
const owner = { user: "postgres", password: undefined };
const unfiltered = await connect([Order, OrderLine, BulkRow], owner);
const filtered = await connect([Order, OrderLine, BulkRow], { ...owner, schemaGenerator });
const ofExtension = async (orm) => (await changes(orm)).filter((line) => line.includes("snowflake"));
const drops = await ofExtension(unfiltered);
check(
  drops.some((line) => /^drop schema .*snowflake_internal/.test(line)),
  `without the settings the diff drops the extension, with ${drops.length} statements`,
);
const refused = await refusal(unfiltered.schema.update());
check(refused?.includes("requires it"), `and update() fails: ${refused}`);
const kept = await ofExtension(filtered);
check(kept.length === 0, `with the settings ${kept.length} of them are left: ${kept}`);

// A new table, and many rows.
const order = await inserted(orm, Order, "first");
check(typeof order.id === "string" && BigInt(order.id) > 2n ** 53n, `an ID above 2^53 is a ${typeof order.id}: ${order.id}`);
returned("orders", "first", order.id);
const em = orm.em.fork();
const rows = notes.map((note) => em.create(BulkRow, { note }));
await em.persist(rows).flush();
for (const { id, note } of rows) returned("bulk_rows", note, id);
const found = await orm.em.fork().findOne(Order, { id: order.id });
check(found?.note === "first", `a row is found by its ID: ${found?.note}`);
const changed = await orm.em.fork().nativeUpdate(Order, { id: order.id }, { note: "first" });
check(changed === 1, `an update by ID changes ${changed} row`);
const lines = orm.em.fork();
await lines.persist(lines.create(OrderLine, { order: order.id })).flush();
const [line] = await orm.em.fork().find(OrderLine, {}, { populate: ["order"] });
check(line.order.note === "first", `a row that references the ID finds it: ${line.order.note}`);

// A table that is migrated, and what the diff makes of it with the entity from
// before and with the other one.
const before = await connect([Ticket], { schemaGenerator });
await before.schema.create();
returned("tickets", "old", (await inserted(before, Ticket, "old")).id);
await before.em.fork().execute("CALL snowflake_migrate.run('tickets')");
const ofTickets = async (orm) => (await changes(orm)).filter((line) => line.includes('"tickets"'));
const unchanged = await ofTickets(before);
check(unchanged.some((line) => /drop default/i.test(line)), `with an unchanged entity the key loses its default: ${unchanged}`);
const after = await connect([MigratedTicket], { schemaGenerator });
const rest = await ofTickets(after);
check(rest.length === 1 && /drop constraint "snowflake_id_boundary"/.test(rest[0]), `with the new entity the boundary's CHECK is left: ${rest}`);
const ticket = await inserted(after, MigratedTicket, "new");
check(typeof ticket.id === "string", `the ID of a migrated table is a ${typeof ticket.id}`);
returned("tickets", "new", ticket.id);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await orm.em.fork().find(BulkRow, { id: { $gte: raw("snowflake_min_id(?)", [since]) } });
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify(order);
check(JSON.parse(sent).id === order.id, `JSON has the ID as text: ${sent}`);
for (const each of [orm, unfiltered, filtered, before, after]) await each.close();
