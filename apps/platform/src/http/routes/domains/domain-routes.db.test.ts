import { type OwnDomainView, ownDomain, ownDomains } from '@tunnel/contract';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createDomains, type DomainsFixture, found, SERVER_DOMAIN } from '../../../services/domains/domains.fixture.ts';
import type { UserActor } from '../../../services/shared/service-context.ts';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addDomainRoutes } from './domain-routes.ts';

const NOON = Date.UTC(2030, 5, 15, 12);

let fixture: PlatformFixture;
let domains: DomainsFixture;
beforeAll(async () => {
  fixture = await openPlatformFixture((app, deps) => {
    domains = createDomains({ ...deps, clock: deps.clock as never });
    addDomainRoutes(app, { ...domains, requireUser: deps.requireUser });
  });
});
beforeEach(async () => {
  fixture.clock.setWallClock(NOON);
  const { db } = fixture.database;
  await db.deleteFrom('own_domains').execute();
  await db.deleteFrom('edge_changes').execute();
  await db.deleteFrom('tunnel_log').execute();
  await db.updateTable('plans').set({ domain_limit: 3 }).execute();
});
afterAll(() => fixture.close());

const post = async (user: UserActor, body: unknown): Promise<[number, OwnDomainView]> => {
  const answer = await fixture.ask(user, 'POST', '/domains', body);
  return [answer.status, (await answer.json()) as OwnDomainView];
};
const add = async (user: UserActor, name: string, more: object = {}): Promise<OwnDomainView> => {
  const [status, made] = await post(user, { name, ...more });
  expect([status, made]).toEqual([201, ownDomain.parse(made)]);
  return made;
};
const read = async (user: UserActor, id: string): Promise<OwnDomainView> => {
  const answer = await fixture.ask(user, 'GET', `/domains/${id}`);
  expect(answer.status).toBe(200);
  return ownDomain.parse(await answer.json());
};
const list = async (user: UserActor): Promise<OwnDomainView[]> =>
  ownDomains.parse(await (await fixture.ask(user, 'GET', '/domains')).json());
const check = (user: UserActor, id: string): Promise<Response> => fixture.ask(user, 'POST', `/domains/${id}/check`);
const remove = async (user: UserActor, id: string): Promise<number> =>
  (await fixture.ask(user, 'DELETE', `/domains/${id}`)).status;
const audits = async (): Promise<unknown[]> => {
  const query = fixture.database.db.selectFrom('audit_log').select(['actor', 'action', 'user_id', 'details']);
  return query.orderBy('id').execute();
};

