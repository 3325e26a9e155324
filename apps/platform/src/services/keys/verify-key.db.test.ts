import { afterAll, beforeAll, expect, it } from 'vitest';
import { addAccount, createLinkFixture, type LinkFixture, NOON } from '../edges/link.fixture.ts';
import { KeyUses, verifyKey } from './verify-key.ts';

let fixture: LinkFixture;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
afterAll(() => fixture.close());

const settings = { public_url: 'https://example.com/base/' };

const lastUse = async (keyId: string) => {
  const row = await fixture.db.selectFrom('api_keys').select('last_used_at').where('id', '=', keyId).executeTakeFirst();
  return row?.last_used_at;
};

it("verifyKey returns the key's account and rights, or the reason for a refusal", async () => {
  const { accountId, keyId, tokenHash } = await addAccount(fixture.db);
  const context = { db: fixture.db, settings, keyUses: { note: () => {} } };
  expect(await verifyKey(context, tokenHash)).toEqual({
    ok: true,
    key_id: keyId,
    unlimited: false,
    account: { account_id: accountId, plan: 'free', tunnel_limit: 10, allow_custom_subdomains: false },
    profile: { email: expect.stringContaining('@'), dashboard_url: 'https://example.com/base/app' },
  });
  expect(await verifyKey(context, '0'.repeat(64))).toMatchObject({ ok: false, code: 'AUTH_TOKEN_INVALID' });
  await fixture.db.updateTable('users').set({ status: 'suspended' }).where('id', '=', accountId).execute();
  expect(await verifyKey(context, tokenHash)).toMatchObject({ ok: false, code: 'ACCOUNT_SUSPENDED' });
  await fixture.db.updateTable('api_keys').set({ status: 'revoked' }).where('id', '=', keyId).execute();
  expect(await verifyKey(context, tokenHash)).toMatchObject({ ok: false, code: 'AUTH_TOKEN_REVOKED' });
});

it('the last use of a key is written at most once a minute, even by two processes', async () => {
  const { keyId, tokenHash } = await addAccount(fixture.db);
  const uses = new KeyUses(fixture);
  const others = new KeyUses(fixture);
  await verifyKey({ db: fixture.db, settings, keyUses: uses }, tokenHash);
  expect(await lastUse(keyId)).toBeNull();
  await uses.flush();
  expect(await lastUse(keyId)).toEqual(new Date(NOON));
  await fixture.clock.advance(59_000);
  for (const each of [uses, others]) {
    each.note(keyId);
    await each.flush();
  }
  expect(await lastUse(keyId)).toEqual(new Date(NOON));
  await fixture.clock.advance(1000);
  uses.note(keyId);
  await uses.stop();
  expect(await lastUse(keyId)).toEqual(new Date(NOON + 60_000));
});

it('uses of a key that could not be written are kept for the next attempt', async () => {
  const { keyId } = await addAccount(fixture.db);
  let away = true;
  const db = new Proxy(fixture.db, {
    get: (target, name, receiver) => {
      if (name === 'getExecutor' && away) throw new Error('away');
      const value = Reflect.get(target, name, receiver) as unknown;
      return typeof value === 'function' ? (value as () => unknown).bind(target) : value;
    },
  });
  const uses = new KeyUses({ ...fixture, db });
  uses.note(keyId);
  await uses.flush();
  away = false;
  await uses.flush();
  expect(await lastUse(keyId)).toEqual(new Date(fixture.clock.now()));
});
