import { describe, expect, it } from 'vitest';
import {
  decodeReason,
  encodePing,
  encodeReason,
  FRAME,
  FRAME_KINDS,
  type FrameTable,
  frameTable,
  RESET_REASON_MAX_BYTES,
  readUint32,
  STREAM_CODES,
  writeFrameHeader,
  writeUint32,
} from './frames.ts';
import { CAPABILITIES } from './handshake.ts';
import { WIRE_LIMITS } from './limits.ts';
import {
  decodeOpen,
  encodeOpen,
  OPEN_PEER_ID_MAX_CHARS,
  OPEN_TUNNEL_ID_MAX_CHARS,
  OPEN_VISITOR_MAX_CHARS,
} from './open.ts';

const typesIn = (table: FrameTable): number[] => table.flatMap((kind, type) => (kind === undefined ? [] : [type]));

describe('a frame header', () => {
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

  it('accepts only known types', () => {
    expect(typesIn(frameTable([]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(typesIn(frameTable(['p2p']))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(typesIn(frameTable(CAPABILITIES))).toEqual(Object.values(FRAME));
  });

  it('has a minimum and maximum payload for each type, below 24 bits', () => {
    for (const { min, max } of Object.values(FRAME_KINDS)) {
      expect(min).toBeLessThanOrEqual(max);
      expect(max).toBeLessThan(1 << 24);
    }
    expect(FRAME_KINDS[FRAME.DATA].max).toBe(262_144);
    expect(FRAME_KINDS[FRAME.PING]).toMatchObject({ min: 8, max: 8 });
  });

  it('accepts a newer type only if both sides agreed on its capability', () => {
    const kinds = { ...FRAME_KINDS, 20: { min: 0, max: 9, of: 'stream', capability: 'example' } as const };
    expect(typesIn(frameTable([], kinds))).not.toContain(20);
    expect(typesIn(frameTable(['another'], kinds))).not.toContain(20);
    expect(typesIn(frameTable(['another', 'example'], kinds))).toContain(20);
    expect(typesIn(frameTable(['example']))).toEqual(typesIn(frameTable([])));
  });
});

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

describe('an OPEN frame', () => {
  it('fits the frame limit with the longest fields, even if every character is escaped', () => {
    const head = {
      tunnelId: '\u0001'.repeat(OPEN_TUNNEL_ID_MAX_CHARS),
      visitor: '\u0001'.repeat(OPEN_VISITOR_MAX_CHARS),
      peerId: '\u0001'.repeat(OPEN_PEER_ID_MAX_CHARS),
    };
    const flow = 0xffff_ffff;
    for (const [opened, windowBytes] of [
      [head, WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES],
      [{ ...head, flow }, 0],
    ] as const) {
      const frame = encodeOpen(2, opened, windowBytes);
      expect(frame.length - HEADER).toBeLessThanOrEqual(FRAME_KINDS[FRAME.OPEN].max);
      expect(decodeOpen(frame.subarray(HEADER))).toEqual({ head: opened, windowBytes });
    }
  });

  it('truncates a visitor address that the other side would refuse', () => {
    const frame = encodeOpen(2, { tunnelId: 't', visitor: 'v'.repeat(5000) }, 0);
    expect(decodeOpen(frame.subarray(HEADER))?.head.visitor).toBe('v'.repeat(OPEN_VISITOR_MAX_CHARS));
  });
});

describe('the reason texts of frames', () => {
  const textAfter = (text: string): string => {
    const frame = encodeReason(FRAME.RESET, 2, { code: 'cancelled', text });
    expect(frame.length - HEADER).toBeLessThanOrEqual(FRAME_KINDS[FRAME.RESET].max);
    return decodeReason(frame.subarray(HEADER))?.text ?? 'refused';
  };

  it.each([
    ['two', 'é'],
    ['three', '€'],
    ['four', '🚇'],
  ])('are cut between characters of %s bytes', (_, character) => {
    for (let shift = 0; shift < 5; shift++) {
      const cut = textAfter('x'.repeat(shift) + character.repeat(300));
      const room = Math.floor((RESET_REASON_MAX_BYTES - shift) / Buffer.byteLength(character));
      expect(cut).toBe('x'.repeat(shift) + character.repeat(room));
    }
  });

  it('stay valid text with half of a surrogate pair', () => {
    expect(textAfter('a\ud83d')).toBe('a\ufffd');
    expect(textAfter(`${'x'.repeat(255)}🚇`)).toBe('x'.repeat(255));
  });

  it('never exceed their limit, for any text length', () => {
    expect(textAfter('x'.repeat(10_000_000))).toHaveLength(RESET_REASON_MAX_BYTES);
  });

  it('have a unique number for each code', () => {
    const numbers = Object.values(STREAM_CODES);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('are refused if shorter than a code or longer than allowed', () => {
    expect(decodeReason(new Uint8Array(3))).toBeNull();
    expect(decodeReason(new Uint8Array(4 + RESET_REASON_MAX_BYTES + 1))).toBeNull();
  });
});

describe('a PING frame', () => {
  it('always has a payload of eight bytes', () => {
    const short = encodePing(FRAME.PING, Uint8Array.of(1, 2));
    expect([...short]).toEqual([8, 0, 0, 8, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]);
    expect(encodePing(FRAME.PONG, new Uint8Array(20))).toHaveLength(16);
  });
});
