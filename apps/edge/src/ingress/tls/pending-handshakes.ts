// Connections to the https port from the first byte to the end of the handshake. Limits their number and time, and counts each connection
// by its outcome.
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { Clock } from '@tunnel/runtime';
import { noTlsTotals, type TlsKind, type TlsTotals } from './tls-totals.ts';

/**
 * Maximum time for a TLS handshake, including reading the ClientHello and waiting for a certificate. Slower connections are closed.
 * @limit visitors: TLS handshake, time | the connection is closed
 */
export const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;
/** Maximum handshakes in progress, counted from the first byte. Above the limit the oldest handshake is closed. */
const TLS_HANDSHAKES_MAX = 4096;

/** A TLS handshake in progress. */
export interface PendingEntry {
  /** Start of the TLS handshake in monotonic milliseconds, set by add(). */
  beganMs: number;
  readonly accepted: AcceptedConnection;
  /** Releases all resources, because the connection has closed or was handed over. */
  drop(): void;
}

export class PendingHandshakes {
  readonly totals: TlsTotals = noTlsTotals();
  /** TLS handshakes in progress, oldest first. */
  readonly #entries = new Map<AcceptedConnection, PendingEntry>();
  readonly #clock: Clock;
  #isSweeping = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#entries.size;
  }

  add(entry: PendingEntry): void {
    entry.beganMs = this.#clock.monotonic();
    this.#entries.set(entry.accepted, entry);
    entry.accepted.whenClosed = this.#isOver;
    if (!this.#isSweeping) this.#sweepIn(TLS_HANDSHAKE_TIMEOUT_MS);
    if (this.#entries.size <= TLS_HANDSHAKES_MAX) return;
    // A normal visitor needs a round trip or two, so the oldest handshake is closed, not the newest.
    for (const oldest of this.#entries.keys()) return this.#giveUp(oldest);
  }

  /** Removes a connection that completed its handshake or was routed elsewhere. Returns false if the connection was removed already. */
  leaves(accepted: AcceptedConnection, as: TlsKind): boolean {
    const entry = this.#entries.get(accepted);
    if (entry === undefined) return false;
    this.#entries.delete(accepted);
    this.totals[as] += 1;
    entry.drop();
    return true;
  }

  /** Called when the connection was closed by the visitor, the connection gate or the edge. */
  readonly #isOver = (accepted: AcceptedConnection): void => void this.leaves(accepted, 'failed');

  #giveUp(accepted: AcceptedConnection): void {
    this.leaves(accepted, 'failed');
    accepted.close();
  }

  /** Starts a single timer for all handshakes, because all have the same timeout. */
  #sweepIn(ms: number): void {
    this.#isSweeping = true;
    this.#clock.setTimeout(() => this.#sweep(), ms).unref?.();
  }

  #sweep(): void {
    this.#isSweeping = false;
    const nowMs = this.#clock.monotonic();
    for (const { beganMs, accepted } of this.#entries.values()) {
      const leftMs = beganMs + TLS_HANDSHAKE_TIMEOUT_MS - nowMs;
      if (leftMs > 0) return this.#sweepIn(Math.ceil(leftMs));
      this.#giveUp(accepted);
    }
  }
}
