// How plainly the comments of the product are written, in two figures for each workspace: the mean share of pronouns in a comment, and the share
// of comments with a word or phrase of the list in comment-style.json. Both in percent.
import { parseSync } from 'oxc-parser';

export interface Comment {
  readonly line: number;
  readonly text: string;
}

export interface WordLists {
  readonly pronouns: ReadonlySet<string>;
  /** Words and phrases that a comment does not need. */
  readonly banned: readonly string[];
}

export interface Figures {
  readonly pronouns: number;
  readonly banned: number;
}

export interface Judgement {
  /** Pronouns among all words, 0 to 1. */
  readonly pronouns: number;
  /** The words and phrases of the list that the comment has. */
  readonly banned: readonly string[];
}

/** A heading inside a file (`---- reading ----`), or an instruction for a tool. */
const NO_SENTENCE = /^\W*(?:[-=]{2,}|biome-ignore\b|oxlint-|@ts-|@vitest-)/;

/** The comments of a source file. Lines that begin with `//`, one below the other, are one comment. */
export const commentsOf = (file: string, source: string): Comment[] => {
  const found: { start: number; end: number; isLine: boolean; text: string }[] = [];
  for (const { type, value, start, end } of parseSync(file, source).comments) {
    const last = found.at(-1);
    if (type === 'Line' && last?.isLine && /^\r?\n[ \t]*$/.test(source.slice(last.end, start))) {
      last.end = end;
      last.text += ` ${value}`;
    } else found.push({ start, end, isLine: type === 'Line', text: value.replace(/^[ \t]*\*+/gm, ' ') });
  }
  return found
    .map(({ start, text }) => ({
      line: source.slice(0, start).split('\n').length,
      text: text.replace(/\s+/g, ' ').trim(),
    }))
    .filter(({ text }) => !NO_SENTENCE.test(text) && wordsOf(text).length > 0);
};

/** In lower case, without a possessive ending. What stands between backticks is code, and no word. */
const wordsOf = (text: string): string[] =>
  (
    text
      .replace(/`[^`]*`/g, ' ')
      .toLowerCase()
      .match(/[a-z]+(?:['’][a-z]+)?/g) ?? []
  ).map((word) => word.replace(/['’]s$/, ''));

export const judge = (text: string, { pronouns, banned }: WordLists): Judgement => {
  const words = wordsOf(text);
  const spoken = ` ${words.join(' ')} `;
  return {
    pronouns: words.filter((word) => pronouns.has(word)).length / words.length,
    banned: banned.filter((phrase) => spoken.includes(` ${phrase} `)),
  };
};

export const figuresOf = (comments: readonly Comment[], lists: WordLists): Figures => {
  const judged = comments.map(({ text }) => judge(text, lists));
  const percent = (sum: number): number => (comments.length === 0 ? 0 : (100 * sum) / comments.length);
  return {
    pronouns: percent(judged.reduce((sum, one) => sum + one.pronouns, 0)),
    banned: percent(judged.filter((one) => one.banned.length > 0).length),
  };
};

/** The worst first: by the figure that is asked for, then by the other. */
export const worstFirst = <T extends Comment>(comments: readonly T[], figure: keyof Figures, lists: WordLists): T[] => {
  const weight = ({ text }: Comment): number => {
    const { pronouns, banned } = judge(text, lists);
    return figure === 'banned' ? banned.length + pronouns : pronouns + banned.length / 1000;
  };
  return [...comments].sort((a, b) => weight(b) - weight(a));
};

/** The bound for a figure: the next tenth of a percent above it. */
export const boundFor = (figure: number): number => Math.max(0, Math.ceil(figure * 10 - 1e-9)) / 10;

/** A bound may be so far above its figure; beyond that it has to be lowered. */
const SLACK = 0.5;

export const verdictOf = (figure: number, bound: number): 'good' | 'worse' | 'better' => {
  if (figure > bound + 1e-9) return 'worse';
  return bound - figure > SLACK ? 'better' : 'good';
};
