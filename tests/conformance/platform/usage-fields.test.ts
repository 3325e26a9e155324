// UserPublic, TunnelLogEntry, UsageSummary and chart points, field by field, for an account with known activity.

import { hostname } from 'node:os';
import type { Tunnel } from '@tunnel/client';
import {
  type TunnelLogEntry,
  tunnelLogEntry,
  type UsageChartPoint,
  type UsageSummary,
  type UserPublic,
  usageChart,
  usageSummary,
  userPublic,
} from '@tunnel/contract';
import { setPlan } from '@tunnel/platform';
import { systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  newEmail,
  OPERATOR,
  onSharedPlatform,
  PASSWORD,
  PATIENCE_MS,
  type Person,
  PlatformHarness,
  REGION,
  TUNNEL_LIMIT,
} from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { entryWhen, openTunnel, visitHttp } from './tunnels.fixture.ts';

const VISITS = 3;
const isTime = (text: string | null): boolean => text !== null && text === new Date(text).toISOString();

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let web: Tunnel;
let port: Tunnel;
let active: TunnelLogEntry;
let ended: TunnelLogEntry;
let summary: UsageSummary;
let chart: UsageChartPoint[];
beforeAll(async () => {
  ann = await harness.person();
  const open = await openTunnel(harness, ann, { subdomain: 'orders' });
  web = open.tunnel;
  port = await open.client.open({ protocol: 'tcp', localPort: 9 });
  for (let visit = 0; visit < VISITS; visit += 1) await visitHttp(web);
  await port.close();
  ended = await entryWhen(harness, ann, port.tunnelId, ({ unregistered_at }) => unregistered_at !== null);
  await eventually(readAll);
});

/**
 * Reads all values until they are consistent. A visit is counted before its last bytes, so all compared values must be from the same
 * moment.
 */
const readAll = async (): Promise<void> => {
  const entry = () => entryWhen(harness, ann, web.tunnelId, ({ request_count }) => request_count === VISITS);
  active = await entry();
  summary = (await harness.get('/usage', ann.token)).body as UsageSummary;
  chart = (await harness.get('/usage/chart', ann.token)).body as UsageChartPoint[];
  expect(await entry()).toEqual(active);
};

