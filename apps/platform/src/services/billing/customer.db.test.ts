import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BillingFixture, openBillingFixture } from './billing.fixture.ts';
import { createSetupIntent, ensureCustomer, listInvoices, openPortal } from './customer.ts';

let fixture: BillingFixture;
beforeAll(async () => {
  fixture = await openBillingFixture();
});
afterAll(() => fixture.close());

const PORTAL = { return_url: 'https://app.example.com/' };

describe("an account's customer", () => {
  it('is created once even by twelve concurrent calls', async () => {
    const user = await fixture.addUser('ada');
    const ids = await Promise.all(Array.from({ length: 12 }, () => ensureCustomer(fixture.context, user.userId)));
    expect(new Set(ids).size).toBe(1);
    const made = fixture.processor.callsOf('ensureCustomer');
    expect(made).toEqual([{ userId: user.userId, email: 'ada@example.com', name: 'ada' }]);
    expect((await fixture.accountOf(user)).customer_id).toBe(ids[0]);
  });

  it('is not stored while the processor is unavailable, and is created by the next call', async () => {
    const user = await fixture.addUser('bob');
    fixture.processor.mood = 'away';
    await expect(createSetupIntent(fixture.context, user, 'one')).rejects.toMatchObject({ status: 503 });
    await expect(fixture.accountOf(user)).rejects.toThrow('nothing is held');
    fixture.processor.mood = 'well';
    await createSetupIntent(fixture.context, user, 'one');
    expect((await fixture.accountOf(user)).customer_id).not.toBeNull();
  });

  it('keeps an existing spend cap', async () => {
    const user = await fixture.addUser('carl', 'payg');
    const cap = { user_id: user.userId, spend_cap_cents: 500 };
    await fixture.context.db.insertInto('billing_accounts').values(cap).execute();
    const customer_id = await ensureCustomer(fixture.context, user.userId);
    expect(await fixture.accountOf(user)).toMatchObject({ spend_cap_cents: 500, customer_id });
  });

  it('is created again by the next call if deleted at the processor', async () => {
    const { user, customerId } = await fixture.addSubscriber('dora');
    fixture.processor.customers.delete(customerId);
    fixture.processor.customers.set(`${customerId}-deleted`, fixture.processor.factsOf(customerId));
    const { url } = await openPortal(fixture.context, user, PORTAL);
    const present = await fixture.accountOf(user);
    expect(present.customer_id).not.toBe(customerId);
    expect(url).toContain(String(present.customer_id));
    expect(await fixture.planOf(user)).toBe('free');
  });

  it('is kept if the processor refuses a call but still has the customer', async () => {
    const { user, customerId } = await fixture.addPayer('erin');
    fixture.processor.moodOf = { openPortal: 'refuses' };
    await expect(openPortal(fixture.context, user, PORTAL)).rejects.toMatchObject({ status: 502 });
    fixture.processor.moodOf = {};
    expect((await fixture.accountOf(user)).customer_id).toBe(customerId);
  });
});

describe('a setup intent', () => {
  it('is the same for a repeated order, different for another order, and never shared between accounts', async () => {
    const one = await fixture.addUser('fred');
    const other = await fixture.addUser('gina');
    const secret = async (user: typeof one, order: string): Promise<string> =>
      (await createSetupIntent(fixture.context, user, order)).client_secret;
    expect(await secret(one, 'a')).toBe(await secret(one, 'a'));
    const all = [await secret(one, 'a'), await secret(one, 'b'), await secret(other, 'a')];
    expect(new Set(all).size).toBe(3);
    const keys = fixture.processor.callsOf('createSetupIntent') as { idempotencyKey: string }[];
    for (const { idempotencyKey } of keys) expect(idempotencyKey).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('invoices', () => {
  it('are empty without a customer, without a call to the processor', async () => {
    const user = await fixture.addUser('hugo');
    expect(await listInvoices(fixture.context, user)).toEqual({ invoices: [] });
    expect(fixture.processor.callsOf('invoices')).toEqual([]);
  });

  it('are passed on from the processor', async () => {
    const { user, customerId } = await fixture.addPayer('ines');
    expect(await listInvoices(fixture.context, user)).toEqual({ invoices: [{ id: 'in_1', customer: customerId }] });
  });
});
