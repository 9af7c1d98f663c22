/** The presets of the extension. */
export const layouts: Readonly<Record<string, string>>;

/** Reads an ID. Throws a RangeError or a SyntaxError if the layout cannot have it. */
export function decode(
  id: string | bigint | number,
  layout?: string,
): { createdAt: Date; nodeId: number; backendId: number; sequence: number };

/** Reads a layout: bits from the most significant one down, microseconds of a tick, and microseconds since 1970. */
export function parseLayout(layout?: string): {
  fields: { name: "timestamp" | "node" | "backend" | "sequence"; bits: number; shift: number }[];
  tick: bigint;
  epoch: bigint;
};

/** The smallest ID at or after a time: a Date, or microseconds since 1970. Throws a RangeError past the layout's end. */
export function minId(at: Date | bigint, layout?: string): bigint;

/** The largest ID before a time; -1n up to the epoch, the layout's last ID past its end. */
export function maxIdBefore(at: Date | bigint, layout?: string): bigint;

/** Microseconds since 1970 of an ISO 8601 time; undefined if it is none. */
export function microsecondsOf(text: string): bigint | undefined;

/** The text of an ID, as `snowflake_to_text` writes it. */
export function toText(id: string | bigint, encoding?: "base32" | "base62"): string;

/** The ID of a text, as `snowflake_from_text` reads it. Throws a SyntaxError or a RangeError if it is none. */
export function fromText(text: string, encoding?: "base32" | "base62"): bigint;
