// State shared by all calls of the simulator: objects, time, and events to deliver.
import { type Clock, randomId } from '@tunnel/runtime';
import { Stripe } from 'stripe';
import type { Store } from './store.ts';

export class Sandbox {
  readonly store: Store;
  readonly #clock: Clock;

  constructor(store: Store, clock: Clock) {
    this.store = store;
    this.#clock = clock;
  }

  /** Simulated time in seconds, possibly ahead of the machine's clock. */
  now(): number {
    return Math.floor((this.#clock.now() + this.aheadMs) / 1000);
  }

  /** The real time of the machine in milliseconds. */
  realNow(): number {
    return this.#clock.now();
  }

  get aheadMs(): number {
    return this.store.settings.offset_ms;
  }

  moveTo(seconds: number): void {
    this.setAhead(seconds * 1000 - this.#clock.now());
  }

  /** Moves the simulated time ahead. It never goes back. */
  setAhead(ms: number): void {
    if (ms > this.aheadMs) this.store.put('settings', { ...this.store.settings, offset_ms: ms });
  }

  /** Queues a webhook event and returns its id. */
  emit(type: string, object: object, previous?: object): string {
    const id = randomId('evt');
    const payload = {
      id,
      object: 'event',
      api_version: Stripe.API_VERSION,
      created: this.now(),
      data: { object, ...(previous === undefined ? {} : { previous_attributes: previous }) },
      livemode: false,
      pending_webhooks: 1,
      request: { id: null, idempotency_key: null },
      type,
    };
    this.store.put('events', { id, queued_ms: this.realNow(), payload });
    return id;
  }
}
