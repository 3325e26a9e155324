import { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { FakeClock, rethrow } from '@tunnel/testkit';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { StreamHandler } from './stream-handler.ts';
import { TunnelEntry } from './tunnel.ts';

const head = { tunnelId: 'tun_1', visitor: '203.0.113.9:50000' };

let known: Map<string, TunnelEntry>;
let expecting: boolean;
let served: MuxStream[];
let verdict: Promise<void> | null;
let later: Promise<void>;
let looks: number;
let finish: (() => void)[];
let handler: StreamHandler;

const tunnel = new TunnelEntry(
  { proto: 'tcp', local_port: 1 },
  { backoff: undefined as never, owner: undefined as never },
);

const offered = (): { stream: MuxStream; refusals: StreamReason[] } => {
  const refusals: StreamReason[] = [];
  return { stream: { refuse: (reason: StreamReason) => refusals.push(reason) } as unknown as MuxStream, refusals };
};

beforeEach(() => {
  known = new Map();
  expecting = false;
  served = [];
  verdict = null;
  later = Promise.resolve();
  looks = 0;
  finish = [];
  handler = new StreamHandler({
    clock: new FakeClock(),
    find: (tunnelId) => known.get(tunnelId),
    expectsTunnels: () => expecting,
    checkTarget: () => verdict,
    checkLater: () => {
      looks += 1;
      return later;
    },
    emit: () => {},
    report: rethrow,
    tap: (visitor) => visitor,
    forward: async (stream, _tunnel, handlers) => {
      served.push(stream);
      finish.push(() => handlers.onDone());
    },
  });
});

describe('StreamHandler', () => {
  it('lets a visitor wait who arrives before the registration response', () => {
    expecting = true;
    const { stream, refusals } = offered();
    handler.onStream(stream, head);
    handler.recheck();
    expect(served).toEqual([]);
    known.set('tun_1', tunnel);
    expecting = false;
    handler.recheck();
    expect(served).toEqual([stream]);
    expect(refusals).toEqual([]);
  });

  it('refuses a waiting visitor when the tunnel does not open', () => {
    expecting = true;
    const { stream, refusals } = offered();
    handler.onStream(stream, head);
    expecting = false;
    handler.recheck();
    expect(refusals).toMatchObject([{ code: 'unknown-tunnel' }]);
  });

  it('refuses visitors beyond 1024 waiting ones', () => {
    expecting = true;
    for (let index = 0; index < 1024; index += 1) handler.onStream(offered().stream, head);
    const { stream, refusals } = offered();
    handler.onStream(stream, head);
    expect(refusals).toMatchObject([{ code: 'limit' }]);
  });

  it('refuses a visitor when the target is no longer allowed, and serves the visitor otherwise', async () => {
    known.set('tun_1', tunnel);
    verdict = Promise.reject(new Fault('CLIENT_TARGET_NOT_ALLOWED', { target: 'localhost:4302', reason: 'a test' }));
    const { stream, refusals } = offered();
    handler.onStream(stream, head);
    await vi.waitUntil(() => refusals.length > 0);
    expect(refusals).toMatchObject([{ code: 'dial-refused', text: expect.stringContaining('localhost:4302') }]);
    expect({ left: handler.served, served }).toEqual({ left: 0, served: [] });
    verdict = Promise.resolve();
    const welcome = offered();
    handler.onStream(welcome.stream, head);
    await vi.waitUntil(() => served.length > 0);
    expect(served).toEqual([welcome.stream]);
  });

  it('cuts a visitor when a later check forbids the target, but not when the check fails', async () => {
    known.set('tun_1', tunnel);
    verdict = Promise.resolve();
    const cuts: StreamReason[] = [];
    const stream = {
      get state() {
        return looks < 3 && cuts.length === 0 ? 'open' : 'closed';
      },
      cut: (reason: StreamReason) => cuts.push(reason),
    } as unknown as MuxStream;
    const failed = Promise.reject(new Fault('CLIENT_NO_ANSWER', { pid: 1, reason: 'a test' }));
    const found = Promise.reject(
      new Fault('CLIENT_TARGET_NOT_ALLOWED', { target: 'localhost:4302', reason: 'a test' }),
    );
    for (const result of [failed, found]) result.catch(() => {});
    for (const result of [later, failed]) {
      [later, looks] = [result, 0];
      handler.onStream(stream, head);
      await vi.waitUntil(() => looks === 3);
    }
    expect(cuts).toEqual([]);
    [later, looks] = [found, 0];
    handler.onStream(stream, head);
    await vi.waitUntil(() => cuts.length > 0);
    expect([looks, cuts]).toMatchObject([1, [{ code: 'cancelled', text: expect.stringContaining('localhost:4302') }]]);
    // Most targets need no check before a visitor is served.
    [verdict, looks] = [null, 0];
    handler.onStream(stream, head);
    await vi.waitUntil(() => served.length === 4);
    expect(looks).toBe(0);
  });

  it('is idle once the last visitor has left', async () => {
    known.set('tun_1', tunnel);
    handler.onStream(offered().stream, head);
    handler.onStream(offered().stream, head);
    let idle = false;
    const waiting = handler.whenIdle().then(() => {
      idle = true;
    });
    finish[0]?.();
    await Promise.resolve();
    expect(idle).toBe(false);
    finish[1]?.();
    await waiting;
    expect(handler.served).toBe(0);
  });

  it('a fault in client.forward ends only its own visitor, is counted, and does not block the drain', async () => {
    const reports: string[] = [];
    const resets: StreamReason[] = [];
    const own = new StreamHandler({
      clock: new FakeClock(),
      find: () => tunnel,
      expectsTunnels: () => false,
      checkTarget: () => null,
      checkLater: () => Promise.resolve(),
      emit: () => {},
      report: (_error, where) => reports.push(where),
      tap: (visitor) => visitor,
      forward: async () => {
        throw new Error('raised on purpose');
      },
    });
    own.onStream({ reset: (reason: StreamReason) => resets.push(reason) } as unknown as MuxStream, head);
    await own.whenIdle();
    expect([reports, resets.length, own.served]).toEqual([['client.forward'], 1, 0]);
  });
});
