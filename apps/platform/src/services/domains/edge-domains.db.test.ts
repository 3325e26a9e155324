// Own domains as edges see them: the snapshot, the changes, tunnels opened on them, and the deletion of an account.

import type { EdgeChange, JournalRecord, NameSnapshotLine } from '@tunnel/contract';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { bearer, createLinkServer, HeardChanges, type LinkServer } from '../../http/routes/edges/edge-link.fixture.ts';
import { deleteAccount } from '../accounts/delete-account.ts';
import {
  type Account,
  addAccount,
  addEdge,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  OPERATOR,
  openedOf,
  questionOf,
  tunnelCountOf,
} from '../edges/link.fixture.ts';
import { closedAt, tell } from '../names/names.fixture.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { createDomains, type DomainsFixture } from './domains.fixture.ts';
import { NAMES_PAGE } from './edge-domains.ts';
import { addDomain, readDomain, removeDomain } from './own-domains.ts';

const SHOP = 'shop.example.com';
const UNVERIFIED = {
  ok: false,
  code: 'TUNNEL_DOMAIN_UNVERIFIED',
  message: `domain '${SHOP}' is not verified for this account`,
};

let fixture: LinkFixture;
let server: LinkServer;
let stop: () => Promise<void>;
let edge: Edge;
let domains: DomainsFixture;
let ann: Account;
let bob: Account;
beforeAll(async () => {
  ({ fixture, server, stop } = await createLinkServer());
  edge = await addEdge(fixture, 'eu');
});
beforeEach(async () => {
  fixture.clock.setWallClock(NOON);
  for (const table of ['own_domains', 'names', 'tunnel_log'] as const) await fixture.db.deleteFrom(table).execute();
  domains = createDomains(fixture);
  [ann, bob] = [await addAccount(fixture.db, 'payg'), await addAccount(fixture.db, 'payg')];
});
afterAll(() => stop());

const userOf = ({ accountId }: Account) => ({ kind: 'user', userId: accountId }) as const;
const add = async (account: Account, name = SHOP) => (await addDomain(domains, userOf(account), { name })).domain;
const check = (name = SHOP): Promise<void> => domains.verifier.check({ name, wildcard: name.startsWith('*.') });
const verify = async (account: Account, name = SHOP) => {
  const domain = await add(account, name);
  domains.dns.point(name, domain.token);
  await check(name);
  return domain;
};
const lapse = async (name = SHOP): Promise<void> => {
  domains.dns.set(name, {});
  await check(name);
  fixture.clock.setWallClock(fixture.clock.now() + 7 * 24 * 3_600_000);
  await check(name);
};
const ask = async (account: Account, domain: string, more = {}) => {
  const question = questionOf(edge, account, { domain, at: fixture.clock.now(), ...more });
  return { answer: await openTunnel(fixture, edge.actor, question), tunnelId: question.tunnel_id };
};
const activeOf = async (account: Account, id: string): Promise<number> =>
  (await readDomain(domains, userOf(account), id)).active_tunnels;
const opened = (account: Account, tunnelId: string, domain: string): JournalRecord =>
  ({ ...openedOf(edge, account, tunnelId, fixture.clock.now()), label: domain, domain }) as JournalRecord;

const snapshot = async (query: string): Promise<NameSnapshotLine[]> => {
  const response = await fetch(`${server.url}/names${query}`, { headers: bearer(edge.credential) });
  expect(response.status).toBe(200);
  const lines = (await response.text()).trimEnd().split('\n');
  return lines.map((line) => JSON.parse(line) as NameSnapshotLine);
};

describe('GET /names?domains=1', () => {
  it('lists verified and lapsed domains, and lists none to an older edge that does not ask', async () => {
    await verify(ann);
    await verify(bob, '*.wild.example.com');
    await add(ann, 'pending.example.com');
    await verify(ann, 'lapsed.example.com');
    await lapse('lapsed.example.com');
    const [at, ...lines] = await snapshot('?domains=1');
    expect(at).toEqual({ at: expect.any(Number) });
    expect(lines).toHaveLength(4);
    expect(lines).toEqual(
      expect.arrayContaining([
        { lapsed_domain: 'lapsed.example.com', account_id: ann.accountId },
        { domain: SHOP, account_id: ann.accountId },
        { domain: '*.wild.example.com', account_id: bob.accountId },
        { end: true },
      ]),
    );
    expect(lines.at(-1)).toEqual({ end: true });
    expect((await snapshot('')).slice(1)).toEqual([{ end: true }]);
  });

  it('lists each domain once across pages', async () => {
    const count = NAMES_PAGE * 2 + 1;
    await sql`
      insert into own_domains (user_id, name, wildcard, token, state, since)
      select ${ann.accountId}, 'd' || n || '.example.com', false, 'x', 'verified', now()
      from generate_series(1, ${count}::int) n
    `.execute(fixture.db);
    const lines = await snapshot('?domains=1');
    expect(new Set(lines.map((line) => JSON.stringify(line))).size).toBe(count + 2);
  });
});

