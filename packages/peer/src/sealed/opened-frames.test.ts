import type { CarrierReceiver } from '@tunnel/mux';
import { deterministicBytes, FakeClock, rethrow } from '@tunnel/testkit';
import { beforeEach, expect, it } from 'vitest';
import { OpenedFrames } from './opened-frames.ts';

const RECORD = 65_518;

let keeps = false;
let handed: { memory: Buffer; text: string; length: number }[];
const receiver: CarrierReceiver = {
  onBytes: (bytes, start, end) => {
    handed.push({ memory: bytes, text: bytes.toString('latin1', start, end), length: end - start });
    return keeps;
  },
  onReady: () => {},
  onClosed: () => {},
  report: rethrow,
  clock: new FakeClock(),
};

beforeEach(() => {
  keeps = false;
  handed = [];
});

const record = (text: string) => Buffer.from(`0${text}`);

it('a single opened record is passed on without a copy', () => {
  const frames = new OpenedFrames();
  const alone = record('alone');
  frames.add(alone, 1, receiver);
  expect(handed).toEqual([]);
  frames.handOn(receiver);
  expect(handed).toMatchObject([{ text: 'alone' }]);
  expect(handed[0]?.memory).toBe(alone);
});

it('several opened records are passed on together, in order and once', () => {
  const frames = new OpenedFrames();
  for (const text of ['one ', 'two ', 'three']) frames.add(record(text), 1, receiver);
  frames.handOn(receiver);
  frames.handOn(receiver);
  frames.add(record('four'), 1, receiver);
  frames.handOn(receiver);
  expect(handed.map(({ text }) => text)).toEqual(['one two three', 'four']);
});

it('memory that the receiver kept is not written again, and other memory is reused', () => {
  const both = (keep: boolean): void => {
    const frames = new OpenedFrames();
    keeps = keep;
    for (const text of ['a', 'b']) frames.add(record(text), 1, receiver);
    frames.handOn(receiver);
  };
  both(false);
  both(true);
  both(false);
  expect(handed[1]?.memory).toBe(handed[0]?.memory);
  expect(handed[2]?.memory).not.toBe(handed[1]?.memory);
});

it('more bytes than fit a block are passed on in several whole pieces', () => {
  const frames = new OpenedFrames();
  const records = Array.from({ length: 9 }, (_, index) => Buffer.from(deterministicBytes(RECORD, index)));
  for (const plain of records) frames.add(plain, 1, receiver);
  frames.handOn(receiver);
  expect(handed.map(({ length }) => length)).toEqual([4, 4, 1].map((count) => count * (RECORD - 1)));
  expect(handed.map(({ text }) => text).join('')).toBe(records.map((plain) => plain.toString('latin1', 1)).join(''));
});

it('forgotten records are not passed on', () => {
  const frames = new OpenedFrames();
  frames.add(record('late'), 1, receiver);
  frames.forget();
  frames.handOn(receiver);
  expect(handed).toEqual([]);
});
