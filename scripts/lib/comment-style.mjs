// How plainly the comments of the product are written, in two figures for each workspace, both in percent: the mean share of pronouns in a
// comment, and the share of comments with a banned word or phrase. comment-style.json lists the pronouns and the banned words.
import { readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseSync } from 'oxc-parser';
import { FOR_TESTS } from './import-rules.mjs';
import { filesBelow, workspaceDirs } from './paths.mjs';

/** The word lists. A line of a list has several words or phrases. */
export function readStyle() {
  const { pronouns, banned } = JSON.parse(readFileSync(new URL('comment-style.json', import.meta.url), 'utf8'));
  const listed = (lines) => lines.flatMap((line) => line.split(', '));
  return { pronouns: new Set(listed(pronouns)), banned: listed(banned) };
}

/** A heading inside a file (`---- reading ----`), or an instruction for a tool. */
const NO_SENTENCE = /^\W*(?:[-=]{2,}|biome-ignore\b|oxlint-|@ts-|@vitest-)/;

/** The comments of a source file, as { line, text }. Lines that begin with `//`, one below the other, are one comment. */
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

/** In lower case, without a possessive ending. Text between backticks is code. */
function wordsOf(text) {
  const prose = text.replace(/`[^`]*`/g, ' ').toLowerCase();
  return (prose.match(/[a-z]+(?:['’][a-z]+)?/g) ?? []).map((word) => word.replace(/['’]s$/, ''));
}

/** The share of pronouns in a comment, 0 to 1, and the banned words and phrases in it. */
export function judge(text, { pronouns, banned }) {
  const words = wordsOf(text);
  const spoken = ` ${words.join(' ')} `;
  return {
    pronouns: words.filter((word) => pronouns.has(word)).length / words.length,
    banned: banned.filter((phrase) => spoken.includes(` ${phrase} `)),
  };
}

/** Both figures of some comments. */
export function figuresOf(comments, style) {
  const judged = comments.map(({ text }) => judge(text, style));
  const percent = (sum) => (comments.length === 0 ? 0 : (100 * sum) / comments.length);
  return {
    pronouns: percent(judged.reduce((sum, one) => sum + one.pronouns, 0)),
    banned: percent(judged.filter((one) => one.banned.length > 0).length),
  };
}

/** The worst comments first: by the figure that is asked for, then by the other. */
export function worstFirst(comments, figure, style) {
  const weight = ({ text }) => {
    const { pronouns, banned } = judge(text, style);
    return figure === 'banned' ? banned.length + pronouns : pronouns + banned.length / 1000;
  };
  return [...comments].sort((a, b) => weight(b) - weight(a));
}

/** The highest value of each figure, in percent, for the comments of a workspace and for the texts of an area. */
export const STYLE_BOUNDS = { pronouns: 7, banned: 1 };

const NAMES = {
  pronouns: 'mean share of pronouns in a comment',
  banned: 'share of comments with banned words or phrases',
};

const isProduct = (file) => /\.tsx?$/.test(file) && !FOR_TESTS.test(file);

/** A text for each figure of a workspace that exceeds its bound, with the worst comments of that workspace. `root` is the checkout. */
export function styleComplaints(root, style = readStyle()) {
  return workspaceDirs(root).flatMap((workspace) => {
    const comments = filesBelow(join(root, workspace, 'src'))
      .filter(isProduct)
      .flatMap((path) =>
        commentsOf(path, readFileSync(path, 'utf8')).map((comment) => ({ ...comment, file: relative(root, path) })),
      );
    const figures = figuresOf(comments, style);
    return Object.keys(NAMES)
      .filter((figure) => figures[figure] > STYLE_BOUNDS[figure])
      .map((figure) =>
        [
          `${workspace}: ${NAMES[figure]}: ${figures[figure].toFixed(2)} %, at most ${STYLE_BOUNDS[figure]} %. The worst comments:`,
          ...worstFirst(comments, figure, style)
            .slice(0, 5)
            .map(({ file, line, text }) => `    ${file}:${line}: ${text.slice(0, 200)}`),
        ].join('\n'),
      );
  });
}
