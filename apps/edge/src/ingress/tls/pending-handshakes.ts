// Connections to the https port that are not through: from their first byte to the end of the handshake. So many at once, so long each, and whoever
// leaves is counted for what it became.
import type { AcceptedConnection } from '@tunnel/http-shell';
import type { Clock } from '@tunnel/runtime';
import { noTlsTotals, type TlsKind, type TlsTotals } from './tls-totals.ts';

/**
 * a connection to the https port that is not through its handshake by then is closed; the time to read its first message, and to wait for a certificate, is part of it
 * @limit visitors: TLS handshake, time | the connection is closed
 */
export const TLS_HANDSHAKE_TIMEOUT_MS = 10_000;
/** handshakes under way at once, from the first byte on; above this the one that takes longest is closed */
const TLS_HANDSHAKES_MAX = 4096;

/** One of them. */
export interface PendingEntry {
  /** Set when it is added. */
  beganMs: number;
  readonly accepted: AcceptedConnection;
  /** It is over, or somebody else's: what it holds and waits for goes. */
  drop(): void;
}

export class PendingHandshakes {
  readonly totals: TlsTotals = noTlsTotals();
  /** Oldest first. */
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
    // An honest visitor is through within a round trip or two: whoever takes longest is given up, and not the newcomer.
    for (const oldest of this.#entries.keys()) return this.#giveUp(oldest);
  }

  /** It is through, or goes another way. false: it had left already. */
  leaves(accepted: AcceptedConnection, as: TlsKind): boolean {
    const entry = this.#entries.get(accepted);
    if (entry === undefined) return false;
    this.#entries.delete(accepted);
    this.totals[as] += 1;
    entry.drop();
    return true;
  }

  /** Whoever closed it: the visitor, the gate or ourselves. */
  readonly #isOver = (accepted: AcceptedConnection): void => void this.leaves(accepted, 'failed');

  #giveUp(accepted: AcceptedConnection): void {
    this.leaves(accepted, 'failed');
    accepted.close();
  }

  /** One timer for all, since they wait equally long. */
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
