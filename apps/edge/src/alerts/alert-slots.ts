// How many alerts may be under way. There is no queue: who finds no slot is dropped.
import { EDGE_LIMITS } from '../limits.ts';

export type AlertDestination = 'operator' | 'tenant';

export class AlertSlots {
  #operator = 0;
  #tenants = 0;
  readonly #perHost = new Map<string, number>();

  get hasRoomForTenants(): boolean {
    return this.#tenants < EDGE_LIMITS.ALERTS_AT_ONCE;
  }

  /** Gives the slot back when called, once; null: there is none. */
  take(destination: AlertDestination, host: string): (() => void) | null {
    return destination === 'operator' ? this.#takeOperators() : this.#takeTenants(host);
  }

  #takeOperators(): (() => void) | null {
    if (this.#operator >= EDGE_LIMITS.ALERTS_AT_ONCE_OPERATOR) return null;
    this.#operator += 1;
    return () => {
      this.#operator -= 1;
    };
  }

  #takeTenants(host: string): (() => void) | null {
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
