import { parseRequestHead } from '@tunnel/http1';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { CLIENT_LIMITS } from '../limits.ts';
import { Backoff } from '../network/backoff.ts';
import { TunnelEntry } from '../tunnels/tunnel.ts';
import type { RequestRecord } from './request-record.ts';
import { RequestReporter } from './request-reporter.ts';
import { INSPECTOR_REQUESTS_BYTES, INSPECTOR_REQUESTS_MAX, RequestStore } from './request-store.ts';

const clock = new FakeClock();
const tunnel = new TunnelEntry(
  { proto: 'http', local_port: 1 },
  { backoff: new Backoff(clock, () => 0), owner: undefined as never },
);

const start = () => {
  const store = new RequestStore();
  const reporter = new RequestReporter(clock);
  reporter.keepIn(store);
  const begin = (path: string): RequestRecord => {
    const head = parseRequestHead(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 20000\r\n\r\n`);
    const record =
      head.kind === 'request'
        ? reporter.beginReplay({ tunnel, service: undefined }, head, { isEdited: false, of: 'req_0', onEnd: () => {} })
        : null;
    if (record === null) throw new Error('it was not begun');
    return record;
  };
  return { store, begin };
};

it('replays count as requests too, so that terminal and inspector show the same number', () => {
  const before = tunnel.counts.requests;
  start().begin('/');
  expect(tunnel.counts.requests - before).toBe(1);
});

describe('the request store', () => {
  it('keeps the newest requests, newest first', () => {
    const { store, begin } = start();
    const ids = Array.from({ length: INSPECTOR_REQUESTS_MAX + 50 }, (_, index) => begin(`/${index}`).id);
    const paths = store.list().map(({ shownPath }) => shownPath);
    expect(paths).toHaveLength(INSPECTOR_REQUESTS_MAX);
    expect([paths[0], paths.at(-1)]).toEqual(['/249', '/50']);
    expect([store.get(ids[49] ?? ''), store.get(ids[50] ?? '')?.shownPath]).toEqual([undefined, '/50']);
  });

  it('is bounded in bytes even when records grow later, and evicts the oldest records', () => {
    const { store, begin } = start();
    const first = begin(`/${'a'.repeat(30_000)}`);
    const records = Array.from({ length: 199 }, (_, index) => begin(`/${index}${'a'.repeat(30_000)}`));
    const body = Buffer.alloc(20_000, 'x');
    for (const record of records) record.onRequestBody(body, 0, body.length);
    expect(store.bytes).toBeLessThanOrEqual(INSPECTOR_REQUESTS_BYTES);
    expect(store.get(first.id)).toBeUndefined();
    const before = store.bytes;
    first.onRequestBody(body, 0, body.length);
    expect(store.bytes).toBe(before);
  });
});

describe('a captured record', () => {
  it('keeps the beginning of a large body and marks it as incomplete', () => {
    const { begin } = start();
    const record = begin('/');
    const body = Buffer.alloc(20_000, 'x');
    record.onRequestBody(body, 0, body.length);
    expect([record.requestBody.bytes, record.requestBody.kept.length]).toEqual([
      20_000,
      CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES,
    ]);
    expect(record.replayProblem).toBe('the request body is incomplete');
    record.onRequestEnd();
    expect(record.replayProblem).toBe('the request body was too large to capture');
  });

  it('copies the captured bytes, because the memory belongs to the connection', () => {
    const record = start().begin('/');
    const memory = Buffer.from('hello');
    record.onRequestBody(memory, 0, 5);
    memory.fill('#');
    expect(record.requestBody.kept).toBe('hello');
  });
});
