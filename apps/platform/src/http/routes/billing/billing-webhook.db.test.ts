import { eventually } from '@tunnel/testkit';
import { Stripe } from 'stripe';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LIMITS } from '../../../limits.ts';
import { PaymentsFixture, type Reply } from './payments.fixture.ts';

let fixture: PaymentsFixture;
beforeAll(async () => {
  fixture = await PaymentsFixture.open();
});
afterAll(() => fixture.close());

const signed = (payload: string, { secret = fixture.simulator.webhookSecret.reveal(), ageSecs = 0 } = {}) => ({
  'stripe-signature': Stripe.webhooks.generateTestHeaderString({
    payload,
    secret,
    timestamp: Math.floor(Date.now() / 1000) - ageSecs,
  }),
});
const eventText = (id: string, customer: string, type = 'customer.updated'): string =>
  JSON.stringify({
    id,
    object: 'event',
    type,
    created: 1_893_456_000,
    data: { object: { id: customer, object: 'customer' } },
  });
const deliver = (raw: string | Uint8Array, headers: Record<string, string>): Promise<Reply> =>
  fixture.post(null, '/billing/webhook', { raw, headers });
const noted = (id: string) =>
  fixture.database.db.selectFrom('processor_events').selectAll().where('id', '=', id).executeTakeFirst();

describe('POST /billing/webhook', () => {
  it('accepts a signed event without an access token and with any content type', async () => {
    const text = eventText('evt_1', 'cus_stranger');
    expect(await deliver(text, signed(text))).toMatchObject({ status: 200, body: { received: true } });
    expect(await deliver(text, { ...signed(text), 'content-type': 'text/plain' })).toMatchObject({ status: 200 });
    expect(await noted('evt_1')).toMatchObject({ handled_at: expect.any(Date) as Date });
  });

  it.each<[string, (text: string) => Promise<Reply>]>([
    ['no signature', (text) => deliver(text, {})],
    ['an empty one', (text) => deliver(text, { 'stripe-signature': '' })],
    ['nonsense', (text) => deliver(text, { 'stripe-signature': 't=1,v1=00' })],
    ['the signature of another secret', (text) => deliver(text, signed(text, { secret: 'whsec_other' }))],
    ['one of an hour ago', (text) => deliver(text, signed(text, { ageSecs: 3600 }))],
    ['a changed byte', (text) => deliver(text.replace('customer.updated', 'customer.updatee'), signed(text))],
    ['a space more', (text) => deliver(`${text} `, signed(text))],
    ['an access token in its place', (text) => fixture.post('somebody', '/billing/webhook', { raw: text })],
    ['no body', () => fixture.post(null, '/billing/webhook', { headers: signed('') })],
    ['a signed text that is no event', () => deliver('[]', signed('[]'))],
    ['a signed text that is no JSON', () => deliver('{', signed('{'))],
  ])('returns 400 for %s', async (name, send) => {
    const answer = await send(eventText(`evt ${name}`, 'cus_1'));
    expect([answer.status, answer.body.code]).toEqual([400, 'WEBHOOK_SIGNATURE']);
    expect(await noted(`evt ${name}`)).toBeUndefined();
  });

  it('returns 400 for invalid UTF-8 that decodes to the signed text', async () => {
    const text = eventText('evt_bytes', 'cus_\ufffd');
    const bytes = Buffer.from(text, 'utf8');
    const at = bytes.indexOf(Buffer.from('\ufffd', 'utf8'));
    const spoiled = Buffer.concat([bytes.subarray(0, at), Buffer.from([0xff]), bytes.subarray(at + 3)]);
    expect((await deliver(spoiled, signed(text))).status).toBe(400);
    expect((await deliver(bytes, signed(text))).status).toBe(200);
  });

  it('accepts bodies up to 1 MiB, more than other endpoints', async () => {
    const pad = (bytes: number): string =>
      eventText('evt_large', 'cus_1').replace('{', `{"pad":"${'x'.repeat(bytes)}",`);
    const large = pad(900 * 1024);
    expect((await deliver(large, signed(large))).status).toBe(200);
    const tooLarge = pad(LIMITS.WEBHOOK_BODY_MAX_BYTES);
    const answer = await deliver(tooLarge, signed(tooLarge));
    expect([answer.status, answer.body.code]).toEqual([413, 'API_BODY_TOO_LARGE']);
  });

  it('returns 503 while the processor is unavailable, and processes the event when it is sent again', async () => {
    const user = await fixture.addUser('ada');
    await fixture.addCard(user);
    const { body } = await fixture.ask(user, 'GET', '/billing');
    await eventually(async () =>
      expect((await fixture.ask(user, 'GET', '/billing')).body.has_payment_method).toBe(true),
    );
    const text = eventText('evt_away', body.payment_customer_id);
    await fixture.simulator.stop();
    const headers = signed(text);
    const answer = await deliver(text, headers);
    expect([answer.status, answer.body.code]).toEqual([503, 'BILLING_PROCESSOR_AWAY']);
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await noted('evt_away')).toMatchObject({ handled_at: null });
    expect(await fixture.ask(user, 'GET', '/billing')).toMatchObject({ status: 200 });
    expect((await fixture.ask(user, 'GET', '/billing/invoices')).status).toBe(503);
    expect((await fixture.post(user, '/billing/subscribe')).status).toBe(503);
    await fixture.simulator.start();
    expect((await deliver(text, headers)).status).toBe(200);
    expect(await noted('evt_away')).toMatchObject({ handled_at: expect.any(Date) as Date });
  });
});
