// Calls that wait for the next request: the requests that count, and the cleanup of every wait.

import type { Owner } from '@tunnel/rules/tunnels';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EDGE_LIMITS } from '../limits.ts';
import { captureStore, captureTunnel, requestHead, responseHead } from './capture.fixture.ts';
import { CaptureService } from './capture-service.ts';
import type { CaptureRecorder } from './recorder.ts';
import { REQUEST_WAITS_PER_OWNER } from './request-waits.ts';

const web = captureTunnel('tun_web');
const { owner } = web;
const MINUTE = 60_000;

const stage = () => {
  const { clock, store } = captureStore();
  const tunnels = new Map([[web.tunnelId, web]]);
  const replays = { replay: () => Promise.reject(new Error('no replay was expected')) };
  const service = new CaptureService({ store, tunnels, replays });
  const begin = (line: string): CaptureRecorder =>
    store.begin(web, requestHead(line), clock.monotonic(), 'data') as CaptureRecorder;
  const finish = (recorder: CaptureRecorder): void => recorder.finish(clock.monotonic(), 'complete');
  const visit = (line: string): void => finish(begin(line));
  const waitFor = (filter: { method?: string; pathContains?: string; after?: string } = {}, caller: Owner = owner) => {
    const left = new AbortController();
    const order = { tunnelId: web.tunnelId, ...filter, timeoutMs: MINUTE, signal: left.signal };
    return { answer: service.awaitNext(caller, order), leave: () => left.abort() };
  };
  return { clock, store, tunnels, begin, finish, visit, waitFor };
};

