// Limits the cost of alerts for the edge: alerts in progress, and alerts started per turn of the event loop.
import { InFlight } from '@tunnel/rules/rate';

/** Maximum alerts started in a turn of the event loop. The edge processes frames between the turns. */
export const ALERT_STARTS_PER_TURN = 8;

export type AlertDestination = 'operator' | 'tenant';

/**
 * Maximum alerts in progress: to all tenants, of an account, of an account to a host and port, and to the operator. Tenants cannot use
 * the operator's slots. From `crowded` on, remaining slots are for accounts below an even share.
 */
export const SLOTS = { tenants: 512, perAccount: 128, crowded: 460, perHost: 64, operator: 64 };

/** Limits alerts in progress. An alert without a free slot is dropped, not queued. */
export class AlertLimiter {
  readonly #operator = new InFlight({ atOnce: SLOTS.operator });
  readonly #tenants = new InFlight({
    atOnce: SLOTS.tenants,
    perKey: SLOTS.perAccount,
  });
  /**
   * Alerts in progress by account and host. A receiver that does not respond uses up only slots of the account that configured the
   * receiver, not slots of other accounts at the same host.
   */
  readonly #hosts = new InFlight({ perKey: SLOTS.perHost });

  /**
   * Whether an account can start an alert. When most slots are taken, only accounts below an even share can. The even share is computed
   * with room for an additional account.
   */
  hasRoomFor(account: string): boolean {
    if (!this.#tenants.hasRoom(account)) return false;
    const evenShare = SLOTS.tenants / (this.#tenants.keys + 1);
    return this.#tenants.total < SLOTS.crowded || this.#tenants.of(account) < evenShare;
  }

  /** Takes a slot for sending an alert. Returns a function that frees the slot, to be called once, or null if no slot is free. */
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

/** Queue that starts a few alerts per turn of the event loop. Starting an alert takes 0.1 ms, during which frames wait. */
export class StartQueue {
  readonly #waiting: (() => void)[] = [];

  /** Resolves when the caller can start. Callers start in the order of their calls. */
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