describe('POST /domains', () => {
  it('adds a pending domain with its DNS record and an audit entry; a repeated call returns the same domain', async () => {
    const made = await add(fixture.alice, 'Shop.Example.COM.');
    expect(made).toEqual({
      id: made.id,
      name: 'shop.example.com',
      wildcard: false,
      state: 'pending',
      token: made.token,
      cname_target: `${made.token}.${SERVER_DOMAIN}`,
      records: [
        {
          type: 'CNAME',
          name: 'shop.example.com',
          value: `${made.token}.${SERVER_DOMAIN}`,
          purpose: 'proof',
          found: false,
        },
      ],
      certificate: null,
      active_tunnels: 0,
      created_at: '2030-06-15T12:00:00.000Z',
      verified_at: null,
      checked_at: null,
      last_error: null,
    });
    expect(made.token).toMatch(/^[a-z2-7]{20}$/);
    expect(await post(fixture.alice, { name: 'shop.example.com' })).toEqual([200, made]);
    expect(await list(fixture.alice)).toEqual([made]);
    expect(await read(fixture.alice, made.id)).toEqual(made);
    expect((await audits()).at(-1)).toEqual({
      actor: `user:${fixture.alice.userId}`,
      action: 'domain.added',
      user_id: fixture.alice.userId,
      details: { domain_id: made.id, name: 'shop.example.com' },
    });
    expect(await fixture.database.db.selectFrom('edge_changes').selectAll().execute()).toEqual([]);
  });

  it('gives an account the same token for a domain each time, and different accounts different tokens', async () => {
    const first = await add(fixture.alice, 'shop.example.com');
    const other = await add(fixture.alice, 'other.example.com');
    const bobs = await add(fixture.bob, 'shop.example.com');
    expect(new Set([first.token, other.token, bobs.token]).size).toBe(3);
    expect(await remove(fixture.alice, first.id)).toBe(204);
    const again = await add(fixture.alice, 'SHOP.example.com');
    expect([again.token, again.id === first.id]).toEqual([first.token, false]);
  });

  it('does not reveal that another account has the domain, verified or not', async () => {
    const alices = await add(fixture.alice, 'shop.example.com');
    domains.dns.point('shop.example.com', alices.token);
    expect((await check(fixture.alice, alices.id)).status).toBe(200);
    const bobs = await add(fixture.bob, 'shop.example.com');
    expect([bobs.state, bobs.last_error, bobs.checked_at]).toEqual(['pending', null, null]);
    expect(await list(fixture.bob)).toEqual([bobs]);
  });

  it('returns address and TXT records for a domain that is probably the apex of its zone', async () => {
    const made = await add(fixture.alice, 'example.com');
    expect(made.records).toEqual([
      { type: 'A', name: 'example.com', value: '192.0.2.1', purpose: 'route', found: false },
      {
        type: 'TXT',
        name: '_tunnel.example.com',
        value: `tunnel-verify=${made.token}`,
        purpose: 'proof',
        found: false,
      },
    ]);
  });

  it.each([
    ['one label', 'shop', /a domain needs at least two labels/],
    ['the server’s own domain', SERVER_DOMAIN, /names of tunnels.test belong to this server/],
    ['the platform’s host', 'console.test', /names of console.test belong to this server/],
  ])('rejects %s', async (_, name, text) => {
    const [status, refused] = await post(fixture.alice, { name });
    expect([status, refused]).toMatchObject([400, { code: 'DOMAIN_INVALID', error: expect.stringMatching(text) }]);
    expect(await list(fixture.alice)).toEqual([]);
  });

  it.each([[{}], [{ name: 7 }], [{ name: '' }], [{ name: 'x'.repeat(301) }], [{ name: 'a.test', certificate: 'no' }]])(
    'rejects the body %j',
    async (body) => {
      expect((await post(fixture.alice, body))[0]).toBe(400);
    },
  );

  it("enforces the plan's limit even for concurrent calls; existing domains stay and can be added again", async () => {
    const names = Array.from({ length: 8 }, (_, nth) => `d${nth}.example.com`);
    const answers = await Promise.all(names.map((name) => post(fixture.alice, { name })));
    expect(answers.filter(([status]) => status === 201)).toHaveLength(3);
    const refused = answers.filter(([status]) => status !== 201);
    for (const answer of refused) {
      expect(answer).toMatchObject([403, { code: 'DOMAIN_LIMIT', error: 'domain limit of 3 reached' }]);
    }
    await fixture.database.db.updateTable('plans').set({ domain_limit: 1 }).execute();
    const [kept] = await list(fixture.alice);
    expect((await post(fixture.alice, { name: kept?.name }))[0]).toBe(200);
    expect(await list(fixture.alice)).toHaveLength(3);
    await add(fixture.bob, 'd0.example.com');
    await fixture.database.db.updateTable('plans').set({ domain_limit: null }).execute();
    await add(fixture.alice, 'one-more.example.com');
  });

  it('creates one domain for concurrent calls with the same name', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => post(fixture.alice, { name: 'shop.example.com' })),
    );
    expect(answers.filter(([status]) => status === 201)).toHaveLength(1);
    expect(answers.filter(([status]) => status === 200)).toHaveLength(7);
    expect(new Set(answers.map(([, { id }]) => id)).size).toBe(1);
  });

  it('stores the latest certificate setting, and keeps the setting if a call omits it', async () => {
    const made = await add(fixture.alice, 'shop.example.com', { certificate: false });
    const wants = async () => {
      const query = fixture.database.db.selectFrom('own_domains').select('wants_certificate').where('id', '=', made.id);
      return (await query.executeTakeFirstOrThrow()).wants_certificate;
    };
    expect(await wants()).toBe(false);
    domains.news.length = 0;
    await post(fixture.alice, { name: 'shop.example.com' });
    expect([await wants(), domains.news]).toEqual([false, []]);
    await post(fixture.alice, { name: 'shop.example.com', certificate: true });
    expect([await wants(), domains.news]).toEqual([true, [{ certificates: true, mails: false }]]);
  });
});

