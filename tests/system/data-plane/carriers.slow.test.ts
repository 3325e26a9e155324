// Tests of the connections below a session that break in turn: the session and the tunnels stay, and the client dials the missing
// connection again.
import {
  deterministicBytes,
  eventually,
  hashOf,
  type Relay,
  startEchoServer,
  startRelay,
  startTcpServer,
} from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { ReadyEvent, TunnelProgram } from '../tunnel-program.fixture.ts';
import { ask, readAll, sendAndReadAll, visit } from '../visitor.fixture.ts';

/** Carriers of a session without visitors. With visitors, there can be more. */
const CARRIERS = 2;

interface Linked {
  readonly stack: Stack;
  readonly relay: Relay;
  readonly tunnel: TunnelProgram;
  readonly ready: ReadyEvent;
  readonly sessionId: string | undefined;
}

const startLinked = async (harness: Harness, localPort: number): Promise<Linked> => {
  const stack = await harness.stack();
  const relay = harness.use(await startRelay({ target: { port: stack.controlPort } }));
  const tunnel = await harness.tcp(stack, localPort, { server: `127.0.0.1:${relay.port}` });
  const ready = await tunnel.ready();
  await untilComplete({ stack, relay });
  return { stack, relay, tunnel, ready, sessionId: (await stack.tunnel(ready.tunnel_id))?.session_id };
};

/** Waits until all carriers are visible at the client and the edge. */
const untilComplete = ({ stack, relay }: { stack: Stack; relay: Relay }): Promise<void> =>
  eventually(
    async () => {
      expect(relay.openConnections).toBeGreaterThanOrEqual(1 + CARRIERS);
      expect(await stack.metric('tunnel_active_carriers')).toBe(relay.openConnections - 1);
    },
    { timeoutMs: 15_000 },
  );

const connectionsTo = (relay: Relay, path: string) =>
  relay.connections.filter(({ opening }) => opening.startsWith(`GET ${path} `));

const expectSameSession = async ({ stack, tunnel, ready, sessionId }: Linked): Promise<void> => {
  expect(await stack.tunnels()).toMatchObject([
    { tunnel_id: ready.tunnel_id, assigned_port: ready.assigned_port, session_id: sessionId },
  ]);
  expect(tunnel.events('ready')).toHaveLength(1);
  expect(tunnel.events('error')).toEqual([]);
};

const echoOf = async (port: number, text: string): Promise<string> =>
  (await sendAndReadAll(port, Buffer.from(text))).toString();

describe.concurrent('a session', () => {
  it('loses only the streams of a broken carrier, and dials a replacement', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const linked = await startLinked(harness, echo.port);
    const { relay, tunnel, ready } = linked;
    // More streams than a carrier takes on a near path (64), so that every carrier gets some.
    const visitors = await Promise.all(Array.from({ length: 200 }, () => visit(ready.assigned_port)));
    for (const visitor of visitors) expect(await ask(visitor, 'before')).toBe('before');
    connectionsTo(relay, '/_carrier')[0]?.reset();
    const fates = await Promise.all(visitors.map((visitor) => ask(visitor, 'after').catch(() => 'cut off')));
    expect(new Set(fates)).toEqual(new Set(['after', 'cut off']));
    expect(await echoOf(ready.assigned_port, 'a new one')).toBe('a new one');
    await untilComplete(linked);
    await expectSameSession(linked);
    expect(tunnel.events('reconnecting')).toEqual([]);
    for (const visitor of visitors) visitor.destroy();
  });

  it('survives the loss of all its carriers at once', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const linked = await startLinked(harness, echo.port);
    const { relay, tunnel, ready } = linked;
    const carriers = connectionsTo(relay, '/_carrier');
    expect(carriers).toHaveLength(CARRIERS);
    for (const carrier of carriers) carrier.reset();
    await eventually(async () => expect(await echoOf(ready.assigned_port, 'back').catch(String)).toBe('back'));
    await untilComplete(linked);
    await expectSameSession(linked);
    expect(tunnel.events('reconnecting')).toEqual([]);
  });

  it('keeps its carriers when the control connection breaks, so that a running transfer finishes', async ({
    harness,
  }) => {
    const bytes = deterministicBytes(40_000_000, 4);
    const source = harness.use(await startTcpServer((socket) => void socket.end(bytes)));
    const linked = await startLinked(harness, source.port);
    const { relay, tunnel, ready } = linked;
    // The visitor does not read yet, so that the transfer cannot finish before the cut.
    const visitor = await visit(ready.assigned_port);
    await eventually(() => expect(source.totalConnections).toBe(1));
    connectionsTo(relay, '/_control')[0]?.reset();
    expect(await tunnel.waitFor('reconnected')).toMatchObject({ resumed: true });
    expect(hashOf(await readAll(visitor))).toBe(hashOf(bytes));
    visitor.end();
    expect(hashOf(await sendAndReadAll(ready.assigned_port, Buffer.alloc(0)))).toBe(hashOf(bytes));
    await untilComplete(linked);
    await expectSameSession(linked);
  });

  it('serves visitors again after the loss of any of its connections', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const linked = await startLinked(harness, echo.port);
    const { relay, ready } = linked;
    for (let round = 0; round < 6; round += 1) {
      relay.connections.at(round % (1 + CARRIERS))?.reset();
      await eventually(
        async () => expect(await echoOf(ready.assigned_port, `${round}`).catch(String)).toBe(`${round}`),
        {
          timeoutMs: 15_000,
        },
      );
    }
    await untilComplete(linked);
    await expectSameSession(linked);
  });
});
