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
// The most bits that each field may have.
const widest = { timestamp: 63, node: 31, backend: 12, sequence: 31 };
// The first and the last time of PostgreSQL's timestamptz, in microseconds since 1970. The last one is later than a Date
// can hold.
const firstTime = BigInt(Date.parse("-004713-11-24T00:00:00Z")) * 1_000n;
const lastTime = 9_224_318_015_999_999_999n;

/** The number of an ID, exactly. */
function numberOf(id) {
  if (typeof id === "number" && !Number.isSafeInteger(id)) throw new RangeError(`the number ${id} has lost digits`);
  // BigInt("") is 0n, and BigInt("0x10") is 16n.
  if (!/^-?\d+$/.test(["string", "number", "bigint"].includes(typeof id) ? String(id) : "")) {
    throw new SyntaxError(`"${id}" is not a number`);
  }
  return BigInt(id);
}

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
  const number = numberOf(id);
  const { fields, tick, epoch } = parseLayout(layout);
  if (number < 0n || number >> BigInt(fields[0].shift + fields[0].bits)) {
    throw new RangeError(`${id} is not an ID of the layout "${layout}"`);
  }
  const values = { node: 0n, backend: 0n, sequence: 0n };
  for (const { name, bits, shift } of fields) values[name] = BigInt.asUintN(bits, number >> BigInt(shift));
  const createdAt = new Date(Number(floorDivide(epoch + values.timestamp * tick, 1_000n)));
  if (Number.isNaN(createdAt.getTime())) throw new RangeError(`the time of ${id} is later than a Date can hold`);
  return {
    createdAt,
    nodeId: Number(values.node),
    backendId: Number(values.backend),
    sequence: Number(values.sequence),
  };
}

/**
 * Reads a layout: its fields from the most significant bit down, the length of a tick in microseconds, and the epoch in
 * microseconds since 1970. Throws a SyntaxError for what `decode` refuses.
 */
export function parseLayout(layout = "default") {
  const text = Object.hasOwn(layouts, layout) ? layouts[layout] : layout;
  const pairs = text.split(/\s+/).filter(Boolean).map((word) => word.split(/:(.*)/, 2));
  const words = { tick: "1ms", epoch: "2025-01-01T00:00:00Z", ...Object.fromEntries(pairs) };
  const [, count, unit] = /^([1-9]\d*)(us|ms|s)$/.exec(words.tick) ?? [];
  const tick = unit ? BigInt(count) * microseconds[unit] : 0n;
  const zoned = /T.*(Z|[+-]\d\d:?\d\d)$/.test(words.epoch) || !words.epoch.includes("T");
  const epoch = microsecondsOf(zoned ? words.epoch : `${words.epoch}Z`);
  const widths = pairs.filter(([name]) => name !== "tick" && name !== "epoch");
  const total = widths.reduce((sum, [, bits]) => sum + Number(bits), 0);
  const areFields =
    widths.every(([name, bits]) => Object.hasOwn(widest, name) && /^[1-9]\d?$/.test(bits) && bits <= widest[name]) &&
    new Set(pairs.map(([name]) => name)).size === pairs.length &&
    widths[0]?.[0] === "timestamp" &&
    "sequence" in words &&
    total < 64;
  if (!areFields || tick < 1n || tick > microseconds.s || epoch === undefined) {
    throw new SyntaxError(`"${layout}" is not a layout`);
  }
  if (epoch < firstTime) throw new SyntaxError(`the layout "${layout}" begins before -004713-11-24T00:00:00Z`);
  if (epoch + (tick << BigInt(widths[0][1])) > lastTime) {
    throw new SyntaxError(`the layout "${layout}" ends after +294276-12-31T23:59:59.999999Z`);
  }
  let left = total;
  const fields = widths.map(([name, bits]) => ({ name, bits: Number(bits), shift: (left -= Number(bits)) }));
  return { fields, tick, epoch };
}

