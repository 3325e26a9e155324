// States of domains over successive checks: verified, missing, lapsed, moved; and checks by several processes.

import { createLogger } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { PATIENCE_MS } from '../../db/test-database.fixture.ts';
import { LIMITS } from '../../limits.ts';
import { addAccount, createLinkFixture, type LinkFixture, NOON } from '../edges/link.fixture.ts';
import type { UserActor } from '../shared/service-context.ts';
import { DOMAIN_CHECKS_AT_ONCE, DOMAIN_CHECKS_PER_ACCOUNT } from './domain-verifier.ts';
import { createDomains, type DomainsFixture, found } from './domains.fixture.ts';
import { addDomain, checkDomain, readDomain, removeDomain } from './own-domains.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const SHOP = 'shop.example.com';

let fixture: LinkFixture;
let domains: DomainsFixture;
let ann: UserActor;
let bob: UserActor;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
beforeEach(async () => {
  fixture.clock.setWallClock(NOON);
  for (const table of ['own_domains', 'edge_changes', 'mail_outbox'] as const) {
    await fixture.db.deleteFrom(table).execute();
  }
  domains = createDomains(fixture);
  [ann, bob] = [await person(), await person()];
});
afterAll(() => fixture.close());

const person = async (): Promise<UserActor> => ({
  kind: 'user',
  userId: (await addAccount(fixture.db, 'payg')).accountId,
});
const later = (ms: number): void => fixture.clock.setWallClock(NOON + ms);
const add = async (who: UserActor, name = SHOP) => (await addDomain(domains, who, { name })).domain;
const check = (name = SHOP): Promise<void> => domains.verifier.check({ name, wildcard: name.startsWith('*.') });
const stateOf = async (who: UserActor, id: string): Promise<string> => (await readDomain(domains, who, id)).state;
/** Returns the changes announced to edges, in order. */
const changes = async () =>
  (await fixture.db.selectFrom('edge_changes').select(['domain', 'keeps_tunnels']).orderBy('id').execute()).map(
    ({ domain, keeps_tunnels }) => [domain, keeps_tunnels],
  );
const mailsTo = async ({ userId }: UserActor): Promise<string[]> => {
  const query = fixture.db.selectFrom('mail_outbox').select('subject').where('user_id', '=', userId);
  return (await query.orderBy('created_at').execute()).map(({ subject }) => subject);
};
const auditsOf = async ({ userId }: UserActor): Promise<string[]> => {
  const query = fixture.db.selectFrom('audit_log').select('action').where('user_id', '=', userId).orderBy('id');
  return (await query.execute()).map(({ action }) => action);
};
const dueAt = async (id: string): Promise<number | null> => {
  const query = fixture.db.selectFrom('own_domains').select('next_look_at').where('id', '=', id);
  const { next_look_at } = await query.executeTakeFirstOrThrow();
  return next_look_at === null ? null : next_look_at.getTime() - NOON;
};

describe('an added domain', () => {
  it('is checked after 5 s, 15 s, 30 s and then every minute, by any process', async () => {
    const { id } = await add(ann);
    for (const [at, next] of [
      [5000, 15_000],
      [15_000, 30_000],
      [30_000, 90_000],
    ] as const) {
      later(at - 1);
      await domains.verifier.beginDue();
      later(at);
      await domains.verifier.beginDue();
      await eventually(async () => expect(await dueAt(id)).toBe(next));
    }
    expect(domains.dns.asked).toEqual([SHOP, SHOP, SHOP]);
  });

  it('is verified by the first check that finds its record, with notices to edges, certificates and audit log', async () => {
    const { id, token } = await add(ann);
    domains.dns.point(SHOP, token);
    later(5000);
    await check();
    expect(await readDomain(domains, ann, id)).toMatchObject({
      state: 'verified',
      verified_at: new Date(NOON + 5000).toISOString(),
      last_error: null,
      records: [{ found: true }],
    });
    expect(await changes()).toEqual([[SHOP, true]]);
    expect(domains.news).toEqual([{ certificates: true, mails: false }]);
    expect(await auditsOf(ann)).toEqual(['domain.added', 'domain.verified']);
    expect(await dueAt(id)).toBe(5000 + DAY_MS);
  });

  it("is not verified by the edge's address or by another account's token", async () => {
    const { id } = await add(ann);
    const { token: bobs } = await add(bob, 'other.example.com');
    domains.dns.set(SHOP, { addresses: found('192.0.2.1') });
    await check();
    expect(await readDomain(domains, ann, id)).toMatchObject({ state: 'pending', records: [{ found: false }] });
    domains.dns.point(SHOP, bobs);
    await check();
    expect(await stateOf(ann, id)).toBe('pending');
    expect(await changes()).toEqual([]);
  });

  it('fails after three days without a record, and starts again on request', async () => {
    const { id, token } = await add(ann);
    later(3 * DAY_MS);
    await check();
    expect([await stateOf(ann, id), await dueAt(id)]).toEqual(['failed', null]);
    later(9 * DAY_MS);
    await domains.verifier.beginDue();
    expect((await checkDomain(domains, ann, id)).state).toBe('pending');
    expect(await dueAt(id)).toBe(9 * DAY_MS + 5000);
    domains.dns.point(SHOP, token);
    later(9 * DAY_MS + 5000);
    await check();
    expect(await stateOf(ann, id)).toBe('verified');
  });
});