describe('UserPublic', () => {
  let user: UserPublic;
  beforeAll(async () => {
    user = (await harness.get('/auth/me', ann.token)).body as UserPublic;
  });
  const named = async (display_name: unknown): Promise<UserPublic> => {
    const email = newEmail();
    await harness.post('/auth/register', { email, password: PASSWORD, display_name });
    await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`);
    return (await harness.get('/auth/me', (await harness.enter(email)).token)).body as UserPublic;
  };

  it(row('UserPublic', 1), () => expect(user.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/));
  it(row('UserPublic', 2), () => expect(user.email).toBe(ann.email));
  it(row('UserPublic', 3), async () => {
    expect(user.display_name).toBeNull();
    expect((await named('Ann 🦊 Lee')).display_name).toBe('Ann 🦊 Lee');
    expect((await named(null)).display_name).toBeNull();
  });
  it(row('UserPublic', 4), () => expect(user.email_verified).toBe(true));
  it(row('UserPublic', 5), () => expect(user.status).toBe('active'));
  it(row('UserPublic', 6), async () => {
    expect(user.auth_method).toBe('password');
    const external = await harness.login(await harness.external());
    expect([external.status, external.code, external.error]).toEqual([
      403,
      'ACCOUNT_EXTERNAL',
      expect.stringContaining('github'),
    ]);
  });
  it(row('UserPublic', 7), () => expect(isTime(user.created_at)).toBe(true));
  it('has exactly the fields of the specification', () => userPublic.strict().parse(user));
});

describe('TunnelLogEntry', () => {
  it(row('TunnelLogEntry', 1), () => expect(active.id).toMatch(/^[0-9a-f-]{36}$/));
  it(row('TunnelLogEntry', 2), () => expect(active.tunnel_id).toBe(web.tunnelId));
  it(row('TunnelLogEntry', 3), () => expect([active.protocol, ended.protocol]).toEqual(['http', 'tcp']));
  it(row('TunnelLogEntry', 4), () => {
    expect([active.label, ended.label]).toEqual(['orders', String(port.assignedPort)]);
  });
  it(row('TunnelLogEntry', 5), () => expect([active, ended].every((entry) => isTime(entry.registered_at))).toBe(true));
  it(row('TunnelLogEntry', 6), () => {
    expect(active.unregistered_at).toBeNull();
    expect(isTime(ended.unregistered_at)).toBe(true);
    expect(Date.parse(ended.unregistered_at ?? '')).toBeGreaterThanOrEqual(Date.parse(ended.registered_at));
  });
  it(row('TunnelLogEntry', 7), async () => {
    expect(active.region_id).toBe(REGION);
    const old = { user_id: ann.id, tunnel_id: 'tun_of_an_old_edge', protocol: 'udp', registered_at: new Date() };
    await harness.db
      .insertInto('tunnel_log')
      .values({ ...old, unregistered_at: new Date() })
      .execute();
    expect(await entryWhen(harness, ann, 'tun_of_an_old_edge')).toMatchObject({ region_id: null, protocol: 'udp' });
  });
  it(row('TunnelLogEntry', 8), () => expect([active.request_count, ended.request_count]).toEqual([VISITS, 0]));
  it(row('TunnelLogEntry', 9), async () => {
    const { bytes_proxied: bytes } = active;
    expect(Number.isSafeInteger(bytes) && bytes > 0).toBe(true);
    await harness.db
      .updateTable('tunnel_log')
      .set({ bytes_proxied: 2 ** 52 })
      .where('id', '=', ended.id)
      .execute();
    expect((await entryWhen(harness, ann, port.tunnelId)).bytes_proxied).toBe(2 ** 52);
  });
  it('includes the name, the public URL and the computer of the tunnel', () => {
    expect([active, ended].map(({ name, public_url }) => [name, public_url])).toEqual([
      [web.name, web.publicUrl],
      [port.name, port.publicUrl],
    ]);
    expect([active.client_name, ended.client_name]).toEqual([hostname(), hostname()]);
  });
  it('has exactly the fields of the specification', () => {
    for (const entry of [active, ended]) tunnelLogEntry.strict().parse(entry);
  });
  it(row('Other lifecycles', 3), async () => {
    const { client, tunnel } = await openTunnel(harness, ann);
    expect((await entryWhen(harness, ann, tunnel.tunnelId)).unregistered_at).toBeNull();
    await client.close();
    await entryWhen(harness, ann, tunnel.tunnelId, ({ unregistered_at }) => isTime(unregistered_at));
  });
});

describe('UsageSummary', () => {
  it(row('UsageSummary', 1), () => expect(summary.active_tunnels).toBe(1));
  it(row('UsageSummary', 2), () => expect(summary.total_tunnels_30d).toBe(2));
  it(row('UsageSummary', 3), () => expect(summary.total_requests_30d).toBe(VISITS));
  it(row('UsageSummary', 4), () => expect(summary.total_bytes_30d).toBe(active.bytes_proxied));
  it(row('UsageSummary', 5), () => expect(summary.plan).toBe('free'));
  it(row('UsageSummary', 6), async () => {
    expect(summary.tunnel_limit).toBe(TUNNEL_LIMIT);
    const bob = await harness.person();
    await setPlan({ db: harness.db, clock: systemClock }, OPERATOR, { email: bob.email, plan: 'payg' });
    await eventually(
      async () => {
        const { body } = await harness.get('/usage', bob.token);
        expect(usageSummary.strict().parse(body)).toMatchObject({ plan: 'payg', tunnel_limit: null });
      },
      { timeoutMs: PATIENCE_MS },
    );
  });
  it('has exactly the fields of the specification', () => usageSummary.strict().parse(summary));
});

describe('Usage chart point', () => {
  const today = () => chart.at(-1);
  it(row('Usage chart point', 1), () => {
    expect(chart.every(({ date }) => /^\d{4}-\d\d-\d\d$/.test(date))).toBe(true);
    // Midnight may have passed since.
    expect(Math.abs(Date.now() - Date.parse(today()?.date ?? ''))).toBeLessThan(86_400_000 + 600_000);
  });
  it(row('Usage chart point', 2), () => expect(today()?.tunnels).toBe(2));
  it(row('Usage chart point', 3), () => expect(today()?.requests).toBe(VISITS));
  it(row('Contract', 39), () => expect(today()?.bytes).toBe(active.bytes_proxied + ended.bytes_proxied));
  it('has exactly the fields of the specification', () => {
    usageChart.parse(chart);
    for (const point of chart) expect(Object.keys(point).sort()).toEqual(['bytes', 'date', 'requests', 'tunnels']);
  });
});
