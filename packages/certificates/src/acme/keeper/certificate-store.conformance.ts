// Conformance suite for every CertificateStore.

import { expect, it } from 'vitest';
import { certificateDueAt, NEW_CERTIFICATE } from '../../life/certificate-life.rules.ts';
import type { CertificateStore, StoredAccount, StoredCertificate } from './certificate-store.ts';

export interface StoreUnderTest {
  readonly store: CertificateStore;
  /** Opens the same store again, like a process that starts now. */
  reopen(): Promise<CertificateStore>;
}

const NOW = Date.UTC(2030, 0, 1);
/** Account id in the form of the platform's ids, which a store may require. */
const ACCOUNT = '3f0a7c52-90b1-4c6e-9d0e-5f1b2a8c7d64';
const LEASE = 60_000;

const CERTIFICATE: StoredCertificate = {
  chain: 'chain',
  issuer: 'Test',
  serial: 'a5',
  notBefore: NOW,
  notAfter: NOW + 1000,
  renewalId: 'a.b',
  key: 'sealed',
};

export const certificateStoreConformance = (begin: () => Promise<StoreUnderTest>): void => {
  it('the same names in any order are one record, other names are another record', async () => {
    const { store } = await begin();
    const first = await store.want(['a.example', '*.a.example']);
    expect(first).toMatchObject({ life: NEW_CERTIFICATE, orderKey: null, certificate: null });
    expect((await store.want(['*.a.example', 'a.example'])).id).toBe(first.id);
    const other = await store.want(['a.example']);
    expect((await store.list()).map(({ id }) => id).sort()).toEqual([first.id, other.id].sort());
  });

  it('a due certificate belongs to one keeper until the lease ends', async () => {
    const { store } = await begin();
    await store.want(['a.example']);
    const claim = await store.claim('one', NOW, LEASE);
    expect(claim?.record.names).toEqual(['a.example']);
    expect(await store.claim('two', NOW + LEASE - 1, LEASE)).toBeNull();
    expect((await store.claim('two', NOW + LEASE, LEASE))?.record.names).toEqual(['a.example']);
  });

  it('an extended lease lasts longer, and a released lease is free at once', async () => {
    const { store } = await begin();
    await store.want(['a.example']);
    const claim = await store.claim('one', NOW, LEASE);
    if (claim === null) throw new Error('nothing was due');
    expect(await store.extend(claim, NOW + 20_000, LEASE)).toBe(true);
    expect(await store.claim('two', NOW + LEASE, LEASE)).toBeNull();
    await store.release(claim);
    expect(await store.claim('two', NOW + LEASE, LEASE)).not.toBeNull();
  });

  it('a keeper that lost its lease cannot change the record', async () => {
    const { store } = await begin();
    const { id } = await store.want(['a.example']);
    const late = await store.claim('one', NOW, LEASE);
    const holder = await store.claim('two', NOW + LEASE, LEASE);
    if (late === null || holder === null) throw new Error('nothing was due');
    expect(await store.save(late, { orderKey: 'late' })).toBe(false);
    expect(await store.extend(late, NOW + LEASE, LEASE)).toBe(false);
    await store.release(late);
    expect(await store.claim('three', NOW + LEASE, LEASE)).toBeNull();
    expect(await store.save(holder, { orderKey: 'mine' })).toBe(true);
    expect((await store.get(id))?.orderKey).toBe('mine');
  });

  it('certificates are claimed in the order of their due times, and never before they are due', async () => {
    const { store } = await begin();
    for (const [name, tryAt] of [
      ['late', NOW - 10],
      ['early', NOW - 1000],
      ['future', NOW + 10],
    ] as const) {
      const { id } = await store.want([`${name}.example`]);
      expect(await store.change(id, NOW, (life) => ({ ...life, tryAt }))).toBe(true);
    }
    const claimed = [await store.claim('one', NOW, LEASE), await store.claim('one', NOW, LEASE)];
    expect(claimed.map((claim) => claim?.record.names[0])).toEqual(['early.example', 'late.example']);
    expect(await store.claim('one', NOW, LEASE)).toBeNull();
    expect(certificateDueAt((await store.claim('one', NOW + 10, LEASE))?.record.life ?? NEW_CERTIFICATE)).toBe(
      NOW + 10,
    );
  });

  it('a keeper that cannot validate wildcards leaves them to other keepers', async () => {
    const { store } = await begin();
    await store.want(['*.a.example']);
    expect(await store.claim('one', NOW, LEASE, { wildcards: false })).toBeNull();
    await store.want(['a.example']);
    expect((await store.claim('one', NOW, LEASE, { wildcards: false }))?.record.names).toEqual(['a.example']);
    expect((await store.claim('two', NOW, LEASE, { wildcards: true }))?.record.names).toEqual(['*.a.example']);
  });

  it('an account with fewer orders in progress is claimed first, and an account that has its share is skipped', async () => {
    const { store } = await begin();
    const wanted = [
      ['crowd-1', ACCOUNT, NOW - 1000],
      ['crowd-2', ACCOUNT, NOW - 900],
      ['single', null, NOW - 10],
    ] as const;
    for (const [name, account, tryAt] of wanted) {
      const { id } = await store.want([`${name}.example`], account);
      await store.change(id, NOW, (life) => ({ ...life, tryAt }));
    }
    const claim = async (busyAccounts: readonly string[]) =>
      (await store.claim('one', NOW, LEASE, { busyAccounts }))?.record.names[0] ?? null;
    expect(await claim([])).toBe('crowd-1.example');
    expect(await claim([ACCOUNT])).toBe('single.example');
    expect(await claim([ACCOUNT, ACCOUNT, ACCOUNT])).toBeNull();
    expect(await claim([ACCOUNT, ACCOUNT])).toBe('crowd-2.example');
  });

  it('a claimed certificate cannot be changed from outside', async () => {
    const { store } = await begin();
    const { id } = await store.want(['a.example']);
    await store.claim('one', NOW, LEASE);
    expect(await store.change(id, NOW, (life) => ({ ...life, failures: 5 }))).toBe(false);
    expect(await store.change('unknown', NOW, (life) => life)).toBe(false);
    expect((await store.get(id))?.life.failures).toBe(0);
  });

  it('after a start, renewal information for all issued certificates is due, staggered', async () => {
    const { store } = await begin();
    for (const name of ['a.example', 'b.example', 'new.example']) {
      await store.want([name]);
      const claim = await store.claim('one', NOW, LEASE);
      if (claim === null) throw new Error('nothing was due');
      const issued = name === 'new.example' ? null : { notBefore: NOW, notAfter: NOW + 90 * 24 * LEASE };
      const infoAt = issued && NOW + 1_000_000;
      await store.save(claim, { life: { ...NEW_CERTIFICATE, issued, infoAt, renewAt: infoAt, tryAt: NOW + LEASE } });
      await store.release(claim);
    }
    await store.wantInfo(NOW, 100);
    const asked = (await store.list()).map(({ life }) => life.infoAt);
    expect(new Set(asked)).toEqual(new Set([NOW, NOW + 100, null]));
    expect(await store.claim('one', NOW, LEASE)).not.toBeNull();
    expect(await store.claim('one', NOW, LEASE)).toBeNull();
    expect(await store.claim('one', NOW + 100, LEASE)).not.toBeNull();
    expect(await store.claim('one', NOW + 100, LEASE)).toBeNull();
  });

  it('an order in progress and a certificate are kept across a restart', async () => {
    const { store, reopen } = await begin();
    const { id } = await store.want(['a.example']);
    const claim = await store.claim('one', NOW, LEASE);
    if (claim === null) throw new Error('nothing was due');
    const life = { ...NEW_CERTIFICATE, order: { url: 'https://ca.example/order/1', until: NOW + 1000 } };
    await store.save(claim, { life, orderKey: 'sealed order', certificate: CERTIFICATE });
    const again = await reopen();
    expect(await again.get(id)).toEqual({
      id,
      names: ['a.example'],
      accountId: null,
      life,
      orderKey: 'sealed order',
      certificate: CERTIFICATE,
    });
    expect(await again.claim('two', NOW + LEASE, LEASE)).not.toBeNull();
  });

  it('a forgotten certificate is deleted, even for the keeper that claimed it', async () => {
    const { store, reopen } = await begin();
    const { id } = await store.want(['a.example']);
    const claim = await store.claim('one', NOW, LEASE);
    if (claim === null) throw new Error('nothing was due');
    await store.forget(id);
    expect(await store.save(claim, { certificate: CERTIFICATE })).toBe(false);
    expect([await store.get(id), await store.list()]).toEqual([null, []]);
    expect(await (await reopen()).list()).toEqual([]);
  });

  it('when two ACME accounts are saved at first, both callers get the first', async () => {
    const { store, reopen } = await begin();
    const account = (key: string): StoredAccount => ({ key, url: null, email: '' });
    expect(await store.account()).toBeNull();
    expect(await store.saveAccount(account('one'), null)).toEqual(account('one'));
    expect(await store.saveAccount(account('two'), null)).toEqual(account('one'));
    const known = { ...account('one'), url: 'https://ca.example/account/1' };
    expect(await store.saveAccount(known, 'one')).toEqual(known);
    expect(await (await reopen()).account()).toEqual(known);
  });

  it('a budget is shared by all accounts, separate for each name, and kept across a restart', async () => {
    const { store, reopen } = await begin();
    const rules = { max: 2, windowMs: 1000 };
    expect(await store.takeFromBudget('orders', rules, NOW, 'one')).toEqual({ kind: 'taken' });
    expect(await store.takeFromBudget('orders', rules, NOW + 1, 'two')).toEqual({ kind: 'taken' });
    const again = await reopen();
    const empty = { kind: 'empty', until: NOW + 1000, isWhole: true };
    expect(await again.takeFromBudget('orders', rules, NOW + 2, 'three')).toEqual(empty);
    expect(await again.takeFromBudget('names', rules, NOW + 2, 'three')).toEqual({ kind: 'taken' });
    // The operator's names do not count toward the budget.
    expect(await again.takeFromBudget('orders', rules, NOW + 3, null)).toEqual({ kind: 'taken' });
    expect(await again.takeFromBudget('orders', rules, NOW + 1000, 'three')).toEqual({ kind: 'taken' });
  });

  it('a single account takes no more of a budget than its part', async () => {
    const { store, reopen } = await begin();
    const rules = { max: 4, windowMs: 1000, perAccount: 1 };
    expect(await store.takeFromBudget('orders', rules, NOW, 'greedy')).toEqual({ kind: 'taken' });
    const again = await reopen();
    const empty = { kind: 'empty', until: NOW + 1000, isWhole: false };
    expect(await again.takeFromBudget('orders', rules, NOW + 1, 'greedy')).toEqual(empty);
    expect(await again.takeFromBudget('orders', rules, NOW + 1, 'modest')).toEqual({ kind: 'taken' });
  });

  it('the owner of names is kept across a restart', async () => {
    const { store, reopen } = await begin();
    const { id, accountId } = await store.want(['a.example'], ACCOUNT);
    expect(accountId).toBe(ACCOUNT);
    expect((await (await reopen()).get(id))?.accountId).toBe(ACCOUNT);
  });

  it('challenge answers are found by token or name until they are cleared or expire', async () => {
    const { store } = await begin();
    const http = { type: 'http-01', name: 'a.example', token: 'token-1', keyAuthorization: 'token-1.x' } as const;
    const tls = { type: 'tls-alpn-01', name: 'a.example', token: 'token-2', keyAuthorization: 'token-2.x' } as const;
    await store.setChallenge(http, NOW + 1000);
    await store.setChallenge(tls, NOW + 1000);
    expect(await store.findChallenge({ token: 'token-1' }, NOW)).toEqual(http);
    expect(await store.findChallenge({ tlsName: 'a.example' }, NOW)).toEqual(tls);
    expect(await store.findChallenge({ token: 'token-2' }, NOW)).toBeNull();
    // A challenge can also be found by the name that is validated.
    expect(await store.findChallenge({ name: 'b.example' }, NOW)).toBeNull();
    expect([http, tls]).toContainEqual(await store.findChallenge({ name: 'a.example' }, NOW));
    expect(await store.findChallenge({ name: 'a.example' }, NOW + 1000)).toBeNull();
    expect(await store.findChallenge({ token: 'token-1' }, NOW + 1000)).toBeNull();
    await store.clearChallenge({ ...tls, token: 'of another order' });
    expect(await store.findChallenge({ tlsName: 'a.example' }, NOW)).toEqual(tls);
    await store.clearChallenge(tls);
    expect(await store.findChallenge({ tlsName: 'a.example' }, NOW)).toBeNull();
  });
};