describe('a verified domain', () => {
  it('lapses after seven days without its record, with a mail at start and end, and can return', async () => {
    const { id, token } = await add(ann);
    domains.dns.point(SHOP, token);
    await check();
    domains.dns.set(SHOP, {});
    for (let day = 1; day <= 7; day += 1) {
      later(day * DAY_MS);
      await check();
      expect(await stateOf(ann, id)).toBe('verified');
    }
    expect(await mailsTo(ann)).toEqual([`The DNS record for ${SHOP} is missing`]);
    later(8 * DAY_MS);
    await check();
    expect(await stateOf(ann, id)).toBe('lapsed');
    expect(await mailsTo(ann)).toEqual([`The DNS record for ${SHOP} is missing`, `${SHOP} has lapsed`]);
    expect(await changes()).toEqual([
      [SHOP, true],
      [SHOP, true],
    ]);
    expect(domains.news.at(-1)).toEqual({ certificates: true, mails: true });
    domains.dns.point(SHOP, token);
    later(9 * DAY_MS);
    await check();
    expect(await stateOf(ann, id)).toBe('verified');
    expect(await auditsOf(ann)).toEqual(['domain.added', 'domain.verified', 'domain.lapsed', 'domain.verified']);
  });

  it('keeps its state while the resolver fails, for 30 days', async () => {
    const { id, token } = await add(ann);
    domains.dns.point(SHOP, token);
    await check();
    const { records } = await readDomain(domains, ann, id);
    domains.dns.fail(SHOP);
    for (let day = 1; day <= 30; day += 1) {
      later(day * DAY_MS);
      await check();
    }
    expect(await readDomain(domains, ann, id)).toMatchObject({
      state: 'verified',
      records,
      last_error: 'DNS gave no answer: ESERVFAIL',
    });
    expect([await mailsTo(ann), await changes()]).toEqual([[], [[SHOP, true]]]);
  });

  it('causes at most one mail a day, however often its record changes', async () => {
    const { token } = await add(ann);
    for (let hour = 0; hour < 48; hour += 1) {
      later(hour * 3_600_000);
      if (hour % 2 === 0) domains.dns.point(SHOP, token);
      else domains.dns.set(SHOP, {});
      await check();
    }
    expect(await mailsTo(ann)).toHaveLength(2);
  });
});

