// TypeORM, as the section on it in docs/clients.md says.
import "reflect-metadata";
import { DataSource, MoreThanOrEqual, Raw } from "typeorm";
import { BulkRow, MigratedTicket, Order, OrderLine, Ticket, TrappedBigint, TrappedInteger } from "./entities.js";
import { check, database, notes, refusal, returned, version } from "../report.js";

version("TypeORM", "typeorm");
const connect = (entities) =>
  new DataSource({ type: "postgres", ...database, username: database.user, entities }).initialize();

/** The statements that synchronize() would run. */
async function changes(source) {
  const log = await source.driver.createSchemaBuilder().log();
  return log.upQueries.map(({ query }) => query);
}

const source = await connect([Order, OrderLine, BulkRow]);
await source.synchronize();
check((await changes(source)).length === 0, `after synchronize() it has nothing to do: ${await changes(source)}`);

// A new table, and many rows.
const order = await source.getRepository(Order).save({ note: "first" });
check(typeof order.id === "string", `an ID is a ${typeof order.id}`);
returned("orders", "first", order.id);
const { generatedMaps } = await source.getRepository(BulkRow).insert(notes.map((note) => ({ note })));
generatedMaps.forEach(({ id }, index) => returned("bulk_rows", notes[index], id));
await source.getRepository(OrderLine).save({ order });
const [{ type }] = await source.query(
  "SELECT data_type AS type FROM information_schema.columns WHERE table_name = 'order_lines' AND column_name = 'orderId'",
);
check(type === "bigint", `a column that references the key is ${type}`);

// A table that is migrated, and what synchronize() makes of it with the entity
// from before and with the other one.
const before = await connect([Ticket, TrappedInteger, TrappedBigint]);
await before.synchronize();
returned("tickets", "old", (await before.getRepository(Ticket).save({ note: "old" })).id);
for (const table of ["tickets", "trapped_integers", "trapped_bigints"]) {
  await before.query(`INSERT INTO ${table} (note) VALUES ('raw')`);
  await before.query(`CALL snowflake_migrate.run('${table}')`);
  await before.query(`INSERT INTO ${table} (note) VALUES ('after')`);
}
const ids = async (table) => (await before.query(`SELECT id FROM ${table} ORDER BY id`)).map(({ id }) => id).join(", ");
const [wereIntegers, wereBigints] = [await ids("trapped_integers"), await ids("trapped_bigints")];
const unchanged = await changes(before);
check(unchanged.some((query) => /"trapped_integers" DROP COLUMN "id"/.test(query)), "an unchanged int entity: synchronize() drops the key column");
const trapped = await connect([TrappedInteger, TrappedBigint]);
await trapped.synchronize();
check((await ids("trapped_integers")) === "1, 2", `and numbers the rows anew: ${wereIntegers} becomes ${await ids("trapped_integers")}`);
const [{ column_default }] = await before.query(
  "SELECT column_default FROM information_schema.columns WHERE table_name = 'trapped_bigints' AND column_name = 'id'",
);
check(!String(column_default).includes("snowflake"), `an unchanged bigint entity: the default becomes ${column_default}`);
check((await ids("trapped_bigints")) === wereBigints, "and the rows keep their IDs");
const withoutDefault = await refusal(trapped.getRepository(TrappedBigint).save({ note: "without a default" }));
check(withoutDefault?.includes("null value in column"), `and an insert fails: ${withoutDefault}`);

const after = await connect([MigratedTicket]);
const rest = (await changes(after)).filter((query) => query.includes("tickets"));
check(rest.length === 0, `with the new entity synchronize() has nothing to do: ${rest}`);
await after.synchronize();
const ticket = await after.getRepository(MigratedTicket).save({ note: "new" });
returned("tickets", "new", ticket.id);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await source.getRepository(BulkRow).findBy({
  id: Raw((id) => `${id} >= snowflake_min_id(:since)`, { since }),
});
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);
check((await source.getRepository(Order).findOneBy({ id: order.id }))?.note === "first", "findOneBy() an ID");
check((await source.getRepository(Order).countBy({ id: MoreThanOrEqual(order.id) })) === 1, "a comparison with an ID");

// As text.
const sent = JSON.stringify(order);
check(JSON.parse(sent).id === order.id, `JSON has the ID as text: ${sent}`);
for (const each of [source, before, trapped, after]) await each.destroy();
