// Product comments are plain English: the measurement of comments, and the figures of each workspace (scripts/lib/comment-style.mjs).
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { ROOT } from './checkout.fixture.ts';

interface Comment {
  readonly line: number;
  readonly text: string;
}

interface Figures {
  readonly pronouns: number;
  readonly banned: number;
}

interface Style {
  readonly pronouns: ReadonlySet<string>;
  readonly banned: readonly string[];
}

const { commentsOf, figuresOf, judge, readStyle, styleComplaints, worstFirst } = (await import(
  join(ROOT, 'scripts/lib/comment-style.mjs')
)) as {
  commentsOf: (file: string, source: string) => Comment[];
  figuresOf: (comments: readonly Comment[], style: Style) => Figures;
  judge: (text: string, style: Style) => { readonly pronouns: number; readonly banned: readonly string[] };
  readStyle: () => Style;
  styleComplaints: (root: string) => string[];
  worstFirst: (comments: readonly Comment[], figure: keyof Figures, style: Style) => Comment[];
};
const style = readStyle();

const said = (...texts: readonly string[]): Comment[] => texts.map((text) => ({ line: 1, text }));

it('the comments of every workspace are within the style limits', () => {
  expect(styleComplaints(ROOT).join('\n')).toBe('');
});

it('consecutive line comments count as a single comment; section headings and tool directives do not count', () => {
  const source = [
    '// First line,',
    '// second line.',
    'const a = 1; // Behind code.',
    '',
    '// ---- reading ----',
    '/**',
    ' * Has a star',
    ' * on each line.',
    ' */',
    'const b = "// a string";',
    '// biome-ignore lint: it is so',
    'const c = `/* a template */`;',
    '/* 42 */',
  ].join('\n');
  expect(commentsOf('a.ts', source)).toEqual([
    { line: 1, text: 'First line, second line.' },
    { line: 3, text: 'Behind code.' },
    { line: 6, text: 'Has a star on each line.' },
  ]);
});

it.each([
  ['Maximum size of the file in bytes.', 0, []],
  ['It is what nobody has.', 3 / 5, ['nobody']],
  ['Nobody’s, and whose?', 2 / 3, ['nobody', 'whose']],
  ['`it` is code, `nobody` too.', 0, []],
  ['Is renewed by itself.', 1 / 4, ['by itself']],
  ['Item one: bodies are read anew', 1 / 6, ['anew']],
])('%s', (text, pronouns, banned) => {
  const found = judge(text, style);
  expect(found.pronouns).toBeCloseTo(pronouns, 10);
  expect(found.banned).toEqual(banned);
});

it('comment style figures are the mean pronoun share and the share of comments with banned words, in percent', () => {
  const comments = said('It is it.', 'Whoever comes.', 'Plain words alone here.', 'More of them.');
  const found = figuresOf(comments, style);
  expect(found.pronouns).toBeCloseTo((100 * (2 / 3 + 1 / 2 + 0 + 1 / 3)) / 4, 10);
  expect(found.banned).toBe(25);
  expect(figuresOf([], style)).toEqual({ pronouns: 0, banned: 0 });
});

it('the worst comments come first, by the figure that exceeds its limit', () => {
  const comments = said('It and its.', 'Somebody whom the long and plain sentence names.');
  expect(worstFirst(comments, 'pronouns', style)[0]?.text).toBe('It and its.');
  expect(worstFirst(comments, 'banned', style)[0]?.text).toMatch(/^Somebody/);
});

it('a comment style complaint has the workspace, the figure, its limit and the worst comments of product files', async () => {
  const dir = await temporaryDirectory();
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir.path, path)), { recursive: true });
    writeFileSync(join(dir.path, path), text);
  };
  try {
    write('packages/a/src/a.ts', '// The file of the old names.\nconst a = 1;\n// Plain words.\n');
    write('packages/a/src/a.test.ts', '// Whoever it is, nobody has what is theirs.\n');
    expect(styleComplaints(dir.path)).toEqual([]);
    write('packages/a/src/b.ts', '\n// It is what nobody has.\n');
    const [pronouns, banned, ...rest] = styleComplaints(dir.path);
    expect(pronouns).toMatch(
      /^packages\/a: mean share of pronouns in a comment: 20\.00 %, at most 7 %\. .*\n {4}\S+b\.ts:2: It/,
    );
    expect(banned).toMatch(/^packages\/a: share of comments with banned words or phrases: 33\.33 %, at most 1 %\. /);
    expect(rest).toEqual([]);
  } finally {
    await dir.close();
  }
});
