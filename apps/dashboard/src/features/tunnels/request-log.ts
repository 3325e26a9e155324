// The captured requests that a page has loaded: newest first, without gaps. New requests are added at the top, older pages at the end.
// Pure functions.
import { CAPTURES_KEPT_MAX, type CapturedRequest, type CaptureList } from '@tunnel/contract';
import { countText, plural } from '../../ui/format.ts';

export interface RequestLog {
  readonly requests: readonly CapturedRequest[];
  /** Cursor of the next older page. Null if the edge has no older requests. */
  readonly cursor: string | null;
  /** True if there were older requests than the loaded requests, whether or not the edge still has them. */
  readonly isCut: boolean;
  /** True if older pages were loaded in addition to the newest page. */
  readonly isDeep: boolean;
}

/**
 * Adds a fresh copy of the first page. A page that shares no request with a deep log replaces the log, because requests between page and
 * log are missing.
 */
export const withNewestRequests = (log: RequestLog | undefined, page: CaptureList): RequestLog => {
  const newest: RequestLog = {
    requests: page.requests,
    cursor: page.next_cursor ?? null,
    isCut: page.truncated,
    isDeep: false,
  };
  if (log?.isDeep !== true || newest.cursor === null) return newest;
  const known = new Set(log.requests.map(({ id }) => id));
  if (!page.requests.some(({ id }) => known.has(id))) return newest;
  return bounded({ ...log, requests: joined(page.requests, log.requests) });
};

/** Adds the page that follows the end of the log. */
export const withOlderRequests = (log: RequestLog, page: CaptureList): RequestLog =>
  bounded({
    requests: joined(log.requests, page.requests),
    cursor: page.next_cursor ?? null,
    isCut: page.truncated,
    isDeep: true,
  });

/** Adds a replay at the top, because it is the newest request. */
export const withRequest = (log: RequestLog, request: CapturedRequest): RequestLog =>
  log.requests.some(({ id }) => id === request.id) ? log : { ...log, requests: [request, ...log.requests] };

const joined = (above: readonly CapturedRequest[], below: readonly CapturedRequest[]): readonly CapturedRequest[] => {
  const known = new Set(above.map(({ id }) => id));
  return [...above, ...below.filter(({ id }) => !known.has(id))];
};

/** Drops the oldest requests beyond the number that an edge stores per tunnel. */
const bounded = (log: RequestLog): RequestLog =>
  log.requests.length <= CAPTURES_KEPT_MAX
    ? log
    : { ...log, requests: log.requests.slice(0, CAPTURES_KEPT_MAX), cursor: null, isCut: true };

/**
 * Returns the text about the number of shown requests, and whether there are more. `found` is the number of requests that match the
 * filter.
 */
export const shownText = ({ requests, cursor, isCut }: RequestLog, found: number): string => {
  const all = `${cursor === null ? '' : 'newest '}${plural(requests.length, 'request')}`;
  const shown =
    found === requests.length ? capitalized(all) : `${countText(found)} of ${cursor === null ? '' : 'the '}${all}`;
  return cursor === null && isCut ? `${shown}. Older requests are no longer stored.` : shown;
};

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
