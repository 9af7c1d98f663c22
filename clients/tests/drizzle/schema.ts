import { sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

export const orders = pgTable("orders", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`),
  note: text().unique(),
});

export const orderLines = pgTable("order_lines", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`),
  orderId: bigint({ mode: "bigint" }).references(() => orders.id),
});

export const bulkRows = pgTable("bulk_rows", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`),
  note: text().unique(),
});
