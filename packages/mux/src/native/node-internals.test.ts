// Private parts of Node.js found in the installed version, and the fallbacks for missing parts. A change inside Node.js must fail these
// tests instead of causing CPU cost, a truncated transfer or a leaked descriptor.
import { once } from 'node:events';
import type * as net from 'node:net';
import { carrierPair, endPair, eventually, socketPair } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { adoptSocket, type SocketDuplex } from '../socket/socket-duplex.ts';
import {
  allowStaticReads,
  confirmEnd,
  dialStatically,
  readStatically,
  readThroughScratch,
  resetSafely,
  type StaticReader,
  takenBytes,
  unsentBytes,
} from './node-internals.ts';

const open: net.Socket[] = [];
afterEach(() => {
  allowStaticReads(true);
  for (const socket of open.splice(0)) socket.destroy();
});

const pair = async (kind: 'plain' | 'tls' = 'plain'): Promise<[net.Socket, net.Socket]> => {
  const sockets = await socketPair(kind);
  for (const socket of sockets) socket.on('error', () => {});
  open.push(...sockets);
  return sockets;
};

/** Removes a part of the socket's handle, as in a changed Node.js version. */
const without = (socket: net.Socket, part: string): void => {
  const handle = (socket as unknown as { _handle: object })._handle;
  Object.defineProperty(handle, part, { value: undefined, configurable: true });
};

class Collector implements StaticReader {
  readonly memory = Buffer.alloc(1024);
  text = '';
  /** How bytes arrived: in our own memory, or as chunks from Node.js. */
  readonly ways = new Set<string>();

  nextView(): Buffer {
    return this.memory;
  }

  onRead(n: number): boolean {
    this.ways.add('memory');
    this.text += this.memory.toString('latin1', 0, n);
    return true;
  }

  onChunk(chunk: Buffer): boolean {
    this.ways.add('chunk');
    this.text += chunk.toString('latin1');
    return true;
  }
}

describe('static reads', () => {
  it('are active for accepted and for dialed sockets', async () => {
    const { a, b, close } = await endPair('socket');
    expect([(a as SocketDuplex).readPath, (b as SocketDuplex).readPath]).toEqual(['static', 'static']);
    close();
  });

  it.each(['plain', 'tls'] as const)('are active on both ends of a %s carrier', async (kind) => {
    const [accepted, dialled] = await carrierPair(kind);
    expect([accepted.readPath, dialled.readPath]).toEqual(['static', 'static']);
    accepted.destroy('');
    dialled.destroy('');
  });

  it.each(['plain', 'tls'] as const)('deliver the bytes of a %s socket in our own memory', async (kind) => {
    const [accepted, dialled] = await pair(kind);
    const reader = new Collector();
    expect(readStatically(accepted, reader)).toBe('static');
    accepted.resume();
    dialled.write('hello');
    await eventually(() => expect(reader.text).toBe('hello'));
    expect([...reader.ways]).toEqual(['memory']);
  });

  it('lose no bytes that Node.js had read before', async () => {
    const [accepted, dialled] = await pair();
    accepted.unshift(Buffer.from('before '));
    const reader = new Collector();
    expect(readStatically(accepted, reader)).toBe('static');
    dialled.write('and after');
    accepted.resume();
    await eventually(() => expect(reader.text).toBe('before and after'));
    expect([...reader.ways]).toEqual(['chunk', 'memory']);
  });

  it('stop when the reader asks, and continue with resume()', async () => {
    const [accepted, dialled] = await pair();
    const reader = new Collector();
    let stop = true;
    readStatically(accepted, {
      nextView: () => reader.nextView(),
      onChunk: () => true,
      onRead: (n) => reader.onRead(n) && !stop,
    });
    accepted.resume();
    dialled.write('x'.repeat(1024));
    dialled.write('y');
    await eventually(() => expect(reader.text.length).toBeGreaterThanOrEqual(1024));
    const stopped = reader.text;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(reader.text).toBe(stopped);
    stop = false;
    accepted.resume();
    await eventually(() => expect(reader.text).toBe(`${'x'.repeat(1024)}y`));
  });

  it('fall back to ordinary reads when Node.js internals are missing', async () => {
    const [accepted, dialled] = await pair();
    without(accepted, 'useUserBuffer');
    const reader = new Collector();
    expect(readStatically(accepted, reader)).toBe('fallback');
    accepted.resume();
    dialled.write('hello');
    await eventually(() => expect(reader.text).toBe('hello'));
    expect([...reader.ways]).toEqual(['chunk']);
  });

  it('fall back to ordinary reads when switched off', async () => {
    allowStaticReads(false);
    const [accepted, dialled] = await pair();
    expect(adoptSocket(accepted).readPath).toBe('fallback');
    const dial = dialStatically({ host: '127.0.0.1', port: 1 }, new Collector());
    open.push(dial.socket.on('error', () => {}));
    expect(dial.readPath).toBe('fallback');
    dialled.destroy();
  });
});

