// The usage endpoints: statuses, value ranges, pagination, and data of other accounts.
import { captureList, type TunnelLogEntry, tunnelLog, usageChart, usageRegions, usageSummary } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';
import { entryWhen, fateOf, openTunnel, visitHttp } from './tunnels.fixture.ts';

const ODD_NUMBERS = ['0', '-1', '1.5', '1e1', 'abc', '', ' 5', '0x10', '101', '99999999999999999999', '%00'];
const LOGGED = 105;

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = await Promise.all([harness.person(), harness.person()]);
  // Two entries have the same time, because pages must not overlap there either.
  const rows = Array.from({ length: LOGGED }, (_, index) => ({
    user_id: bob.id,
    tunnel_id: `tun_old_${index}`,
    protocol: 'tcp',
    registered_at: new Date(Date.UTC(2026, 0, 1) + Math.floor(index / 2) * 1000),
    unregistered_at: new Date(Date.UTC(2026, 0, 2)),
  }));
  await harness.db.insertInto('tunnel_log').values(rows).execute();
});

const logOf = async (query: string): Promise<TunnelLogEntry[]> =>
  tunnelLog.parse((await harness.get(`/usage/tunnels${query}`, bob.token)).body);

/** Checks that an error names the field, its bounds and the rejected value. */
const expectRange = async (path: string, field: string, bounds: string, value: string): Promise<void> => {
  const { status, code, error } = await harness.get(`${path}?${field}=${value}`, ann.token);
  expect([value, status, code]).toEqual([value, 400, 'API_BAD_REQUEST']);
  expect(error).toBe(`${field} must be an integer ${bounds}, got '${decodeURIComponent(value)}'`);
};

