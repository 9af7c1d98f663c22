// Writes down what a client returned; for the tests in JavaScript.
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";

const out = process.env.OUT;

export const database = {
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  database: process.env.PGDATABASE,
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
};
export const url = `postgresql://${database.user}:${database.password}@${database.host}:${database.port}/${database.database}`;
export const notes = Array.from({ length: 2000 }, (_, number) => `row ${number}`);

/** The version of an installed package. */
export function version(title, name) {
  const { version } = JSON.parse(readFileSync(new URL(`../../node_modules/${name}/package.json`, import.meta.url)));
  writeFileSync(`${out}/version`, `${title} ${version}\n`);
}

export function returned(relation, note, id) {
  appendFileSync(`${out}/ids`, `${relation}\t${note}\t${id}\n`);
}

export function check(ok, what) {
  appendFileSync(`${out}/checks`, `${ok ? "ok" : "failed"}\t${String(what).replaceAll(/\s+/g, " ")}\n`);
}

/** The message of the error, or nothing. */
export async function refusal(promise) {
  try {
    await promise;
    return undefined;
  } catch (error) {
    return String(error.message ?? error);
  }
}