describe('a domain of two accounts', () => {
  it('moves to the account with the only token in DNS, and is verified for one account at a time', async () => {
    const anns = await add(ann);
    const bobs = await add(bob);
    domains.dns.point(SHOP, anns.token);
    await check();
    for (const [nth, [to, from]] of [
      [bobs, anns],
      [anns, bobs],
      [bobs, anns],
    ].entries()) {
      later((nth + 1) * 2 * DAY_MS);
      domains.dns.point(SHOP, to?.token ?? '');
      await check();
      const states = new Map([
        [anns.id, await stateOf(ann, anns.id)],
        [bobs.id, await stateOf(bob, bobs.id)],
      ]);
      expect([states.get(to?.id ?? ''), states.get(from?.id ?? '')]).toEqual(['verified', 'lapsed']);
    }
    expect((await changes()).map(([, keeps]) => keeps)).toEqual([true, false, false, false]);
    const moved = `${SHOP} has moved to another account`;
    expect([await mailsTo(ann), await mailsTo(bob)]).toEqual([[moved, moved], [moved]]);
    const audits = fixture.db.selectFrom('audit_log').selectAll().where('action', '=', 'domain.moved');
    expect(await audits.where('user_id', '=', bob.userId).execute()).toMatchObject([
      { actor: 'system', details: { domain_id: bobs.id, name: SHOP, to_domain_id: anns.id, to_user_id: ann.userId } },
    ]);
  });

  it('stays with its holder while its token exists or DNS gives no answer', async () => {
    const anns = await add(ann);
    const bobs = await add(bob);
    domains.dns.point(SHOP, anns.token);
    await check();
    domains.dns.set(SHOP, {
      texts: found(`tunnel-verify=${bobs.token}`, `tunnel-verify=${anns.token}`),
    });
    await check();
    expect([await stateOf(ann, anns.id), await stateOf(bob, bobs.id)]).toEqual(['verified', 'pending']);
    domains.dns.set(SHOP, {
      chain: { kind: 'no-answer', reason: 'ETIMEOUT' },
      texts: found(`tunnel-verify=${bobs.token}`),
    });
    await check();
    expect([await stateOf(ann, anns.id), await stateOf(bob, bobs.id)]).toEqual(['verified', 'pending']);
  });

  it('with two tokens in DNS belongs to the first account, and to the second account after a removal by the first', async () => {
    const anns = await add(ann);
    later(1);
    const bobs = await add(bob);
    domains.dns.set(SHOP, { texts: found(`tunnel-verify=${anns.token}`, `tunnel-verify=${bobs.token}`) });
    await check();
    await removeDomain(domains, ann, anns.id);
    await check();
    expect(await stateOf(bob, bobs.id)).toBe('verified');
    expect((await changes()).map(([, keeps]) => keeps)).toEqual([true, false, true]);
  });

  it("is checked per account: one account's check neither updates nor delays the other account", async () => {
    const anns = await add(ann);
    const bobs = await add(bob);
    const before = await readDomain(domains, ann, anns.id);
    later(1000);
    await checkDomain(domains, bob, bobs.id);
    expect((await readDomain(domains, bob, bobs.id)).checked_at).not.toBeNull();
    expect(await readDomain(domains, ann, anns.id)).toEqual(before);
    expect((await checkDomain(domains, ann, anns.id)).checked_at).not.toBeNull();
    // A scheduled check also affects only its own account.
    await fixture.db
      .updateTable('own_domains')
      .set({ next_look_at: new Date(NOON) })
      .where('id', '=', bobs.id)
      .execute();
    later(60_000);
    const { checked_at } = await readDomain(domains, ann, anns.id);
    await fixture.db.updateTable('own_domains').set({ next_look_at: null }).where('id', '=', anns.id).execute();
    await domains.verifier.beginDue();
    await eventually(async () =>
      expect((await readDomain(domains, bob, bobs.id)).checked_at).toBe(new Date(NOON + 60_000).toISOString()),
    );
    expect((await readDomain(domains, ann, anns.id)).checked_at).toBe(checked_at);
  });

  it('is not moved back by an older DNS answer that arrives late', async () => {
    const anns = await add(ann);
    const bobs = await add(bob);
    const slow = createDomains(fixture, {}, domains.dns);
    domains.dns.point(SHOP, anns.token);
    await check();
    later(1000);
    const release = domains.dns.hold(SHOP);
    const older = slow.verifier.check({ name: SHOP, wildcard: false });
    await eventually(() => expect(domains.dns.asked).toHaveLength(2));
    domains.dns.point(SHOP, bobs.token);
    later(2000);
    await check();
    release();
    await older;
    expect([await stateOf(ann, anns.id), await stateOf(bob, bobs.id)]).toEqual(['lapsed', 'verified']);
  });

  it('is verified for at most one account under concurrent checks, removals and additions', async () => {
    const people = await Promise.all(Array.from({ length: 6 }, person));
    const others = createDomains(fixture, {}, domains.dns);
    for (let round = 0; round < 4; round += 1) {
      await Promise.all(
        people.map(async (who, nth) => {
          const process = nth % 2 === 0 ? domains : others;
          const { domain } = await addDomain(process, who, { name: SHOP });
          if (nth === round) domains.dns.point(SHOP, domain.token);
          await process.verifier.check({ name: SHOP, wildcard: false });
          if (nth === (round + 3) % 6) await removeDomain(process, who, domain.id);
        }),
      );
      const verified = fixture.db.selectFrom('own_domains').select('id').where('state', '=', 'verified');
      expect((await verified.execute()).length).toBeLessThanOrEqual(1);
    }
  });
});

