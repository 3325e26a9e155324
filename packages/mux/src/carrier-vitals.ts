// How one carrier fares: when it was heard, when it is pinged and how long that takes, what it moves, and when it is worn out.
import { RoundTrip } from './flow-control.ts';
import { MUX_LIMITS } from './limits.ts';

const MIB = 1024 * 1024;

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

  /** What it carries, in streams that would weigh as much: a MiB a second counts as one. */
  get bulk(): number {
    return this.#recentBytes / MIB;
  }

  tick(bytesSent: number): void {
    const movedBytes = this.#receivedBytes + bytesSent;
    this.#recentBytes = movedBytes - this.#movedBytes;
    this.#movedBytes = movedBytes;
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
