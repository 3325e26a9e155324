// Sealed packets of UDP paths: kind, path id, counter, AES-256-GCM. Each direction has a separate key. A key and its counter, which must
// never repeat, are in the same object. Packets that fail authentication are dropped silently and never answered.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { MUX_LIMITS } from '../limits.ts';

/** Maximum reordering of packets on a UDP path. Older packets are dropped as replays. */
export const REPLAY_WINDOW_PACKETS = 1024;

/**
 * Kinds of packets. DATAGRAMS requires a capability. 0xFF is not used, because packets of udx, which shares a peer's socket, begin with
 * 0xFF.
 */
export const SEALED_KIND = { DATAGRAM: 1, PING: 2, PONG: 3, PROBE: 4, PROBE_ACK: 5, DATAGRAMS: 6 } as const;
export type SealedKind = (typeof SEALED_KIND)[keyof typeof SEALED_KIND];

export const PATH_ID_BYTES = 8;
export const PATH_KEY_BYTES = 32;
const COUNTER_AT = 1 + PATH_ID_BYTES;
const COUNTER_BYTES = 8;
/** Size of a sealed packet's authenticated header: kind (1 byte), path id (8), counter (8). */
export const SEALED_HEADER_BYTES = COUNTER_AT + COUNTER_BYTES;
const TAG_BYTES = 16;
/** Bytes of a sealed packet in addition to its body: header and authentication tag. */
export const SEALED_OVERHEAD_BYTES = SEALED_HEADER_BYTES + TAG_BYTES;
/** Size of the flow id in front of the payload in a sealed DATAGRAM packet. */
export const FLOW_ID_BYTES = 4;

const CIPHER = 'aes-256-gcm';
const TWO_32 = 2 ** 32;
const LAST_KIND = Math.max(...Object.values(SEALED_KIND));

const NONCE_COUNTER_AT = 4;
/** Nonce: four zero bytes and the counter. Shared by all keys, as the buffers below, because ciphers read them before the call returns. */
const nonce = Buffer.alloc(NONCE_COUNTER_AT + COUNTER_BYTES);
/** Header and tag of the packet being opened. Copies cost less CPU than views of the packet, which Node.js allocates one by one. */
const openedHeader = Buffer.alloc(SEALED_HEADER_BYTES);
const openedTag = Buffer.alloc(TAG_BYTES);

/** Copies a few bytes, for which a loop is faster than Buffer.copy. */
const copyShort = (from: Buffer, start: number, to: Buffer, at: number, length: number): void => {
  for (let i = 0; i < length; i += 1) to[at + i] = from[start + i] as number;
};

/** Sending key of a path. All senders under the same key must share this object, and with it the counter. */
export class SealingKey {
  readonly #key: KeyObject;
  /** Header of the current packet, with the path id. */
  readonly #header = Buffer.alloc(SEALED_HEADER_BYTES);
  #sealed = 0;

  constructor(pathId: Buffer, key: Buffer) {
    checkSizes(pathId, key);
    this.#header.set(pathId, 1);
    this.#key = createSecretKey(key);
  }

  /** Number of packets sealed with this key so far, equal to the last counter. */
  get sealed(): number {
    return this.#sealed;
  }

  /** True if the key has reached its packet limit and seals no more packets. */
  get isWornOut(): boolean {
    return this.#sealed >= MUX_LIMITS.SEALED_PACKETS_PER_KEY;
  }

