// The sealed packet of the UDP paths: kind, path id, counter, AES-256-GCM. One key a direction; a key and the counter that may never repeat
// under it are one object. What does not open is refused without a word: nobody answers a packet that was not sealed for us.
import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject } from 'node:crypto';
import { MUX_LIMITS } from '../limits.ts';

/** how far packets of a UDP path may overtake each other; older ones are dropped as if they were replayed */
export const REPLAY_WINDOW_PACKETS = 1024;

/** No kind is 0xFF: packets of udx, which shares a peer's socket with ours, begin with it. */
export const SEALED_KIND = { DATAGRAM: 1, PING: 2, PONG: 3, PROBE: 4, PROBE_ACK: 5 } as const;
export type SealedKind = (typeof SEALED_KIND)[keyof typeof SEALED_KIND];

export const PATH_ID_BYTES = 8;
export const PATH_KEY_BYTES = 32;
/** kind 1, path id 8, counter 8: what the tag vouches for beside the body. */
export const SEALED_HEADER_BYTES = 1 + PATH_ID_BYTES + 8;
const TAG_BYTES = 16;
/** What a packet has beside its body. */
export const SEALED_OVERHEAD_BYTES = SEALED_HEADER_BYTES + TAG_BYTES;
/** Before the payload of a DATAGRAM. */
export const FLOW_ID_BYTES = 4;

const CIPHER = 'aes-256-gcm';
const COUNTER_AT = 1 + PATH_ID_BYTES;
const TWO_32 = 2 ** 32;
const LAST_KIND = Math.max(...Object.values(SEALED_KIND));

/** Four zero bytes and the counter. Shared: it is read before the call that was given it returns. */
const nonce = Buffer.alloc(12);

/** The half of a path that sends. Whoever sends under this key shares this object, and with it the counter. */
export class SealingKey {
  readonly #key: KeyObject;
  readonly #pathId: Buffer;
  #sealed = 0;

  constructor(pathId: Buffer, key: Buffer) {
    checkSizes(pathId, key);
    this.#pathId = Buffer.from(pathId);
    this.#key = createSecretKey(key);
  }

  /** Packets so far, which is the last counter. */
  get sealed(): number {
    return this.#sealed;
  }

  /** A key that is worn out seals nothing more. */
  get isWornOut(): boolean {
    return this.#sealed >= MUX_LIMITS.SEALED_PACKETS_PER_KEY;
  }

  /** Writes the packet around `body` to `into` at `at` and gives its end; -1: the key is worn out. */
  seal(kind: SealedKind, body: Buffer, into: Buffer, at: number): number {
    if (this.isWornOut) return -1;
    this.#sealed += 1;
    const bodyAt = at + SEALED_HEADER_BYTES;
    into[at] = kind;
    this.#pathId.copy(into, at + 1);
    into.writeUInt32BE(Math.floor(this.#sealed / TWO_32), at + COUNTER_AT);
    into.writeUInt32BE(this.#sealed % TWO_32, at + COUNTER_AT + 4);
    into.copy(nonce, 4, at + COUNTER_AT, bodyAt);
    const cipher = createCipheriv(CIPHER, this.#key, nonce);
    cipher.setAAD(into.subarray(at, bodyAt));
    const tagAt = bodyAt + cipher.update(body).copy(into, bodyAt);
    cipher.final();
    return tagAt + cipher.getAuthTag().copy(into, tagAt);
  }
}

/** Why a packet was dropped: too short or of no kind, of a counter that was taken or is too old, or not sealed under this key. */
export type SealedRefusal = 'malformed' | 'replayed' | 'forged';

/** The half of a path that receives. */
export class OpeningKey {
  readonly #key: KeyObject;
  readonly #pathId: Buffer;
  readonly #window = new ReplayWindow();

  constructor(pathId: Buffer, key: Buffer) {
    checkSizes(pathId, key);
    this.#pathId = Buffer.from(pathId);
    this.#key = createSecretKey(key);
  }

  /** The highest counter that came. */
  get highest(): number {
    return this.#window.highest;
  }

  /** The body; its kind is `kindOf(packet)`. Each packet opens once. */
  open(packet: Buffer): Buffer | SealedRefusal {
    if (packet.length < SEALED_OVERHEAD_BYTES || kindOf(packet) === null) return 'malformed';
    if (packet.compare(this.#pathId, 0, PATH_ID_BYTES, 1, COUNTER_AT) !== 0) return 'forged';
    const counter = packet.readUInt32BE(COUNTER_AT) * TWO_32 + packet.readUInt32BE(COUNTER_AT + 4);
    // Before the work of opening it, which a recording played back is not worth.
    if (!this.#window.isFresh(counter)) return 'replayed';
    packet.copy(nonce, 4, COUNTER_AT, SEALED_HEADER_BYTES);
    const decipher = createDecipheriv(CIPHER, this.#key, nonce);
    const tagAt = packet.length - TAG_BYTES;
    decipher.setAAD(packet.subarray(0, SEALED_HEADER_BYTES));
    decipher.setAuthTag(packet.subarray(tagAt));
    const body = decipher.update(packet.subarray(SEALED_HEADER_BYTES, tagAt));
    try {
      decipher.final();
    } catch {
      return 'forged';
    }
    // Not before the tag is proven, or a forger could shut out what is still under way.
    this.#window.take(counter);
    return body;
  }
}

/** null: no kind of ours. */
export const kindOf = (packet: Buffer): SealedKind | null => {
  const kind = packet[0] ?? 0;
  return kind >= 1 && kind <= LAST_KIND ? (kind as SealedKind) : null;
};

const checkSizes = (pathId: Buffer, key: Buffer): void => {
  if (pathId.length !== PATH_ID_BYTES || key.length !== PATH_KEY_BYTES)
    throw new RangeError('a path id must have 8 bytes and the key 32 bytes');
};

const WINDOW = REPLAY_WINDOW_PACKETS;
const WORD_BITS = 32;
/** One word more than the window fills: the word that the newest counter begins is emptied while the oldest ones still count. */
const WORDS = WINDOW / WORD_BITS + 1;

/** Which counters were taken, of the newest 1,024; older ones are refused unseen. */
class ReplayWindow {
  readonly #words = new Uint32Array(WORDS);
  highest = 0;

  isFresh(counter: number): boolean {
    // Counters begin with 1, and beyond 2^53 two of them would be one number.
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
