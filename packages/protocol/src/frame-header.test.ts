import { describe, expect, it } from 'vitest';
import {
  FRAME,
  isFrameType,
  maxPayloadOf,
  minPayloadOf,
  readUint32,
  writeFrameHeader,
  writeUint32,
} from './frame-header.ts';

describe('frame header', () => {
  it('is type, 24-bit length and 32-bit stream id, big-endian, at any offset', () => {
    const target = new Uint8Array(12).fill(0xaa);
    writeFrameHeader(target, 2, FRAME.GO_AWAY, 0x010203, 0xfffefdfc);
    expect([...target]).toEqual([0xaa, 0xaa, 10, 1, 2, 3, 0xff, 0xfe, 0xfd, 0xfc, 0xaa, 0xaa]);
  });

  it.each([0, 1, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff])('keeps the unsigned number %d', (value) => {
    const bytes = new Uint8Array(6);
    writeUint32(bytes, 1, value);
    expect(readUint32(bytes, 1)).toBe(value);
  });

  it('knows its types and no other', () => {
    const known = Array.from({ length: 256 }, (_, type) => type).filter(isFrameType);
    expect(known).toEqual(Object.values(FRAME));
    expect(known).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('bounds every payload from both sides, inside of 24 bits', () => {
    for (const type of Object.values(FRAME)) {
      expect(minPayloadOf(type)).toBeLessThanOrEqual(maxPayloadOf(type));
      expect(maxPayloadOf(type)).toBeLessThan(1 << 24);
    }
    expect(maxPayloadOf(FRAME.DATA)).toBe(262_144);
    expect([minPayloadOf(FRAME.PING), maxPayloadOf(FRAME.PING)]).toEqual([8, 8]);
  });
});
