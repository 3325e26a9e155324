/** edges close the tunnels of a deleted account within seconds, entries of a silent edge are closed within a minute: the deletion does not wait longer for the last usage */
export const DELETION_TUNNELS_WAIT_MS = 2 * 60_000;
/** how often an edge is looked at, and told again, that has not ended the tunnels of a deleted account */
export const DELETION_LOOK_MS = 5000;
/** requests that began before a deletion have ended by then: what they wrote is erased once more, and the deletion is over */
export const DELETION_SETTLE_MS = 60_000;
/** after a step of a deletion failed; twice as long after each failure */
const DELETION_RETRY_MIN_MS = 5000;
/** also while the payment processor is away for days */
const DELETION_RETRY_MAX_MS = 10 * 60_000;

// The deletion of an account, from the moment its owner asks until nothing is left to do. It is given what holds now and says what
// comes next, so it goes on wherever a process died, in whichever process looks first.

export interface DeletionFacts {
  readonly begunAt: number;
  /** Entries of its log whose tunnel is open: their edge was told, and has not told of the end yet. */
  readonly openTunnels: number;
  /** Entries of its log that have ended. */
  readonly endedTunnels: number;
  /** At the payment processor; true too when there never was one. */
  readonly subscriptionEnded: boolean;
}

export type DeletionStep =
  /** Log entries that have ended, some at a time. */
  | { readonly kind: 'erase-log' }
  /** The last usage is on its way, and belongs on the last invoice; or requests of before are still under way. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'end-subscription' }
  /** Log entries whose edge never told of their end. */
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

/** After so many failures in a row. */
export const deletionRetryMs = (failures: number): number =>
  Math.min(DELETION_RETRY_MAX_MS, DELETION_RETRY_MIN_MS * 2 ** Math.min(Math.max(failures - 1, 0), 30));
