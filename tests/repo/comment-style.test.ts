// Comments of the product do not become harder to read. comment-style.json has the words that count and, for each workspace, a bound for both
// figures. A bound only goes down.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT, run } from './checkout.fixture.ts';
import {
  boundFor,
  type Comment,
  commentsOf,
  type Figures,
  figuresOf,
  judge,
  verdictOf,
  type WordLists,
  worstFirst,
} from './comment-style.fixture.ts';

const DATA = 'tests/repo/comment-style.json';
const data = JSON.parse(readFileSync(join(ROOT, DATA), 'utf8')) as Record<keyof Figures, readonly string[]> & {
  readonly bounds: Readonly<Record<string, Figures>>;
};
const { bounds } = data;
/** A line of the file has several. */
const listed = (lines: readonly string[]): string[] => lines.flatMap((line) => line.split(', '));
const lists: WordLists = { pronouns: new Set(listed(data.pronouns)), banned: listed(data.banned) };

interface PlacedComment extends Comment {
  readonly file: string;
}

const git = async (...args: readonly string[]): Promise<string> => (await run('git', args)).stdout;

const isProduct = (path: string): boolean =>
  /\.tsx?$/.test(path) && !/\.(?:test|conformance|fixture)\.tsx?$/.test(path) && !path.startsWith('packages/testkit/');

const files = (await git('ls-files', 'packages/*/src/*', 'apps/*/src/*')).split('\n').filter(isProduct);

const byWorkspace = new Map<string, PlacedComment[]>();
for (const file of files) {
  const workspace = file.split('/', 2).join('/');
  const comments = byWorkspace.get(workspace) ?? [];
  byWorkspace.set(workspace, comments);
  const found = commentsOf(file, readFileSync(join(ROOT, file), 'utf8'));
  for (const comment of found) comments.push({ ...comment, file });
}

/** Those that were not there when the bounds were set last, as far as git knows. */
const newOf = async (comments: readonly PlacedComment[]): Promise<PlacedComment[]> => {
  const since = (await git('log', '-1', '--format=%H', '--', DATA)).trim();
  if (since === '') return [];
  const workspace = comments[0]?.file.split('/', 2).join('/') ?? '';
  const changed = (await git('diff', '--name-only', since, '--', workspace)).split('\n');
  const before = await Promise.all(
    changed.filter(isProduct).map(async (file) => commentsOf(file, await git('show', `${since}:${file}`))),
  );
  const known = new Set(before.flat().map(({ text }) => text));
  return comments.filter(({ file, text }) => changed.includes(file) && !known.has(text));
};

const figures = new Map([...byWorkspace].map(([workspace, comments]) => [workspace, figuresOf(comments, lists)]));

const NAMES: Readonly<Record<keyof Figures, string>> = {
  pronouns: 'mean share of pronouns in a comment',
  banned: 'share of comments with words of the list',
};

const percent = (figure: number): string => `${figure.toFixed(2)} %`;

const shown = ({ file, line, text }: PlacedComment): string => `    ${file}:${line}: ${text.slice(0, 200)}`;

/** '': the figure is at its bound, or a little below it. */
const complaintOf = async (workspace: string, figure: keyof Figures): Promise<string> => {
  const comments = byWorkspace.get(workspace) ?? [];
  const now = figures.get(workspace)?.[figure] ?? 0;
  const bound = bounds[workspace]?.[figure] ?? 0;
  const about = `${workspace}: ${NAMES[figure]}: ${percent(now)}, bound ${percent(bound)}`;
  const verdict = verdictOf(now, bound);
  if (verdict === 'better')
    return `${about}\nLower it: write ${boundFor(now)} for ${workspace}, ${figure}, in ${DATA}.`;
  if (verdict === 'good') return '';
  const added = await newOf(comments);
  const worst = worstFirst(added.length > 0 ? added : comments, figure, lists).slice(0, 5);
  return [
    about,
    `The worst comments ${added.length > 0 ? 'since the bounds were set' : 'of all'}:`,
    ...worst.map(shown),
    'Name the subject instead of a pronoun, and say who does it. Every comment that gets better counts: rewrite others of this',
    `workspace, too, and lower the bound in ${DATA} when the figure has fallen. It is raised only where files have moved in from another workspace.`,
  ].join('\n');
};

it('every workspace of the product has its bounds, and no other', () => {
  expect(files.length).toBeGreaterThan(300);
  expect([...byWorkspace.keys()].sort()).toEqual(Object.keys(bounds).sort());
});

describe.each([...byWorkspace.keys()])('%s', (workspace) => {
  it.each(['pronouns', 'banned'] as const)('%s: its comments are as plain as they were', async (figure) => {
    expect(await complaintOf(workspace, figure)).toBe('');
  });
});

describe('what is counted', () => {
  it('comments: lines below each other are one, headings and instructions for tools are none', () => {
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
    const found = judge(text, lists);
    expect(found.pronouns).toBeCloseTo(pronouns, 10);
    expect(found.banned).toEqual(banned);
  });

  it('figures: the mean over comments, and the share of those with words of the list, in percent', () => {
    const comments = ['It is it.', 'Whoever comes.', 'Plain words alone here.', 'More of them.'];
    const found = figuresOf(
      comments.map((text) => ({ line: 1, text })),
      lists,
    );
    expect(found.pronouns).toBeCloseTo((100 * (2 / 3 + 1 / 2 + 0 + 1 / 3)) / 4, 10);
    expect(found.banned).toBe(25);
    expect(figuresOf([], lists)).toEqual({ pronouns: 0, banned: 0 });
  });

  it('the worst come first, by the figure that is over its bound', () => {
    const comments = ['It and its.', 'Somebody whom the long and plain sentence names.'].map((text) => ({
      line: 1,
      text,
    }));
    expect(worstFirst(comments, 'pronouns', lists).map(({ text }) => text)[0]).toBe('It and its.');
    expect(worstFirst(comments, 'banned', lists).map(({ text }) => text)[0]).toMatch(/^Somebody/);
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
});