describe('reads through the scratch buffer', () => {
  /** Size of the memory that Node.js shares between small buffers. Some versions add a few bytes to Buffer.poolSize. */
  const POOL_BYTES = Buffer.from('pooled').buffer.byteLength;

  /** Sends two texts with a pause between them. Returns what an ordinary stream gets, and the sizes of the memory behind its chunks. */
  const readAll = async (kind: 'plain' | 'tls'): Promise<{ text: string; sizes: number[] }> => {
    const [accepted, dialled] = await pair(kind);
    readThroughScratch(accepted);
    const ended = once(accepted, 'end');
    const got = { text: '', sizes: [] as number[] };
    accepted.on('data', (chunk: Buffer) => {
      got.text += chunk.toString('latin1');
      got.sizes.push(chunk.buffer.byteLength);
      accepted.pause();
    });
    accepted.resume();
    dialled.write('first ');
    await eventually(() => expect(got.text).toBe('first '));
    dialled.end('second');
    accepted.resume();
    await eventually(() => expect(got.text).toBe('first second'));
    accepted.resume();
    await ended;
    return got;
  };

  it.each(['plain', 'tls'] as const)('deliver a %s socket to an ordinary stream in pooled copies', async (kind) => {
    const { text, sizes } = await readAll(kind);
    expect(text).toBe('first second');
    expect(sizes).toEqual([POOL_BYTES, POOL_BYTES]);
  });

  it('are ordinary reads when switched off', async () => {
    allowStaticReads(false);
    const { text, sizes } = await readAll('plain');
    expect(text).toBe('first second');
    expect(sizes).not.toContain(POOL_BYTES);
  });
});

describe('confirmEnd', () => {
  /** Sends some bytes and then calls `finish` on the dialed side. Returns the events of the accepted side. */
  const outcome = async (finish: (socket: net.Socket) => void, prepare?: (socket: net.Socket) => void) => {
    const [accepted, dialled] = await pair();
    prepare?.(accepted);
    const told: string[] = [];
    accepted.on('end', () => confirmEnd(accepted, () => told.push('end')));
    accepted.on('error', (error: NodeJS.ErrnoException) => told.push(error.code ?? '?'));
    // Leaves the bytes unread until the hang-up has arrived, the situation in which libuv mistakes a reset for an end.
    dialled.write('last words', () => finish(dialled));
    await new Promise((resolve) => setTimeout(resolve, 30));
    accepted.resume();
    await eventually(() => expect(told).not.toEqual([]));
    return told;
  };

  it('lets a clean end through at once', async () => {
    expect(await outcome((socket) => socket.end())).toEqual(['end']);
  });

  it('tells a reset behind the last bytes from an end', async () => {
    expect(await outcome((socket) => socket.resetAndDestroy())).toEqual(['ECONNRESET']);
  });

  it('trusts the end when the kernel cannot be queried', async () => {
    const told = await outcome(
      (socket) => socket.end(),
      (socket) => without(socket, 'getpeername'),
    );
    expect(told).toEqual(['end']);
  });
});

describe('resetSafely', () => {
  const errorAt = (socket: net.Socket): Promise<string> =>
    new Promise((resolve) => {
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? '?'));
      socket.on('end', () => resolve('end'));
      socket.resume();
    });

  it('resets an open connection', async () => {
    const [accepted, dialled] = await pair();
    const seen = errorAt(dialled);
    resetSafely(accepted);
    expect(await seen).toBe('ECONNRESET');
  });

  it('closes the descriptor of a connection that has already sent an end', async () => {
    const [accepted, dialled] = await pair();
    dialled.resume();
    const handle = (accepted as unknown as { _handle: { fd: number } })._handle;
    expect(handle.fd).toBeGreaterThan(0);
    accepted.end();
    const closed = once(accepted, 'close');
    resetSafely(accepted);
    await closed;
    await eventually(() => expect(handle.fd).toBeLessThan(0));
  });

  it('destroys a TLS connection, which cannot be reset', async () => {
    const [accepted, dialled] = await pair('tls');
    const seen = errorAt(dialled);
    resetSafely(accepted);
    expect(accepted.destroyed).toBe(true);
    expect(await seen).toBe('end');
  });
});

describe('takenBytes', () => {
  it.each(['plain', 'tls'] as const)(
    '%s: grows with the bytes that the peer takes of one write, and stops with the peer',
    async (kind) => {
      const [accepted, dialled] = await pair(kind);
      accepted.write(Buffer.alloc(32 * 1024 * 1024));
      let before = -1;
      const standsStill = () =>
        eventually(
          () => {
            const seen = before;
            before = takenBytes(accepted);
            expect([seen > 0, seen]).toEqual([true, before]);
          },
          { intervalMs: 100 },
        );
      await standsStill();
      const first = takenBytes(accepted);
      expect(first).toBeLessThan(32 * 1024 * 1024);
      dialled.resume();
      await eventually(() => expect(takenBytes(accepted)).toBeGreaterThanOrEqual(32 * 1024 * 1024));
    },
  );

  it('is 0 for a destroyed socket', async () => {
    const [accepted] = await pair();
    accepted.destroy();
    expect(takenBytes(accepted)).toBe(0);
  });
});

describe('unsentBytes', () => {
  it('counts only bytes that the kernel has not taken', async () => {
    const [accepted] = await pair();
    expect(unsentBytes(accepted)).toBe(0);
    accepted.write(Buffer.alloc(32 * 1024 * 1024));
    expect(unsentBytes(accepted)).toBeGreaterThan(0);
  });

  it('is 0 without a handle, or when Node.js does not report the queue', async () => {
    const [accepted] = await pair();
    accepted.write(Buffer.alloc(32 * 1024 * 1024));
    without(accepted, 'writeQueueSize');
    expect(unsentBytes(accepted)).toBe(0);
    accepted.destroy();
    expect(unsentBytes(accepted)).toBe(0);
  });
});
