// How one carrier fares: when it was heard, when it is pinged and how long that takes, what it moves, and when it is worn out.

import { RoundTrip } from '../stream/flow-control.ts';

/** also measures the round trip by which windows grow */
export const CARRIER_PING_INTERVAL_MS = 10_000;
/** streams that share a carrier of a near path before the next one is taken */
export const CARRIER_SHARED_STREAMS = 64;
/** as on the control connection */
export const CARRIER_DEAD_AFTER_MS = 25_000;
/** a TLS key is not used for more (RFC 8446, section 5.5); a fresh carrier takes its place */
const CARRIER_ROTATE_AFTER_BYTES = 256 * 1024 * 1024 * 1024;
/** the same by time */
export const CARRIER_ROTATE_AFTER_MS = 24 * 3600 * 1000;

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
    return elapsedMs >= CARRIER_DEAD_AFTER_MS || this.roundTrip.measured(elapsedMs);
  }

  /**
   * What to weigh when a stream is placed, counted in streams: a MiB a second weighs as much as one. On a near path streams share a carrier up to a bound,
   * as long as it carries little: what they send in one turn then leaves in one write. On a longer one a loss would stop all of them, and what the
   * kernel has queued of one would lie in front of the others.
   */
  loadWith(streams: number, bytesSent: number): number {
    const shared = this.roundTrip.isNear ? CARRIER_SHARED_STREAMS : 1;
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
    return nowMs - this.#lastHeardMs >= CARRIER_DEAD_AFTER_MS;
  }

  isPingDue(nowMs: number): boolean {
    return nowMs - this.#lastPingMs >= CARRIER_PING_INTERVAL_MS;
  }

  isWorn(nowMs: number, bytesSent: number): boolean {
    return nowMs - this.#openedAtMs >= CARRIER_ROTATE_AFTER_MS || bytesSent >= CARRIER_ROTATE_AFTER_BYTES;
  }
}
