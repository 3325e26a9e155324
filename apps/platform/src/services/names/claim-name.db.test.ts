import { RULE_LIMITS } from '@tunnel/rules/limits';
import { createLogger } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { PATIENCE_MS } from '../../db/test-database.fixture.ts';
import { heartbeat } from '../edges/heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  questionOf,
  tunnelCountOf,
} from '../edges/link.fixture.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { checkName } from './edge-names.ts';
import { ask, beginWithNoNames, closedAt, DAY_MS, endpointOf, nameOf, openedAt, tell, use } from './names.fixture.ts';
import { listReservations } from './reservations.ts';

let fixture: LinkFixture;
let eu: Edge;
let us: Edge;
let ann: Account;
let bob: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  [eu, us] = [await addEdge(fixture, 'eu'), await addEdge(fixture, 'us')];
});
beforeEach(async () => {
  [ann, bob] = await beginWithNoNames(fixture);
});
afterAll(() => fixture.close());

const later = (ms: number): void => fixture.clock.setWallClock(NOON + ms);
const IN_USE = { ok: false, code: 'TUNNEL_SUBDOMAIN_IN_USE', message: "subdomain 'shop' is already in use" };
const answerTo = async (account: Account, label: string, more = {}, edge = us) =>
  (await ask(fixture, edge, account, endpointOf(label, more))).answer;

describe('a name chosen by the edge', () => {
  const listed = async () =>
    (await listReservations(fixture, { kind: 'user', userId: ann.accountId } as never)).map(
      ({ label, state, assigned, expires_at, hold_seconds }) => ({ label, state, assigned, expires_at, hold_seconds }),
    );
  const after = (ms: number): string => new Date(NOON + ms).toISOString();

  it('is listed as assigned, held for its hours, and given to its account again', async () => {
    await use(fixture, eu, ann, 'brisk-otter', { asked: false });
    expect(await listed()).toEqual([
      { label: 'brisk-otter', state: 'held', assigned: true, expires_at: after(DAY_MS), hold_seconds: 86_400 },
    ]);
    expect(await answerTo(bob, 'brisk-otter', { asked: false })).toMatchObject({ ok: false });
    expect(await answerTo(ann, 'brisk-otter', { asked: false })).toEqual({ ok: true });
  });

  it('becomes a chosen name permanently once its account asks for it', async () => {
    await use(fixture, eu, ann, 'brisk-otter', { asked: false });
    await use(fixture, eu, ann, 'brisk-otter');
    await use(fixture, eu, ann, 'brisk-otter', { asked: false });
    expect(await listed()).toEqual([
      {
        label: 'brisk-otter',
        state: 'held',
        assigned: false,
        expires_at: after(30 * DAY_MS),
        hold_seconds: 30 * 86_400,
      },
    ]);
  });
});

describe('a public p2p name', () => {
  const P2P = { kind: 'p2p' } as const;

  it('is held for its account within its region, and is not listed as a reservation', async () => {
    await use(fixture, eu, ann, 'office-db', P2P);
    expect(await nameOf(fixture, 'office-db')).toMatchObject({
      kind: 'p2p',
      region_id: 'eu',
      user_id: ann.accountId,
      state: 'held',
    });
    const inUse = {
      ok: false,
      code: 'TUNNEL_P2P_NAME_IN_USE',
      message: "p2p name 'office-db' is already in use",
    };
    later(36 * DAY_MS);
    expect(await answerTo(bob, 'office-db', P2P, eu)).toEqual(inUse);
    expect(await checkName(fixture, eu.actor, { ...P2P, label: 'office-db', group_key_hash: null })).toEqual({
      free: false,
    });
    expect(await listReservations(fixture, { kind: 'user', userId: ann.accountId } as never)).toEqual([]);
    expect(await answerTo(bob, 'office-db', P2P, us)).toEqual({ ok: true });
    expect(await answerTo(bob, 'office-db', {}, eu)).toEqual({ ok: true });
    later(37 * DAY_MS);
    expect(await answerTo(bob, 'office-db', P2P, eu)).toEqual({ ok: true });
  });
});

