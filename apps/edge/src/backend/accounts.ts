// What this edge knows of the accounts that have tunnels on it: how many, and whether the platform lets them have more.
import type { Fault } from '@tunnel/errors';
import { Cache } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

interface Counted {
  readonly accountId: string;
  isOpen: boolean;
}

/** How many tunnels each account has here, those that still look for their endpoint included. */
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

  /** The account of one that was counted and never opened; null: there is no such tunnel. */
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
 * Accounts that the platform closed to new tunnels when it was last heard: suspended, over their spend cap, or past due. Their
 * keys may be good; while the platform is away nobody can know whether the reason still holds, so nothing is opened for them.
 */
export class ClosedAccounts {
  readonly #closed = new Cache<string, true>({ max: EDGE_LIMITS.KNOWN_KEYS_MAX });

  has(accountId: string): boolean {
    return this.#closed.peek(accountId) === true;
  }

  add(accountId: string): void {
    this.#closed.set(accountId, true);
  }

  /** The platform said something of it that is no reason against it. */
  remove(accountId: string): void {
    this.#closed.delete(accountId);
  }

  /** What it answered when a tunnel was asked for; null: yes. */
  learn(accountId: string, refusal: Fault | null): void {
    if (refusal === null) this.remove(accountId);
    else if (isOfAccount(refusal)) this.add(accountId);
  }
}

/** The account is the reason, not the tunnel. */
const isOfAccount = ({ code }: Fault): boolean => code === 'SPEND_CAP_REACHED' || code.startsWith('ACCOUNT_');
