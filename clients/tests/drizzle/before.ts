// The schema with a table that is to be migrated.
import { pgTable, serial, text } from "drizzle-orm/pg-core";

export * from "./schema.ts";

export const tickets = pgTable("tickets", {
  id: serial().primaryKey(),
  note: text().unique(),
});
