// A common test suite for every ByteDuplex: bare handles, sockets and streams, over plain and TLS carriers, with static and ordinary
// reads.
import { deterministicBytes, type EndKind, endPair, eventually, hashOf, RecordingReader } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { allowStaticReads } from '../native/node-internals.ts';
import type { ByteDuplex } from './byte-duplex.ts';

const KINDS: { kind: EndKind; reads: 'static' | 'fallback' }[] = [
  // Connections on bare handles, with and without the fallback to sockets
  { kind: 'accepted', reads: 'static' },
  { kind: 'accepted', reads: 'fallback' },
  { kind: 'accepted-tls', reads: 'static' },
  { kind: 'socket', reads: 'static' },
  { kind: 'socket', reads: 'fallback' },
  { kind: 'socket-tls', reads: 'static' },
  { kind: 'socket-tls', reads: 'fallback' },
  { kind: 'stream-plain', reads: 'static' },
  { kind: 'stream-plain', reads: 'fallback' },
  { kind: 'stream-tls', reads: 'static' },
  { kind: 'stream-tls', reads: 'fallback' },
];
const MiB = 1024 * 1024;

/** Writes all bytes in steps, and waits for the drain event whenever write() returns false. */
const writeAll = async (end: ByteDuplex, reader: RecordingReader, bytes: Buffer, step: number): Promise<void> => {
  for (let at = 0; at < bytes.length; at += step) {
    const drained = reader.drained();
    if (!end.write(bytes, at, Math.min(bytes.length, at + step), false)) await drained;
  }
};

describe.each(KINDS)('a $kind duplex with $reads reads', ({ kind, reads }) => {
  let a: ByteDuplex;
  let b: ByteDuplex;
  let atA: RecordingReader;
  let atB: RecordingReader;
  let close: () => void;

  beforeEach(async () => {
    allowStaticReads(reads === 'static');
    ({ a, b, close } = await endPair(kind));
    atA = new RecordingReader(a);
    atB = new RecordingReader(b);
  });
  afterEach(() => {
    close();
    allowStaticReads(true);
  });

  it('carries bytes in both directions at once without a change', async () => {
    const one = deterministicBytes(2 * MiB + 17, 1);
    const two = deterministicBytes(1 * MiB + 5, 2);
    await Promise.all([writeAll(a, atA, one, 100_003), writeAll(b, atB, two, 7_919)]);
    await eventually(() => expect([atB.bytes, atA.bytes]).toEqual([one.length, two.length]));
    expect([atB.digest(), atA.digest()]).toEqual([hashOf(one), hashOf(two)]);
  });

  it('writes a large borrowed piece that has no spare room before its first byte', async () => {
    const bytes = deterministicBytes(20_000, 6);
    a.write(bytes, 0, bytes.length, true);
    await eventually(() => expect(atB.bytes).toBe(bytes.length));
    expect(atB.digest()).toBe(hashOf(bytes));
  });

  it('passes a half-close on while the other direction stays open, from both sides', async () => {
    a.write(Buffer.from('question'), 0, 8, false);
    a.end();
    await eventually(() => expect([atB.bytes, atB.ended]).toEqual([8, true]));
    expect(atA.ended).toBe(false);
    b.write(Buffer.from('a late answer'), 0, 13, false);
    b.end();
    await eventually(() => expect([atA.bytes, atA.ended]).toEqual([13, true]));
    expect([atA.reset, atB.reset]).toEqual([null, null]);
  });

  it('sends all bytes written before the end, and reports when they are flushed', async () => {
    const bytes = deterministicBytes(2 * MiB, 3);
    let flushed = false;
    a.write(bytes, 0, bytes.length, false);
    a.end(() => {
      flushed = true;
    });
    await eventually(() => expect([atB.bytes, atB.ended, flushed]).toEqual([bytes.length, true, true]));
    expect(atB.digest()).toBe(hashOf(bytes));
  });

  // A TLS connection cannot be reset: the peer sees an end.
  it.skipIf(kind === 'socket-tls' || kind === 'accepted-tls')('reports a reset as a reset, not as an end', async () => {
    a.write(Buffer.from('x'), 0, 1, false);
    await eventually(() => expect(atB.bytes).toBe(1));
    a.reset({ code: 'cancelled', text: 'enough' });
    await eventually(() => expect(atB.reset).not.toBeNull());
    expect(atB.ended).toBe(false);
    expect(atA.reset).toBeNull();
  });

  // A TLS connection cannot be reset.
  it.skipIf(kind === 'socket-tls' || kind === 'accepted-tls').each(['open', 'ended'])(
    'reports a reset right behind the last bytes as a reset, with its own direction %s',
    async (own) => {
      atB.stalled = true;
      a.write(Buffer.from('cut o'), 0, 5, false);
      await eventually(() => expect(atB.bytes).toBe(5));
      if (own === 'ended') {
        b.end();
        await eventually(() => expect(atA.ended).toBe(true));
      }
      a.write(Buffer.from('ff'), 0, 2, false);
      a.reset({ code: 'cancelled', text: 'enough' });
      // By now both the last bytes and the reset have arrived, but are unread.
      for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      atB.goOn();
      await eventually(() => expect(atB.reset).not.toBeNull());
      expect(atB.ended).toBe(false);
    },
  );

  it('reports an end as an end even if the peer has closed behind it', async () => {
    atB.stalled = true;
    b.write(Buffer.from('never read'), 0, 10, false);
    a.write(Buffer.from('all'), 0, 3, false);
    a.end();
    await eventually(() => expect(atB.bytes).toBe(3));
    b.end();
    await eventually(() => expect([atA.ended, atA.bytes]).toEqual([true, 10]));
    atB.goOn();
    await eventually(() => expect(atB.ended).toBe(true));
    expect([atA.reset, atB.reset]).toEqual([null, null]);
  });

  it('stops the writer when the reader stalls, and continues when the reader does', async () => {
    atB.stalled = true;
    const bytes = deterministicBytes(64 * 1024, 4);
    let written = 0;
    // The limit of 64 MiB is far above the size of all loopback buffers in the kernel.
    while (written < 64 * MiB && a.write(bytes, 0, bytes.length, false)) {
      written += bytes.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    written += bytes.length;
    expect(written).toBeLessThan(64 * MiB);
    atB.goOn();
    await eventually(() => expect([atB.bytes, atA.drains > 0]).toEqual([written, true]));
  });

  it('keeps bytes that are written after write() has asked to stop', async () => {
    atB.stalled = true;
    const bytes = deterministicBytes(8 * MiB, 5);
    for (let at = 0; at < bytes.length; at += 1000) a.write(bytes, at, Math.min(bytes.length, at + 1000), false);
    atB.goOn();
    await eventually(() => expect(atB.bytes).toBe(bytes.length));
    expect(atB.digest()).toBe(hashOf(bytes));
  });
});
