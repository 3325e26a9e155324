// Globs without regular expressions. `*` matches any characters except `/` (in values: any), `**` matches any characters. `/a/**` also matches `/a`,
// and `/a/**/b` also `/a/b`. There is no backtracking: every literal between wildcards is matched at its first position. The functions below explain
// why the first position is sufficient.
import { decodeOnce, foldCase } from '../text/percent.ts';

/** Maximum length of a glob, longer than any path people write. */
const POLICY_GLOB_MAX_CHARS = 1024;
/** Maximum runs of `*` in a glob. Every run can scan the whole text. */
export const POLICY_GLOB_WILDCARDS_MAX = 16;

export type GlobKind = 'path' | 'value';

type Test = (text: string) => boolean;

/** The part of a glob between two `**`: literals separated by single `*`. */
type Chunk = readonly string[];

/**
 * `backs` says for every chunk after the first how many characters of the previous chunk it may share: a `**` that is a whole segment can
 * match nothing, and then leaves a single `/`.
 */
interface Pattern {
  readonly chunks: readonly Chunk[];
  readonly backs: readonly number[];
}

/** Returns an error message, or null if the glob is valid. */
export const problemOfGlob = (glob: string, kind: GlobKind): string | null => {
  if (glob === '' && kind === 'path') return 'a path must start with / or **';
  if (glob.length > POLICY_GLOB_MAX_CHARS) return `a glob can have at most ${POLICY_GLOB_MAX_CHARS} characters`;
  if (wildcardsOf(glob) > POLICY_GLOB_WILDCARDS_MAX)
    return `a glob can have at most ${POLICY_GLOB_WILDCARDS_MAX} wildcards`;
  if (/[\u0000-\u001f\u007f]/.test(glob)) return 'a glob cannot have control characters';
  return kind === 'path' ? problemOfPath(glob) : null;
};

