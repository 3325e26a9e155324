import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { createEdge } from '@tunnel/edge';
import { createLogger, Secret, systemClock } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { Runs, type Started } from '../run/runs.fixture.ts';

let home: TemporaryDirectory;
let server: Server;
let api: string;
let clock: FakeClock;
/** The edge's next response. */
let answer: { status: number; body: string };
let asked: { url: string | undefined; key: string | undefined }[];
const runs = new Runs();

const MEMBER = {
  tunnel_id: 'tun_1',
  session_id: 'ses_1',
  client_addr: '127.0.0.1:5000',
  client_name: 'laptop',
  name: 'web',
  request_count: 3,
  bytes_proxied: 4096,
  healthy: true,
  consecutive_failures: 0,
  total_health_failures: 0,
  connected_since: '2030-01-01T00:00:00.000Z',
  has_alert_webhook: false,
};

const groups = (dispatches: number, count = 1) => [
  {
    protocol: 'http',
    label: 'web',
    name: 'shop',
    key_hash_short: '0123abcd',
    region_id: 'local',
    member_count: count,
    healthy_count: count,
    unhealthy_count: 0,
    total_dispatches: dispatches,
    total_health_failures: 0,
    members: Array.from({ length: count }, () => MEMBER),
  },
];

const say = (body: unknown, status = 200): void => {
  answer = { status, body: JSON.stringify(body) };
};

const respond: RequestListener = (request, response) => {
  asked.push({ url: request.url, key: request.headers.authorization });
  response.writeHead(answer.status, { 'content-type': 'application/json', location: 'http://127.0.0.1:1/' });
  response.end(answer.body);
};

