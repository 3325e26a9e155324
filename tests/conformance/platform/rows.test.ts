// Every row has a test, and README.md says where.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ROWS, type Section } from './rows.ts';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
const USE = /\brow\(\s*'([^']+)',\s*(\d+)/g;

const filesOfRows = (): Map<string, string[]> => {
  const found = new Map<string, string[]>();
  for (const file of readdirSync(FOLDER)
    .filter((name) => name.endsWith('.test.ts'))
    .sort()) {
    for (const [, section, number] of readFileSync(FOLDER + file, 'utf8').matchAll(USE)) {
      const key = `${section} ${number}`;
      found.set(key, [...new Set([...(found.get(key) ?? []), file])]);
    }
  }
  return found;
};

const allRows = Object.entries(ROWS).flatMap(([section, rows]) =>
  [...rows].map(([number, text]) => ({ section: section as Section, number, text, key: `${section} ${number}` })),
);

it('every row has a test', () => {
  const found = filesOfRows();
  expect(allRows.filter(({ key }) => !found.has(key)).map(({ key, text }) => `${key}: ${text}`)).toEqual([]);
});

it('README.md maps rows to tests (UPDATE_DOCS=1 writes it)', () => {
  const found = filesOfRows();
  const lines = allRows.map(
    ({ section, number, text, key }) => `| ${section} ${number} | ${text} | ${(found.get(key) ?? []).join(', ')} |`,
  );
  const text = [
    '# The platform API, the specification row by row',
    '',
    'Each test is named after its row: `npx vitest run tests/conformance/platform -t "API keys, row 2"`.',
    'Rows are listed in `rows.ts`, those of the section Contract are decisions where the specification is silent.',
    '`bad-input*.test.ts` sends every endpoint what nobody should send. `*.db.test.ts` are about time: the platform in the process, with a clock that moves on request.',
    '',
    '| Row | Says | Tested in |',
    '|---|---|---|',
    ...lines,
    '',
  ].join('\n');
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(`${FOLDER}README.md`, text);
  expect(readFileSync(`${FOLDER}README.md`, 'utf8')).toBe(text);
});
