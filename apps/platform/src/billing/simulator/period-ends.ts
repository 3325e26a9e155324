// What time brings: periods that end, and payments that are tried again, each at its own moment and in order. Every step is kept
// before the next begins, so a process that was killed goes on where it was.
import type { Clock } from '@tunnel/runtime';
import { nextMonthStart } from './month-end.ts';
import { payInvoice } from './payments.ts';
import { draftInvoice, finalizeInvoice } from './resources/invoices.ts';
import { changeSubscription, periodOf } from './resources/subscriptions.ts';
import type { SimSubscription } from './sim-objects.ts';
import type { SimWorld } from './sim-world.ts';

/** Drafts are final when the platform has answered the news of them, or has taken none of it for so long. */
const DRAFT_WAIT_MS = 10_000;

export interface PeriodEndsDeps {
  readonly world: SimWorld;
  readonly clock: Clock;
  /** Settles when these events were delivered. */
  readonly delivered: (eventIds: readonly string[]) => Promise<void>;
  readonly hasListener: () => boolean;
}

export class PeriodEnds {
  readonly #deps: PeriodEndsDeps;
  #line: Promise<void> = Promise.resolve();
  #stopped = false;
  #endWait: () => void = () => {};

  constructor(deps: PeriodEndsDeps) {
    this.#deps = deps;
  }

  /** Moves the stand-in's clock, through everything that is due on the way; 0: what is due by now. */
  advance(seconds: number): Promise<void> {
    const next = this.#line.then(() => this.#run(seconds));
    this.#line = next.catch(() => {});
    return next;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#endWait();
    await this.#line;
  }

  async #run(seconds: number): Promise<void> {
    const { world } = this.#deps;
    const wanted = world.aheadMs + seconds * 1000;
    const target = Math.floor((world.realNow() + wanted) / 1000);
    // Of a run that was cut off.
    await this.#finishDrafts();
    for (let at = nextMoment(world); at !== null && at <= target && !this.#stopped; at = nextMoment(world)) {
      const moment = at;
      world.state.transact(() => {
        world.moveTo(moment);
        endPeriods(world, moment);
      });
      await this.#finishDrafts();
      world.state.transact(() => retryPayments(world, moment));
    }
    if (!this.#stopped) world.state.transact(() => world.setAhead(wanted));
  }

  async #finishDrafts(): Promise<void> {
    const { world } = this.#deps;
    if (!hasDrafts(world)) return;
    await this.#news();
    if (this.#stopped) return;
    world.state.transact(() => {
      for (const draft of world.state.all('invoices').filter(({ status }) => status === 'draft')) {
        payInvoice(world, finalizeInvoice(world, draft).id);
      }
    });
  }

  async #news(): Promise<void> {
    const { world, delivered, hasListener } = this.#deps;
    const isNews = (payload: object): boolean => 'type' in payload && payload.type === 'invoice.created';
    const waiting = world.state.all('events').filter(({ payload }) => isNews(payload));
    if (waiting.length === 0 || !hasListener()) return;
    const silence = this.#silence();
    const all = waiting.map(({ id }) => delivered([id]).then(silence.heard));
    await Promise.race([Promise.all(all), silence.isLong]);
    this.#endWait();
  }

  /** Many accounts take their time: only nothing at all for so long is too long. */
  #silence(): { readonly isLong: Promise<void>; readonly heard: () => void } {
    const { clock } = this.#deps;
    let [end, isOver] = [(): void => {}, false];
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

const hasDrafts = ({ state }: SimWorld): boolean => state.all('invoices').some(({ status }) => status === 'draft');

const living = ({ state }: SimWorld): SimSubscription[] =>
  state.all('subscriptions').filter(({ status }) => status !== 'canceled');

const nextMoment = (world: SimWorld): number | null => {
  const retries = world.state
    .all('invoices')
    .flatMap(({ status, next_payment_attempt: at }) => (status === 'open' && at !== null ? [at] : []));
  const moments = [...living(world).map((each) => periodOf(each).end), ...retries];
  return moments.length === 0 ? null : Math.min(...moments);
};

const endPeriods = (world: SimWorld, moment: number): void => {
  for (const subscription of living(world).filter((each) => periodOf(each).end <= moment)) {
    const draft = draftInvoice(world, subscription);
    // First of all: usage that the platform still holds belongs on it.
    world.emit('invoice.created', draft);
    const ends = subscription.cancel_at_period_end;
    const start = periodOf(subscription).end;
    const items = subscription.items.data.map((item) => ({
      ...item,
      current_period_start: start,
      current_period_end: nextMonthStart(start),
    }));
    changeSubscription(world, subscription, {
      latest_invoice: draft.id,
      ...(ends ? { status: 'canceled', ended_at: start } : { items: { ...subscription.items, data: items } }),
    });
  }
};

const retryPayments = (world: SimWorld, moment: number): void => {
  for (const invoice of world.state.all('invoices')) {
    const at = invoice.next_payment_attempt;
    if (invoice.status === 'open' && at !== null && at <= moment) payInvoice(world, invoice.id);
  }
};
