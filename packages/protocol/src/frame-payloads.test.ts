import { describe, expect, it } from 'vitest';
import { FRAME, FRAME_KINDS } from './frame-header.ts';
import { decodeOpen, decodeReason, encodeOpen, encodePing, encodeReason, STREAM_CODES } from './frame-payloads.ts';
import { WIRE_LIMITS } from './limits.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

describe('OPEN', () => {
  it('fits its frame with the longest fields, however they are escaped', () => {
    const head = {
      tunnelId: '\u0001'.repeat(WIRE_LIMITS.OPEN_TUNNEL_ID_MAX_CHARS),
      visitor: '\u0001'.repeat(WIRE_LIMITS.OPEN_VISITOR_MAX_CHARS),
    };
    const frame = encodeOpen(2, head, WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES);
    expect(frame.length - HEADER).toBeLessThanOrEqual(FRAME_KINDS[FRAME.OPEN].max);
    expect(decodeOpen(frame.subarray(HEADER))).toEqual({ head, windowBytes: WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES });
  });

  it('cuts a visitor that the other side would refuse', () => {
    const frame = encodeOpen(2, { tunnelId: 't', visitor: 'v'.repeat(5000) }, 0);
    expect(decodeOpen(frame.subarray(HEADER))?.head.visitor).toBe('v'.repeat(WIRE_LIMITS.OPEN_VISITOR_MAX_CHARS));
  });
});

describe('reasons', () => {
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
      const room = Math.floor((WIRE_LIMITS.RESET_REASON_MAX_BYTES - shift) / Buffer.byteLength(character));
      expect(cut).toBe('x'.repeat(shift) + character.repeat(room));
    }
  });

  it('stay text when they hold half of a surrogate pair', () => {
    expect(textAfter('a\ud83d')).toBe('a\ufffd');
    expect(textAfter(`${'x'.repeat(255)}🚇`)).toBe('x'.repeat(255));
  });

  it('cost no more than their limit, however long the text', () => {
    expect(textAfter('x'.repeat(10_000_000))).toHaveLength(WIRE_LIMITS.RESET_REASON_MAX_BYTES);
  });

  it('have a number each, none twice', () => {
    const numbers = Object.values(STREAM_CODES);
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it('shorter than a code or longer than allowed are refused', () => {
    expect(decodeReason(new Uint8Array(3))).toBeNull();
    expect(decodeReason(new Uint8Array(4 + WIRE_LIMITS.RESET_REASON_MAX_BYTES + 1))).toBeNull();
  });
});

describe('PING', () => {
  it('always has eight bytes', () => {
    const short = encodePing(FRAME.PING, Uint8Array.of(1, 2));
    expect([...short]).toEqual([8, 0, 0, 8, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0]);
    expect(encodePing(FRAME.PONG, new Uint8Array(20))).toHaveLength(16);
  });
});
