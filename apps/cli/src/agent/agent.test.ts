// The agent of a real client at a real edge, and the commands that ask it: what is right, and what is thrown at its socket.
import { once } from 'node:events';
import { existsSync, lstatSync, readdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Edge } from '@tunnel/edge';
import {
  eventually,
  startEchoServer,
  type TcpServer,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startEdge } from '../edge.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io.fixture.ts';
import { CLI_LIMITS } from '../limits.ts';
import { run } from '../run.ts';
import { askClient, followClient } from './agent-client.ts';
import type { ClientStatus } from './status-report.ts';

let home: TemporaryDirectory;
let edge: Edge;
let echo: TcpServer;
let flags: string[];
let sockets: Socket[];
let runs: { io: TestIo; code: Promise<number> }[];

beforeEach(async () => {
  home = await temporaryDirectory();
  echo = await startEchoServer();
  edge = await startEdge({ limits: { tcp_port_range: [31_900, 31_999] } });
  flags = ['--server', `127.0.0.1:${edge.addresses.control.port}`, '--token', 'admin', '--json'];
  sockets = [];
  runs = [];
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  for (const { io, code } of runs) {
    io.signal('SIGTERM');
    await code;
  }
  await edge.stop({ drainMs: 0 });
  await echo.close();
  await home.close();
});

const begin = (args: string[], options: Partial<TestIoOptions> = {}) => {
  const io = makeTestIo({ home: home.path, ...options });
  const started = { io, code: run(args, io) };
  runs.push(started);
  return started;
};

/** A command that ends by itself. */
const ask = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
  const io = makeTestIo({ home: home.path });
  return { code: await run(args, io), out: io.out(), err: io.err() };
};

const socketPath = (): string => join(home.path, '.tunnel', 'run', `${process.pid}.sock`);

/** `tunnel tcp` to the echo service, open. */
const startTcp = async (...more: string[]) => {
  const started = begin(['tcp', String(echo.port), '--name', 'echo', ...flags, ...more]);
  await eventually(() => expect(started.io.events()).toContainEqual(expect.objectContaining({ event: 'ready' })));
  return started;
};

const statuses = async (): Promise<ClientStatus[]> => JSON.parse((await ask('status', '--json')).out) as ClientStatus[];

/** A visit through the tunnel: what the attacks must not disturb. */
const visit = async (port: number): Promise<void> => {
  const socket = dial({ port, host: '127.0.0.1' });
  socket.write('hello');
  expect(String((await once(socket, 'data'))[0])).toBe('hello');
  socket.destroy();
};

const dial = (to: { port: number; host: string } | { path: string }): Socket => {
  const socket = connect(to);
  socket.on('error', () => {});
  sockets.push(socket);
  return socket;
};

/** All that it says until it hangs up. */
const throwAt = (bytes: string | Buffer, isWhole = true): Promise<string> =>
  new Promise((resolve) => {
    const socket = dial({ path: socketPath() });
    let said = '';
    socket.on('data', (part) => (said += String(part)));
    socket.on('close', () => resolve(said));
    if (isWhole) socket.end(bytes);
    else socket.write(bytes);
  });

describe('a running client', () => {
  it('has a socket for its owner alone, and none when it has ended', async () => {
    const { io, code } = await startTcp();
    expect(lstatSync(socketPath()).mode & 0o777).toBe(0o600);
    io.signal('SIGTERM');
    expect(await code).toBe(0);
    expect(existsSync(socketPath())).toBe(false);
  });

  it('tells its status with the fields of the contract, in their order', async () => {
    const { io } = await startTcp();
    const [status, ...others] = await statuses();
    expect(others).toEqual([]);
    expect(Object.keys(status ?? {}).join(' ')).toBe(
      'pid version since config server state session_id region_id latency_ms carriers proxy log_file tunnels',
    );
    expect(status).toMatchObject({ pid: process.pid, state: 'connected', region_id: 'local', config: null });
    const [tunnel] = status?.tunnels ?? [];
    expect(Object.keys(tunnel ?? {}).join(' ')).toBe(
      'name tunnel_id protocol public_url local source state group healthy request_count bytes_proxied last_error',
    );
    const ready = io.events()[0];
    expect(tunnel).toMatchObject({
      name: 'echo',
      tunnel_id: ready?.['tunnel_id'],
      public_url: ready?.['public_url'],
      local: `127.0.0.1:${echo.port}`,
      source: 'flags',
      state: 'open',
      healthy: null,
      last_error: null,
    });
  });

  it('is there while it still connects, and can be stopped then', async () => {
    const { code } = begin(['tcp', '80', '--server', `127.0.0.1:${echo.port}`, '--token', 't', '--wait', '--json']);
    await eventually(async () => {
      const [status] = await statuses();
      expect(status).toMatchObject({ state: 'connecting', session_id: null, carriers: 0 });
      expect(status?.tunnels).toMatchObject([{ name: 'tcp-80', state: 'opening', tunnel_id: null }]);
    });
    expect(await ask('ready')).toMatchObject({ code: 1, err: 'tunnel: not ready: the client is connecting\n' });
    expect(await ask('stop')).toMatchObject({ code: 0 });
    expect(await code).toBe(0);
  });

  it('goes on without one where there is no place for a socket, and says so in one line', async () => {
    const env = { XDG_RUNTIME_DIR: join(home.path, 'none'), TMPDIR: join(home.path, 'none') };
    const nowhere = { home: join(home.path, 'nowhere'), env };
    const { io } = begin(['tcp', String(echo.port), ...flags], nowhere);
    await eventually(() => expect(io.events()).toContainEqual(expect.objectContaining({ event: 'ready' })));
    expect(io.err()).toMatch(/^tunnel: `tunnel status` will not find this client: .*no such file.*\n$/);
  });
});

