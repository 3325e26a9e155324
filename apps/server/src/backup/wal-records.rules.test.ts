import { describe, expect, it } from 'vitest';
import { isSegment, transactionEnds } from './wal-records.rules.ts';

const SEGMENT_BYTES = 16 * 1024 * 1024;
const PAGE_BYTES = 8192;
const EPOCH_MS = Date.UTC(2000, 0, 1);
const COMMIT = 0x00;
const ABORT = 0x20;
const SEGMENT = { timeline: 1, number: 3 };

/** Writes a segment record by record, with the page headers of PostgreSQL. */
class SegmentWriter {
  readonly bytes = new Uint8Array(SEGMENT_BYTES);
  readonly #view = new DataView(this.bytes.buffer);
  #at = 0;

  constructor(continuedBytes = 0) {
    this.#head(continuedBytes);
    for (let left = continuedBytes; left > 0; left -= 1) this.#byte(0xee, left);
    this.#align();
  }

  #head(continuedBytes: number): void {
    const isLong = this.#at === 0;
    this.#view.setUint16(this.#at, 0xd118, true);
    this.#view.setUint16(this.#at + 2, (isLong ? 2 : 0) | (continuedBytes > 0 ? 1 : 0), true);
    this.#view.setUint32(this.#at + 4, SEGMENT.timeline, true);
    this.#view.setBigUint64(this.#at + 8, BigInt(SEGMENT.number * SEGMENT_BYTES + this.#at), true);
    this.#view.setUint32(this.#at + 16, continuedBytes, true);
    this.#at += isLong ? 40 : 24;
  }

  #byte(value: number, left: number): void {
    if (this.#at % PAGE_BYTES === 0) this.#head(left);
    this.bytes[this.#at] = value;
    this.#at += 1;
  }

  #align(): void {
    this.#at = Math.ceil(this.#at / 8) * 8;
  }

  /** Writes a record whose data begins with a time, and returns its position. */
  record(manager: number, info: number, atMs: number, dataBytes = 8, origin = false): number {
    if (this.#at % PAGE_BYTES === 0) this.#head(0);
    const start = this.#at;
    const isLong = dataBytes > 255;
    const data = new Uint8Array(24 + (origin ? 3 : 0) + (isLong ? 5 : 2) + dataBytes);
    const view = new DataView(data.buffer);
    view.setUint32(0, data.length, true);
    data[16] = info;
    data[17] = manager;
    let at = 24;
    if (origin) {
      data[at] = 253;
      at += 3;
    }
    data[at] = isLong ? 254 : 255;
    if (isLong) view.setUint32(at + 1, dataBytes, true);
    else data[at + 1] = dataBytes;
    at += isLong ? 5 : 2;
    if (dataBytes >= 8) view.setBigInt64(at, BigInt(atMs - EPOCH_MS) * 1000n + 7n, true);
    for (const [index, value] of data.entries()) this.#byte(value, data.length - index);
    this.#align();
    return start;
  }
}

const T = Date.UTC(2026, 10, 19, 1, 2, 3, 456);
const times = (writer: SegmentWriter): number[] => [...transactionEnds(writer.bytes, SEGMENT)].map(({ at }) => at);

describe('the ends of transactions in a segment', () => {
  it('are its commits and aborts, with their time and position', () => {
    const writer = new SegmentWriter();
    writer.record(10, 0x30, T + 1);
    const commit = writer.record(1, COMMIT | 0x80, T + 2);
    writer.record(1, 0x50, T + 3);
    writer.record(1, ABORT, T + 4, 40, true);
    expect([...transactionEnds(writer.bytes, SEGMENT)]).toEqual([
      { lsn: BigInt(SEGMENT.number * SEGMENT_BYTES + commit), at: T + 2 },
      { lsn: expect.any(BigInt), at: T + 4 },
    ]);
  });

  it('are found behind records that cross pages, at every position of a page', () => {
    for (let padding = 8; padding <= 200; padding += 8) {
      const writer = new SegmentWriter();
      writer.record(10, 0, T, PAGE_BYTES - 300 + padding);
      writer.record(1, COMMIT, T + 1);
      writer.record(10, 0, T, 3 * PAGE_BYTES);
      writer.record(1, COMMIT, T + 2, 400);
      expect(times(writer)).toEqual([T + 1, T + 2]);
    }
  });

  it('are found behind the rest of a record of the previous segment', () => {
    for (const rest of [1, 100, PAGE_BYTES - 40, 3 * PAGE_BYTES]) {
      const writer = new SegmentWriter(rest);
      writer.record(1, COMMIT, T);
      expect(times(writer)).toEqual([T]);
    }
  });

  it('do not include a record that continues in the next segment', () => {
    const writer = new SegmentWriter();
    writer.record(1, COMMIT, T);
    const view = new DataView(writer.bytes.buffer);
    const next = writer.record(1, COMMIT, T + 1);
    view.setUint32(next, SEGMENT_BYTES, true);
    expect(times(writer)).toEqual([T]);
  });

  it('of random bytes never fail', () => {
    const bytes = new Uint8Array(SEGMENT_BYTES);
    for (let seed = 1; seed < 50; seed += 1) {
      let value = seed;
      for (let at = 0; at < 4 * PAGE_BYTES; at += 1) {
        value = (value * 1_103_515_245 + 12_345) % 2_147_483_648;
        bytes[at] = value >> 16;
      }
      expect([...transactionEnds(bytes, SEGMENT)].length).toBeGreaterThanOrEqual(0);
    }
  });
});

it('a segment is recognized by its size and position', () => {
  const { bytes } = new SegmentWriter();
  expect(isSegment(bytes, SEGMENT)).toBe(true);
  expect(isSegment(bytes, { ...SEGMENT, number: 4 })).toBe(false);
  expect(isSegment(bytes.subarray(0, -1), SEGMENT)).toBe(false);
  expect(isSegment(new Uint8Array(SEGMENT_BYTES), SEGMENT)).toBe(false);
});

it('the first segment of a timeline begins with pages of an earlier timeline, but never of a later timeline', () => {
  const { bytes } = new SegmentWriter();
  expect(isSegment(bytes, { ...SEGMENT, timeline: 2 })).toBe(true);
  new DataView(bytes.buffer).setUint32(4, 3, true);
  expect(isSegment(bytes, { ...SEGMENT, timeline: 2 })).toBe(false);
});
