// The glossary of ARCHITECTURE.md: a single row per word, and no file name and no identifier of the product contains a rejected word.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync, visitorKeys } from 'oxc-parser';
import { expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

const page = readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8');
const glossary = page.slice(page.indexOf('\n## Glossary\n'));

/** Returns the words in the first column of the table below `heading`. A cell can contain several words. */
const wordsBelow = (heading: string): string[] => {
  const rows = new RegExp(`^\\| ${heading} \\|.*\\n\\|[-|]+\\n((?:\\|.*\\n?)+)`, 'm').exec(glossary)?.[1] ?? '';
  return rows
    .split('\n')
    .flatMap((row) => (row.split('|', 2)[1]?.trim() ?? '').split(', ').filter((word) => word !== ''));
};

const used = wordsBelow('Word');
const refused = wordsBelow('Not');

/** Returns the words of an identifier: `askAnother`, `ask-another` and `ASK_ANOTHER` become ` ask another `. */
const spoken = (name: string): string =>
  ` ${name
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()} `;

/** Returns the rejected words of a name. "In place" is allowed as an expression, and "open world" is a hint of the MCP protocol. */
const refusedIn = (name: string): string[] => {
  const text = spoken(name).replaceAll(' in place ', ' ').replaceAll(' open world ', ' ');
  return refused.filter((word) => text.includes(` ${word} `) || text.includes(` ${word}s `));
};

/** Verdicts by name, because most names appear in many files. */
const judged = new Map<string, boolean>();
const isRefused = (name: string): boolean => {
  const is = judged.get(name) ?? refusedIn(name).length > 0;
  judged.set(name, is);
  return is;
};

/**
 * Matches texts that could contain a rejected word, so that most files need no parsing. `replace` is removed before, because it appears
 * everywhere.
 */
const MAY_BE_THERE = new RegExp(refused.join('|').replaceAll(' ', '[-_]?'), 'i');

interface Syntax {
  readonly type: string;
  readonly [key: string]: unknown;
}

const IDENTIFIERS = ['Identifier', 'PrivateIdentifier', 'JSXIdentifier'];

const identifiersOf = (node: Syntax, found: Set<string>): void => {
  if (IDENTIFIERS.includes(node.type)) found.add(String(node['name']));
  for (const key of visitorKeys[node.type] ?? []) {
    for (const child of [node[key]].flat() as (Syntax | null | undefined)[]) if (child) identifiersOf(child, found);
  }
};

it('each glossary word has a single row', () => {
  expect(used.length).toBeGreaterThan(30);
  expect(refused.length).toBeGreaterThan(15);
  const all = [...used, ...refused];
  expect(all.filter((word, index) => all.indexOf(word) !== index)).toEqual([]);
});

it('no file name and no identifier of the product contains a word that the glossary rejects', async () => {
  const { stdout } = await run('git', ['ls-files', 'packages/*/src/*', 'apps/*/src/*']);
  const files = stdout.split('\n').filter((path) => /\.tsx?$/.test(path));
  expect(files.length).toBeGreaterThan(300);
  const uses = files.flatMap((path) => {
    const text = readFileSync(join(ROOT, path), 'utf8');
    const names = new Set([path.split('/').slice(3).join('/')]);
    if (MAY_BE_THERE.test(text.replace(/replace/gi, '')))
      identifiersOf(parseSync(path, text).program as unknown as Syntax, names);
    return [...names].filter(isRefused).map((name) => `${path}: ${name}`);
  });
  expect(uses).toEqual([]);
});

it.each([
  ['askAnother', ['ask another']],
  ['PublicPlace', ['place']],
  ['capture-desk.ts', ['desk']],
  ['LAST_WORDS', ['last words']],
  ['places', ['place']],
  ['HTTPExchange', ['exchange']],
  ['replaceAll', []],
  ['placeholder', []],
  ['calendar', []],
  ['IN_PLACE_BYTES', []],
])('rejected glossary words in %s are %j', (name, words) => {
  expect(refusedIn(name)).toEqual(words);
});
