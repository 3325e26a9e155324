// How much one busy socket or carrier may read before the others have their turn. Bulk that is alone reads much at once, which costs the least; while small
// messages pass through the process it reads less, because every byte of a turn stands in front of them.
import { MUX_LIMITS } from '../limits.ts';

/** read of one busy socket before the others have their turn */
export const READ_TURN_BYTES = 512 * 1024;
/** between two small messages of a conversation, and behind its last one: then bulk takes large turns again */
export const SMALL_MESSAGES_FOR_MS = 100;

/** What is read at once of a socket that has something to say now and then. */
const SMALL_UP_TO_BYTES = 4 * 1024;

/**
 * Whether small messages pass: two of them within a moment are a conversation. One alone, such as the request that bulk answers, has nobody behind it whom
 * short turns would help. They only count: a clock is read by bulk, for which it is nothing.
 */
export class SmallMessages {
  #count = 0;
  #seen = 0;
  #seenAtMs = Number.NEGATIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** A socket that is not bulk has read. */
  passed(bytes: number): void {
    if (bytes <= SMALL_UP_TO_BYTES) this.#count += 1;
  }

  areAbout(nowMs: number): boolean {
    if (this.#count !== this.#seen) {
      this.#seen = this.#count;
      if (nowMs - this.#seenAtMs < SMALL_MESSAGES_FOR_MS) {
        this.#untilMs = nowMs + SMALL_MESSAGES_FOR_MS;
      }
      this.#seenAtMs = nowMs;
    }
    return nowMs < this.#untilMs;
  }
}

/** All sockets of a process share its one loop. */
export const smallMessages = new SmallMessages();

/** The turns of one reader. */
export class ReadTurn {
  /** Whether its next read should be a short one. */
  isShared = false;
  readonly #small: SmallMessages;
  #bytes = 0;

  constructor(small: SmallMessages = smallMessages) {
    this.#small = small;
  }

  /** false: enough for this turn. */
  goesOn(bytes: number, nowMs: number): boolean {
    this.isShared = this.#small.areAbout(nowMs);
    this.#bytes += bytes;
    if (this.#bytes < (this.isShared ? MUX_LIMITS.READ_TURN_SHARED_BYTES : READ_TURN_BYTES)) return true;
    this.#bytes = 0;
    return false;
  }
}