describe('commands without a client', () => {
  it('say that none is running', async () => {
    expect(await ask('status')).toEqual({ code: 0, out: 'no client is running\n', err: '' });
    expect(await ask('status', '--json')).toEqual({ code: 0, out: '[]\n', err: '' });
    expect(await ask('ready')).toMatchObject({ code: 1, err: expect.stringContaining('no client is running') });
    for (const args of [['stop'], ['reload'], ['remove', 'x'], ['logs'], ['add', 'tcp', '22']]) {
      expect(await ask(...args)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/^tunnel: no client is running\n/),
      });
    }
  });
});

describe('tunnel ready', () => {
  it('waits for as long as it is told to', async () => {
    const waiting = ask('ready', '--timeout', '20');
    await startTcp();
    expect(await waiting).toEqual({ code: 0, out: '', err: '' });
  });

  it('names what is missing', async () => {
    writeFileSync(
      join(home.path, 'c.yml'),
      `tunnels:\n  good: {proto: tcp, local_port: ${echo.port}}\n  bad: {proto: tcp, local_port: 1, remote_port: 1}\n`,
    );
    const { io } = begin(['start', '--config', 'c.yml', ...flags]);
    await eventually(() =>
      expect(
        io
          .events()
          .map(({ event }) => event)
          .sort(),
      ).toEqual(['error', 'ready']),
    );
    expect(await ask('ready')).toMatchObject({ code: 1, err: 'tunnel: not ready: bad is refused\n' });
    expect((await statuses())[0]?.tunnels).toMatchObject([
      { name: 'good', source: 'file', state: 'open' },
      { name: 'bad', state: 'refused', last_error: expect.stringContaining('port 1 is outside of') },
    ]);
  });
});

describe('tunnel add and remove', () => {
  it('open one more tunnel and close it, while the first goes on', async () => {
    const { io } = await startTcp();
    const added = await ask('add', 'tcp', String(echo.port), '--name', 'second');
    expect(added).toMatchObject({ code: 0, err: '' });
    const port = Number(/^tcp:\/\/localhost:(\d+)\n$/.exec(added.out)?.[1]);
    await visit(port);
    expect((await statuses())[0]?.tunnels).toMatchObject([
      { name: 'echo', source: 'flags' },
      { name: 'second', source: 'runtime', state: 'open' },
    ]);
    expect(io.events()).toContainEqual(expect.objectContaining({ event: 'ready', name: 'second' }));
    expect(await ask('remove', 'second')).toMatchObject({ code: 0, out: expect.stringMatching(/^second: removed/) });
    expect(io.events().at(-1)).toMatchObject({ event: 'tunnel_removed', name: 'second', reason: 'removed' });
    await expect(visit(port)).rejects.toThrow();
  });

  it('--json prints the ready event', async () => {
    await startTcp();
    const { out } = await ask('add', 'http', '3000', '--json');
    expect(JSON.parse(out)).toMatchObject({
      event: 'ready',
      name: 'http-3000',
      protocol: 'http',
      public_url: expect.stringContaining('http://'),
      inspect_url: expect.stringContaining('http://127.0.0.1:'),
    });
  });

  it('a name that is taken: 2; a refusal of the edge: 4, and nothing is left of it; an unknown name: 2', async () => {
    await startTcp();
    expect(await ask('add', 'tcp', '1', '--name', 'echo')).toMatchObject({
      code: 2,
      err: expect.stringContaining('has a tunnel `echo` already'),
    });
    expect(await ask('add', 'tcp', '1', '--remote-port', '1')).toMatchObject({
      code: 4,
      err: expect.stringContaining('port 1 is outside of'),
    });
    expect(await ask('remove', 'nobody')).toMatchObject({ code: 2, err: expect.stringContaining('it has echo\n') });
    expect((await statuses())[0]?.tunnels).toHaveLength(1);
  });

  it('the client stays when its last tunnel is removed, and takes another', async () => {
    await startTcp();
    await ask('remove', 'echo');
    expect(await ask('ready')).toMatchObject({ code: 0 });
    const { out } = await ask('add', 'tcp', String(echo.port));
    await visit(Number(out.trim().split(':').at(-1)));
    expect((await ask('add', 'tcp', '1', '--remote-port', '1')).code).toBe(4);
    expect((await statuses())[0]?.state).toBe('connected');
  });

  it('a group key goes along', async () => {
    await startTcp();
    const keyFile = join(home.path, 'group-key');
    writeFileSync(keyFile, 'what all members share\n');
    const grouped = ['--group', 'shop', '--group-key-file', keyFile, '--health', 'tcp'];
    expect(await ask('add', 'tcp', String(echo.port), ...grouped)).toMatchObject({ code: 0 });
    await eventually(async () =>
      expect((await statuses())[0]?.tunnels[1]).toMatchObject({ group: 'shop', healthy: true }),
    );
  });
});

