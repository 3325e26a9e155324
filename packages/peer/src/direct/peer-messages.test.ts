import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeHandshakeHello,
  decodeMessage,
  encodeHandshakeHello,
  encodeMessage,
  PEER_MESSAGE_MAX_BYTES,
  PEER_VERSION,
  type PeerMessage,
} from './peer-messages.ts';

const offered = {
  round: 3,
  candidates: [
    { host: '192.0.2.1', port: 4000 },
    { host: '2001:db8::1', port: 4001 },
  ],
  ports: 'random',
  connection: 0xfffffffe,
} as const;
const keys = { id: Buffer.alloc(8, 1), toPublisher: Buffer.alloc(32, 2), toSubscriber: Buffer.alloc(32, 3) };

const MESSAGES: readonly PeerMessage[] = [
  { type: 'hello', session: 'ab'.repeat(16) },
  { type: 'offer', keys, ...offered },
  { type: 'answer', ...offered },
  { type: 'start', round: 1 },
  { type: 'listening', round: 0 },
  { type: 'unable', reason: 'no-transport' },
  { type: 'again' },
  { type: 'bye', reason: 'dismissed' },
];

describe('a message between peers', () => {
  it.each(MESSAGES)('$type survives encoding and decoding', (message) => {
    const bytes = encodeMessage(message);
    expect(bytes.length).toBeLessThan(PEER_MESSAGE_MAX_BYTES);
    expect(decodeMessage(bytes)).toEqual(message);
  });

  it('of a later version is ignored as unknown', () => {
    expect(decodeMessage(Buffer.from('{"type":"rekey"}'))).toBe('unknown');
  });

  it.each([
    ['not JSON', '{'],
    ['no object', '"hello"'],
    ['null', 'null'],
    ['no type', '{}'],
    ['a session that is none', '{"type":"hello","session":"x"}'],
    ['a round below zero', '{"type":"start","round":-1}'],
    ['a round that is no number', '{"type":"start","round":"1"}'],
    ['a reason that is none', '{"type":"unable","reason":"tired"}'],
    [
      'a name for an address',
      JSON.stringify({ type: 'answer', ...offered, candidates: [{ host: 'localhost', port: 1 }] }),
    ],
    ['port 0', JSON.stringify({ type: 'answer', ...offered, candidates: [{ host: '192.0.2.1', port: 0 }] })],
    ['port 65536', JSON.stringify({ type: 'answer', ...offered, candidates: [{ host: '192.0.2.1', port: 65_536 }] })],
    [
      'too many addresses',
      JSON.stringify({ type: 'answer', ...offered, candidates: Array(9).fill(offered.candidates[0]) }),
    ],
    ['ports of no kind', JSON.stringify({ type: 'answer', ...offered, ports: 'some' })],
    ['an offer without keys', JSON.stringify({ type: 'offer', ...offered })],
    [
      'a short key',
      JSON.stringify({ type: 'offer', ...offered, keys: { id: '00', to_publisher: '', to_subscriber: '' } }),
    ],
    ['more than a message may be', JSON.stringify({ type: 'bye', reason: 'x'.repeat(PEER_MESSAGE_MAX_BYTES) })],
  ])('with %s does not decode', (_what, text) => {
    expect(decodeMessage(Buffer.from(text))).toBeNull();
  });

  it('of random bytes or values never makes the decoder throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 200 }),
          fc.json().map((text) => Buffer.from(text)),
        ),
        (bytes) => {
          decodeMessage(Buffer.from(bytes));
          decodeHandshakeHello(Buffer.from(bytes));
        },
      ),
    );
    fc.assert(
      fc.property(
        fc.constantFrom(...MESSAGES),
        fc.dictionary(fc.constantFrom('round', 'candidates', 'ports', 'keys', 'connection', 'session'), fc.jsonValue()),
        (message, changes) => {
          decodeMessage(Buffer.from(JSON.stringify({ ...JSON.parse(encodeMessage(message).toString()), ...changes })));
        },
      ),
    );
  });
});

describe('the hello of a handshake', () => {
  it.each([{}, { program: '0f'.repeat(16) }])('survives encoding and decoding: %o', (more) => {
    const hello = { version: PEER_VERSION, service: 'udp' as const, ...more };
    expect(decodeHandshakeHello(encodeHandshakeHello(hello))).toEqual(hello);
  });

  it.each([
    '',
    '{}',
    '{"version":2,"service":"tcp"}',
    '{"version":1,"service":"sctp"}',
    '{"version":1,"service":"tcp","program":1}',
  ])('does not decode from %s', (text) => {
    expect(decodeHandshakeHello(Buffer.from(text))).toBeNull();
  });
});
