// Flow control of streams: the credit granted to the peer (how much, and when) and the memory limit for all granted credit. A window
// doubles while its stream uses the window up within two round trips and the budget allows, and shrinks to its fair share while the budget
// is exceeded.
import * as os from 'node:os';
import { WIRE_LIMITS } from '@tunnel/protocol';
import { MUX_LIMITS } from '../limits.ts';

/**
 * Bytes after which a window can grow while the round trip is under 20 ms. Fewer bytes may sit in the kernel of a peer that never reads.
 */
export const STREAM_WINDOW_GROWS_AFTER_BYTES = 8 * 1024 * 1024;
/** Largest window of a stream while its carrier's round trip is under 5 ms. A larger window would only delay small frames. */
export const STREAM_WINDOW_SHORT_PATH_BYTES = 4 * 1024 * 1024;
/**
 * Largest window of a stream while its carrier's round trip is under 1 ms and small messages pass through the process. More data in
 * flight would keep both processes from handling the small messages.
 */
export const STREAM_WINDOW_SHARED_BYTES = 512 * 1024;
/**
 * Share of the machine's memory for received data of all sessions.
 * @limit operator: Share of the machine's memory for data in tunnels | tunnels slow down
 */
const PROCESS_BUDGET_MEMORY_SHARE = 0.25;
/** Number of consecutive pings at the start. The shortest round trip is the path's; longer ones include delays of a busy machine. */
export const CARRIER_FIRST_PINGS = 8;
/** A path with a shorter round trip counts as near: packet loss and buffered data have no lasting effect there. */
export const CARRIER_NEAR_UNDER_MS = 4;

/** Shortest round trip assumed for a carrier. Shorter values are scheduler noise; a loopback stream's window grows like on a 5 ms path. */
const SHORTEST_ROUND_TRIP_MS = 5;
/** Round trip at which the initial window becomes noticeable: 256 KiB per round trip are 13 MB/s. */
const LONG_ROUND_TRIP_MS = 20;
/** Below this round trip the network holds no data: bytes in flight wait in the queues of both machines. */
const NO_PATH_MS = 1;

/**
 * Returns the initial window of a stream. The window shrinks with the number of streams, so that the sum stays near a quarter of the
 * budget. If the budget is used up, the window is the floor. All windows together never exceed the budget plus one floor per stream.
 */
export const initialWindow = (budget: MemoryBudget, liveStreams: number): number => {
  const share = Math.floor(budget.limitBytes / (4 * (liveStreams + 1)));
  const wanted = Math.min(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES, share);
  return budget.hasRoomFor(wanted)
    ? Math.max(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES, wanted)
    : MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES;
};

export interface PathFacts {
  readonly roundTripMs: number;
  /** Shortest measured round trip of the stream's carrier. 0 until enough pings were measured. */
  readonly shortestMs: number;
  readonly liveStreams: number;
  /** True while small messages pass through the process, so that stream windows should stay small. */
  readonly isShared: boolean;
  readonly nowMs: number;
}

export class ReceiveWindow {
  readonly #budget: MemoryBudget;
  #windowBytes: number;
  /** Bytes that the peer can still send on the stream before it needs more credit. */
  #creditBytes: number;
  /** Bytes of the stream consumed by its reader since the last credit was granted. */
  #consumedBytes = 0;
  /** Bytes of the stream consumed by its current reader before the last credit was granted. */
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

  /** Called when another reader takes over: earlier throughput says nothing about the new reader. */
  onNewReader(): void {
    this.#passedBytes = 0;
  }

  /** Deducts received bytes from the peer's credit. Returns false if the peer sent more than its credit. */
  take(bytes: number): boolean {
    if (bytes > this.#creditBytes) return false;
    this.#creditBytes -= bytes;
    return true;
  }

  /** Records consumed bytes. Returns true if half of the window is used and grant() should be called. */
  consume(bytes: number): boolean {
    this.#consumedBytes += bytes;
    return this.#consumedBytes * 2 >= this.#windowBytes;
  }

  /** Adjusts the stream's window and returns the credit to send to the peer now, or 0. */
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

  /** Releases the memory budget of a closed stream's window. */
  close(): void {
    this.#budget.release(this.#windowBytes);
    this.#windowBytes = 0;
    this.#creditBytes = 0;
  }

  #usedUpFast(path: PathFacts): boolean {
    return path.nowMs - this.#grantedAtMs < 2 * Math.max(path.roundTripMs, SHORTEST_ROUND_TRIP_MS);
  }

