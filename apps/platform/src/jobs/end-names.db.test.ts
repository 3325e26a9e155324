import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { LIMITS } from '../limits.ts';
import {
  type Account,
  addAccount,
  addEdge,
  createLinkFixture,
  type Edge,
  type LinkFixture,
  NOON,
} from '../services/edges/link.fixture.ts';
import { ask, closedAt, DAY_MS, endpointOf, nameOf, openedAt, tell, use } from '../services/names/names.fixture.ts';
import { endNames, NAMES_EVERY_MS } from './end-names.ts';

let fixture: LinkFixture;
let edge: Edge;
let ann: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  edge = await addEdge(fixture);
  ann = await addAccount(fixture.db, 'payg');
});
beforeEach(async () => {
  fixture.clock.setWallClock(NOON);
  await fixture.db.deleteFrom('names').execute();
  await fixture.db.deleteFrom('edge_changes').execute();
});
afterAll(() => fixture.close());

const runAt = async (ms: number, settings = fixture.names): Promise<void> => {
  fixture.clock.setWallClock(NOON + ms);
  await endNames(settings).run(fixture);
};
const add = (label: string, state: 'held' | 'reserved' | 'released', more = {}) =>
  fixture.db
    .insertInto('names')
    .values({ kind: 'subdomain', label, user_id: ann.accountId, state, created_at: new Date(NOON), ...more })
    .execute();

describe('an expiring name', () => {
  it('is released without its group key when its hold ends, and deleted after the grace period', async () => {
    await use(fixture, edge, ann, 'shop', { group_key_hash: 'red' });
    await runAt(30 * DAY_MS - 1);
    expect(await nameOf(fixture, 'shop')).toMatchObject({ state: 'held' });
    await runAt(32 * DAY_MS);
    expect(await nameOf(fixture, 'shop')).toMatchObject({
      state: 'released',
      group_key_hash: null,
      released_at: new Date(NOON + 30 * DAY_MS),
    });
    await runAt(37 * DAY_MS - 1);
    expect(await nameOf(fixture, 'shop')).toBeDefined();
    await runAt(37 * DAY_MS);
    expect(await nameOf(fixture, 'shop')).toBeUndefined();
  });

  it('is released after the assigned hold hours if an edge chose it', async () => {
    await use(fixture, edge, ann, 'brisk-otter', { asked: false });
    expect(await nameOf(fixture, 'brisk-otter')).toMatchObject({ state: 'held', assigned: true });
    await runAt(DAY_MS - 1);
    expect(await nameOf(fixture, 'brisk-otter')).toMatchObject({ state: 'held' });
    await runAt(3 * DAY_MS);
    expect(await nameOf(fixture, 'brisk-otter')).toMatchObject({
      state: 'released',
      released_at: new Date(NOON + DAY_MS),
    });
  });

  it('stays while a tunnel serves it or while it is reserved', async () => {
    const { tunnelId } = await ask(fixture, edge, ann, endpointOf('shop'));
    await tell(fixture, edge, [openedAt(fixture, edge, ann, tunnelId, 'shop')]);
    await add('mine', 'reserved');
    await runAt(500 * DAY_MS);
    expect([await nameOf(fixture, 'shop'), await nameOf(fixture, 'mine')]).toMatchObject([
      { state: 'held' },
      { state: 'reserved' },
    ]);
  });

  it('is deleted if its tunnel never opened, or immediately if the hold is 0', async () => {
    const { tunnelId } = await ask(fixture, edge, ann, endpointOf('never'));
    await tell(fixture, edge, [closedAt(fixture, tunnelId, true)]);
    await use(fixture, edge, ann, 'shop');
    await runAt(NAMES_EVERY_MS + 1);
    expect([await nameOf(fixture, 'never'), (await nameOf(fixture, 'shop'))?.state]).toEqual([undefined, 'held']);
    await runAt(NAMES_EVERY_MS + 1, { hold_days: 0, assigned_hold_hours: 24, grace_days: 7 });
    expect(await nameOf(fixture, 'shop')).toBeUndefined();
  });

  it('takes its wildcard along, and edges are notified', async () => {
    await add('shop', 'released', { released_at: new Date(NOON) });
    await add('*.shop', 'reserved');
    await add('kept', 'held', { last_used_at: new Date(NOON) });
    await add('*.kept', 'reserved');
    await runAt(DAY_MS);
    expect(await nameOf(fixture, '*.shop')).toMatchObject({ state: 'released', released_at: new Date(NOON + DAY_MS) });
    expect(await nameOf(fixture, '*.kept')).toMatchObject({ state: 'reserved' });
    expect(await fixture.db.selectFrom('edge_changes').select('name_label').execute()).toEqual([
      { name_label: '*.shop' },
    ]);
  });

  it('is deleted even among more names than one statement handles', async () => {
    await sql`
      insert into names (kind, label, user_id, state, last_used_at)
      select 'subdomain', 'n' || n, ${ann.accountId}::uuid, 'held', ${new Date(NOON)}::timestamptz
      from generate_series(1, ${2 * LIMITS.NAMES_ROWS + 1}::int) n
    `.execute(fixture.db);
    await runAt(400 * DAY_MS);
    expect(await fixture.db.selectFrom('names').selectAll().execute()).toEqual([]);
  });
});
