import type { CapturedRequest, CaptureList } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { type RequestLog, shownText, withNewestRequests, withOlderRequests, withRequest } from './request-log.ts';

const request = (n: number, status = 200): CapturedRequest => ({
  id: `req_${n}`,
  tunnel_id: 'tun_1',
  at: new Date(n).toISOString(),
  method: 'GET',
  path: `/${n}`,
  status,
  duration_ms: 1,
  error: null,
  request_headers: {},
  response_headers: {},
  request_size: 0,
  response_size: 0,
  request_body: null,
  response_body: null,
  aborted: false,
  replayable: true,
});
const span = (from: number, down: number): CapturedRequest[] =>
  Array.from({ length: down }, (_, index) => request(from - index));
const page = (requests: CapturedRequest[], next_cursor: string | null): CaptureList => ({
  tunnel_id: 'tun_1',
  requests,
  truncated: next_cursor !== null,
  next_cursor,
});
const numbers = ({ requests }: RequestLog): number[] => requests.map(({ id }) => Number(id.slice(4)));
const down = (from: number, count: number): number[] => Array.from({ length: count }, (_, index) => from - index);
/** A complete log of 120 requests: 100 from the first page and 20 from the second. */
const deep = (): RequestLog =>
  withOlderRequests(withNewestRequests(undefined, page(span(120, 100), 'c1')), page(span(20, 20), null));

it('the request log is the newest page until older pages are loaded', () => {
  const first = withNewestRequests(undefined, page(span(120, 100), 'c1'));
  expect([numbers(first), first.cursor, first.isCut]).toEqual([down(120, 100), 'c1', true]);
  expect(numbers(withNewestRequests(first, page(span(130, 100), 'c2')))).toEqual(down(130, 100));
});

it('the request log is complete with 120 requests after the older page', () => {
  const log = deep();
  expect([numbers(log), log.cursor, log.isCut]).toEqual([down(120, 120), null, false]);
});

it('the request log keeps older pages when new requests arrive, and updates changed requests', () => {
  const log = withNewestRequests(deep(), page([request(121), request(120, 500), ...span(119, 98)], 'c3'));
  expect(numbers(log)).toEqual(down(121, 121));
  expect(log.requests[1]?.status).toBe(500);
});

it('the request log starts over after a gap, and when the edge keeps a single page', () => {
  expect(numbers(withNewestRequests(deep(), page(span(900, 100), 'c4')))).toEqual(down(900, 100));
  expect(numbers(withNewestRequests(deep(), page(span(121, 5), null)))).toEqual(down(121, 5));
});

it('the request log drops requests beyond 200, like the edge', () => {
  let log = withOlderRequests(withNewestRequests(undefined, page(span(200, 100), 'c1')), page(span(100, 100), null));
  log = withNewestRequests(log, page(span(250, 100), 'c2'));
  expect([numbers(log), log.cursor, log.isCut]).toEqual([down(250, 200), null, true]);
});

it('the request log shows a replay at once and only once', () => {
  const log = withRequest(deep(), request(500));
  expect(numbers(log)).toEqual([500, ...down(120, 120)]);
  expect(withRequest(log, request(500))).toBe(log);
});

it('the request log states how many requests are shown', () => {
  const first = withNewestRequests(undefined, page(span(120, 100), 'c1'));
  expect([shownText(first, 100), shownText(first, 7)]).toEqual(['Newest 100 requests', '7 of the newest 100 requests']);
  expect([shownText(deep(), 120), shownText(deep(), 1)]).toEqual(['120 requests', '1 of 120 requests']);
  const one = withNewestRequests(undefined, page(span(1, 1), null));
  expect(shownText(one, 1)).toBe('1 request');
  expect(shownText({ ...one, isCut: true }, 1)).toBe('1 request. Older requests are no longer stored.');
});