  /**
   * The kernel quickly accepts the first bytes even if no process ever reads them, so an early larger window could be filled in vain. Long
   * paths get a larger window anyway, because the first megabytes would take many round trips there.
   */
  #isWorthMore({ shortestMs }: PathFacts): boolean {
    return shortestMs >= LONG_ROUND_TRIP_MS || this.#passedBytes >= STREAM_WINDOW_GROWS_AFTER_BYTES;
  }

  #grow(largest: number): void {
    const more = Math.min(this.#windowBytes, largest - this.#windowBytes);
    if (more > 0 && this.#budget.tryCommit(more)) this.#windowBytes += more;
  }

  /** Reduces the window by consumed credit only; credit already granted cannot be revoked. */
  #shrink(to: number): void {
    const target = Math.max(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES, to);
    const less = Math.min(this.#windowBytes - target, this.#consumedBytes);
    if (less <= 0) return;
    this.#windowBytes -= less;
    this.#budget.release(less);
  }
}

/**
 * Returns the maximum window. A window should hold the data of one round trip. On a short path a larger window is only a queue that delays
 * small messages of other streams.
 */
const largestWindow = ({ roundTripMs, shortestMs, isShared }: PathFacts): number => {
  if (isShared && shortestMs < NO_PATH_MS) return STREAM_WINDOW_SHARED_BYTES;
  return roundTripMs < SHORTEST_ROUND_TRIP_MS ? STREAM_WINDOW_SHORT_PATH_BYTES : WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES;
};

// ---- the budget ----
// Memory the peers of a session, or of the whole process, can fill at worst: the sum of all granted windows. A commitment counts
// for the session and for the process, and either limit can stop windows from growing.

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

  /** True while the committed windows exceed the budget. Windows then shrink to their fair share as they are used. */
  get exceeded(): boolean {
    return this.#committedBytes > this.limitBytes || (this.#parent?.exceeded ?? false);
  }

  /** Commits memory for a growing window. Returns false and commits nothing if the budget would be exceeded. */
  tryCommit(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false;
    this.commit(bytes);
    return true;
  }

  /** Commits memory for a window even beyond the budget, for the minimum that a stream needs to make progress. */
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

/** Memory budget for received data of the whole process: a quarter of the memory available to the process. */
export const processBudget = (): MemoryBudget => {
  if (ofProcess === undefined) {
    const constrained = process.constrainedMemory?.() ?? 0;
    const memory = constrained > 0 ? Math.min(constrained, os.totalmem()) : os.totalmem();
    ofProcess = new MemoryBudget(Math.floor(memory * PROCESS_BUDGET_MEMORY_SHARE));
  }
  return ofProcess;
};

/** Round trip of a carrier, measured by pings. */
export class RoundTrip {
  latestMs = 0;
  #leastMs = Number.POSITIVE_INFINITY;
  #count = 0;

  /** True after the first measurement. A single measurement is not enough to classify the path. */
  get isMeasured(): boolean {
    return this.#count > 0;
  }

  /** Round trip of the path without delays of a busy machine. 0 until enough pings were measured. */
  get shortestMs(): number {
    return this.#isKnown ? this.#leastMs : 0;
  }

  /** True if the carrier's round trip is known and shorter than CARRIER_NEAR_UNDER_MS. */
  get isNear(): boolean {
    return this.#isKnown && this.#leastMs < CARRIER_NEAR_UNDER_MS;
  }

  /**
   * Records a measurement. Returns false until enough were made, because a single measurement can reflect a busy machine instead of the
   * path.
   */
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
