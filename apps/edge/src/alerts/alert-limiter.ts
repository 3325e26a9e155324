// What alerts may cost the edge: how many are under way at once, and how many begin in one turn of the event loop.
import { EDGE_LIMITS } from '../limits.ts';

export type AlertDestination = 'operator' | 'tenant';

/** There is no queue: an alert that finds no room is dropped. */
export class AlertLimiter {
  #operator = 0;
  #tenants = 0;
  readonly #perAccount = new Map<string, number>();
  /** By account and host: a receiver that hangs costs its own account's slots, not another one's at the same host. */
  readonly #perHost = new Map<string, number>();

  /** When most slots are taken, the rest is for accounts that have less than an even share, of which one is for whoever comes next. */
  hasRoomFor(account: string): boolean {
    const own = this.#perAccount.get(account) ?? 0;
    if (this.#tenants >= EDGE_LIMITS.ALERTS_AT_ONCE || own >= EDGE_LIMITS.ALERTS_AT_ONCE_PER_ACCOUNT) return false;
    const evenShare = EDGE_LIMITS.ALERTS_AT_ONCE / (this.#perAccount.size + 1);
    return this.#tenants < EDGE_LIMITS.ALERTS_AT_ONCE_CROWDED || own < evenShare;
  }

  /** Counts one more, until the returned function is called, once; null: there is no room. */
  acquire(destination: AlertDestination, account: string, host: string): (() => void) | null {
    return destination === 'operator' ? this.#acquireOperators() : this.#acquireTenants(account, host);
  }

  #acquireOperators(): (() => void) | null {
    if (this.#operator >= EDGE_LIMITS.ALERTS_AT_ONCE_OPERATOR) return null;
    this.#operator += 1;
    return () => {
      this.#operator -= 1;
    };
  }

  #acquireTenants(account: string, host: string): (() => void) | null {
    const hostOfAccount = `${account} ${host}`;
    const here = this.#perHost.get(hostOfAccount) ?? 0;
    if (!this.hasRoomFor(account) || here >= EDGE_LIMITS.ALERTS_AT_ONCE_PER_HOST) return null;
    this.#tenants += 1;
    add(this.#perAccount, account, 1);
    add(this.#perHost, hostOfAccount, 1);
    return () => {
      this.#tenants -= 1;
      add(this.#perAccount, account, -1);
      add(this.#perHost, hostOfAccount, -1);
    };
  }
}

/** An entry at zero leaves the map. */
const add = (counts: Map<string, number>, key: string, by: 1 | -1): void => {
  const count = (counts.get(key) ?? 0) + by;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
};

/** Lets a few begin in each turn of the event loop: to begin one takes a tenth of a millisecond, and frames wait meanwhile. */
export class StartQueue {
  readonly #waiting: (() => void)[] = [];

  /** Settles when it is the caller's turn, in the order of the calls. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      if (this.#waiting.length === 1) setImmediate(() => this.#run());
    });
  }

  #run(): void {
    for (const start of this.#waiting.splice(0, EDGE_LIMITS.ALERT_STARTS_PER_TURN)) start();
    if (this.#waiting.length > 0) setImmediate(() => this.#run());
  }
}
