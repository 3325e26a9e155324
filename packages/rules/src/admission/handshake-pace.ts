// How many TLS handshakes a network may begin while the process is busy. A handshake costs the server more than the sender, so that a flood from a single
// network could keep everything else waiting. As long as the process answers in time, nothing is counted.
import { RULE_LIMITS } from '../limits.ts';
import { AccountBuckets } from '../rate/frame-pace.ts';

export class HandshakePace {
  /** null: no bound. */
  readonly #buckets: AccountBuckets | null;

  /** `perSecond` 0: no bound. */
  constructor(perSecond: number) {
    const rules = { perSecond, burst: RULE_LIMITS.HANDSHAKE_BURST_SECS * perSecond };
    this.#buckets = perSecond === 0 ? null : new AccountBuckets(rules, RULE_LIMITS.HANDSHAKE_NETWORKS_MAX);
  }

  /** Networks with handshakes that count. */
  get size(): number {
    return this.#buckets?.size ?? 0;
  }

  /** Whether a handshake may begin. `lateMs`: how late the event loop is. */
  begins(network: string, lateMs: number, nowMs: number): boolean {
    if (this.#buckets === null || lateMs <= RULE_LIMITS.HANDSHAKE_LATE_MS) return true;
    if (this.#buckets.waitMs(network, nowMs) > 0) return false;
    this.#buckets.charge(network, 1, nowMs);
    return true;
  }
}
