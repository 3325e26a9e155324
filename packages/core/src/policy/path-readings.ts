// What a path may mean to the service behind a tunnel. Services differ in what they resolve, cut and fold; nothing is refused or rewritten for it,
// but a rule that restricts matches when some reading does, and any other when every reading does.
import { CORE_LIMITS } from '../limits.ts';
import { decodeOnce, foldCase } from './percent.ts';

const NONE: readonly string[] = [];

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

  constructor(plain: string, others: readonly string[], { hasUpper = false, isUnclear = false } = {}) {
    this.plain = plain;
    this.others = others;
    this.hasUpper = hasUpper;
    this.isUnclear = isUnclear;
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
  #stepsLeft: number = CORE_LIMITS.POLICY_MATCH_STEPS_MAX;

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

/** `pathWithQuery` as it came. */
export const readingsOf = (pathWithQuery: string): PathReadings => {
  const query = pathWithQuery.indexOf('?');
  const end = query === -1 ? pathWithQuery.length : query;
  // `OPTIONS *` is about the server as a whole.
  if (pathWithQuery.charCodeAt(0) !== SLASH) return new PathReadings('/', NONE);
  const seen = look(pathWithQuery, end);
  if (seen === ODD) return oddReadings(pathWithQuery.slice(0, end));
  const hasLastSlash = end > 1 && pathWithQuery.charCodeAt(end - 1) === SLASH;
  const plain = pathWithQuery.slice(0, hasLastSlash ? end - 1 : end);
  return new PathReadings(plain, NONE, seen === UPPER ? CASED : undefined);
};

const CASED = { hasUpper: true };
const UNCLEAR = { isUnclear: true };

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
    if (before === SLASH && (code === SLASH || (code === DOT && mayBeDots(path, at)))) return ODD;
    before = code;
  }
  return seen;
};

/** `/.well-known` is ordinary. */
const mayBeDots = (path: string, at: number): boolean => {
  const next = path.charCodeAt(at + 1);
  return Number.isNaN(next) || next === DOT || next === SLASH || next === QUESTION;
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
  /** `//x/b`: a reference to the host `x` for those who resolve it against a base URL. */
  'authority',
] as const;

type Doubt = (typeof DOUBTS)[number];
/** The doubts that are decided the other way. */
type Choice = ReadonlySet<Doubt>;

const SEPARATORS = /[/\\]|%2f|%5c/i;
const CUT = /;|%3b/i;

const doubtsOf = (path: string): readonly Doubt[] => {
  const found = new Set<Doubt>();
  if (path.includes('\\')) found.add('backslash');
  if (path.includes(';')) found.add('semicolon');
  if (/%2f/i.test(path)) found.add('encodedSlash');
  if (/%5c/i.test(path)) found.add('encodedBackslash');
  if (/%3b/i.test(path)) found.add('encodedSemicolon');
  if (/^\/[/\\]/.test(path)) found.add('authority');
  if (/\.|%2e/i.test(path)) findDots(path, found);
  return DOUBTS.filter((doubt) => found.has(doubt));
};

/** Segments as whoever splits and cuts most sees them: one that is dots for somebody is dots there. */
const findDots = (path: string, found: Set<Doubt>): void => {
  let isEmptyBefore = false;
  let isUp = false;
  for (const piece of path.slice(1).split(SEPARATORS)) {
    const [segment = ''] = piece.split(CUT, 1);
    const text = decodeOnce(segment);
    if (text === '.' || text === '..') found.add(segment === text ? 'dots' : 'encodedDots');
    isUp ||= isEmptyBefore && text === '..';
    isEmptyBefore ||= text === '';
  }
  if (isUp) found.add('emptyBeforeDots');
};

/** Doubts are bounded, and so is the text that is made of them: a path may have all of a head's 32 KiB. */
const oddReadings = (path: string): PathReadings => {
  const doubts = doubtsOf(path);
  const forms = 2 ** doubts.length;
  if (
    forms > CORE_LIMITS.POLICY_READINGS_MAX ||
    (forms > 2 && forms * path.length > CORE_LIMITS.POLICY_READINGS_MAX_CHARS)
  )
    return new PathReadings(formOf(path, new Set()), NONE, UNCLEAR);
  const texts = new Set<string>();
  for (let bits = 0; bits < forms; bits += 1) {
    texts.add(formOf(path, new Set(doubts.filter((_, index) => (bits & (1 << index)) !== 0))));
  }
  const [plain = '/', ...others] = texts;
  const hasUpper = [...texts].some((text) => foldCase(text) !== text);
  const readings = new PathReadings(plain, others, { hasUpper });
  return readings.all.length > CORE_LIMITS.POLICY_READINGS_MAX ? new PathReadings(plain, NONE, UNCLEAR) : readings;
};

const formOf = (path: string, otherwise: Choice): string => {
  const segments: string[] = [];
  for (const piece of separated(path, otherwise).split('/')) {
    const segment = cut(piece, otherwise);
    const text = decodeOnce(segment);
    const isDots = text === '.' || text === '..';
    if (isDots && !otherwise.has(segment === text ? 'dots' : 'encodedDots')) {
      if (text === '..') segments.pop();
    } else if (text !== '' || otherwise.has('emptyBeforeDots')) segments.push(text);
  }
  return `/${segments.filter((segment) => segment !== '').join('/')}`;
};

const separated = (path: string, otherwise: Choice): string => {
  let text = otherwise.has('authority') ? afterAuthority(path) : path;
  if (otherwise.has('backslash')) text = text.replaceAll('\\', '/');
  if (otherwise.has('encodedSlash')) text = text.replaceAll(/%2f/gi, '/');
  return otherwise.has('encodedBackslash') ? text.replaceAll(/%5c/gi, '/') : text;
};

/** As URL parsers of browsers have it: all slashes of both kinds, then a host up to the next one. */
const afterAuthority = (path: string): string => /^[/\\]+[^/\\]*(.*)$/.exec(path)?.[1] ?? '';

const cut = (piece: string, otherwise: Choice): string => {
  let segment = piece;
  if (otherwise.has('semicolon')) [segment = ''] = segment.split(';', 1);
  if (otherwise.has('encodedSemicolon')) [segment = ''] = segment.split(/%3b/i, 1);
  return segment;
};
