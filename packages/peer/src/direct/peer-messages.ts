// Messages between the two programs of a peer session, inside sealed records: JSON with validated fields. Candidates and round keys are
// sent this way, so the edge sees neither.
import { isIP } from 'node:net';
import { PATH_ID_BYTES, PATH_KEY_BYTES } from '@tunnel/mux';
import { PEER_LIMITS } from '../limits.ts';
import type { PeerAddress } from '../transport/peer-transport.ts';

/** Maximum size of a message with candidates, round keys or a closing reason. */
export const PEER_MESSAGE_MAX_BYTES = 8 * 1024;

export const PEER_VERSION = 1;

export type PeerService = 'tcp' | 'udp';

/**
 * Payload of the two handshake messages. The first message can be read by any holder of the secret and replayed by anyone, so it contains
 * no other data.
 */
export interface HandshakeHello {
  readonly version: number;
  readonly service: PeerService;
  /** Id of the publisher's running program. Only in the publisher's answer. */
  readonly program?: string;
}

/** How a side's UDP socket is seen from outside: with a consistent address or random ports; 'none' if UDP is blocked. */
export type Reachability = 'consistent' | 'random' | 'none';
/** Why a side cannot attempt a direct path: turned off, or the UDP transport is not available. */
export type Inability = 'off' | 'no-transport';

interface Offered {
  readonly round: number;
  readonly candidates: readonly PeerAddress[];
  readonly ports: Reachability;
  /** Number chosen by the sender for the reliable connection on the direct path. */
  readonly connection: number;
}

export type PeerMessage =
  /** First message of the subscriber on a relay, with the session id known to the publisher. */
  | { readonly type: 'hello'; readonly session: string }
  /** Starts a round of attempts for a direct path, with fresh keys. Sent by the subscriber. */
  | ({ readonly type: 'offer'; readonly keys: RoundKeys } & Offered)
  | ({ readonly type: 'answer' } & Offered)
  /** Both sides start probing: the receiver at once, the sender half a round trip after sending. */
  | { readonly type: 'start'; readonly round: number }
  /** The publisher is ready for the reliable connection on the direct path. */
  | { readonly type: 'listening'; readonly round: number }
  | { readonly type: 'unable'; readonly reason: Inability }
  /** Request for a new round, sent by the publisher after its addresses changed. */
  | { readonly type: 'again' }
  | { readonly type: 'bye'; readonly reason: string };

export interface RoundKeys {
  readonly id: Buffer;
  readonly toPublisher: Buffer;
  readonly toSubscriber: Buffer;
}

export const encodeHandshakeHello = (hello: HandshakeHello): Buffer => Buffer.from(JSON.stringify(hello));

/** Decodes the payload of a handshake message. Returns null if it is invalid or of another version. */
export const decodeHandshakeHello = (bytes: Buffer): HandshakeHello | null => {
  const value = parse(bytes);
  if (value === null || value['version'] !== PEER_VERSION) return null;
  const { service, program } = value;
  if (service !== 'tcp' && service !== 'udp') return null;
  if (program === undefined) return { version: PEER_VERSION, service };
  return isId(program) ? { version: PEER_VERSION, service, program } : null;
};

export const encodeMessage = (message: PeerMessage): Buffer => {
  if (message.type !== 'offer') return Buffer.from(JSON.stringify(message));
  const { id, toPublisher, toSubscriber } = message.keys;
  const keys = {
    id: id.toString('hex'),
    to_publisher: toPublisher.toString('base64url'),
    to_subscriber: toSubscriber.toString('base64url'),
  };
  return Buffer.from(JSON.stringify({ ...message, keys }));
};

/**
 * Returns null if the message is invalid. Returns 'unknown' for an unknown type, which readers ignore, so that later versions can add
 * types.
 */
export const decodeMessage = (bytes: Buffer): PeerMessage | 'unknown' | null => {
  const value = bytes.length > PEER_MESSAGE_MAX_BYTES ? null : parse(bytes);
  if (value === null || typeof value['type'] !== 'string') return null;
  const decode = DECODERS[value['type']];
  return decode === undefined ? 'unknown' : decode(value);
};

type Fields = Readonly<Record<string, unknown>>;

const DECODERS: Readonly<Record<string, ((value: Fields) => PeerMessage | null) | undefined>> = {
  hello: ({ session }) => (isId(session) ? { type: 'hello', session } : null),
  offer: (value) => {
    const offered = decodeOffered(value);
    const keys = decodeKeys(value['keys']);
    return offered === null || keys === null ? null : { type: 'offer', keys, ...offered };
  },
  answer: (value) => {
    const offered = decodeOffered(value);
    return offered === null ? null : { type: 'answer', ...offered };
  },
  start: ({ round }) => (isCount(round) ? { type: 'start', round } : null),
  listening: ({ round }) => (isCount(round) ? { type: 'listening', round } : null),
  unable: ({ reason }) => (reason === 'off' || reason === 'no-transport' ? { type: 'unable', reason } : null),
  again: () => ({ type: 'again' }),
  bye: ({ reason }) => (typeof reason === 'string' ? { type: 'bye', reason } : null),
};

const decodeOffered = ({ round, candidates, ports, connection }: Fields): Offered | null => {
  if (!isCount(round) || !isCount(connection) || !Array.isArray(candidates)) return null;
  if (ports !== 'consistent' && ports !== 'random' && ports !== 'none') return null;
  if (candidates.length > PEER_LIMITS.PEER_CANDIDATES_MAX || !candidates.every(isAddress)) return null;
  return { round, candidates: candidates.map(({ host, port }) => ({ host, port })), ports, connection };
};

const decodeKeys = (value: unknown): RoundKeys | null => {
  if (typeof value !== 'object' || value === null) return null;
  const { id, to_publisher, to_subscriber } = value as Fields;
  const keys = {
    id: bytesOf(id, 'hex'),
    toPublisher: bytesOf(to_publisher, 'base64url'),
    toSubscriber: bytesOf(to_subscriber, 'base64url'),
  };
  const isWhole = keys.id.length === PATH_ID_BYTES && keys.toPublisher.length === PATH_KEY_BYTES;
  return isWhole && keys.toSubscriber.length === PATH_KEY_BYTES ? keys : null;
};

const bytesOf = (value: unknown, encoding: 'hex' | 'base64url'): Buffer =>
  Buffer.from(typeof value === 'string' ? value : '', encoding);

const isAddress = (value: unknown): value is PeerAddress => {
  if (typeof value !== 'object' || value === null) return false;
  const { host, port } = value as Fields;
  return typeof host === 'string' && isIP(host) !== 0 && isCount(port) && port > 0 && port < 65_536;
};

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < 2 ** 32;

const isId = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{32}$/.test(value);

const parse = (bytes: Buffer): Fields | null => {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Fields) : null;
  } catch {
    return null;
  }
};
