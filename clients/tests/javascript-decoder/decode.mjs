// Reads lines of a layout and an ID, and writes what the ID consists of.
import { readFileSync } from "node:fs";
import { decode } from "../../javascript/snowflake-decode.js";

for (const line of readFileSync(0, "utf8").trimEnd().split("\n")) {
  const [layout, id] = line.split("\t");
  const { createdAt, nodeId, backendId, sequence } = decode(id, layout);
  console.log([layout, id, createdAt.toISOString().replace(/^\+0+/, ""), nodeId, backendId, sequence].join("\t"));
}
