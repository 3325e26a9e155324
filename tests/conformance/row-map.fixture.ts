// Maps specification rows to tests: every row has a test, and the folder's README.md lists the files.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

export type Rows = Readonly<Record<string, ReadonlyMap<number, string>>>;

export interface RowMap {
  /** The value of import.meta.url in the test file. */
  readonly at: string;
  readonly rows: Rows;
  /** Lines of the README above its table. */
  readonly intro: readonly string[];
}

const USE = /\brow\(\s*'([^']+)',\s*(\d+)/g;

const byName = (a: string, b: string): number => a.localeCompare(b);

const filesOfRows = (folder: string): Map<string, string[]> => {
  const found = new Map<string, string[]>();
  // Tests that share a server are in .rows.ts files, which the single test file of the folder imports.
  const files = readdirSync(folder).filter((name) => /\.(?:test|rows)\.ts$/.test(name));
  for (const file of files.sort(byName)) {
    for (const [, section, number] of readFileSync(folder + file, 'utf8').matchAll(USE)) {
      const key = `${section} ${number}`;
      found.set(key, [...new Set([...(found.get(key) ?? []), file])]);
    }
  }
  return found;
};

export const testRowMap = ({ at, rows, intro }: RowMap): void => {
  const folder = fileURLToPath(new URL('.', at));
  const all = Object.entries(rows).flatMap(([section, texts]) =>
    [...texts].map(([number, text]) => ({ text, key: `${section} ${number}` })),
  );

  it('every specification row has a test', () => {
    const found = filesOfRows(folder);
    expect(all.filter(({ key }) => !found.has(key)).map(({ key, text }) => `${key}: ${text}`)).toEqual([]);
  });

  it('README.md maps rows to tests (UPDATE_DOCS=1 writes it)', () => {
    const found = filesOfRows(folder);
    const lines = all.map(({ key, text }) => `| ${key} | ${text} | ${(found.get(key) ?? []).join(', ')} |`);
    const text = [...intro, '', '| Row | Says | Tested in |', '|---|---|---|', ...lines, ''].join('\n');
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(`${folder}README.md`, text);
    expect(readFileSync(`${folder}README.md`, 'utf8')).toBe(text);
  });
};
