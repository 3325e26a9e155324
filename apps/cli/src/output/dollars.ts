// Money as people write it: dollars in, cents out, and back.

/** `20`, `20.5` and `20.50`, with or without a dollar sign; null for anything else. No arithmetic on fractions. */
export const centsOf = (text: string): number | null => {
  const parts = /^\$?(\d{1,12})(?:\.(\d{1,2}))?$/.exec(text);
  if (parts === null) return null;
  const [, dollars = '0', rest = ''] = parts;
  return Number(dollars) * 100 + Number(rest.padEnd(2, '0'));
};

export const dollarsText = (cents: number): string =>
  `$${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
