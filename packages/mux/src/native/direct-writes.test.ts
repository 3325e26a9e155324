// Direct writes behave like writes through Node's stream layer, and are used with this Node.js version.
import type { Socket } from 'node:net';
import { eventually, socketPair } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { type DirectWrites, directWrites } from './direct-writes.ts';
import { allowStaticReads } from './node-internals.ts';

const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

const pairOf = async (kind: 'plain' | 'tls') => {
  const [writing, reading] = await socketPair(kind);
  for (const socket of [writing, reading]) open.push(socket.on('error', () => {}));
  let written = 0;
  const writes = directWrites(writing, () => {
    written += 1;
  }) as DirectWrites;
  return { writing, reading, writes, written: () => written };
};

describe.each(['plain', 'tls'] as const)('direct writes, %s', (kind) => {
  it('are used with this Node.js version', async () => {
    expect((await pairOf(kind)).writes).not.toBeNull();
  });

  it('of a small frame arrive, and leave nothing pending', async () => {
    const { reading, writes, written } = await pairOf(kind);
    let text = '';
    reading.on('data', (chunk: Buffer) => {
      text += chunk.toString();
    });
    reading.resume();
    const isFree = writes.write(Buffer.from('hello'));
    await eventually(() => expect([text, writes.pendingBytes]).toEqual(['hello', 0]));
    // TLS accepts every write later, and the kernel takes a small write at once.
    expect([isFree, written()]).toEqual(kind === 'plain' ? [true, 0] : [false, 1]);
  });

  it('of more than the kernel takes are pending until the peer reads, and then report once', async () => {
    const { reading, writes, written } = await pairOf(kind);
    reading.pause();
    const large = Buffer.alloc(32 * 1024 * 1024, 7);
    expect([writes.write(large), writes.pendingBytes, written()]).toEqual([false, large.length, 0]);
    let got = 0;
    reading.on('data', (chunk: Buffer) => {
      got += chunk.length;
    });
    reading.resume();
    await eventually(() => expect([got, writes.pendingBytes, written()]).toEqual([large.length, 0, 1]));
  });

  it('report nothing after the socket was destroyed', async () => {
    const { writing, reading, writes, written } = await pairOf(kind);
    reading.pause();
    writes.write(Buffer.alloc(32 * 1024 * 1024));
    writing.destroy();
    await eventually(() => expect(writing.closed).toBe(true));
    expect([writes.write(Buffer.from('late')), written()]).toEqual([false, 0]);
  });

  it('that fail destroy the socket', async () => {
    const { writing, reading, writes } = await pairOf(kind);
    reading.destroy();
    await eventually(() => {
      if (writes.pendingBytes === 0) writes.write(Buffer.alloc(1024));
      expect(writing.destroyed).toBe(true);
    });
  });
});

it('direct writes are off together with static reads', async () => {
  const [socket, peer] = await socketPair('plain');
  open.push(socket, peer);
  allowStaticReads(false);
  try {
    expect(directWrites(socket, () => {})).toBeNull();
  } finally {
    allowStaticReads(true);
  }
});
