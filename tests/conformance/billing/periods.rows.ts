// The cost of a month and its consequences, for accounts that were prepared before the month ends.

import type { StatusEvent, Tunnel } from '@tunnel/client';
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import type { EdgeAccount } from '../../system/usage-reporting-edge.fixture.ts';
import { TUNNEL_LIMIT } from '../platform/platform-harness.fixture.ts';
import { connectWith, openTunnel, startService, visitHttp } from '../platform/tunnels.fixture.ts';
import { type BillingHarness, CENT, GB, type Invoice, type Payer, SOON } from './billing-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Usage of each account until the end of the month. */
const USED = [0, 1, 30 * GB - 1, 30 * GB, 30 * GB + CENT - 1, 30 * GB + CENT, 31_234_567_890, 123 * GB] as const;

/** Computes the due amount independently of the product: 10 cents per 10^9 bytes, rounded down once, and at least 300. */
const dueFor = (bytes: number): number => Math.max(300, Number(BigInt(bytes) / 100_000_000n));

export class Month {
  readonly #harness: BillingHarness;
  readonly #payers = new Map<number, Payer>();
  #special:
    | {
        late: Payer;
        later: Payer;
        leaving: Payer;
        ending: Payer;
        kept: Payer;
        leavingKey: EdgeAccount;
        leavingToken: string;
      }
    | undefined;
  /** Tunnels of the account that cancels, oldest first, and the statuses of its client. */
  readonly opened: Tunnel[] = [];
  statuses: StatusEvent[] = [];

  constructor(harness: BillingHarness) {
    this.#harness = harness;
  }

