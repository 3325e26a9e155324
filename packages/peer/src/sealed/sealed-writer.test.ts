// Output of the sealed writer: sizes of writes, their order, and unchanged memory until a write has completed.
import { randomBytes } from 'node:crypto';
import { type ByteDuplex, HEAD_ROOM_BYTES } from '@tunnel/mux';
import { FrameParser, WIRE_LIMITS } from '@tunnel/protocol';
import { deterministicBytes, hashOf, rethrow, seededRandom } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { RecordOpener, RecordSealer } from './record-cipher.ts';
import { RecordReader } from './record-reader.ts';
import { PEER_SEND_QUEUE_BYTES, RECORD_KIND, SealedWriter } from './sealed-writer.ts';

const BLOCK = WIRE_LIMITS.FRAME_DATA_MAX_BYTES;
const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

/** A duplex that behaves like a slow socket: the memory of a write is in use until drain(). */
class SlowDuplex implements ByteDuplex {
  readonly written: Buffer[] = [];
  isSlow = false;
  #inUse: { readonly view: Buffer; readonly before: Buffer } | null = null;

  write(bytes: Buffer, start: number, end: number): boolean {
    expect(this.#inUse).toBeNull();
    expect(start).toBeGreaterThanOrEqual(HEAD_ROOM_BYTES);
    const view = bytes.subarray(start, end);
    const before = Buffer.from(view);
    this.written.push(before);
    if (this.isSlow) this.#inUse = { view, before };
    return !this.isSlow;
  }

  /** Completes the pending write. Returns false if there was none. */
  drain(): boolean {
    if (this.#inUse === null) return false;
    expect(this.#inUse.view.equals(this.#inUse.before)).toBe(true);
    this.#inUse = null;
    return true;
  }

  read(): void {}
  resume(): void {}
  end(): void {}
  reset(): void {}
}

const begin = () => {
  const key = randomBytes(32);
  const duplex = new SlowDuplex();
  const events = { onReady: () => {}, onStuck: rethrow, abandon: rethrow };
  return { key, duplex, writer: new SealedWriter(duplex, new RecordSealer(key), events) };
};

/**
 * Opens the written records as the peer does. Returns the bytes of the DATA frames, and the messages with the number of bytes before
 * them.
 */
const opened = (key: Buffer, written: readonly Buffer[]) => {
  const opener = new RecordOpener(key);
  const data: Buffer[] = [];
  const words: [string, number][] = [];
  let bytes = 0;
  const parser = new FrameParser({
    onData: (_id, piece, start, end) => {
      data.push(Buffer.from(piece.subarray(start, end)));
      bytes += end - start;
    },
    onDatagram: rethrow,
    onFrame: rethrow,
  });
  const reader = new RecordReader(
    {
      onRecord: (record, start, end) => {
        const plain = opener.open(record, start, end);
        if (plain[0] === RECORD_KIND.MESSAGE) words.push([plain.subarray(1).toString(), bytes]);
        else expect(parser.push(plain, 1, plain.length)).toBe(true);
        return true;
      },
      onRefusal: () => rethrow(new Error('refused')),
      onOversize: rethrow,
    },
    65_535,
  );
  for (const piece of written) reader.push(piece, 0, piece.length);
  return { data: Buffer.concat(data), words };
};

it('the writer is full above its queue limit, even for a small frame, and never starts two writes at once', () => {
  const { key, duplex, writer } = begin();
  duplex.isSlow = true;
  const bytes = Buffer.from(deterministicBytes(BLOCK, 3));
  writer.sendData(3, bytes, 0, bytes.length);
  expect([duplex.written.length, writer.isFull(1)]).toEqual([1, false]);
  let sent = 1;
  while (writer.queuedBytes <= PEER_SEND_QUEUE_BYTES) {
    writer.sendData(3, bytes, 0, bytes.length);
    sent += 1;
  }
  writer.flush();
  expect([duplex.written.length, writer.isFull(1)]).toEqual([1, true]);
  duplex.isSlow = false;
  duplex.drain();
  writer.onDrain();
  writer.flush();
  expect(writer.isFull(1)).toBe(false);
  expect(opened(key, duplex.written).data).toHaveLength(sent * bytes.length);
});

describe('bulk data', () => {
  it('leaves in one write per full read, sized for one relay frame, and the rest with the next', async () => {
    const { key, duplex, writer } = begin();
    const bytes = Buffer.from(deterministicBytes(BLOCK, 1));
    for (let count = 0; count < 20; count += 1) writer.sendData(3, bytes, 0, bytes.length);
    expect(duplex.written).toHaveLength(20);
    for (const { length } of duplex.written) expect(length).toBeLessThanOrEqual(BLOCK);
    await nextTurn();
    expect(duplex.written).toHaveLength(21);
    const { data } = opened(key, duplex.written);
    expect(hashOf(data)).toBe(hashOf(Buffer.concat(Array.from({ length: 20 }, () => bytes))));
  });

  it('shares its first record with small frames of the same turn', () => {
    const { key, duplex, writer } = begin();
    const bytes = Buffer.from(deterministicBytes(20_000, 2));
    writer.sendData(3, bytes, 0, 100);
    writer.sendData(3, bytes, 100, 20_000);
    expect(duplex.written).toHaveLength(1);
    expect(duplex.written[0]?.readUInt16BE(0)).toBe((duplex.written[0]?.length ?? 0) - 2);
    expect(opened(key, duplex.written).data.equals(bytes)).toBe(true);
  });
});

it.each(Array.from({ length: 20 }, (_, run) => run))(
  'run %i: all bytes arrive in order, whatever is sent and however slow the duplex is',
  async (run) => {
    const random = seededRandom(run);
    const { key, duplex, writer } = begin();
    const source = Buffer.from(deterministicBytes(600_000, run));
    const sent: Buffer[] = [];
    const words: [string, number][] = [];
    let bytes = 0;
    for (let step = 0; step < 60; step += 1) {
      duplex.isSlow = random() < 0.4;
      const kind = random();
      if (kind < 0.15) {
        writer.sendMessage(Buffer.from(`word ${step}`));
        words.push([`word ${step}`, bytes]);
      } else {
        const length = kind < 0.5 ? Math.floor(random() * 3000) : Math.floor(random() * BLOCK) + 1;
        const start = Math.floor(random() * (source.length - length));
        // The caller may reuse its memory as soon as sendData() returns, so the test overwrites the bytes.
        const memory = Buffer.from(source.subarray(start, start + length));
        writer.sendData(7, memory, 0, length);
        memory.fill(0);
        sent.push(source.subarray(start, start + length));
        bytes += length;
      }
      if (random() < 0.3) await nextTurn();
      if (random() < 0.6 && duplex.drain()) writer.onDrain();
    }
    duplex.isSlow = false;
    for (let turn = 0; turn < 3; turn += 1) {
      if (duplex.drain()) writer.onDrain();
      await nextTurn();
    }
    const got = opened(key, duplex.written);
    expect(hashOf(got.data)).toBe(hashOf(Buffer.concat(sent)));
    expect(got.words).toEqual(words);
    expect(writer.queuedBytes).toBe(0);
  },
);
