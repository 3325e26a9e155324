// Renders the tunnel keys in docs/configuration.md from the rows of tunnel options.
import type * as z from 'zod';
import { defaultOf, OPTION_KEYS, optionOf } from '../../packages/tunnel-spec/src/index.ts';

/** Beginning of the line for `proto`, the only tunnel key that is not an option. The generated rows follow it. */
const FIRST = '| `tunnels.<name>.proto` ';

interface Row {
  readonly key: string;
  readonly type: string;
  readonly byDefault: unknown;
  readonly isRequired?: boolean | undefined;
  readonly meaning: string;
}

/** Returns the default of a key in a nested table. */
const defaultOfField = (schema: z.ZodType, field: string): unknown => {
  const { shape } = (schema as z.ZodOptional<z.ZodObject>).unwrap();
  const answer = (shape?.[field] as z.ZodType | undefined)?.safeParse(undefined);
  return answer?.success ? answer.data : undefined;
};

export const ROWS: readonly Row[] = OPTION_KEYS.flatMap((key) => {
  const { docs, fields = {}, schema } = optionOf(key);
  const nested = Object.entries(fields).map(([field, row]) => ({
    key: `${key}.${field}`,
    byDefault: defaultOfField(schema(), field),
    ...row.docs,
  }));
  return docs === undefined ? nested : [{ key, byDefault: defaultOf(key), ...docs }, ...nested];
});

const defaultText = ({ byDefault, isRequired = false }: Row): string => {
  if (isRequired) return 'required';
  return byDefault === undefined ? 'none' : `\`${JSON.stringify(byDefault)}\``;
};

/** Renders a table line with cells as wide as those above. */
const lineOf = (row: Row, widths: readonly number[]): string => {
  const cells = [`\`tunnels.<name>.${row.key}\``, row.type, defaultText(row), row.meaning];
  return `|${cells.map((cell, index) => ` ${cell} `.padEnd(widths[index] ?? 0)).join('|')}|`;
};

/** Returns the page with the lines of all options. */
export const render = (page: string): string => {
  const lines = page.split('\n');
  const first = lines.findIndex((line) => line.startsWith(FIRST));
  const end = lines.findIndex((line, index) => index > first && !line.startsWith('|'));
  const rule = lines.slice(0, first).findLast((line) => /^\|[ -]+\|/.test(line)) ?? '';
  const widths = rule
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.length);
  return [...lines.slice(0, first + 1), ...ROWS.map((row) => lineOf(row, widths)), ...lines.slice(end)].join('\n');
};