describe('Usage', () => {
  it(row('Usage', 1), async () => {
    const answer = await harness.get('/usage', ann.token);
    expect([answer.status, usageSummary.parse(answer.body).active_tunnels]).toEqual([200, 0]);
    expect(refusalOf(await harness.get('/usage'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
  });

  it(row('Usage', 2), async () => {
    for (const [query, points] of [
      ['', 30],
      ['?days=1', 1],
      ['?days=90', 90],
    ] as const) {
      const answer = await harness.get(`/usage/chart${query}`, ann.token);
      expect([answer.status, usageChart.parse(answer.body).length]).toEqual([200, points]);
    }
    expect(refusalOf(await harness.get('/usage/chart'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
  });

  it(row('Usage', 3), async () => {
    const times = (await logOf('?limit=100')).map((entry) => Date.parse(entry.registered_at));
    expect(times).toEqual([...times].sort((one, other) => other - one));
    expect(refusalOf(await harness.get('/usage/tunnels'))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    expect((await harness.get('/usage/tunnels', ann.token)).body).toEqual([]);
  });

  it(row('Usage', 3, 'pages'), async () => {
    const seen: string[] = [];
    for (let offset = 0; offset < LOGGED; offset += 7) {
      seen.push(...(await logOf(`?limit=7&offset=${offset}`)).map(({ id }) => id));
    }
    expect([seen.length, new Set(seen).size]).toEqual([LOGGED, LOGGED]);
    expect(await logOf(`?offset=${LOGGED}`)).toEqual([]);
  });

  it(row('Usage', 4), async () => {
    const [entry] = await logOf('?limit=1');
    const path = `/usage/tunnels/${entry?.id}`;
    expect(await harness.get(path, bob.token)).toMatchObject({ status: 200, body: entry });
    expect(refusalOf(await harness.get(path))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    for (const odd of [path, '/usage/tunnels/nothing', '/usage/tunnels/%00', `/usage/tunnels/${'a'.repeat(5000)}`]) {
      expect(refusalOf(await harness.get(odd, ann.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
    }
  });

  it(row('Usage', 5), async () => {
    const { client, tunnel } = await openTunnel(harness, ann);
    const path = `/usage/tunnels/${tunnel.tunnelId}/requests`;
    await entryWhen(harness, ann, tunnel.tunnelId);
    await visitHttp(tunnel, '/orders?page=2');
    await eventually(
      async () => {
        const answer = await harness.get(path, ann.token);
        expect(answer.status).toBe(200);
        const { requests } = captureList.parse(answer.body);
        expect(requests).toMatchObject([{ method: 'GET', path: '/orders?page=2', status: 200 }]);
      },
      { timeoutMs: PATIENCE_MS },
    );
    const plain = await client.open({ protocol: 'tcp', localPort: 9 });
    await entryWhen(harness, ann, plain.tunnelId);
    const notHttp = await harness.get(`/usage/tunnels/${plain.tunnelId}/requests`, ann.token);
    expect(refusalOf(notHttp)).toEqual([400, 'TUNNEL_NOT_HTTP']);
    expect(refusalOf(await harness.get(path))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    expect(refusalOf(await harness.get(path, bob.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
    expect(refusalOf(await harness.get('/usage/tunnels/nothing/requests', ann.token))).toEqual([404, 'TUNNEL_UNKNOWN']);
  });
});

describe('Additions to the specification', () => {
  it(row('Contract', 40), async () => {
    expect(await logOf('?protocol=tcp&state=closed&limit=100')).toHaveLength(100);
    expect([await logOf('?protocol=http'), await logOf('?state=active')]).toEqual([[], []]);
    for (const [field, value, choices] of [
      ['protocol', 'https', 'http, tcp, udp, p2p'],
      ['state', 'open', 'active, closed'],
      ['state', '', 'active, closed'],
    ] as const) {
      const { status, code, error } = await harness.get(`/usage/tunnels?${field}=${value}`, ann.token);
      expect([status, code]).toEqual([400, 'API_BAD_REQUEST']);
      expect(error).toBe(`${field} must be one of ${choices}, got '${value}'`);
    }
  });

  it(row('Contract', 40, 'a tunnel that lives'), async () => {
    const { tunnel } = await openTunnel(harness, ann);
    await entryWhen(harness, ann, tunnel.tunnelId);
    const idsOf = async (query: string): Promise<string[]> =>
      tunnelLog.parse((await harness.get(`/usage/tunnels?${query}`, ann.token)).body).map((entry) => entry.tunnel_id);
    expect(await idsOf('state=active&protocol=http')).toContain(tunnel.tunnelId);
    expect(await idsOf('state=closed')).not.toContain(tunnel.tunnelId);
    await tunnel.close();
    await eventually(async () => expect(await idsOf('state=closed')).toContain(tunnel.tunnelId), {
      timeoutMs: PATIENCE_MS,
    });
    expect(await idsOf('state=active')).not.toContain(tunnel.tunnelId);
  });

  it(row('Contract', 41), async () => {
    await eventually(
      async () => {
        const regions = usageRegions.parse((await harness.get('/usage/regions', ann.token)).body);
        expect(regions).toMatchObject([
          { control: expect.stringMatching(/^127\.0\.0\.1:\d+$/), control_tls: false, http_url: expect.any(String) },
        ]);
      },
      { timeoutMs: PATIENCE_MS },
    );
  });
});

describe('Limits', () => {
  it(row('Limits', 4), async () => {
    for (const value of ODD_NUMBERS) await expectRange('/usage/chart', 'days', 'from 1 to 90', value);
    await expectRange('/usage/chart', 'days', 'from 1 to 90', '91');
  });

  it(row('Limits', 5), async () => {
    expect([(await logOf('')).length, (await logOf('?limit=1')).length, (await logOf('?limit=100')).length]).toEqual([
      20, 1, 100,
    ]);
    for (const value of ODD_NUMBERS) await expectRange('/usage/tunnels', 'limit', 'from 1 to 100', value);
  });

  it(row('Limits', 6), async () => {
    expect(await logOf('?offset=0')).toEqual(await logOf(''));
    for (const far of [Number.MAX_SAFE_INTEGER, '99999999999999999999'])
      expect(await logOf(`?offset=${far}`)).toEqual([]);
    for (const value of ['-1', '1.5', 'abc', '', '-99999999999999999999']) {
      await expectRange('/usage/tunnels', 'offset', 'of at least 0', value);
    }
  });

  it(row('Limits', 7), async () => {
    const { tunnel } = await openTunnel(harness, ann);
    await entryWhen(harness, ann, tunnel.tunnelId);
    const path = `/usage/tunnels/${tunnel.tunnelId}/requests`;
    for (let visit = 0; visit < 102; visit += 1) await visitHttp(tunnel);
    const count = async (query: string): Promise<number> =>
      captureList.parse((await harness.get(path + query, ann.token)).body).requests.length;
    await eventually(async () => expect(await count('?limit=100')).toBe(100), { timeoutMs: PATIENCE_MS });
    expect([await count(''), await count('?limit=1')]).toEqual([50, 1]);
    for (const value of ODD_NUMBERS) await expectRange(path, 'limit', 'from 1 to 100', value);
    const page = async (query: string) => captureList.parse((await harness.get(path + query, ann.token)).body);
    const first = await page('?limit=100');
    const rest = await page(`?limit=100&cursor=${first.next_cursor}`);
    expect([rest.requests.length, rest.next_cursor]).toEqual([2, null]);
    expect(new Set([...first.requests, ...rest.requests].map(({ id }) => id)).size).toBe(102);
    const bad = await harness.get(`${path}?cursor=nonsense`, ann.token);
    expect([bad.status, bad.code]).toEqual([400, 'API_BAD_REQUEST']);
  });

  it(row('Limits', 9), async () => {
    const cyd = await harness.person();
    await harness.db
      .insertInto('plans')
      .values({
        name: 'tiny',
        tunnel_limit: 1,
        allow_custom_subdomains: true,
        monthly_minimum_cents: 0,
        price_cents_per_gb: 0,
      })
      .execute();
    await harness.db.updateTable('users').set({ plan: 'tiny' }).where('id', '=', cyd.id).execute();
    const { client } = await openTunnel(harness, cyd);
    const spec = { protocol: 'tcp', localPort: 9 } as const;
    expect(await fateOf(client, spec)).toBe('TUNNEL_PLAN_LIMIT: tunnel limit of 1 reached');
    expect((await harness.get('/usage', cyd.token)).body).toMatchObject({ plan: 'tiny', tunnel_limit: 1 });
  });
});

it(row('Contract', 23), async () => {
  await expectRange('/usage/chart', 'days', 'from 1 to 90', '1000');
  const twice = await harness.get('/usage/chart?days=1&days=2', ann.token);
  expect([twice.status, twice.error]).toEqual([400, "days must be an integer from 1 to 90, got '1, 2'"]);
});

it(row('Contract', 21), async () => {
  const [entry] = await logOf('?limit=1');
  for (const id of [entry?.id, entry?.tunnel_id]) {
    expect((await harness.get(`/usage/tunnels/${id}`, bob.token)).body).toEqual(entry);
  }
});
