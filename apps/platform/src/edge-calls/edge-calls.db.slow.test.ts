import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { dropReason, type EdgeTunnel, type GroupSummary } from '@tunnel/contract';
import { systemClock } from '@tunnel/runtime';
import { eventually, testCertificate } from '@tunnel/testkit';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ensureLocalEdge, newEdgeCredential } from '../services/edges/credentials.ts';
import { heartbeat } from '../services/edges/heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  beatOf,
  createLinkFixture,
  type LinkFixture,
  questionOf,
} from '../services/edges/link.fixture.ts';
import { openTunnel } from '../services/tunnels/open-tunnel.ts';
import { createEdgeCalls } from './edge-calls.ts';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let fixture: LinkFixture;
let account: Account;
const servers: Server[] = [];
const fixtures: LinkFixture[] = [];
beforeEach(async () => {
  fixture = await createLinkFixture(5);
  fixtures.push(fixture);
  account = await addAccount(fixture.db);
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});
afterAll(() => Promise.all(fixtures.map((each) => each.close())));

/** Starts an edge with a REST API that responds as the test wants. */
const startEdge = async (region: string, answer: Answer) => {
  const server = createServer(answer);
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const edge = await addEdge(fixture, region);
  const { port } = server.address() as AddressInfo;
  // Uses a URL with a path and a trailing slash, as behind a proxy.
  await heartbeat(fixture, edge.actor, { ...beatOf(edge.runId, region), api_url: `http://127.0.0.1:${port}/edge/` });
  return edge;
};
const json =
  (body: unknown, status = 200): Answer =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
const silent: Answer = () => {};
const calls = (more = {}) => createEdgeCalls({ ...fixture, clock: systemClock, ...more });
/** Options with the fixture's clock. Heartbeats are stamped with the same clock. */
const at = (clock = fixture.clock) => ({
  clock: { ...systemClock, now: () => clock.now() },
});

const groupOf = (region_id: string, more: Partial<GroupSummary> = {}): GroupSummary => ({
  protocol: 'http',
  label: 'web',
  name: 'web',
  key_hash_short: '01234567',
  region_id,
  member_count: 1,
  healthy_count: 1,
  unhealthy_count: 0,
  total_dispatches: 5,
  total_health_failures: 2,
  members: [],
  ...more,
});

