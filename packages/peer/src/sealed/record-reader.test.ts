import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RecordHandler, RecordReader } from './record-reader.ts';

class Recording implements RecordHandler {
  readonly told: string[] = [];

  onRecord(bytes: Buffer, start: number, end: number): boolean {
    this.told.push(bytes.toString('hex', start, end));
    return true;
  }

  onRefusal(): void {
    this.told.push('refusal');
  }

  onOversize(length: number): void {
    this.told.push(`oversize ${length}`);
  }
}

const framed = (record: Uint8Array): Buffer => {
  const bytes = Buffer.alloc(2 + record.length);
  bytes.writeUInt16BE(record.length);
  bytes.set(record, 2);
  return bytes;
};

describe('the reader of records in a byte stream', () => {
  it('returns records whole and in order, however the stream is split', () => {
    const records = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 });
    fc.assert(
      fc.property(
        records,
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 50 }),
        (given, cuts) => {
          const handler = new Recording();
          const reader = new RecordReader(handler, 300);
          const bytes = Buffer.concat(given.map(framed));
          for (let at = 0, cut = 0; at < bytes.length; cut += 1) {
            const end = Math.min(bytes.length, at + (cuts[cut % cuts.length] ?? 1));
            reader.push(bytes, at, end);
            at = end;
          }
          expect(handler.told).toEqual(given.map((record) => Buffer.from(record).toString('hex')));
        },
      ),
    );
  });

  it.each([
    ['refusal', Buffer.from([0, 0, 9, 9])],
    ['oversize 301', Buffer.from([1, 45, 9, 9])],
  ])('stops at %s', (told, bytes) => {
    const handler = new Recording();
    new RecordReader(handler, 300).push(bytes, 0, bytes.length);
    expect(handler.told).toEqual([told]);
  });

  it('stops inside a piece when its handler asks', () => {
    const handler = new Recording();
    const reader = new RecordReader(
      { ...bound(handler), onRecord: (...args) => handler.onRecord(...args) && false },
      300,
    );
    const bytes = Buffer.concat([framed(Buffer.from('a')), framed(Buffer.from('b'))]);
    reader.push(bytes, 0, bytes.length);
    expect(handler.told).toHaveLength(1);
  });
});

const bound = (handler: Recording): RecordHandler => ({
  onRecord: (bytes, start, end) => handler.onRecord(bytes, start, end),
  onRefusal: () => handler.onRefusal(),
  onOversize: (length) => handler.onOversize(length),
});
