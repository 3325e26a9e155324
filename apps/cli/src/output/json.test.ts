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

it('tells programs whose tunnel it is, and where its page is', () => {
  expect(readyOf(SESSION)).toMatchObject({
    event: 'ready',
    account: 'ada@example.com',
    plan: 'free',
    region: { id: 'fra', name: 'Frankfurt' },
    dashboard_url: 'https://tunnels.example/app/tunnels/tun_1',
  });
});

it('tells nothing of that on an edge without a platform', () => {
  const ready = readyOf({ ...SESSION, regionName: null, account: null, plan: null, dashboardUrl: null });
  for (const field of ['account', 'plan', 'region', 'dashboard_url']) expect(ready).not.toHaveProperty(field);
});
