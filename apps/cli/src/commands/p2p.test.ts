import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect as dialTcp } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Edge, EdgeDeps } from '@tunnel/edge';
import { Fault } from '@tunnel/errors';
import {
  deterministicBytes,
  eventually,
  hashOf,
  startEchoServer,
  startUdpEcho,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';
import { startEdge } from '../run/edge.fixture.ts';
import { eventOf, Runs, type Started } from '../run/runs.fixture.ts';

const SECRET = 'a secret of at least sixteen bytes';

let home: TemporaryDirectory;
let edge: Edge;
let echo: TcpServer;
let flags: string[];
const runs = new Runs();

beforeEach(async () => {
  home = await temporaryDirectory();
  echo = await startEchoServer();
  edge = await startEdge({ udp: { ports: [0, 0] } });
  writeFileSync(join(home.path, 'secret'), `${SECRET}\n`);
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--drain-secs', '0'];
});
afterEach(async () => {
  await runs.end();
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await home.close();
});

const start = (args: string[], options: Partial<TestIoOptions> = {}): Started => {
  const env = { TUNNEL_P2P_SECRET: SECRET, ...options.env };
  const io = makeTestIo({ home: home.path, ...options, env });
  return runs.start(args, io);
};

const eventsOf = (io: TestIo, name: string) => io.events().filter(({ event }) => event === name);

const publish = (...more: string[]) =>
  start(['p2p', 'publish', 'Office-DB', String(echo.port), ...flags, '--json', ...more]);
const connect = (...more: string[]) =>
  start(['p2p', 'connect', 'office-db', '--listen', '0', ...flags, '--json', ...more]);

const listenOf = ({ listen }: Record<string, unknown>): number => Number(String(listen).split(':')[1]);

const echoed = async (port: number, bytes: Buffer): Promise<string> => {
  const socket = dialTcp({ host: '127.0.0.1', port, allowHalfOpen: true });
  socket.end(bytes);
  return hashOf(await buffer(socket));
};

type Backend = NonNullable<EdgeDeps['backend']>;
type Revoke = Parameters<Backend['onRevoked']>[0];

/** Creates a backend that accepts every API key as a key of the same account, and can revoke keys. */
const revocableBackend = (): { backend: Backend; revoke: Revoke } => {
  const listeners = new Set<Revoke>();
  const nothing = (): void => {};
  const backend = {
    verifyKey: async (token: string) => ({ ok: true, owner: { kind: 'account', accountId: 'acc_1' }, keyId: token }),
    admitTunnel: async () => null,
    onRevoked: (listener: Revoke) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onDomainsChanged: () => nothing,
    admissionEnded: nothing,
    streamEnded: nothing,
    ready: nothing,
    tunnelOpened: nothing,
    tunnelClosed: nothing,
    start: async () => {},
    stop: async () => {},
  } as unknown as Backend;
  const revoke: Revoke = (revocation) => {
    for (const listener of listeners) listener(revocation);
  };
  return { backend, revoke };
};

it('a p2p subscriber with a revoked key reports it and exits with 3', async () => {
  const { backend, revoke } = revocableBackend();
  const other = await startEdge({ udp: { ports: [0, 0] } }, { backend });
  const keyed = (key: string) => ['--server', `127.0.0.1:${other.addresses.control.port}`, '--token', key];
  const publisher = start(['p2p', 'publish', 'office-db', String(echo.port), ...keyed('tnl_publisher'), '--json']);
  await eventOf(publisher.io, 'ready');
  const subscriber = start(['p2p', 'connect', 'office-db', '--listen', '0', ...keyed('tnl_subscriber'), '--json']);
  await eventOf(subscriber.io, 'ready');
  revoke({ keyId: 'tnl_subscriber', fault: new Fault('AUTH_TOKEN_REVOKED') });
  expect(await subscriber.code).toBe(3);
  const codes = eventsOf(subscriber.io, 'error').map(({ code }) => code);
  expect(new Set(codes)).toEqual(new Set(['AUTH_TOKEN_REVOKED']));
  publisher.io.signal('SIGTERM');
  await publisher.code;
  await other.stop({ drainMs: 0 });
});

describe('`tunnel p2p`', () => {
  it('publishes and connects: data arrives unchanged over the relay and over a direct path', async () => {
    const publisher = publish();
    expect(await eventOf(publisher.io, 'ready')).toMatchObject({
      role: 'publish',
      service: 'tcp',
      name: 'Office-DB',
      protocol: 'p2p',
      public_url: 'p2p://office-db',
      assigned_port: null,
      local: `127.0.0.1:${echo.port}`,
      tunnel_id: expect.stringMatching(/^tun_/),
    });
    const subscriber = connect('--secret-file', 'secret');
    const ready = await eventOf(subscriber.io, 'ready');
    expect(ready).toMatchObject({ role: 'connect', service: 'tcp', name: 'office-db', tunnel_id: null });
    expect(ready['listen']).toMatch(/^127\.0\.0\.1:\d+$/);
    const first = await eventOf(subscriber.io, 'path');
    expect(first).toMatchObject({ name: 'office-db', path: 'relay', reason: 'punching' });
    const bytes = deterministicBytes(2_000_000, 1);
    expect(await echoed(listenOf(ready), bytes)).toBe(hashOf(bytes));
    await eventually(() => {
      for (const { io } of [publisher, subscriber]) {
        expect(eventsOf(io, 'path').at(-1)).toMatchObject({ path: 'direct', reason: '', rtt_ms: expect.any(Number) });
      }
    });
    expect(await echoed(listenOf(ready), bytes)).toBe(hashOf(bytes));
    expect(eventsOf(publisher.io, 'peer')).toMatchObject([{ name: 'Office-DB', state: 'joined', reason: '' }]);
    subscriber.io.signal('SIGTERM');
    expect(await subscriber.code).toBe(0);
    await eventually(() =>
      expect(eventsOf(publisher.io, 'peer').at(-1)).toMatchObject({ state: 'gone', reason: 'left' }),
    );
    expect(publisher.io.out() + subscriber.io.out() + publisher.io.err()).not.toContain(SECRET);
  });

  it('prints the path and its reason for people', async () => {
    const publisher = start(['p2p', 'publish', 'office-db', String(echo.port), ...flags, '--no-direct']);
    await eventually(() =>
      expect(publisher.io.out()).toContain(`office-db: p2p://office-db -> 127.0.0.1:${echo.port}`),
    );
    const subscriber = start(['p2p', 'connect', 'office-db', '--listen', '0', ...flags]);
    await eventually(() => expect(subscriber.io.out()).toMatch(/office-db: 127\.0\.0\.1:\d+ -> p2p:\/\/office-db/));
    await eventually(() => expect(subscriber.io.out()).toContain('office-db: relay (direct paths are switched off)'));
    await eventually(() => expect(publisher.io.out()).toMatch(/office-db: 127\.0\.0\.1:\d+ joined/));
  });

  it('carries a udp service over the relay', async () => {
    const service = await startUdpEcho();
    start(['p2p', 'publish', 'dns', String(service.port), '--udp', '--no-direct', ...flags]);
    const { io } = start(['p2p', 'connect', 'dns', '--udp', '--listen', '127.0.0.1:0', ...flags, '--json']);
    const port = listenOf(await eventOf(io, 'ready'));
    const socket = createSocket('udp4');
    socket.send('hello', port, '127.0.0.1');
    const [answer] = (await once(socket, 'message')) as [Buffer];
    expect(String(answer)).toBe('hello');
    await eventually(() => expect(eventsOf(io, 'path').at(-1)).toMatchObject({ path: 'relay', reason: 'off' }));
    socket.close();
    await service.close();
  });

  it('exits with 4 at once when the published service is of another kind', async () => {
    await eventOf(publish().io, 'ready');
    const { io, code } = connect('--udp', '--wait');
    expect(await code).toBe(4);
    expect(io.err()).toContain("'office-db' is a tcp service");
    expect(io.err().split('is a tcp service')).toHaveLength(2);
  });

  it('exits with 4 at once when the edge has p2p switched off', async () => {
    const other = await startEdge({ p2p: { enabled: false } });
    const there = ['--server', `127.0.0.1:${other.addresses.control.port}`, '--token', 'admin'];
    for (const args of [
      ['publish', 'a', '1'],
      ['connect', 'a', '--listen', '0'],
    ]) {
      const { io, code } = start(['p2p', ...args, ...there]);
      expect(await code).toBe(4);
      expect(io.err()).toContain('p2p tunnels are switched off on this edge');
    }
    await other.stop({ drainMs: 0 });
  });

  it('exits with 4 when the p2p name is in use', async () => {
    await eventOf(publish().io, 'ready');
    const { io, code } = publish();
    expect(await code).toBe(4);
    expect(io.err()).toContain("p2p name 'office-db' is already in use");
  });

  it('exits with 2 and names the port when the listen port is in use', async () => {
    const { io, code } = start(['p2p', 'connect', 'office-db', '--listen', String(echo.port), ...flags]);
    expect(await code).toBe(2);
    expect(io.err()).toContain(`port ${echo.port} on 127.0.0.1 is already in use (listen_port)`);
  });

  it('prints with `secret` a new value of 43 base64url characters each time', async () => {
    const one = start(['p2p', 'secret']);
    const two = start(['p2p', 'secret']);
    expect([await one.code, await two.code]).toEqual([0, 0]);
    expect(one.io.out()).toMatch(/^[A-Za-z0-9_-]{43}\n$/);
    expect(one.io.out()).not.toBe(two.io.out());
  });

  it.each([
    ['a short secret', ['publish', 'a', '1'], 'tiny word', 'the p2p secret is too short: at least 16 bytes'],
    ['no secret', ['publish', 'a', '1'], '', 'no p2p secret'],
    ['a bad name', ['publish', 'a_b', '1'], SECRET, "p2p name 'a_b' is not valid"],
    ['a reserved name', ['connect', 'www', '--listen', '1'], SECRET, "p2p name 'www' is not valid"],
    ['no port to listen on', ['connect', 'a'], SECRET, '--listen'],
    ['a port that is none', ['connect', 'a', '--listen', '70000'], SECRET, 'Use 0-65535 or host:port.'],
    ['an audience that is none', ['publish', 'a', '1', '--allow', 'all'], SECRET, 'Use account, anyone.'],
    ['two secrets', ['publish', 'a', '1', '--secret-file', 'x', '--secret-env', 'Y'], SECRET, 'not both.'],
    ['an empty variable', ['publish', 'a', '1', '--secret-env', 'NOT_SET'], SECRET, 'NOT_SET is not set'],
    [
      'a file that is not there',
      ['publish', 'a', '1', '--secret-file', 'x'],
      SECRET,
      'cannot read the p2p secret from x',
    ],
    ['the secret itself as a flag', ['publish', 'a', '1', '--secret', SECRET], SECRET, "unknown option '--secret'"],
  ])('exits with 2 before connecting for %s', async (_, args, secret, words) => {
    const env = { TUNNEL_P2P_SECRET: secret };
    const { io, code } = start(['p2p', ...args, '--server', '127.0.0.1:1', '--token', 'x'], { env });
    expect(await code).toBe(2);
    expect(io.err()).toContain(words);
    if (secret !== '') expect(io.err()).not.toContain(secret);
  });

  it('has help with examples for each subcommand', async () => {
    for (const [command, words] of [
      [['p2p'], ['publish', 'connect', 'secret', '$ tunnel p2p secret > secret']],
      [
        ['p2p', 'publish'],
        ['--udp', '--local-host', '--allow', '--no-direct', '--secret-file', '--secret-env'],
      ],
      [
        ['p2p', 'connect'],
        ['--listen', '--udp', '--no-direct', '--wait', 'TUNNEL_P2P_SECRET'],
      ],
    ] as const) {
      const { io, code } = start([...command, '--help']);
      expect(await code).toBe(0);
      for (const word of words) expect(io.out()).toContain(word);
    }
  });
});

describe('p2p in config.yml', () => {
  it('opens publisher and subscriber next to other tunnels, and passes `tunnel check`', async () => {
    const file = join(home.path, 'tunnel.yml');
    writeFileSync(
      file,
      `tunnels:
  office: { proto: p2p, p2p_publish: office-db, p2p_secret_file: secret, p2p_direct: false, local_port: ${echo.port} }
  theirs: { proto: p2p, p2p_connect: office-db, p2p_secret_env: DB_SECRET, p2p_direct: false, listen_port: 0 }
  db: { proto: tcp, local_port: 1 }
`,
    );
    const env = { DB_SECRET: SECRET };
    const { io } = start(['start', '--config', file, ...flags, '--json'], { env });
    await eventually(() => expect(eventsOf(io, 'ready')).toHaveLength(3));
    const ready = eventsOf(io, 'ready').find(({ role }) => role === 'connect') as Record<string, unknown>;
    expect(ready).toMatchObject({ name: 'theirs', tunnel_id: null });
    const bytes = deterministicBytes(100_000, 2);
    expect(await echoed(listenOf(ready), bytes)).toBe(hashOf(bytes));
    const check = start(['check', '--config', file], { env });
    expect(await check.code).toBe(0);
    expect(check.io.out()).toContain(`office: p2p 127.0.0.1:${echo.port} (tcp) as office-db`);
    expect(check.io.out()).toContain('theirs: p2p office-db (tcp) at 127.0.0.1:0');
  });

  it('exits with 2 for a secret that is too short, also in `tunnel check`', async () => {
    const file = join(home.path, 'tunnel.yml');
    writeFileSync(file, 'tunnels:\n  a: { proto: p2p, p2p_publish: a, p2p_secret: short, local_port: 1 }\n');
    for (const command of [['check'], ['start', '--server', '127.0.0.1:1', '--token', 'x']]) {
      const { io, code } = start([...command, '--config', file]);
      expect(await code).toBe(2);
      expect(io.err()).toContain('the p2p secret is too short: at least 16 bytes (tunnel p2p secret makes one)');
    }
  });
});
