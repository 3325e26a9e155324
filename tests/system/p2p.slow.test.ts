// Tests of two clients and an edge on the same machine: data between peers over the relay and over the direct path, and the end of a
// connection.
import { createHash } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { deterministicBytes, eventually, hashOf, startEchoServer, startTcpServer, startUdpEcho } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { ROOT } from '../repo/checkout.fixture.ts';
import { Harness, it } from './in-process.fixture.ts';
import { becomesDirect, connectTo, dial, lastPath, peersOf, publish, startConnect } from './p2p.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import { UdpVisitor } from './udp-visitor.fixture.ts';

const MB = 1_000_000;
/** Size of a transfer in bytes, larger than the largest window of a stream. */
const SIZE = 24 * MB;

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

/** Sends bytes to an echo service, half-closes, and returns the hash of the response. */
const echoed = async (harness: Harness, port: number, bytes: Buffer): Promise<string> => {
  const socket = dial(harness, port);
  socket.end(bytes);
  return hashOf(await buffer(socket));
};

/** Starts a service that sends the bytes to every visitor, as fast as the visitor reads. */
const startDownload = (bytes: Buffer) =>
  startTcpServer((socket) => {
    socket.end(bytes);
  });

describe('TCP between peers', () => {
  it('24 MB pass both ways over the relay byte for byte, and the edge counts the bytes and reports the relay path', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const { program, tunnelId } = await publish(harness, stack, 'relayed', echo.port, { flags: ['--no-direct'] });
    const subscriber = await connectTo(harness, stack, 'relayed');
    const bytes = deterministicBytes(SIZE, 1);
    expect(await echoed(harness, subscriber.port, bytes)).toBe(hashOf(bytes));
    expect(lastPath(subscriber.program)).toMatchObject({ path: 'relay', reason: 'off' });
    expect(lastPath(program)).toMatchObject({ path: 'relay', reason: 'off' });
    const { peers, total } = await peersOf(stack, tunnelId);
    expect([total, peers[0]]).toMatchObject([1, { path: 'relay', reason: 'off', service: 'tcp', direct_bytes: 0 }]);
    expect(peers[0]?.['relayed_bytes']).toBeGreaterThan(2 * SIZE);
    await eventually(async () => expect((await stack.tunnel(tunnelId))?.bytes_proxied).toBeGreaterThan(2 * SIZE));
  });

  it('24 MB pass both ways over the direct path byte for byte, with almost no bytes on the relay', async ({
    harness,
  }) => {
    const echo = harness.use(await startEchoServer());
    const publisher = await publish(harness, stack, 'direct', echo.port);
    const subscriber = await connectTo(harness, stack, 'direct');
    await becomesDirect(publisher.program, subscriber.program);
    const bytes = deterministicBytes(SIZE, 2);
    expect(await echoed(harness, subscriber.port, bytes)).toBe(hashOf(bytes));
    await eventually(
      async () => {
        const { peers } = await peersOf(stack, publisher.tunnelId);
        expect(peers[0]).toMatchObject({ path: 'direct', reason: '', rtt_ms: expect.any(Number) });
        expect(peers[0]?.['direct_bytes']).toBeGreaterThan(2 * SIZE);
        expect(peers[0]?.['relayed_bytes']).toBeLessThan(MB);
      },
      { timeoutMs: 15_000 },
    );
  });

  it('a client without the direct transport stays on the relay and reports the reason', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const folder = await harness.folder();
    const bin = join(folder, 'launch.cjs');
    // A copy outside node_modules simulates a system without a build of the transport.
    cpSync(join(ROOT, 'apps/cli/dist'), folder, { recursive: true });
    const publisher = await publish(harness, stack, 'no-transport', echo.port);
    const subscriber = await connectTo(harness, stack, 'no-transport', { bin, programs: true });
    await eventually(() => {
      for (const program of [publisher.program, subscriber.program]) {
        expect(lastPath(program)).toMatchObject({ path: 'relay', reason: 'no-transport' });
      }
    });
    expect(await echoed(harness, subscriber.port, Buffer.from('hello'))).toBe(hashOf(Buffer.from('hello')));
  });

  it('a download on the direct path ends within 2 s after the tunnel was deleted', async ({ harness }) => {
    const timers = new Set<NodeJS.Timeout>();
    const endless = harness.use(
      await startTcpServer((socket) => {
        const timer = setInterval(() => socket.write(Buffer.alloc(1000)), 20);
        timers.add(timer);
        socket.on('close', () => clearInterval(timer));
      }),
    );
    const publisher = await publish(harness, stack, 'deleted', endless.port);
    const subscriber = await connectTo(harness, stack, 'deleted');
    await becomesDirect(publisher.program, subscriber.program);
    const socket = dial(harness, subscriber.port);
    await new Promise((resolve) => socket.once('data', resolve));
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const began = performance.now();
    expect((await stack.api(`/api/tunnels/${publisher.tunnelId}`, { method: 'DELETE' })).status).toBe(204);
    await closed;
    // Two seconds, plus a tolerance for a busy machine. Without the deletion the download would never end.
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await publisher.program.exitCode()).toBe(4);
    for (const timer of timers) clearInterval(timer);
  });

  it('a dismissed peer loses its connections and cannot rejoin for a while', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const publisher = await publish(harness, stack, 'dismissed', echo.port);
    const subscriber = await connectTo(harness, stack, 'dismissed');
    const socket = dial(harness, subscriber.port);
    socket.write('hello');
    await new Promise((resolve) => socket.once('data', resolve));
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    const [peer] = (await peersOf(stack, publisher.tunnelId)).peers;
    const path = `/api/tunnels/${publisher.tunnelId}/peers/${String(peer?.['peer_id'])}`;
    expect((await stack.api(path, { method: 'DELETE' })).status).toBe(204);
    await closed;
    await eventually(() => {
      expect(subscriber.program.events('error').map(({ code }) => code)).toEqual(['P2P_DISMISSED', 'P2P_NOT_FOUND']);
      expect(publisher.program.events('peer').at(-1)).toMatchObject({ state: 'gone', reason: 'dismissed' });
    });
  });
});

