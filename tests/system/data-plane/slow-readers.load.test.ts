// Tests of bulk transfers in both directions to readers that pause and resume at will, beside readers that leave midway. A reader gets
// exactly the bytes of the right sender, in order, although edge and client constantly reuse buffers.
import type { Socket } from 'node:net';
import { startTcpServer } from '@tunnel/testkit';
import { expect } from 'vitest';
import { it } from '../in-process.fixture.ts';
import { TLS_CERT } from '../stack.fixture.ts';
import { visit } from '../visitor.fixture.ts';

const CONNECTIONS = 8;
/** Number of connections that stay until the end. Every fourth connection leaves midway. */
const STAYING = (CONNECTIONS * 3) / 4;
const TIMEOUT_MS = 120_000;
const EACH_BYTES = 12 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;
const WORD_BYTES = 4;

const wordOf = (sender: number, at: number): number => sender * 2 ** 24 + at / WORD_BYTES;

/** Returns a piece of data with sender and position encoded in every word. */
const pieceOf = (sender: number, from: number): Buffer => {
  const piece = Buffer.allocUnsafe(PIECE_BYTES);
  for (let at = 0; at < PIECE_BYTES; at += WORD_BYTES) piece.writeUInt32LE(wordOf(sender, from + at), at);
  return piece;
};

const send = (socket: Socket, sender: number): void => {
  let sent = 0;
  const more = (): void => {
    while (sent < EACH_BYTES && !socket.destroyed) {
      const isTaken = socket.write(pieceOf(sender, sent));
      sent += PIECE_BYTES;
      if (!isTaken) return;
    }
    if (!socket.destroyed) socket.end();
  };
  socket.on('drain', more);
  more();
};

/**
 * Resolves with the number of bytes received until the connection ended or the reader left. Rejects at the first word of another sender.
 */
const receive = (socket: Socket, sender: number, leavesAt: number): Promise<number> =>
  new Promise((resolve, reject) => {
    let received = 0;
    let rest: Buffer = Buffer.alloc(0);
    let waits = 0;
    socket.on('error', () => {}).on('close', () => resolve(received));
    socket.on('data', (chunk: Buffer) => {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      const whole = bytes.length - (bytes.length % WORD_BYTES);
      for (let at = 0; at < whole; at += WORD_BYTES) {
        if (bytes.readUInt32LE(at) === wordOf(sender, received + at)) continue;
        reject(new Error(`sender ${sender}: at ${received + at} came ${bytes.readUInt32LE(at).toString(16)}`));
        socket.destroy();
        return;
      }
      received += whole;
      rest = bytes.subarray(whole);
      if (received >= leavesAt) socket.resetAndDestroy();
      waits += 1;
      // Every reader pauses in a different rhythm.
      if (waits % (3 + (sender % 5)) !== 0) return;
      socket.pause();
      setTimeout(() => socket.resume(), 1 + (sender % 4));
    });
  });

it.for([
  { carriers: 'plain', tls: false, flags: [] },
  { carriers: 'TLS', tls: true, flags: ['--tls', '--ca-file', TLS_CERT] },
])(
  'readers that pause and resume get exactly the bytes of their own sender, in both directions, while other readers leave: $carriers carriers',
  {
    timeout: TIMEOUT_MS,
  },
  async ({ tls, flags }, { harness }) => {
    const arrived: Promise<number>[] = [];
    const service = harness.use(
      await startTcpServer((socket) => {
        // The first word identifies the sender.
        socket.once('readable', () => {
          const first = socket.read(WORD_BYTES) as Buffer;
          const sender = first.readUInt32LE(0) >>> 24;
          socket.unshift(first);
          arrived.push(receive(socket, sender, Number.POSITIVE_INFINITY));
          send(socket, 128 + sender);
        });
      }),
    );
    const stack = await harness.stack({ tls });
    const tunnel = await harness.tcp(stack, service.port, { flags });
    const { assigned_port: port } = await tunnel.ready();
    const visits = Array.from({ length: CONNECTIONS }, async (_, index) => {
      const leaves = index % 4 === 3;
      const socket = await visit(port);
      const received = receive(socket, 128 + index, leaves ? EACH_BYTES / 3 : Number.POSITIVE_INFINITY);
      send(socket, index);
      return { leaves, received: await received };
    });
    const seen = await Promise.all(visits);
    expect(seen.filter(({ leaves }) => !leaves).map(({ received }) => received)).toEqual(
      Array.from({ length: STAYING }, () => EACH_BYTES),
    );
    const whole = (await Promise.all(arrived)).filter((bytes) => bytes === EACH_BYTES);
    expect(whole.length).toBeGreaterThanOrEqual(STAYING);
  },
);
