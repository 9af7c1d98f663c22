import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "postgresql",
  schema: process.env.SCHEMA,
  dbCredentials: { url: process.env.DATABASE_URL! },
  schemaFilter: ["public"],
});
