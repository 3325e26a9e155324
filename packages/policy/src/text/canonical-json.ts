// Canonical JSON (RFC 8785): equal values give equal text. Keys are sorted by UTF-16 units, without blanks; strings and numbers are written
// as in JavaScript.

/** Accepts JSON values. Keys with an undefined value are omitted, as in JSON.stringify. */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const table = value as Readonly<Record<string, unknown>>;
  const pairs = Object.keys(table)
    .sort()
    .filter((key) => table[key] !== undefined)
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(table[key])}`);
  return `{${pairs.join(',')}}`;
};
