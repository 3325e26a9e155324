// What alerts may cost the edge: how many are under way at once, and how many begin in one turn of the event loop.
import { EDGE_LIMITS } from '../limits.ts';

export type AlertDestination = 'operator' | 'tenant';

/** There is no queue: an alert that finds no room is dropped. */
export class AlertLimiter {
  #operator = 0;
  #tenants = 0;
  readonly #perHost = new Map<string, number>();

  get hasRoomForTenants(): boolean {
    return this.#tenants < EDGE_LIMITS.ALERTS_AT_ONCE;
  }

  /** Counts one more, until the returned function is called, once; null: there is no room. */
  acquire(destination: AlertDestination, host: string): (() => void) | null {
    return destination === 'operator' ? this.#acquireOperators() : this.#acquireTenants(host);
  }

  #acquireOperators(): (() => void) | null {
    if (this.#operator >= EDGE_LIMITS.ALERTS_AT_ONCE_OPERATOR) return null;
    this.#operator += 1;
    return () => {
      this.#operator -= 1;
    };
  }

  #acquireTenants(host: string): (() => void) | null {
    const here = this.#perHost.get(host) ?? 0;
    if (!this.hasRoomForTenants || here >= EDGE_LIMITS.ALERTS_AT_ONCE_PER_HOST) return null;
    this.#tenants += 1;
    this.#perHost.set(host, here + 1);
    return () => {
      this.#tenants -= 1;
      const left = (this.#perHost.get(host) ?? 1) - 1;
      if (left === 0) this.#perHost.delete(host);
      else this.#perHost.set(host, left);
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
    for (const start of this.#waiting.splice(0, EDGE_LIMITS.ALERT_STARTS_PER_TURN)) start();
    if (this.#waiting.length > 0) setImmediate(() => this.#run());
  }
}
