// The captured requests that a page has loaded: newest first and without a gap. New requests come at the top, older pages at the end. Pure.
import { CAPTURES_KEPT_MAX, type CapturedRequest, type CaptureList } from '@tunnel/contract';
import { countText, plural } from '../../ui/format.ts';

export interface RequestLog {
  readonly requests: readonly CapturedRequest[];
  /** For the next older page. null: no older requests are kept. */
  readonly cursor: string | null;
  /** There were older requests than these, kept or not. */
  readonly isCut: boolean;
  /** Older pages were loaded below the newest one. */
  readonly isDeep: boolean;
}

/** The first page, loaded again. A page that shares no request with a deep log replaces the log, because requests between them are missing. */
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

/** The page that begins where the log ends. */
export const withOlderRequests = (log: RequestLog, page: CaptureList): RequestLog =>
  bounded({
    requests: joined(log.requests, page.requests),
    cursor: page.next_cursor ?? null,
    isCut: page.truncated,
    isDeep: true,
  });

/** A replay, which is newer than all others. */
export const withRequest = (log: RequestLog, request: CapturedRequest): RequestLog =>
  log.requests.some(({ id }) => id === request.id) ? log : { ...log, requests: [request, ...log.requests] };

const joined = (above: readonly CapturedRequest[], below: readonly CapturedRequest[]): readonly CapturedRequest[] => {
  const known = new Set(above.map(({ id }) => id));
  return [...above, ...below.filter(({ id }) => !known.has(id))];
};

/** The edge forgets the oldest requests when new ones come; so does the log. */
const bounded = (log: RequestLog): RequestLog =>
  log.requests.length <= CAPTURES_KEPT_MAX
    ? log
    : { ...log, requests: log.requests.slice(0, CAPTURES_KEPT_MAX), cursor: null, isCut: true };

/** How many requests the list shows, and whether there are more. `found`: requests that pass the filter. */
export const shownText = ({ requests, cursor, isCut }: RequestLog, found: number): string => {
  const all = `${cursor === null ? '' : 'newest '}${plural(requests.length, 'request')}`;
  const shown =
    found === requests.length ? capitalized(all) : `${countText(found)} of ${cursor === null ? '' : 'the '}${all}`;
  return cursor === null && isCut ? `${shown}. Older requests are no longer stored.` : shown;
};

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
