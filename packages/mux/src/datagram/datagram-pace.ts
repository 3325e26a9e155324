// Decides when a carrier is too far behind for datagrams, because a late datagram is worse than a lost one. TCP buffers hide megabytes, so
// the sender relies on the receiver's SEEN frames. Two limits apply: the oldest unseen datagram must not be older than the round trip plus
// DATAGRAM_BEHIND_MS, and unseen bytes must not exceed the amount the carrier can deliver in that time. The first limit is not enough: at
// five times the path's rate, it would take effect only when five times too much is in flight.

/** Delay beyond the round trip after which datagrams are dropped. For games and calls, late is worse than lost. */
export const DATAGRAM_BEHIND_MS = 100;
/** Initial limit of unseen bytes, before the carrier's rate is known: 100 ms at 20 Mbit/s. */
export const DATAGRAM_UNSEEN_FIRST_BYTES = 256 * 1024;
/** Minimum limit of unseen bytes, for a slow carrier: 100 ms at 2.6 Mbit/s, or a few datagrams. */
export const DATAGRAM_UNSEEN_FLOOR_BYTES = 32 * 1024;
/** Unseen bytes that are always allowed, enough for a few requests, so that a short pause of the machine rejects no visitor. */
const DATAGRAM_UNSEEN_FEW_BYTES = 2 * 1024;
/**
 * Maximum limit of unseen bytes, for a fast carrier: 1 Gbit/s over a path of 130 ms. Bytes not accepted by the kernel are limited by
 * CARRIER_SEND_QUEUE_BYTES.
 */
export const DATAGRAM_UNSEEN_MAX_BYTES = 16 * 1024 * 1024;

/** Datagrams of an event loop turn, or of a millisecond, share a time mark. */
const MARK_MS = 1;
/** Maximum number of marks. Only a path with a delay of seconds needs more; the last mark then covers later datagrams. */
const MARKS_MAX = 256;
/** A delay above this beyond the round trip indicates a queue, not jitter. */
const QUEUED_FROM_MS = DATAGRAM_BEHIND_MS / 2;
/** Late answers in a row that indicate a slower path. A single late answer can come from a link or machine that paused for a moment. */
const SLOW_AFTER = 2;
/** Number of datagrams sent on an idle path that must agree before a longer round trip is believed. */
const LONGER_PATH_AFTER = 8;

export class DatagramPace {
  #sentBytes = 0;
  #seenBytes = 0;
  /** Maximum number of datagram bytes that were sent but not reported as seen by the receiver. */
  #windowBytes: number = DATAGRAM_UNSEEN_FIRST_BYTES;
  /** Smallest round trip of the carrier's datagrams so far. Null before the first measurement. */
  #roundTripMs: number | null;
  // Ring of marks not seen yet: last byte, send time, and bytes seen at that time.
  readonly #ends = new Float64Array(MARKS_MAX);
  readonly #times = new Float64Array(MARKS_MAX);
  readonly #seenThen = new Float64Array(MARKS_MAX);
  #first = 0;
  #count = 0;
  /** Number of consecutive SEEN frames with a delay that indicates a queue on the path. */
  #queued = 0;
  // Count and minimum delay of recent datagrams sent on an idle path.
  #alone = 0;
  #aloneMs = Number.POSITIVE_INFINITY;

  constructor(roundTripMs: number | null) {
    this.#roundTripMs = roundTripMs;
  }

  get unseenBytes(): number {
    return this.#sentBytes - this.#seenBytes;
  }

  get windowBytes(): number {
    return this.#windowBytes;
  }

  /** Returns true if a datagram of this size can be sent now. On an idle path, a datagram of any size is allowed. */
  admits(bytes: number, nowMs: number): boolean {
    return this.fits(bytes) && !this.isLate(nowMs, DATAGRAM_BEHIND_MS);
  }

  /** Checks the window only: unseen bytes must not exceed the amount the carrier delivers in time. */
  fits(bytes: number): boolean {
    return this.#count === 0 || this.unseenBytes + bytes <= this.#windowBytes;
  }

