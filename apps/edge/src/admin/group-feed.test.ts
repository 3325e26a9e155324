import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { apiError, groupEvent } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Tunnel } from '../routing/tunnel.ts';
import { SeenEvents } from './event-source.fixture.ts';
import { ALICE, BOB, OPERATOR } from './group.fixture.ts';
import { SSE_CONSUMERS_MAX, SSE_CONSUMERS_PER_OWNER, SSE_KEEP_ALIVE_MS } from './group-feed.ts';
import { ADMIN_TOKEN, ALICE_KEY, BOB_KEY, type RestFixture, startRest } from './rest.fixture.ts';

const WEB = '/api/groups/http/web/events';

let clock: FakeClock;
let rest: RestFixture;
const open: SeenEvents[] = [];
const sockets: Socket[] = [];

beforeEach(async () => {
  clock = new FakeClock();
  rest = await startRest({ clock });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await Promise.allSettled(open.splice(0).map((seen) => seen.leave()));
  await rest.stop();
});

const watch = async (token: string, path = WEB): Promise<SeenEvents> => {
  const response = await rest.request(path, { token });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const seen = new SeenEvents(response.body as ReadableStream<Uint8Array>);
  open.push(seen);
  await seen.until(1);
  return seen;
};

const expectError = async (response: Response, status: number, code: string): Promise<void> => {
  expect(response.status).toBe(status);
  expect(apiError.parse(await response.json()).code).toBe(code);
};

describe('events of a group', () => {
  it('every change of a member’s health sends one event with the new counts and a rising id', async () => {
    const first = await rest.groups.join('tun_1', ALICE, { protocol: 'https' });
    const second = await rest.groups.join('tun_2', ALICE, { protocol: 'https' });
    const seen = await watch(ADMIN_TOKEN);
    rest.groups.unhealthy(first);
    rest.groups.healthy(first);
    rest.groups.healthy(first);
    rest.groups.healthy(second);
    rest.groups.unhealthy(first, 'HTTP 503');
    rest.groups.unhealthy(first, 'HTTP 503');
    await seen.until(4);
    await rest.request('/api/status');
    expect(seen.events[0]).toEqual({ retry: '2000' });
    expect(seen.events.slice(1).every(({ event }) => event === 'group_event')).toBe(true);
    const data = seen.changes.map((change) => groupEvent.strict().parse(change.data));
    expect(data.map((event) => [event.tunnel_id, event.healthy, event.healthy_count, event.member_count])).toEqual([
      ['tun_1', true, 1, 2],
      ['tun_2', true, 2, 2],
      ['tun_1', false, 1, 2],
    ]);
    expect(data[2]).toMatchObject({
      protocol: 'http',
      label: 'web',
      group_name: 'web',
      region_id: 'local',
      reason: 'HTTP 503',
      at: '2030-01-01T00:00:00.000Z',
    });
    const ids = seen.changes.map(({ id }) => Number(id));
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    expect(new Set(ids).size).toBe(3);
  });

  it('an API key gets events of its own members only, with counts of its own members', async () => {
    const alice = await rest.groups.join('tun_a', ALICE);
    const bob = await rest.groups.join('tun_b', BOB);
    const seenByAlice = await watch(ALICE_KEY);
    const seenByAdmin = await watch(ADMIN_TOKEN);
    rest.groups.healthy(bob);
    rest.groups.healthy(alice);
    await seenByAdmin.until(3);
    await seenByAlice.until(2);
    expect(seenByAdmin.changes.map(({ data }) => data?.['member_count'])).toEqual([2, 2]);
    expect(seenByAlice.changes.map(({ data }) => data)).toMatchObject([
      { tunnel_id: 'tun_a', healthy_count: 1, member_count: 1 },
    ]);
    expect(seenByAlice.changes[0]?.id).toBe(seenByAdmin.changes[1]?.id);
  });

  it('a stream carries events of the requested group only', async () => {
    const web = await rest.groups.join('tun_w', ALICE);
    const db = await rest.groups.join('tun_d', ALICE, { protocol: 'tcp', group: 'db' });
    const seen = await watch(ALICE_KEY, '/api/groups/tcp/20000/events');
    rest.groups.healthy(web);
    rest.groups.healthy(db);
    await seen.until(2);
    expect(seen.changes.map(({ data }) => data)).toMatchObject([
      { tunnel_id: 'tun_d', protocol: 'tcp', label: '20000' },
    ]);
  });

  it('a tls group is found under tcp and its hostname', async () => {
    await rest.groups.join('tun_t', ALICE, { protocol: 'tls', group: 'vault' });
    const seen = await watch(ALICE_KEY, '/api/groups/tcp/vault.localhost/events');
    rest.groups.healthy(rest.groups.tunnels.get('tun_t') as Tunnel);
    await seen.until(2);
    expect(seen.changes.map(({ data }) => data)).toMatchObject([
      { tunnel_id: 'tun_t', protocol: 'tcp', label: 'vault.localhost', group_name: 'vault' },
    ]);
  });

  it('an idle stream sends a comment every 30 s', async () => {
    await rest.groups.join('tun_1', ALICE);
    const seen = await watch(ALICE_KEY);
    await clock.advance(SSE_KEEP_ALIVE_MS - 1);
    expect(seen.events).toHaveLength(1);
    await clock.advance(1);
    expect((await seen.until(2))[1]).toEqual({ comment: 'ping' });
    await clock.advance(SSE_KEEP_ALIVE_MS);
    await seen.until(3);
  });
});

