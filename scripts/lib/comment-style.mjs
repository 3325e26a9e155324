// Measures how plainly the comments of the product are written. Each workspace has two figures in percent: the mean share of pronouns per
// comment, and the share of comments with a banned word or phrase. comment-style.json contains the word lists and a bound for each
// figure. Bounds are only ever lowered.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { FOR_TESTS } from './import-rules.mjs';
import { filesBelow, workspaceDirs } from './paths.mjs';

const DATA = 'scripts/lib/comment-style.json';

/** Reads the word lists and bounds of the repository. A line of a list contains several words or phrases. */
export function readStyle() {
  const { pronouns, banned, bounds } = JSON.parse(readFileSync(new URL('comment-style.json', import.meta.url), 'utf8'));
  const listed = (lines) => lines.flatMap((line) => line.split(', '));
  return { pronouns: new Set(listed(pronouns)), banned: listed(banned), bounds };
}

/** Comments that are not sentences: headings inside a file (`---- reading ----`), and instructions for tools. */
const NO_SENTENCE = /^\W*(?:[-=]{2,}|biome-ignore\b|oxlint-|@ts-|@vitest-)/;

/** Returns the comments of a source file as { line, text }. Consecutive lines that begin with `//` count as one comment. */
export function commentsOf(file, source) {
  const found = [];
  for (const { type, value, start, end } of parseSync(file, source).comments) {
    const last = found.at(-1);
    if (type === 'Line' && last?.isLine && /^\r?\n[ \t]*$/.test(source.slice(last.end, start))) {
      last.end = end;
      last.text += ` ${value}`;
    } else found.push({ start, end, isLine: type === 'Line', text: value.replace(/^[ \t]*\*+/gm, ' ') });
  }
  const spoken = found.map(({ start, text }) => ({ start, text: text.replace(/\s+/g, ' ').trim() }));
  return spoken
    .filter(({ text }) => !NO_SENTENCE.test(text) && wordsOf(text).length > 0)
    .map(({ start, text }) => ({ line: source.slice(0, start).split('\n').length, text }));
}

/** Splits a text into lower-case words without possessive endings. Text in backticks is code and ignored. */
function wordsOf(text) {
  const prose = text.replace(/`[^`]*`/g, ' ').toLowerCase();
  return (prose.match(/[a-z]+(?:['’][a-z]+)?/g) ?? []).map((word) => word.replace(/['’]s$/, ''));
}

/** Returns the share of pronouns in a comment, from 0 to 1, and the banned words and phrases in the comment. */
export function judge(text, { pronouns, banned }) {
  const words = wordsOf(text);
  const spoken = ` ${words.join(' ')} `;
  return {
    pronouns: words.filter((word) => pronouns.has(word)).length / words.length,
    banned: banned.filter((phrase) => spoken.includes(` ${phrase} `)),
  };
}

/** Computes the two figures of a list of comments. */
export function figuresOf(comments, style) {
  const judged = comments.map(({ text }) => judge(text, style));
  const percent = (sum) => (comments.length === 0 ? 0 : (100 * sum) / comments.length);
  return {
    pronouns: percent(judged.reduce((sum, one) => sum + one.pronouns, 0)),
    banned: percent(judged.filter((one) => one.banned.length > 0).length),
  };
}

/** Sorts comments by the requested figure, worst first, then by the second figure. */
export function worstFirst(comments, figure, style) {
  const weight = ({ text }) => {
    const { pronouns, banned } = judge(text, style);
    return figure === 'banned' ? banned.length + pronouns : pronouns + banned.length / 1000;
  };
  return [...comments].sort((a, b) => weight(b) - weight(a));
}

/** Returns the bound for a figure: the figure rounded up to the next tenth of a percent. */
export const boundFor = (figure) => Math.max(0, Math.ceil(figure * 10 - 1e-9)) / 10;

/** Maximum distance of a bound above its figure, in percentage points. A bound with a larger distance must be lowered. */
const SLACK = 0.5;

/** @returns {'good' | 'worse' | 'better'} */
export function verdictOf(figure, bound) {
  if (figure > bound + 1e-9) return 'worse';
  return bound - figure > SLACK ? 'better' : 'good';
}

const NAMES = {
  pronouns: 'mean share of pronouns in a comment',
  banned: 'share of comments with banned words or phrases',
};

const isProduct = (file) => /\.tsx?$/.test(file) && !FOR_TESTS.test(file);

/**
 * Checks the comments of the checkout at `root`. Returns a complaint for each figure that is above its bound, or too far below its bound.
 */
export function styleComplaints(root, style = readStyle()) {
  const { bounds } = style;
  const workspaces = workspaceDirs(root).filter((dir) => basename(dir) !== 'testkit');
  const gone = Object.keys(bounds).filter((workspace) => !workspaces.includes(workspace));
  return [
    ...gone.map((workspace) => `${DATA}: ${workspace} does not exist: delete its bounds`),
    ...workspaces.flatMap((workspace) => {
      const files = filesBelow(join(root, workspace, 'src')).filter(isProduct);
      const comments = files.flatMap((path) => {
        const file = relative(root, path);
        return commentsOf(path, readFileSync(path, 'utf8')).map((comment) => ({ ...comment, file }));
      });
      const figures = figuresOf(comments, style);
      return Object.keys(NAMES).flatMap((figure) =>
        complaint(
          root,
          workspace,
          { figure, comments, now: figures[figure], bound: bounds[workspace]?.[figure] ?? 0 },
          style,
        ),
      );
    }),
  ];
}

function complaint(root, workspace, { figure, comments, now, bound }, style) {
  const verdict = verdictOf(now, bound);
  if (verdict === 'good') return [];
  const about = `${workspace}: ${NAMES[figure]}: ${now.toFixed(2)} %, bound ${bound.toFixed(2)} %`;
  if (verdict === 'better') {
    return [
      `${about}\n    The comments have become better: write ${boundFor(now)} for ${workspace}, ${figure}, in ${DATA}.`,
    ];
  }
  const added = newComments(root, workspace, comments);
  const worst = worstFirst(added.length > 0 ? added : comments, figure, style).slice(0, 5);
  return [
    [
      about,
      `    The worst comments ${added.length > 0 ? 'since the bounds were set' : 'of all'}:`,
      ...worst.map(({ file, line, text }) => `        ${file}:${line}: ${text.slice(0, 200)}`),
      '    Name the subject instead of a pronoun, and say who does it. Every comment of this workspace that you rewrite lowers the figure; then',
      `    lower the bound in ${DATA}, too. Raise it only when files move in from another workspace.`,
    ].join('\n'),
  ];
}

/** Returns comments added since the bounds were last set. Returns an empty list if git has no history. */
function newComments(root, workspace, comments) {
  const git = (...args) => {
    try {
      return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    } catch {
      return '';
    }
  };
  const since = git('log', '-1', '--format=%H', '--', DATA).trim();
  if (since === '') return [];
  const changed = git('diff', '--name-only', since, '--', workspace).split('\n').filter(isProduct);
  const known = new Set(
    changed.flatMap((file) => commentsOf(file, git('show', `${since}:${file}`)).map(({ text }) => text)),
  );
  return comments.filter(({ file, text }) => changed.includes(file) && !known.has(text));
}
