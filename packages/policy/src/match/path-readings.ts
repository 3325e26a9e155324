// The ways in which services behind a tunnel may interpret a path. Services differ in resolving, cutting and case folding. The edge neither
// rejects nor rewrites ambiguous paths. Instead, a restricting rule matches if any reading matches, and every other rule only if all
// readings match.
import { decodeOnce, foldCase } from '../text/percent.ts';

/** Maximum readings of a path. A path with more readings matches every restricting rule and no other rule. */
export const POLICY_READINGS_MAX = 8;
/**
 * Maximum total length of the readings if there are more than two. A path can be as long as a head, and its readings are built
 * synchronously.
 */
const POLICY_READINGS_MAX_CHARS = 64 * 1024;
/**
 * Maximum characters that the globs of a request compare: a few milliseconds. Beyond the limit every restricting rule matches and no other
 * rule.
 */
const POLICY_MATCH_STEPS_MAX = 4_000_000;

const NONE: readonly string[] = [];

interface About {
  readonly hasUpper: boolean;
  readonly isUnclear: boolean;
}

/** Shared objects with the traits of common paths, so that a path allocates no object besides its readings. */
const PLAIN: About = { hasUpper: false, isUnclear: false };
const CASED: About = { hasUpper: true, isUnclear: false };
const UNCLEAR: About = { hasUpper: false, isUnclear: true };

export class PathReadings {
  /** The reading of most services: decoded once, with dot segments, empty segments and the trailing `/` resolved. */
  readonly plain: string;
  /** Further ways in which services may read the path, without duplicates. */
  readonly others: readonly string[];
  /** True if the path has too many readings. Then every restricting rule matches, regardless of its globs, and no other rule. */
  readonly isUnclear: boolean;
  /** True if a reading of the path contains upper-case characters. */
  readonly hasUpper: boolean;
  #folded: readonly string[] | null = null;

  constructor(plain: string, others: readonly string[], about: About) {
    this.plain = plain;
    this.others = others;
    this.hasUpper = about.hasUpper;
    this.isUnclear = about.isUnclear;
  }

  /** The path's readings in lower case, for lower-case globs, without duplicates. */
  get folded(): readonly string[] {
    this.#folded ??= [...new Set([this.plain, ...this.others].map(foldCase))];
    return this.#folded;
  }

  /** The path's readings with their case, and the lower-case readings that differ. */
  get all(): readonly string[] {
    return [...new Set([this.plain, ...this.others, ...this.folded])];
  }
}

/** Readings of a request, computed for the first rule that needs them, and the request's remaining budget for globs. */
export class RequestReadings {
  readonly #path: string;
  #readings: PathReadings | null = null;
  #stepsLeft: number = POLICY_MATCH_STEPS_MAX;

  /** `path` is the request's path as received, with its query. */
  constructor(path: string) {
    this.#path = path;
  }

  get readings(): PathReadings {
    this.#readings ??= readingsOf(this.#path);
    return this.#readings;
  }

  /** Returns false if the globs of this request have compared too many characters. From then on the match is unknown. */
  spend(steps: number): boolean {
    this.#stepsLeft -= steps;
    return this.#stepsLeft >= 0;
  }
}

const SLASH = 0x2f;
const DOT = 0x2e;
const QUESTION = 0x3f;
const COLON = 0x3a;
const DOLLAR = 0x24;

/** Computes the ways in which services may read a path. Takes the path as received, with query. */
export const readingsOf = (pathWithQuery: string): PathReadings => {
  const query = pathWithQuery.indexOf('?');
  const end = query === -1 ? pathWithQuery.length : query;
  // A request without a path, such as `OPTIONS *`, concerns the whole server and counts as `/`.
  if (pathWithQuery.charCodeAt(0) !== SLASH) return new PathReadings('/', NONE, PLAIN);
  const seen = look(pathWithQuery, end);
  if (seen === ODD) return oddReadings(pathWithQuery.slice(0, end));
  const hasLastSlash = end > 1 && pathWithQuery.charCodeAt(end - 1) === SLASH;
  const plain = pathWithQuery.slice(0, hasLastSlash ? end - 1 : end);
  return new PathReadings(plain, NONE, seen === UPPER ? CASED : PLAIN);
};

const UPPER = 1;
/** Result of the fast check: the path has a feature that services interpret differently. */
const ODD = 2;

const CLASSES = new Uint8Array(128);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') CLASSES[character.charCodeAt(0)] = UPPER;
for (const character of '%;\\') CLASSES[character.charCodeAt(0)] = ODD;

