import { Socket } from 'node:net';
import { systemClock } from '@tunnel/runtime';
import { carrierPair, eventually, rethrow } from '@tunnel/testkit';
import { expect, it, vi } from 'vitest';
import { CarrierWriter } from './carrier-writer.ts';

it('500 carriers that send a ping in the same event loop turn take less than 8 KiB each', async () => {
  const carriers = 500;
  const events = { onReady: () => {}, onStuck: () => {}, abandon: rethrow };
  const written: Buffer[] = [];
  for (let i = 0; i < carriers; i += 1) {
    const socket = new Socket();
    vi.spyOn(socket, 'write').mockImplementation((bytes) => written.push(bytes as Buffer) > 0);
    new CarrierWriter(socket, events).send(Buffer.alloc(20));
  }
  await eventually(() => expect(written).toHaveLength(carriers));
  // Counts the memory of the blocks instead of asking the process, whose memory other code also changes.
  const blocks = new Set(written.map(({ buffer }) => buffer));
  const taken = [...blocks].reduce((sum, { byteLength }) => sum + byteLength, 0);
  expect(taken / carriers).toBeLessThan(8 * 1024);
});

/** Frames of an event loop turn, as sizes around those of the blocks. */
const TURNS = [
  [1, 4094, 1, 1],
  [4095, 1, 1],
  [4096, 1],
  [4097],
  [4000, 97, 61_439],
  [4000, 97, 61_440],
  [1, 65_535, 1],
  [2000, 65_536, 3000],
  [65_537, 4096],
  [200_000, 1, 4096],
];

it.each(['plain', 'tls'] as const)(
  'frames arrive whole and in order, whatever they fill of a block, %s',
  async (kind) => {
    const [receiving, sending] = await carrierPair(kind);
    const common = { onReady: () => {}, onClosed: () => {}, report: rethrow, clock: systemClock };
    const got: Buffer[] = [];
    const onBytes = (bytes: Buffer, start: number, end: number): boolean => {
      got.push(Buffer.from(bytes.subarray(start, end)));
      return false;
    };
    sending.start({ ...common, onBytes: () => false });
    receiving.start({ ...common, onBytes });
    const sent: Buffer[] = [];
    for (const sizes of TURNS) {
      const frames = sizes.map((size, n) => Buffer.alloc(size, `${sent.length + n} of ${size} `));
      for (const frame of frames) sending.send(frame);
      sent.push(...frames);
      await new Promise(setImmediate);
    }
    const expected = Buffer.concat(sent);
    await eventually(() => expect(got.reduce((sum, { length }) => sum + length, 0)).toBe(expected.length));
    expect(Buffer.concat(got).equals(expected)).toBe(true);
    sending.end();
    receiving.end();
  },
);
