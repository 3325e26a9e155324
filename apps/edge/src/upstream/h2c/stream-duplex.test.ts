// A stream of a session as a Node.js Duplex: all bytes, half-close, back-pressure, and both ways to end it at once.
import { once } from 'node:events';
import type { MuxStream } from '@tunnel/mux';
import { deterministicBytes, endPair, eventually, hashOf, RecordingReader, rethrow } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StreamDuplex } from './stream-duplex.ts';

const MiB = 1024 * 1024;

describe.each(['stream-plain', 'stream-tls'] as const)('a duplex over a %s', (kind) => {
  let duplex: StreamDuplex;
  let peer: RecordingReader;
  let other: Awaited<ReturnType<typeof endPair>>['b'];
  let close: () => void;
  let counted: [number, number];

  beforeEach(async () => {
    const pair = await endPair(kind);
    counted = [0, 0];
    const count = (written: number, read: number): void => {
      counted[0] += written;
      counted[1] += read;
    };
    duplex = new StreamDuplex(pair.a as MuxStream, count, rethrow);
    duplex.on('error', () => {});
    other = pair.b;
    peer = new RecordingReader(other);
    close = pair.close;
  });
  afterEach(() => {
    duplex.destroy();
    close();
  });

  it('carries bytes and the end of the stream in both directions', async () => {
    const sent = deterministicBytes(3 * MiB + 1, 1);
    const back = deterministicBytes(2 * MiB + 5, 2);
    const received: Buffer[] = [];
    duplex.on('data', (chunk: Buffer) => received.push(chunk));
    for (let at = 0; at < sent.length; at += 70_001) duplex.write(sent.subarray(at, at + 70_001));
    duplex.end();
    other.write(back, 0, back.length, false);
    await eventually(() => expect([peer.bytes, peer.ended]).toEqual([sent.length, true]));
    other.end();
    await once(duplex, 'close');
    expect([peer.digest(), hashOf(Buffer.concat(received))]).toEqual([hashOf(sent), hashOf(back)]);
    expect(counted).toEqual([sent.length, back.length]);
    expect(peer.reset).toBeNull();
  });

  it('makes the writer wait while its peer does not read, and continues afterwards', async () => {
    peer.stalled = true;
    const piece = Buffer.alloc(64 * 1024);
    let written = 0;
    while (written < 64 * MiB) {
      written += piece.length;
      if (!duplex.write(piece)) {
        const drained = await Promise.race([
          once(duplex, 'drain').then(() => true),
          new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 300)),
        ]);
        if (!drained) break;
      }
    }
    expect(written).toBeLessThan(32 * MiB);
    peer.goOn();
    await eventually(() => expect(peer.bytes).toBe(written));
  });

  it('buffers less than 2 MiB while its owner does not read', async () => {
    const bytes = deterministicBytes(20 * MiB, 3);
    other.write(bytes, 0, bytes.length, false);
    await eventually(() => expect(duplex.readableLength).toBeGreaterThan(0));
    let before = -1;
    await eventually(
      () => {
        const seen = before;
        before = duplex.readableLength;
        expect(seen).toBe(before);
      },
      { intervalMs: 100 },
    );
    expect(duplex.readableLength).toBeLessThan(2 * MiB);
    let received = 0;
    duplex.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    await eventually(() => expect(received).toBe(bytes.length));
  });

  it('is destroyed when the peer resets it, and resets the peer when destroyed', async () => {
    other.reset({ code: 'cancelled', text: 'enough' });
    await expect(once(duplex, 'close')).rejects.toThrow('enough');
    const second = await endPair(kind);
    const cut = new StreamDuplex(second.a as MuxStream, () => {}, rethrow);
    const reader = new RecordingReader(second.b);
    cut.on('error', () => {});
    cut.destroy();
    await eventually(() => expect(reader.reset).not.toBeNull());
    second.close();
  });
});

it.each([
  ['h2c.read', 'resume', (duplex: StreamDuplex) => duplex.resume()],
  ['h2c.end', 'end', (duplex: StreamDuplex) => duplex.end()],
  ['h2c.destroy', 'reset', (duplex: StreamDuplex) => duplex.destroy()],
] as const)('a fault at %s ends the duplex and is reported once', async (where, method, act) => {
  const reports: string[] = [];
  const { a, b, close } = await endPair('stream-plain');
  const duplex = new StreamDuplex(
    a as MuxStream,
    () => {},
    (_error, told) => reports.push(told),
  );
  duplex.on('error', () => {});
  // The duplex has paused the stream, so that reading the duplex resumes the stream.
  const bytes = Buffer.alloc(4 * MiB);
  b.write(bytes, 0, bytes.length, false);
  await eventually(() => expect(duplex.readableLength).toBeGreaterThan(duplex.readableHighWaterMark / 2));
  vi.spyOn(a, method).mockImplementationOnce(() => {
    throw new Error('raised on purpose');
  });
  const closed = new Promise((resolve) => duplex.once('close', resolve));
  act(duplex);
  await closed;
  expect(reports).toEqual([where]);
  close();
});
