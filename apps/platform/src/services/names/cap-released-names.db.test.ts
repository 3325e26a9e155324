// An account that keeps taking and leaving names blocks only a bounded number of names for other accounts.

import { RULE_LIMITS } from '@tunnel/rules/limits';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { type Account, addEdge, createLinkFixture, type Edge, type LinkFixture, NOON } from '../edges/link.fixture.ts';
import { RELEASED_NAMES_PER_ACCOUNT_MAX, RELEASED_PORTS_PER_ACCOUNT_MAX } from './cap-released-names.ts';
import { ask, beginWithNoNames, endpointOf, nameOf, use } from './names.fixture.ts';
import { releaseReservation } from './reservations.ts';
import { reserve } from './reserve.ts';

let fixture: LinkFixture;
let edge: Edge;
let ann: Account;
let bob: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture, 'eu');
  await sql`update edges set tcp_from = 20000, tcp_to = 29999`.execute(fixture.db);
});
beforeEach(async () => {
  [ann, bob] = await beginWithNoNames(fixture);
});
afterAll(() => fixture.close());

const add = (kind: 'subdomain' | 'tcp', state: 'held' | 'released', rows: number) =>
  sql`
    insert into names (kind, region_id, label, user_id, state, created_at, last_used_at, released_at)
    select ${kind}, ${kind === 'tcp' ? 'eu' : ''}, ${kind === 'tcp' ? '' : `${state}-`} || (20999 + n), ${ann.accountId}::uuid, ${state},
      ${new Date(NOON)}::timestamptz, ${new Date(NOON)}::timestamptz - n * interval '1 second',
      case when ${state === 'released'} then ${new Date(NOON)}::timestamptz - n * interval '1 second' end
    from generate_series(1, ${rows}::int) n
  `.execute(fixture.db);
const released = async (userId: string): Promise<number> => {
  const rows = await fixture.db
    .selectFrom('names')
    .select('id')
    .where('user_id', '=', userId)
    .where('state', '=', 'released')
    .execute();
  return rows.length;
};

it('released names of an account are limited if further names evict older names', async () => {
  const most = RELEASED_NAMES_PER_ACCOUNT_MAX;
  await add('subdomain', 'released', most);
  await add('subdomain', 'held', RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX);
  const oldest = `released-${20_999 + most}`;
  expect((await ask(fixture, edge, bob, endpointOf(oldest))).answer.ok).toBe(false);
  await use(fixture, edge, ann, 'one-more');
  expect(await released(ann.accountId)).toBe(most);
  expect((await ask(fixture, edge, bob, endpointOf(oldest))).answer).toEqual({ ok: true });
  // The name evicted just now and the second oldest released name are still kept.
  for (const label of ['held-21099', `released-${20_998 + most}`]) {
    expect((await ask(fixture, edge, bob, endpointOf(label))).answer.ok).toBe(false);
  }
});

it('released names of an account are limited even if a tunnel served a name at its eviction', async () => {
  const most = RELEASED_NAMES_PER_ACCOUNT_MAX;
  await add('subdomain', 'released', most + 5);
  await sql`update names set released_at = null where state = 'released'`.execute(fixture.db);
  await add('subdomain', 'held', RULE_LIMITS.HELD_NAMES_PER_ACCOUNT_MAX);
  await use(fixture, edge, ann, 'one-more');
  expect(await released(ann.accountId)).toBe(most);
});

it('released ports of an account are limited', async () => {
  const most = RELEASED_PORTS_PER_ACCOUNT_MAX;
  await add('tcp', 'released', most + 5);
  await add('subdomain', 'released', most + 5);
  const actor = { kind: 'user', userId: ann.accountId } as never;
  const { reservation } = await reserve(fixture, actor, { kind: 'tcp', label: '20001' });
  await releaseReservation(fixture, actor, reservation.id);
  expect(await nameOf(fixture, '20001')).toMatchObject({ state: 'released' });
  expect(await nameOf(fixture, String(20_999 + most))).toBeUndefined();
  expect(await nameOf(fixture, '21000')).toBeDefined();
  expect(await released(ann.accountId)).toBe(most + most + 5);
});