describe('a caller that waits for the next request', () => {
  it('gets the first request that finishes after the call, and none that finished before', async () => {
    const { begin, finish, visit, waitFor, store, clock } = stage();
    visit('GET /before');
    const underWay = begin('GET /under-way');
    const { answer } = waitFor();
    begin('GET /later');
    finish(underWay);
    expect(await answer).toMatchObject({ request: { path: '/under-way', duration_ms: 0 }, cursor: null });
    expect([store.waits.count, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('gets a request that was evicted from the captures before it finished', async () => {
    const { begin, finish, waitFor, store } = stage();
    const slow = begin('GET /slow');
    for (let count = 0; count < EDGE_LIMITS.CAPTURES_PER_TUNNEL; count += 1) begin('GET /pushing');
    expect(store.find(web.tunnelId, store.idOf(slow))).toBeUndefined();
    const { answer } = waitFor();
    const { bytes } = store;
    slow.onResponseHead(responseHead(200, 'Content-Length: 0'), 'data');
    finish(slow);
    expect(await answer).toMatchObject({ request: { path: '/slow', status: 200, duration_ms: 0 } });
    expect(store.bytes).toBe(bytes);
  });

  it('gets only requests that match its filter: the method in any case, the path as shown', async () => {
    const { visit, waitFor } = stage();
    const { answer } = waitFor({ method: 'post', pathContains: '/hook?token=[redacted]&' });
    visit('GET /hook?token=hunter2&n=1');
    visit('POST /other');
    visit('POST /hook?token=hunter2&n=2');
    visit('POST /hook?token=hunter2&n=3');
    expect((await answer).request?.path).toBe('/hook?token=[redacted]&n=2');
  });

  it('cannot find redacted values with its filter', async () => {
    const { visit, waitFor, clock } = stage();
    const { answer } = waitFor({ pathContains: 'hunter2' });
    visit('GET /?token=hunter2');
    await clock.advance(MINUTE);
    expect((await answer).request).toBeNull();
  });

  it('times out without a request, and misses no request that finishes before its next call', async () => {
    const { clock, begin, finish, visit, waitFor } = stage();
    const first = waitFor({ method: 'POST' });
    const slow = begin('POST /slow');
    visit('GET /not-meant');
    await clock.advance(MINUTE);
    const { request, cursor } = await first.answer;
    expect(request).toBeNull();
    visit('GET /not-meant-either');
    finish(slow);
    await clock.advance(5);
    visit('POST /second');
    const next = await waitFor({ method: 'POST', after: cursor ?? '' }).answer;
    expect(next.request?.path).toBe('/slow');
  });

  it('gets the existing requests when its cursor is from another run of the edge', async () => {
    const { visit, waitFor } = stage();
    visit('GET /');
    expect((await waitFor({ after: 'other-99999' }).answer).request?.path).toBe('/');
    await expect(waitFor({ after: 'nonsense' }).answer).rejects.toMatchObject({ code: 'API_BAD_REQUEST' });
  });

  it('leaves no wait and no timer behind when it disconnects', async () => {
    const { clock, store, waitFor } = stage();
    const { answer, leave } = waitFor();
    expect([store.waits.count, clock.pendingTimers]).toEqual([1, 1]);
    leave();
    expect((await answer).request).toBeNull();
    expect([store.waits.count, clock.pendingTimers]).toEqual([0, 0]);
  });

  it('gets no request when the tunnel ends, and TUNNEL_CLOSED on its next call', async () => {
    const { store, tunnels, waitFor } = stage();
    const { answer } = waitFor();
    tunnels.delete(web.tunnelId);
    store.tunnelRemoved(web);
    expect((await answer).request).toBeNull();
    await expect(waitFor().answer).rejects.toMatchObject({ code: 'TUNNEL_CLOSED', status: 410 });
  });

  it('gets TUNNEL_UNKNOWN for a tunnel of another account', async () => {
    const { waitFor, store } = stage();
    const stranger = { kind: 'account', accountId: 'mallory' } as const;
    await expect(waitFor({}, stranger).answer).rejects.toMatchObject({ code: 'TUNNEL_UNKNOWN' });
    expect(store.waits.count).toBe(0);
  });

  it('gets 429 beyond the limit of its account, until another wait has ended', async () => {
    const { waitFor, clock } = stage();
    const waiting = Array.from({ length: REQUEST_WAITS_PER_OWNER }, () => waitFor());
    await expect(waitFor().answer).rejects.toMatchObject({ code: 'CAPTURE_WAITS_BUSY', status: 429 });
    waiting[0]?.leave();
    const { answer } = waitFor();
    await clock.advance(MINUTE);
    expect((await answer).request).toBeNull();
    await Promise.all(waiting.map((each) => each.answer));
  });
});

it('in any order of events, each wait ends once with the right request and leaves no timer', async () => {
  type Step = { kind: 'wait' | 'leave' | 'begin' | 'finish' | 'advance'; n: number };
  const step: fc.Arbitrary<Step> = fc.record({
    kind: fc.constantFrom('wait', 'leave', 'begin', 'finish', 'advance'),
    n: fc.nat(9),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { clock, store, begin, finish, waitFor } = stage();
      const waits: { leave: () => void; expected: string | null | undefined; answer: Promise<unknown> }[] = [];
      const recorders: CaptureRecorder[] = [];
      for (const { kind, n } of steps) {
        if (kind === 'wait') waits.push({ ...waitFor(), expected: undefined });
        if (kind === 'begin') recorders.push(begin(`GET /${recorders.length}`));
        if (kind === 'leave' && waits[n]?.expected === undefined) {
          waits[n]?.leave();
          if (waits[n] !== undefined) waits[n].expected = null;
        }
        if (kind === 'finish' && recorders[n]?.durationMs === null) {
          finish(recorders[n] as CaptureRecorder);
          for (const wait of waits) if (wait.expected === undefined) wait.expected = `/${n}`;
        }
        if (kind === 'advance' && n === 9) {
          await clock.advance(MINUTE);
          for (const wait of waits) wait.expected ??= null;
        }
      }
      await clock.advance(MINUTE);
      const answers = (await Promise.all(waits.map(({ answer }) => answer))) as { request: { path: string } | null }[];
      expect(answers.map(({ request }) => request?.path ?? null)).toEqual(waits.map((w) => w.expected ?? null));
      expect([store.waits.count, clock.pendingTimers]).toEqual([0, 0]);
    }),
    { numRuns: 200 },
  );
});