describe('tunnel logs', () => {
  it('prints the last lines, events with --json, and goes on with -f until the client ends', async () => {
    const { io } = await startTcp();
    const lines = (await ask('logs')).out.trim().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}connected$/),
      expect.stringMatching(/echo: tcp:\/\/localhost:\d+ -> 127\.0\.0\.1:\d+$/),
    ]);
    expect((await ask('logs', '-n', '1')).out.trim()).toBe(lines[1]);
    expect(JSON.parse((await ask('logs', '--json')).out)).toEqual(io.events()[0]);
    const following = ask('logs', '-f', '-n', '0', '--json');
    await eventually(async () => {
      await ask('add', 'tcp', '80', '--name', 'more');
      await ask('remove', 'more');
      expect(io.events().length).toBeGreaterThan(4);
    });
    io.signal('SIGTERM');
    const { code, out } = await following;
    const seen = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string });
    expect(code).toBe(0);
    expect(seen).toContainEqual(expect.objectContaining({ event: 'tunnel_removed' }));
  });
});

describe('tunnel status', () => {
  it('--watch draws over itself, and ends at a signal', async () => {
    await startTcp();
    const io = makeTestIo({ home: home.path, isTTY: true, env: { NO_COLOR: '1' } });
    const code = run(['status', '--watch'], io);
    await eventually(() => expect(io.out()).toContain('echo  open  tcp://'));
    expect(io.out()).not.toContain('\u001b[J');
    await ask('remove', 'echo');
    await eventually(() => expect(io.out()).toContain('no tunnels'), { timeoutMs: 5000 });
    expect(io.out()).toMatch(/\u001b\[\d+Aclient \d+ .*\u001b\[K\n {2}no tunnels\u001b\[K\n\u001b\[J$/);
    io.signal('SIGINT');
    expect(await code).toBe(0);
  });
});

describe('tunnel alone', () => {
  it('says what to do next at a terminal: init, start, or the status', async () => {
    const alone = async (): Promise<string> => {
      const io = makeTestIo({ home: home.path, isTTY: true, env: { NO_COLOR: '1' } });
      expect(await run([], io)).toBe(0);
      return io.out();
    };
    expect(await alone()).toContain('tunnel init');
    await startTcp();
    expect(await alone()).toContain('echo  open');
    await ask('stop');
    await eventually(async () => expect(await statuses()).toEqual([]));
    writeFileSync(join(home.path, '.tunnel', 'config.yml'), '');
    expect(await alone()).toContain('tunnel start');
  });
});

describe('the socket under attack', () => {
  const publicPort = async (): Promise<number> => Number((await startTcp()).io.events()[0]?.['assigned_port']);

  it('garbage gets no answer but a refusal, and the tunnel does not notice', async () => {
    const port = await publicPort();
    const garbage = [Buffer.alloc(4096, 0xff), '\0\0\0', 'GET\r\n\r\n', `GET /${'x'.repeat(20_000)} HTTP/1.1\r\n\r\n`];
    for (const bytes of garbage) expect(await throwAt(bytes)).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
    const calls: [string, number][] = [
      ['GET /nothing HTTP/1.1\r\n\r\n', 404],
      ['GET // HTTP/1.1\r\n\r\n', 404],
      ['GET /toString HTTP/1.1\r\n\r\n', 404],
      ['GET /__proto__/x HTTP/1.1\r\n\r\n', 404],
      ['PATCH /status HTTP/1.1\r\n\r\n', 405],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 3\r\n\r\n{]}', 400],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 4\r\n\r\nnull', 400],
      ['POST /tunnels HTTP/1.1\r\ncontent-length: 18\r\n\r\n{"protocol":"tcp"}', 400],
      ['DELETE /tunnels/%zz HTTP/1.1\r\n\r\n', 400],
      ['GET /logs?lines=-1 HTTP/1.1\r\n\r\n', 400],
      ['GET /status HTTP/1.1\r\nhost: evil.example\r\n\r\n', 200],
    ];
    for (const [text, status] of calls) expect(await throwAt(text)).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await visit(port);
  });

  it('what is no tunnel is refused in words, whatever its shape', async () => {
    await publicPort();
    const base = { protocol: 'tcp', name: 'x', localPort: 80 };
    const odd: object[] = [
      { ...base, hostHeader: 5 },
      { ...base, healthCheck: [] },
      { ...base, healthCheck: { type: {} } },
      { ...base, localPort: '80' },
      { ...base, protocol: 'p2p', p2pName: 'x' },
      { ...base, name: '' },
      { ...base, surprise: true },
      [],
    ];
    for (const json of odd) {
      const refused = await askClient(socketPath(), { method: 'POST', path: '/tunnels', json }).catch(
        (error: unknown) => error,
      );
      expect(refused).toMatchObject({ code: 'CLIENT_USAGE' });
    }
  });

  it('a body over 256 KiB is refused, by its length and by its bytes', async () => {
    await publicPort();
    const bytes = CLI_LIMITS.AGENT_BODY_MAX_BYTES + 1;
    expect(await throwAt(`POST /tunnels HTTP/1.1\r\ncontent-length: ${bytes}\r\n\r\n`, false)).toMatch(
      /^HTTP\/1\.1 413 /,
    );
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`;
    expect(
      await throwAt(`POST /tunnels HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n${chunk.repeat(5)}`, false),
    ).toMatch(/^HTTP\/1\.1 413 /);
  });

  it('1,000 connections and slow bodies: bounded, cut off in time, and the tunnel does not notice', async () => {
    const port = await publicPort();
    for (let index = 0; index < 1000; index += 1) {
      const socket = dial({ path: socketPath() });
      if (index % 2 === 0) socket.write('POST /tunnels HTTP/1.1\r\ncontent-length: 1000\r\n\r\n{');
    }
    await visit(port);
    await eventually(() =>
      expect(sockets.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(CLI_LIMITS.AGENT_CONNECTIONS_MAX + 1),
    );
    // There is room again when the slow ones are cut off, and a command waits for that.
    expect(await statuses()).toHaveLength(1);
    await eventually(() => expect(sockets.filter(({ closed }) => !closed)).toEqual([]), { timeoutMs: 15_000 });
    await visit(port);
  });

  it('those who follow are bounded, and leave room for questions', async () => {
    await publicPort();
    const stop = new AbortController();
    const follow = (): Promise<unknown> =>
      followClient(socketPath(), { path: '/events', signal: stop.signal }, () => {}).catch((error: unknown) => error);
    const following = Array.from({ length: CLI_LIMITS.AGENT_FOLLOWERS_MAX }, follow);
    await eventually(async () => expect(await follow()).toMatchObject({ code: 'API_STREAMS_BUSY' }));
    expect(await statuses()).toHaveLength(1);
    stop.abort();
    await Promise.all(following);
  });

  it('a command that gives up leaves no tunnel behind', async () => {
    const { io } = await startTcp();
    await edge.stop({ drainMs: 0 });
    await eventually(() => expect(io.events().at(-1)).toMatchObject({ event: 'reconnecting' }));
    const stop = new AbortController();
    const json = { protocol: 'tcp', name: 'late', localPort: 80 };
    const adding = askClient(socketPath(), {
      method: 'POST',
      path: '/tunnels',
      json,
      isSlow: true,
      signal: stop.signal,
    });
    await eventually(async () =>
      expect((await statuses())[0]?.tunnels[1]).toMatchObject({ name: 'late', state: 'opening' }),
    );
    stop.abort();
    await expect(adding).rejects.toThrow();
    await eventually(async () => expect((await statuses())[0]?.tunnels).toHaveLength(1));
  });

  it('nothing but the socket is in the folder', async () => {
    await publicPort();
    expect(readdirSync(join(home.path, '.tunnel', 'run'))).toEqual([`${process.pid}.sock`]);
  });
});
