// Time-driven billing: ends periods and retries payments, each at its time and in order. Every step is saved before the next, so a killed
// process continues where it stopped.
import { type Clock, SerialQueue } from '@tunnel/runtime';
import * as z from 'zod';
import type { Invoice, Subscription } from '../state/model.ts';
import type { Sandbox } from '../state/sandbox.ts';
import { badRequest, flag, noSuch, type Route, route } from './api-route.ts';
import { draftInvoice, finalizeInvoice, findInvoice } from './invoices.ts';
import { changeSubscription, findSubscription, nextMonthStart, periodOf } from './subscriptions.ts';

/** Drafts become final when the platform has acknowledged their events, or when no event was acknowledged for this time. */
const DRAFT_WAIT_MS = 10_000;

interface BillingCycleOptions {
  readonly sandbox: Sandbox;
  readonly clock: Clock;
  /** Resolves when these webhook events were delivered to the platform. */
  readonly delivered: (eventIds: readonly string[]) => Promise<void>;
  readonly hasListener: () => boolean;
}

export class BillingCycle {
  readonly #options: BillingCycleOptions;
  readonly #advances = new SerialQueue({
    maxWaiting: 1000,
    full: () => new Error('too many advances of the clock wait'),
  });
  #stopped = false;
  #endWait: () => void = () => {};

  constructor(options: BillingCycleOptions) {
    this.#options = options;
  }

  /** Advances the simulator's clock and executes everything due on the way. 0 executes what is due now. */
  advance(seconds: number): Promise<void> {
    return this.#advances.run(() => this.#run(seconds));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endWait();
    await this.#advances.settled();
  }

  async #run(seconds: number): Promise<void> {
    const { sandbox } = this.#options;
    const wanted = sandbox.aheadMs + seconds * 1000;
    const target = Math.floor((sandbox.realNow() + wanted) / 1000);
    // Draft invoices may be left from an interrupted run.
    await this.#finishDrafts();
    for (let at = nextMoment(sandbox); at !== null && at <= target && !this.#stopped; at = nextMoment(sandbox)) {
      const moment = at;
      sandbox.store.transact(() => {
        sandbox.moveTo(moment);
        endPeriods(sandbox, moment);
      });
      await this.#finishDrafts();
      sandbox.store.transact(() => retryPayments(sandbox, moment));
    }
    if (!this.#stopped) sandbox.store.transact(() => sandbox.setAhead(wanted));
  }

  async #finishDrafts(): Promise<void> {
    const { sandbox } = this.#options;
    if (!hasDrafts(sandbox)) return;
    await this.#news();
    if (this.#stopped) return;
    sandbox.store.transact(() => {
      for (const draft of sandbox.store.all('invoices').filter(({ status }) => status === 'draft')) {
        payInvoice(sandbox, finalizeInvoice(sandbox, draft).id);
      }
    });
  }

  async #news(): Promise<void> {
    const { sandbox, delivered, hasListener } = this.#options;
    const isNews = (payload: object): boolean => 'type' in payload && payload.type === 'invoice.created';
    const waiting = sandbox.store.all('events').filter(({ payload }) => isNews(payload));
    if (waiting.length === 0 || !hasListener()) return;
    const silence = this.#silence();
    const all = waiting.map(({ id }) => delivered([id]).then(silence.heard));
    await Promise.race([Promise.all(all), silence.isLong]);
    this.#endWait();
  }

  /** Resolves after a time without any delivery. Every delivery restarts the time, because many accounts take longer. */
  #silence(): { readonly isLong: Promise<void>; readonly heard: () => void } {
    const { clock } = this.#options;
    let end = (): void => {};
    let isOver = false;
    const isLong = new Promise<void>((resolve) => {
      end = resolve;
    });
    let timer = clock.setTimeout(end, DRAFT_WAIT_MS);
    const heard = (): void => {
      timer.cancel();
      if (!isOver) timer = clock.setTimeout(end, DRAFT_WAIT_MS);
    };
    this.#endWait = () => {
      isOver = true;
      timer.cancel();
      end();
    };
    return { isLong, heard };
  }
}

const hasDrafts = ({ store }: Sandbox): boolean => store.all('invoices').some(({ status }) => status === 'draft');

const living = ({ store }: Sandbox): Subscription[] =>
  store.all('subscriptions').filter(({ status }) => status !== 'canceled');

const nextMoment = (sandbox: Sandbox): number | null => {
  const retries = sandbox.store
    .all('invoices')
    .flatMap(({ status, next_payment_attempt: at }) => (status === 'open' && at !== null ? [at] : []));
  const moments = [...living(sandbox).map((each) => periodOf(each).end), ...retries];
  return moments.length === 0 ? null : Math.min(...moments);
};