/** Fast check of a path: most paths have a single reading that equals the path. */
const look = (path: string, end: number): number => {
  let before = 0;
  let seen = 0;
  for (let at = 0; at < end; at += 1) {
    const code = path.charCodeAt(at);
    const kind = code < 128 ? (CLASSES[code] as number) : ODD;
    if (kind === ODD) return ODD;
    if (kind === UPPER) seen = UPPER;
    if (code === DOT ? endsName(path, at + 1) : isOddAfter(before, code)) return ODD;
    before = code;
  }
  return seen;
};

/** Returns true at an empty segment or at an NTFS stream (`:$`). */
const isOddAfter = (before: number, code: number): boolean =>
  (code === SLASH && before === SLASH) || (code === DOLLAR && before === COLON);

/** A trailing dot makes `.`, `..`, or a name that some services cut. `/.well-known` is ordinary. */
const endsName = (path: string, at: number): boolean => {
  const next = path.charCodeAt(at);
  return Number.isNaN(next) || next === SLASH || next === QUESTION;
};

/**
 * Features with two interpretations, independent of each other: a path with two of them has four readings. If a mixture had only one
 * reading, a service that takes `\` but not `%2f` for a separator could be reached past a rule: `/admin\..%2f..%2fx/../secret`.
 */
const DOUBTS = [
  'encodedSlash',
  'encodedBackslash',
  'backslash',
  'semicolon',
  'encodedSemicolon',
  /** `.` and `..` as segments: some services compare before they resolve. */
  'dots',
  'encodedDots',
  /** `/a//../b` is `/b` if empty segments are removed first, otherwise `/a/b` (RFC 3986, 5.2.4). */
  'emptyBeforeDots',
  /** `//x/b`: services that resolve against a base URL read a reference to the host `x`. Some decode first: `/%2fx/b`. */
  'authority',
  /** `/a%3fx`, `/a%23x`, `/a%00x`: services that decode before they split end the path there. */
  'encodedEnd',
  /** `/%u0061`: a notation for characters that IIS understands. */
  'encodedUnit',
  /** `/a.`, `/a%20`, `/a::$DATA` are the file `a` on Windows, and `/a%0a` matches `^\/a$` in Python and Ruby. */
  'nameEnd',
  /** `/a%0ab`, `/a%09b`: URL parsers of browsers drop these characters, and so do services that decode before they parse. */
  'encodedBreak',
] as const;

type Doubt = (typeof DOUBTS)[number];
/** The ambiguous features of a path that a reading interprets in the unusual way. */
type Choice = ReadonlySet<Doubt>;

const SEPARATORS = /[/\\]|%2f|%5c/i;
const CUT = /;|%3b/i;
const END = /%3f|%23|%00/i;
const UNIT = /%u([0-9a-f]{4})/gi;
const BREAK = /%(?:09|0a|0d)/gi;
const AUTHORITY = /^\/(?:[/\\]|%2f|%5c)/i;
/** `//a%2fb/c`, `//a\b/c`: the end of such a host, and therefore the path, depends on the order of decoding. */
const UNCLEAR_HOST = /^\/[/\\]+(?:[^/\\]*%|[^/\\]+\\)/;

/** Returns the ambiguous features of a path, or null if they cannot express the possible readings. */
const doubtsOf = (path: string): readonly Doubt[] | null => {
  const found = new Set<Doubt>();
  if (path.includes('\\')) found.add('backslash');
  if (path.includes(';')) found.add('semicolon');
  if (/%2f/i.test(path)) found.add('encodedSlash');
  if (/%5c/i.test(path)) found.add('encodedBackslash');
  if (/%3b/i.test(path)) found.add('encodedSemicolon');
  if (END.test(path)) found.add('encodedEnd');
  if (path.search(UNIT) !== -1) found.add('encodedUnit');
  if (path.search(BREAK) !== -1) found.add('encodedBreak');
  // A name's end can also be hidden behind an encoded path end, a `%u` notation or a line break, so every such variant is checked.
  const ended = endedAt(path);
  const united = withUnits(ended);
  for (const text of new Set([path, ended, united, withoutBreaks(united)])) {
    if (UNCLEAR_HOST.test(text)) return null;
    if (AUTHORITY.test(text)) found.add('authority');
    findInNames(text, found);
  }
  return DOUBTS.filter((doubt) => found.has(doubt));
};