describe('several platform processes', () => {
  it('check each due domain once', async () => {
    const logger = createLogger({ format: 'json', level: 'silent' });
    const database = new Database({ url: fixture.database.url, logger, connections: 10, timeoutMs: PATIENCE_MS });
    try {
      const other = createDomains({ ...fixture, db: database.db }, {}, domains.dns);
      const names = Array.from({ length: 40 }, (_, nth) => `d${nth}.example.com`);
      const owners = await Promise.all(names.map(person));
      for (const [nth, name] of names.entries()) await add(owners[nth] as UserActor, name);
      later(5000);
      await Promise.all([domains, other].flatMap(({ verifier }) => [verifier.beginDue(), verifier.beginDue()]));
      await eventually(async () => {
        const unseen = fixture.db.selectFrom('own_domains').select('id').where('checked_at', 'is', null);
        expect(await unseen.execute()).toEqual([]);
      });
      expect(domains.dns.asked.toSorted()).toEqual(names.toSorted());
    } finally {
      await database.close();
    }
  });

  it('take over a check after its claim has expired', async () => {
    const { id } = await add(ann);
    later(5000);
    const release = domains.dns.hold(SHOP);
    await domains.verifier.beginDue();
    await eventually(() => expect(domains.dns.asked).toEqual([SHOP]));
    const other = createDomains(fixture);
    later(5000 + LIMITS.DOMAIN_CLAIM_MS - 1);
    await other.verifier.beginDue();
    expect(other.dns.asked).toEqual([]);
    later(5000 + LIMITS.DOMAIN_CLAIM_MS);
    await other.verifier.beginDue();
    await eventually(async () => expect((await readDomain(other, ann, id)).checked_at).not.toBeNull());
    release();
  });

  it('run a bounded number of checks, a share per account, so that hanging checks delay no other account', async () => {
    await fixture.db.updateTable('plans').set({ domain_limit: null }).execute();
    const share = DOMAIN_CHECKS_PER_ACCOUNT;
    const hanging = Array.from({ length: 3 * share }, (_, nth) => `hangs${nth}.example.com`);
    const releases = hanging.map((name) => domains.dns.hold(name));
    for (const name of hanging) await add(ann, name);
    const others = await Promise.all(Array.from({ length: 14 }, person));
    const names = others.flatMap((_, nth) => Array.from({ length: share }, (__, at) => `d${nth}-${at}.example.com`));
    for (const [nth, name] of names.entries()) await add(others[Math.floor(nth / share)] as UserActor, name);
    later(5000);
    await domains.verifier.beginDue();
    await eventually(() => expect(domains.dns.asked.length).toBe(DOMAIN_CHECKS_AT_ONCE));
    await eventually(async () => {
      await domains.verifier.beginDue();
      expect(domains.dns.asked).toEqual(expect.arrayContaining(names));
    });
    const asked = (): number => domains.dns.asked.filter((name) => name.startsWith('hangs')).length;
    expect(asked()).toBe(share);
    for (const release of releases) release();
    await eventually(async () => {
      await domains.verifier.beginDue();
      expect(asked()).toBe(hanging.length);
    });
    await domains.verifier.stop();
    expect(domains.dns.isClosed).toBe(true);
  });

  it("refuse manual checks over an account's share, without affecting other accounts", async () => {
    const names = Array.from({ length: DOMAIN_CHECKS_PER_ACCOUNT }, (_, nth) => `hangs${nth}.example.com`);
    const releases = names.map((name) => domains.dns.hold(name));
    const slow = await Promise.all(names.map((name) => add(ann, name)));
    const checks = slow.map(({ id }) => checkDomain(domains, ann, id));
    const { id } = await add(ann);
    await expect(checkDomain(domains, ann, id)).rejects.toMatchObject({ code: 'DOMAIN_CHECKS_AT_ONCE' });
    const bobs = await add(bob, 'other.example.com');
    expect((await checkDomain(domains, bob, bobs.id)).checked_at).not.toBeNull();
    await eventually(() => expect(domains.dns.asked).toEqual(expect.arrayContaining(names)));
    for (const release of releases) release();
    await Promise.all(checks);
    expect((await checkDomain(domains, ann, id)).checked_at).not.toBeNull();
  });

  it('make no DNS query without a due domain, and store no result after stopping', async () => {
    const { id } = await add(ann);
    await domains.verifier.beginDue();
    expect(domains.dns.asked).toEqual([]);
    const release = domains.dns.hold(SHOP);
    const looking = check();
    await eventually(() => expect(domains.dns.asked).toEqual([SHOP]));
    const stopped = domains.verifier.stop();
    release();
    await Promise.all([looking, stopped]);
    expect((await readDomain(domains, ann, id)).checked_at).toBeNull();
  });
});
