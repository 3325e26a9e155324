// What alerts may cost the edge: how many are under way at once, and how many begin in one turn of the event loop.
import { InFlight } from '@tunnel/rules/rate';

/** alerts that begin in one turn of the event loop: frames are handled in between */
export const ALERT_STARTS_PER_TURN = 8;

export type AlertDestination = 'operator' | 'tenant';

/**
 * Alerts under way: to tenants, of one account, of one account to one host and port, and to the operator, whose slots no tenant can use up. From
 * `crowded` on, the rest is for accounts that have less than an even share.
 */
export const SLOTS = { tenants: 512, perAccount: 128, crowded: 460, perHost: 64, operator: 64 };

/** There is no queue: an alert that finds no room is dropped. */
export class AlertLimiter {
  readonly #operator = new InFlight({ atOnce: SLOTS.operator });
  readonly #tenants = new InFlight({
    atOnce: SLOTS.tenants,
    perKey: SLOTS.perAccount,
  });
  /** By account and host: a receiver that hangs costs its own account's slots, not another one's at the same host. */
  readonly #hosts = new InFlight({ perKey: SLOTS.perHost });

  /** When most slots are taken, the rest is for accounts that have less than an even share, of which one is for whoever comes next. */
  hasRoomFor(account: string): boolean {
    if (!this.#tenants.hasRoom(account)) return false;
    const evenShare = SLOTS.tenants / (this.#tenants.keys + 1);
    return this.#tenants.total < SLOTS.crowded || this.#tenants.of(account) < evenShare;
  }

  /** Counts one more, until the returned function is called, once; null: there is no room. */
  acquire(destination: AlertDestination, account: string, host: string): (() => void) | null {
    if (destination === 'operator') return this.#operator.begin() ? () => this.#operator.end() : null;
    const hostOfAccount = `${account} ${host}`;
    if (!this.hasRoomFor(account) || !this.#hosts.begin(hostOfAccount)) return null;
    this.#tenants.begin(account);
    return () => {
      this.#tenants.end(account);
      this.#hosts.end(hostOfAccount);
    };
  }
}

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
    for (const start of this.#waiting.splice(0, ALERT_STARTS_PER_TURN)) start();
    if (this.#waiting.length > 0) setImmediate(() => this.#run());
  }
}
