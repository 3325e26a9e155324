import type { MuxStream } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { FakeClock } from '@tunnel/testkit';
import { beforeEach, describe, expect, it } from 'vitest';
import { StreamDesk } from './stream-desk.ts';
import { KeptTunnel } from './tunnel.ts';

const head = { tunnelId: 'tun_1', visitor: '203.0.113.9:50000' };

let known: Map<string, KeptTunnel>;
let expecting: boolean;
let served: MuxStream[];
let finish: (() => void)[];
let desk: StreamDesk;

const tunnel = new KeptTunnel({ protocol: 'tcp', localPort: 1 }, { pace: undefined as never, closer: async () => {} });

const offered = (): { stream: MuxStream; refusals: StreamReason[] } => {
  const refusals: StreamReason[] = [];
  return { stream: { refuse: (reason: StreamReason) => refusals.push(reason) } as unknown as MuxStream, refusals };
};

beforeEach(() => {
  known = new Map();
  expecting = false;
  served = [];
  finish = [];
  desk = new StreamDesk({
    clock: new FakeClock(),
    find: (tunnelId) => known.get(tunnelId),
    expectsTunnels: () => expecting,
    emit: () => {},
    wrap: (visitor) => visitor,
    forward: async (stream, _target, _traffic, handlers) => {
      served.push(stream);
      finish.push(() => handlers.onDone());
    },
  });
});

describe('StreamDesk', () => {
  it('lets a visitor wait who is quicker than the answer to the registration', () => {
    expecting = true;
    const { stream, refusals } = offered();
    desk.onStream(stream, head);
    desk.recheck();
    expect(served).toEqual([]);
    known.set('tun_1', tunnel);
    expecting = false;
    desk.recheck();
    expect(served).toEqual([stream]);
    expect(refusals).toEqual([]);
  });

  it('refuses who waited for a tunnel that does not come', () => {
    expecting = true;
    const { stream, refusals } = offered();
    desk.onStream(stream, head);
    expecting = false;
    desk.recheck();
    expect(refusals).toMatchObject([{ code: 'unknown-tunnel' }]);
  });

  it('lets only so many wait', () => {
    expecting = true;
    for (let index = 0; index < 1024; index += 1) desk.onStream(offered().stream, head);
    const { stream, refusals } = offered();
    desk.onStream(stream, head);
    expect(refusals).toMatchObject([{ code: 'limit' }]);
  });

  it('is idle when the last visitor has gone', async () => {
    known.set('tun_1', tunnel);
    desk.onStream(offered().stream, head);
    desk.onStream(offered().stream, head);
    let idle = false;
    const waiting = desk.whenIdle().then(() => {
      idle = true;
    });
    finish[0]?.();
    await Promise.resolve();
    expect(idle).toBe(false);
    finish[1]?.();
    await waiting;
    expect(desk.served).toBe(0);
  });
});
