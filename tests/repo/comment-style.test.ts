// Comments of the product do not become harder to read: what is counted, and the bounds of each workspace (scripts/lib/comment-style.mjs).
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';

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
  readonly bounds: Readonly<Record<string, Figures>>;
}

const { boundFor, commentsOf, figuresOf, judge, readStyle, styleComplaints, verdictOf, worstFirst } = (await import(
  join(ROOT, 'scripts/lib/comment-style.mjs')
)) as {
  boundFor: (figure: number) => number;
  commentsOf: (file: string, source: string) => Comment[];
  figuresOf: (comments: readonly Comment[], style: Style) => Figures;
  judge: (text: string, style: Style) => { readonly pronouns: number; readonly banned: readonly string[] };
  readStyle: () => Style;
  styleComplaints: (root: string, style?: Style) => string[];
  verdictOf: (figure: number, bound: number) => string;
  worstFirst: (comments: readonly Comment[], figure: keyof Figures, style: Style) => Comment[];
};
const style = readStyle();

const said = (...texts: readonly string[]): Comment[] => texts.map((text) => ({ line: 1, text }));

it('the comments of every workspace are as plain as they were', () => {
  expect(Object.keys(style.bounds).length).toBeGreaterThan(15);
  expect(styleComplaints(ROOT).join('\n')).toBe('');
});

it('lines below each other are one comment; headings and instructions for tools are none', () => {
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

it('the figures are the mean over comments, and the share of comments with banned words, in percent', () => {
  const comments = said('It is it.', 'Whoever comes.', 'Plain words alone here.', 'More of them.');
  const found = figuresOf(comments, style);
  expect(found.pronouns).toBeCloseTo((100 * (2 / 3 + 1 / 2 + 0 + 1 / 3)) / 4, 10);
  expect(found.banned).toBe(25);
  expect(figuresOf([], style)).toEqual({ pronouns: 0, banned: 0 });
});

it('the worst come first, by the figure that is over its bound', () => {
  const comments = said('It and its.', 'Somebody whom the long and plain sentence names.');
  expect(worstFirst(comments, 'pronouns', style)[0]?.text).toBe('It and its.');
  expect(worstFirst(comments, 'banned', style)[0]?.text).toMatch(/^Somebody/);
});

it.each([
  [12.31, 12.3, 'worse'],
  [12.3, 12.3, 'good'],
  [11.8, 12.3, 'good'],
  [11.79, 12.3, 'better'],
])('a figure of %d with the bound %d is %s', (figure, bound, verdict) => {
  expect(verdictOf(figure, bound)).toBe(verdict);
});

it.each([
  [12.31, 12.4],
  [12.3, 12.3],
  [0, 0],
])('the bound for %d is %d', (figure, bound) => {
  expect(boundFor(figure)).toBe(bound);
});

it('a complaint names workspace, figure and bound, the worst new comments, and the bound to write', async () => {
  const dir = await temporaryDirectory();
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(dir.path, path)), { recursive: true });
    writeFileSync(join(dir.path, path), text);
  };
  const commit = async (): Promise<void> => {
    await run('git', ['init', '-q'], dir.path);
    await run('git', ['add', '.'], dir.path);
    await run('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', 'commit', '-qm', 'a'], dir.path);
  };
  const complaints = (pronouns: number): string[] =>
    styleComplaints(dir.path, { ...style, bounds: { 'packages/a': { pronouns, banned: 0 } } });
  try {
    write('packages/a/src/a.ts', '// Its old one is it.\nconst a = 1;\n// Plain words.\n');
    write('packages/a/src/a.test.ts', '// Whoever it is, nobody has what is theirs.\n');
    write('packages/testkit/src/a.ts', '// It is it.\n');
    write('scripts/lib/comment-style.json', '{}\n');
    await commit();
    expect(complaints(30)).toEqual([]);
    expect(complaints(31)).toEqual([
      expect.stringMatching(
        /^packages\/a: mean share of pronouns .*: 30\.00 %, bound 31\.00 %\n.* write 30 for packages\/a, pronouns, in scripts/,
      ),
    ]);
    write('packages/a/src/b.ts', '\n// It is what nobody has.\n');
    await run('git', ['add', '.'], dir.path);
    const [pronouns, banned, ...rest] = complaints(30);
    expect(pronouns).toMatch(/^packages\/a: mean share of pronouns in a comment: 40\.00 %, bound 30\.00 %\n/);
    expect(pronouns).toContain(
      'The worst comments since the bounds were set:\n        packages/a/src/b.ts:2: It is what nobody has.\n',
    );
    expect(pronouns).not.toContain('Its old one');
    expect(banned).toMatch(/^packages\/a: share of comments with banned words or phrases: 33\.33 %, bound 0\.00 %\n/);
    expect(rest).toEqual([]);
    expect(styleComplaints(dir.path, { ...style, bounds: { 'packages/gone': { pronouns: 1, banned: 1 } } })[0]).toBe(
      'scripts/lib/comment-style.json: packages/gone does not exist: delete its bounds',
    );
  } finally {
    await dir.close();
  }
});