const endPeriods = (sandbox: Sandbox, moment: number): void => {
  for (const subscription of living(sandbox).filter((each) => periodOf(each).end <= moment)) {
    const draft = draftInvoice(sandbox, subscription);
    // Emitted first, because usage that the platform still holds belongs on this invoice.
    sandbox.emit('invoice.created', draft);
    const ends = subscription.cancel_at_period_end;
    const start = periodOf(subscription).end;
    const items = subscription.items.data.map((item) => ({
      ...item,
      current_period_start: start,
      current_period_end: nextMonthStart(start),
    }));
    changeSubscription(sandbox, subscription, {
      latest_invoice: draft.id,
      ...(ends ? { status: 'canceled', ended_at: start } : { items: { ...subscription.items, data: items } }),
    });
  }
};

const retryPayments = (sandbox: Sandbox, moment: number): void => {
  for (const invoice of sandbox.store.all('invoices')) {
    const at = invoice.next_payment_attempt;
    if (invoice.status === 'open' && at !== null && at <= moment) payInvoice(sandbox, invoice.id);
  }
};

// Pays an invoice with the customer's default card, and handles failures.

const RETRY_SECS = 3 * 24 * 60 * 60;
/** Number of payment attempts after which an invoice stays open and is only retried on request. */
const TRIES = 4;

export const payInvoice = (sandbox: Sandbox, id: string): Invoice => {
  const invoice = findInvoice(sandbox, id);
  if (invoice.status !== 'open') throw badRequest(`The invoice is ${invoice.status}.`);
  const paid = invoice.total === 0 || hasGoodCard(sandbox, invoice.customer);
  return paid ? settle(sandbox, invoice) : fail(sandbox, invoice);
};

const hasGoodCard = ({ store }: Sandbox, customerId: string): boolean => {
  const methodId = store.get('customers', customerId)?.invoice_settings.default_payment_method ?? '';
  return store.get('payment_methods', methodId)?.metadata.simulated === 'good';
};

const settle = (sandbox: Sandbox, invoice: Invoice): Invoice => {
  const paid = sandbox.store.put('invoices', {
    ...invoice,
    status: 'paid',
    amount_paid: invoice.total,
    amount_remaining: 0,
    attempt_count: invoice.attempt_count + 1,
    attempted: true,
    next_payment_attempt: null,
    status_transitions: { ...invoice.status_transitions, paid_at: sandbox.now() },
  });
  sandbox.emit('invoice.paid', paid);
  const isClear = !sandbox.store.all('invoices').some((each) => each.status === 'open' && isOfSame(each, invoice));
  if (isClear) setStatus(sandbox, invoice, 'active');
  return paid;
};

const fail = (sandbox: Sandbox, invoice: Invoice): Invoice => {
  const tries = invoice.attempt_count + 1;
  const failed = sandbox.store.put('invoices', {
    ...invoice,
    attempt_count: tries,
    attempted: true,
    next_payment_attempt: tries < TRIES ? sandbox.now() + RETRY_SECS : null,
  });
  sandbox.emit('invoice.payment_failed', failed);
  setStatus(sandbox, invoice, 'past_due');
  return failed;
};

const isOfSame = (one: Invoice, other: Invoice): boolean =>
  one.parent.subscription_details.subscription === other.parent.subscription_details.subscription;

const setStatus = (sandbox: Sandbox, invoice: Invoice, status: 'active' | 'past_due'): void => {
  const subscription = findSubscription(sandbox, invoice.parent.subscription_details.subscription);
  if (subscription.status !== 'canceled') changeSubscription(sandbox, subscription, { status });
};

// ---- ending a subscription at once ----
// Reported usage and waiting items go on a last invoice, which is finalized and paid at once.

// Parameters for ending a subscription at once. Only this combination is simulated.
const ending = z.strictObject({
  invoice_now: flag().refine((wanted) => wanted),
  prorate: flag().refine((wanted) => !wanted),
});

const endNow = (sandbox: Sandbox, id: string): Subscription => {
  const before = findSubscription(sandbox, id);
  // Like at the processor, an ended subscription cannot end again.
  if (before.status === 'canceled') throw noSuch('subscription', id);
  const draft = draftInvoice(sandbox, before);
  sandbox.emit('invoice.created', draft);
  const now = sandbox.now();
  const ended = changeSubscription(sandbox, before, {
    status: 'canceled',
    canceled_at: now,
    ended_at: now,
    latest_invoice: draft.id,
    cancel_at_period_end: false,
    cancel_at: null,
  });
  payInvoice(sandbox, finalizeInvoice(sandbox, draft).id);
  return ended;
};

export const endSubscriptionRoutes: readonly Route[] = [
  route('DELETE', '/v1/subscriptions/{id}', ending, (sandbox, _params, id) => endNow(sandbox, id)),
];
