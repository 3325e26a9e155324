import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type FrameHandler, FrameParser } from './frame-parser.ts';
import {
  decodeCredit,
  decodeReason,
  decodeSeen,
  encodeCredit,
  encodeFin,
  encodePing,
  encodeReason,
  encodeSeen,
  FRAME,
  type FrameType,
  frameTable,
  type StreamCode,
  writeFrameHeader,
} from './frames.ts';
import { CAPABILITIES } from './handshake.ts';
import { WIRE_LIMITS } from './limits.ts';
import { decodeCompactOpen, decodeOpen, encodeOpen, type StreamHead, writeCompactOpen } from './open.ts';

interface FrameVector {
  type: keyof typeof FRAME;
  stream_id: number;
  payload: Record<string, unknown>;
}
type NamedFrame = FrameVector & { name: string; hex: string; decode_only?: true };
type InvalidFrame = { name: string; hex: string; refused_at: 'header' | 'payload' };
type Sequence = { name: string; chunks: string[]; frames: FrameVector[]; violation: boolean };

const read = <T>(file: string): T[] =>
  JSON.parse(readFileSync(new URL(`../vectors/${file}`, import.meta.url), 'utf8')) as T[];

const nameOf = (type: FrameType): keyof typeof FRAME =>
  (Object.keys(FRAME) as (keyof typeof FRAME)[]).find((name) => FRAME[name] === type)!;

const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const openFields = (head: StreamHead, window: number): Record<string, unknown> => ({
  tunnel_id: head.tunnelId,
  visitor: head.visitor,
  window,
  ...(head.flow !== undefined && { mode: 'datagram', flow: head.flow }),
  ...(head.peerId !== undefined && { peer_id: head.peerId }),
  ...(head.service !== undefined && { service: head.service }),
  ...(head.publicAddress !== undefined && { public_address: head.publicAddress }),
});

/** Returns the payload in the terms of the vectors, or null if its bytes are refused. */
const fieldsOf = (type: FrameType, payload: Uint8Array): Record<string, unknown> | null => {
  if (type === FRAME.OPEN || type === FRAME.OPEN_COMPACT) {
    const open = type === FRAME.OPEN ? decodeOpen(payload) : decodeCompactOpen(payload);
    return open && openFields(open.head, open.windowBytes);
  }
  if (type === FRAME.SEEN) {
    const bytes = decodeSeen(payload);
    return bytes === null ? null : { bytes };
  }
  if (type === FRAME.OPENED || type === FRAME.WINDOW) {
    const bytes = decodeCredit(payload);
    return bytes === null ? null : { bytes };
  }
  if (type === FRAME.FIN) return {};
  if (type === FRAME.PING || type === FRAME.PONG) return { bytes: hexOf(payload) };
  return decodeReason(payload) as Record<string, unknown> | null;
};

const parse = (
  chunks: string[],
  capabilities: readonly string[] = [],
): { frames: (FrameVector | null)[]; failure: string | null } => {
  const frames: (FrameVector | null)[] = [];
  let open: { streamId: number; hex: string } | null = null;
  const handler: FrameHandler = {
    onData: (streamId, bytes, start, end) => {
      open ??= { streamId, hex: '' };
      open.hex += hexOf(bytes.subarray(start, end));
      if (parser.state !== 'header') return;
      frames.push({ type: 'DATA', stream_id: streamId, payload: { bytes: open.hex } });
      open = null;
    },
    onDatagram: (streamId, bytes, start, end) => {
      frames.push({ type: 'DATAGRAM', stream_id: streamId, payload: { bytes: hexOf(bytes.subarray(start, end)) } });
    },
    onFrame: (type, streamId, payload) => {
      const fields = fieldsOf(type, payload);
      frames.push(fields && { type: nameOf(type), stream_id: streamId, payload: fields });
    },
  };
  const parser = new FrameParser(handler, frameTable(capabilities));
  for (const chunk of chunks) {
    const bytes = Buffer.from(chunk, 'hex');
    parser.push(bytes, 0, bytes.length);
  }
  return { frames, failure: parser.failure };
};

