// Tests that each end of a relayed connection sees the actions of the other end. A visitor of a TCP tunnel and a peer on the relay have
// the same kind of connection at the edge.
import type { Socket } from 'node:net';
import { deterministicBytes, eventually, hashOf, startTcpServer } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { type Harness, it } from '../in-process.fixture.ts';
import { connectTo, publish } from '../p2p.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import { endOf, fateOf, readAll, readText, visit } from '../visitor.fixture.ts';

/** 30 MB, more than all windows and buffers of the path hold. */
const BYTES = deterministicBytes(30_000_000, 7);
const HASH = hashOf(BYTES);
const SHORT = Buffer.from(BYTES.subarray(0, 300_000));

/** Opens a path to the service, and returns the local port at which visitors connect. */
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

/** Starts a stack and a service that handles connections with `serve`. The connections are recorded for the test. */
const setUp = async (harness: Harness, openDoor: OpenDoor, serve: (socket: Socket) => void) => {
  const arrived: Socket[] = [];
  const service = harness.use(
    await startTcpServer((socket) => {
      socket.on('error', () => {});
      arrived.push(socket);
      serve(socket);
    }),
  );
  // On a busy machine a transfer can take longer than the default drain time of an edge.
  const stack = await harness.stack({ server: 'drain_secs = 300' });
  const port = await openDoor(harness, stack, service.port);
  const open = async (): Promise<number> => {
    const text = await (await fetch(stack.run.metrics_url)).text();
    return Number(/^tunnel_active_connections (\d+)$/m.exec(text)?.[1]);
  };
  /** Connects a visitor, and returns its socket together with the matching connection at the service. */
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