/** Splits and cuts like the most generous service, so that a segment that is `..` for any service is found. */
const findInNames = (path: string, found: Set<Doubt>): void => {
  let isEmptyBefore = false;
  let isUp = false;
  for (const piece of path.slice(1).split(SEPARATORS)) {
    const [segment = ''] = piece.split(CUT, 1);
    const text = decodeOnce(segment);
    const name = withoutEnd(text);
    if (isDots(name)) found.add(segment === name ? 'dots' : 'encodedDots');
    if (name !== text) found.add('nameEnd');
    isUp ||= isEmptyBefore && name === '..';
    isEmptyBefore ||= name === '';
  }
  if (isUp) found.add('emptyBeforeDots');
};

/** Builds the readings of an ambiguous path. Number and total length are limited, because a path can have 32 KiB. */
const oddReadings = (path: string): PathReadings => {
  const doubts = doubtsOf(path);
  const forms = 2 ** (doubts?.length ?? 0);
  if (doubts === null || forms > POLICY_READINGS_MAX || (forms > 2 && forms * path.length > POLICY_READINGS_MAX_CHARS))
    return new PathReadings(formOf(path, new Set()), NONE, UNCLEAR);
  const texts = new Set<string>();
  for (let bits = 0; bits < forms; bits += 1) {
    texts.add(formOf(path, new Set(doubts.filter((_, index) => (bits & (1 << index)) !== 0))));
  }
  const [plain = '/', ...others] = texts;
  const hasUpper = [...texts].some((text) => foldCase(text) !== text);
  const readings = new PathReadings(plain, others, hasUpper ? CASED : PLAIN);
  return readings.all.length > POLICY_READINGS_MAX ? new PathReadings(plain, NONE, UNCLEAR) : readings;
};

const isDots = (name: string): boolean => name === '.' || name === '..';

/**
 * Removes the parts of a name that Windows ignores. Written without a regular expression, because a search for a run at the end takes
 * quadratic time.
 */
export const withoutEnd = (name: string): string => {
  const stream = name.indexOf(':');
  const file = stream !== -1 && name.includes(':$', stream) ? name.slice(0, stream) : name;
  const kept = withoutLast(file, (code) => code <= BLANK);
  return isDots(kept) ? kept : withoutLast(kept, (code) => code <= BLANK || code === DOT);
};

const BLANK = 0x20;

const withoutLast = (text: string, isGone: (code: number) => boolean): string => {
  let end = text.length;
  while (end > 0 && isGone(text.charCodeAt(end - 1))) end -= 1;
  return end === text.length ? text : text.slice(0, end);
};

const formOf = (path: string, otherwise: Choice): string => {
  const segments: string[] = [];
  for (const piece of separated(path, otherwise).split('/')) {
    const segment = cut(piece, otherwise);
    const name = decodeOnce(segment);
    const text = otherwise.has('nameEnd') ? withoutEnd(name) : name;
    if (isDots(text) && !otherwise.has(segment === text ? 'dots' : 'encodedDots')) {
      if (text === '..') segments.pop();
    } else if (text !== '' || otherwise.has('emptyBeforeDots')) segments.push(text);
  }
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
};

const separated = (path: string, otherwise: Choice): string => {
  let text = path;
  if (otherwise.has('encodedEnd')) text = endedAt(text);
  if (otherwise.has('encodedUnit')) text = withUnits(text);
  if (otherwise.has('encodedBreak')) text = withoutBreaks(text);
  if (otherwise.has('backslash')) text = text.replaceAll('\\', '/');
  if (otherwise.has('encodedSlash')) text = text.replaceAll(/%2f/gi, '/');
  if (otherwise.has('encodedBackslash')) text = text.replaceAll(/%5c/gi, '/');
  return otherwise.has('authority') ? afterAuthority(text) : text;
};

/** Removes the authority as URL parsers of browsers do: two or more slashes of both kinds, then a host up to the next slash. */
const afterAuthority = (path: string): string => /^[/\\]{2,}[^/\\]*(.*)$/s.exec(path)?.[1] ?? path;

export const withoutBreaks = (path: string): string => path.replaceAll(BREAK, '');

const endedAt = (path: string): string => path.split(END, 1)[0] ?? '';

/** Decodes `%u` notation in a path. Services with this notation treat both slashes alike. */
const withUnits = (path: string): string =>
  path.replaceAll(UNIT, (_, hex: string) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16));
    return character === '\\' ? '/' : character;
  });

const cut = (piece: string, otherwise: Choice): string => {
  let segment = piece;
  if (otherwise.has('semicolon')) [segment = ''] = segment.split(';', 1);
  if (otherwise.has('encodedSemicolon')) [segment = ''] = segment.split(/%3b/i, 1);
  return segment;
};
