// The path that the service is asked for, where a rule cuts a prefix off or puts one in front.
import { withoutBreaks, withoutEnd } from '../match/path-readings.ts';
import { decodeOnce } from '../text/percent.ts';

export interface PathPrefixes {
  readonly strip_prefix?: string | undefined;
  readonly add_prefix?: string | undefined;
}

/** `path` with its query. null: it would climb out of the prefix that is put in front, by some reading: nobody who means well asks so. */
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

/** Whole segments only: `/api` is no prefix of `/apis`. Empty for the prefix itself, so that `/api` does not get a slash that `/api/` has. */
const withoutPrefix = (path: string, prefix: string): string => {
  if (path === prefix) return '';
  return path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : path;
};

/** `//x` would be another host to some readers. */
const oneSlash = (path: string): string => (/^[/\\]{2}/.test(path) ? `/${path.replace(/^[/\\]+/, '')}` : path);

/**
 * Above its own root, for some service: what one takes for a separator or cuts off is a part of a name for another. So each `..` of whoever
 * splits most counts, and of what stands between two `/` no more than one name: `/a%5cb/../..` has one to go back from, not two.
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
/** What may end a name, or the path, before its next separator. */
const CUT = /;|%3b|%3f|%23|%00/i;
const UNIT = /%u00([0-7][0-9a-f])/gi;

/** What separates stays encoded: to most it is a part of a name. */
const unitOf = (_: string, hex: string): string => (/^(?:2f|5c)$/i.test(hex) ? '%2f' : `%${hex}`);

const namesIn = (piece: string): string[] =>
  piece.split(/\\|%2f|%5c/i).map((segment) => withoutEnd(decodeOnce(segment.split(CUT, 1)[0] ?? '')));
