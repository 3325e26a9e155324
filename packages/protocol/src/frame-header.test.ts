import { describe, expect, it } from 'vitest';
import {
  FRAME,
  FRAME_KINDS,
  type FrameTable,
  frameTable,
  readUint32,
  writeFrameHeader,
  writeUint32,
} from './frame-header.ts';

const typesIn = (table: FrameTable): number[] => table.flatMap((kind, type) => (kind === undefined ? [] : [type]));

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
    const known = typesIn(frameTable([]));
    expect(known).toEqual(Object.values(FRAME));
    expect(known).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  });

  it('bounds every payload from both sides, inside of 24 bits', () => {
    for (const { min, max } of Object.values(FRAME_KINDS)) {
      expect(min).toBeLessThanOrEqual(max);
      expect(max).toBeLessThan(1 << 24);
    }
    expect(FRAME_KINDS[FRAME.DATA].max).toBe(262_144);
    expect(FRAME_KINDS[FRAME.PING]).toMatchObject({ min: 8, max: 8 });
  });

  it('has a later type only where both sides agreed on it', () => {
    const kinds = { ...FRAME_KINDS, 11: { min: 0, max: 9, of: 'stream', capability: 'example' } as const };
    expect(typesIn(frameTable([], kinds))).not.toContain(11);
    expect(typesIn(frameTable(['another'], kinds))).not.toContain(11);
    expect(typesIn(frameTable(['another', 'example'], kinds))).toContain(11);
    expect(typesIn(frameTable(['example']))).toEqual(Object.values(FRAME));
  });
});
