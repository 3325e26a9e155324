import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { FrameParser } from './frame-parser.ts';
import {
  decodeCredit,
  decodeOpen,
  decodeReason,
  encodeCredit,
  encodeFin,
  encodeOpen,
  encodePing,
  encodeReason,
  FRAME,
  type FrameType,
  type StreamCode,
} from './frames.ts';

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

/** The payload in the vocabulary of the vectors, or null when its bytes are refused. */
const fieldsOf = (type: FrameType, payload: Uint8Array): Record<string, unknown> | null => {
  if (type === FRAME.OPEN) {
    const open = decodeOpen(payload);
    return open && { tunnel_id: open.head.tunnelId, visitor: open.head.visitor, window: open.windowBytes };
  }
  if (type === FRAME.OPENED || type === FRAME.WINDOW) {
    const bytes = decodeCredit(payload);
    return bytes === null ? null : { bytes };
  }
  if (type === FRAME.FIN) return {};
  if (type === FRAME.PING || type === FRAME.PONG) return { bytes: hexOf(payload) };
  return decodeReason(payload) as Record<string, unknown> | null;
};

const parse = (chunks: string[]): { frames: (FrameVector | null)[]; failure: string | null } => {
  const frames: (FrameVector | null)[] = [];
  let open: { streamId: number; hex: string } | null = null;
  const parser = new FrameParser({
    onData: (streamId, bytes, start, end) => {
      open ??= { streamId, hex: '' };
      open.hex += hexOf(bytes.subarray(start, end));
      if (parser.state !== 'header') return;
      frames.push({ type: 'DATA', stream_id: streamId, payload: { bytes: open.hex } });
      open = null;
    },
    onFrame: (type, streamId, payload) => {
      const fields = fieldsOf(type, payload);
      frames.push(fields && { type: nameOf(type), stream_id: streamId, payload: fields });
    },
  });
  for (const chunk of chunks) {
    const bytes = Buffer.from(chunk, 'hex');
    parser.push(bytes, 0, bytes.length);
  }
  return { frames, failure: parser.failure };
};

const encode = ({ type, stream_id, payload }: FrameVector): Uint8Array => {
  const { tunnel_id, visitor, window, bytes, code, text } = payload as {
    tunnel_id: string;
    visitor: string;
    window: number;
    bytes: string & number;
    code: StreamCode;
    text: string;
  };
  if (type === 'OPEN') return encodeOpen(stream_id, { tunnelId: tunnel_id, visitor }, window);
  if (type === 'OPENED' || type === 'WINDOW') return encodeCredit(FRAME[type], stream_id, bytes);
  if (type === 'FIN') return encodeFin(stream_id);
  if (type === 'PING' || type === 'PONG') return encodePing(FRAME[type], Buffer.from(bytes, 'hex'));
  if (type === 'DATA') throw new Error('DATA is written in place by its sender');
  return encodeReason(FRAME[type], stream_id, { code, text });
};

describe('frame vectors', () => {
  const vectors = read<NamedFrame>('frames.json');

  it.each(vectors)('$name: decodes', ({ hex, type, stream_id, payload }) => {
    const expected = type === 'DATA' && payload['bytes'] === '' ? [] : [{ type, stream_id, payload }];
    expect(parse([hex])).toEqual({ frames: expected, failure: null });
  });

  it.each(vectors.filter((vector) => vector.type !== 'DATA' && !vector.decode_only))('$name: encodes', (vector) => {
    expect(hexOf(encode(vector))).toBe(vector.hex);
  });

  it('has every frame type', () => {
    expect([...new Set(vectors.map((vector) => vector.type))].sort()).toEqual(Object.keys(FRAME).sort());
  });

  it.each(read<InvalidFrame>('frames-invalid.json'))('$name: is refused', ({ hex, refused_at }) => {
    const { frames, failure } = parse([hex]);
    if (refused_at === 'payload') expect({ frames, failure }).toEqual({ frames: [null], failure: null });
    else expect([frames, typeof failure]).toEqual([[], 'string']);
  });

  it.each(read<Sequence>('sequences.json'))('$name', ({ chunks, frames, violation }) => {
    const parsed = parse(chunks);
    expect(parsed.frames).toEqual(frames);
    expect(parsed.failure !== null).toBe(violation);
  });
});
