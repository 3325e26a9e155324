import {
  type TunnelLogEntry,
  tunnelLog,
  type UsageChartPoint,
  usageChart,
  usageRegions,
  usageSummary,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UserActor } from '../../../services/shared/service-context.ts';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addUsageRoutes } from './usage-routes.ts';

let fixture: PlatformFixture;
let entries: { id: string; tunnel_id: string }[] = [];

const logOf = (user: UserActor, count: number) =>
  Array.from({ length: count }, (_, n) => ({
    user_id: user.userId,
    tunnel_id: `tun_${user.userId.slice(0, 8)}_${n}`,
    protocol: n % 2 === 0 ? 'http' : 'tcp',
    label: `label-${n}`,
    region_id: n === 4 ? null : 'local',
    // Two entries each share a time.
    registered_at: new Date(Date.UTC(2030, 5, 15, 0, Math.floor(n / 2))),
    unregistered_at: n < 5 ? null : new Date(Date.UTC(2030, 5, 15, 11)),
    request_count: n,
    bytes_proxied: n * 3_000_000_000,
    // The first entry comes from an edge that reports neither name nor address.
    ...(n === 0 ? {} : { name: `web-${n}`, public_url: `https://label-${n}.t.example`, client_name: 'laptop' }),
  }));

beforeAll(async () => {
  fixture = await openPlatformFixture(addUsageRoutes);
  const { db } = fixture.database;
  entries = await db.insertInto('tunnel_log').values(logOf(fixture.alice, 25)).returning(['id', 'tunnel_id']).execute();
  await db.insertInto('tunnel_log').values(logOf(fixture.bob, 2)).execute();
  const day = (date: string, n: number, user = fixture.alice) => ({
    user_id: user.userId,
    day: date,
    tunnels: n,
    requests: n * 10,
    bytes: n * 5_000_000_000,
  });
  await db
    .insertInto('usage_daily')
    .values([
      day('2030-05-16', 1000),
      day('2030-05-17', 1),
      day('2030-06-01', 2),
      day('2030-06-15', 4),
      day('2030-06-16', 500),
      day('2030-06-15', 7000, fixture.bob),
    ])
    .execute();
});
afterAll(() => fixture.close());

const read = async (path: string, user = fixture.alice): Promise<unknown> => {
  const answer = await fixture.ask(user, 'GET', path);
  expect(answer.status).toBe(200);
  return answer.json();
};
const page = async (query: string): Promise<TunnelLogEntry[]> => tunnelLog.parse(await read(`/usage/tunnels${query}`));

describe('GET /usage', () => {
  it('sums the last 30 UTC days including today, and counts open tunnels', async () => {
    expect(usageSummary.parse(await read('/usage'))).toEqual({
      active_tunnels: 5,
      total_tunnels_30d: 7,
      total_requests_30d: 70,
      total_bytes_30d: 35_000_000_000,
      plan: 'free',
      tunnel_limit: 3,
      reserved_limit: 3,
      domain_limit: 3,
    });
  });
});

describe('GET /usage/chart', () => {
  const chart = async (query: string): Promise<UsageChartPoint[]> =>
    usageChart.parse(await read(`/usage/chart${query}`));

  it('returns exactly one point per day, oldest first, with zeros for days without usage', async () => {
    const points = await chart('');
    expect(points).toHaveLength(30);
    expect([points[0], points[1], points.at(-1)]).toEqual([
      { date: '2030-05-17', tunnels: 1, requests: 10, bytes: 5_000_000_000 },
      { date: '2030-05-18', tunnels: 0, requests: 0, bytes: 0 },
      { date: '2030-06-15', tunnels: 4, requests: 40, bytes: 20_000_000_000 },
    ]);
    expect(await chart('?days=1')).toEqual([{ date: '2030-06-15', tunnels: 4, requests: 40, bytes: 20_000_000_000 }]);
    expect(await chart('?days=90')).toHaveLength(90);
  });
});