describe('a query for groups in all regions', () => {
  it("sends the run's secret and the account, and merges the responses of one region's edges", async () => {
    const asked: unknown[] = [];
    const remember =
      (body: unknown): Answer =>
      (request, response) => {
        const { authorization, 'x-tunnel-account': who } = request.headers;
        asked.push([request.method, request.url, authorization, who]);
        json(body)(request, response);
      };
    await startEdge('eu', remember([groupOf('eu')]));
    await startEdge(
      'eu',
      remember([groupOf('eu', { healthy_count: 0, unhealthy_count: 1 }), groupOf('eu', { label: 'api' })]),
    );
    await startEdge('us', remember([groupOf('us')]));
    const { groups, warnings } = await calls(at()).groups(account.accountId);
    expect(warnings).toEqual([]);
    expect(groups.map((group) => `${group.region_id} ${group.label} ${group.member_count}`).toSorted()).toEqual([
      'eu api 1',
      'eu web 2',
      'us web 1',
    ]);
    expect(groups.find(({ region_id, label }) => region_id === 'eu' && label === 'web')).toMatchObject({
      healthy_count: 1,
      unhealthy_count: 1,
      total_dispatches: 10,
      total_health_failures: 4,
    });
    expect(asked).toEqual(
      Array.from({ length: 3 }, () => ['GET', '/edge/api/groups', 'Bearer a-secret-of-this-run', account.accountId]),
    );
  });

  it('warns once per region that is silent for 2 s, unreachable, refuses or responds with nonsense', async () => {
    await startEdge('well', json([groupOf('well')]));
    // Enough silent edges that sequential calls would take too long.
    for (let edges = 0; edges < 5; edges += 1) await startEdge('silent', silent);
    await startEdge('wrong', json([{ protocol: 'http' }]));
    await startEdge('refusing', json({ error: 'no', code: 'AUTH_TOKEN_INVALID', request_id: 'r' }, 401));
    await startEdge('moved', (_, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end());
    await addEdge(fixture, 'unreachable');
    const began = performance.now();
    const { groups, warnings } = await calls(at()).groups(account.accountId);
    expect(performance.now() - began).toBeLessThan(8000);
    expect(groups).toHaveLength(1);
    expect(warnings.map((warning) => /^region (\S+) did not answer/.exec(warning)?.[1])).toEqual([
      'moved',
      'refusing',
      'silent',
      'unreachable',
      'wrong',
    ]);
  });

  it('sends no secret to an edge with an untrusted certificate', async () => {
    let isAsked = false;
    const server = createTlsServer(testCertificate(), (request, response) => {
      isAsked = true;
      json([groupOf('tls')])(request, response);
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const edge = await addEdge(fixture, 'tls');
    const api_url = `https://localhost:${(server.address() as AddressInfo).port}`;
    await heartbeat(fixture, edge.actor, { ...beatOf(edge.runId, 'tls'), api_url });
    const { groups, warnings } = await calls(at()).groups(account.accountId);
    expect([groups, warnings.length, isAsked]).toEqual([[], 1, false]);
  });

  it('skips edges silent for a minute, unless they hold an open tunnel of the caller', async () => {
    const [holding] = [await addEdge(fixture, 'holding'), await addEdge(fixture, 'gone')];
    await openTunnel(fixture, holding.actor, questionOf(holding, account));
    await fixture.clock.advance(61_000);
    const stranger = await addAccount(fixture.db);
    expect((await calls(at()).groups(account.accountId)).warnings).toEqual([expect.stringContaining('region holding')]);
    expect(await calls(at()).groups(stranger.accountId)).toEqual({ groups: [], warnings: [] });
  });

  it("uses the stack's address for its local edge, and calls no address while the edge is stopped", async () => {
    const asked: unknown[] = [];
    const server = createServer((request, response) => {
      const { authorization, 'x-tunnel-account': who } = request.headers;
      asked.push([request.url, authorization, who]);
      json([groupOf('home')])(request, response);
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const edgeId = await ensureLocalEdge(fixture.db, 'local', newEdgeCredential());
    // The address reported to other processes, where no server listens.
    await heartbeat(fixture, { kind: 'edge', edgeId }, { ...beatOf('run_1', 'home'), api_url: 'http://127.0.0.1:1' });
    const { port } = server.address() as AddressInfo;
    const here = { name: 'local', url: () => `http://127.0.0.1:${port}` };
    expect((await calls({ ...at(), localEdge: here }).groups(account.accountId)).groups).toHaveLength(1);
    expect(asked).toEqual([['/api/groups', 'Bearer a-secret-of-this-run', account.accountId]]);
    const gone = { name: 'local', url: () => null };
    const { warnings } = await calls({ ...at(), localEdge: gone }).groups(account.accountId);
    expect(warnings).toEqual([expect.stringContaining('region home')]);
  });
});

it('a query for open tunnels calls only edges with tunnels of the account, and tolerates a failing edge', async () => {
  const tunnel: EdgeTunnel = {
    tunnel_id: 'tun_1',
    session_id: 'ses_1',
    name: 'web',
    protocol: 'http',
    label: 'web',
    region_id: 'eu',
    public_url: 'http://web.t.example',
    assigned_port: null,
    group: null,
    healthy: true,
    client_addr: '::1:5',
    request_count: 0,
    bytes_proxied: 0,
    connected_since: new Date(0).toISOString(),
  };
  const asked: unknown[] = [];
  const here = await startEdge('eu', (request, response) => {
    asked.push([request.url, request.headers['x-tunnel-account']]);
    json([tunnel])(request, response);
  });
  const broken = await startEdge('us', json({ error: 'no' }, 500));
  await startEdge('asia', () => asked.push('asia'));
  for (const [index, edge] of [here, broken].entries()) {
    const question = questionOf(edge, account, { tunnel_id: `tun_${index + 1}` });
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
  }
  expect(await calls(at()).tunnels(account.accountId)).toEqual([tunnel]);
  expect(asked).toEqual([['/edge/api/tunnels', account.accountId]]);
});

describe('a call to the edge of a tunnel', () => {
  const openAt = async (edge: Awaited<ReturnType<typeof startEdge>>) => {
    const question = questionOf(edge, account);
    await openTunnel(fixture, edge.actor, question);
    return question.tunnel_id;
  };

  it('reaches only that edge of the region', async () => {
    const list = (tunnel_id: string) => ({ tunnel_id, requests: [], truncated: true, next_cursor: 'run-1c' });
    await startEdge('eu', silent);
    const urls: string[] = [];
    const edge = await startEdge('eu', (request, response) => {
      urls.push(`${request.method} ${request.url}`);
      json(request.url?.endsWith('health-events') === true ? [] : list('tun_1'))(request, response);
    });
    await startEdge('eu', silent);
    const tunnelId = await openAt(edge);
    expect(await calls().requests('eu', tunnelId, account.accountId, { limit: 7 })).toEqual(list('tun_1'));
    await calls().requests('eu', tunnelId, account.accountId, { limit: 7, cursor: 'a&b', answered: true });
    expect(await calls().healthEvents('eu', tunnelId, account.accountId)).toEqual([]);
    await expect(calls().replay('eu', tunnelId, 'req/1', account.accountId, { body: 'x' })).rejects.toMatchObject({
      code: 'EDGE_AWAY',
    });
    expect(urls).toEqual([
      `GET /edge/api/tunnels/${tunnelId}/requests?limit=7`,
      `GET /edge/api/tunnels/${tunnelId}/requests?limit=7&cursor=a%26b&answered=true`,
      `GET /edge/api/tunnels/${tunnelId}/health-events`,
      `POST /edge/api/tunnels/${tunnelId}/requests/req%2F1/replay`,
    ]);
  });

  it('gets flows and peers, and dismisses a peer without a response body', async () => {
    const asked: string[] = [];
    const dropped = Object.fromEntries(dropReason.options.map((reason) => [reason, 0]));
    const flows = { flows: [], total: 0, dropped, path: 'udp', reason: '' };
    const peers = { peers: [], total: 0 };
    const edge = await startEdge('eu', (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      if (request.method === 'DELETE') response.writeHead(204).end();
      else json(request.url?.endsWith('flows') === true ? flows : peers)(request, response);
    });
    const tunnelId = await openAt(edge);
    expect(await calls().flows('eu', tunnelId, account.accountId)).toEqual(flows);
    expect(await calls().peers('eu', tunnelId, account.accountId)).toEqual(peers);
    await calls().dismissPeer('eu', tunnelId, 'peer/1', account.accountId);
    const base = `/edge/api/tunnels/${tunnelId}`;
    expect(asked).toEqual([`GET ${base}/flows`, `GET ${base}/peers`, `DELETE ${base}/peers/peer%2F1`]);
  });

  it('gets the policy of a tunnel; an invalid response counts as EDGE_AWAY', async () => {
    const asked: string[] = [];
    const policy = { revision: 0, hash_short: '1f3a9c02', login: null, rules: [], operator_rules: 1 };
    let answer: object = policy;
    const edge = await startEdge('eu', (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      json(answer)(request, response);
    });
    const tunnelId = await openAt(edge);
    expect(await calls().policy('eu', tunnelId, account.accountId)).toEqual(policy);
    expect(asked).toEqual([`GET /edge/api/tunnels/${tunnelId}/policy`]);
    answer = { ...policy, rules: 'none' };
    await expect(calls().policy('eu', tunnelId, account.accountId)).rejects.toMatchObject({ code: 'EDGE_AWAY' });
  });

  it('gets a request, waits for the next request, and closes the tunnel', async () => {
    const asked: string[] = [];
    const edge = await startEdge('eu', (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      if (request.method === 'DELETE') response.writeHead(204).end();
      else json({ request: null, cursor: 'run-1' })(request, response);
    });
    const tunnelId = await openAt(edge);
    const { signal } = new AbortController();
    const filter = { method: 'POST', pathContains: '/a&b', after: 'run-0', withinSecs: 7, signal };
    expect(await calls().nextRequest('eu', tunnelId, account.accountId, filter)).toEqual({
      request: null,
      cursor: 'run-1',
    });
    await expect(calls().request('eu', tunnelId, 'req/1', account.accountId)).rejects.toMatchObject({
      code: 'EDGE_AWAY',
    });
    await calls().closeTunnel('eu', tunnelId, account.accountId);
    const base = `/edge/api/tunnels/${tunnelId}`;
    expect(asked).toEqual([
      `GET ${base}/requests/next?timeout_secs=7&method=POST&path_contains=%2Fa%26b&after=run-0`,
      `GET ${base}/requests/req%2F1`,
      `DELETE ${base}`,
    ]);
  });

  it('rejects request IDs that would change the path', async () => {
    const asked: string[] = [];
    const edge = await startEdge('eu', (request, response) => {
      asked.push(`${request.method} ${request.url}`);
      json({ request: null, cursor: 'run-1' })(request, response);
    });
    const tunnelId = await openAt(edge);
    for (const id of ['next', '.', '..', '']) {
      const unknown = { code: 'CAPTURE_UNKNOWN' };
      await expect(calls().request('eu', tunnelId, id, account.accountId)).rejects.toMatchObject(unknown);
      await expect(calls().replay('eu', tunnelId, id, account.accountId, {})).rejects.toMatchObject(unknown);
    }
    expect(asked).toEqual([]);
  });

  it("ends at once with the caller's error, not EDGE_AWAY, if the caller disconnects while waiting", async () => {
    let open = 0;
    const edge = await startEdge('eu', (request) => {
      open += 1;
      request.socket.on('close', () => (open -= 1));
    });
    const tunnelId = await openAt(edge);
    const caller = new AbortController();
    const filter = { withinSecs: 30, signal: caller.signal };
    const answer = calls().nextRequest('eu', tunnelId, account.accountId, filter);
    const end = answer.catch(String);
    await eventually(() => expect(open).toBe(1));
    caller.abort(new Error('the caller has gone'));
    expect(await end).toBe('Error: the caller has gone');
    await eventually(() => expect(open).toBe(0));
  });

  it('passes errors of the edge on to the caller', async () => {
    for (const [status, code] of [
      [404, 'TUNNEL_UNKNOWN'],
      [404, 'CAPTURE_UNKNOWN'],
      [409, 'CAPTURE_NOT_REPLAYABLE'],
      [429, 'CAPTURE_REPLAYS_BUSY'],
      [502, 'LOCAL_UNREACHABLE'],
    ] as const) {
      const tunnelId = await openAt(
        await startEdge('eu', json({ error: 'to the letter', code, request_id: 'r' }, status)),
      );
      const answer = calls().replay('eu', tunnelId, 'req_1', account.accountId, {});
      await expect(answer).rejects.toMatchObject({ code, message: 'to the letter' });
    }
  });

  it('fails with EDGE_AWAY if the edge is silent for 5 s, gone, unknown, or fails itself', async () => {
    const trouble = { error: 'x', code: 'INTERNAL', request_id: 'r' };
    for (const answer of [json(trouble, 500), json(trouble, 401), json('?', 404)]) {
      const tunnelId = await openAt(await startEdge('eu', answer));
      await expect(calls().requests('eu', tunnelId, account.accountId, { limit: 1 })).rejects.toMatchObject({
        code: 'EDGE_AWAY',
      });
    }
    const quiet = await openAt(await startEdge('eu', silent));
    const began = performance.now();
    await expect(calls().requests('eu', quiet, account.accountId, { limit: 1 })).rejects.toMatchObject({
      code: 'EDGE_AWAY',
      status: 502,
      message: 'region eu does not answer',
    });
    expect(performance.now() - began).toBeGreaterThan(4900);
    await expect(calls().requests('nowhere', 'tun_none', account.accountId, { limit: 1 })).rejects.toMatchObject({
      code: 'EDGE_AWAY',
    });
  });

  it('rejects an endless response', async () => {
    const flood: Answer = (_, response) => {
      response.writeHead(200);
      const chunk = Buffer.alloc(1 << 20, '[');
      const more = (): void => {
        for (let taken = true; taken && !response.destroyed; ) taken = response.write(chunk);
      };
      response.on('drain', more);
      more();
    };
    const tunnelId = await openAt(await startEdge('eu', flood));
    await expect(calls().requests('eu', tunnelId, account.accountId, { limit: 1 })).rejects.toMatchObject({
      code: 'EDGE_AWAY',
      internal: expect.stringContaining('larger than'),
    });
  });
});
