// Queries that delay a tunnel read only a few rows, however many names exist.
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Account, addAccount, createLinkFixture, type LinkFixture } from '../edges/link.fixture.ts';

const NAMES = 100_000;

let fixture: LinkFixture;
let account: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  account = await addAccount(fixture.db, 'payg');
  const other = await addAccount(fixture.db, 'payg');
  await sql`
    insert into names (kind, label, user_id, state, last_used_at)
    select 'subdomain', 'n' || n, ${other.accountId}::uuid, case when n % 2 = 0 then 'reserved' else 'held' end, now()
    from generate_series(1, ${NAMES}::int) n
  `.execute(fixture.db);
  await sql`
    insert into names (kind, label, user_id, state, last_used_at)
    select 'subdomain', 'own' || n, ${account.accountId}::uuid, 'held', now() from generate_series(1, 100) n
  `.execute(fixture.db);
  await sql`analyze names`.execute(fixture.db);
});
afterAll(() => fixture.close());

it.each([
  ['the name', () => sql`kind = 'subdomain' and region_id = '' and label = 'n5' for no key update`, 'names_by_label'],
  ['an account’s own', () => sql`user_id = ${account.accountId} and state = 'held'`, 'names_of_user'],
  [
    'a page of the snapshot',
    () => sql`
      state = 'reserved' and region_id in ('', 'eu') and (kind, region_id, label) > ('subdomain', '', 'n5')
      order by kind, region_id, label limit 1000`,
    'names_reserved',
  ],
  [
    'what has run out',
    () => sql`state = 'held' and last_used_at <= now() - interval '30 days' limit 500`,
    'names_held_by_use',
  ],
])('among 100,000 names, %s is found by an index', async (_what, where, index) => {
  const { rows } = await sql<{ 'QUERY PLAN': string }>`
    explain (analyze, costs off, timing off) select * from names where ${where()}
  `.execute(fixture.db);
  const plan = rows.map((line) => line['QUERY PLAN']).join('\n');
  expect(plan).toContain(index);
  expect(plan).not.toContain('Seq Scan');
  expect(plan).not.toContain('Sort');
  expect(plan).not.toContain('Rows Removed');
});