const listen = async (port = 0): Promise<void> => {
  server = createServer(respond);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** Closes the server. Does nothing if the server is already closed. */
const close = (): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

beforeEach(async () => {
  home = await temporaryDirectory();
  clock = new FakeClock();
  asked = [];
  await listen();
  say([]);
});
afterEach(async () => {
  await runs.end();
  await close();
  await home.close();
});

const groupsOf = (args: string[] = [], options: Partial<TestIoOptions> = {}): Started => {
  const io = makeTestIo({ home: home.path, clock, ...options });
  return runs.start(['groups', '--token', 'tnl_key', '--api', api, ...args], io);
};

describe('`tunnel groups`', () => {
  it('sends the API key, and prints a block for each group without colors', async () => {
    say(groups(7));
    const { io, code } = groupsOf();
    expect(await code).toBe(0);
    expect(asked).toEqual([{ url: '/api/groups', key: 'Bearer tnl_key' }]);
    expect(io.out()).toMatch(/^shop {2}http web {2}● 1 of 1 healthy {2}7 connections\n {2}laptop {2}web {2}.*\n$/);
  });

  it('uses colors on a terminal unless NO_COLOR is set', async () => {
    say(groups(7));
    const coloured = groupsOf([], { isTTY: true });
    const plain = groupsOf([], { isTTY: true, env: { NO_COLOR: '1' } });
    await Promise.all([coloured.code, plain.code]);
    expect(coloured.io.out()).toContain('\u001b[');
    expect(plain.io.out()).not.toContain('\u001b[');
  });

  it('prints "no groups" for an empty list', async () => {
    const { io, code } = groupsOf();
    expect(await code).toBe(0);
    expect(io.out()).toMatch(/^no groups\n/);
  });

  it("prints the edge's list unchanged with --json", async () => {
    const list = groups(7).map((group) => ({ ...group, of_a_later_version: 1 }));
    say(list);
    const { io, code } = groupsOf(['--json']);
    expect(await code).toBe(0);
    expect(JSON.parse(io.out())).toEqual(list);
  });

  it('takes the API address from config.yml, including a path', async () => {
    writeFileSync(join(home.path, 'c.yml'), `api_url: ${api}/rest/\nauth_token: of-the-file\n`);
    const io = makeTestIo({ home: home.path, clock });
    expect(await run(['pools', '--config', 'c.yml'], io)).toBe(0);
    expect(asked).toEqual([{ url: '/rest/api/groups', key: 'Bearer of-the-file' }]);
  });

  it('works against a real edge: the admin gets the list, an unknown key exits with 3', async () => {
    const config = loadServerConfig({
      env: {},
      overrides: { server: { control_port: 0, api_port: 0, metrics_port: 0, http_port: 0 } },
    });
    const logger = createLogger({ level: 'silent', format: 'json' });
    const edge = createEdge(config, { clock: systemClock, logger, adminToken: new Secret('admin') });
    await edge.start();
    const real = `http://127.0.0.1:${edge.addresses.api.port}`;
    const admin = groupsOf(['--json', '--api', real, '--token', 'admin']);
    expect(await admin.code).toBe(0);
    expect(admin.io.out()).toBe('[]\n');
    const stranger = groupsOf(['--api', real]);
    expect(await stranger.code).toBe(3);
    expect(stranger.io.err()).toMatch(/^tunnel: invalid API key\./);
    await edge.stop({ drainMs: 0 });
  });
});

describe('a failing `tunnel groups`', () => {
  it('exits with 5 when the connection is refused', async () => {
    await close();
    const { io, code } = groupsOf();
    expect(await code).toBe(5);
    expect(io.err()).toMatch(/^tunnel: cannot reach http:\/\/127\.0\.0\.1:\d+: connection refused\n/);
  });

  it('exits with 5 when a proxy answers 502', async () => {
    answer = { status: 502, body: '<html>' };
    expect(await groupsOf().code).toBe(5);
  });

  it.each([
    ['no list', { status: 200, body: '{}' }, 'not a list of groups'],
    ['no JSON', { status: 200, body: 'hello' }, 'not a list of groups'],
    ['another server', { status: 404, body: 'nothing here' }, 'the response was HTTP 404'],
    ['a redirect, which would take the key along', { status: 302, body: '' }, 'the response was HTTP 302'],
  ])('exits with 2 for %s', async (_, given, words) => {
    answer = given;
    const { io, code } = groupsOf();
    expect(await code).toBe(2);
    expect(io.err()).toContain(words);
    expect(asked).toHaveLength(1);
  });

  it('exits with 2 when --api says https and the server does not speak TLS', async () => {
    const { io, code } = groupsOf(['--api', api.replace('http:', 'https:')]);
    expect(await code).toBe(2);
    expect(io.err()).toContain('does not speak TLS');
  });

  it('refuses an untrusted certificate unless --ca-file or --insecure is given', async () => {
    const { cert, key } = testCertificate();
    const tls = createTlsServer({ cert, key }, respond);
    await new Promise<void>((resolve) => tls.listen(0, '127.0.0.1', resolve));
    const secure = `https://localhost:${(tls.address() as AddressInfo).port}`;
    writeFileSync(join(home.path, 'ca.pem'), cert);
    const refused = groupsOf(['--api', secure]);
    expect(await refused.code).toBe(2);
    expect(refused.io.err()).toContain('certificate of localhost');
    expect(asked).toEqual([]);
    expect(await groupsOf(['--api', secure, '--ca-file', 'ca.pem']).code).toBe(0);
    expect(await groupsOf(['--api', secure, '--insecure']).code).toBe(0);
    tls.close();
    tls.closeAllConnections();
  });
});

describe('`tunnel groups --watch`', () => {
  it('prints a JSON line for each change with --json, and exits with 0 on Ctrl-C', async () => {
    say(groups(1));
    const { io, code } = groupsOf(['--watch', '--json']);
    const dispatches = () =>
      [...io.out().matchAll(/^\[.*"total_dispatches":(\d+).*\]$/gm)].map(([, count]) => Number(count));
    await eventually(() => expect(dispatches()).toEqual([1]));
    await clock.advance(999);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    expect(asked).toHaveLength(2);
    say(groups(2));
    await clock.advance(1000);
    await eventually(() => expect(dispatches()).toEqual([1, 2]));
    io.signal('SIGINT');
    expect(await code).toBe(0);
    expect(clock.pendingTimers).toBe(0);
  });

  it('polls at the pace of --interval', async () => {
    groupsOf(['--watch', '--interval', '7']);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    await clock.advance(6999);
    expect(asked).toHaveLength(1);
    await clock.advance(1);
    await eventually(() => expect(asked).toHaveLength(2));
  });

  it('redraws in place, within the width and height of the terminal', async () => {
    say(groups(1, 100));
    const { io } = groupsOf(['--watch'], { isTTY: true, env: { NO_COLOR: '1' } });
    await eventually(() => expect(io.out()).toContain('1 connection'));
    const first = io.out();
    const lines = first.trimEnd().split('\n');
    expect(lines).toHaveLength(23);
    expect(lines.at(-1)).toBe('… and 79 more lines');
    for (const line of lines) expect(line.length).toBeLessThan(100);
    say(groups(2, 100));
    await clock.advance(1000);
    await eventually(() => expect(io.out()).toContain('2 connections'));
    expect(io.out().slice(first.length)).toMatch(/^\r\u001b\[23Ashop.*\u001b\[K\n/);
  });

  it('survives a restart of the edge and reports it', async () => {
    say(groups(1));
    const { io, code } = groupsOf(['--watch']);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    await close();
    await clock.advance(1000);
    await eventually(() => expect(io.err()).toMatch(/^tunnel: cannot reach .*: connection refused; retrying\n$/));
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    await clock.advance(1000);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    await listen(Number(new URL(api).port));
    say(groups(5));
    await clock.advance(1000);
    await eventually(() => expect(io.out()).toContain('5 connections'));
    expect(io.err().trim().split('\n')).toEqual([
      expect.stringContaining('retrying'),
      'tunnel: the edge is reachable again',
    ]);
    io.signal('SIGINT');
    expect(await code).toBe(0);
  });

  it('exits with 3 when the key is revoked, and with 5 when the edge was never reachable', async () => {
    const { io, code } = groupsOf(['--watch']);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    say({ error: 'the key was revoked', code: 'AUTH_TOKEN_REVOKED', request_id: 'req_1' }, 401);
    await clock.advance(1000);
    expect(await code).toBe(3);
    expect(io.err()).toContain('this API key was revoked.');
    answer = { status: 503, body: '' };
    expect(await groupsOf(['--watch']).code).toBe(5);
  });

  it('exits with 0 during a request and when its output is closed', async () => {
    server.removeAllListeners('request');
    const hanging = groupsOf(['--watch']);
    await eventually(async () => expect(await connections()).toBe(1));
    hanging.io.signal('SIGINT');
    expect(await hanging.code).toBe(0);
    server.on('request', respond);
    const unread = groupsOf(['--watch']);
    await eventually(() => expect(clock.pendingTimers).toBe(1));
    unread.io.closeStdout();
    expect(await unread.code).toBe(0);
  });
});

const connections = (): Promise<number> =>
  new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count))));

