// What a path may mean to the service behind a tunnel. Services differ in what they resolve, cut and fold; nothing is refused or rewritten for it,
// but a rule that restricts matches when some reading does, and any other when every reading does.
import { decodeOnce, foldCase } from '../text/percent.ts';

/** texts that one path is compared as; what has more matches every rule that restricts, and no other */
export const POLICY_READINGS_MAX = 8;
/** of all readings together where there are more than two: a path may have all of a head, and its readings are made in one turn */
const POLICY_READINGS_MAX_CHARS = 64 * 1024;
/** characters that the globs of one request look at, which is some milliseconds; beyond it what restricts matches, and nothing else does */
const POLICY_MATCH_STEPS_MAX = 4_000_000;

const NONE: readonly string[] = [];

interface About {
  readonly hasUpper: boolean;
  readonly isUnclear: boolean;
}

/** Shared by all: a path costs no object but its own. */
const PLAIN: About = { hasUpper: false, isUnclear: false };
const CASED: About = { hasUpper: true, isUnclear: false };
const UNCLEAR: About = { hasUpper: false, isUnclear: true };

export class PathReadings {
  /** As most services read it: decoded once, dot segments, empty segments and the last `/` resolved. */
  readonly plain: string;
  /** Where another service may read something else; each differs from the others. */
  readonly others: readonly string[];
  /** More than can be told apart: what restricts matches, whatever its globs, and nothing else does. */
  readonly isUnclear: boolean;
  /** Whether lower case changes any of them. */
  readonly hasUpper: boolean;
  #folded: readonly string[] | null = null;

  constructor(plain: string, others: readonly string[], about: About) {
    this.plain = plain;
    this.others = others;
    this.hasUpper = about.hasUpper;
    this.isUnclear = about.isUnclear;
  }

  /** All of them in lower case, for globs in lower case; each once. */
  get folded(): readonly string[] {
    this.#folded ??= [...new Set([this.plain, ...this.others].map(foldCase))];
    return this.#folded;
  }

  /** All texts: those with their case, and those without where they differ. */
  get all(): readonly string[] {
    return [...new Set([this.plain, ...this.others, ...this.folded])];
  }
}

/** One request's, made when the first rule asks for them; and what its globs may still cost. */
export class RequestReadings {
  readonly #path: string;
  #readings: PathReadings | null = null;
  #stepsLeft: number = POLICY_MATCH_STEPS_MAX;

  /** `path` as it came, with its query. */
  constructor(path: string) {
    this.#path = path;
  }

  get readings(): PathReadings {
    this.#readings ??= readingsOf(this.#path);
    return this.#readings;
  }

  /** false: the globs of this request have looked at too many characters; from there on nothing is known of it. */
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

/** `pathWithQuery` as it came. */
export const readingsOf = (pathWithQuery: string): PathReadings => {
  const query = pathWithQuery.indexOf('?');
  const end = query === -1 ? pathWithQuery.length : query;
  // `OPTIONS *` is about the server as a whole.
  if (pathWithQuery.charCodeAt(0) !== SLASH) return new PathReadings('/', NONE, PLAIN);
  const seen = look(pathWithQuery, end);
  if (seen === ODD) return oddReadings(pathWithQuery.slice(0, end));
  const hasLastSlash = end > 1 && pathWithQuery.charCodeAt(end - 1) === SLASH;
  const plain = pathWithQuery.slice(0, hasLastSlash ? end - 1 : end);
  return new PathReadings(plain, NONE, seen === UPPER ? CASED : PLAIN);
};

const UPPER = 1;
/** May mean more than it says. */
const ODD = 2;

const CLASSES = new Uint8Array(128);
for (const character of 'ABCDEFGHIJKLMNOPQRSTUVWXYZ') CLASSES[character.charCodeAt(0)] = UPPER;
for (const character of '%;\\') CLASSES[character.charCodeAt(0)] = ODD;

/** The cheap test: most paths have one reading, and it is the path itself. */
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

/** An empty segment, or a stream of a Windows file system. */
const isOddAfter = (before: number, code: number): boolean =>
  (code === SLASH && before === SLASH) || (code === DOLLAR && before === COLON);

/** `/.well-known` is ordinary; what ends with a dot is `.` or `..`, or a name that some cut. */
const endsName = (path: string, at: number): boolean => {
  const next = path.charCodeAt(at);
  return Number.isNaN(next) || next === SLASH || next === QUESTION;
};

/**
 * What services read in two ways, each by itself: a path that mixes two of them has four forms. Were mixtures read in one way only, a
 * service that takes `\` but not `%2f` for a separator could be led past a rule: `/admin\..%2f..%2fx/../secret`.
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
  /** `/a//../b` is `/b` where empty segments go first, and `/a/b` where they do not (RFC 3986, 5.2.4). */
  'emptyBeforeDots',
  /** `//x/b`: a reference to the host `x` for those who resolve it against a base URL, some of whom decode it first: `/%2fx/b`. */
  'authority',
  /** `/a%3fx`, `/a%23x`, `/a%00x`: the path ends there for those who decode before they split. */
  'encodedEnd',
  /** `/%u0061`: as IIS has it. */
  'encodedUnit',
  /** `/a.`, `/a%20`, `/a::$DATA` are the file `a` on Windows, and `/a%0a` fits `^\/a$` in Python and Ruby. */
  'nameEnd',
  /** `/a%0ab`, `/a%09b`: URL parsers of browsers leave these out, and so do those who decode before they parse. */
  'encodedBreak',
] as const;

type Doubt = (typeof DOUBTS)[number];
/** The doubts that are decided the other way. */
type Choice = ReadonlySet<Doubt>;

const SEPARATORS = /[/\\]|%2f|%5c/i;
const CUT = /;|%3b/i;
const END = /%3f|%23|%00/i;
const UNIT = /%u([0-9a-f]{4})/gi;
const BREAK = /%(?:09|0a|0d)/gi;
const AUTHORITY = /^\/(?:[/\\]|%2f|%5c)/i;
/** `//a%2fb/c`, `//a\b/c`: where such a host ends depends on what is done first, and so does all behind it. */
const UNCLEAR_HOST = /^\/[/\\]+(?:[^/\\]*%|[^/\\]+\\)/;

/** null: more than the doubts below can tell apart. */
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
  // What stands behind an end that some see, or is written as some alone write it, is not a name's end for all.
  const ended = endedAt(path);
  const united = withUnits(ended);
  for (const text of new Set([path, ended, united, withoutBreaks(united)])) {
    if (UNCLEAR_HOST.test(text)) return null;
    if (AUTHORITY.test(text)) found.add('authority');
    findInNames(text, found);
  }
  return DOUBTS.filter((doubt) => found.has(doubt));
};

/** Segments as whoever splits and cuts most sees them: one that is dots for somebody is dots there. */
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

/** Doubts are bounded, and so is the text that is made of them: a path may have all of a head's 32 KiB. */
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

/** A name as Windows takes it. By hand: an expression that looks for a run at the end looks at each run as often as it is long. */
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

/** As URL parsers of browsers have it: all slashes of both kinds, at least two, then a host up to the next one. */
const afterAuthority = (path: string): string => /^[/\\]{2,}[^/\\]*(.*)$/s.exec(path)?.[1] ?? path;

export const withoutBreaks = (path: string): string => path.replaceAll(BREAK, '');

const endedAt = (path: string): string => path.split(END, 1)[0] ?? '';

/** Whoever knows this way to write a character takes both slashes for one. */
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
