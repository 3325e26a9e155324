// Tests of `tunnel tcp` and `tunnel start` from end to end: the local service gets exactly the bytes that a visitor sends, and vice
// versa.

import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { adoptSocket, type ByteDuplex, connectSocket } from '@tunnel/mux';
import { systemClock } from '@tunnel/runtime';
import {
  deterministicBytes,
  eventually,
  freePort,
  hashOf,
  RecordingReader,
  startEchoServer,
  startTcpServer,
} from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { ask, endOf, fateOf, readAll, sendAndReadAll, visit } from '../visitor.fixture.ts';

const CUT_OFF = { code: 'cancelled', text: 'cut off' } as const;

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

describe.concurrent('a TCP tunnel', () => {
  it('is announced by a single ready event with its public address', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const tunnel = await harness.tcp(stack, echo.port, { flags: ['--name', 'shell'] });
    const ready = await tunnel.ready();
    expect(ready).toEqual({
      event: 'ready',
      at: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      public_url: `tcp://localhost:${ready.assigned_port}`,
      tunnel_id: expect.stringMatching(/^tun_\w+$/),
      name: 'shell',
      protocol: 'tcp',
      assigned_port: expect.any(Number),
      local: `127.0.0.1:${echo.port}`,
      warnings: [],
      inspect_url: null,
      group: null,
      health: 'none',
    });
    expect(ready.assigned_port).toBeGreaterThanOrEqual(stack.tcpPorts.from);
    expect(ready.assigned_port).toBeLessThanOrEqual(stack.tcpPorts.to);
    expect(await stack.tunnel(ready.tunnel_id)).toMatchObject({
      name: 'shell',
      protocol: 'tcp',
      label: String(ready.assigned_port),
      public_url: ready.public_url,
      assigned_port: ready.assigned_port,
    });
    expect(tunnel.stdout).toHaveLength(1);
  });

  it('prints its address for people, and a traffic summary when it ends', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const args = ['tcp', String(echo.port), '--server', stack.control, '--token-file', stack.tokenFile];
    const tunnel = await harness.run(args);
    const port = await eventually(
      () => {
        const line = tunnel.stdout.find((text) => text.includes('tcp://'));
        const found = /tcp:\/\/localhost:(\d+) -> 127\.0\.0\.1:/.exec(line ?? '');
        expect(found).not.toBeNull();
        return Number(found?.[1]);
      },
      { timeoutMs: 15_000 },
    );
    expect((await sendAndReadAll(port, Buffer.from('hello'))).toString()).toBe('hello');
    tunnel.signal('SIGINT');
    expect(await tunnel.exitCode()).toBe(0);
    expect(tunnel.stdout.at(-1)).toMatch(/1 connection, 0 open, 5 B in, 5 B out/);
    expect(tunnel.stderr).toEqual([]);
  });

  it('carries 10 MB byte for byte while both sides send at the same time', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const { assigned_port: port } = await (await harness.tcp(stack, echo.port)).ready();
    const bytes = deterministicBytes(10_000_000, 1);
    expect(hashOf(await sendAndReadAll(port, bytes))).toBe(hashOf(bytes));
  });

  it('counts requests and bytes while its connections are still open', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const { assigned_port: port, tunnel_id: id } = await (await harness.tcp(stack, echo.port)).ready();
    const visitor = await visit(port);
    expect(await ask(visitor, 'twelve bytes')).toBe('twelve bytes');
    await eventually(async () => expect(await stack.tunnel(id)).toMatchObject({ request_count: 1, bytes_proxied: 24 }));
    expect(await ask(visitor, 'and 4 more')).toBe('and 4 more');
    await eventually(async () => expect(await stack.tunnel(id)).toMatchObject({ bytes_proxied: 44 }));
    visitor.destroy();
  });

  it('passes a half-close of the visitor: the service responds after the FIN', async ({ harness }) => {
    const service = harness.use(
      await startTcpServer((socket) => {
        void readAll(socket).then((bytes) => socket.end(`${bytes.length} bytes`));
      }),
    );
    const { assigned_port: port } = await (await harness.tcp(stack, service.port)).ready();
    expect((await sendAndReadAll(port, Buffer.alloc(100_000))).toString()).toBe('100000 bytes');
  });

  it('passes a half-close of the service: the visitor keeps sending after the FIN', async ({ harness }) => {
    const heard: Promise<Buffer>[] = [];
    const service = harness.use(
      await startTcpServer((socket) => {
        socket.end('no more from me');
        heard.push(readAll(socket));
      }),
    );
    const { assigned_port: port } = await (await harness.tcp(stack, service.port)).ready();
    const visitor = await visit(port);
    expect((await readAll(visitor)).toString()).toBe('no more from me');
    visitor.end('but from me');
    expect((await heard[0])?.toString()).toBe('but from me');
  });

  it('passes a reset as a reset in both directions', async ({ harness }) => {
    const arrived: Socket[] = [];
    const service = harness.use(await startTcpServer((socket) => void arrived.push(socket)));
    const { assigned_port: port } = await (await harness.tcp(stack, service.port)).ready();
    const first = await visit(port);
    await eventually(() => expect(arrived).toHaveLength(1));
    const seenByService = once(arrived[0] as Socket, 'error');
    (arrived[0] as Socket).resume();
    first.resetAndDestroy();
    expect(await seenByService).toMatchObject([{ code: 'ECONNRESET' }]);
    const second = await visit(port);
    await eventually(() => expect(arrived).toHaveLength(2));
    const seenByVisitor = endOf(second);
    arrived[1]?.resetAndDestroy();
    expect(await seenByVisitor).toBe('ECONNRESET');
  });

  it('never lets a transfer that was cut off look complete, in either direction', async ({ harness }) => {
    // Both ends are adopted sockets, because a plain net.Socket can report a reset right after data as an orderly end.
    const atService: RecordingReader[] = [];
    const ends: ByteDuplex[] = [];
    const service = harness.use(
      await startTcpServer(
        (socket) => {
          const end = adoptSocket(socket);
          ends.push(end);
          atService.push(new RecordingReader(end));
        },
        { pauseOnConnect: true },
      ),
    );
    const { assigned_port: port } = await (await harness.tcp(stack, service.port)).ready();
    const dial = () => connectSocket({ host: '127.0.0.1', port, timeoutMs: 15_000, clock: systemClock });
    const first = new RecordingReader(await dial());
    // The reset must follow the connect: an earlier reset would make the visitor's connect fail.
    await eventually(() => expect(ends).toHaveLength(1));
    ends[0]?.write(Buffer.from('half of it'), 0, 10, false);
    ends[0]?.reset(CUT_OFF);
    await eventually(() => expect(first.reset).not.toBeNull());
    expect(first.ended).toBe(false);
    const second = await dial();
    await eventually(() => expect(atService).toHaveLength(2));
    second.write(Buffer.from('half of it'), 0, 10, false);
    second.reset(CUT_OFF);
    await eventually(() => expect(atService[1]?.reset).not.toBeNull());
    expect(atService[1]?.ended).toBe(false);
  });

  it('serves 100 visitors at once, byte for byte', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const { assigned_port: port, tunnel_id: id } = await (await harness.tcp(stack, echo.port)).ready();
    const visits = Array.from({ length: 100 }, async (_, seed) => {
      const bytes = deterministicBytes(100_000 + seed, seed);
      return hashOf(await sendAndReadAll(port, bytes)) === hashOf(bytes);
    });
    expect((await Promise.all(visits)).filter((same) => !same)).toEqual([]);
    expect(await stack.tunnel(id)).toMatchObject({ request_count: 100 });
  });

  it('serves other visitors while some visitors do not read', async ({ harness }) => {
    const bytes = deterministicBytes(30_000_000, 5);
    const source = harness.use(await startTcpServer((socket) => void socket.end(bytes)));
    const { assigned_port: port } = await (await harness.tcp(stack, source.port)).ready();
    const stalled = await Promise.all(Array.from({ length: 4 }, () => visit(port)));
    await eventually(() => expect(source.totalConnections).toBe(4));
    const reader = await visit(port);
    expect(hashOf(await readAll(reader))).toBe(hashOf(bytes));
    for (const visitor of stalled) visitor.destroy();
  });

  it('resets visitors while the local service is down, and serves visitors once it is up', async ({ harness }) => {
    const gone = { port: await freePort() };
    const tunnel = await harness.tcp(stack, gone.port);
    const { assigned_port: port, tunnel_id: id } = await tunnel.ready();
    expect(await fateOf(port)).toBe('ECONNRESET');
    expect(await tunnel.waitFor('error')).toMatchObject({
      code: 'CLIENT_LOCAL_DIAL',
      message: `cannot connect to 127.0.0.1:${gone.port}: connection refused`,
      tunnel_id: id,
      fatal: false,
    });
    expect(await stack.tunnel(id)).toBeDefined();
    const back = harness.use(await startEchoServer({ port: gone.port }));
    expect((await sendAndReadAll(port, Buffer.from('there you are'))).toString()).toBe('there you are');
    expect(back.totalConnections).toBe(1);
  });
});

