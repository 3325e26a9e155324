import { describe, expect, it } from 'vitest';
import { type FrameHandler, FrameParser } from './frame-parser.ts';
import { encodeFin, encodePing, FRAME, FRAME_KINDS, frameTable, writeFrameHeader } from './frames.ts';
import { WIRE_LIMITS } from './limits.ts';

const headerOf = (type: number, length: number, streamId: number): Uint8Array => {
  const header = new Uint8Array(WIRE_LIMITS.FRAME_HEADER_BYTES);
  writeFrameHeader(header, 0, type as typeof FRAME.DATA, length, streamId);
  return header;
};

const silent: FrameHandler = { onData: () => {}, onDatagram: () => {}, onFrame: () => {} };

const pushAll = (parser: FrameParser, ...parts: Uint8Array[]): boolean[] =>
  parts.map((part) => parser.push(part, 0, part.length));

describe('FrameParser', () => {
  it('reports its current state', () => {
    const parser = new FrameParser(silent);
    const states = [parser.state];
    for (const part of [headerOf(FRAME.DATA, 2, 2), Buffer.from('hi'), headerOf(FRAME.PING, 8, 0), headerOf(0, 0, 0)]) {
      parser.push(part, 0, part.length);
      states.push(parser.state);
    }
    // The eight bytes that look like a frame header are the payload of the ping.
    expect(states).toEqual(['header', 'data', 'header', 'payload', 'header']);
    expect(pushAll(parser, headerOf(0, 0, 0))).toEqual([false]);
    expect([parser.state, parser.failure]).toEqual(['failed', 'unknown frame type 0']);
  });

  it('accepts a newer frame type only if the session agreed on its capability', () => {
    const kinds = {
      ...FRAME_KINDS,
      20: { min: 2, max: 2, of: 'stream', capability: 'example' },
      21: { min: 0, max: 0, of: 'carrier', capability: 'example' },
    } as const;
    const bytes = Buffer.concat([headerOf(21, 0, 0), headerOf(20, 2, 4), Buffer.from('hi')]);
    const outcome = (capabilities: string[]): unknown => {
      const seen: unknown[] = [];
      const onFrame: FrameHandler['onFrame'] = (type, id, payload) => seen.push([type, id, payload.length]);
      const parser = new FrameParser({ ...silent, onFrame }, frameTable(capabilities, kinds));
      parser.push(bytes, 0, bytes.length);
      return parser.failure ?? seen;
    };
    expect(outcome(['example'])).toEqual([
      [21, 0, 0],
      [20, 4, 2],
    ]);
    expect(outcome([])).toBe('unknown frame type 21');
    expect(outcome(['another'])).toBe('unknown frame type 21');
    const misplaced = new FrameParser(silent, frameTable(['example'], kinds));
    expect(pushAll(misplaced, headerOf(21, 0, 4))).toEqual([false]);
  });

  it('passes on each datagram whole: in place if it came in one piece, reassembled if it was split, never merged', () => {
    const seen: [number, Uint8Array, string][] = [];
    const onDatagram: FrameHandler['onDatagram'] = (streamId, bytes, start, end) =>
      seen.push([streamId, bytes, Buffer.from(bytes.subarray(start, end)).toString()]);
    const parser = new FrameParser({ ...silent, onDatagram }, frameTable(['datagram']));
    const whole = Buffer.concat([headerOf(FRAME.DATAGRAM, 3, 2), Buffer.from('one'), headerOf(FRAME.DATAGRAM, 0, 2)]);
    parser.push(whole, 0, whole.length);
    pushAll(
      parser,
      headerOf(FRAME.DATAGRAM, 4, 6),
      Buffer.from('cu'),
      Buffer.from('t!'),
      headerOf(FRAME.DATAGRAM, 0, 6),
    );
    expect(seen.map(([streamId, , text]) => [streamId, text])).toEqual([
      [2, 'one'],
      [2, ''],
      [6, 'cut!'],
      [6, ''],
    ]);
    expect(seen[0]?.[1]).toBe(whole);
  });

  it('passes on DATA in place, without a copy', () => {
    const seen: unknown[] = [];
    const parser = new FrameParser({
      ...silent,
      onData: (streamId, bytes, start, end) => seen.push([streamId, bytes, start, end]),
    });
    const bytes = Buffer.concat([Buffer.alloc(3), headerOf(FRAME.DATA, 5, 2), Buffer.from('hello')]);
    expect(parser.push(bytes, 3, bytes.length)).toBe(true);
    expect(seen).toHaveLength(1);
    expect((seen[0] as unknown[])[1]).toBe(bytes);
    expect(seen).toEqual([[2, bytes, 11, 16]]);
  });

  it('reads only the given range of its buffer', () => {
    const frames: number[] = [];
    const parser = new FrameParser({ ...silent, onFrame: (type) => frames.push(type) });
    const bytes = Buffer.concat([encodeFin(2), encodeFin(4), Buffer.alloc(8)]);
    expect(parser.push(bytes, 8, 16)).toBe(true);
    expect(frames).toEqual([FRAME.FIN]);
  });

  it('reads nothing after a failure, whether its own or declared by the handler', () => {
    const frames: number[] = [];
    const parser: FrameParser = new FrameParser({
      ...silent,
      onFrame: (_, streamId) => {
        frames.push(streamId);
        if (streamId === 4) parser.fail('stream 4 was never opened');
      },
    });
    const bytes = Buffer.concat([encodeFin(2), encodeFin(4), encodeFin(6)]);
    expect(parser.push(bytes, 0, bytes.length)).toBe(false);
    expect([frames, parser.failure]).toEqual([[2, 4], 'stream 4 was never opened']);
    expect(pushAll(parser, encodeFin(8))).toEqual([false]);
    parser.fail('a later reason');
    expect([frames, parser.failure]).toEqual([[2, 4], 'stream 4 was never opened']);
  });

  it('can be failed by the handler in the middle of a DATA frame', () => {
    let calls = 0;
    const parser: FrameParser = new FrameParser({
      ...silent,
      onData: () => {
        calls += 1;
        parser.fail('more data than credit');
      },
    });
    const results = pushAll(parser, headerOf(FRAME.DATA, 10, 2), Buffer.alloc(4), Buffer.alloc(6));
    expect([results, calls, parser.state]).toEqual([[true, false, false], 1, 'failed']);
  });

  it('continues with the next frame after a handler has thrown', () => {
    const frames: number[] = [];
    const parser = new FrameParser({
      ...silent,
      onFrame: (type) => {
        frames.push(type);
        if (frames.length === 1) throw new Error('a mistake of the owner');
      },
    });
    const ping = encodePing(FRAME.PING, new Uint8Array(8));
    expect(() => parser.push(ping, 0, ping.length)).toThrow('a mistake of the owner');
    expect(parser.push(ping, 0, ping.length)).toBe(true);
    expect(frames).toEqual([FRAME.PING, FRAME.PING]);
  });

  it('buffers at most one small payload, no matter how many bytes are announced', () => {
    const parsers = Array.from({ length: 1000 }, () => new FrameParser(silent));
    const before = process.memoryUsage().arrayBuffers;
    const start = Buffer.concat([headerOf(FRAME.OPEN, WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES, 2), Buffer.alloc(1)]);
    for (const parser of parsers) parser.push(start, 0, start.length);
    const held = process.memoryUsage().arrayBuffers - before;
    expect(held).toBeLessThan(1.1 * parsers.length * WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);
    expect(parsers.every((parser) => parser.state === 'payload')).toBe(true);
  });
});