/** Rejects globs that no normalized path can match, because such a rule would silently have no effect. */
const problemOfPath = (glob: string): string | null => {
  if (!glob.startsWith('/') && !glob.startsWith('**')) return 'a path must start with / or **';
  if (/[?#]/.test(glob)) return 'paths are matched without the query; remove ? and #';
  if (glob.includes('//')) return 'paths are matched without empty segments; use a single /';
  const hasDots = glob.split('/').some((segment) => segment === '.' || segment === '..');
  return hasDots ? 'paths are matched with . and .. resolved; remove both' : null;
};

const wildcardsOf = (glob: string): number => glob.match(/\*+/g)?.length ?? 0;

/** Maximum number of scans over the text, charged to the request. A trailing `**` needs none, because only the beginning is compared. */
export const stepsOfGlob = (glob: string): number => wildcardsOf(glob.replace(/\*{2,}$/, ''));

/** Compiles a glob to a test function. `isFolded`: the glob is compared with lower-case texts. */
export const compileGlob = (glob: string, kind: GlobKind, isFolded = false): Test => {
  const literal = (text: string): string => {
    const plain = kind === 'path' ? decodeOnce(text) : text;
    return isFolded ? foldCase(plain) : plain;
  };
  if (kind === 'value') return testOf({ chunks: glob.split(/\*+/).map((text) => [literal(text)]), backs: [] });
  // Path readings have no trailing `/`, so the glob drops it as well.
  const whole = glob.replace(/\*{3,}/g, '**').replace(/(?:\/\*\*)+(?=\/|$)/g, '/**');
  const path = whole.length > 1 && whole.endsWith('/') ? whole.slice(0, -1) : whole;
  if (!path.endsWith('/**') || path === '/**') return testOf(patternOf(path, literal));
  const parent = path.slice(0, -3);
  if (!parent.includes('*')) return isAtOrBelow(literal(parent));
  return isOneOf(testOf(patternOf(path, literal)), testOf(patternOf(parent, literal)));
};

// Tests are created in small functions, so that their closures keep only the needed values. An edge holds many tests.
const isText =
  (whole: string): Test =>
  (text) =>
    text === whole;

const beginsWith =
  (head: string): Test =>
  (text) =>
    text.startsWith(head);

const isAtOrBelow =
  (parent: string): Test =>
  (text) =>
    text.startsWith(parent) && (text.length === parent.length || text.charCodeAt(parent.length) === SLASH);

const fitsChunk =
  (chunk: Chunk): Test =>
  (text) =>
    fitsBetween(text, chunk);

const fitsPattern =
  (pattern: Pattern): Test =>
  (text) =>
    fits(text, pattern);

const isOneOf =
  (first: Test, second: Test): Test =>
  (text) =>
    first(text) || second(text);

const SLASH = 0x2f;

const patternOf = (path: string, literal: (text: string) => string): Pattern => {
  const chunks: string[] = [];
  const backs: number[] = [];
  let rest = path;
  for (let at = rest.indexOf('**'); at !== -1; at = rest.indexOf('**')) {
    const isWhole = rest.startsWith('/', at - 1) && rest.startsWith('/', at + 2);
    chunks.push(rest.slice(0, at));
    backs.push(isWhole ? 1 : 0);
    rest = rest.slice(at + 2);
  }
  chunks.push(rest);
  return { chunks: chunks.map((chunk) => chunk.split('*').map(literal)), backs };
};

/** Returns the test function of a glob. Common forms compile to a single comparison. */
const testOf = (pattern: Pattern): Test => {
  const { chunks } = pattern;
  const first = chunks[0] as Chunk;
  const last = chunks.at(-1) as Chunk;
  const isPlain = chunks.every((chunk) => chunk.length === 1);
  const head = first[0] as string;
  const tail = last[0] as string;
  if (chunks.length === 1) return isPlain ? isText(head) : fitsChunk(first);
  if (isPlain && chunks.length === 2 && tail === '') return beginsWith(head);
  return fitsPattern(pattern);
};

/**
 * Matches the first chunk at the start, the last chunk at the end, and every chunk between at its earliest end, which leaves the most room
 * for later chunks.
 */
const fits = (text: string, { chunks, backs }: Pattern): boolean => {
  const first = chunks[0] as Chunk;
  let at = endOf(text, first, first.length);
  for (let index = 1; index < chunks.length && at !== -1; index += 1) {
    const from = at - (backs[index - 1] ?? 0);
    const chunk = chunks[index] as Chunk;
    if (index === chunks.length - 1) return fitsAtEnd(text, from, chunk);
    at = find(text, from, chunk);
  }
  return false;
};

/**
 * Returns the end of the first `count` literals of a chunk at the start of the text, or -1 if they do not match. A literal with `/` can
 * only match at the next `/` of the text, and any other is best matched at its first position; so no backtracking is needed.
 */
const endOf = (text: string, chunk: Chunk, count: number): number => {
  const head = chunk[0] as string;
  if (!text.startsWith(head)) return -1;
  let at = head.length;
  for (let index = 1; index < count; index += 1) {
    const part = chunk[index] as string;
    const found = afterStar(text, at, part);
    if (found === -1) return -1;
    at = found + part.length;
  }
  return at;
};

/** Finds the literal behind a `*`: the next position of `part` without a `/` before it, or -1. */
const afterStar = (text: string, from: number, part: string): number => {
  const at = text.indexOf(part, from);
  if (at <= from) return at;
  const slash = text.indexOf('/', from);
  return slash !== -1 && slash < at ? -1 : at;
};

/** Matches a part of a glob without `**` against the whole text. */
const fitsBetween = (text: string, chunk: Chunk): boolean => {
  const at = endOf(text, chunk, chunk.length - 1);
  const tail = chunk.at(-1) as string;
  const from = text.length - tail.length;
  if (at === -1 || from < at || !text.endsWith(tail)) return false;
  const slash = text.indexOf('/', at);
  return slash === -1 || slash >= from;
};

/** Matches a chunk from the right: the last literal at the end, every earlier literal at its last position, and nothing before `from`. */
const fitsAtEnd = (text: string, from: number, chunk: Chunk): boolean => {
  const tail = chunk.at(-1) as string;
  let at = text.length - tail.length;
  if (at < from || !text.endsWith(tail)) return false;
  for (let index = chunk.length - 2; index >= 0; index -= 1) {
    const part = chunk[index] as string;
    const found = at < part.length ? -1 : text.lastIndexOf(part, at - part.length);
    if (found < from) return false;
    const slash = at === 0 ? -1 : text.lastIndexOf('/', at - 1);
    if (slash >= found + part.length) return false;
    at = found;
  }
  return true;
};

/**
 * Returns the end of the first match of a chunk at or after `from`. If a start fails, every later start with its first `*` in the same
 * segment fails as well: it has less room before the same `/`. The next position of every literal is remembered, so that all starts
 * together scan each character once per literal.
 */
const find = (text: string, from: number, chunk: Chunk): number => {
  const head = chunk[0] as string;
  const next: number[] = chunk.map(() => -1);
  let start = text.indexOf(head, from);
  while (start !== -1) {
    const end = endOfRest(text, start + head.length, chunk, next);
    if (end !== -1) return Math.max(end, -1);
    const slash = text.indexOf('/', start + head.length);
    start = slash === -1 ? -1 : text.indexOf(head, Math.max(start + 1, slash - head.length + 1));
  }
  return -1;
};

/** A literal of the chunk does not occur in the rest of the text. */
const NEVER = -2;

/** Matches the literals after the first, from `from` on. Returns -1 if they do not match from here. */
const endOfRest = (text: string, from: number, chunk: Chunk, next: number[]): number => {
  let at = from;
  for (let index = 1; index < chunk.length; index += 1) {
    const part = chunk[index] as string;
    if ((next[index] as number) < at) next[index] = text.indexOf(part, at);
    const found = next[index] as number;
    if (found === -1) return NEVER;
    const slash = found === at ? -1 : text.indexOf('/', at);
    if (slash !== -1 && slash < found) return -1;
    at = found + part.length;
  }
  return at;
};
