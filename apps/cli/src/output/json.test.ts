import type { SessionFacts, Tunnel } from '@tunnel/client';
import { FakeClock } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { type JsonEvent, JsonEvents } from './json.ts';

const tunnel = {
  name: 'web',
  protocol: 'http',
  tunnelId: 'tun_1',
  publicUrl: 'https://web.example',
  service: null,
} as Tunnel;

const SESSION = {
  regionId: 'fra',
  regionName: 'Frankfurt',
  account: 'ada@example.com',
  plan: 'free',
  dashboardUrl: 'https://tunnels.example/app',
} as SessionFacts;

const readyOf = (session: SessionFacts): JsonEvent | undefined => {
  const told: JsonEvent[] = [];
  const output = new JsonEvents(new FakeClock(), (event) => told.push(event));
  output.onStatus({ type: 'connected', sessionId: 's', resumed: false });
  output.onClient({ session });
  output.onStatus({ type: 'tunnel-opened', tunnel });
  return told.at(-1);
};

it('the ready event names account, plan, region and dashboard of the tunnel', () => {
  expect(readyOf(SESSION)).toMatchObject({
    event: 'ready',
    account: 'ada@example.com',
    plan: 'free',
    region: { id: 'fra', name: 'Frankfurt' },
    dashboard_url: 'https://tunnels.example/app/tunnels/tun_1',
  });
});

it('the ready event of an edge without a platform omits account, plan, region and dashboard', () => {
  const ready = readyOf({ ...SESSION, regionName: null, account: null, plan: null, dashboardUrl: null });
  for (const field of ['account', 'plan', 'region', 'dashboard_url']) expect(ready).not.toHaveProperty(field);
});

it('the edge_answered events describe a request that the edge answered, and count the rest', () => {
  const told: JsonEvent[] = [];
  const output = new JsonEvents(new FakeClock(), (event) => told.push(event));
  output.onRequest({
    type: 'edge-answered',
    id: 'req_1',
    tunnel,
    method: 'GET',
    path: '/admin',
    at: 0,
    replayOf: null,
    status: 403,
    code: 'POLICY_DENIED',
    rule: 'office',
    durationMs: 0.25,
  });
  output.onRequest({ type: 'edge-answered-more', tunnel, count: 5 });
  expect(told).toEqual([
    {
      event: 'edge_answered',
      at: '1970-01-01T00:00:00.000Z',
      id: 'req_1',
      name: 'web',
      tunnel_id: 'tun_1',
      method: 'GET',
      path: '/admin',
      status: 403,
      code: 'POLICY_DENIED',
      rule: 'office',
      duration_ms: 0.3,
    },
    { event: 'edge_answered_more', at: expect.any(String), name: 'web', tunnel_id: 'tun_1', count: 5 },
  ]);
});
