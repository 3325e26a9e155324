import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MUX_LIMITS } from '../limits.ts';
import { BATCH_MAX_BYTES, BATCHED_HEADER_BYTES, DatagramBatch, readBatch } from './datagram-batch.ts';
import { SEALED_KIND } from './sealed-datagram.ts';

const MOST = MUX_LIMITS.DATAGRAM_PATH_PAYLOAD_BYTES;

interface Sent {
  readonly kind: number;
  readonly body: Buffer;
}

const makeBatch = (): { batch: DatagramBatch; sent: Sent[] } => {
  const sent: Sent[] = [];
  return { sent, batch: new DatagramBatch((kind, body) => sent.push({ kind, body: Buffer.from(body) })) };
};

/** Returns the datagrams of a packet as [flow, payload]. */
const datagramsOf = ({ kind, body }: Sent): [number, string][] => {
  if (kind === SEALED_KIND.DATAGRAM) return [[body.readUInt32BE(0), body.toString('hex', 4)]];
  const read: [number, string][] = [];
  expect(readBatch(body, (flow, bytes, start, end) => read.push([flow, bytes.toString('hex', start, end)]))).toBe(true);
  return read;
};

const endOfTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('the datagrams of an event loop turn', () => {
  it('are sent in one packet at the end of the turn', async () => {
    const { batch, sent } = makeBatch();
    batch.add(2, Buffer.from('..one..'), 2, 5);
    batch.add(0xfffffffe, Buffer.alloc(0), 0, 0);
    batch.add(2, Buffer.from('two'), 0, 3);
    expect(sent).toEqual([]);
    await endOfTurn();
    expect(sent.map(({ kind }) => kind)).toEqual([SEALED_KIND.DATAGRAMS]);
    const hex = (text: string): string => Buffer.from(text).toString('hex');
    expect(datagramsOf(sent[0] as Sent)).toEqual([
      [2, hex('one')],
      [0xfffffffe, ''],
      [2, hex('two')],
    ]);
    await endOfTurn();
    expect(sent.length).toBe(1);
  });

  it('are sent without a length if there is only one', async () => {
    const { batch, sent } = makeBatch();
    batch.add(7, Buffer.from('hello'), 0, 5);
    await endOfTurn();
    expect(sent).toEqual([{ kind: SEALED_KIND.DATAGRAM, body: Buffer.from('\0\0\0\x07hello', 'latin1') }]);
  });

  it('are sent at once when another one of the same size would not fit', () => {
    const { batch, sent } = makeBatch();
    batch.add(2, Buffer.alloc(1), 0, 1);
    batch.add(4, Buffer.alloc(MOST, 1), 0, MOST);
    expect(sent.map((each) => datagramsOf(each).map(([flow]) => flow))).toEqual([[2], [4]]);
    expect(sent[1]?.body.length).toBe(BATCH_MAX_BYTES);
  });

  it('arrive whole, once and in order, in packets no larger than the limit', async () => {
    const sizes = fc.oneof(fc.integer({ min: 0, max: MOST }), fc.integer({ min: 0, max: 80 }));
    const datagram = fc.tuple(
      fc.nat(0xfffffffe),
      sizes.chain((length) => fc.uint8Array({ minLength: length, maxLength: length })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(datagram, { maxLength: 60 }), async (given) => {
        const { batch, sent } = makeBatch();
        for (const [flow, bytes] of given) batch.add(flow, Buffer.from(bytes), 0, bytes.length);
        await endOfTurn();
        expect(Math.max(0, ...sent.map(({ body }) => body.length))).toBeLessThanOrEqual(BATCH_MAX_BYTES);
        expect(sent.flatMap(datagramsOf)).toEqual(given.map(([flow, b]) => [flow, Buffer.from(b).toString('hex')]));
      }),
      { numRuns: 30 },
    );
  });
});

describe('a batch that is not a list of whole datagrams', () => {
  it.each([
    ['no datagram', ''],
    ['a part of a header', '0001000000'],
    ['a length behind the end', '000200000007aa'],
    ['bytes behind the last datagram', '000100000007aa00'],
  ])('is refused and delivers nothing: %s', (_name, hex) => {
    const delivered: number[] = [];
    expect(readBatch(Buffer.from(hex, 'hex'), (flow) => delivered.push(flow))).toBe(false);
    expect(delivered).toEqual([]);
  });

  it('never throws for random bytes', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        let total = 0;
        const isWhole = readBatch(Buffer.from(bytes), (_flow, _bytes, start, end) => {
          total += BATCHED_HEADER_BYTES + end - start;
        });
        expect(total).toBe(isWhole ? bytes.length : 0);
      }),
    );
  });
});
