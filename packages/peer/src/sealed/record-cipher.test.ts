import { deterministicBytes } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { NoiseFailure } from './noise.ts';
import {
  LENGTH_BYTES,
  RECORD_OVERHEAD_BYTES,
  RECORD_PLAIN_MAX_BYTES,
  RecordOpener,
  RecordSealer,
} from './record-cipher.ts';

const NOTHING = Buffer.alloc(0);
const KEY = Buffer.from(deterministicBytes(32, 1));

const sealed = (sealer: RecordSealer, plain: Buffer): Buffer => {
  const target = Buffer.alloc(plain.length + RECORD_OVERHEAD_BYTES);
  expect(sealer.seal(NOTHING, plain, 0, plain.length, target, 0)).toBe(target.length);
  return target.subarray(LENGTH_BYTES);
};

const open = (opener: RecordOpener, record: Buffer): Buffer => opener.open(record, 0, record.length);

describe('sealed records', () => {
  it.each([0, 1, 1000, RECORD_PLAIN_MAX_BYTES])('of %i bytes open to the original bytes', (bytes) => {
    const plain = Buffer.from(deterministicBytes(bytes, 2));
    const sealer = new RecordSealer(KEY);
    const opener = new RecordOpener(KEY);
    for (let round = 0; round < 3; round += 1) expect(open(opener, sealed(sealer, plain)).equals(plain)).toBe(true);
  });

  it('sealed from two parts open as one', () => {
    const target = Buffer.alloc(100);
    const end = new RecordSealer(KEY).seal(Buffer.from('head '), Buffer.from('a body b'), 2, 6, target, 0);
    expect(new RecordOpener(KEY).open(target, LENGTH_BYTES, end).toString()).toBe('head body');
  });

  it('of equal bytes differ', () => {
    const sealer = new RecordSealer(KEY);
    expect(sealed(sealer, Buffer.from('again'))).not.toEqual(sealed(sealer, Buffer.from('again')));
  });

  it('one byte over the maximum are refused before a nonce is used', () => {
    const sealer = new RecordSealer(KEY);
    const opener = new RecordOpener(KEY);
    const target = Buffer.alloc(70_000);
    expect(() => sealer.seal(NOTHING, target, 0, RECORD_PLAIN_MAX_BYTES + 1, target, 0)).toThrow(RangeError);
    expect(open(opener, sealed(sealer, Buffer.from('well'))).toString()).toBe('well');
  });

  it('do not open when repeated or when an earlier record is missing', () => {
    const sealer = new RecordSealer(KEY);
    const first = sealed(sealer, Buffer.from('one'));
    const second = sealed(sealer, Buffer.from('two'));
    const opener = new RecordOpener(KEY);
    open(opener, first);
    expect(() => open(opener, first)).toThrow(NoiseFailure);
    expect(() => open(new RecordOpener(KEY), second)).toThrow(NoiseFailure);
  });

  it('do not open when altered or truncated', () => {
    const record = sealed(new RecordSealer(KEY), Buffer.from('plain'));
    for (let at = 0; at < record.length; at += 1) {
      const altered = Buffer.from(record);
      altered[at] = (altered[at] ?? 0) ^ 0x80;
      expect(() => open(new RecordOpener(KEY), altered)).toThrow(NoiseFailure);
      expect(() => open(new RecordOpener(KEY), record.subarray(0, at))).toThrow(NoiseFailure);
    }
  });
});
