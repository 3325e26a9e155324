// Rewrites the request path for the service: a rule removes a prefix or adds a prefix.
import { withoutBreaks, withoutEnd } from '../match/path-readings.ts';
import { decodeOnce } from '../text/percent.ts';

export interface PathPrefixes {
  readonly strip_prefix?: string | undefined;
  readonly add_prefix?: string | undefined;
}

/**
 * Rewrites a path with query. Returns null if some service could read the result as a path above the added prefix; only attackers send such
 * paths.
 */
export const rewrittenPath = (path: string, { strip_prefix, add_prefix }: PathPrefixes): string | null => {
  if (!path.startsWith('/')) return path;
  const query = path.indexOf('?');
  const plain = query === -1 ? path : path.slice(0, query);
  const rest = query === -1 ? '' : path.slice(query);
  const stripped = strip_prefix === undefined ? plain : withoutPrefix(plain, withoutLastSlash(strip_prefix));
  if (add_prefix === undefined) return oneSlash(stripped === '' ? '/' : stripped) + rest;
  if (climbs(stripped)) return null;
  const rewritten = withoutLastSlash(add_prefix) + oneSlash(stripped);
  return oneSlash(rewritten === '' ? '/' : rewritten) + rest;
};

const withoutLastSlash = (prefix: string): string => prefix.replace(/\/+$/, '');

/**
 * Removes whole segments only: `/api` is no prefix of `/apis`. Returns '' for the prefix itself, so that `/api` does not become
 * `/`-terminated like `/api/`.
 */
const withoutPrefix = (path: string, prefix: string): string => {
  if (path === prefix) return '';
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path;
};

/** Reduces leading slashes, because some services read `//x` as a host. */
const oneSlash = (path: string): string => (/^[/\\]{2}/.test(path) ? `/${path.replace(/^[/\\]+/, '')}` : path);

/**
 * Returns true if some service could resolve the path above its root. Services disagree on separators and on where a name ends. So every
 * `..` under the most generous splitting counts as a step up, but each part between two `/` counts as at most one name down: `/a%5cb/../..`
 * goes one level down and two up.
 */
const climbs = (path: string): boolean => {
  if (!MAY_CLIMB.test(path)) return false;
  let depth = 0;
  for (const piece of withoutBreaks(path.replaceAll(UNIT, unitOf)).split('/')) {
    const ups = namesIn(piece).filter((name) => name === '..').length;
    const [uncut = ''] = piece.split(CUT, 1);
    if (ups > 0) depth -= ups;
    else if (namesIn(uncut).some((name) => name !== '' && name !== '.')) depth += 1;
    if (depth < 0) return true;
  }
  return false;
};

const MAY_CLIMB = /\.\.|%2e|%u002e|%0|\.%/i;
/** Characters at which some services end a name or the path. */
const CUT = /;|%3b|%3f|%23|%00/i;
const UNIT = /%u00([0-7][0-9a-f])/gi;

/** Keeps encoded separators encoded, because most services treat them as part of a name. */
const unitOf = (_: string, hex: string): string => (/^(?:2f|5c)$/i.test(hex) ? '%2f' : `%${hex}`);

const namesIn = (piece: string): string[] =>
  piece.split(/\\|%2f|%5c/i).map((segment) => withoutEnd(decodeOnce(segment.split(CUT, 1)[0] ?? '')));
