// What one end of a relayed connection does, the other end sees: a visitor of a tcp tunnel and a peer on the relay have the same connection at the edge.
import type { Socket } from 'node:net';
import { deterministicBytes, eventually, hashOf, startTcpServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import { connectTo, publish } from '../p2p.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { endOf, fateOf, readAll, readText, visit } from '../visitor.fixture.ts';

/** More than all windows and buffers of the way hold. */
const BYTES = deterministicBytes(30_000_000, 7);
const HASH = hashOf(BYTES);
const SHORT = Buffer.from(BYTES.subarray(0, 300_000));

/** Opens a way to the service, and gives the local port where visitors enter. */
type OpenDoor = (harness: Harness, stack: Stack, service: number) => Promise<number>;

const doors: readonly [string, OpenDoor][] = [
  [
    'a visitor of a tcp tunnel',
    async (harness, stack, service) => (await (await harness.tcp(stack, service)).ready()).assigned_port,
  ],
  [
    'a peer on the relay',
    async (harness, stack, service) => {
      await publish(harness, stack, 'relayed', service, { flags: ['--no-direct'] });
      return (await connectTo(harness, stack, 'relayed')).port;
    },
  ],
];

/** A service that answers as `serve` says, and keeps its connections for the test. */
const setUp = async (harness: Harness, openDoor: OpenDoor, serve: (socket: Socket) => void) => {
  const arrived: Socket[] = [];
  const service = harness.use(
    await startTcpServer((socket) => {
      socket.on('error', () => {});
      arrived.push(socket);
      serve(socket);
    }),
  );
  // A busy machine may need longer for a transfer than an edge waits by default.
  const stack = await harness.stack({ server: 'drain_secs = 300' });
  const port = await openDoor(harness, stack, service.port);
  const open = async (): Promise<number> => {
    const text = await (await fetch(stack.run.metrics_url)).text();
    return Number(/^tunnel_active_connections (\d+)$/m.exec(text)?.[1]);
  };
  /** A visitor, and its connection at the service. */
  const enter = async (): Promise<{ visitor: Socket; served: Socket }> => {
    const count = arrived.length;
    const visitor = await visit(port);
    await eventually(() => expect(arrived.length).toBeGreaterThan(count));
    return { visitor, served: arrived.at(-1) as Socket };
  };
  return { stack, enter, open };
};

describe.concurrent.each(doors)('%s', (_, openDoor) => {
  it('gets the whole response after ending its side, and a service that ended its side gets the rest', async ({
    harness,
  }) => {
    const { enter } = await setUp(harness, openDoor, () => {});
    const first = await enter();
    first.visitor.end('all of mine');
    expect((await readAll(first.served)).toString()).toBe('all of mine');
    first.served.end(SHORT);
    expect(await readAll(first.visitor)).toEqual(SHORT);
    const second = await enter();
    second.served.end('all of the service');
    expect((await readAll(second.visitor)).toString()).toBe('all of the service');
    second.visitor.end(SHORT);
    expect(await readAll(second.served)).toEqual(SHORT);
  });

  it('that resets is reset at the service, and vice versa; no connection remains', async ({ harness }) => {
    const { enter, open } = await setUp(harness, openDoor, (socket) => void socket.write('hello'));
    const idle = await open();
    for (const side of ['visitor', 'served'] as const) {
      const ends = await enter();
      const other = side === 'visitor' ? ends.served : ends.visitor;
      expect(await readText(ends.visitor, 5)).toBe('hello');
      const seen = endOf(other);
      ends[side].resetAndDestroy();
      expect(await seen).toBe('ECONNRESET');
    }
    await eventually(async () => expect(await open()).toBe(idle));
  });

  it('that reads slowly delays only its own service connection, and gets every byte', async ({ harness }) => {
    const { enter } = await setUp(harness, openDoor, (socket) => void socket.end(BYTES));
    const slow = await enter();
    await eventually(() => expect(slow.served.writableLength).toBeGreaterThan(0));
    const quick = await enter();
    expect(hashOf(await readAll(quick.visitor))).toBe(HASH);
    expect(slow.served.writableLength).toBeGreaterThan(0);
    expect(hashOf(await readAll(slow.visitor))).toBe(HASH);
  });

  it('finishes its transfer while its edge stops', async ({ harness }) => {
    const { stack, enter } = await setUp(harness, openDoor, (socket) => void socket.end(BYTES));
    const { visitor, served } = await enter();
    await eventually(() => expect(served.writableLength).toBeGreaterThan(0));
    const { controlPort } = stack;
    stack.program.signal('SIGTERM');
    await eventually(async () => expect(await fateOf(controlPort)).toBe('ECONNREFUSED'));
    expect(hashOf(await readAll(visitor))).toBe(HASH);
  });

  it('is reset when its edge is killed', async ({ harness }) => {
    const { stack, enter } = await setUp(harness, openDoor, (socket) => void socket.write('hello'));
    const { visitor, served } = await enter();
    expect(await readText(visitor, 5)).toBe('hello');
    const seen = Promise.all([endOf(visitor), endOf(served)]);
    await stack.kill();
    expect(await seen).toEqual(['ECONNRESET', 'ECONNRESET']);
  });
});