describe.concurrent('tunnel start', () => {
  const writeConfig = (home: string, ports: { a: number; b: number }): void => {
    mkdirSync(join(home, '.tunnel'));
    const lines = [
      `server: ${stack.control}`,
      `auth_token_file: ${stack.tokenFile}`,
      'tunnels:',
      `  a: { proto: tcp, local_port: ${ports.a} }`,
      `  b: { proto: tcp, local_port: ${ports.b} }`,
      '',
    ];
    writeFileSync(join(home, '.tunnel', 'config.yml'), lines.join('\n'));
  };

  it('opens every tunnel of config.yml', async ({ harness }) => {
    const a = harness.use(await startEchoServer());
    const b = harness.use(await startEchoServer());
    const home = await harness.folder();
    writeConfig(home, { a: a.port, b: b.port });
    const program = await harness.run(['start', '--json'], { home });
    const both = [await program.ready(1), await program.ready(2)];
    expect(both.map(({ name }) => name).sort()).toEqual(['a', 'b']);
    for (const { assigned_port: port } of both) {
      expect((await sendAndReadAll(port, Buffer.from('hi'))).toString()).toBe('hi');
    }
    expect([a.totalConnections, b.totalConnections]).toEqual([1, 1]);
  });

  it('with a name opens only the named tunnel', async ({ harness }) => {
    const a = harness.use(await startEchoServer());
    const home = await harness.folder();
    writeConfig(home, { a: a.port, b: 1 });
    const program = await harness.run(['start', 'a', '--json'], { home });
    const ready = await program.ready();
    expect(ready.name).toBe('a');
    expect((await sendAndReadAll(ready.assigned_port, Buffer.from('hi'))).toString()).toBe('hi');
    const { session_id } = (await stack.tunnel(ready.tunnel_id)) ?? {};
    const mine = (await stack.tunnels()).filter((row) => row.session_id === session_id);
    expect(mine.map(({ name }) => name)).toEqual(['a']);
    expect(program.events('ready')).toHaveLength(1);
    program.signal('SIGTERM');
    expect(await program.exitCode()).toBe(0);
    expect(await stack.tunnel(ready.tunnel_id)).toBeUndefined();
  });
});