describe('GET /api/groups/:protocol/:label/events, status 404', () => {
  it.each([
    ['a foreign group', BOB_KEY, WEB],
    ['an unknown label', ADMIN_TOKEN, '/api/groups/http/none/events'],
    ['https, which is shown as http', ADMIN_TOKEN, '/api/groups/https/web/events'],
    ['the wrong protocol', ADMIN_TOKEN, '/api/groups/tcp/web/events'],
    ['a tls group under its subdomain', ADMIN_TOKEN, '/api/groups/http/vault/events'],
    ['an http group under its host', ADMIN_TOKEN, '/api/groups/tcp/web.localhost/events'],
    ['a port that is not written as one', ADMIN_TOKEN, '/api/groups/tcp/020000/events'],
    ['a protocol without groups', ADMIN_TOKEN, '/api/groups/udp/web/events'],
  ])('%s is unknown', async (_, token, path) => {
    await rest.groups.join('tun_1', ALICE);
    await rest.groups.join('tun_2', ALICE, { protocol: 'tcp', group: 'db' });
    await rest.groups.join('tun_3', ALICE, { protocol: 'tls', group: 'vault' });
    await expectError(await rest.request(path, { token }), 404, 'GROUP_UNKNOWN');
  });
});

describe('the end of an event stream', () => {
  it('a stream ends when the last visible member leaves, after sending the earlier events', async () => {
    const alice = await rest.groups.join('tun_a', ALICE);
    const second = await rest.groups.join('tun_a2', ALICE);
    const bob = await rest.groups.join('tun_b', BOB);
    const own = await watch(ALICE_KEY);
    const all = await watch(ADMIN_TOKEN);
    rest.groups.leave(second);
    rest.groups.leave(bob);
    rest.groups.healthy(alice);
    await rest.groups.join('tun_b2', BOB);
    rest.groups.leave(alice);
    await own.ended;
    expect(own.changes).toHaveLength(1);
    expect(all.isEnded).toBe(false);
    expect(rest.feed.consumers).toBe(1);
    await expectError(await rest.request(WEB, { token: ALICE_KEY }), 404, 'GROUP_UNKNOWN');
  });

  it('every stream of a group ends when the group ends', async () => {
    const member = await rest.groups.join('tun_a', ALICE);
    const streams = [await watch(ALICE_KEY), await watch(ADMIN_TOKEN)];
    rest.groups.leave(member);
    await Promise.all(streams.map(({ ended }) => ended));
    expect(rest.feed.consumers).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('a stream ends when its API key is revoked or its account is suspended', async () => {
    await rest.groups.join('tun_a', ALICE);
    await rest.groups.join('tun_b', BOB);
    const alice = await watch(ALICE_KEY);
    const bob = await watch(BOB_KEY);
    const admin = await watch(ADMIN_TOKEN);
    rest.feed.revoked({ accountId: 'alice', fault: new Fault('ACCOUNT_SUSPENDED') });
    await alice.ended;
    rest.feed.revoked({ keyId: 'another', fault: new Fault('AUTH_TOKEN_REVOKED') });
    expect(rest.feed.consumers).toBe(2);
    rest.feed.revoked({ keyId: 'admin', fault: new Fault('AUTH_TOKEN_REVOKED') });
    await admin.ended;
    expect(bob.isEnded).toBe(false);
  });

  it('every stream ends at once when the edge shuts down, and new streams get a 503', async () => {
    await rest.groups.join('tun_a', ALICE);
    const streams = [await watch(ALICE_KEY), await watch(ADMIN_TOKEN)];
    rest.feed.close();
    await Promise.all(streams.map(({ ended }) => ended));
    await expectError(await rest.request(WEB, { token: ALICE_KEY }), 503, 'EDGE_SHUTTING_DOWN');
  });

  it('a consumer that disconnects is removed and leaves no timer', async () => {
    await rest.groups.join('tun_a', ALICE);
    const seen = await watch(ALICE_KEY);
    expect(rest.feed.consumers).toBe(1);
    await seen.leave();
    await eventually(() => expect(rest.feed.consumers).toBe(0));
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('limits of event streams', () => {
  const refusal = async (token: string): Promise<void> => {
    const response = await rest.request(WEB, { token });
    expect(response.headers.get('retry-after')).toBe('5');
    await expectError(response, 429, 'API_STREAMS_BUSY');
  };

  it('an account over its number of streams gets a 429 until one of the streams ends', async () => {
    const member = await rest.groups.join('tun_a', ALICE);
    await rest.groups.join('tun_b', BOB);
    const [first, ...others] = Array.from({ length: SSE_CONSUMERS_PER_OWNER }, () =>
      rest.feed.open(member.group as never, { owner: ALICE, keyId: 'k' }),
    );
    await refusal(ALICE_KEY);
    await watch(BOB_KEY);
    first?.cut();
    await watch(ALICE_KEY);
    await refusal(ALICE_KEY);
    for (const stream of others) stream.cut();
  });

  it('every key gets a 429 once the edge has its maximum number of streams', async () => {
    const member = await rest.groups.join('tun_a', ALICE);
    for (let n = 0; n < SSE_CONSUMERS_MAX; n += 1) {
      rest.feed.open(member.group as never, { owner: { kind: 'account', accountId: `${n}` }, keyId: 'k' });
    }
    await refusal(ALICE_KEY);
    await refusal(ADMIN_TOKEN);
    rest.feed.close();
  });

  it('a consumer that stops reading gets the queued events in order and the number of missed events', async () => {
    const member = await rest.groups.join('tun_a', OPERATOR);
    const socket = connect(rest.port, '127.0.0.1');
    sockets.push(socket);
    socket.write(`GET ${WEB} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ADMIN_TOKEN}\r\n\r\n`);
    await once(socket, 'readable');
    // From here on the socket does not read. The events exceed the buffers of the kernel, so the queue must fill.
    const reason = 'x'.repeat(900);
    const sent = 30_000;
    for (let n = 0; n < sent / 2; n += 1) {
      rest.groups.healthy(member);
      rest.groups.unhealthy(member, reason);
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    rest.groups.leave(member);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => {
      text += part;
    });
    // The last chunk of the body: the queued events have arrived, and the stream has ended together with its group.
    await eventually(() => expect(text.endsWith('\r\n0\r\n\r\n')).toBe(true));
    const missed = [...text.matchAll(/"missed":(\d+)/g)].map(([, count]) => Number(count));
    const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
    expect(missed.length).toBeGreaterThan(0);
    expect(ids.length + missed.reduce((sum, count) => sum + count, 0)).toBe(sent);
    expect(ids).toEqual([...ids].sort((a, b) => a - b));
    await eventually(() => expect(rest.feed.consumers).toBe(0));
  });
});
