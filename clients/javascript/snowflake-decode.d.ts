/** The presets of the extension. */
export const layouts: Readonly<Record<string, string>>;

/** Reads an ID. Throws a RangeError or a SyntaxError if the layout cannot have it. */
export function decode(
  id: string | bigint | number,
  layout?: string,
): { createdAt: Date; nodeId: number; backendId: number; sequence: number };
