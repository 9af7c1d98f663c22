// Sequelize, as the section on it in docs/clients.md says.
import { DataTypes, Model, Op, Sequelize } from "sequelize";
import { check, notes, returned, url, version } from "../report.js";

version("Sequelize", "sequelize");
const sequelize = new Sequelize(url, { logging: false, define: { timestamps: false } });

class Order extends Model {}
Order.init(
  {
    id: { type: DataTypes.BIGINT, primaryKey: true, allowNull: true, defaultValue: Sequelize.literal("snowflake_nextval()") },
    note: { type: DataTypes.TEXT, unique: true },
  },
  { sequelize, tableName: "orders" },
);

class BulkRow extends Model {}
BulkRow.init(
  {
    id: { type: DataTypes.BIGINT, primaryKey: true, allowNull: true, defaultValue: Sequelize.literal("snowflake_nextval()") },
    note: { type: DataTypes.TEXT, unique: true },
  },
  { sequelize, tableName: "bulk_rows" },
);

class Ticket extends Model {}
Ticket.init(
  { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, note: DataTypes.TEXT },
  { sequelize, tableName: "tickets" },
);
await sequelize.sync();

// A new table, and many rows.
const order = await Order.create({ note: "first" });
check(typeof order.id === "string", `an ID is a ${typeof order.id}`);
returned("orders", "first", order.id);
for (const row of await BulkRow.bulkCreate(notes.map((note) => ({ note })))) returned("bulk_rows", row.note, row.id);

// A table that is migrated, and its declaration afterwards.
returned("tickets", "old", (await Ticket.create({ note: "old" })).id);
await sequelize.query("CALL snowflake_migrate.run('tickets')");

class MigratedTicket extends Model {}
MigratedTicket.init(
  { id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true }, note: DataTypes.TEXT },
  { sequelize, tableName: "tickets" },
);
const ticket = await MigratedTicket.create({ note: "new" });
check(typeof ticket.id === "string", `the ID of a migrated table is a ${typeof ticket.id}`);
returned("tickets", "new", ticket.id);
const columnDefault = async () =>
  (await sequelize.query(
    "SELECT column_default FROM information_schema.columns WHERE table_name = 'tickets' AND column_name = 'id'",
    { type: "SELECT" },
  ))[0].column_default;
await sequelize.sync();
check((await columnDefault()) === "snowflake_nextval()", `sync() leaves the default: ${await columnDefault()}`);
await Order.sync({ alter: true });
const later = await Order.create({ note: "after alter" });
check(BigInt(later.id) > BigInt(order.id), `sync({ alter: true }) of a new table leaves it: ${later.id}`);

// A range of time.
const since = new Date(Date.now() - 3_600_000);
const recent = await BulkRow.findAll({ where: { id: { [Op.gte]: Sequelize.fn("snowflake_min_id", since) } } });
check(recent.length === 2000, `${recent.length} of 2000 rows are found by time`);

// As text.
const sent = JSON.stringify(order);
check(JSON.parse(sent).id === order.id, `JSON has the ID as text: ${sent}`);
await sequelize.close();
