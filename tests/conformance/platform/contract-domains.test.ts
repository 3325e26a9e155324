// Contract rows about custom domains.
import { type OwnDomainView, ownDomain, ownDomains } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Answer, refusalOf } from './api-request.fixture.ts';
import { onSharedPlatform, PATIENCE_MS, PAYG_LIMIT, type Person, PlatformHarness } from './platform-harness.fixture.ts';
import { row } from './rows.fixture.ts';

const LIMIT = PAYG_LIMIT;
const NOWHERE = '00000000-0000-4000-8000-000000000000';

const harness = onSharedPlatform(new PlatformHarness());
let ann: Person;
let bob: Person;
beforeAll(async () => {
  [ann, bob] = [await harness.person(), await harness.person()];
  await harness.db.updateTable('users').set({ plan: 'payg' }).where('id', 'in', [ann.id, bob.id]).execute();
});

const ask = (who: Person, body: object): Promise<Answer> => harness.post('/domains', body, who.token);
const add = async (who: Person, name: string, status = 201): Promise<OwnDomainView> => {
  const answer = await ask(who, { name });
  expect([answer.status, answer.error]).toEqual([status, '']);
  return ownDomain.parse(answer.body);
};
const listOf = async (who: Person): Promise<OwnDomainView[]> =>
  ownDomains.parse((await harness.get('/domains', who.token)).body);
const read = async (who: Person, id: string): Promise<OwnDomainView> =>
  ownDomain.parse((await harness.get(`/domains/${id}`, who.token)).body);
const check = (who: Person, id: string): Promise<Answer> => harness.post(`/domains/${id}/check`, {}, who.token);
const remove = (who: Person, id: string): Promise<Answer> =>
  harness.ask('DELETE', `/domains/${id}`, { token: who.token });
/** Requests a check of the domain as soon as the rate limit allows it. */
const checked = (who: Person, id: string): Promise<OwnDomainView> =>
  eventually(
    async () => {
      const answer = await check(who, id);
      expect([answer.status, answer.error]).toEqual([200, '']);
      return ownDomain.parse(answer.body);
    },
    { timeoutMs: PATIENCE_MS, intervalMs: 250 },
  );
const point = (name: string, { token }: OwnDomainView): void => harness.dns.set(name, 'CNAME', `${token}.localhost`);

