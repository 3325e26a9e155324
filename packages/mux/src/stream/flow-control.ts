// Flow control of streams: the credit one side gives the other (how much may still come, when more is given, and how much at once),
// and the memory that all credit together may make us hold. A window doubles while its stream uses it up within two round trips, as
// far as the budget goes, and gives back what is over its fair share while the budget is exceeded.
import * as os from 'node:os';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { MUX_LIMITS } from '../limits.ts';

/** while a round trip takes under 20 ms a window does not grow before this has passed: less may lie in the kernel of a peer that never reads */
export const STREAM_WINDOW_GROWS_AFTER_BYTES = 8 * 1024 * 1024;
/** the largest window while a round trip takes under 5 ms; more would only stand in front of small frames */
export const STREAM_WINDOW_SHORT_PATH_BYTES = 4 * 1024 * 1024;
/** the same under 1 ms while small messages pass: what is in flight keeps both processes from them */
export const STREAM_WINDOW_SHARED_BYTES = 512 * 1024;
/**
 * part of the machine’s memory that all sessions together may have us hold
 * @limit operator: Share of the machine's memory for data in tunnels | tunnels slow down
 */
const PROCESS_BUDGET_MEMORY_SHARE = 0.25;
/** one after the other at the start: the least of them is the path’s, the others are those of a busy machine */
export const CARRIER_FIRST_PINGS = 8;
/** a path whose round trip is shorter than this is near: neither a loss nor what a socket holds back lasts there */
export const CARRIER_NEAR_UNDER_MS = 4;

/** Below this a round trip is noise of the scheduler: a loopback stream grows as if it were a path of 5 ms. */
const SHORTEST_ROUND_TRIP_MS = 5;
/** From here on the first window alone is felt: 256 KiB each round trip are 13 MB/s. */
const LONG_ROUND_TRIP_MS = 20;
/** Below this there is no path to fill: what is in flight waits in the queues of the two machines. */
const NO_PATH_MS = 1;

/**
 * The first window of a stream: smaller the more streams a session has, so that their sum stays near a
 * quarter of the budget, and the least one when the budget is used up: all windows together are at most the budget plus one
 * floor a stream.
 */
export const firstWindowOf = (budget: MemoryBudget, liveStreams: number): number => {
  const share = Math.floor(budget.limitBytes / (4 * (liveStreams + 1)));
  const wanted = Math.min(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES, share);
  return budget.hasRoomFor(wanted)
    ? Math.max(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES, wanted)
    : MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES;
};

export interface PathFacts {
  readonly roundTripMs: number;
  /** The least that was measured. */
  readonly shortestMs: number;
  readonly liveStreams: number;
  /** Small messages pass through this process, too. */
  readonly isShared: boolean;
  readonly nowMs: number;
}

export class ReceiveWindow {
  readonly #budget: MemoryBudget;
  #windowBytes: number;
  /** What the peer may still send. */
  #creditBytes: number;
  /** Consumed since the last grant. */
  #consumedBytes = 0;
  /** Consumed before it by the present reader. */
  #passedBytes = 0;
  #grantedAtMs = 0;

  constructor(budget: MemoryBudget, windowBytes: number, nowMs: number) {
    this.#budget = budget;
    this.#windowBytes = windowBytes;
    this.#creditBytes = windowBytes;
    this.#grantedAtMs = nowMs;
    budget.commit(windowBytes);
  }

  get windowBytes(): number {
    return this.#windowBytes;
  }

  /** Somebody else reads from here on: what passed before says nothing of them. */
  onNewReader(): void {
    this.#passedBytes = 0;
  }