  get special() {
    if (this.#special === undefined) throw new Error('the month was not prepared');
    return this.#special;
  }

  async prepare(): Promise<void> {
    const harness = this.#harness;
    await Promise.all(USED.map(async (bytes) => this.#payers.set(bytes, await harness.payer())));
    const failing = [harness.payer('fails_later'), harness.payer('fails_later')] as const;
    const others = [...failing, harness.payer(), harness.payer(), harness.payer()] as const;
    const [late, later, leaving, ending, kept] = await Promise.all(others);
    for (const [bytes, payer] of this.#payers) if (bytes > 0) await harness.reportUsage(payer, bytes);
    const key = await harness.newKey(leaving);
    const leavingKey = { accountId: leaving.id, keyId: key.id };
    this.#special = { late, later, leaving, ending, kept, leavingKey, leavingToken: key.token };
  }

  payer(bytes: number): Payer {
    const payer = this.#payers.get(bytes);
    if (payer === undefined) throw new Error(`nobody used ${bytes}`);
    return payer;
  }

  invoice(bytes: number): Promise<Invoice> {
    return this.#harness.invoiceWhen(this.payer(bytes), 'paid');
  }
}

export const beforeItsEnd = (harness: BillingHarness, month: Month): void => {
  it(row('Contract', 11, 'canceled, before the period is over'), async () => {
    const { leaving, ending, kept } = month.special;
    for (const payer of [leaving, ending, kept]) {
      expect((await harness.sim(`subscriptions/${payer.subscriptionId}/cancel`)).status).toBe(200);
      const status = await harness.billingWhen(payer, (now) => now.subscription_status === 'canceled');
      expect(status).toMatchObject({ billing_model: 'payg', plan_name: 'payg', estimated_mtd_cents: 300 });
    }
    // Subscribing again keeps the subscription.
    const again = await harness.subscribe(kept);
    expect(again).toMatchObject({ status: 'active', payment_subscription_id: kept.subscriptionId });
    // Opens more tunnels than the next plan allows.
    const { client, statuses } = await connectWith(harness, month.special.leavingToken);
    const localPort = await startService(harness);
    for (let opened = 0; opened < TUNNEL_LIMIT + 2; opened += 1) {
      month.opened.push(await client.open({ protocol: 'http', localPort }));
    }
    month.statuses = statuses;
  });
};

export const afterItsEnd = (harness: BillingHarness, month: Month): void => {
  it.each(USED)(row('Contract', 2, '%d bytes'), async (bytes) => {
    const { total, amount_paid } = await month.invoice(bytes);
    expect([total, amount_paid]).toEqual([dueFor(bytes), dueFor(bytes)]);
  });

  it(row('Limits', 2), async () => {
    // The minimum is credited against usage: the total is 312, not 300 plus 312.
    expect([(await month.invoice(0)).total, (await month.invoice(31_234_567_890)).total]).toEqual([300, 312]);
  });

  it(row('Contract', 3), async () => {
    const amounts = async (bytes: number): Promise<number[]> =>
      (await month.invoice(bytes)).lines.data.map(({ amount }) => amount).toSorted((a, b) => a - b);
    expect([await amounts(123 * GB), await amounts(30 * GB)]).toEqual([
      [300, 930],
      [0, 300],
    ]);
    const now = new Date();
    const end = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 2, 1)).toISOString();
    await harness.billingWhen(month.payer(0), ({ current_period_end }) => current_period_end === end);
  });

  it(row('Contract', 11), async () => {
    const { late, ending, kept } = month.special;
    const stays = { billing_model: 'payg', subscription_status: 'active' };
    expect(await harness.billing(month.payer(0))).toMatchObject(stays);
    expect(await harness.billing(kept)).toMatchObject(stays);
    await harness.billingWhen(late, (now) => now.subscription_status === 'past_due');
    const gone = await harness.billingWhen(ending, (now) => now.billing_model === 'free');
    expect(gone).toMatchObject({ plan_name: 'free', subscription_status: 'canceled', estimated_mtd_cents: 0 });
  });

  it(row('Contract', 12), async () => {
    const { late } = month.special;
    await harness.billingWhen(late, (now) => now.subscription_status === 'past_due');
    expect((await harness.invoiceWhen(late, 'open')).total).toBe(300);
    await eventually(async () => {
      const subjects = (await harness.mails(late.email)).map(({ subject }) => subject);
      expect(subjects.filter((subject) => subject === 'Your Hatchway payment failed')).toHaveLength(1);
    }, SOON);
    const edge = await harness.edge();
    const { tunnel, statuses, key } = await openTunnel(harness, late);
    const open = () => edge.open({ accountId: late.id, keyId: key.id });
    const pastDueFor = (days: number) =>
      harness.db
        .updateTable('billing_accounts')
        .set({ past_due_since: new Date(Date.now() - days * DAY_MS) })
        .where('user_id', '=', late.id)
        .execute();
    await pastDueFor(6.99);
    expect(await open()).toEqual({ ok: true });
    expect(await visitHttp(tunnel)).toBe(200);
    await pastDueFor(7.01);
    expect(await open()).toMatchObject({ ok: false, code: 'ACCOUNT_PAST_DUE' });
    const message = 'the account is past due: a payment failed more than 7 days ago';
    const fault = { code: 'ACCOUNT_PAST_DUE', message };
    await eventually(() => expect(statuses.at(-1)).toMatchObject({ type: 'closed', fault }), SOON);
    expect(await visitHttp(tunnel)).toBe(404);
    expect(await harness.billing(late)).toMatchObject({ billing_model: 'payg', plan_name: 'payg' });
  });

  it(row('Contract', 13), async () => {
    const { leaving, leavingKey } = month.special;
    await harness.billingWhen(leaving, (now) => now.billing_model === 'free');
    const edge = await harness.edge();
    expect(await edge.open(leavingKey)).toMatchObject({ ok: false, code: 'TUNNEL_PLAN_LIMIT' });
    const over = () => month.statuses.flatMap((event) => (event.type === 'tunnel-error' ? [event] : []));
    await eventually(() => expect(over()).toHaveLength(2), SOON);
    expect(over().map(({ tunnel, fault, final }) => [tunnel, fault.code, final])).toEqual(
      month.opened
        .slice(-2)
        .map((tunnel) => [tunnel, 'TUNNEL_OVER_PLAN', true])
        .toReversed(),
    );
    await eventually(async () => {
      const { body } = await harness.get('/usage', leaving.token);
      expect(body).toMatchObject({ plan: 'free', active_tunnels: TUNNEL_LIMIT });
    }, SOON);
    const [oldest] = month.opened;
    expect(oldest === undefined ? 0 : await visitHttp(oldest)).toBe(200);
    // The minimum applies to the last month as well.
    expect((await harness.invoiceWhen(leaving, 'paid')).total).toBe(300);
    const again = await harness.subscribe(leaving);
    expect(again).toMatchObject({ status: 'active', plan: 'payg' });
    expect(again.payment_subscription_id).not.toBe(leaving.subscriptionId);
    expect(await edge.open(leavingKey)).toEqual({ ok: true });
  });
};
