// Reads when and where an ID of the PostgreSQL extension snowflake was generated,
// without the database. Runs in Node.js and in browsers.

/** The presets of the extension; see the section "Layouts" of its reference. */
export const layouts = {
  default: "timestamp:41 node:6 backend:4 sequence:12 tick:1ms epoch:2025-01-01T00:00:00Z",
  twitter: "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2010-11-04T01:42:54.657Z",
  discord: "timestamp:41 node:5 backend:5 sequence:12 tick:1ms epoch:2015-01-01T00:00:00Z",
  instagram: "timestamp:40 node:13 sequence:10 tick:1ms epoch:2011-08-24T21:07:01.721Z",
  sonyflake: "timestamp:39 sequence:8 node:16 tick:10ms epoch:2014-09-01T00:00:00Z",
  "uid-generator": "timestamp:28 node:22 sequence:13 tick:1s epoch:2016-05-19T16:00:00Z",
  tsid: "timestamp:41 node:10 sequence:12 tick:1ms epoch:2020-01-01T00:00:00Z",
  mastodon: "timestamp:47 sequence:16 tick:1ms epoch:1970-01-01T00:00:00Z",
  clickhouse: "timestamp:41 node:10 sequence:12 tick:1ms epoch:1970-01-01T00:00:00Z",
  pgedge: "timestamp:41 node:10 sequence:12 tick:1ms epoch:2023-01-01T00:00:00Z",
  ipv4: "timestamp:28 node:24 sequence:11 tick:1s epoch:2025-01-01T00:00:00Z",
  game: "timestamp:31 node:20 sequence:12 tick:1s epoch:2025-01-01T00:00:00Z",
  js53: "timestamp:38 node:5 sequence:10 tick:10ms epoch:2025-01-01T00:00:00Z",
};

const microseconds = { us: 1n, ms: 1_000n, s: 1_000_000n };
// The first and the last time of PostgreSQL's timestamptz. The last one, in microseconds since 1970, is later than a Date
// can hold.
const firstTime = Date.parse("-004713-11-24T00:00:00Z");
const lastTime = 9_224_318_015_999_999_999n;

/**
 * Reads an ID: a string or a BigInt. A number that is too large to be exact is refused.
 *
 * The layout is the name of a preset, or the text that `SELECT layout FROM snowflake_status` returns. The time is the
 * beginning of a tick, to the millisecond. Fields that the layout does not have are 0.
 *
 * Throws a RangeError if the ID is negative or has bits above the layout's fields, is an inexact number, or has a time
 * that a Date cannot hold. Throws a SyntaxError if it is not a number, or if the layout cannot be read or begins or ends
 * outside the times of timestamptz, which the server refuses too.
 */
export function decode(id, layout = "default") {
  if (typeof id === "number" && !Number.isSafeInteger(id)) throw new RangeError(`the number ${id} has lost digits`);
  // BigInt("") is 0n, and BigInt("0x10") is 16n.
  if (!/^-?\d+$/.test(["string", "number", "bigint"].includes(typeof id) ? String(id) : "")) {
    throw new SyntaxError(`"${id}" is not a number`);
  }
  const text = Object.hasOwn(layouts, layout) ? layouts[layout] : layout;
  const fields = text.split(/\s+/).filter(Boolean).map((word) => word.split(/:(.*)/, 2));
  const words = { tick: "1ms", epoch: "2025-01-01T00:00:00Z", ...Object.fromEntries(fields) };
  const [, count, unit] = /^([1-9]\d*)(us|ms|s)$/.exec(words.tick) ?? [];
  const zoned = /T.*(Z|[+-]\d\d:?\d\d)$/.test(words.epoch) || !words.epoch.includes("T");
  const epoch = Date.parse(zoned ? words.epoch : `${words.epoch}Z`);
  const widths = fields.filter(([name]) => name !== "tick" && name !== "epoch");
  const areFields =
    widths.every(([name, bits]) => /^(timestamp|node|backend|sequence)$/.test(name) && /^[1-9]\d?$/.test(bits)) &&
    new Set(fields.map(([name]) => name)).size === fields.length &&
    widths.reduce((sum, [, bits]) => sum + Number(bits), 0) < 64;
  if (widths[0]?.[0] !== "timestamp" || !areFields || !unit || Number.isNaN(epoch)) {
    throw new SyntaxError(`"${layout}" is not a layout`);
  }
  if (epoch < firstTime) throw new SyntaxError(`the layout "${layout}" begins before -004713-11-24T00:00:00Z`);
  const tick = BigInt(count) * microseconds[unit];
  if (BigInt(epoch) * 1_000n + (tick << BigInt(widths[0][1])) > lastTime) {
    throw new SyntaxError(`the layout "${layout}" ends after +294276-12-31T23:59:59.999999Z`);
  }
  let left = BigInt(id);
  const values = { node: 0n, backend: 0n, sequence: 0n };
  for (const [name, bits] of widths.reverse()) {
    values[name] = left & ((1n << BigInt(bits)) - 1n);
    left >>= BigInt(bits);
  }
  if (left !== 0n) throw new RangeError(`${id} is not an ID of the layout "${layout}"`);
  const createdAt = new Date(epoch + Number((values.timestamp * tick) / 1_000n));
  if (Number.isNaN(createdAt.getTime())) throw new RangeError(`the time of ${id} is later than a Date can hold`);
  return {
    createdAt,
    nodeId: Number(values.node),
    backendId: Number(values.backend),
    sequence: Number(values.sequence),
  };
}
