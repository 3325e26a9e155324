import { connect } from 'node:net';
import { apiError, type GroupSummary, groupSummaries, healthEvents } from '@tunnel/contract';
import { FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { LastAlerts } from '../alerts/last-alerts.ts';
import { ALICE, BOB, KEY_HASH, OPERATOR } from './group.fixture.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, type RestFixture, startRest } from './rest.fixture.ts';

let rest: RestFixture;
afterEach(() => rest.stop());

const groupsOf = async (token: string): Promise<GroupSummary[]> => {
  const response = await rest.request('/api/groups', { token });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('application/json');
  return groupSummaries.parse(await response.json());
};

const idsOf = (group: GroupSummary | undefined): string[] => group?.members.map((member) => member.tunnel_id) ?? [];

const expectError = async (response: Response, status: number, code: string): Promise<void> => {
  expect(response.status).toBe(status);
  expect(apiError.strict().parse(await response.json()).code).toBe(code);
};

describe('GET /api/groups', () => {
  it('returns an empty array without groups, even while load balancing is off', async () => {
    rest = await startRest();
    for (const token of [ADMIN_TOKEN, ALICE_KEY]) expect(await groupsOf(token)).toEqual([]);
  });

  it('a group has exactly the fields of the contract: no webhook URL, and no check kind for a member without a check', async () => {
    rest = await startRest();
    const first = await rest.groups.join('tun_1', ALICE, {
      protocol: 'https',
      alertWebhook: 'https://hooks/secret',
      clientName: 'laptop',
    });
    await rest.groups.join('tun_2', ALICE, { protocol: 'https', kind: null });
    rest.groups.healthy(first);
    rest.groups.unhealthy(first);
    first.group?.dispatched(first);
    const response = await rest.request('/api/groups', { token: ALICE_KEY });
    const text = await response.text();
    expect(text).not.toContain('hooks');
    expect(JSON.parse(text)).toEqual([
      {
        protocol: 'http',
        label: 'web',
        name: 'web',
        key_hash_short: KEY_HASH.slice(0, 8),
        region_id: 'local',
        member_count: 2,
        healthy_count: 1,
        unhealthy_count: 1,
        total_dispatches: 1,
        total_health_failures: 1,
        members: [
          {
            tunnel_id: 'tun_1',
            session_id: 'ses_tun_1',
            name: 'tun_1',
            public_url: 'http://web.localhost:8000',
            client_addr: '127.0.0.1:5000',
            client_name: 'laptop',
            request_count: 3,
            bytes_proxied: 4096,
            healthy: false,
            consecutive_failures: 3,
            total_health_failures: 1,
            last_failure_reason: 'connection refused',
            connected_since: '2030-01-01T00:00:00.000Z',
            health_check_kind: 'http',
            has_alert_webhook: true,
          },
          {
            tunnel_id: 'tun_2',
            session_id: 'ses_tun_2',
            name: 'tun_2',
            public_url: 'http://web.localhost:8000',
            client_addr: '127.0.0.1:5000',
            request_count: 3,
            bytes_proxied: 4096,
            healthy: true,
            consecutive_failures: 0,
            total_health_failures: 0,
            connected_since: '2030-01-01T00:00:00.000Z',
            has_alert_webhook: false,
          },
        ],
      },
    ]);
  });

  it('a member shows the outcome of the last alert to its webhook', async () => {
    const lastAlerts = new LastAlerts();
    rest = await startRest({ lastAlertOf: (group, member) => lastAlerts.of(group, member) });
    const url = 'https://hooks/secret';
    const { group } = await rest.groups.join('tun_1', ALICE, { alertWebhook: url });
    await rest.groups.join('tun_2', ALICE);
    lastAlerts.begin(group ?? {}, Date.UTC(2030, 0, 1))([url], 'refused-status');
    const [told] = await groupsOf(ALICE_KEY);
    expect(told?.members.map(({ last_alert }) => last_alert)).toEqual([
      { at: '2030-01-01T00:00:00.000Z', outcome: 'failed' },
      undefined,
    ]);
  });

  it('the admin sees every member; a key sees its own members, with totals including its former members', async () => {
    rest = await startRest();
    const { groups } = rest;
    const alice = await groups.join('tun_a', ALICE);
    const gone = await groups.join('tun_gone', ALICE);
    const bob = await groups.join('tun_b', BOB);
    await groups.join('tun_o', OPERATOR, { protocol: 'tcp', group: 'db' });
    for (const member of [alice, gone, bob]) groups.healthy(member);
    for (const member of [alice, gone, gone, bob, bob, bob]) member.group?.dispatched(member);
    groups.unhealthy(gone);
    groups.unhealthy(bob);
    groups.leave(gone);

    const [web, db] = await groupsOf(ADMIN_TOKEN);
    expect(idsOf(web)).toEqual(['tun_a', 'tun_b']);
    expect(web).toMatchObject({ member_count: 2, healthy_count: 1, total_dispatches: 6, total_health_failures: 2 });
    expect(db).toMatchObject({ protocol: 'tcp', label: '20000', name: 'db', unhealthy_count: 1 });

    const [own, ...others] = await groupsOf(ALICE_KEY);
    expect(others).toEqual([]);
    expect(idsOf(own)).toEqual(['tun_a']);
    expect(own).toMatchObject({
      member_count: 1,
      healthy_count: 1,
      unhealthy_count: 0,
      total_dispatches: 3,
      total_health_failures: 1,
    });
    expect((await groupsOf(BOB_KEY))[0]).toMatchObject({ member_count: 1, healthy_count: 0, total_dispatches: 3 });

    groups.leave(alice);
    expect(await groupsOf(ALICE_KEY)).toEqual([]);
  });

  it('a response with 10,000 members and 2000 groups is built in many turns of the event loop', async () => {
    rest = await startRest();
    for (let n = 0; n < 10_000; n += 1) await rest.groups.join(`tun_${n}`, n % 2 === 0 ? ALICE : BOB);
    for (let n = 0; n < 2000; n += 1) await rest.groups.join(`tun_g${n}`, ALICE, { group: `group-${n}` });
    let turns = 0;
    const ticking = setInterval(() => (turns += 1), 0);
    const text = await (await rest.request('/api/groups', { token: ADMIN_TOKEN })).text();
    clearInterval(ticking);
    // The response has more than 3 MB and is written in parts of 64 KiB, so timers run between the parts.
    expect(turns).toBeGreaterThan(10);
    const all = groupSummaries.parse(JSON.parse(text));
    expect(all).toHaveLength(2001);
    expect(all[0]?.members).toHaveLength(10_000);
    expect((await groupsOf(BOB_KEY)).map((group) => group.members.length)).toEqual([5000]);
  });

  it('a caller that does not read makes the edge build only part of the response', async () => {
    rest = await startRest();
    for (let n = 0; n < 20_000; n += 1) await rest.groups.join(`tun_${n}`, ALICE, { group: `group-${n % 200}` });
    let presented = 0;
    const values = rest.groups.directory.values.bind(rest.groups.directory);
    rest.groups.directory.values = function* () {
      for (const group of values()) {
        const members = group.members.bind(group);
        group.members = () => {
          presented += 1;
          return members();
        };
        yield group;
      }
    };
    const socket = connect(rest.port, '127.0.0.1');
    socket.pause();
    socket.write(`GET /api/groups HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
    let settled = -1;
    while (presented === 0 || settled !== presented) {
      settled = presented;
      // A request takes many turns of the event loop, so a response still being written would make progress meanwhile.
      for (let n = 0; n < 20; n += 1) await rest.request('/api/status');
    }
    socket.destroy();
    expect(presented).toBeLessThan(200);
  });
});

describe('GET /api/tunnels', () => {
  it('shows the group’s name and the member’s health', async () => {
    rest = await startRest();
    const member = await rest.groups.join('tun_m', ALICE, { group: 'pool', label: 'web' });
    const shown = async () => (await rest.request('/api/tunnels/tun_m', { token: ALICE_KEY })).json();
    expect(await shown()).toMatchObject({ group: 'pool', healthy: false, label: 'web' });
    rest.groups.healthy(member);
    expect(await shown()).toMatchObject({ group: 'pool', healthy: true });
  });
});

describe('GET /api/tunnels/:id/health-events', () => {
  const eventsOf = (id: string, token: string) => rest.request(`/api/tunnels/${id}/health-events`, { token });

  it('is empty until the first transition, then returns the last 50 transitions, oldest first', async () => {
    const clock = new FakeClock();
    rest = await startRest({ clock });
    const member = await rest.groups.join('tun_m', ALICE);
    rest.groups.unhealthy(member);
    expect(await (await eventsOf('tun_m', ALICE_KEY)).json()).toEqual([]);
    for (let n = 0; n < 30; n += 1) {
      rest.groups.healthy(member);
      rest.groups.healthy(member);
      await clock.advance(1000);
      rest.groups.unhealthy(member, `failure ${n}`);
    }
    const events = healthEvents.parse(await (await eventsOf('tun_m', ADMIN_TOKEN)).json());
    expect(events).toHaveLength(50);
    expect(events[1]).toEqual({ at: '2030-01-01T00:00:06.000Z', healthy: false, reason: 'failure 5' });
    expect(events.at(-1)).toEqual({ at: '2030-01-01T00:00:30.000Z', healthy: false, reason: 'failure 29' });
  });

  it('another account’s tunnel gets the same 404 as an unknown tunnel', async () => {
    rest = await startRest();
    await expectError(await eventsOf('tun_bob', ALICE_KEY), 404, 'TUNNEL_UNKNOWN');
    await expectError(await eventsOf('tun_none', ADMIN_TOKEN), 404, 'TUNNEL_UNKNOWN');
    expect(await (await eventsOf('tun_alice', ALICE_KEY)).json()).toEqual([]);
  });
});

describe('paths about groups', () => {
  const PATHS = ['/api/groups', '/api/tunnels/tun_op/health-events', '/api/groups/http/web/events'];

  it.each(PATHS)('%s needs a key, allows GET and HEAD, and rejects POST', async (path) => {
    rest = await startRest();
    await rest.groups.join('tun_m', ALICE);
    await expectError(await rest.request(path), 401, 'AUTH_TOKEN_MISSING');
    await expectError(await rest.request(path, { token: 'wrong' }), 401, 'AUTH_TOKEN_INVALID');
    const refused = await rest.request(path, { method: 'POST', token: ADMIN_TOKEN });
    expect(refused.headers.get('allow')).toBe('GET, HEAD');
    await expectError(refused, 405, 'API_METHOD_NOT_ALLOWED');
    const head = await rest.request(path, { method: 'HEAD', token: ADMIN_TOKEN });
    expect(head.status).toBe(200);
    expect(await head.text()).toBe('');
    expect(head.headers.get('content-type')).toMatch(path.endsWith('/events') ? /event-stream/ : /json/);
    expect(rest.feed.consumers).toBe(0);
  });

  it('the OpenAPI document declares the event stream as text/event-stream', async () => {
    rest = await startRest();
    const document = (await (await rest.request('/api/openapi.json')).json()) as {
      paths: Record<string, { get: { responses: Record<string, { content: object }> } }>;
      components: { schemas: object };
    };
    const { responses } = document.paths['/api/groups/{protocol}/{label}/events']?.get ?? {};
    expect(Object.keys(responses?.['200']?.content ?? {})).toEqual(['text/event-stream']);
    expect(document.components.schemas).toMatchObject({
      GroupSummary: {},
      GroupMemberSummary: {},
      GroupEvent: {},
      HealthEvent: {},
      Lagged: {},
    });
  });
});
