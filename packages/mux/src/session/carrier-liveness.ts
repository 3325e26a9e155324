// Health of a carrier: when data was last received, when to ping, round trip, throughput, and when to rotate.

import { RoundTrip } from '../stream/flow-control.ts';

/**
 * Interval between pings on a carrier. The pings also measure the round trip for window growth. A carrier without streams is pinged only if
 * one of its directions was silent for the interval: a ping from the peer and its answer keep both sides alive.
 */
export const CARRIER_PING_INTERVAL_MS = 10_000;
/** Streams that share a carrier on a near path before the next carrier is used. */
export const CARRIER_SHARED_STREAMS = 64;
/** Silence after which a carrier counts as dead, the same as on the control connection. */
export const CARRIER_DEAD_AFTER_MS = 25_000;
/** Bytes sent before a carrier is rotated, because a TLS key must not be used for more data (RFC 8446, section 5.5). */
const CARRIER_ROTATE_AFTER_BYTES = 256 * 1024 * 1024 * 1024;
/** Age at which a carrier is rotated: replaced by a new connection. */
export const CARRIER_ROTATE_AFTER_MS = 24 * 3600 * 1000;

const MIB = 1024 * 1024;
const BULK_STEP_BYTES = MIB / 8;

export class CarrierLiveness {
  readonly roundTrip = new RoundTrip();
  readonly #openedAtMs: number;
  #lastHeardMs: number;
  #lastPingMs: number;
  /** Time of a tick after which bytes were sent, so at most as late as the last sent byte. */
  #lastSentMs: number;
  #tickedMs: number;
  #sentBytes = 0;
  #receivedBytes = 0;
  /** Total bytes of the carrier in both directions, up to the last tick. */
  #movedBytes = 0;
  /** Bytes of the carrier in both directions between the last two ticks. */
  #recentBytes = 0;

  constructor(nowMs: number) {
    this.#openedAtMs = nowMs;
    this.#lastHeardMs = nowMs;
    this.#lastPingMs = nowMs;
    this.#lastSentMs = nowMs;
    this.#tickedMs = nowMs;
  }

  heard(bytes: number, nowMs: number): void {
    this.#lastHeardMs = nowMs;
    this.#receivedBytes += bytes;
  }

  pinged(nowMs: number): void {
    this.#lastPingMs = nowMs;
  }

  /**
   * Handles a PONG, which echoes our timestamp. Answers older than CARRIER_DEAD_AFTER_MS are ignored. Returns false if another ping should
   * follow immediately.
   */
  onPong(sentMs: number, nowMs: number): boolean {
    const elapsedMs = (Math.floor(nowMs) - sentMs) >>> 0;
    return elapsedMs >= CARRIER_DEAD_AFTER_MS || this.roundTrip.measured(elapsedMs);
  }

  /**
   * Returns the load used to place new streams, in units of streams: 1 MiB per second counts like a stream. On a near path, streams share a
   * carrier up to a limit while the carrier is mostly idle, so that frames of several streams leave in one write. On a longer path, a
   * packet loss would stall all streams of the carrier, and data queued in the kernel for one stream would delay the rest.
   */
  loadWith(streams: number, bytesSent: number): number {
    const shared = this.roundTrip.isNear ? CARRIER_SHARED_STREAMS : 1;
    const bytes = Math.max(this.#recentBytes, this.#movedSince(bytesSent));
    // Rounded to steps. Otherwise the last frame of a stream would move the next stream to another carrier.
    return Math.floor(streams / shared) + (Math.floor(bytes / BULK_STEP_BYTES) * BULK_STEP_BYTES) / MIB;
  }

  tick(bytesSent: number, nowMs: number): void {
    if (bytesSent !== this.#sentBytes) this.#lastSentMs = this.#tickedMs;
    this.#sentBytes = bytesSent;
    this.#tickedMs = nowMs;
    this.#recentBytes = this.#movedSince(bytesSent);
    this.#movedBytes += this.#recentBytes;
  }

  /** Returns the bytes that the carrier has moved in both directions since the last tick. */
  #movedSince(bytesSent: number): number {
    return this.#receivedBytes + bytesSent - this.#movedBytes;
  }

  isDead(nowMs: number): boolean {
    return nowMs - this.#lastHeardMs >= CARRIER_DEAD_AFTER_MS;
  }

  /** `isUnused` is true for a carrier without streams. Such a carrier needs no fresh round trip. */
  isPingDue(nowMs: number, isUnused: boolean): boolean {
    const servedMs = isUnused ? Math.min(this.#lastHeardMs, this.#lastSentMs) : 0;
    return nowMs - Math.max(this.#lastPingMs, servedMs) >= CARRIER_PING_INTERVAL_MS;
  }

  isWorn(nowMs: number, bytesSent: number): boolean {
    return nowMs - this.#openedAtMs >= CARRIER_ROTATE_AFTER_MS || bytesSent >= CARRIER_ROTATE_AFTER_BYTES;
  }
}