  /** false: the peer sent more than it was allowed. */
  take(bytes: number): boolean {
    if (bytes > this.#creditBytes) return false;
    this.#creditBytes -= bytes;
    return true;
  }

  /** `bytes` have been passed on. true: half of the window is used, it is time to ask grant(). */
  consume(bytes: number): boolean {
    this.#consumedBytes += bytes;
    return this.#consumedBytes * 2 >= this.#windowBytes;
  }

  /** The credit to send to the peer now; 0 for none. */
  grant(path: PathFacts): number {
    const before = this.#windowBytes;
    const largest = largestWindow(path);
    if (this.#budget.exceeded) this.#shrink(Math.floor(this.#budget.limitBytes / Math.max(1, path.liveStreams)));
    else if (before > largest) this.#shrink(largest);
    else if (this.#usedUpFast(path) && this.#isWorthMore(path)) this.#grow(largest);
    const credit = this.#consumedBytes + (this.#windowBytes - before);
    this.#grantedAtMs = path.nowMs;
    this.#passedBytes += this.#consumedBytes;
    this.#consumedBytes = 0;
    this.#creditBytes += credit;
    return credit;
  }

  /** The stream is over: what was promised to it is free for others. */
  close(): void {
    this.#budget.release(this.#windowBytes);
    this.#windowBytes = 0;
    this.#creditBytes = 0;
  }

  #usedUpFast(path: PathFacts): boolean {
    return path.nowMs - this.#grantedAtMs < 2 * Math.max(path.roundTripMs, SHORTEST_ROUND_TRIP_MS);
  }

  /**
   * At first the kernel takes what nobody may ever read, and quickly: a larger window would be filled for nothing. On a long path it is given
   * all the same, since there the first megabytes would take many round trips.
   */
  #isWorthMore({ shortestMs }: PathFacts): boolean {
    return shortestMs >= LONG_ROUND_TRIP_MS || this.#passedBytes >= STREAM_WINDOW_GROWS_AFTER_BYTES;
  }

  #grow(largest: number): void {
    const more = Math.min(this.#windowBytes, largest - this.#windowBytes);
    if (more > 0 && this.#budget.tryCommit(more)) this.#windowBytes += more;
  }

  /** Only consumed credit can be kept back: what the peer already has cannot be taken away. */
  #shrink(to: number): void {
    const target = Math.max(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES, to);
    const less = Math.min(this.#windowBytes - target, this.#consumedBytes);
    if (less <= 0) return;
    this.#windowBytes -= less;
    this.#budget.release(less);
  }
}

/** A window holds what one round trip carries; on a short path a large one is only a queue, which the small messages of others wait behind. */
const largestWindow = ({ roundTripMs, shortestMs, isShared }: PathFacts): number => {
  if (isShared && shortestMs < NO_PATH_MS) return STREAM_WINDOW_SHARED_BYTES;
  return roundTripMs < SHORTEST_ROUND_TRIP_MS ? STREAM_WINDOW_SHORT_PATH_BYTES : WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES;
};

// ---- the budget ----
// How much memory the peers of one session, and of the whole process, may fill at the worst: the sum of all windows given out.
// A commitment counts in the session and in the process; either of them can stop windows from growing.

export class MemoryBudget {
  readonly limitBytes: number;
  readonly #parent: MemoryBudget | null;
  #committedBytes = 0;

  constructor(limitBytes: number, parent: MemoryBudget | null = null) {
    this.limitBytes = limitBytes;
    this.#parent = parent;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }

  /** True while more is promised than the budget allows: windows then shrink to their fair share as they are used. */
  get exceeded(): boolean {
    return this.#committedBytes > this.limitBytes || (this.#parent?.exceeded ?? false);
  }

  /** Room for a window that grows; nothing is promised when it would go over. */
  tryCommit(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false;
    this.commit(bytes);
    return true;
  }

  /** The least a stream needs to move at all is promised in any case. */
  commit(bytes: number): void {
    this.#committedBytes += bytes;
    this.#parent?.commit(bytes);
  }

  release(bytes: number): void {
    this.#committedBytes -= bytes;
    this.#parent?.release(bytes);
  }

  hasRoomFor(bytes: number): boolean {
    if (this.#committedBytes + bytes > this.limitBytes) return false;
    return this.#parent === null || this.#parent.hasRoomFor(bytes);
  }
}

let ofProcess: MemoryBudget | undefined;

/** One per process: a quarter of the memory it may use. */
export const processBudget = (): MemoryBudget => {
  if (ofProcess === undefined) {
    const constrained = process.constrainedMemory?.() ?? 0;
    const memory = constrained > 0 ? Math.min(constrained, os.totalmem()) : os.totalmem();
    ofProcess = new MemoryBudget(Math.floor(memory * PROCESS_BUDGET_MEMORY_SHARE));
  }
  return ofProcess;
};

/** How long a carrier's path takes, as its pings say. */
export class RoundTrip {
  latestMs = 0;
  #leastMs = Number.POSITIVE_INFINITY;
  #count = 0;

  /** Answered at all: enough to begin with, not enough to call a path long. */
  get isMeasured(): boolean {
    return this.#count > 0;
  }

  /** What the path takes without what a busy machine adds. 0 until it is known. */
  get shortestMs(): number {
    return this.#isKnown ? this.#leastMs : 0;
  }

  /** Shorter than CARRIER_NEAR_UNDER_MS, and known well enough to say so. */
  get isNear(): boolean {
    return this.#isKnown && this.#leastMs < CARRIER_NEAR_UNDER_MS;
  }

  /** false: that is not enough yet. One alone may say more of a busy machine than of the path. */
  measured(elapsedMs: number): boolean {
    this.latestMs = elapsedMs;
    this.#leastMs = Math.min(this.#leastMs, elapsedMs);
    this.#count += 1;
    return this.#isKnown;
  }

  get #isKnown(): boolean {
    return this.#count >= CARRIER_FIRST_PINGS;
  }
}
