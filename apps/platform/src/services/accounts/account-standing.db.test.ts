import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findAccount } from '../billing/billing-account.ts';
import { addAccount, addKey, createLinkFixture, type LinkFixture, OPERATOR } from '../edges/link.fixture.ts';
import { setUnlimited } from '../keys/keys.ts';
import { listUsers, restore, setPlan, suspend } from './account-standing.ts';

let fixture: LinkFixture;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
afterAll(() => fixture.close());

const userOf = (id: string) =>
  fixture.db.selectFrom('users').selectAll().where('id', '=', id).executeTakeFirstOrThrow();
const auditOf = (userId: string) =>
  fixture.db
    .selectFrom('audit_log')
    .select(['actor', 'action', 'details'])
    .where('user_id', '=', userId)
    .orderBy('id')
    .execute();
const changesOf = (accountId: string) =>
  fixture.db
    .selectFrom('edge_changes')
    .select(['kind', 'code'])
    .where('account_id', '=', accountId)
    .orderBy('id')
    .execute();

describe('an operator', () => {
  it('can suspend an account, with an end of its tokens and a notice to edges, and restore the account', async () => {
    const { accountId, email } = await addAccount(fixture.db);
    await fixture.db.insertInto('refresh_families').values({ user_id: accountId }).execute();
    expect(await suspend(fixture, OPERATOR, ` ${email.toUpperCase()} `)).toEqual({ changed: true });
    expect(await suspend(fixture, OPERATOR, email)).toEqual({ changed: false });
    expect(await userOf(accountId)).toMatchObject({ status: 'suspended', epoch: 1 });
    const families = await fixture.db.selectFrom('refresh_families').select('revoked_at').execute();
    expect(families).toEqual([{ revoked_at: new Date(fixture.clock.now()) }]);
    expect(await restore(fixture, OPERATOR, email)).toEqual({ changed: true });
    expect(await restore(fixture, OPERATOR, email)).toEqual({ changed: false });
    expect(await userOf(accountId)).toMatchObject({ status: 'active', epoch: 1 });
    expect(await auditOf(accountId)).toEqual([
      { actor: 'operator:test', action: 'user.suspended', details: {} },
      { actor: 'operator:test', action: 'user.restored', details: {} },
    ]);
    expect(await changesOf(accountId)).toEqual([
      { kind: 'account-closed', code: 'ACCOUNT_SUSPENDED' },
      { kind: 'account-changed', code: null },
    ]);
  });

  it('can set only existing plans', async () => {
    const { accountId, email } = await addAccount(fixture.db);
    await expect(setPlan(fixture, OPERATOR, { email, plan: 'gold' })).rejects.toMatchObject({
      code: 'PLAN_UNKNOWN',
      message: 'there is no plan `gold` (available: free, payg)',
    });
    expect(await setPlan(fixture, OPERATOR, { email, plan: 'payg' })).toEqual({ changed: true });
    expect(await setPlan(fixture, OPERATOR, { email, plan: 'payg' })).toEqual({ changed: false });
    expect(await userOf(accountId)).toMatchObject({ plan: 'payg' });
    expect(await auditOf(accountId)).toEqual([
      { actor: 'operator:test', action: 'user.plan-set', details: { from: 'free', to: 'payg' } },
    ]);
    expect(await changesOf(accountId)).toEqual([{ kind: 'account-changed', code: null }]);
  });

  it('starts metering an account with its first plan with a price', async () => {
    const { accountId, email } = await addAccount(fixture.db);
    const meteredFrom = async () => (await findAccount(fixture.db, accountId))?.metered_from?.getTime();
    const begin = fixture.clock.now();
    await setPlan(fixture, OPERATOR, { email, plan: 'payg' });
    expect(await meteredFrom()).toBe(begin);
    await fixture.clock.advance(1000);
    for (const plan of ['free', 'payg', 'free']) await setPlan(fixture, OPERATOR, { email, plan });
    expect(await meteredFrom()).toBe(begin);
  });

  it('can exempt a key from the tunnel limit and revert it', async () => {
    const { accountId } = await addAccount(fixture.db);
    const { keyId } = await addKey(fixture.db, accountId);
    expect(await setUnlimited(fixture, OPERATOR, { keyId, unlimited: true })).toEqual({ changed: true });
    expect(await setUnlimited(fixture, OPERATOR, { keyId, unlimited: true })).toEqual({ changed: false });
    const key = await fixture.db.selectFrom('api_keys').select('unlimited').where('id', '=', keyId).executeTakeFirst();
    expect(key).toEqual({ unlimited: true });
    expect(await setUnlimited(fixture, OPERATOR, { keyId, unlimited: false })).toEqual({ changed: true });
    expect(await auditOf(accountId)).toHaveLength(2);
    for (const unknown of ['key', crypto.randomUUID()]) {
      await expect(setUnlimited(fixture, OPERATOR, { keyId: unknown, unlimited: true })).rejects.toMatchObject({
        code: 'KEY_UNKNOWN',
      });
    }
  });

  it('gets USER_UNKNOWN for an unknown address', async () => {
    for (const verb of [suspend, restore]) {
      await expect(verb(fixture, OPERATOR, 'nobody@example.com')).rejects.toMatchObject({ code: 'USER_UNKNOWN' });
    }
    await expect(setPlan(fixture, OPERATOR, { email: 'nobody@example.com', plan: 'free' })).rejects.toMatchObject({
      code: 'USER_UNKNOWN',
    });
  });

  it('leaves no trace if an action fails', async () => {
    const { accountId, email } = await addAccount(fixture.db);
    await fixture.db.schema.alterTable('edge_changes').renameTo('edge_changes_away').execute();
    await expect(suspend(fixture, OPERATOR, email)).rejects.toThrow('edge_changes');
    await fixture.db.schema.alterTable('edge_changes_away').renameTo('edge_changes').execute();
    expect(await userOf(accountId)).toMatchObject({ status: 'active', epoch: 0 });
    expect(await auditOf(accountId)).toEqual([]);
  });

  it('can list accounts in pages without repeats or gaps', async () => {
    const { email } = await addAccount(fixture.db);
    for (let i = 0; i < 3; i += 1) await addAccount(fixture.db);
    const all = await listUsers(fixture);
    expect(all.length).toBeGreaterThan(5);
    const paged = await listUsers(fixture, { limit: 2 });
    for (;;) {
      const page = await listUsers(fixture, { limit: 2, after: paged.at(-1)!.email });
      if (page.length === 0) break;
      paged.push(...page);
    }
    expect(paged).toEqual(all);
    const listed = all.find((user) => user.email === email);
    expect(listed).toMatchObject({ plan: 'free', emailVerified: false, openTunnels: 0 });
  });
});