  /** Checks the delay only: returns true if the oldest unseen datagram is older than the round trip plus `byMs`. */
  isLate(nowMs: number, byMs: number): boolean {
    if (this.#count === 0 || this.#roundTripMs === null) return false;
    return nowMs - (this.#times[this.#first] ?? 0) > this.#roundTripMs + byMs;
  }

  /**
   * Returns true if a new flow can begin now. If more than a few requests are in flight, only the first half of each limit is available to
   * new flows, so that a flood of new flows leaves room for existing flows.
   */
  takesFlows(nowMs: number): boolean {
    const isFew = this.unseenBytes <= DATAGRAM_UNSEEN_FEW_BYTES;
    if (isFew) return this.admits(0, nowMs);
    return this.unseenBytes <= this.#windowBytes / 2 && !this.isLate(nowMs, DATAGRAM_BEHIND_MS / 2);
  }

  sent(bytes: number, nowMs: number): void {
    this.#sentBytes += bytes;
    const last = (this.#first + this.#count - 1) % MARKS_MAX;
    const joins = this.#count > 0 && (nowMs - (this.#times[last] ?? 0) < MARK_MS || this.#count === MARKS_MAX);
    const at = joins ? last : (this.#first + this.#count) % MARKS_MAX;
    this.#ends[at] = this.#sentBytes;
    if (joins) return;
    this.#times[at] = nowMs;
    this.#seenThen[at] = this.#seenBytes;
    this.#count += 1;
  }

  /** Records the total bytes taken by the receiver. Returns false if the value is impossible. */
  seen(takenBytes: number, nowMs: number): boolean {
    if (takenBytes < this.#seenBytes || takenBytes > this.#sentBytes) return false;
    const before = this.#seenBytes;
    this.#seenBytes = takenBytes;
    let newest = -1;
    let startOfNewest = before;
    while (this.#count > 0 && (this.#ends[this.#first] ?? 0) <= takenBytes) {
      if (newest >= 0) startOfNewest = this.#ends[newest] ?? 0;
      newest = this.#first;
      this.#first = (this.#first + 1) % MARKS_MAX;
      this.#count -= 1;
    }
    // The newest mark is the best sample, because it waited least for this answer; answers are sent only at intervals.
    if (newest >= 0) this.#learn(newest, startOfNewest, nowMs);
    return true;
  }

  #learn(mark: number, startOfMark: number, nowMs: number): void {
    const tookMs = nowMs - (this.#times[mark] ?? 0);
    const seenThen = this.#seenThen[mark] ?? 0;
    const underWay = (this.#ends[mark] ?? 0) - seenThen;
    this.#roundTripMs = Math.min(this.#roundTripMs ?? tookMs, tookMs);
    if (startOfMark <= seenThen) this.#foundNothingBefore(tookMs);
    const allowedMs = this.#roundTripMs + DATAGRAM_BEHIND_MS;
    // Estimates how many datagram bytes in flight would have arrived within exactly the allowed time.
    const fits = (underWay * allowedMs) / Math.max(tookMs, MARK_MS);
    this.#queued = tookMs - this.#roundTripMs > QUEUED_FROM_MS ? this.#queued + 1 : 0;
    if (this.#queued >= SLOW_AFTER) {
      this.#windowBytes = Math.max(fits, this.#windowBytes / 2, DATAGRAM_UNSEEN_FLOOR_BYTES);
    } else if (this.#queued === 0) this.#windowBytes = Math.max(this.#windowBytes, Math.min(fits, 2 * underWay));
    this.#windowBytes = Math.min(this.#windowBytes, DATAGRAM_UNSEEN_MAX_BYTES);
  }

  /** Believes in a longer round trip only from samples not delayed by our own queue. Under lasting overload, no such samples exist. */
  #foundNothingBefore(tookMs: number): void {
    this.#alone += 1;
    this.#aloneMs = Math.min(this.#aloneMs, tookMs);
    if (this.#alone < LONGER_PATH_AFTER) return;
    this.#roundTripMs = this.#aloneMs;
    this.#alone = 0;
    this.#aloneMs = Number.POSITIVE_INFINITY;
  }
}
