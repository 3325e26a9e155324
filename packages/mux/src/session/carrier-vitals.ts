// How one carrier fares: when it was heard, when it is pinged and how long that takes, what it moves, and when it is worn out.

import { MUX_LIMITS } from '../limits.ts';
import { RoundTrip } from '../stream/flow-control.ts';

const MIB = 1024 * 1024;
const BULK_STEP_BYTES = MIB / 8;

export class CarrierVitals {
  readonly roundTrip = new RoundTrip();
  readonly #openedAtMs: number;
  #lastHeardMs: number;
  #lastPingMs: number;
  #receivedBytes = 0;
  /** Both ways, up to the last tick. */
  #movedBytes = 0;
  /** Both ways, between the last two ticks. */
  #recentBytes = 0;

  constructor(nowMs: number) {
    this.#openedAtMs = nowMs;
    this.#lastHeardMs = nowMs;
    this.#lastPingMs = nowMs;
  }

  heard(bytes: number, nowMs: number): void {
    this.#lastHeardMs = nowMs;
    this.#receivedBytes += bytes;
  }

  pinged(nowMs: number): void {
    this.#lastPingMs = nowMs;
  }

  /** The peer echoes our own time; an answer older than the carrier may live is none. false: the path is to be asked again at once. */
  onPong(sentMs: number, nowMs: number): boolean {
    const elapsedMs = (Math.floor(nowMs) - sentMs) >>> 0;
    return elapsedMs >= MUX_LIMITS.CARRIER_DEAD_AFTER_MS || this.roundTrip.measured(elapsedMs);
  }

  /**
   * What to weigh when a stream is placed, counted in streams: a MiB a second weighs as much as one. On a near path streams share a carrier up to a bound,
   * as long as it carries little: what they send in one turn then leaves in one write. On a longer one a loss would stop all of them, and what the
   * kernel has queued of one would lie in front of the others.
   */
  loadWith(streams: number, bytesSent: number): number {
    const shared = this.roundTrip.isNear ? MUX_LIMITS.CARRIER_SHARED_STREAMS : 1;
    const bytes = Math.max(this.#recentBytes, this.#movedSince(bytesSent));
    // In steps, or the last frame of one would send the next stream to another.
    return Math.floor(streams / shared) + (Math.floor(bytes / BULK_STEP_BYTES) * BULK_STEP_BYTES) / MIB;
  }

  tick(bytesSent: number): void {
    this.#recentBytes = this.#movedSince(bytesSent);
    this.#movedBytes += this.#recentBytes;
  }

  /** The last tick. */
  #movedSince(bytesSent: number): number {
    return this.#receivedBytes + bytesSent - this.#movedBytes;
  }

  isDead(nowMs: number): boolean {
    return nowMs - this.#lastHeardMs >= MUX_LIMITS.CARRIER_DEAD_AFTER_MS;
  }

  isPingDue(nowMs: number): boolean {
    return nowMs - this.#lastPingMs >= MUX_LIMITS.CARRIER_PING_INTERVAL_MS;
  }

  isWorn(nowMs: number, bytesSent: number): boolean {
    return (
      nowMs - this.#openedAtMs >= MUX_LIMITS.CARRIER_ROTATE_AFTER_MS ||
      bytesSent >= MUX_LIMITS.CARRIER_ROTATE_AFTER_BYTES
    );
  }
}
