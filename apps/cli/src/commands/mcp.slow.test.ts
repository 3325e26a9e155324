// `tunnel mcp` with a real edge in the same process: what a model can do and what is refused.
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { type AddressInfo, createConnection } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { type Called, calledOf, countedClock, McpSession } from '../mcp/mcp-session.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

const JSON_BODY = { 'content-type': 'application/json' };
const P2P_SECRET = 'a secret of sixteen bytes and more';

let home: TemporaryDirectory;
let edge: Edge;
let service: Server;
let port: number;
const visits: string[] = [];
const sessions: McpSession[] = [];

beforeAll(async () => {
  service = createServer((request, response) => {
    visits.push(`${request.method} ${request.url}`);
    response.writeHead(202).end('ok');
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  port = (service.address() as AddressInfo).port;
  const keys = ['alice', 'bob'].map((account) => ({ account, sha256: sha256Hex(account) }));
  edge = await startEdge({ auth: { keys } });
});
afterAll(async () => {
  await edge.stop({ drainMs: 0 });
  service.closeAllConnections();
  service.close();
});
beforeEach(async () => {
  home = await temporaryDirectory();
  visits.length = 0;
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await session.end();
  await home.close();
});

const where = (): string[] => [
  ...['--server', `127.0.0.1:${edge.addresses.control.port}`],
  ...['--api', `http://127.0.0.1:${edge.addresses.api.port}`],
];

const open = async (flags: readonly string[] = [], options: Partial<TestIoOptions> = {}): Promise<McpSession> => {
  const more = { home: home.path, env: { TUNNEL_API_KEY: 'alice' }, ...options };
  const session = await McpSession.open([...where(), ...flags], more);
  sessions.push(session);
  return session;
};

const visit = async (publicUrl: unknown, path: string, method = 'POST'): Promise<number> => {
  const { host, port: publicPort } = new URL(String(publicUrl));
  const sent = httpRequest({
    host: '127.0.0.1',
    port: publicPort,
    path,
    method,
    headers: { host, ...JSON_BODY },
    agent: false,
  });
  const [response] = (await once(sent.end('{}'), 'response')) as [NodeJS.ReadableStream & { statusCode: number }];
  response.resume();
  await once(response, 'end');
  return response.statusCode;
};

const liveTunnels = async (key = 'alice'): Promise<{ tunnel_id: string; name: string }[]> => {
  const headers = { authorization: `Bearer ${key}` };
  const answer = await fetch(`http://127.0.0.1:${edge.addresses.api.port}/api/tunnels`, { headers });
  return (await answer.json()) as { tunnel_id: string; name: string }[];
};

const opened = async (session: McpSession, more: object = {}): Promise<Called['data']> => {
  const { data, refusal } = await session.call('open_tunnel', { protocol: 'http', local_port: port, ...more });
  expect(refusal).toBeNull();
  return data;
};

describe('a model that uses `tunnel mcp`', () => {
  it('opens a tunnel, waits for a request, reads and replays it, and closes; at the end of stdin every tunnel closes', async () => {
    const session = await open(['--log-file', 'mcp.log']);
    const tunnel = await opened(session, { name: 'web', subdomain: 'shop' });
    expect(tunnel).toMatchObject({ name: 'web', protocol: 'http', local: `127.0.0.1:${port}`, warnings: [] });
    expect(tunnel['inspect_url']).toMatch(/^http:\/\/127\.0\.0\.1:43\d\d\/$/);

    const waiting = session.send('tools/call', {
      name: 'wait_for_request',
      arguments: { tunnel: 'web', method: 'post', path_contains: 'hook' },
    });
    // The wait starts when the edge has received the call. The visit to /hook can be earlier, so both visits are repeated.
    await eventually(async () => {
      await visit(tunnel['public_url'], '/other');
      await visit(tunnel['public_url'], '/hook?n=1');
      expect(session.messages.some(({ id }) => id === waiting)).toBe(true);
    });
    const { data } = calledOf(await session.answerTo(waiting));
    const request = data['request'] as { id: string; method: string; path: string; status: number };
    expect(request).toMatchObject({ method: 'POST', path: '/hook?n=1', status: 202, request_body: '{}' });

    const read = await session.call('get_request', { tunnel: tunnel['tunnel_id'], request_id: request.id });
    expect(read.data).toMatchObject({ request: { id: request.id, path: '/hook?n=1' }, untrusted: true });
    visits.length = 0;
    const replayed = await session.call('replay_request', { tunnel: 'web', request_id: request.id });
    expect([replayed.data['request'], visits]).toMatchObject([{ status: 202 }, ['POST /hook?n=1']]);

    const listed = await session.call('list_requests', { tunnel: 'web', limit: 1 });
    expect(listed.data).toMatchObject({ requests: [{ path: '/hook?n=1' }], truncated: true });
    expect((await session.call('list_tunnels')).data).toMatchObject({ tunnels: [{ name: 'web' }] });
    expect((await session.call('get_tunnel', { tunnel: 'web' })).data).toMatchObject({ tunnel: { label: 'shop' } });
    expect((await session.call('list_pools')).data).toMatchObject({ groups: [] });
    expect((await session.call('get_status')).data).toMatchObject({
      account: { problem: null },
      edge: { problem: null, region_id: expect.any(String) },
      client: { state: 'connected', tunnels: [{ name: 'web', source: 'mcp', state: 'open' }] },
      limits: { tunnels_of_this_server: 10, may_open: ['127.0.0.1:1024-65535'] },
    });

    expect((await session.call('close_tunnel', { tunnel: 'web' })).data).toEqual({
      tunnel_id: tunnel['tunnel_id'],
      closed: true,
    });
    await opened(session);
    expect(await session.end()).toBe(0);
    expect(await liveTunnels()).toEqual([]);
    const log = readFileSync(join(home.path, 'mcp.log'), 'utf8');
    expect(log).toContain('"event":"tool_call"');
    expect(log).toContain('"event":"ready"');
    expect(log).not.toContain('alice');
  });

  it('may publish only allowed targets, and a refused target causes no connection to the edge', async () => {
    const session = await open(['--allow', '127.0.0.1:1', `localhost:${port}`], {
      connect: () => Promise.reject(new Error('connected')),
    });
    for (const target of [
      { local_host: '127.0.0.1', local_port: 2 },
      { local_host: '192.0.2.1' },
      { local_host: '127.0.0.2' },
    ]) {
      const { refusal } = await session.call('open_tunnel', { protocol: 'tcp', local_port: port, ...target });
      expect(refusal).toMatch(/^MCP_TARGET_NOT_ALLOWED: .* Next: .*--allow /);
    }
    const { refusal } = await session.call('open_tunnel', { protocol: 'tcp', local_port: port, local_host: '::1' });
    expect(refusal).toMatch(/^INTERNAL/);
  });

  it('cannot publish the inspector or the management ports of an edge on this machine under any host name', async () => {
    const session = await open(['--allow', '127.0.0.1:1024-65535']);
    const { data } = await session.call('open_tunnel', { protocol: 'http', local_port: port });
    const inspector = Number(new URL(String(data['inspect_url'])).port);
    for (const local_port of [inspector, edge.addresses.api.port, edge.addresses.metrics.port]) {
      for (const local_host of ['127.0.0.1', 'localhost', '::1']) {
        const { refusal } = await session.call('open_tunnel', { protocol: 'tcp', local_host, local_port });
        expect(refusal).toMatch(/^CLIENT_TARGET_NOT_ALLOWED: /);
      }
    }
  });

  it('gets changes of `mcp.allow` in config.yml without a restart', async () => {
    mkdirSync(join(home.path, '.tunnel'));
    const file = join(home.path, '.tunnel', 'config.yml');
    writeFileSync(file, 'mcp: { allow: [] }');
    const session = await open();
    const target = { protocol: 'http', local_port: port };
    expect((await session.call('open_tunnel', target)).refusal).toMatch(/^MCP_TARGET_NOT_ALLOWED/);
    writeFileSync(file, `mcp: { allow: ["127.0.0.1:${port}"] }`);
    expect((await session.call('open_tunnel', target)).refusal).toBeNull();
    writeFileSync(file, 'mcp: { allow: 7 }');
    expect((await session.call('open_tunnel', target)).refusal).toMatch(/^CONFIG_.*config\.yml:1/);
  });

  it('can open ten tunnels and no more, even with 14 calls at once, and unnamed tunnels get different names', async () => {
    const session = await open();
    const asked = Array.from({ length: 14 }, () =>
      session.call('open_tunnel', { protocol: 'http', local_port: port, ttl_secs: 3600 }),
    );
    const called = await Promise.all(asked);
    const good = called.filter(({ refusal }) => refusal === null);
    expect(new Set(good.map(({ data }) => data['name'])).size).toBe(10);
    const refusals = called.flatMap(({ refusal }) => refusal ?? []);
    expect(refusals).toHaveLength(4);
    for (const refusal of refusals) expect(refusal).toMatch(/^MCP_TUNNEL_LIMIT: .*10/);
    expect(await liveTunnels()).toHaveLength(10);
    await session.call('close_tunnel', { tunnel: good[0]?.data['tunnel_id'] });
    await opened(session);
    expect((await session.call('open_tunnel', { protocol: 'http', local_port: port, name: 'x' })).refusal).toMatch(
      /LIMIT/,
    );
  });

  it('publishes tcp, udp and p2p, and the p2p secret comes only from the environment', async () => {
    const session = await open([], { env: { TUNNEL_API_KEY: 'alice', TUNNEL_P2P_SECRET: P2P_SECRET } });
    const tcp = await opened(session, { protocol: 'tcp' });
    const socket = createConnection({ host: '127.0.0.1', port: Number(new URL(String(tcp['public_url'])).port) });
    socket.write('GET /tcp HTTP/1.0\r\n\r\n');
    expect(String((await once(socket, 'data'))[0])).toContain('202');
    socket.destroy();
    expect(await opened(session, { protocol: 'udp' })).toMatchObject({ inspect_url: null, name: `udp-${port}` });
    expect(await opened(session, { protocol: 'p2p', p2p_name: 'office' })).toMatchObject({
      public_url: 'p2p://office',
    });
    expect(session.io.out() + session.io.err()).not.toContain(P2P_SECRET);
    const without = await open();
    expect((await without.call('open_tunnel', { protocol: 'p2p', local_port: port, p2p_name: 'b' })).refusal).toMatch(
      /^MCP_P2P_SECRET_MISSING/,
    );
  });

  it("sees and closes tunnels of its account's other clients, but none of another account", async () => {
    const alice = await open();
    const other = await open();
    const bob = await open([], { env: { TUNNEL_API_KEY: 'bob' } });
    const { tunnel_id: id } = await opened(alice, { name: 'mine' });
    for (const tool of ['get_tunnel', 'close_tunnel', 'list_requests']) {
      expect((await bob.call(tool, { tunnel: id })).refusal).toMatch(/^TUNNEL_UNKNOWN: .*list_tunnels/);
      expect((await bob.call(tool, { tunnel: 'mine' })).refusal).toMatch(/^TUNNEL_UNKNOWN/);
    }
    expect((await bob.call('list_tunnels')).data).toMatchObject({ tunnels: [] });
    expect((await other.call('get_tunnel', { tunnel: 'mine' })).data).toMatchObject({ tunnel: { tunnel_id: id } });
    expect((await other.call('close_tunnel', { tunnel: 'mine' })).data).toMatchObject({ tunnel_id: id });
    // Alice's client learns that the tunnel was closed, and can open another tunnel.
    await eventually(async () =>
      expect((await alice.call('get_status')).data).toMatchObject({ client: { tunnels: [] } }),
    );
    await opened(alice, { name: 'mine' });
  });

  it('can cancel calls: a wait ends without an answer, and a tunnel that was opening is closed', async () => {
    const session = await open();
    await opened(session, { name: 'web' });
    const waiting = session.send('tools/call', {
      name: 'wait_for_request',
      arguments: { tunnel: 'web', timeout_secs: 300 },
    });
    const opening = session.send('tools/call', {
      name: 'open_tunnel',
      arguments: { protocol: 'tcp', local_port: port },
    });
    session.cancel(opening);
    session.cancel(waiting);
    await session.call('list_tunnels');
    await eventually(async () => expect((await liveTunnels()).map(({ name }) => name)).toEqual(['web']));
    expect(session.messages.filter(({ id }) => id === waiting || id === opening)).toEqual([]);
  });

  it('gets one answer for each uncanceled call, and no timers or sockets are left behind', async () => {
    const clock = countedClock();
    const session = await open([], { clock });
    await opened(session, { name: 'web' });
    const sockets = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length;
    const calls = [
      ['wait_for_request', { tunnel: 'web', timeout_secs: 1 }],
      ['list_tunnels', {}],
      ['list_requests', { tunnel: 'web' }],
      ['get_status', {}],
      ['open_tunnel', { protocol: 'tcp', local_port: 1 }],
    ] as const;
    await session.call('list_tunnels');
    const before = { timers: clock.live(), sockets: sockets() };
    const sent = Array.from({ length: 50 }, (_, index) => {
      const [name, args] = calls[index % calls.length] ?? calls[0];
      return session.send('tools/call', { name, arguments: args });
    });
    const cancelled = new Set(sent.filter(() => Math.random() < 0.5));
    for (const id of cancelled) session.cancel(id);
    for (const id of sent) if (!cancelled.has(id)) await session.answerTo(id);
    await eventually(
      () => {
        expect(clock.live()).toBe(before.timers);
        // Sockets opened before the calls may have closed meanwhile.
        expect(sockets()).toBeLessThanOrEqual(before.sockets);
      },
      { timeoutMs: 20_000 },
    );
    // A canceled call may still get its answer if the answer was already on the way. Every other call gets exactly one answer.
    const answered = session.messages.flatMap(({ id }) => (id !== undefined && sent.includes(id) ? [id] : []));
    expect(new Set(answered).size).toBe(answered.length);
    expect(sent.filter((id) => !cancelled.has(id) && !answered.includes(id))).toEqual([]);
  });

  it('gets an error with the name of the invalid argument', async () => {
    const session = await open();
    const call = (args: object): Promise<Called> => session.call('open_tunnel', args);
    expect((await call({ protocol: 'http', local_port: '3000' })).refusal).toContain('local_port');
    expect((await call({ protocol: 'http', local_port: port, name: 'x'.repeat(1024 * 1024) })).refusal).toContain(
      'name',
    );
    expect((await call({ protocol: 'http', local_port: port, local_host: 'a\u0000b' })).refusal).toMatch(
      /local_host|NOT_ALLOWED/,
    );
    expect((await call({ protocol: 'http', local_port: port, command: 'rm' })).refusal).toContain('command');
    for (const request_id of ['..', 'next']) {
      const { refusal } = await session.call('get_request', { tunnel: 'tun_x', request_id });
      expect(refusal).toMatch(/UNKNOWN|request_id/);
    }
    expect((await session.call('get_tunnel', { tunnel: '..' })).refusal).toMatch(/UNKNOWN|tunnel/);
    expect(await session.tools()).toContain('open_tunnel');
  });
});

describe('`tunnel mcp` with missing rights', () => {
  it('starts without key, network and login, lists its tools, and reports the missing part on the call that needs it', async () => {
    const session = await open([], { env: {} });
    const tools = await session.tools();
    expect(tools).toHaveLength(11);
    expect(tools).not.toContain('list_keys');
    for (const [name, args] of [
      ['list_tunnels', {}],
      ['open_tunnel', { protocol: 'http', local_port: port }],
    ] as const) {
      expect((await session.call(name, args)).refusal).toMatch(/^CLIENT_KEY_MISSING/);
    }
    expect((await session.call('list_tunnels', { state: 'ended' })).refusal).toMatch(/^CLIENT_LOGIN_NEEDED/);
    expect((await session.call('get_status')).data).toMatchObject({
      edge: { problem: expect.stringContaining('CLIENT_KEY_MISSING') },
      client: { state: 'idle' },
    });
    writeFileSync(join(home.path, 'session'), '');
    mkdirSync(join(home.path, '.tunnel'), { recursive: true });
    writeFileSync(join(home.path, '.tunnel', 'session.json'), '{}');
    expect(await session.tools()).toHaveLength(13);
    expect((await session.call('list_keys')).refusal).toMatch(/^CLIENT_LOGIN_NEEDED/);
  });

  it('offers no tools that open, close or replay in read-only mode', async () => {
    mkdirSync(join(home.path, '.tunnel'));
    writeFileSync(join(home.path, '.tunnel', 'config.yml'), 'mcp: { read_only: true }');
    for (const flags of [['--read-only'], []]) {
      const session = await open(flags);
      const tools = await session.tools();
      expect(tools.filter((name) => /open|close|replay/.test(name))).toEqual([]);
      const answer = await session.ask('tools/call', {
        name: 'open_tunnel',
        arguments: { protocol: 'http', local_port: port },
      });
      expect(answer.error?.code).toBe(-32_602);
    }
  });
});

describe('the `tunnel mcp` process', () => {
  it('appears in `tunnel status` after its first tunnel, and ends with `tunnel stop`', async () => {
    const session = await open();
    const status = async (): Promise<unknown> => {
      const io = makeTestIo({ home: home.path });
      await run(['status', '--json'], io);
      return JSON.parse(io.out());
    };
    expect(await status()).toEqual([]);
    await opened(session, { name: 'web' });
    expect(await status()).toMatchObject([{ state: 'connected', tunnels: [{ name: 'web', source: 'mcp' }] }]);
    await run(['stop'], makeTestIo({ home: home.path }));
    expect(await session.code).toBe(0);
    expect(await liveTunnels()).toEqual([]);
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('exits with 0 on %s, even with calls in progress', async (signal) => {
    const session = await open();
    await opened(session, { name: 'web' });
    session.send('tools/call', { name: 'wait_for_request', arguments: { tunnel: 'web' } });
    await session.ask('ping');
    session.io.signal(signal);
    expect(await session.code).toBe(0);
    expect(await liveTunnels()).toEqual([]);
  });

  it('exits with 0 when its stdout is closed', async () => {
    const session = await open();
    session.io.closeStdout();
    expect(await session.code).toBe(0);
  });

  it('exits with 2 and an error on stderr for invalid flags', async () => {
    for (const [flags, words] of [
      [['--allow', '127.0.0.1'], /'127\.0\.0\.1' is not a valid target/],
      [['--allow', '*:80'], /is not a valid target/],
      [['--frobnicate'], /unknown option/],
    ] as const) {
      const io = makeTestIo({ home: home.path });
      expect(await run(['mcp', ...flags], io)).toBe(2);
      expect([io.out(), io.err()]).toEqual(['', expect.stringMatching(words)]);
    }
  });
});