it('kill -9 of the edge costs a direct download no byte, and the peer is listed again after the restart', async ({
  harness,
}) => {
  const own = await harness.stack({ fixedPorts: true, programs: true });
  const bytes = deterministicBytes(64 * MB, 3);
  const service = harness.use(await startDownload(bytes));
  const publisher = await publish(harness, own, 'survivor', service.port);
  const subscriber = await connectTo(harness, own, 'survivor');
  await becomesDirect(publisher.program, subscriber.program);
  const socket = dial(harness, subscriber.port);
  const hash = createHash('sha256');
  let taken = 0;
  const take = async (until: number): Promise<void> => {
    for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
      hash.update(chunk as Buffer);
      taken += (chunk as Buffer).length;
      if (taken >= until) return;
    }
  };
  // Unread bytes wait at the service, so the download lasts as long as the test needs.
  await take(4 * MB);
  await own.kill();
  await publisher.program.waitFor('reconnecting');
  await subscriber.program.waitFor('reconnecting');
  await take(8 * MB);
  await own.start();
  await publisher.program.waitFor('reconnected');
  await eventually(
    async () => {
      const tunnel = (await own.tunnels()).find(({ protocol }) => protocol === 'p2p');
      expect((await peersOf(own, tunnel?.tunnel_id ?? '')).peers).toMatchObject([{ path: 'direct' }]);
    },
    { timeoutMs: 40_000 },
  );
  await take(Number.POSITIVE_INFINITY);
  expect([taken, hash.digest('hex')]).toEqual([bytes.length, hashOf(bytes)]);
});

it('a UDP service is reachable over the relay and over the direct path', async ({ harness }) => {
  const echo = harness.use(await startUdpEcho());
  for (const flags of [['--udp', '--no-direct'], ['--udp']]) {
    const name = `udp-${flags.length}`;
    const publisher = await publish(harness, stack, name, echo.port, { flags });
    const subscriber = await connectTo(harness, stack, name, { flags });
    if (flags.length === 1) await becomesDirect(publisher.program, subscriber.program);
    const visitor = harness.use(await UdpVisitor.of(subscriber.port));
    expect(String(await visitor.askUntilAnswered('hello'))).toBe('hello');
    expect(lastPath(subscriber.program)).toMatchObject({ path: flags.length === 1 ? 'direct' : 'relay' });
  }
});

describe('refused starts of `tunnel p2p connect`', () => {
  it('a service of another kind ends the client with 4, and a local port in use with 2', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    await publish(harness, stack, 'refused', echo.port);
    const other = await startConnect(harness, stack, 'refused', { flags: ['--udp'] });
    expect(await other.exitCode()).toBe(4);
    expect(other.stderr[0]).toBe("tunnel: refused: 'refused' is a tcp service");
    const taken = await startConnect(harness, stack, 'refused', {}, String(echo.port));
    expect(await taken.exitCode()).toBe(2);
    expect(taken.stderr[0]).toContain(`port ${echo.port} on 127.0.0.1 is already in use (listen_port)`);
  });
});
