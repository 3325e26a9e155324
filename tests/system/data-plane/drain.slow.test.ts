// Tests of planned stops: running transfers finish, new connections are refused, and the exit code reports success.
import type { Socket } from 'node:net';
import { deterministicBytes, eventually, hashOf, startEchoServer, startTcpServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack, StackOptions } from '../stack.fixture.ts';
import type { ReadyEvent, TunnelProgram } from '../tunnel-program.fixture.ts';
import { ask, endOf, fateOf, readAll, sendAndReadAll, visit } from '../visitor.fixture.ts';

const BYTES = deterministicBytes(60_000_000, 6);
const HASH = hashOf(BYTES);

interface UnderWay {
  readonly stack: Stack;
  readonly tunnel: TunnelProgram;
  readonly ready: ReadyEvent;
  readonly visitor: Socket;
}

/** Starts a download that cannot finish yet: far more bytes remain than all buffers hold, and the visitor does not read. */
const startDownload = async (
  harness: Harness,
  options: StackOptions,
  flags: readonly string[] = [],
): Promise<UnderWay> => {
  const source = harness.use(await startTcpServer((socket) => void socket.end(BYTES)));
  const stack = await harness.stack(options);
  const tunnel = await harness.tcp(stack, source.port, { flags });
  const ready = await tunnel.ready();
  const visitor = await visit(ready.assigned_port);
  await eventually(() => expect(source.totalConnections).toBe(1));
  return { stack, tunnel, ready, visitor };
};

/** Starts a conversation with a visitor that has sent a message, received the echo, and waits. */
const startTalk = async (
  harness: Harness,
  options: StackOptions,
  client: { readonly flags?: readonly string[]; readonly programs?: boolean } = {},
): Promise<UnderWay> => {
  const echo = harness.use(await startEchoServer());
  const stack = await harness.stack(options);
  const tunnel = await harness.tcp(stack, echo.port, client);
  const ready = await tunnel.ready();
  const visitor = await visit(ready.assigned_port);
  expect(await ask(visitor, 'before')).toBe('before');
  return { stack, tunnel, ready, visitor };
};

/** Reads the whole download, then closes the visitor's side, so that the client or edge can close. */
const finishDownload = async (visitor: Socket): Promise<void> => {
  expect(hashOf(await readAll(visitor))).toBe(HASH);
  visitor.end();
};

describe.concurrent('stopping the edge by signal', () => {
  it('SIGTERM lets a transfer finish, refuses new connections, ends the edge with 0, and the client reconnects to the next edge', async ({
    harness,
  }) => {
    const { stack, tunnel, ready, visitor } = await startDownload(harness, { fixedPorts: true });
    const { controlPort } = stack;
    stack.program.signal('SIGTERM');
    expect(await tunnel.waitFor('reconnecting')).toMatchObject({ planned: true, reason: 'the edge is shutting down' });
    await eventually(async () => expect(await fateOf(ready.assigned_port)).toBe('ECONNREFUSED'));
    expect(await fateOf(controlPort)).toBe('ECONNREFUSED');
    expect(stack.program.exit).toBeNull();
    await finishDownload(visitor);
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
    await stack.start();
    await tunnel.waitFor('reconnected');
    expect(hashOf(await sendAndReadAll(ready.assigned_port, Buffer.alloc(0)))).toBe(HASH);
    expect(tunnel.events('ready')).toHaveLength(1);
    expect([tunnel.events('error'), tunnel.stderr]).toEqual([[], []]);
  });

  it('SIGTERM does not wait for clients and tunnels without visitors', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    // The edge runs as an executable, to prove that no open handle keeps the process alive.
    const stack = await harness.stack({ programs: true });
    const tunnels = [await harness.tcp(stack, echo.port), await harness.tcp(stack, echo.port)];
    const { assigned_port: port } = await tunnels[0]!.ready();
    await tunnels[1]!.ready();
    // A visitor that came and left must not delay the stop.
    expect((await sendAndReadAll(port, Buffer.from('hi'))).toString()).toBe('hi');
    const since = performance.now();
    stack.program.signal('SIGTERM');
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(25_000);
  });

  it('SIGTERM resets unfinished connections after drain_secs, and the edge still exits with 0', async ({ harness }) => {
    const { stack, visitor } = await startTalk(harness, { server: 'drain_secs = 1' });
    const end = endOf(visitor);
    stack.program.signal('SIGTERM');
    expect(await stack.program.waitForExit()).toEqual({ code: 0, signal: null });
    expect(await end).toBe('ECONNRESET');
  });

  it('a second SIGTERM more than a second later ends the edge at once with exit code 143', async ({ harness }) => {
    const { stack, visitor } = await startTalk(harness, { server: 'drain_secs = 300', programs: true });
    const end = endOf(visitor);
    stack.program.signal('SIGTERM');
    await stack.program.waitForLine(/stopping/);
    await eventually(
      () => {
        stack.program.signal('SIGTERM');
        expect(stack.program.exit).toEqual({ code: 143, signal: null });
      },
      { intervalMs: 200 },
    );
    expect(await end).toBe('ECONNRESET');
  });
});

describe.concurrent('stopping the client by signal', () => {
  it('SIGTERM, even sent twice, lets a transfer finish, refuses new connections, and ends the client with 0', async ({
    harness,
  }) => {
    const { stack, tunnel, ready, visitor } = await startDownload(harness, {});
    tunnel.signal('SIGTERM');
    // The same signal arrives twice, from the terminal and again through npm.
    tunnel.signal('SIGTERM');
    await eventually(async () => expect(await stack.tunnels()).toEqual([]));
    expect(await fateOf(ready.assigned_port)).toBe('ECONNREFUSED');
    expect(tunnel.exit).toBeNull();
    await finishDownload(visitor);
    expect(await tunnel.exitCode()).toBe(0);
    expect(tunnel.events('closed')).toMatchObject([{ exit_code: 0 }]);
    expect([tunnel.events('error'), tunnel.events('reconnecting'), tunnel.stderr]).toEqual([[], [], []]);
  });

  it('SIGINT lets a conversation continue until the visitor ends it', async ({ harness }) => {
    const { stack, tunnel, visitor } = await startTalk(harness, {});
    tunnel.signal('SIGINT');
    await eventually(async () => expect(await stack.tunnels()).toEqual([]));
    expect(await ask(visitor, 'while it stops')).toBe('while it stops');
    visitor.end();
    expect(await tunnel.exitCode()).toBe(0);
  });

  it('SIGTERM resets unfinished connections after --drain-secs, and the client still exits with 0', async ({
    harness,
  }) => {
    const { tunnel, visitor } = await startTalk(harness, {}, { flags: ['--drain-secs', '1'] });
    const end = endOf(visitor);
    tunnel.signal('SIGTERM');
    expect(await tunnel.exitCode()).toBe(0);
    expect(await end).toBe('ECONNRESET');
  });

  it('a second SIGTERM more than a second later ends the client at once with exit code 143', async ({ harness }) => {
    const { tunnel, visitor } = await startTalk(
      harness,
      {},
      {
        flags: ['--drain-secs', '300'],
        programs: true,
      },
    );
    const end = endOf(visitor);
    tunnel.signal('SIGTERM');
    await eventually(
      () => {
        tunnel.signal('SIGTERM');
        expect(tunnel.exit).toEqual({ code: 143, signal: null });
      },
      { intervalMs: 200 },
    );
    expect(await end).toBe('ECONNRESET');
  });
});
