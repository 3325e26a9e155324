// Many accounts, edges and jobs working on the same names concurrently: every name has one owner, nothing is lost, and no deadlock
// occurs.
import { RULE_LIMITS } from '@tunnel/rules/limits';
import { randomId } from '@tunnel/runtime';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { endNames } from '../../jobs/end-names.ts';
import { eraseTraces } from '../accounts/erase-traces.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  type Edge,
  type LinkFixture,
  NOON,
} from '../edges/link.fixture.ts';
import { ask, beginWithNoNames, closedAt, endpointOf, openedAt, tell } from './names.fixture.ts';
import { releaseReservation } from './reservations.ts';
import { reserve } from './reserve.ts';

let fixture: LinkFixture;
let edges: readonly Edge[];
let accounts: readonly Account[];
beforeAll(async () => {
  fixture = await createLinkFixture();
  edges = [await addEdge(fixture, 'eu'), await addEdge(fixture, 'us')];
  await sql`update edges set tcp_from = 20000, tcp_to = 20039`.execute(fixture.db);
});
beforeEach(async () => {
  const both = await beginWithNoNames(fixture);
  accounts = [...both, ...(await Promise.all([1, 2, 3].map(() => addAccount(fixture.db, 'payg'))))];
});
afterAll(() => fixture.close());

const actorOf = ({ accountId }: Account) => ({ kind: 'user', userId: accountId }) as never;
const pick = <T>(of: readonly T[], index: number): T => of[index % of.length] as T;
const outcome = async (work: () => Promise<{ readonly isNew: boolean }>): Promise<string> => {
  try {
    return (await work()).isNew ? 'new' : 'again';
  } catch (error) {
    return (error as { readonly code: string }).code;
  }
};
const countOf = (all: readonly string[]) =>
  Object.fromEntries([...new Set(all)].sort().map((each) => [each, all.filter((one) => one === each).length]));

it('200 concurrent reservations of a name by five accounts create a single reservation', async () => {
  const wanted = { kind: 'subdomain', label: 'shop' } as const;
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, (_, index) => outcome(() => reserve(fixture, actorOf(pick(accounts, index)), wanted))),
  );
  expect(countOf(outcomes)).toEqual({ TUNNEL_SUBDOMAIN_IN_USE: 160, again: 39, new: 1 });
});

it('concurrent reservations of any port get distinct ports until the range is exhausted', async () => {
  const wanted = { kind: 'tcp', region_id: 'eu' } as const;
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, index) =>
      outcome(() => reserve({ ...fixture, accountShare: 1 }, actorOf(pick(accounts, index)), wanted)),
    ),
  );
  // A request gets an error if its candidate ports were all taken a moment ago, or if no port is free.
  const { new: made = 0, ...others } = countOf(outcomes);
  expect(Object.keys(others).filter((code) => !/^TUNNEL_PORT(S_EXHAUSTED|_IN_USE)$/.test(code))).toEqual([]);
  const rows = await fixture.db.selectFrom('names').select('label').execute();
  expect(new Set(rows.map(({ label }) => label)).size).toBe(made);
  expect(made).toBeGreaterThanOrEqual(20);
});

it('an account deleted during claims and reservations keeps no held or reserved name', async () => {
  const ann = pick(accounts, 0);
  const bob = pick(accounts, 1);
  const labels = Array.from({ length: 20 }, (_, index) => `del-${index}`);
  const deletion = async () => {
    await fixture.db
      .updateTable('users')
      .set({ deleted_at: new Date(NOON), status: 'suspended' })
      .where('id', '=', ann.accountId)
      .execute();
    await eraseTraces(fixture.db, ann.accountId, NOON);
  };
  const opens = labels.map((label, index) => ask(fixture, pick(edges, index), ann, endpointOf(label)));
  const reserves = labels.map((label) =>
    outcome(() => reserve(fixture, actorOf(ann), { kind: 'subdomain', label: `r-${label}` })),
  );
  await Promise.all([...opens, deletion(), ...reserves]);
  // Operations begun before the deletion may finish after it, so the deletion erases again later.
  await eraseTraces(fixture.db, ann.accountId, NOON);
  const rows = await fixture.db.selectFrom('names').selectAll().where('user_id', '=', ann.accountId).execute();
  expect(rows.filter(({ state }) => state !== 'released')).toEqual([]);
  expect((await ask(fixture, pick(edges, 0), ann, endpointOf('late'))).answer.ok).toBe(false);
  expect(await outcome(() => reserve(fixture, actorOf(ann), { kind: 'subdomain', label: 'late' }))).toBe(
    'ACCESS_TOKEN_INVALID',
  );
  expect((await ask(fixture, pick(edges, 0), bob, endpointOf('late'))).answer).toEqual({ ok: true });
});

it('a random mix of concurrent operations fails only with known errors and leaves no open tunnel', async () => {
  const labels = Array.from({ length: 8 }, (_, index) => `all-${index}`);
  const known = new Set(['new', 'again', 'TUNNEL_SUBDOMAIN_IN_USE', 'API_BAD_REQUEST', 'RESERVATION_UNKNOWN']);
  const failures: unknown[] = [];
  let seed = 7;
  const next = (below: number): number => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  const step = async (): Promise<void> => {
    const account = pick(accounts, next(5));
    const edge = pick(edges, next(2));
    const label = pick(labels, next(8));
    const what = next(6);
    if (what === 0) {
      const said = await outcome(() => reserve(fixture, actorOf(account), { kind: 'subdomain', label }));
      if (!known.has(said)) failures.push(said);
    } else if (what === 1) {
      await endNames({ hold_days: 0, assigned_hold_hours: 24, grace_days: 0 }).run(fixture);
    } else if (what === 2) {
      const row = await fixture.db.selectFrom('names').selectAll().where('label', '=', label).executeTakeFirst();
      if (row === undefined) return;
      await releaseReservation(fixture, { kind: 'user', userId: row.user_id } as never, row.id).catch(
        (error: { code: string }) => known.has(error.code) || failures.push(error),
      );
    } else {
      // Reports a batch of several tunnels, as after an outage, and their ends in the next batch.
      const ids = labels.slice(next(8)).map((name) => [randomId('tun'), name] as const);
      await tell(
        fixture,
        edge,
        ids.map(([id, name]) => openedAt(fixture, edge, account, id, name, endpointOf(`a.${name}`, { asked: false }))),
      );
      await tell(
        fixture,
        edge,
        ids.map(([id]) => closedAt(fixture, id)),
      );
    }
  };
  const worker = async (): Promise<void> => {
    for (let turn = 0; turn < 25; turn += 1) await step().catch((error: unknown) => failures.push(error));
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  expect(failures).toEqual([]);
  const open = await fixture.db.selectFrom('tunnel_log').select('id').where('unregistered_at', 'is', null).execute();
  expect(open).toEqual([]);
});

it('held names stay within their limit under concurrent tunnels', async () => {
  const ann = pick(accounts, 0);
  const most = RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX;
  await Promise.all(
    Array.from({ length: most + 20 }, (_, index) => ask(fixture, pick(edges, index), ann, endpointOf(`h-${index}`))),
  );
  const rows = await fixture.db.selectFrom('names').selectAll().where('user_id', '=', ann.accountId).execute();
  expect(rows.filter(({ state }) => state === 'held')).toHaveLength(most);
  expect(rows).toHaveLength(most + 20);
});
