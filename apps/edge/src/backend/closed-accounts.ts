// Accounts that the platform closed to new tunnels when it was last heard: suspended, over their spend cap, or past due. Their
// keys may be good; while the platform is away nobody can know whether the reason still holds, so nothing is opened for them.
import type { Fault } from '@tunnel/errors';
import { EDGE_LIMITS } from '../limits.ts';

export class ClosedAccounts {
  readonly #closed = new Set<string>();

  has(accountId: string): boolean {
    return this.#closed.has(accountId);
  }

  add(accountId: string): void {
    this.#closed.delete(accountId);
    this.#closed.add(accountId);
    const [oldest] = this.#closed;
    if (this.#closed.size > EDGE_LIMITS.KNOWN_KEYS_MAX && oldest !== undefined) this.#closed.delete(oldest);
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