describe('`tunnel group-key`', () => {
  const make = async (args: string[] = [], options: Partial<TestIoOptions> = {}) => {
    const io = makeTestIo({ home: home.path, ...options });
    expect(await run(['group-key', ...args], io)).toBe(0);
    return io;
  };

  it('prints a new key each time on stdout, and the usage on stderr', async () => {
    const first = await make();
    const second = await make();
    expect(first.out()).toMatch(/^[\w-]{43}\n$/);
    expect(second.out()).not.toBe(first.out());
    expect(first.err()).toMatch(
      /^On every computer in the group:\n.*\n {2}tunnel http 3000 --group shop --group-key-file /,
    );
    // A key piped into a file must not appear on the screen.
    expect(first.err()).not.toContain(first.out().trim());
  });

  it('shows two lines to paste at a terminal', async () => {
    const io = await make([], { isTTY: true });
    expect(io.err().split('\n').slice(1)).toEqual([
      `  (umask 077 && echo ${io.out().trim()} > group-key)`,
      '  tunnel http 3000 --group shop --group-key-file group-key',
      '',
    ]);
  });

  it('prints the key as JSON with --json', async () => {
    const io = await make(['--json']);
    expect(JSON.parse(io.out())).toEqual({ group_key: expect.stringMatching(/^[\w-]{43}$/) });
    expect(io.err()).toBe('');
  });
});

it('`tunnel pools` is an alias of `tunnel groups`', async () => {
  say(groups(7));
  const io = makeTestIo({ home: home.path });
  expect(await run(['pools', '--token', 'tnl_key', '--api', api], io)).toBe(0);
  expect(io.out()).toContain('7 connections');
});
