// The same after the migration.
import { sql } from "drizzle-orm";
import { bigint, check, pgTable, text } from "drizzle-orm/pg-core";

export * from "./schema.ts";

export const tickets = pgTable("tickets", {
  id: bigint({ mode: "bigint" }).primaryKey().default(sql`snowflake_nextval()`),
  note: text().unique(),
}, () => [
  check("snowflake_id_boundary", sql`((id >= '132271570944000000'::bigint) OR (id <= '2147483647'::bigint) OR true)`),
]);