describe('a subdomain claimed by use', () => {
  it.each([
    ['a year behind', -365 * DAY_MS],
    ['a year ahead', 365 * DAY_MS],
  ])("is timed by the platform's clock even if the edge's clock is %s", async (_, aheadMs) => {
    const at = NOON + aheadMs;
    const { tunnelId } = await ask(fixture, eu, ann, endpointOf('shop'), { at });
    const opened = { ...openedAt(fixture, eu, ann, tunnelId, 'shop'), at };
    await tell(fixture, eu, [opened, { ...closedAt(fixture, tunnelId), at }]);
    later(36 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    later(37 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual({ ok: true });
  });

  it('is refused for a reserved word, unless the account already holds the word', async () => {
    const refused = { ok: false, code: 'TUNNEL_SUBDOMAIN_INVALID' };
    for (const label of ['wpad', 'ns1', 'a.mta-sts']) expect(await answerTo(ann, label)).toMatchObject(refused);
    expect(await nameOf(fixture, 'wpad')).toBeUndefined();
    await use(fixture, eu, ann, 'shop');
    await fixture.db.updateTable('names').set({ label: 'wpad' }).where('label', '=', 'shop').execute();
    expect(await answerTo(ann, 'wpad')).toEqual({ ok: true });
    expect(await answerTo(bob, 'wpad')).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_IN_USE' });
  });

  it('belongs to its account on every edge until hold and grace have passed since its last tunnel', async () => {
    await use(fixture, eu, ann, 'shop');
    expect(await nameOf(fixture, 'shop')).toMatchObject({
      kind: 'subdomain',
      region_id: '',
      user_id: ann.accountId,
      state: 'held',
      last_used_at: new Date(NOON),
    });
    later(40_000);
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    later(36 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    later(37 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual({ ok: true });
    expect(await nameOf(fixture, 'shop')).toMatchObject({
      user_id: bob.accountId,
      created_at: new Date(NOON + 37 * DAY_MS),
    });
    expect(await answerTo(ann, 'shop')).toEqual(IN_USE);
  });

  it('is counted and logged only if granted', async () => {
    await use(fixture, eu, ann, 'shop');
    const question = questionOf(us, bob, { endpoint: endpointOf('shop') });
    expect(await openTunnel(fixture, us.actor, question)).toEqual(IN_USE);
    expect(await entryOf(fixture.db, question.tunnel_id)).toBeUndefined();
    expect(await tunnelCountOf(fixture.db, bob.keyId)).toBe(0);
  });

  it('does not expire while a tunnel serves it', async () => {
    const { tunnelId } = await ask(fixture, eu, ann, endpointOf('shop'));
    await tell(fixture, eu, [openedAt(fixture, eu, ann, tunnelId, 'shop')]);
    later(400 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    await tell(fixture, eu, [closedAt(fixture, tunnelId)]);
    later(436 * DAY_MS);
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
  });

  it('expires from the last heartbeat of an edge that fell silent', async () => {
    const edge = await addEdge(fixture, 'eu');
    await ask(fixture, edge, ann, endpointOf('shop'));
    later(5000);
    await heartbeat(fixture, edge.actor, {
      run_id: 'run_next',
      region: { id: 'eu', name: 'eu', location: '' },
      api_url: '',
      api_secret: 'a-secret-of-this-run',
      version: '0',
      open_tunnels: 0,
    });
    expect(await nameOf(fixture, 'shop')).toMatchObject({ state: 'held', last_used_at: new Date(NOON) });
  });

  it('is freed if its tunnel never opened', async () => {
    const { tunnelId } = await ask(fixture, eu, ann, endpointOf('shop'));
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    await tell(fixture, eu, [closedAt(fixture, tunnelId, true)]);
    expect(await answerTo(bob, 'shop')).toEqual({ ok: true });
  });

  it('is also claimed by an assigned tunnel, but not by a tunnel of an edge that reports no endpoint', async () => {
    expect(await answerTo(ann, 'calm-otter-x', { asked: false })).toEqual({ ok: true });
    expect(await nameOf(fixture, 'calm-otter-x')).toMatchObject({ user_id: ann.accountId });
    expect(await openTunnel(fixture, eu.actor, questionOf(eu, ann))).toEqual({ ok: true });
    expect(await fixture.db.selectFrom('names').selectAll().execute()).toHaveLength(1);
  });

  it('is not stored with a hold of 0 days', async () => {
    const none = { ...fixture, names: { hold_days: 0, assigned_hold_hours: 24, grace_days: 7 } };
    expect((await ask(none, eu, ann, endpointOf('shop'))).answer).toEqual({ ok: true });
    expect((await ask(none, us, bob, endpointOf('shop'))).answer).toEqual({ ok: true });
    expect(await nameOf(fixture, 'shop')).toBeUndefined();
  });

  it('also decides the ownership of names below it', async () => {
    expect(await answerTo(ann, 'a.shop')).toEqual({ ok: true });
    expect(await nameOf(fixture, 'shop')).toMatchObject({ user_id: ann.accountId });
    expect(await answerTo(bob, '*.shop')).toMatchObject({ message: "subdomain '*.shop' is already in use" });
    expect(await answerTo(bob, 'shop')).toEqual(IN_USE);
    expect(await answerTo(ann, '*.shop')).toEqual({ ok: true });
  });

  it('is decided again if the same tunnel returns with another name', async () => {
    await use(fixture, eu, bob, 'theirs');
    const { tunnelId } = await ask(fixture, eu, ann, endpointOf('mine'));
    const back = (label: string) => ask(fixture, eu, ann, endpointOf(label), { tunnel_id: tunnelId });
    expect((await back('theirs')).answer).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_IN_USE' });
    later(1000);
    expect((await back('other')).answer).toEqual({ ok: true });
    expect(await nameOf(fixture, 'mine')).toMatchObject({ last_used_at: new Date(NOON + 1000) });
  });

  it('is granted to one of twelve concurrent accounts, across two edges and two processes', async () => {
    const accounts = await Promise.all(Array.from({ length: 12 }, () => addAccount(fixture.db, 'payg')));
    const logger = createLogger({ format: 'json', level: 'silent' });
    const other = new Database({ url: fixture.database.url, logger, connections: 20, timeoutMs: PATIENCE_MS });
    try {
      for (const label of ['race-1', 'race-2', 'race-3']) {
        const answers = await Promise.all(
          accounts.map(async (account, index) => {
            const process = index % 4 < 2 ? fixture : { ...fixture, db: other.db };
            return (await ask(process, index % 2 === 0 ? eu : us, account, endpointOf(label))).answer;
          }),
        );
        expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
        expect(answers.filter(({ ok }) => !ok).map((answer) => 'code' in answer && answer.code)).toEqual(
          Array(11).fill('TUNNEL_SUBDOMAIN_IN_USE'),
        );
        const winner = accounts[answers.findIndex(({ ok }) => ok)];
        expect(await nameOf(fixture, label)).toMatchObject({ user_id: winner?.accountId });
      }
      // Races for an expired name, which initially still belongs to a competitor.
      await use(fixture, eu, ann, 'old');
      later(38 * DAY_MS);
      const answers = await Promise.all(accounts.map((account) => answerTo(account, 'old')));
      expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
    } finally {
      await other.close();
    }
  });

  it('is among at most a hundred per account: the longest unused name is released, but still kept for its account', async () => {
    const most = RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX;
    await sql`
      insert into names (kind, label, user_id, state, created_at, last_used_at)
      select 'subdomain', 'n' || n, ${ann.accountId}::uuid, 'held', ${new Date(NOON)}::timestamptz,
        ${new Date(NOON)}::timestamptz - n * interval '1 minute'
      from generate_series(1, ${most}::int) n
    `.execute(fixture.db);
    expect(await answerTo(ann, 'shop')).toEqual({ ok: true });
    const states = await fixture.db.selectFrom('names').select(['label', 'state', 'released_at']).execute();
    expect(states.filter(({ state }) => state === 'held')).toHaveLength(most);
    expect(states.filter(({ state }) => state === 'released')).toEqual([
      { label: `n${most}`, state: 'released', released_at: new Date(NOON) },
    ]);
    expect(await answerTo(bob, `n${most}`)).toMatchObject({ ok: false });
    expect(await answerTo(ann, `n${most}`)).toEqual({ ok: true });
  });
});

describe('a group name', () => {
  const key = { group_key_hash: 'red' };

  it('is open to any account with its last key, in any order after a restart', async () => {
    await use(fixture, eu, ann, 'pool', key);
    expect(await answerTo(bob, 'pool', key)).toEqual({ ok: true });
    expect(await nameOf(fixture, 'pool')).toMatchObject({ user_id: ann.accountId });
    expect(await answerTo(ann, 'pool', { ...key, joins_group: true })).toEqual({ ok: true });
    expect(await answerTo(bob, 'pool', { group_key_hash: 'blue' })).toEqual({
      ok: false,
      code: 'GROUP_KEY_MISMATCH',
      message: 'group key does not match',
    });
    expect(await answerTo(bob, 'pool')).toMatchObject({ code: 'TUNNEL_SUBDOMAIN_IN_USE' });
  });

  it('counts a member admitted by a live group, whatever its account', async () => {
    await ask(fixture, eu, ann, endpointOf('pool', key));
    const { answer, tunnelId } = await ask(fixture, eu, bob, endpointOf('pool', { ...key, joins_group: true }));
    expect(answer).toEqual({ ok: true });
    const name = await nameOf(fixture, 'pool');
    expect(name).toMatchObject({ user_id: ann.accountId });
    expect(await entryOf(fixture.db, tunnelId)).toMatchObject({ name_id: name?.id });
  });
});

describe('names of tunnels accepted without asking the platform', () => {
  it('are claimed if free, and not taken from other accounts', async () => {
    await use(fixture, eu, ann, 'hers');
    const endpoint = (label: string) => endpointOf(label, { asked: false });
    await tell(fixture, eu, [
      openedAt(fixture, eu, bob, 'tun_away_1', 'fresh', endpoint('fresh')),
      openedAt(fixture, eu, bob, 'tun_away_2', 'hers', endpoint('hers')),
    ]);
    expect(await nameOf(fixture, 'fresh')).toMatchObject({ user_id: bob.accountId, state: 'held' });
    expect(await nameOf(fixture, 'hers')).toMatchObject({ user_id: ann.accountId });
    expect(await entryOf(fixture.db, 'tun_away_1')).toMatchObject({ name_id: (await nameOf(fixture, 'fresh'))?.id });
    expect(await entryOf(fixture.db, 'tun_away_2')).toMatchObject({ name_id: null });
  });

  it("include the account's own port if the edge assigned it", async () => {
    const row = {
      kind: 'tcp' as const,
      region_id: 'eu',
      label: '20042',
      user_id: ann.accountId,
      state: 'reserved' as const,
    };
    await fixture.db.insertInto('names').values(row).execute();
    const anyPort = endpointOf(null, { kind: 'tcp', asked: false });
    const { tunnelId } = await ask(fixture, eu, ann, anyPort, { protocol: 'tcp' });
    await tell(fixture, eu, [openedAt(fixture, eu, ann, tunnelId, '20042', anyPort)]);
    expect(await entryOf(fixture.db, tunnelId)).toMatchObject({ name_id: (await nameOf(fixture, '20042'))?.id });
  });
});

it('ports are reserved per region, and never held by use', async () => {
  const port = endpointOf('20042', { kind: 'tcp' });
  const asked = async (account: Account, edge: Edge) =>
    (await ask(fixture, edge, account, port, { protocol: 'tcp' })).answer;
  expect(await asked(ann, eu)).toEqual({ ok: true });
  expect(await nameOf(fixture, '20042')).toBeUndefined();
  await fixture.db
    .insertInto('names')
    .values({ kind: 'tcp', region_id: 'eu', label: '20042', user_id: ann.accountId, state: 'reserved' })
    .execute();
  expect(await asked(bob, eu)).toEqual({
    ok: false,
    code: 'TUNNEL_PORT_IN_USE',
    message: 'port 20042 is already in use',
  });
  expect(await asked(bob, us)).toEqual({ ok: true });
  expect(await asked(ann, eu)).toEqual({ ok: true });
});
