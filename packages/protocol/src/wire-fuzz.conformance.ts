// Guarantees of the parsers for any input, as fast-check properties. The unit tests have a short run, tests/soak has a long run.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeControl, encodeControl } from './control-codec.ts';
import { CONTROL_TYPES, type ControlMessageInput } from './control-messages.ts';
import { type FrameHandler, FrameParser } from './frame-parser.ts';
import {
  decodeCredit,
  decodeReason,
  decodeSeen,
  encodeReason,
  encodeSeen,
  FRAME,
  FRAME_KINDS,
  type FrameType,
  frameTable,
  STREAM_CODES,
  writeFrameHeader,
} from './frames.ts';
import { CAPABILITIES } from './handshake.ts';
import { WIRE_LIMITS } from './limits.ts';
import { decodeCompactOpen, decodeOpen, encodeOpen, writeCompactOpen } from './open.ts';

const HEADER = WIRE_LIMITS.FRAME_HEADER_BYTES;

interface Outcome {
  readonly events: string[];
  readonly failure: string | null;
}

const FRAMES = frameTable(CAPABILITIES);

/**
 * Returns the events that a handler gets. Consecutive DATA pieces of one stream count as one event, because the network decides where
 * data is cut.
 */
const outcomeOf = (bytes: Uint8Array, cuts: readonly number[]): Outcome => {
  const events: { key: string; hex: string }[] = [];
  const handler: FrameHandler = {
    onData: (streamId, from, start, end) => {
      const key = `data ${streamId} `;
      const hex = Buffer.from(from.subarray(start, end)).toString('hex');
      const last = events.at(-1);
      if (last?.key === key) last.hex += hex;
      else events.push({ key, hex });
    },
    onDatagram: (streamId, from, start, end) => {
      expect(end - start).toBeLessThanOrEqual(WIRE_LIMITS.DATAGRAM_MAX_BYTES);
      events.push({ key: `datagram ${streamId} `, hex: Buffer.from(from.subarray(start, end)).toString('hex') });
    },
    onFrame: (type, streamId, payload) => {
      expect(payload.length).toBeLessThanOrEqual(WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);
      for (const decode of [decodeOpen, decodeCompactOpen, decodeCredit, decodeReason, decodeSeen]) decode(payload);
      events.push({ key: `frame ${type} ${streamId} `, hex: Buffer.from(payload).toString('hex') });
    },
  };
  const parser = new FrameParser(handler, FRAMES);
  let at = 0;
  for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
    parser.push(bytes, at, cut);
    at = cut;
  }
  return { events: events.map(({ key, hex }) => key + hex), failure: parser.failure };
};

const streamId = fc.integer({ min: 1, max: 0xffffffff });

/** Mostly valid frames: purely random bytes rarely get past the first header. */
const frame: fc.Arbitrary<Uint8Array> = fc.constantFrom(...Object.values(FRAME)).chain((type: FrameType) => {
  const id = FRAME_KINDS[type].of === 'carrier' ? fc.constant(0) : streamId;
  const size = { minLength: FRAME_KINDS[type].min, maxLength: Math.min(FRAME_KINDS[type].max, 300) };
  return fc.tuple(id, fc.uint8Array(size)).map(([stream, payload]) => {
    const bytes = new Uint8Array(HEADER + payload.length);
    writeFrameHeader(bytes, 0, type, payload.length, stream);
    bytes.set(payload, HEADER);
    return bytes;
  });
});

const wire: fc.Arbitrary<Uint8Array> = fc
  .tuple(fc.array(frame, { maxLength: 12 }), fc.uint8Array({ maxLength: 40 }))
  .map(([frames, tail]) => new Uint8Array(Buffer.concat([...frames, tail])));

const anyCuts = (bytes: Uint8Array): fc.Arbitrary<number[]> =>
  fc.array(fc.nat({ max: bytes.length }), { maxLength: 20 });

/** Objects that resemble messages, including `__proto__` keys and values of the wrong type. */
const messageLike: fc.Arbitrary<string> = fc
  .tuple(
    fc.oneof(fc.constantFrom<string>(...CONTROL_TYPES), fc.string()),
    fc.dictionary(
      fc.oneof(
        fc.constantFrom('id', 'token', 'versions', 'resume', 'carriers', 'code', 'message', 'tunnel_id', '__proto__'),
        fc.string(),
      ),
      fc.jsonValue({ maxDepth: 4 }),
    ),
  )
  .map(([type, fields]) => JSON.stringify({ ...fields, type }));

