import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FRAME, FRAME_KINDS } from './frames.ts';
import { WIRE_LIMITS } from './limits.ts';
import {
  decodeCompactOpen,
  decodeOpen,
  encodeOpen,
  OPEN_PEER_ID_MAX_CHARS,
  OPEN_PUBLIC_ADDRESS_MAX_CHARS,
  OPEN_TUNNEL_ID_MAX_CHARS,
  OPEN_VISITOR_MAX_CHARS,
  type StreamHead,
  writeCompactOpen,
} from './open.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

const compact = (head: StreamHead, windowBytes: number): Uint8Array => {
  const target = new Uint8Array(HEADER + WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);
  return target.slice(HEADER, writeCompactOpen(target, 2, head, windowBytes));
};

const field = (type: number, value: Uint8Array): Buffer =>
  Buffer.concat([Buffer.of(type, value.length >> 8, value.length & 0xff), value]);

describe('an OPEN_COMPACT frame', () => {
  it('fits the frame limit with the longest fields, in any characters, like OPEN', () => {
    for (const letter of ['v', '\u0001', 'é', '€']) {
      const head = {
        tunnelId: letter.repeat(OPEN_TUNNEL_ID_MAX_CHARS),
        visitor: letter.repeat(OPEN_VISITOR_MAX_CHARS),
        flow: 0xffff_ffff,
        peerId: letter.repeat(OPEN_PEER_ID_MAX_CHARS),
        service: '"'.repeat(WIRE_LIMITS.OPEN_SERVICE_MAX_CHARS),
        publicAddress: '"'.repeat(OPEN_PUBLIC_ADDRESS_MAX_CHARS),
      };
      const asJson = encodeOpen(2, head, 0).subarray(HEADER);
      expect(asJson.length).toBeLessThanOrEqual(FRAME_KINDS[FRAME.OPEN].max);
      expect(decodeOpen(asJson)).toEqual({ head, windowBytes: 0 });
      const payload = compact(head, 0);
      expect(payload.length).toBeLessThanOrEqual(FRAME_KINDS[FRAME.OPEN_COMPACT].max);
      expect(decodeCompactOpen(payload)).toEqual({ head, windowBytes: 0 });
    }
  });

  it('truncates a visitor address that the other side would refuse', () => {
    const payload = compact({ tunnelId: 't', visitor: 'v'.repeat(5000) }, 0);
    expect(decodeCompactOpen(payload)?.head.visitor).toBe('v'.repeat(OPEN_VISITOR_MAX_CHARS));
  });

  it('keeps the ids of successive tunnels distinct', () => {
    for (const tunnelId of ['tun_1', 'tun_2', 'tun_1', 'tün_1', 'tün_2', 'tun_', 'tun_1']) {
      expect(decodeCompactOpen(compact({ tunnelId, visitor: '' }, 1))?.head.tunnelId).toBe(tunnelId);
    }
  });

  it('is decoded without its unknown fields, wherever they are', () => {
    const unknown = fc.record({ type: fc.integer({ min: 7, max: 255 }), value: fc.uint8Array({ maxLength: 300 }) });
    const known = [field(1, Buffer.from('tun_1')), field(2, Buffer.from('[::1]:80')), field(4, Buffer.from('peer_1'))];
    fc.assert(
      fc.property(fc.array(unknown, { minLength: 4, maxLength: 4 }), (more) => {
        const fields = more.flatMap(({ type, value }, index) => [field(type, value), known[index] ?? Buffer.of()]);
        const open = decodeCompactOpen(Buffer.concat([Buffer.of(0, 0, 1, 0), ...fields]));
        const head = { tunnelId: 'tun_1', visitor: '[::1]:80', peerId: 'peer_1' };
        expect(open).toEqual({ head, windowBytes: 256 });
      }),
    );
  });

  it('is decoded from any bytes without an exception, and from a truncated frame as null or with fewer fields', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void decodeCompactOpen(bytes)));
    const payload = compact({ tunnelId: 'tun_1', visitor: '127.0.0.1:80', peerId: 'peer_1' }, 5);
    for (let length = 0; length < payload.length; length += 1) {
      const { head } = decodeCompactOpen(payload.subarray(0, length)) ?? { head: null };
      if (head !== null) expect(head.peerId).toBeUndefined();
    }
  });
});
