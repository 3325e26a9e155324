// The simulator's control calls and page, and the webhooks that it sends.
import { createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { BILLING_WEBHOOK_PATH } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from '../platform/api-request.fixture.ts';
import type { Person } from '../platform/platform-harness.fixture.ts';
import { openTunnel, visitHttp } from '../platform/tunnels.fixture.ts';
import type { BillingHarness } from './billing-harness.fixture.ts';
import type { Month } from './periods.rows.ts';
import { row } from './rows.fixture.ts';

const DAY_SECS = 24 * 60 * 60;
const MODES = ['late', 'shuffle', 'twice', 'normal'];
const now = (): number => Math.floor(Date.now() / 1000);

export const simulatorRows = (harness: BillingHarness): void => {
  it(row('Contract', 16), async () => {
    const person = await harness.person();
    const confirm = async (reference: string, body?: unknown) =>
      harness.sim(`setup_intents/${reference}/confirm`, body);
    const secret = await harness.clientSecret(person);
    const [id = ''] = secret.split('_secret_');
    expect(await confirm(id, { card: 'declined' })).toMatchObject({
      status: 402,
      body: { error: { type: 'card_error', code: 'card_declined' } },
    });
    expect((await confirm(id, { card: 'of paper' })).status).toBe(400);
    expect(await confirm(id)).toMatchObject({ status: 200, body: { object: 'setup_intent', id, status: 'succeeded' } });
    expect((await confirm(id)).status).toBe(400);
    expect((await confirm(await harness.clientSecret(person), { card: 'fails_later' })).status).toBe(200);
    expect((await confirm('seti_nobody')).status).toBe(404);
    await harness.billingWhen(person, ({ has_payment_method }) => has_payment_method);
  });

  it(row('Contract', 19), async () => {
    const person = await harness.person();
    const [intent = ''] = (await harness.clientSecret(person)).split('_secret_');
    const page = await fetch(harness.simulatorUrl);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    const html = await page.text();
    expect(html).toContain(person.email);
    for (const action of [`setup_intents/${intent}/confirm`, 'clock', 'webhooks']) {
      expect(html).toContain(`action="/_sim/${action}"`);
    }
    const form = new URLSearchParams({ card: 'good' });
    const sent = await fetch(`${harness.simulatorUrl}/_sim/setup_intents/${intent}/confirm`, {
      method: 'POST',
      body: form,
      redirect: 'manual',
    });
    expect([sent.status, sent.headers.get('location')]).toEqual([303, '/']);
    await harness.billingWhen(person, ({ has_payment_method }) => has_payment_method);
  });

  it(row('Contract', 19, 'and nobody from elsewhere'), async () => {
    expect(await statusWith({ host: 'evil.example' })).toBe(421);
    expect(await statusWith({ origin: 'https://evil.example' })).toBe(403);
    expect(await statusWith({})).toBe(200);
  });

  /** Sends a request with headers that fetch() does not allow. */
  const statusWith = (headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      const asked = request(`${harness.simulatorUrl}/_sim/clock`, { method: 'POST', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      asked.on('error', reject);
      asked.end('{"advance_secs":0}');
    });

  describe(row('Contract', 20), () => {
    const send = (raw: string, signature?: string): Promise<Answer> =>
      harness.ask('POST', BILLING_WEBHOOK_PATH, {
        raw,
        headers: {
          'content-type': 'application/json',
          ...(signature === undefined ? {} : { 'stripe-signature': signature }),
        },
      });
    const event = (id: string): string =>
      JSON.stringify({ id, object: 'event', type: 'test.event', created: 1, data: { object: {} } });
    const secret = (): string => {
      const file = join(harness.server.dataDir, 'simulator', 'secrets.json');
      return (JSON.parse(readFileSync(file, 'utf8')) as { webhook_secret: string }).webhook_secret;
    };
    const signed = (raw: string, key = secret(), at = now()): string =>
      `t=${at},v1=${createHmac('sha256', key).update(`${at}.${raw}`).digest('hex')}`;
    const noted = (id: string) => harness.db.selectFrom('processor_events').selectAll().where('id', '=', id).execute();

    it('a webhook gets 400 WEBHOOK_SIGNATURE without a signature, with a wrong or expired one, and after a byte was changed', async () => {
      const raw = event('evt_refused');
      const old = signed(raw, secret(), now() - 3600);
      for (const signature of [undefined, '', 'nonsense', signed(raw, 'whsec_of_another'), old]) {
        expect(refusalOf(await send(raw, signature))).toEqual([400, 'WEBHOOK_SIGNATURE']);
      }
      expect(refusalOf(await send(`${raw} `, signed(raw)))).toEqual([400, 'WEBHOOK_SIGNATURE']);
      expect(await noted('evt_refused')).toEqual([]);
    });

    it('a signed webhook of an unknown event type is accepted each time and recorded once', async () => {
      const raw = event('evt_taken');
      for (let sent = 0; sent < 3; sent += 1) expect((await send(raw, signed(raw))).status).toBe(200);
      expect(await noted('evt_taken')).toMatchObject([{ type: 'test.event', handled_at: expect.any(Date) }]);
    });
  });
};

/** Tests that change the simulator for all accounts, so they run one after the other. */
export const simulatorRowsAtTheEnd = (harness: BillingHarness, month: Month): void => {
  const people = new Map<string, Person>();
  beforeAll(async () => {
    await Promise.all(MODES.map(async (mode) => people.set(mode, await harness.person())));
  });

  it(row('Contract', 17), async () => {
    const before = await fetch(`${harness.simulatorUrl}/_sim`);
    const { ahead_secs } = (await before.json()) as { ahead_secs: number };
    expect(ahead_secs).toBeGreaterThan(0);
    const moved = await harness.sim('clock', { advance_secs: 3600 });
    expect(moved).toMatchObject({ status: 200, body: { ahead_secs: ahead_secs + 3600 } });
    expect(Math.abs(Date.parse(String(moved.body['now'])) / 1000 - now() - ahead_secs - 3600)).toBeLessThan(60);
    for (const advance_secs of [-1, 0.5, 'soon', undefined]) {
      expect((await harness.sim('clock', { advance_secs })).status).toBe(400);
    }
  });

  it(row('Contract', 12, 'by the clock of the simulator'), async () => {
    const { later: payer } = month.special;
    await harness.billingWhen(payer, (state) => state.subscription_status === 'past_due');
    const { tunnel, statuses } = await openTunnel(harness, payer);
    await harness.advance(6 * DAY_SECS);
    expect(await visitHttp(tunnel)).toBe(200);
    await harness.advance(2 * DAY_SECS);
    const fault = { code: 'ACCOUNT_PAST_DUE' };
    await eventually(() => expect(statuses.at(-1)).toMatchObject({ type: 'closed', fault }), { timeoutMs: 60_000 });
    expect(await visitHttp(tunnel)).toBe(404);
    // Payment opens access again.
    const { id } = await harness.invoiceWhen(payer, 'open');
    const { customer } = await harness.db
      .selectFrom('billing_accounts')
      .select('customer_id as customer')
      .where('user_id', '=', payer.id)
      .executeTakeFirstOrThrow();
    await harness.sim(`customers/${customer}/cards`, { card: 'good' });
    await harness.sim(`invoices/${id}/pay`);
    await harness.billingWhen(payer, (state) => state.subscription_status === 'active');
    expect(await visitHttp((await openTunnel(harness, payer)).tunnel)).toBe(200);
  }, 120_000);

  it.each(MODES)(row('Contract', 18, '%s'), async (mode) => {
    expect(await harness.sim('webhooks', { mode })).toMatchObject({ status: 200, body: { mode } });
    const person = people.get(mode) ?? (await harness.person());
    await harness.addCard(person);
    await harness.billingWhen(person, ({ has_payment_method }) => has_payment_method);
  });

  it(row('Contract', 18, 'no other'), async () => {
    for (const mode of ['never', '', null]) expect((await harness.sim('webhooks', { mode })).status).toBe(400);
  });
};