const sealedPath = fc.record({
  id: fc.stringMatching(/^[0-9a-f]{16}$/),
  key_to_edge: fc.stringMatching(/^[A-Za-z0-9_-]{43}$/),
  key_to_client: fc.stringMatching(/^[A-Za-z0-9_-]{43}$/),
});

const message: fc.Arbitrary<ControlMessageInput> = fc.oneof(
  fc.record({ type: fc.constant('Ping' as const), id: fc.maxSafeInteger() }),
  fc.record({
    type: fc.constant('Error' as const),
    code: fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme-ascii' }),
    message: fc.string({ maxLength: 300, unit: 'binary' }),
    retryable: fc.boolean(),
    fatal: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('RegisterTunnel' as const),
    request_id: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' }),
    name: fc.string({ maxLength: 60, unit: 'grapheme' }).filter((name) => name.length <= 200),
    protocol: fc.constantFrom('http' as const, 'tcp' as const),
    local_addr: fc.string({ maxLength: 100 }),
    remote_port: fc.integer({ min: 1, max: 65535 }),
    preferred_subdomain: fc.string({ maxLength: 63 }),
    host_header: fc.stringMatching(/^[!-~]{1,255}$/),
    local_protocol: fc.constantFrom('http1' as const, 'h2c' as const),
    capture: fc.boolean(),
    policy: fc.record({
      login: fc.constant(null),
      rules: fc.array(fc.record({ route: fc.string({ unit: 'binary' }) })),
    }),
    policy_revision: fc.maxSafeNat(),
    services: fc.array(fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/), { maxLength: 16 }),
    proxy_protocol: fc.constantFrom('v1' as const, 'v2' as const),
  }),
  fc.record({
    type: fc.constant('DatagramPath' as const),
    ports: fc.tuple(fc.integer({ min: 1, max: 65535 }), fc.integer({ min: 1, max: 65535 })),
    path: fc.option(sealedPath),
    observe: fc.option(sealedPath),
  }),
  fc.record({
    type: fc.constant('DatagramDrops' as const),
    tunnel_id: fc.string({ minLength: 1, maxLength: 100 }),
    drops: fc.array(
      fc.record({
        visitor: fc.string({ maxLength: 100 }),
        direction: fc.constantFrom('in' as const, 'out' as const),
        reason: fc.constantFrom('local' as const, 'path' as const),
        datagrams: fc.integer({ min: 1 }),
      }),
      { minLength: 1, maxLength: 100 },
    ),
  }),
  fc.record({
    type: fc.constant('ConnectPeer' as const),
    request_id: fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme-ascii' }),
    p2p_name: fc.string({ maxLength: 100 }),
    p2p_secret_hash: fc.stringMatching(/^[0-9a-f]{64}$/),
    service: fc.constantFrom('tcp' as const, 'udp' as const),
  }),
  fc.record({
    type: fc.constant('PeerReport' as const),
    tunnel_id: fc.string({ minLength: 1, maxLength: 100 }),
    peer_id: fc.string({ minLength: 1, maxLength: 100 }),
    path: fc.constantFrom('direct' as const, 'relay' as const),
    reason: fc.constantFrom('' as const, 'no-answer' as const),
    rtt_ms: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true }).map((ms) => ms + 0)),
    direct_bytes: fc.maxSafeNat(),
  }),
  fc.record({
    type: fc.constant('EdgeAnswered' as const),
    tunnel_id: fc.string({ minLength: 1, maxLength: 100 }),
    request_id: fc.string({ minLength: 1, maxLength: 64, unit: 'grapheme-ascii' }),
    at: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }).map((at) => at.toISOString()),
    method: fc.string({ maxLength: 32, unit: 'grapheme-ascii' }),
    path: fc.string({ maxLength: 500, unit: 'grapheme-ascii' }),
    status: fc.integer({ min: 100, max: 999 }),
    code: fc.option(fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme-ascii' })),
    rule: fc.option(fc.string({ maxLength: 200, unit: 'grapheme-ascii' })),
    duration_ms: fc.double({ min: 0, max: 1e9, noNaN: true }).map((ms) => ms + 0),
  }),
);

