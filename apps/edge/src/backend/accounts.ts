// Facts about the accounts with tunnels on this edge: the number of tunnels, and whether the platform lets the account open more tunnels.
import type { Fault } from '@tunnel/errors';
import { Cache } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

interface Counted {
  readonly accountId: string;
  isOpen: boolean;
}

/** Number of tunnels per account on this edge, including tunnels that do not have an endpoint yet. */
export class AccountTunnels {
  readonly #tunnels = new Map<string, Counted>();
  readonly #counts = new Map<string, number>();

  get size(): number {
    return this.#tunnels.size;
  }

  countOf(accountId: string): number {
    return this.#counts.get(accountId) ?? 0;
  }

  add(tunnelId: string, accountId: string): void {
    if (this.#tunnels.has(tunnelId)) return;
    this.#tunnels.set(tunnelId, { accountId, isOpen: false });
    this.#counts.set(accountId, this.countOf(accountId) + 1);
  }

  opened(tunnelId: string, accountId: string): void {
    this.add(tunnelId, accountId);
    const counted = this.#tunnels.get(tunnelId);
    if (counted !== undefined) counted.isOpen = true;
  }

  /** Returns the account of a tunnel that was counted but never opened. Returns null if no such tunnel exists. */
  pendingAccountOf(tunnelId: string): string | null {
    const counted = this.#tunnels.get(tunnelId);
    return counted === undefined || counted.isOpen ? null : counted.accountId;
  }

  remove(tunnelId: string): void {
    const counted = this.#tunnels.get(tunnelId);
    if (counted === undefined) return;
    this.#tunnels.delete(tunnelId);
    const left = this.countOf(counted.accountId) - 1;
    if (left > 0) this.#counts.set(counted.accountId, left);
    else this.#counts.delete(counted.accountId);
  }
}

/**
 * Accounts that the platform had closed to new tunnels at the last contact: suspended, over the spend cap, or past due. Their keys can
 * still be valid. While the platform is unreachable, the edge cannot check whether the reason still applies, so the edge opens no tunnels
 * for these accounts.
 */
export class ClosedAccounts {
  readonly #closed = new Cache<string, true>({ max: EDGE_LIMITS.KNOWN_KEYS_MAX });

  has(accountId: string): boolean {
    return this.#closed.peek(accountId) === true;
  }

  add(accountId: string): void {
    this.#closed.set(accountId, true);
  }

  /** Removes an account after the platform reported a state without a reason to reject tunnels. */
  remove(accountId: string): void {
    this.#closed.delete(accountId);
  }

  /** Updates the set from the platform's response to a tunnel request. `refusal` is null if the platform accepted the tunnel. */
  learn(accountId: string, refusal: Fault | null): void {
    if (refusal === null) this.remove(accountId);
    else if (isOfAccount(refusal)) this.add(accountId);
  }
}

/** Whether a tunnel was rejected because of its account rather than because of the tunnel. */
const isOfAccount = ({ code }: Fault): boolean => code === 'SPEND_CAP_REACHED' || code.startsWith('ACCOUNT_');
