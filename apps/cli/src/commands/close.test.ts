// `tunnel close` with a login at a scripted platform, and with an API key at a real edge.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIoOptions, typing } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';

const tunnel = (id: string, more: Record<string, unknown> = {}): Record<string, unknown> => ({
  id: `log-${id}`,
  tunnel_id: `tun_${id}`,
  protocol: 'http',
  label: id,
  name: id,
  public_url: `https://${id}.tunnels.example`,
  client_name: 'laptop',
  region_id: 'fra',
  registered_at: '2030-01-01T00:00:00.000Z',
  unregistered_at: null,
  request_count: 3,
  bytes_proxied: 4096,
  ...more,
});

describe('`tunnel close` with a login', () => {
  let login: LoggedIn;
  let platform: ScriptedPlatform;

  beforeEach(async () => {
    login = await logIn();
    platform = login.platform;
    platform.tunnels = [tunnel('web'), tunnel('web2', { name: 'web', client_name: 'server' }), tunnel('db')];
  });
  afterEach(() => login.close());

  const close = async (args: string[], options: Partial<TestIoOptions> = {}) => {
    const io = makeTestIo({ home: login.home.path, env: { NO_COLOR: '1' }, ...options });
    return { code: await run(['close', ...args], io), out: io.out(), err: io.err() };
  };
  const left = (): unknown[] => platform.tunnels.map(({ tunnel_id: id }) => id);

  it('closes the tunnel with a given id, and every tunnel with a given name', async () => {
    expect(await close(['tun_db', '--yes'])).toEqual({ code: 0, out: 'db (laptop): closed\n', err: '' });
    expect(left()).toEqual(['tun_web', 'tun_web2']);
    const both = await close(['web', 'https://web.tunnels.example/', '--yes']);
    expect([both.code, both.out]).toEqual([0, 'web (laptop): closed\nweb (server): closed\n']);
    expect(left()).toEqual([]);
  });

  it.each([
    ['y\r', 'web (laptop): closed\nweb (server): closed\n', ['tun_db']],
    ['n\r', 'Nothing closed.\n', ['tun_web', 'tun_web2', 'tun_db']],
    ['\r', 'Nothing closed.\n', ['tun_web', 'tun_web2', 'tun_db']],
  ])('lists the tunnels and asks for confirmation at a terminal: %j', async (typed, out, rest) => {
    const ran = await close(['web'], { stdin: typing(typed) });
    expect([ran.code, ran.out, left()]).toEqual([0, out, rest]);
    expect(ran.err).toMatch(/tun_web\n.*tun_web2\n.*Close 2 tunnels\? \[y\/N\] /);
  });

  it('requires --yes without a terminal', async () => {
    const ran = await close(['web']);
    expect([ran.code, ran.err, left()]).toEqual([
      2,
      expect.stringContaining('Add --yes to confirm.'),
      expect.anything(),
    ]);
    expect(left()).toHaveLength(3);
  });

  it('exits with 1 when no tunnel matched, and otherwise closes the tunnels that matched', async () => {
    const none = await close(['nope', '--yes']);
    expect([none.code, none.out]).toEqual([1, '']);
    expect(none.err).toContain("tunnel: you have no open tunnel 'nope'\n  List your tunnels with `tunnel list`.");
    const some = await close(['nope', 'db', '--yes']);
    expect([some.code, some.out, some.err]).toEqual([0, 'db (laptop): closed\n', none.err]);
  });

  it("exits with 5 when one tunnel's edge is unreachable, and closes the other tunnels", async () => {
    const away = { error: 'region fra does not answer', code: 'EDGE_AWAY', request_id: 'req-1' };
    platform.trap('/tunnels/tun_web', 502, JSON.stringify(away));
    const ran = await close(['web', '--yes']);
    expect([ran.code, ran.out]).toEqual([5, 'web (server): closed\n']);
    expect(ran.err).toContain('tunnel: web (laptop): region fra does not answer');
    expect(left()).toEqual(['tun_web', 'tun_db']);
  });

  it('prints the closed tunnels as JSON', async () => {
    const { out } = await close(['db', '--yes', '--json']);
    expect(JSON.parse(out)).toMatchObject([{ tunnel_id: 'tun_db', name: 'db', client_name: 'laptop' }]);
  });
});

it('`tunnel close` with an API key: the client reports the closed tunnel, keeps its other tunnel and exits with 4 after the last', async () => {
  const home = await temporaryDirectory();
  const service = createServer((_, response) => void response.end('ok')).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const edge = await startEdge({
    auth: { keys: ['alice', 'bob'].map((account) => ({ account, sha256: sha256Hex(account) })) },
  });
  const client = makeTestIo({ home: home.path });
  const flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'alice', '--drain-secs', '0'];
  const port = String((service.address() as AddressInfo).port);
  const running = run(['http', port, '--subdomain', 'shop', '--name', 'web', '--json', ...flags], client);
  const events = (name: string) => client.events().filter(({ event }) => event === name);
  const close = async (args: string[], key = 'alice') => {
    const io = makeTestIo({ home: home.path, env: { TUNNEL_API_KEY: key } });
    const code = await run(['close', ...args, '--yes', '--api', `http://127.0.0.1:${edge.addresses.api.port}`], io);
    return { code, out: io.out(), err: io.err() };
  };
  try {
    await eventually(() => expect(events('ready')).toHaveLength(1));
    const adding = makeTestIo({ home: home.path });
    expect(await run(['add', 'http', port, '--name', 'second'], adding)).toBe(0);
    // The API key of another account cannot find the tunnel.
    expect((await close(['web'], 'bob')).code).toBe(1);
    expect(await close(['second'])).toMatchObject({ code: 0, out: expect.stringMatching(/^second \(.*\): closed\n$/) });
    await eventually(() =>
      expect(events('error')).toMatchObject([
        { name: 'second', code: 'TUNNEL_CLOSED_BY_ACCOUNT', message: 'closed by its account', fatal: false },
      ]),
    );
    expect((await close(['web'])).code).toBe(0);
    expect(await running).toBe(4);
    expect(events('error').at(-1)).toMatchObject({ name: 'web', code: 'TUNNEL_CLOSED_BY_ACCOUNT' });
  } finally {
    client.signal('SIGTERM');
    await running;
    await edge.stop({ drainMs: 0 });
    service.close();
    await home.close();
  }
});
