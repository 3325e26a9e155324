// The words between the two programs of a peer session, inside records: JSON, each field checked. Candidates and the keys of a try travel
// here, so the edge sees neither.
import { isIP } from 'node:net';
import { PATH_ID_BYTES, PATH_KEY_BYTES } from '@tunnel/mux';
import { PEER_LIMITS } from '../limits.ts';
import type { PeerAddress } from '../transport/peer-transport.ts';

/** a word between the two programs: candidates, keys of a try, the reason of an end */
export const PEER_MESSAGE_MAX_BYTES = 8 * 1024;

export const PEER_VERSION = 1;

export type PeerService = 'tcp' | 'udp';

/** What the two messages of a handshake hold. The first can be read by whoever has the secret, and sent again by anybody: it says nothing more. */
export interface HandshakeHello {
  readonly version: number;
  readonly service: PeerService;
  /** Of the publisher, which is asked: the program that answers. */
  readonly program?: string;
}

/** How a socket is seen from outside, or why there is none. */
export type Reachability = 'consistent' | 'random' | 'none';
/** Why one side cannot even try. */
export type Inability = 'off' | 'no-transport';

interface Offered {
  readonly round: number;
  readonly candidates: readonly PeerAddress[];
  readonly ports: Reachability;
  /** Of the reliable connection, at the side that says so. */
  readonly connection: number;
}

export type PeerMessage =
  /** The subscriber's first word on a relay: which of the publisher's sessions this is. */
  | { readonly type: 'hello'; readonly session: string }
  /** The subscriber begins a round, with fresh keys. */
  | ({ readonly type: 'offer'; readonly keys: RoundKeys } & Offered)
  | ({ readonly type: 'answer' } & Offered)
  /** Both begin to probe: now, and half a round trip after it was said. */
  | { readonly type: 'start'; readonly round: number }
  /** The publisher listens for the reliable connection. */
  | { readonly type: 'listening'; readonly round: number }
  | { readonly type: 'unable'; readonly reason: Inability }
  /** From the publisher, whose addresses have changed: begin another round. */
  | { readonly type: 'again' }
  | { readonly type: 'bye'; readonly reason: string };

export interface RoundKeys {
  readonly id: Buffer;
  readonly toPublisher: Buffer;
  readonly toSubscriber: Buffer;
}

export const encodeHandshakeHello = (hello: HandshakeHello): Buffer => Buffer.from(JSON.stringify(hello));

/** null: not one that we understand. */
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

/** null: not readable. A type that is not known here is passed over by its reader, so that later versions may say more. */
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
