// Guarantees of a socket's duplex beyond ByteDuplex, on a bare handle and on a net.Socket: descriptors, memory and release.
import { once } from 'node:events';
import { type AddressInfo, connect, type Server, type Socket } from 'node:net';
import { deterministicBytes, eventually, hashOf, RecordingReader, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { HandleDuplex } from '../native/handle-duplex.ts';
import { allowStaticReads } from '../native/node-internals.ts';
import { type AcceptedSocket, acceptingServer, adoptAccepted } from './accept-sockets.ts';
import { adoptSocket } from './socket-duplex.ts';

const CUT = { code: 'cancelled', text: 'cut off' } as const;

describe.each(['handle', 'static', 'fallback'] as const)('a duplex on a %s', (kind) => {
  let server: Server;
  let accepted: AcceptedSocket;
  let peer: Socket;
  let peerErrors: string[];
  let closes: number;
  let became: Socket | null;

  beforeEach(async () => {
    // Handles are chosen when the server starts to listen; the kind of reads is chosen when a socket is adopted.
    allowStaticReads(kind === 'handle');
    let take: (socket: AcceptedSocket) => void = () => {};
    const arrival = new Promise<AcceptedSocket>((resolve) => {
      take = resolve;
    });
    server = acceptingServer({
      keepAliveMs: 60_000,
      take: (socket) => take(socket),
      report: rethrow,
      where: 'test.connection',
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    allowStaticReads(kind !== 'fallback');
    const { port } = server.address() as AddressInfo;
    peer = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    peerErrors = [];
    peer.on('error', (error: NodeJS.ErrnoException) => peerErrors.push(String(error.code)));
    accepted = await arrival;
    expect(accepted instanceof HandleDuplex).toBe(kind === 'handle');
    peer.resume();
    closes = 0;
    became = null;
    const onClosed = (): void => {
      closes += 1;
    };
    if (accepted instanceof HandleDuplex) {
      accepted.heldBy({
        onClosed,
        onBecame: (socket) => {
          became = socket;
        },
      });
    } else accepted.on('close', onClosed);
  });
  afterEach(() => {
    allowStaticReads(true);
    peer.destroy();
    server.close();
  });

  /** Waits until the descriptor is closed. A net.Socket may report the close twice. */
  const descriptorIsGivenBack = () =>
    eventually(() => expect([closes > 0, kind !== 'handle' || closes === 1]).toEqual([true, true]));

  it('closes the descriptor for a reset right behind an end, which the peer sees as a reset', async () => {
    const end = adoptAccepted(accepted);
    new RecordingReader(end);
    end.end();
    end.reset(CUT);
    await descriptorIsGivenBack();
    peer.write('anybody there?');
    await eventually(() => expect(peerErrors).toHaveLength(1));
    expect(peerErrors[0]).toMatch(/^(ECONNRESET|EPIPE)$/);
  });

  it('closes the descriptor for a reset behind an end with unsent bytes', async () => {
    const end = adoptAccepted(accepted);
    new RecordingReader(end);
    end.write(Buffer.alloc(100), 0, 100, true);
    end.end();
    end.reset(CUT);
    await descriptorIsGivenBack();
  });

  it('closes the descriptor for a reset that coincides with the end of the peer', async () => {
    const end = adoptAccepted(accepted);
    const reader = new RecordingReader(end);
    peer.end();
    await eventually(() => expect(reader.ended).toBe(true));
    end.end();
    end.reset(CUT);
    await descriptorIsGivenBack();
  });

  it.each(['we', 'the peer'])('closes the descriptor once both directions have ended, %s first', async (first) => {
    const end = adoptAccepted(accepted);
    const reader = new RecordingReader(end);
    let flushed = 0;
    const finish = (): void =>
      end.end(() => {
        flushed += 1;
      });
    end.write(Buffer.from('all of it'), 0, 9, false);
    if (first === 'we') finish();
    else peer.end();
    await eventually(() => expect([flushed, reader.ended]).toEqual(first === 'we' ? [1, false] : [0, true]));
    expect(closes).toBe(0);
    if (first === 'we') peer.end();
    else finish();
    await descriptorIsGivenBack();
    await eventually(() => expect([flushed, reader.ended, reader.reset, peer.bytesRead]).toEqual([1, true, null, 9]));
    expect(peerErrors).toEqual([]);
  });

  it('reports a peer that vanished during writes as one reset, after the write call', async () => {
    const end = adoptAccepted(accepted);
    const reader = new RecordingReader(end);
    reader.stalled = true;
    peer.write('x');
    await eventually(() => expect(reader.bytes).toBe(1));
    peer.resetAndDestroy();
    await eventually(() => expect(end.hasLostPeer).toBe(true));
    end.write(Buffer.from('hello'), 0, 5, false);
    end.write(Buffer.from('again'), 0, 5, false);
    expect(reader.reset).toBeNull();
    await eventually(() => expect(reader.reset?.text).toMatch(/^(ECONNRESET|EPIPE)$/));
    await descriptorIsGivenBack();
    expect(end.write(Buffer.from('to nobody'), 0, 9, false)).toBe(true);
  });

  it('counts queued bytes and the bytes that the kernel has taken', async () => {
    const end = adoptAccepted(accepted);
    new RecordingReader(end);
    peer.pause();
    const piece = Buffer.alloc(1 << 20);
    while (end.write(piece, 0, piece.length, false));
    end.write(piece, 0, 1000, false);
    const waiting = end.queuedBytes;
    expect(waiting).toBeGreaterThan(1000);
    const taken = end.takenBytes;
    peer.resume();
    await eventually(() => expect(end.queuedBytes).toBe(0));
    expect(end.takenBytes).toBeGreaterThan(taken);
    end.reset(CUT);
  });

  it('does not ask for more bytes after a reset with unsent bytes', async () => {
    const end = adoptAccepted(accepted);
    const reader = new RecordingReader(end);
    peer.pause();
    const piece = Buffer.alloc(1 << 20);
    while (end.write(piece, 0, piece.length, false));
    end.reset(CUT);
    await descriptorIsGivenBack();
    expect([reader.drains, reader.reset]).toEqual([0, null]);
  });

  it('delivers all written bytes when detached', async () => {
    const end = adoptAccepted(accepted);
    new RecordingReader(end);
    const bytes = deterministicBytes(100_000, 2);
    let heard = 0;
    peer.on('data', (chunk: Buffer) => {
      heard += chunk.length;
    });
    end.write(bytes, 0, bytes.length, false);
    end.end(() => end.detach());
    await eventually(() => expect([heard, peer.readableEnded]).toEqual([bytes.length, true]));
    await descriptorIsGivenBack();
    expect(peerErrors).toEqual([]);
  });

  it.skipIf(kind === 'fallback').each(['at once', 'later'])(
    'does not read again into memory that its reader keeps (released %s)',
    async (when) => {
      const end = adoptAccepted(accepted);
      const sent = deterministicBytes(8 << 20, 5);
      const kept: Buffer[] = [];
      let keptBytes = 0;
      let leaves = 0;
      end.read({
        onData: (bytes, start, to, borrowed) => {
          const piece = bytes.subarray(start, to);
          // Bytes that are not borrowed must be copied in any case.
          kept.push(borrowed ? piece : Buffer.from(piece));
          keptBytes += piece.length;
          if (!borrowed) return true;
          leaves += 1;
          const leave = (): void => end.abandonReadBuffer();
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
      end.reset(CUT);
    },
  );

  it('reads like an ordinary stream after release(), and statically once adopted again', async () => {
    const end = adoptAccepted(accepted);
    const reader = new RecordingReader(end);
    peer.write('first');
    await eventually(() => expect(reader.bytes).toBe(5));
    const socket = end.release() as Socket;
    expect(end.release()).toBeNull();
    expect(socket).toBe(kind === 'handle' ? became : accepted);
    expect(socket.remotePort).toBe(peer.localPort);
    peer.write('second');
    socket.unshift(Buffer.from('kept, then '));
    let heard = '';
    const hear = (chunk: Buffer): void => {
      heard += String(chunk);
    };
    socket.on('data', hear).resume();
    await eventually(() => expect(heard).toBe('kept, then second'));
    // The third piece arrives after the socket is adopted again, in order.
    socket.pause();
    peer.write('third');
    socket.off('data', hear);
    const again = adoptSocket(socket);
    expect(again.readPath).toBe(kind === 'fallback' ? 'fallback' : 'static');
    const sent = deterministicBytes(3 << 20, 9);
    peer.write(sent);
    const last = new RecordingReader(again);
    await eventually(() => expect(last.bytes).toBe(5 + sent.length));
    expect(last.digest()).toBe(hashOf(Buffer.concat([Buffer.from('third'), sent])));
    peer.end();
    await eventually(() => expect(last.ended).toBe(true));
    expect(reader.bytes).toBe(5);
    if (kind === 'handle') expect(closes).toBe(0);
    again.reset(CUT);
    await descriptorIsGivenBack();
  });
});
