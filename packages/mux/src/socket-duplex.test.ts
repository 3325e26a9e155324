import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { deterministicBytes, eventually, hashOf, RecordingReader, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { allowStaticReads } from './node-internals.ts';
import { adoptSocket } from './socket-duplex.ts';

const CUT = { code: 'cancelled', text: 'cut off' } as const;

let server: Server;
let accepted: Socket;
let peer: Socket;
let peerErrors: string[];
let isClosed: boolean;

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  [accepted] = (await once(server, 'connection')) as [Socket];
  peerErrors = [];
  peer.on('error', (error: NodeJS.ErrnoException) => peerErrors.push(String(error.code)));
  peer.resume();
  isClosed = false;
  accepted.on('close', () => {
    isClosed = true;
  });
});
afterEach(() => {
  peer.destroy();
  server.close();
});

/** Node tells of a close when the descriptor is given back, and not before. */
const descriptorIsGivenBack = () => eventually(() => expect(isClosed).toBe(true));

it('a reset right behind an end gives the descriptor back, and the peer sees that it was cut off', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
  peer.write('anybody there?');
  await eventually(() => expect(peerErrors).toHaveLength(1));
  expect(peerErrors[0]).toMatch(/^(ECONNRESET|EPIPE)$/);
});

it('so does one behind an end that still has bytes to send', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  end.write(Buffer.alloc(100), 0, 100, true);
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
});

it('so does one that comes while the end of the other side does', async () => {
  const end = adoptSocket(accepted);
  new RecordingReader(end);
  peer.end();
  await eventually(() => expect(accepted.readableEnded).toBe(true));
  end.end();
  end.reset(CUT);
  await descriptorIsGivenBack();
});

it.each(['at once', 'later'])('memory that is left %s to who uses it is not read into again', async (when) => {
  const end = adoptSocket(accepted);
  const sent = deterministicBytes(8 << 20, 5);
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let leaves = 0;
  end.read({
    onData: (bytes, start, to, borrowed) => {
      const piece = bytes.subarray(start, to);
      // One that is not borrowed has to be copied in any case.
      kept.push(borrowed ? piece : Buffer.from(piece));
      keptBytes += piece.length;
      if (!borrowed) return true;
      leaves += 1;
      const leave = (): void => end.leaveMemory();
      if (when === 'at once') leave();
      else {
        setImmediate(() => {
          leave();
          end.resume();
        });
      }
      return when === 'at once';
    },
    onDrain: () => {},
    onEnd: () => {},
    onReset: () => {},
    abandon: rethrow,
  });
  peer.write(sent);
  await eventually(() => expect(keptBytes).toBe(sent.length));
  expect(leaves).toBeGreaterThan(1);
  expect(hashOf(Buffer.concat(kept))).toBe(hashOf(sent));
});

it.each([true, false])(
  'one that is given away reads as any stream does, and again statically (reads of our own: %s)',
  async (isStatic) => {
    allowStaticReads(isStatic);
    try {
      const end = adoptSocket(accepted);
      const reader = new RecordingReader(end);
      peer.write('first');
      await eventually(() => expect(reader.bytes).toBe(5));
      const socket = end.release() as Socket;
      expect([socket, end.release()]).toEqual([accepted, null]);
      peer.write('second');
      socket.unshift(Buffer.from('kept, then '));
      let heard = '';
      const hear = (chunk: Buffer): void => {
        heard += String(chunk);
      };
      socket.on('data', hear).resume();
      await eventually(() => expect(heard).toBe('kept, then second'));
      // In its turn, and not sooner.
      socket.pause();
      peer.write('third');
      socket.off('data', hear);
      const again = adoptSocket(socket);
      expect(again.readPath).toBe(isStatic ? 'static' : 'fallback');
      const sent = deterministicBytes(3 << 20, 9);
      peer.write(sent);
      const last = new RecordingReader(again);
      await eventually(() => expect(last.bytes).toBe(5 + sent.length));
      expect(last.digest()).toBe(hashOf(Buffer.concat([Buffer.from('third'), sent])));
      peer.end();
      await eventually(() => expect(last.ended).toBe(true));
      expect(reader.bytes).toBe(5);
      again.reset(CUT);
      await descriptorIsGivenBack();
    } finally {
      allowStaticReads(true);
    }
  },
);