/**
 * The smallest ID at or after a time, as `snowflake_min_id` returns it: 0n before the epoch. The time is a Date, or a
 * BigInt of microseconds since 1970. Throws a RangeError if no ID of the layout is that late.
 */
export function minId(at, layout = "default") {
  const { fields, tick, epoch } = parseLayout(layout);
  // Rounded up: the time of an ID is the beginning of its tick.
  const ticks = -floorDivide(epoch - microsecondsAt(at), tick);
  if (ticks <= 0n) return 0n;
  if (ticks >> BigInt(fields[0].bits)) throw new RangeError(`no ID of the layout "${layout}" is that late`);
  return ticks << BigInt(fields[0].shift);
}

/**
 * The largest ID before a time, as `snowflake_max_id_before` returns it: -1n up to the epoch, and the layout's last ID
 * for a time past its end. With `minId` it bounds a half-open range of time.
 */
export function maxIdBefore(at, layout = "default") {
  const { fields, tick, epoch } = parseLayout(layout);
  const ticks = -floorDivide(epoch - microsecondsAt(at), tick);
  if (ticks <= 0n) return -1n;
  const end = 1n << BigInt(fields[0].bits);
  return ((ticks < end ? ticks : end) << BigInt(fields[0].shift)) - 1n;
}

/**
 * Microseconds since 1970 of an ISO 8601 time, as Date.parse reads it, with up to six digits after the second;
 * undefined if it is none.
 */
export function microsecondsOf(text) {
  const milliseconds = Date.parse(text);
  const [, digits = ""] = /\.(\d+)/.exec(text) ?? [];
  if (Number.isNaN(milliseconds) || digits.length > 6) return undefined;
  return BigInt(milliseconds) * 1_000n + BigInt(digits.padEnd(6, "0").slice(3));
}

const microsecondsAt = (at) => (at instanceof Date ? BigInt(at.getTime()) * 1_000n : at);

// BigInt's own division rounds towards zero.
const floorDivide = (number, by) => (number - (((number % by) + by) % by)) / by;

const encodings = {
  base32: { digits: "0123456789ABCDEFGHJKMNPQRSTVWXYZ", width: 13 },
  base62: { digits: "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", width: 11 },
};

const largest = (1n << 63n) - 1n;

function encodingNamed(name) {
  if (!Object.hasOwn(encodings, name)) throw new RangeError(`"${name}" is not an encoding`);
  return encodings[name];
}

/**
 * The text of an ID, a string or a BigInt, in "base32" or "base62", as `snowflake_to_text` writes it. Throws as `decode`
 * for what is no ID.
 */
export function toText(id, encoding = "base32") {
  const { digits, width } = encodingNamed(encoding);
  let left = numberOf(id);
  if (left < 0n || left > largest) throw new RangeError(`${id} is not an ID`);
  let text = "";
  for (; text.length < width; left /= BigInt(digits.length)) text = digits[Number(left % BigInt(digits.length))] + text;
  return text;
}

/**
 * The ID of a text in "base32" or "base62", as a BigInt, as `snowflake_from_text` reads it. Throws a SyntaxError for
 * other characters or another length, and a RangeError if the number is above those of bigint.
 */
export function fromText(text, encoding = "base32") {
  const { digits, width } = encodingNamed(encoding);
  const read = encoding === "base32" ? text.toUpperCase().replaceAll("O", "0").replaceAll(/[IL]/g, "1") : text;
  // Of the text itself: there are other characters whose upper case is a digit here.
  if (!/^[0-9A-Za-z]*$/.test(text) || read.length !== width || [...read].some((digit) => !digits.includes(digit))) {
    throw new SyntaxError(`"${text}" is not an ID in ${encoding}`);
  }
  const id = [...read].reduce((number, digit) => number * BigInt(digits.length) + BigInt(digits.indexOf(digit)), 0n);
  if (id > largest) throw new RangeError(`"${text}" is above the largest ID`);
  return id;
}
