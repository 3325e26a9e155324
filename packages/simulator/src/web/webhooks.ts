// Delivers events to the platform: one at a time, in order, until accepted; or, to test a receiver, late, twice or in random order. Waiting
// events survive a restart.
import { createHmac } from 'node:crypto';
import type { Clock, Logger, Secret } from '@tunnel/runtime';
import type { WebhookEvent } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';

const TIMEOUT_MS = 10_000;
const RETRY_MIN_MS = 250;
const RETRY_MAX_MS = 5000;
const IDLE_MS = 60_000;
const LATE_MS = 3000;
/** Time for which webhook events collect before one is picked at random. */
const SHUFFLE_MS = 300;
/** Number of rejections after which the delivery of a webhook event is given up. */
const REFUSALS = 5;

interface WebhooksOptions {
  readonly sandbox: Sandbox;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly secret: Secret;
  readonly url: () => string | null;
  readonly random?: () => number;
}

type Outcome = 'taken' | 'refused' | 'away';

export class Webhooks {
  readonly #options: WebhooksOptions;
  readonly #waiters = new Map<string, (() => void)[]>();
  readonly #refusals = new Map<string, number>();
  readonly #abort = new AbortController();
  #wake: () => void = () => {};
  #failures = 0;
  #running: Promise<void> = Promise.resolve();

  constructor(options: WebhooksOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#wake();
    await this.#running;
  }

  /** Wakes the delivery of webhooks for new events. */
  kick(): void {
    this.#wake();
  }

  async delivered(eventIds: readonly string[]): Promise<void> {
    await Promise.all(eventIds.map((id) => this.#delivered(id)));
  }

  #delivered(id: string): Promise<void> {
    if (this.#options.sandbox.store.get('events', id) === undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.set(id, [...(this.#waiters.get(id) ?? []), resolve]);
    });
  }

  async #run(): Promise<void> {
    while (!this.#abort.signal.aborted) {
      const url = this.#options.url();
      const next = url === null ? RETRY_MIN_MS : this.#next();
      if (url === null || typeof next === 'number') await this.#sleep(Number(next));
      else await this.#attend(url, next);
    }
  }

  /** Returns the event to send now, or the time until the next event. */
  #next(): WebhookEvent | number {
    const { sandbox, clock, random = Math.random } = this.#options;
    const waiting = sandbox.store.all('events');
    const [first] = waiting;
    if (first === undefined) return IDLE_MS;
    const mode = sandbox.store.settings.webhook_mode;
    const holdMs = mode === 'late' ? LATE_MS : 0;
    const dueInMs = first.queued_ms + (mode === 'shuffle' ? SHUFFLE_MS : holdMs) - clock.now();
    if (dueInMs > 0) return dueInMs;
    return mode === 'shuffle' ? (waiting[Math.floor(random() * waiting.length)] ?? first) : first;
  }

  async #attend(url: string, event: WebhookEvent): Promise<void> {
    const { sandbox, logger } = this.#options;
    const outcome = await this.#send(url, event);
    if (this.#abort.signal.aborted && outcome !== 'taken') return;
    if (outcome === 'taken' && sandbox.store.settings.webhook_mode === 'twice') await this.#send(url, event);
    const isLost = outcome === 'refused' && this.#countRefusal(event.id) >= REFUSALS;
    if (isLost) logger.warn({ event: event.id }, 'the simulator gives up a webhook that was refused');
    if (outcome === 'taken' || isLost) {
      this.#failures = 0;
      this.#done(event.id);
      return;
    }
    this.#failures += 1;
    await this.#pause(Math.min(RETRY_MIN_MS * 2 ** (this.#failures - 1), RETRY_MAX_MS));
  }

  #countRefusal(id: string): number {
    const count = (this.#refusals.get(id) ?? 0) + 1;
    this.#refusals.set(id, count);
    return count;
  }

  #done(id: string): void {
    const { store } = this.#options.sandbox;
    store.transact(() => store.remove('events', id));
    this.#refusals.delete(id);
    for (const resolve of this.#waiters.get(id) ?? []) resolve();
    this.#waiters.delete(id);
  }

  /** The webhook is signed with the machine's time, because receivers reject old signatures. */
  async #send(url: string, event: WebhookEvent): Promise<Outcome> {
    const { clock, secret } = this.#options;
    const body = JSON.stringify(event.payload);
    const signature = signWebhook(body, secret, Math.floor(clock.now() / 1000));
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature },
        body,
        redirect: 'error',
        signal: AbortSignal.any([this.#abort.signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      await response.body?.cancel();
      if (response.ok) return 'taken';
      return response.status < 500 ? 'refused' : 'away';
    } catch {
      return 'away';
    }
  }

  /** Sleeps until the time has passed or a new webhook event waits. */
  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#options.clock.setTimeout(() => this.#wake(), ms);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
      if (this.#abort.signal.aborted) this.#wake();
    });
  }

  /** Pauses the delivery of webhooks. New events do not shorten the pause. */
  async #pause(ms: number): Promise<void> {
    const { clock } = this.#options;
    const until = clock.monotonic() + ms;
    while (!this.#abort.signal.aborted && clock.monotonic() < until) await this.#sleep(until - clock.monotonic());
  }
}

// The payment processor's webhook signature over time and raw body.

export const signWebhook = (body: string, secret: Secret, atSecs: number): string => {
  const mac = createHmac('sha256', secret.reveal()).update(`${atSecs}.${body}`, 'utf8').digest('hex');
  return `t=${atSecs},v1=${mac}`;
};
