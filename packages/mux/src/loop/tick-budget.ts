// Limits how much a busy socket or carrier reads before others get a turn. Bulk data reads large amounts at once if it has the loop to
// itself, because large reads cost least. While small messages pass through the process, turns are shorter, because small messages wait for
// every byte of a turn.
import { MUX_LIMITS } from '../limits.ts';

/** Bytes that a busy socket reads in a row before other sockets get a turn. */
export const TICK_READ_BYTES = 512 * 1024;
/** Maximum gap between small messages of a conversation. After the last small message, bulk takes large turns again. */
export const SMALL_MESSAGES_FOR_MS = 100;

/** Maximum size of a socket read that counts as a small message. */
const SMALL_UP_TO_BYTES = 4 * 1024;

/**
 * Detects small messages: two within SMALL_MESSAGES_FOR_MS are a conversation. A single small message, such as the request for a bulk
 * download, needs no short turns. Small reads only increment a counter; the clock is read by bulk readers, for which the cost is
 * negligible.
 */
export class SmallMessages {
  #count = 0;
  #seen = 0;
  #seenAtMs = Number.NEGATIVE_INFINITY;
  #untilMs = Number.NEGATIVE_INFINITY;

  /** Counts a read of a socket that is not transferring bulk data, if the read is small. */
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

/** Detector of small messages, shared by all sockets, because a process has a single event loop. */
export const smallMessages = new SmallMessages();

/** Tracks how many bytes a socket or carrier has read in its current turn. */
export class TickReadBudget {
  /** True if the socket's next read should be short, because small messages pass through the process. */
  isShared = false;
  readonly #small: SmallMessages;
  #bytes = 0;

  constructor(small: SmallMessages = smallMessages) {
    this.#small = small;
  }

  /** Counts bytes that were read. Returns false if the socket's turn is used up, so that other sockets can be read. */
  goesOn(bytes: number, nowMs: number): boolean {
    this.isShared = this.#small.areAbout(nowMs);
    this.#bytes += bytes;
    if (this.#bytes < (this.isShared ? MUX_LIMITS.TICK_READ_SHARED_BYTES : TICK_READ_BYTES)) return true;
    this.#bytes = 0;
    return false;
  }
}
