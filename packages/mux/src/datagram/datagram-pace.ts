// When a carrier is too far behind for datagrams: late is worse than lost. TCP's buffers hide megabytes, so their sender judges by what the
// receiver says it has taken (SEEN). Two bounds hold: what waits longest is not older than the path takes plus DATAGRAM_BEHIND_MS, and what
// is under way is no more than the carrier can take in that time. The first alone would notice a sender of five times what the path bears
// only when five times too much is under way.

/** later than the round trip alone by more than this they are dropped: for a game or a call late is worse than lost */
export const DATAGRAM_BEHIND_MS = 100;
/** of a carrier's datagrams that are not seen yet, before it is known what it bears: 100 ms at 20 Mbit/s */
export const DATAGRAM_UNSEEN_FIRST_BYTES = 256 * 1024;
/** the same of one that was found slow: 100 ms at 2.6 Mbit/s, or a few datagrams */
export const DATAGRAM_UNSEEN_FLOOR_BYTES = 32 * 1024;
/** Unseen bytes that are always allowed, enough for a few questions, so that a short pause of the machine shuts no visitor out. */
const DATAGRAM_UNSEEN_FEW_BYTES = 2 * 1024;
/** the same of a fast one: 1 Gbit/s over a path of 130 ms; what of it the kernel does not take is bound by CARRIER_SEND_QUEUE_BYTES */
export const DATAGRAM_UNSEEN_MAX_BYTES = 16 * 1024 * 1024;

/** Datagrams of one turn of the loop, or of one millisecond, are timed together. */
const MARK_MS = 1;
/** More at once only on a path of seconds: the last mark then stands for what follows. */
const MARKS_MAX = 256;
/** Waiting longer than this beyond the round trip is a queue and no jitter. */
const QUEUED_FROM_MS = DATAGRAM_BEHIND_MS / 2;
/** One late answer is a link or a machine that stood still for a moment; so many in a row are a path that bears less. */
const SLOW_AFTER = 2;
/** So many of those that found nothing before them must agree that the path has become longer. */
const LONGER_PATH_AFTER = 8;

export class DatagramPace {
  #sentBytes = 0;
  #seenBytes = 0;
  /** What may be under way. */
  #windowBytes: number = DATAGRAM_UNSEEN_FIRST_BYTES;
  /** The smallest; null until something was measured. */
  #roundTripMs: number | null;
  // The ring of marks that are not seen yet: up to which byte, since when, and what had been seen then.
  readonly #ends = new Float64Array(MARKS_MAX);
  readonly #times = new Float64Array(MARKS_MAX);
  readonly #seenThen = new Float64Array(MARKS_MAX);
  #first = 0;
  #count = 0;
  /** Answers in a row that showed a queue. */
  #queued = 0;
  // Of the last ones that found nothing before them.
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

  /** Whether this much may go now. Where nothing is under way one always may, however large. */
  admits(bytes: number, nowMs: number): boolean {
    return this.fits(bytes) && !this.isLate(nowMs, DATAGRAM_BEHIND_MS);
  }

  /** The first bound alone: no more is under way than the carrier takes in its time. */
  fits(bytes: number): boolean {
    return this.#count === 0 || this.unseenBytes + bytes <= this.#windowBytes;
  }

  /** The second: what waits longest waits longer than the round trip and `byMs`. */
  isLate(nowMs: number, byMs: number): boolean {
    if (this.#count === 0 || this.#roundTripMs === null) return false;
    return nowMs - (this.#times[this.#first] ?? 0) > this.#roundTripMs + byMs;
  }

  /**
   * Whether a new flow may begin now. Where more is under way than a few questions, only in the first half of either bound, so that a flood of
   * them leaves the other to flows that talk.
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

  /** The receiver has taken so much in all. false: it cannot have. */
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
    // The newest waited least for this answer, which comes once in a while only.
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
    // So much under way took so long: this much would have taken as long as is allowed.
    const fits = (underWay * allowedMs) / Math.max(tookMs, MARK_MS);
    this.#queued = tookMs - this.#roundTripMs > QUEUED_FROM_MS ? this.#queued + 1 : 0;
    if (this.#queued >= SLOW_AFTER) {
      this.#windowBytes = Math.max(fits, this.#windowBytes / 2, DATAGRAM_UNSEEN_FLOOR_BYTES);
    } else if (this.#queued === 0) this.#windowBytes = Math.max(this.#windowBytes, Math.min(fits, 2 * underWay));
    this.#windowBytes = Math.min(this.#windowBytes, DATAGRAM_UNSEEN_MAX_BYTES);
  }

  /** A longer path is believed only of those that no queue of our own held up: under a lasting overload there are none. */
  #foundNothingBefore(tookMs: number): void {
    this.#alone += 1;
    this.#aloneMs = Math.min(this.#aloneMs, tookMs);
    if (this.#alone < LONGER_PATH_AFTER) return;
    this.#roundTripMs = this.#aloneMs;
    this.#alone = 0;
    this.#aloneMs = Number.POSITIVE_INFINITY;
  }
}