/** Registers the properties as tests, each with `numRuns` runs. */
export const describeWireFuzz = (numRuns: number): void => {
  const check = <T>(property: fc.IProperty<T>): void => fc.assert(property, { numRuns });

  it('any bytes in any pieces never throw, and give the same events as in one piece', () => {
    const input = wire.chain((bytes) => fc.tuple(fc.constant(bytes), anyCuts(bytes)));
    check(
      fc.property(input, ([bytes, cuts]) => {
        expect(outcomeOf(bytes, cuts)).toEqual(outcomeOf(bytes, []));
      }),
    );
  });

  it('any bytes one at a time give the same events as in one piece', () => {
    const everywhere = (bytes: Uint8Array): number[] => Array.from(bytes, (_, index) => index);
    check(
      fc.property(wire, (bytes) => {
        expect(outcomeOf(bytes, everywhere(bytes))).toEqual(outcomeOf(bytes, []));
      }),
    );
  });

  it('random bytes never throw, and give no more event data than was received', () => {
    check(
      fc.property(fc.uint8Array({ maxLength: 600 }), (bytes) => {
        const { events } = outcomeOf(bytes, []);
        expect(events.join('').length).toBeLessThanOrEqual(40 * bytes.length);
      }),
    );
  });

  it('decodeControl returns a result for any text, and never throws', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.json({ maxDepth: 6 }), messageLike);
    check(
      fc.property(text, (input) => {
        const decoded = decodeControl(input);
        if (!decoded.ok) expect(decoded.fault.message.length).toBeLessThan(500);
      }),
    );
  });

  it('decodeControl reads every message that encodeControl writes', () => {
    check(
      fc.property(message, (input) => {
        expect(decodeControl(encodeControl(input))).toEqual({ ok: true, message: input });
      }),
    );
  });

  it('each frame payload is decoded as encoded: OPEN, OPEN_COMPACT, SEEN and reasons', () => {
    const head = fc.record({
      tunnelId: fc.string({ minLength: 1, maxLength: 30, unit: 'grapheme' }).filter((id) => id.length <= 100),
      visitor: fc.string({ maxLength: 50 }),
    });
    const flow = fc.record({ flow: fc.nat({ max: 0xffffffff }) });
    const peer = fc.record({ peerId: fc.string({ minLength: 1, maxLength: 100 }) });
    const service = fc.record({ service: fc.stringMatching(/^[!-~]{1,32}$/) });
    const reached = fc.record({ publicAddress: fc.stringMatching(/^[!-~]{1,100}$/) });
    const more = fc.tuple(
      fc.option(flow, { nil: {} }),
      fc.option(peer, { nil: {} }),
      fc.option(service, { nil: {} }),
      fc.option(reached, { nil: {} }),
    );
    const credit = fc.nat({ max: WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES });
    check(
      fc.property(streamId, head, more, credit, (id, common, [ofFlow, ofPeer, toService, reachedAt], granted) => {
        const opened = { ...common, ...ofFlow, ...ofPeer, ...toService, ...reachedAt };
        const windowBytes = 'flow' in opened ? 0 : granted;
        const payload = encodeOpen(id, opened, windowBytes).subarray(HEADER);
        expect(decodeOpen(payload)).toEqual({ head: opened, windowBytes });
        const compact = new Uint8Array(HEADER + WIRE_LIMITS.FRAME_CONTROL_MAX_BYTES);
        const end = writeCompactOpen(compact, id, opened, windowBytes);
        expect(decodeCompactOpen(compact.subarray(HEADER, end))).toEqual({ head: opened, windowBytes });
      }),
    );
    check(
      fc.property(fc.maxSafeNat(), (bytes) => {
        expect(decodeSeen(encodeSeen(bytes).subarray(HEADER))).toBe(bytes);
      }),
    );
    const code = fc.constantFrom(...(Object.keys(STREAM_CODES) as (keyof typeof STREAM_CODES)[]));
    check(
      fc.property(streamId, code, fc.string({ maxLength: 400, unit: 'grapheme' }), (id, name, text) => {
        const reason = decodeReason(encodeReason(FRAME.RESET, id, { code: name, text }).subarray(HEADER));
        expect(reason?.code).toBe(name);
        expect(text.startsWith(reason?.text ?? '?')).toBe(true);
      }),
    );
  });
};
