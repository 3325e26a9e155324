/**
 * How long the deletion of an account waits for the last usage of its open tunnels. Edges close the tunnels of a deleted account within
 * seconds, and the log entries of a silent edge are closed within a minute.
 */
export const DELETION_TUNNELS_WAIT_MS = 2 * 60_000;
/** Interval at which a deletion checks whether an account's tunnels have ended, and notifies the edges again if not. */
export const DELETION_LOOK_MS = 5000;
/**
 * Minimum duration of a deletion. Requests that began before the deletion have ended by then; their writes are erased in a second pass,
 * and the deletion is done.
 */
export const DELETION_SETTLE_MS = 60_000;
/** Delay before the retry after the first failure of a deletion. The delay doubles with every further failure. */
const DELETION_RETRY_MIN_MS = 5000;
/** Maximum delay before a retry of a deletion, even if the payment processor is down for days. */
const DELETION_RETRY_MAX_MS = 10 * 60_000;

// Decides the next step of an account deletion, from the owner's request until nothing is left to erase. The decision depends only on the
// current facts, so after a crash any process can continue the deletion.

export interface DeletionFacts {
  readonly begunAt: number;
  /** Number of the account's log entries with an open tunnel. The edge was notified and has not reported the end yet. */
  readonly openTunnels: number;
  /** Number of the account's log entries for tunnels that have ended. */
  readonly endedTunnels: number;
  /** True if the subscription at the payment processor has ended, or if the account never had a subscription. */
  readonly subscriptionEnded: boolean;
}

export type DeletionStep =
  /** Step of an account's deletion: erase a batch of log entries of tunnels that have ended. */
  | { readonly kind: 'erase-log' }
  /** Wait, either for the last usage, which belongs on the last invoice, or for requests that began before the deletion. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'end-subscription' }
  /** Erase log entries of tunnels for which the edge never reported the end. */
  | { readonly kind: 'erase-open' }
  | { readonly kind: 'done' };

export const nextDeletionStep = (facts: DeletionFacts, now: number): DeletionStep => {
  if (facts.endedTunnels > 0) return { kind: 'erase-log' };
  const age = now - facts.begunAt;
  if (facts.openTunnels > 0 && age < DELETION_TUNNELS_WAIT_MS) {
    return { kind: 'wait', ms: DELETION_LOOK_MS };
  }
  if (!facts.subscriptionEnded) return { kind: 'end-subscription' };
  if (facts.openTunnels > 0) return { kind: 'erase-open' };
  const restMs = DELETION_SETTLE_MS - age;
  return restMs > 0 ? { kind: 'wait', ms: restMs } : { kind: 'done' };
};

/** Delay before the next retry of a deletion, after the given number of consecutive failures. */
export const deletionRetryMs = (failures: number): number =>
  Math.min(DELETION_RETRY_MAX_MS, DELETION_RETRY_MIN_MS * 2 ** Math.min(Math.max(failures - 1, 0), 30));
