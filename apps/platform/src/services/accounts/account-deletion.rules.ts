import { LIMITS } from '../../limits.ts';
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
  if (facts.openTunnels > 0 && age < LIMITS.DELETION_TUNNELS_WAIT_MS) {
    return { kind: 'wait', ms: LIMITS.DELETION_LOOK_MS };
  }
  if (!facts.subscriptionEnded) return { kind: 'end-subscription' };
  if (facts.openTunnels > 0) return { kind: 'erase-open' };
  const restMs = LIMITS.DELETION_SETTLE_MS - age;
  return restMs > 0 ? { kind: 'wait', ms: restMs } : { kind: 'done' };
};

/** After so many failures in a row. */
export const deletionRetryMs = (failures: number): number =>
  Math.min(LIMITS.DELETION_RETRY_MAX_MS, LIMITS.DELETION_RETRY_MIN_MS * 2 ** Math.min(Math.max(failures - 1, 0), 30));