  /** Writes the sealed packet to `into` at `at` and returns the end position, or -1 if the key is worn out. */
  seal(kind: SealedKind, body: Buffer, into: Buffer, at: number): number {
    if (this.isWornOut) return -1;
    this.#sealed += 1;
    const header = this.#header;
    header[0] = kind;
    header.writeUInt32BE(Math.floor(this.#sealed / TWO_32), COUNTER_AT);
    header.writeUInt32BE(this.#sealed % TWO_32, COUNTER_AT + 4);
    copyShort(header, COUNTER_AT, nonce, NONCE_COUNTER_AT, COUNTER_BYTES);
    const cipher = createCipheriv(CIPHER, this.#key, nonce);
    cipher.setAAD(header);
    const sealedBody = cipher.update(body);
    cipher.final();
    const tagAt = at + SEALED_HEADER_BYTES + sealedBody.length;
    into.set(header, at);
    into.set(sealedBody, at + SEALED_HEADER_BYTES);
    into.set(cipher.getAuthTag(), tagAt);
    return tagAt + TAG_BYTES;
  }
}

/** Why a packet was dropped: too short or of unknown kind, counter already used or too old, or not sealed with this key. */
export type SealedRefusal = 'malformed' | 'replayed' | 'forged';

/** Key that decrypts received packets of a UDP path. */
export class OpeningKey {
  readonly #key: KeyObject;
  readonly #pathId: Buffer;
  readonly #lastKind: SealedKind;
  readonly #window = new ReplayWindow();

  /** `takesBatches`: whether both ends agreed on packets with several datagrams. Otherwise their kind is unknown. */
  constructor(pathId: Buffer, key: Buffer, takesBatches = false) {
    checkSizes(pathId, key);
    this.#lastKind = takesBatches ? SEALED_KIND.DATAGRAMS : SEALED_KIND.PROBE_ACK;
    this.#pathId = Buffer.from(pathId);
    this.#key = createSecretKey(key);
  }

  /** Highest packet counter received with this key. */
  get highest(): number {
    return this.#window.highest;
  }

  /** Opens a packet and returns its body; kindOf(packet) returns its kind. A packet can be opened only once. */
  open(packet: Buffer): Buffer | SealedRefusal {
    if (packet.length < SEALED_OVERHEAD_BYTES || (readKind(packet) ?? LAST_KIND + 1) > this.#lastKind)
      return 'malformed';
    if (packet.compare(this.#pathId, 0, PATH_ID_BYTES, 1, COUNTER_AT) !== 0) return 'forged';
    const counter = packet.readUInt32BE(COUNTER_AT) * TWO_32 + packet.readUInt32BE(COUNTER_AT + 4);
    // The replay check comes before decryption, so that replayed packets cost little.
    if (!this.#window.isFresh(counter)) return 'replayed';
    const tagAt = packet.length - TAG_BYTES;
    copyShort(packet, 0, openedHeader, 0, SEALED_HEADER_BYTES);
    copyShort(packet, tagAt, openedTag, 0, TAG_BYTES);
    copyShort(packet, COUNTER_AT, nonce, NONCE_COUNTER_AT, COUNTER_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, nonce);
    decipher.setAAD(openedHeader);
    decipher.setAuthTag(openedTag);
    const body = decipher.update(packet.subarray(SEALED_HEADER_BYTES, tagAt));
    try {
      decipher.final();
    } catch {
      return 'forged';
    }
    // Recorded only after authentication. Otherwise a forger could block packets that are still in flight.
    this.#window.take(counter);
    return body;
  }
}

/** Returns the kind of a sealed packet, or null for an unknown kind. */
export const readKind = (packet: Buffer): SealedKind | null => {
  const kind = packet[0] ?? 0;
  return kind >= 1 && kind <= LAST_KIND ? (kind as SealedKind) : null;
};

const checkSizes = (pathId: Buffer, key: Buffer): void => {
  if (pathId.length !== PATH_ID_BYTES || key.length !== PATH_KEY_BYTES)
    throw new RangeError('a path id must have 8 bytes and the key 32 bytes');
};

const WINDOW = REPLAY_WINDOW_PACKETS;
const WORD_BITS = 32;
/** One word more than the window needs: the word of the newest counter is cleared while the oldest counters are still valid. */
const WORDS = WINDOW / WORD_BITS + 1;

/** Tracks which of the newest 1,024 counters were used. Older counters are rejected. */
class ReplayWindow {
  readonly #words = new Uint32Array(WORDS);
  highest = 0;

  isFresh(counter: number): boolean {
    // Packet counters start with 1. Values above 2^53 are not exact as numbers.
    if (counter < 1 || counter > Number.MAX_SAFE_INTEGER || counter <= this.highest - WINDOW) return false;
    return counter > this.highest || ((this.#words[wordOf(counter)] as number) & bitOf(counter)) === 0;
  }

  take(counter: number): void {
    if (counter > this.highest) this.#moveTo(counter);
    const word = wordOf(counter);
    this.#words[word] = (this.#words[word] as number) | bitOf(counter);
  }

  #moveTo(counter: number): void {
    const last = Math.floor(this.highest / WORD_BITS);
    const steps = Math.min(Math.floor(counter / WORD_BITS) - last, WORDS);
    for (let step = 1; step <= steps; step += 1) this.#words[(last + step) % WORDS] = 0;
    this.highest = counter;
  }
}

const wordOf = (counter: number): number => Math.floor(counter / WORD_BITS) % WORDS;
const bitOf = (counter: number): number => 1 << (counter % WORD_BITS);
