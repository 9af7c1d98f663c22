// The same after the migration.
import { sql } from "drizzle-orm";
import { bigint, pgTable, text } from "drizzle-orm/pg-core";

export * from "./schema.ts";

export const tickets = pgTable("tickets", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`),
  note: text().unique(),
});