describe('domain changes sent to edges', () => {
  it('name the holder when verified or moved, and keep tunnels on a lapse but not on a removal', async () => {
    const latest = sql<{ id: number }>`select coalesce(max(id), 0) as id from edge_changes`;
    const { rows } = await latest.execute(fixture.db);
    const heard = await HeardChanges.from(server.url, edge.credential, rows[0]?.id ?? 0);
    const told = async (count: number): Promise<EdgeChange | undefined> => (await heard.until(count)).at(-1);
    const change = { kind: 'domain-changed', domain: SHOP };
    try {
      const anns = await verify(ann);
      expect(await told(1)).toMatchObject({ ...change, account_id: ann.accountId, keeps_tunnels: false });
      await verify(bob);
      expect(await told(2)).toMatchObject({ ...change, account_id: bob.accountId, keeps_tunnels: false });
      await lapse();
      expect(await told(3)).toMatchObject({ ...change, account_id: null, keeps_tunnels: true });
      domains.dns.point(SHOP, anns.token);
      await check();
      expect(await told(4)).toMatchObject({ ...change, account_id: ann.accountId });
      await removeDomain(domains, userOf(ann), anns.id);
      expect(await told(5)).toMatchObject({ ...change, account_id: null, keeps_tunnels: false });
    } finally {
      heard.hangUp();
    }
  });
});

describe('a tunnel on an own domain', () => {
  it('is admitted and counted only for the account that verified the domain', async () => {
    const { id } = await verify(ann);
    const { answer, tunnelId } = await ask(ann, SHOP);
    expect(answer).toEqual({ ok: true });
    expect(await entryOf(fixture.db, tunnelId)).toMatchObject({ endpoint: `domain//${SHOP}`, name_id: null });
    expect(await activeOf(ann, id)).toBe(1);
    await tell(fixture, edge, [opened(ann, tunnelId, SHOP)]);
    expect(await entryOf(fixture.db, tunnelId)).toMatchObject({ endpoint: `domain//${SHOP}`, label: SHOP });
    expect(await activeOf(ann, id)).toBe(1);
    expect((await ask(bob, SHOP)).answer).toEqual(UNVERIFIED);
    expect(await tunnelCountOf(fixture.db, bob.keyId)).toBe(0);
    await tell(fixture, edge, [closedAt(fixture, tunnelId)]);
    expect(await activeOf(ann, id)).toBe(0);
    expect(await fixture.db.selectFrom('names').selectAll().execute()).toEqual([]);
  });

  it('needs the exact name: a wildcard does not cover the name, nor the name the wildcard', async () => {
    await verify(ann, '*.shop.example.com');
    expect((await ask(ann, '*.shop.example.com')).answer).toEqual({ ok: true });
    expect((await ask(ann, SHOP)).answer).toEqual(UNVERIFIED);
    expect((await ask(ann, 'a.shop.example.com')).answer).toMatchObject({ code: 'TUNNEL_DOMAIN_UNVERIFIED' });
  });

  it('is refused while the domain is pending, lapsed, moved or removed', async () => {
    await add(ann);
    expect((await ask(ann, SHOP)).answer).toEqual(UNVERIFIED);
    const { id } = await verify(ann);
    await lapse();
    expect((await ask(ann, SHOP)).answer).toEqual(UNVERIFIED);
    await verify(bob);
    expect((await ask(ann, SHOP)).answer).toEqual(UNVERIFIED);
    expect((await ask(bob, SHOP)).answer).toEqual({ ok: true });
    await removeDomain(domains, userOf(ann), id);
    expect((await ask(ann, SHOP)).answer).toEqual(UNVERIFIED);
  });

  it('can resume on a lapsed domain, but not on a moved or removed domain', async () => {
    const { id } = await verify(ann);
    const { tunnelId } = await ask(ann, SHOP);
    const back = async () => (await ask(ann, SHOP, { tunnel_id: tunnelId })).answer;
    await lapse();
    expect(await back()).toEqual({ ok: true });
    await verify(bob);
    expect(await back()).toEqual(UNVERIFIED);
    await removeDomain(domains, userOf(ann), id);
    expect(await back()).toEqual(UNVERIFIED);
  });

  it('is counted even if opened while the platform was unavailable', async () => {
    const { id } = await verify(ann);
    await tell(fixture, edge, [opened(ann, 'tun_away', SHOP)]);
    expect(await activeOf(ann, id)).toBe(1);
  });

  it('is refused or logged before the announcement if the domain is removed at the same moment', async () => {
    for (let round = 0; round < 8; round += 1) {
      const { id } = await verify(ann);
      const [{ answer, tunnelId }] = await Promise.all([ask(ann, SHOP), removeDomain(domains, userOf(ann), id)]);
      if (answer.ok) expect(await entryOf(fixture.db, tunnelId)).toBeDefined();
      else expect(answer).toEqual(UNVERIFIED);
    }
  });
});

describe('a deleted account', () => {
  it('loses its domains with a notice to edges, and other accounts can verify the domains', async () => {
    await verify(ann);
    await add(ann, 'pending.example.com');
    const bobs = await add(bob);
    await deleteAccount(fixture, { userId: ann.accountId, actor: OPERATOR });
    expect(await fixture.db.selectFrom('own_domains').select('user_id').execute()).toEqual([
      { user_id: bob.accountId },
    ]);
    const last = fixture.db.selectFrom('edge_changes').selectAll().orderBy('id', 'desc');
    expect(await last.executeTakeFirst()).toMatchObject({ kind: 'domain-changed', domain: SHOP, keeps_tunnels: false });
    domains.dns.point(SHOP, bobs.token);
    await check();
    expect((await readDomain(domains, userOf(bob), bobs.id)).state).toBe('verified');
  });
});
