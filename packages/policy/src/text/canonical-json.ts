// One text for equal values, whoever wrote them (RFC 8785): keys sorted by their UTF-16 units, no blanks, texts and numbers as the language writes them.

/** Of what JSON can say. A key without a value is left out, as JSON leaves it out. */
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