describe('domain routes', () => {
  it('return 401 without sign-in', async () => {
    for (const [method, path] of [
      ['GET', '/domains'],
      ['POST', '/domains'],
      ['GET', '/domains/x'],
      ['POST', '/domains/x/check'],
      ['DELETE', '/domains/x'],
    ] as const) {
      expect((await fixture.ask(null, method, path)).status).toBe(401);
    }
  });

  it.each([
    ['GET', ''],
    ['POST', '/check'],
    ['DELETE', ''],
  ])('return 404 to a %s on a foreign or unknown domain', async (method, path) => {
    const { id } = await add(fixture.alice, 'shop.example.com');
    for (const wrong of [id, '00000000-0000-4000-8000-000000000000', 'shop.example.com', "'"]) {
      const answer = await fixture.ask(fixture.bob, method, `/domains/${encodeURIComponent(wrong)}${path}`);
      expect([answer.status, await answer.json()]).toMatchObject([404, { code: 'DOMAIN_UNKNOWN' }]);
    }
    expect(await list(fixture.alice)).toHaveLength(1);
  });
});

describe('POST /domains/{id}/check', () => {
  it('looks up DNS immediately and responds with the result', async () => {
    const made = await add(fixture.alice, 'shop.example.com');
    domains.dns.set('shop.example.com', { addresses: found('192.0.2.1') });
    const first = await check(fixture.alice, made.id);
    expect([first.status, ownDomain.parse(await first.json())]).toMatchObject([
      200,
      { state: 'pending', checked_at: '2030-06-15T12:00:00.000Z', last_error: 'no record with the token was found' },
    ]);
    fixture.clock.setWallClock(NOON + 5000);
    domains.dns.point('shop.example.com', made.token);
    const second = ownDomain.parse(await (await check(fixture.alice, made.id)).json());
    expect(second).toMatchObject({
      state: 'verified',
      verified_at: '2030-06-15T12:00:05.000Z',
      last_error: null,
      records: [{ found: true }],
    });
    expect((await audits()).at(-1)).toMatchObject({
      actor: 'system',
      action: 'domain.verified',
      user_id: fixture.alice.userId,
      details: { domain_id: made.id, name: 'shop.example.com' },
    });
  });

  it('returns 429 within 5 s of the last check, with the seconds to wait', async () => {
    const { id } = await add(fixture.alice, 'shop.example.com');
    expect((await check(fixture.alice, id)).status).toBe(200);
    fixture.clock.setWallClock(NOON + 1500);
    const refused = await check(fixture.alice, id);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '4']);
    expect(await refused.json()).toMatchObject({ code: 'DOMAIN_CHECK_TOO_SOON' });
    fixture.clock.setWallClock(NOON + 4999);
    expect((await check(fixture.alice, id)).headers.get('retry-after')).toBe('1');
    fixture.clock.setWallClock(NOON + 5000);
    expect((await check(fixture.alice, id)).status).toBe(200);
  });

  it('makes one DNS lookup for concurrent calls', async () => {
    const { id } = await add(fixture.alice, 'many.example.com');
    const release = domains.dns.hold('many.example.com');
    const answers = Array.from({ length: 5 }, () => check(fixture.alice, id));
    await expect.poll(() => domains.dns.asked.filter((name) => name === 'many.example.com').length).toBe(1);
    release();
    for (const answer of await Promise.all(answers)) expect([200, 429]).toContain(answer.status);
    expect(domains.dns.asked.filter((name) => name === 'many.example.com')).toHaveLength(1);
  });
});

describe('DELETE /domains/{id}', () => {
  it('deletes the domain, writes an audit entry, and notifies edges to close its tunnels', async () => {
    const made = await add(fixture.alice, 'shop.example.com');
    domains.dns.point('shop.example.com', made.token);
    await check(fixture.alice, made.id);
    await fixture.database.db.deleteFrom('edge_changes').execute();
    domains.news.length = 0;
    expect(await remove(fixture.alice, made.id)).toBe(204);
    expect(await remove(fixture.alice, made.id)).toBe(404);
    expect(await list(fixture.alice)).toEqual([]);
    expect(await fixture.database.db.selectFrom('edge_changes').selectAll().execute()).toMatchObject([
      { kind: 'domain-changed', domain: 'shop.example.com', keeps_tunnels: false },
    ]);
    expect(domains.news).toEqual([{ certificates: true, mails: false }]);
    expect((await audits()).at(-1)).toMatchObject({
      actor: `user:${fixture.alice.userId}`,
      action: 'domain.removed',
    });
  });

  it('does not notify edges about a domain that was never verified', async () => {
    const { id } = await add(fixture.alice, 'shop.example.com');
    expect(await remove(fixture.alice, id)).toBe(204);
    expect(await fixture.database.db.selectFrom('edge_changes').selectAll().execute()).toEqual([]);
  });
});