describe('Contract', () => {
  it(row('Contract', 53), async () => {
    const first = await add(ann, 'b.listed.test');
    const second = await add(ann, '*.a.listed.test');
    expect((await listOf(ann)).map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(await read(ann, first.id)).toEqual(first);
    expect(first).toMatchObject({ state: 'pending', wildcard: false, certificate: null, active_tunnels: 0 });
    const value = `${first.token}.localhost`;
    expect(first.cname_target).toBe(value);
    expect(first.records).toEqual([{ type: 'CNAME', name: 'b.listed.test', value, purpose: 'proof', found: false }]);
    expect(await listOf(bob)).toEqual([]);
    for (const id of [first.id, NOWHERE, 'x']) {
      expect(refusalOf(await harness.get(`/domains/${id}`, bob.token))).toEqual([404, 'DOMAIN_UNKNOWN']);
    }
    for (const { id } of [first, second]) expect((await remove(ann, id)).status).toBe(204);
  });

  it(row('Contract', 54), async () => {
    const made = await add(ann, 'Shop.Added.test.');
    expect([made.name, made.token]).toEqual(['shop.added.test', expect.stringMatching(/^[a-z2-7]{20}$/)]);
    expect((await add(ann, 'shop.added.test', 200)).id).toBe(made.id);
    const other = await add(bob, 'shop.added.test');
    expect([other.state, other.token === made.token, other.last_error]).toEqual(['pending', false, null]);
    expect((await add(ann, 'bücher.added.test')).name).toBe('xn--bcher-kva.added.test');
    expect((await remove(ann, made.id)).status).toBe(204);
    const again = await add(ann, 'shop.added.test');
    expect([again.token, again.id === made.id]).toEqual([made.token, false]);
    const long = `${Array.from({ length: 4 }, () => 'a'.repeat(61)).join('.')}.abc.de`;
    expect(long).toHaveLength(254);
    const refused = [
      ...['a_b.test', 'a b.test', 'https://a.test', 'a.test:443', '192.0.2.1', '[2001:db8::1]', '0x7f.1', 'one'],
      ...['localhost', 'shop.localhost', '*.localhost', '*', '*.*.a.test', 'a..test', '-a.test', long, ''],
    ];
    for (const name of refused) expect([name, (await ask(ann, { name })).status]).toEqual([name, 400]);
  });

  it(row('Contract', 55), async () => {
    expect((await harness.get('/usage', bob.token)).body).toMatchObject({ domain_limit: LIMIT });
    const has = (await listOf(bob)).length;
    for (let nth = has; nth < LIMIT; nth += 1) await add(bob, `d${nth}.limit.test`);
    const over = await ask(bob, { name: 'last.limit.test' });
    expect([...refusalOf(over), over.error]).toEqual([403, 'DOMAIN_LIMIT', `domain limit of ${LIMIT} reached`]);
    // Adding an existing domain again does not count toward the limit.
    await add(bob, `d${LIMIT - 1}.limit.test`, 200);
    for (const { id } of await listOf(bob)) await remove(bob, id);
  });

  it(row('Contract', 56), async () => {
    const made = await add(ann, 'shop.proof.test');
    harness.dns.set('shop.proof.test', 'A', '127.0.0.1');
    const asked = await check(ann, made.id);
    expect([asked.status, ownDomain.parse(asked.body).state]).toEqual([200, 'pending']);
    const soon = await check(ann, made.id);
    expect([...refusalOf(soon), Number(soon.headers.get('retry-after'))]).toEqual([
      ...[429, 'DOMAIN_CHECK_TOO_SOON'],
      expect.toSatisfy((seconds: number) => seconds >= 1 && seconds <= 5),
    ]);
    harness.dns.remove('shop.proof.test');
    point('shop.proof.test', made);
    expect(await checked(ann, made.id)).toMatchObject({ state: 'verified', records: [{ found: true }] });
    const apex = await add(ann, 'proof.test');
    harness.dns.set('proof.test', 'A', '127.0.0.1');
    harness.dns.set('_tunnel.proof.test', 'TXT', `tunnel-verify=${apex.token}`);
    expect(await checked(ann, apex.id)).toMatchObject({ state: 'verified' });
    // The DNS records exist before the first automatic check.
    const own = await add(ann, 'by-itself.proof.test');
    point('by-itself.proof.test', own);
    const verified = await eventually(
      async () => {
        const now = await read(ann, own.id);
        expect(now.state).toBe('verified');
        return now;
      },
      { timeoutMs: PATIENCE_MS },
    );
    const tookMs = Date.parse(verified.verified_at ?? '') - Date.parse(own.created_at);
    expect(tookMs).toBeLessThan(10_000);
  });

  it(row('Contract', 57), async () => {
    const anns = await add(ann, 'shop.moves.test');
    point('shop.moves.test', anns);
    expect((await checked(ann, anns.id)).state).toBe('verified');
    const bobs = await add(bob, 'shop.moves.test');
    harness.dns.set('_tunnel.shop.moves.test', 'TXT', `tunnel-verify=${bobs.token}`);
    expect((await checked(bob, bobs.id)).state).toBe('pending');
    expect((await read(ann, anns.id)).state).toBe('verified');
    harness.dns.remove('shop.moves.test');
    expect((await checked(bob, bobs.id)).state).toBe('verified');
    expect((await read(ann, anns.id)).state).toBe('lapsed');
    await eventually(
      async () => {
        const subjects = (await harness.mails(ann.email)).map(({ subject }) => subject);
        expect(subjects.at(-1)).toBe('shop.moves.test has moved to another account');
      },
      { timeoutMs: PATIENCE_MS },
    );
    const audits = harness.db.selectFrom('audit_log').select('action').where('action', 'like', 'domain.%');
    const actions = (await audits.where('user_id', 'in', [ann.id, bob.id]).execute()).map(({ action }) => action);
    expect(new Set(actions)).toEqual(new Set(['domain.added', 'domain.verified', 'domain.moved', 'domain.removed']));
  });

  it(row('Contract', 58), async () => {
    const made = await add(ann, 'shop.removed.test');
    for (const id of [made.id, NOWHERE]) {
      expect(refusalOf(await remove(bob, id))).toEqual([404, 'DOMAIN_UNKNOWN']);
    }
    expect((await remove(ann, made.id)).status).toBe(204);
    expect(refusalOf(await remove(ann, made.id))).toEqual([404, 'DOMAIN_UNKNOWN']);
    expect(refusalOf(await check(ann, made.id))).toEqual([404, 'DOMAIN_UNKNOWN']);
  });
});
