import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type BillingScene, openBillingScene } from './billing-scene.fixture.ts';
import { createSetupIntent, ensureCustomer, listInvoices, openPortal } from './customer.ts';

let scene: BillingScene;
beforeAll(async () => {
  scene = await openBillingScene();
});
afterAll(() => scene.close());

const PORTAL = { return_url: 'https://app.example.com/' };

describe("an account's customer", () => {
  it('is made once, however many calls need it at once', async () => {
    const user = await scene.addUser('ada');
    const ids = await Promise.all(Array.from({ length: 12 }, () => ensureCustomer(scene.context, user.userId)));
    expect(new Set(ids).size).toBe(1);
    const made = scene.processor.callsOf('ensureCustomer');
    expect(made).toEqual([{ userId: user.userId, email: 'ada@example.com', name: 'ada' }]);
    expect((await scene.accountOf(user)).customer_id).toBe(ids[0]);
  });

  it('that is not made because the processor is away leaves nothing, and is made at the next call', async () => {
    const user = await scene.addUser('bob');
    scene.processor.mood = 'away';
    await expect(createSetupIntent(scene.context, user, 'one')).rejects.toMatchObject({ status: 503 });
    await expect(scene.accountOf(user)).rejects.toThrow('nothing is held');
    scene.processor.mood = 'well';
    await createSetupIntent(scene.context, user, 'one');
    expect((await scene.accountOf(user)).customer_id).not.toBeNull();
  });

  it('keeps a spend cap that was there before it', async () => {
    const user = await scene.addUser('carl', 'payg');
    const cap = { user_id: user.userId, spend_cap_cents: 500 };
    await scene.context.db.insertInto('billing_accounts').values(cap).execute();
    const customer_id = await ensureCustomer(scene.context, user.userId);
    expect(await scene.accountOf(user)).toMatchObject({ spend_cap_cents: 500, customer_id });
  });

  it('that was deleted over there is made anew by the call that meets that', async () => {
    const { user, customerId } = await scene.addSubscriber('dora');
    scene.processor.customers.delete(customerId);
    scene.processor.customers.set(`${customerId}-deleted`, scene.processor.factsOf(customerId));
    const { url } = await openPortal(scene.context, user, PORTAL);
    const present = await scene.accountOf(user);
    expect(present.customer_id).not.toBe(customerId);
    expect(url).toContain(String(present.customer_id));
    expect(await scene.planOf(user)).toBe('free');
  });

  it('that is still there is not made anew: a refusal is a refusal', async () => {
    const { user, customerId } = await scene.addPayer('erin');
    scene.processor.moodOf = { openPortal: 'refuses' };
    await expect(openPortal(scene.context, user, PORTAL)).rejects.toMatchObject({ status: 502 });
    scene.processor.moodOf = {};
    expect((await scene.accountOf(user)).customer_id).toBe(customerId);
  });
});

describe('a setup intent', () => {
  it('is the same for the same order, another one for another, and never shared between accounts', async () => {
    const [one, other] = [await scene.addUser('fred'), await scene.addUser('gina')];
    const secret = async (user: typeof one, order: string): Promise<string> =>
      (await createSetupIntent(scene.context, user, order)).client_secret;
    expect(await secret(one, 'a')).toBe(await secret(one, 'a'));
    const all = [await secret(one, 'a'), await secret(one, 'b'), await secret(other, 'a')];
    expect(new Set(all).size).toBe(3);
    const keys = scene.processor.callsOf('createSetupIntent') as { idempotencyKey: string }[];
    for (const { idempotencyKey } of keys) expect(idempotencyKey).toMatch(/^[0-9a-f]{64}$/);
  });
});

describe('invoices', () => {
  it('are none without a customer, and nobody is asked', async () => {
    const user = await scene.addUser('hugo');
    expect(await listInvoices(scene.context, user)).toEqual({ invoices: [] });
    expect(scene.processor.callsOf('invoices')).toEqual([]);
  });

  it('are as the processor has them', async () => {
    const { user, customerId } = await scene.addPayer('ines');
    expect(await listInvoices(scene.context, user)).toEqual({ invoices: [{ id: 'in_1', customer: customerId }] });
  });
});
