import { afterEach, beforeEach, expect, it } from 'vitest';
import { type AccountsFixture, openAccounts, PASSWORD } from '../../http/auth/accounts.fixture.ts';
import { changeRange } from '../shared/edge-changes.ts';
import { markRestored } from './mark-restored.ts';

const OPERATOR = { kind: 'operator', name: 'root' } as const;
const EMAIL = 'ann@example.com';

let fixture: AccountsFixture;
beforeEach(async () => {
  fixture = await openAccounts();
});
afterEach(() => fixture.close());

const mark = (revokeSessions: boolean): Promise<void> =>
  markRestored(fixture.database.db, OPERATOR, { at: 1_000_000, now: fixture.clock.now(), revokeSessions });

const epochs = async (): Promise<number[]> => {
  const rows = await fixture.database.db.selectFrom('users').select('epoch').execute();
  return rows.map(({ epoch }) => epoch);
};

it('a restored database tells edges to ask for everything again, under numbers that no edge knows yet', async () => {
  const { db } = fixture.database;
  const before = await changeRange(db);
  await mark(false);
  await mark(false);
  const rows = await db.selectFrom('edge_changes').select(['id', 'kind']).orderBy('id', 'desc').limit(2).execute();
  expect(rows.map(({ kind }) => kind)).toEqual(['forget', 'forget']);
  const [second, first] = rows.map(({ id }) => id);
  expect(first).toBeGreaterThan(before.latest + 999_999);
  expect(second).toBeGreaterThan((first ?? 0) + 999_999);
  const { details } = await db
    .selectFrom('audit_log')
    .select('details')
    .where('action', '=', 'database.restored')
    .executeTakeFirstOrThrow();
  expect(details).toEqual({ to: '1970-01-01T00:16:40.000Z', sessions_revoked: false });
});

it('sessions end only if the operator wants that', async () => {
  await fixture.post('/auth/register', { email: EMAIL, password: PASSWORD });
  const [epoch = 0] = await epochs();
  await mark(false);
  expect(await epochs()).toEqual([epoch]);
  await mark(true);
  expect(await epochs()).toEqual([epoch + 1]);
  const open = await fixture.database.db
    .selectFrom('refresh_families')
    .select('id')
    .where('revoked_at', 'is', null)
    .execute();
  expect(open).toEqual([]);
});