describe('GET /usage/tunnels', () => {
  it('returns exactly the documented fields of an entry', async () => {
    const [entry] = await page('?limit=1');
    const newest = entries.find(({ id }) => id === entry?.id);
    expect(entry).toEqual({
      ...newest,
      name: 'web-24',
      public_url: 'https://label-24.t.example',
      client_name: 'laptop',
      protocol: 'http',
      label: 'label-24',
      registered_at: '2030-06-15T00:12:00.000Z',
      unregistered_at: '2030-06-15T11:00:00.000Z',
      region_id: 'local',
      request_count: 24,
      bytes_proxied: 72_000_000_000,
    });
  });
});

describe('GET /usage/tunnels with a filter', () => {
  it('filters by protocol, state or both, newest first', async () => {
    const labels = async (query: string) => (await page(`?limit=100&${query}`)).map(({ label }) => label);
    const numbered = (keep: (n: number) => boolean) =>
      Array.from({ length: 25 }, (_, n) => n)
        .filter(keep)
        .map((n) => `label-${n}`)
        .sort();
    expect((await labels('protocol=tcp')).sort()).toEqual(numbered((n) => n % 2 === 1));
    expect((await labels('state=active')).sort()).toEqual(numbered((n) => n < 5));
    expect((await labels('state=closed')).sort()).toEqual(numbered((n) => n >= 5));
    expect((await labels('state=closed&protocol=http')).sort()).toEqual(numbered((n) => n >= 5 && n % 2 === 0));
    expect(await labels('protocol=udp')).toEqual([]);
    const times = (await page('?state=closed&limit=100')).map(({ registered_at: at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
  });

  it('pages through the filtered tunnels', async () => {
    const pages = [await page('?state=closed&limit=12'), await page('?state=closed&limit=12&offset=12')];
    expect(pages.map(({ length }) => length)).toEqual([12, 8]);
    expect(new Set(pages.flat().map(({ id }) => id)).size).toBe(20);
  });

  it.each([
    ['protocol=', "protocol must be one of http, tcp, udp, p2p, got ''"],
    ['state=active&state=closed', "state must be one of active, closed, got 'active, closed'"],
  ])('rejects %s', async (query, error) => {
    const answer = await fixture.ask(fixture.alice, 'GET', `/usage/tunnels?${query}`);
    expect([answer.status, await answer.json()]).toMatchObject([400, { error, code: 'API_BAD_REQUEST' }]);
  });

  it.each([
    ["protocol = 'udp' and unregistered_at is not null", 'tunnel_log_of_protocol'],
    ['unregistered_at is null', 'tunnel_log_open_of_user'],
  ])('uses an index instead of reading a long log: %s', async (condition, index) => {
    const { db } = fixture.database;
    await sql`
      insert into tunnel_log (user_id, tunnel_id, protocol, registered_at, unregistered_at)
      select ${fixture.bob.userId}, ${condition} || n, case when n % 500 = 0 then 'udp' else 'http' end,
        now() - n * interval '1 minute', case when n % 1000 = 1 then null else now() end
      from generate_series(1, 20000) n`.execute(db);
    await sql`analyze tunnel_log`.execute(db);
    const { rows } = await sql<Record<string, string>>`
      explain analyze select id from tunnel_log where user_id = ${fixture.bob.userId} and ${sql.raw(condition)}
      order by registered_at desc, id desc limit 20`.execute(db);
    const plan = rows.map((line) => line['QUERY PLAN']).join('\n');
    expect(plan).toContain(`using ${index} `);
    expect(plan).not.toContain('Rows Removed');
  });
});

describe('GET /usage/regions', () => {
  it('lists regions with a heartbeat in the last minute, and their addresses', async () => {
    const now = fixture.clock.now();
    const edge = (name: string, region_id: string | null, ago: number) => ({
      name,
      region_id,
      region_name: name,
      location: '',
      credential_hash: name,
      control: `${name}:4040`,
      control_tls: true,
      http_url: `https://${name}`,
      last_heartbeat_at: new Date(now - ago),
    });
    await fixture.database.db
      .insertInto('edges')
      .values([
        edge('old', 'eu', 50_000),
        edge('eu-2', 'eu', 1000),
        edge('us', 'us', 3_600_000),
        edge('ap', 'ap', 0),
        edge('new', null, 0),
        { ...edge('out', 'out', 0), revoked_at: new Date(now) },
      ])
      .execute();
    const regions = usageRegions.parse(await read('/usage/regions'));
    expect(regions.map(({ region_id, name }) => [region_id, name])).toEqual([
      ['ap', 'ap'],
      ['eu', 'eu-2'],
    ]);
    expect(regions[0]).toEqual({
      region_id: 'ap',
      name: 'ap',
      location: '',
      control: 'ap:4040',
      control_tls: true,
      http_url: 'https://ap',
    });
  });
});

describe('GET /usage/unguarded', () => {
  it('names open tunnels without a guarding rule, except peer-to-peer tunnels, which have a secret', async () => {
    const guarded = { rules: 1, actions: ['auth'], revision: 0, hash_short: '1f3a9c02' };
    fixture.edges.answer = [
      { tunnel_id: 'tun_open', protocol: 'http', policy: null },
      { tunnel_id: 'tun_of_before', protocol: 'tcp' },
      { tunnel_id: 'tun_guarded', protocol: 'http', policy: guarded },
      { tunnel_id: 'tun_headers', protocol: 'http', policy: { ...guarded, actions: ['response_headers'] } },
      { tunnel_id: 'tun_p2p', protocol: 'p2p', policy: null },
    ];
    expect(await read('/usage/unguarded')).toEqual({ tunnel_ids: ['tun_open', 'tun_of_before', 'tun_headers'] });
    expect(fixture.edges.asked.at(-1)).toEqual([fixture.alice.userId]);
  });
});

describe('GET /usage/tunnels/{id}', () => {
  it('returns name, address and computer, and omits fields an older edge did not report', async () => {
    const [old, second] = entries;
    expect(await read(`/usage/tunnels/${second?.id}`)).toMatchObject({
      name: 'web-1',
      public_url: 'https://label-1.t.example',
      client_name: 'laptop',
    });
    const told = Object.keys((await read(`/usage/tunnels/${old?.id}`)) as object);
    expect(told.filter((field) => ['name', 'public_url', 'client_name'].includes(field))).toEqual([]);
  });

  it('returns 404 for foreign and invalid IDs, also on its sub-paths', async () => {
    const strangers = [
      entries[0]?.id,
      entries[0]?.tunnel_id,
      crypto.randomUUID(),
      'x',
      '%00',
      '%ED%A0%80',
      '%F0%9F%98%80',
    ];
    for (const id of strangers) {
      const paths = ['', '/requests', '/health-events', '/flows', '/peers'].map(
        (rest) => `/usage/tunnels/${id}${rest}`,
      );
      const answers = await Promise.all(paths.map((path) => fixture.ask(fixture.bob, 'GET', path)));
      expect([id, ...answers.map(({ status }) => status)]).toEqual([id, 404, 404, 404, 404, 404]);
    }
    expect(
      (await fixture.ask(fixture.bob, 'POST', `/usage/tunnels/${entries[0]?.id}/requests/req_1/replay`)).status,
    ).toBe(404);
  });
});

describe('live data from the edge of a tunnel', () => {
  const http = () => entries[0];
  const tcp = () => entries[1];

  it('passes on requests, health events and replays', async () => {
    fixture.edges.answer = { tunnel_id: http()?.tunnel_id, requests: [], truncated: true, next_cursor: 'run-1c' };
    expect(await read(`/usage/tunnels/${http()?.id}/requests?limit=7`)).toEqual(fixture.edges.answer);
    expect(fixture.edges.asked.at(-1)).toEqual(['local', http()?.tunnel_id, fixture.alice.userId, { limit: 7 }]);
    await read(`/usage/tunnels/${http()?.id}/requests?limit=7&cursor=run-1c&answered=true`);
    expect(fixture.edges.asked.at(-1)?.at(-1)).toEqual({ limit: 7, cursor: 'run-1c', answered: true });
    fixture.edges.answer = [{ at: '2030-01-01T00:00:00.000Z', healthy: true, reason: 'probe succeeded' }];
    expect(await read(`/usage/tunnels/${tcp()?.id}/health-events`)).toEqual(fixture.edges.answer);
    const replay = await fixture.ask(
      fixture.alice,
      'POST',
      `/usage/tunnels/${http()?.tunnel_id}/requests/req_1/replay`,
    );
    expect(replay.status).toBe(200);
    expect(fixture.edges.asked.at(-1)).toEqual(['local', http()?.tunnel_id, 'req_1', fixture.alice.userId, {}]);
  });

  it('passes on an edited replay unchanged, and rejects a malformed edit', async () => {
    const path = `/usage/tunnels/${http()?.tunnel_id}/requests/req_1/replay`;
    fixture.edges.answer = {};
    const edit = { method: 'PUT', headers: [['a', '[redacted]']], body: '' };
    expect((await fixture.ask(fixture.alice, 'POST', path, edit)).status).toBe(200);
    expect(fixture.edges.asked.at(-1)?.at(-1)).toEqual(edit);
    const asked = fixture.edges.asked.length;
    for (const bad of [{ path: 1 }, { other: 'x' }, { headers: [['a', 'b', 'c']] }]) {
      const answer = await fixture.ask(fixture.alice, 'POST', path, bad);
      expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'API_BAD_REQUEST' }]);
    }
    expect(fixture.edges.asked).toHaveLength(asked);
  });

  it('returns 400 for the requests of a TCP tunnel, and for an invalid limit or cursor', async () => {
    const path = `/usage/tunnels/${tcp()?.id}/requests`;
    const answer = await fixture.ask(fixture.alice, 'GET', path);
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'TUNNEL_NOT_HTTP' }]);
    expect((await fixture.ask(fixture.alice, 'GET', `${path}?limit=101`)).status).toBe(400);
    for (const cursor of ['', 'x'.repeat(65), 'a&cursor=b']) {
      const bad = await fixture.ask(fixture.alice, 'GET', `/usage/tunnels/${http()?.id}/requests?cursor=${cursor}`);
      expect([bad.status, await bad.json()]).toMatchObject([
        400,
        { code: 'API_BAD_REQUEST', error: expect.stringContaining('cursor must be the next_cursor') },
      ]);
    }
    expect((await fixture.ask(fixture.alice, 'POST', `${path}/req_1/replay`)).status).toBe(400);
  });

  it('is empty if the edge forgot the tunnel, and a 502 if the region is unavailable', async () => {
    fixture.edges.answer = new Fault('TUNNEL_UNKNOWN');
    const empty = { tunnel_id: http()?.tunnel_id, requests: [], truncated: false, next_cursor: null };
    expect(await read(`/usage/tunnels/${http()?.id}/requests`)).toEqual(empty);
    expect(await read(`/usage/tunnels/${http()?.id}/health-events`)).toEqual([]);
    fixture.edges.answer = new Fault('EDGE_AWAY', { region: 'local' });
    expect((await fixture.ask(fixture.alice, 'GET', `/usage/tunnels/${http()?.id}/requests`)).status).toBe(502);
    // No edge is called for a tunnel without a region or for an ended tunnel.
    expect(await read(`/usage/tunnels/${entries[4]?.id}/requests`)).toMatchObject({ requests: [] });
    expect(await read(`/usage/tunnels/${entries[10]?.id}/health-events`)).toEqual([]);
  });

  it("keeps the edge's refusal with Retry-After", async () => {
    fixture.edges.answer = Fault.fromWire('CAPTURE_REPLAYS_BUSY', '16 replays are under way');
    const answer = await fixture.ask(fixture.alice, 'POST', `/usage/tunnels/${http()?.id}/requests/req_1/replay`);
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1']);
  });
});