const encode = ({ type, stream_id, payload }: FrameVector): Uint8Array => {
  const { tunnel_id, visitor, window, flow, peer_id, service, public_address, bytes, code, text } = payload as {
    tunnel_id: string;
    visitor: string;
    window: number;
    flow?: number;
    peer_id?: string;
    service?: string;
    public_address?: string;
    bytes: string & number;
    code: StreamCode;
    text: string;
  };
  if (type === 'OPEN' || type === 'OPEN_COMPACT') {
    const more = {
      ...(flow !== undefined && { flow }),
      ...(peer_id !== undefined && { peerId: peer_id }),
      ...(service !== undefined && { service }),
      ...(public_address !== undefined && { publicAddress: public_address }),
    };
    const head = { tunnelId: tunnel_id, visitor, ...more };
    if (type === 'OPEN') return encodeOpen(stream_id, head, window);
    const frame = new Uint8Array(WIRE_LIMITS.FRAME_HEADER_BYTES + WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);
    return frame.subarray(0, writeCompactOpen(frame, stream_id, head, window));
  }
  if (type === 'OPENED' || type === 'WINDOW') return encodeCredit(FRAME[type], stream_id, bytes);
  if (type === 'FIN') return encodeFin(stream_id);
  if (type === 'PING' || type === 'PONG') return encodePing(FRAME[type], Buffer.from(bytes, 'hex'));
  if (type === 'SEEN') return encodeSeen(bytes);
  if (type === 'DATA' || type === 'DATAGRAM') return inPlace(FRAME[type], stream_id, Buffer.from(bytes, 'hex'));
  return encodeReason(FRAME[type], stream_id, { code, text });
};

/** Returns a frame with visitor bytes. Senders write such frames in place: a header, then the bytes. */
const inPlace = (type: FrameType, streamId: number, payload: Buffer): Uint8Array => {
  const frame = Buffer.concat([Buffer.alloc(8), payload]);
  writeFrameHeader(frame, 0, type, payload.length, streamId);
  return frame;
};

const isLater = ({ type }: FrameVector): boolean => type === 'DATAGRAM' || type === 'SEEN' || type === 'OPEN_COMPACT';

describe('frame vectors', () => {
  const version1 = read<NamedFrame>('frames.json');
  const later = read<NamedFrame>('frames-capabilities.json');
  const vectors = [...version1, ...later];

  it.each(vectors)('$name: decodes', ({ hex, type, stream_id, payload }) => {
    const expected = type === 'DATA' && payload['bytes'] === '' ? [] : [{ type, stream_id, payload }];
    expect(parse([hex], CAPABILITIES)).toEqual({ frames: expected, failure: null });
  });

  it.each(version1)('$name: decodes without capabilities', ({ hex }) => {
    expect(parse([hex])).toEqual(parse([hex], CAPABILITIES));
  });

  it.each(vectors.filter((vector) => !vector.decode_only))('$name: encodes', (vector) => {
    expect(hexOf(encode(vector))).toBe(vector.hex);
  });

  it.each(later)('$name: decodes the same byte by byte', ({ hex }) => {
    expect(parse(hex.match(/../g) ?? [], CAPABILITIES)).toEqual(parse([hex], CAPABILITIES));
  });

  it('cover every frame type, and no newer type in version 1', () => {
    expect([...new Set(vectors.map((vector) => vector.type))].sort()).toEqual(Object.keys(FRAME).sort());
    expect(version1.filter(isLater)).toEqual([]);
  });

  it.each(later.filter(isLater))('$name: is unknown without its capability', ({ hex }) => {
    const { frames, failure } = parse([hex], ['p2p']);
    expect([frames, failure]).toEqual([[], expect.stringContaining('unknown frame type')]);
  });

  it.each([
    ...read<InvalidFrame>('frames-invalid.json').map((vector) => ({ ...vector, capabilities: [] as string[] })),
    ...read<InvalidFrame>('frames-capabilities-invalid.json').map((vector) => ({
      ...vector,
      capabilities: CAPABILITIES,
    })),
  ])('$name: is refused', ({ hex, refused_at, capabilities }) => {
    const { frames, failure } = parse([hex], capabilities);
    if (refused_at === 'payload') expect({ frames, failure }).toEqual({ frames: [null], failure: null });
    else expect([frames, typeof failure]).toEqual([[], 'string']);
  });

  it.each(read<Sequence>('sequences.json'))('$name', ({ chunks, frames, violation }) => {
    const parsed = parse(chunks);
    expect(parsed.frames).toEqual(frames);
    expect(parsed.failure !== null).toBe(violation);
  });
});
