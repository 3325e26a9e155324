// Tests of links that go silent without closing: client and edge detect the failure automatically, and the tunnel returns unchanged.
import { eventually, FastClock, type Relay, startEchoServer, startRelay } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, itWith } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { ReadyEvent, TunnelProgram } from '../tunnel-program.fixture.ts';
import { ask, endOf, sendAndReadAll, visit } from '../visitor.fixture.ts';

const DEAD_AFTER_MS = 25_000;
/** Tolerance in milliseconds for two busy cores and the polling of the test: less than a second of real time. */
const SLACK_MS = 12_000;
/** Clock of client, edge and test: 25 s pass in 2 s of real time. */
const clock = new FastClock(12.5);

const it = itWith({ clock });

interface Linked {
  readonly stack: Stack;
  readonly relay: Relay;
  readonly tunnel: TunnelProgram;
  readonly home: string;
  readonly localPort: number;
  readonly ready: ReadyEvent;
  readonly sessionId: string | undefined;
}

/** Starts a client with a relay between client and edge. */
const startLinked = async (harness: Harness): Promise<Linked> => {
  const echo = harness.use(await startEchoServer());
  const stack = await harness.stack();
  const relay = harness.use(await startRelay({ target: { port: stack.controlPort } }));
  const home = await harness.folder();
  const tunnel = await harness.tcp(stack, echo.port, { home, server: `127.0.0.1:${relay.port}` });
  const ready = await tunnel.ready();
  const sessionId = (await stack.tunnel(ready.tunnel_id))?.session_id;
  // The client opens a control connection and two carriers.
  await eventually(() => expect(relay.openConnections).toBe(3));
  return { stack, relay, tunnel, home, localPort: echo.port, ready, sessionId };
};

const expectServed = async ({ assigned_port: port }: ReadyEvent): Promise<void> =>
  expect((await sendAndReadAll(port, Buffer.from('served'))).toString()).toBe('served');

/** Expects a resumed session with the same port and tunnel, and no second ready event. */
const expectHealed = async ({ stack, tunnel, ready, sessionId }: Linked): Promise<void> => {
  expect(await tunnel.waitFor('reconnected')).toMatchObject({ resumed: true });
  await expectServed(ready);
  expect(await stack.tunnels()).toMatchObject([
    { tunnel_id: ready.tunnel_id, assigned_port: ready.assigned_port, session_id: sessionId },
  ]);
  expect(tunnel.events('ready')).toHaveLength(1);
  expect(tunnel.events('error')).toEqual([]);
};

const msUntil = async (since: number, happened: Promise<unknown>): Promise<number> => {
  await happened;
  return clock.monotonic() - since;
};

describe.concurrent('a link that goes silent', () => {
  it('is detected on both sides within 25 s, its visitors are disconnected, and the tunnel returns with the link', async ({
    harness,
  }) => {
    const linked = await startLinked(harness);
    const { stack, relay, tunnel, ready } = linked;
    const visitor = await visit(ready.assigned_port);
    expect(await ask(visitor, 'hello')).toBe('hello');
    const visitorGone = endOf(visitor);
    const since = clock.monotonic();
    relay.blackhole();
    const unlisted = eventually(async () => expect(await stack.tunnels()).toEqual([]));
    const [edgeMs, clientMs, visitorMs] = await Promise.all([
      msUntil(since, unlisted),
      msUntil(since, tunnel.waitFor('reconnecting')),
      msUntil(since, visitorGone),
    ]);
    expect(edgeMs).toBeLessThan(DEAD_AFTER_MS + SLACK_MS);
    expect(clientMs).toBeLessThan(DEAD_AFTER_MS + SLACK_MS);
    expect(visitorMs).toBeLessThan(DEAD_AFTER_MS + 1000 + SLACK_MS);
    relay.restore();
    await expectHealed(linked);
  });

  it('is replaced by a new connection while the old connection stays silent', async ({ harness }) => {
    const linked = await startLinked(harness);
    for (const connection of linked.relay.connections) connection.blackhole();
    await expectHealed(linked);
    expect(linked.tunnel.events('reconnecting')).toHaveLength(1);
  });

  it('lets a killed and restarted client take over at once, while the edge still trusts the old link', async ({
    harness,
  }) => {
    const { stack, relay, tunnel, home, localPort, ready, sessionId } = await startLinked(harness);
    for (const connection of relay.connections) connection.blackhole();
    await tunnel.kill();
    expect(await stack.tunnel(ready.tunnel_id)).toBeDefined();
    const again = await harness.tcp(stack, localPort, { home, server: `127.0.0.1:${relay.port}` });
    expect(await again.ready()).toMatchObject({ tunnel_id: ready.tunnel_id, assigned_port: ready.assigned_port });
    await expectServed(ready);
    expect(await stack.tunnels()).toMatchObject([{ tunnel_id: ready.tunnel_id, session_id: sessionId }]);
  });
});

describe.concurrent('a link lost only at the client', () => {
  it('is replaced in a single step: the tunnel stays listed and keeps port, id and session', async ({ harness }) => {
    const linked = await startLinked(harness);
    const { stack, relay, tunnel, ready } = linked;
    for (const connection of relay.connections) connection.lose();
    const seen: number[] = [];
    await eventually(
      async () => {
        seen.push((await stack.tunnels()).length);
        expect(tunnel.events('reconnected')).toHaveLength(1);
      },
      { intervalMs: 10 },
    );
    expect(seen.filter((count) => count !== 1)).toEqual([]);
    await expectHealed(linked);
    expect(await stack.metric('tunnel_active_sessions')).toBe(1);
    expect((await stack.tunnel(ready.tunnel_id))?.client_addr).not.toBe('');
  });
});
