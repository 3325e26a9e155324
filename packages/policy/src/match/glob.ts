// Globs without regular expressions. `*`: any characters but `/` (in values: any), `**`: any; `/a/**` also matches `/a`, `/a/**/b` also `/a/b`.
// Nothing is tried twice: each piece of text between wildcards is taken where it first fits, and the arguments why that is enough are below.
import { decodeOnce, foldCase } from '../text/percent.ts';

/** length of one glob: longer than any path that a person writes down */
const POLICY_GLOB_MAX_CHARS = 1024;
/** runs of `*` in one glob: each may look through the whole text */
export const POLICY_GLOB_WILDCARDS_MAX = 16;

export type GlobKind = 'path' | 'value';

type Test = (text: string) => boolean;

/** What stands between two `**`: texts with one `*` between each and the next. */
type Chunk = readonly string[];

/** `backs`: of each chunk but the first, how many characters of the one before it may be used again: a `**` that is a whole segment may be nothing, and leaves one `/`. */
interface Pattern {
  readonly chunks: readonly Chunk[];
  readonly backs: readonly number[];
}

/** null: it is a good one. */
export const problemOfGlob = (glob: string, kind: GlobKind): string | null => {
  if (glob === '' && kind === 'path') return 'a path begins with / or **';
  if (glob.length > POLICY_GLOB_MAX_CHARS) return `a glob has at most ${POLICY_GLOB_MAX_CHARS} characters`;
  if (wildcardsOf(glob) > POLICY_GLOB_WILDCARDS_MAX) return `a glob has at most ${POLICY_GLOB_WILDCARDS_MAX} wildcards`;
  if (/[\u0000-\u001f\u007f]/.test(glob)) return 'a glob has no control characters';
  return kind === 'path' ? problemOfPath(glob) : null;
};

/** What no reading of a path has would never match: better said than silently useless. */
const problemOfPath = (glob: string): string | null => {
  if (!glob.startsWith('/') && !glob.startsWith('**')) return 'a path begins with / or **';
  if (/[?#]/.test(glob)) return 'a path is matched without its query: leave out ? and #';
  if (glob.includes('//')) return 'a path is matched without empty segments: write one /';
  const hasDots = glob.split('/').some((segment) => segment === '.' || segment === '..');
  return hasDots ? 'a path is matched with its . and .. resolved: leave them out' : null;
};

const wildcardsOf = (glob: string): number => glob.match(/\*+/g)?.length ?? 0;

/** How often a text is looked through, at most: what a request is charged for it. Only the beginning is, when nothing follows a `**`. */
export const stepsOfGlob = (glob: string): number => wildcardsOf(glob.replace(/\*{2,}$/, ''));

/** `isFolded`: for texts in lower case. */
export const compileGlob = (glob: string, kind: GlobKind, isFolded = false): Test => {
  const literal = (text: string): string => {
    const plain = kind === 'path' ? decodeOnce(text) : text;
    return isFolded ? foldCase(plain) : plain;
  };
  if (kind === 'value') return testOf({ chunks: glob.split(/\*+/).map((text) => [literal(text)]), backs: [] });
  // A last `/` is resolved in each reading, so it says nothing here either.
  const whole = glob.replace(/\*{3,}/g, '**').replace(/(?:\/\*\*)+(?=\/|$)/g, '/**');
  const path = whole.length > 1 && whole.endsWith('/') ? whole.slice(0, -1) : whole;
  if (!path.endsWith('/**') || path === '/**') return testOf(patternOf(path, literal));
  const parent = path.slice(0, -3);
  if (!parent.includes('*')) return isAtOrBelow(literal(parent));
  return isOneOf(testOf(patternOf(path, literal)), testOf(patternOf(parent, literal)));
};

// Each test is made where nothing else is at hand: it holds what it needs, and an edge has many of them.
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

/** The common forms are one comparison each. */
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

/** The first chunk at the start, the last at the end, those between each where it first ends: later ones then have the most room. */
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
 * Where the first `count` parts of a chunk end when they begin the text; -1: they do not. A part with a `/` can only stand where the next
 * `/` of the text is, and any other is best taken where it comes first; so there is nothing to go back to.
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

/** Where `part` is next, with no `/` before it. */
const afterStar = (text: string, from: number, part: string): number => {
  const at = text.indexOf(part, from);
  if (at <= from) return at;
  const slash = text.indexOf('/', from);
  return slash !== -1 && slash < at ? -1 : at;
};

/** No `**`: from the first character to the last. */
const fitsBetween = (text: string, chunk: Chunk): boolean => {
  const at = endOf(text, chunk, chunk.length - 1);
  const tail = chunk.at(-1) as string;
  const from = text.length - tail.length;
  if (at === -1 || from < at || !text.endsWith(tail)) return false;
  const slash = text.indexOf('/', at);
  return slash === -1 || slash >= from;
};

/** The same from the right: the last part at the end, each one before it where it comes last, none of them before `from`. */
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
 * Where the first match of a chunk from `from` on ends. A start that fails fails for every later one whose first `*` is in the same
 * segment: those have less room, and stand before the same `/`. Where a part comes next is remembered, so all starts together look at
 * each character once for each part.
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

/** One of its parts is nowhere in the rest of the text. */
const NEVER = -2;

/** The parts behind the first, from `from` on. -1: not from here. */
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
