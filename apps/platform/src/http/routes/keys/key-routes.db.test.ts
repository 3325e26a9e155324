import { type ApiToken, apiTokens, type CreatedKey } from '@tunnel/contract';
import { sha256Hex } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isApiKey } from '../../../services/keys/api-key.rules.ts';
import type { UserActor } from '../../../services/shared/service-context.ts';
import { openPlatformFixture, type PlatformFixture } from '../../server/platform.fixture.ts';
import { addKeyRoutes } from './key-routes.ts';

let fixture: PlatformFixture;
beforeAll(async () => {
  fixture = await openPlatformFixture(addKeyRoutes);
});
afterAll(() => fixture.close());

const create = async (user: UserActor, label: string): Promise<CreatedKey> => {
  const answer = await fixture.ask(user, 'POST', '/keys', { label });
  expect(answer.status).toBe(201);
  return (await answer.json()) as CreatedKey;
};

const list = async (user: UserActor): Promise<ApiToken[]> =>
  apiTokens.parse(await (await fixture.ask(user, 'GET', '/keys')).json());

const auditOf = async (keyId: string): Promise<string[]> => {
  const rows = await fixture.database.db.selectFrom('audit_log').selectAll().orderBy('id').execute();
  return rows.filter((row) => row.details['key_id'] === keyId).map((row) => `${row.actor} ${row.action}`);
};

describe('API keys', () => {
  it("are shown once, stored as a hash, and listed newest first with the plan's limits", async () => {
    const first = await create(fixture.alice, '  laptop ');
    await fixture.clock.advance(1000);
    const second = await create(fixture.alice, 'server');
    expect(isApiKey(first.token)).toBe(true);
    const keys = await list(fixture.alice);
    expect(keys.map(({ id }) => id)).toEqual([second.id, first.id]);
    expect(keys[1]).toEqual({
      id: first.id,
      label: 'laptop',
      token_hash: sha256Hex(first.token),
      created_at: '2030-06-15T12:00:00.000Z',
      last_used_at: null,
      scope: null,
      tier: 'free',
      tunnel_limit: 3,
      status: 'active',
      unlimited: false,
      tunnel_count: 0,
      active_tunnels: 0,
    });
    const stored = await fixture.database.db.selectFrom('api_keys').selectAll().execute();
    expect(JSON.stringify(stored)).not.toContain(first.token);
  });

  it('leave the list when revoked, with a notice to edges and an audit entry', async () => {
    const { id } = await create(fixture.bob, 'old');
    expect((await fixture.ask(fixture.bob, 'DELETE', `/keys/${id}`)).status).toBe(204);
    expect(await list(fixture.bob)).toEqual([]);
    const changes = await fixture.database.db.selectFrom('edge_changes').selectAll().where('key_id', '=', id).execute();
    expect(changes).toMatchObject([{ kind: 'key-revoked', account_id: fixture.bob.userId }]);
    const actor = `user:${fixture.bob.userId}`;
    expect(await auditOf(id)).toEqual([`${actor} key.created`, `${actor} key.revoked`]);
    expect((await fixture.ask(fixture.bob, 'DELETE', `/keys/${id}`)).status).toBe(404);
  });

  it('are limited to 1,000 per account, even under concurrent requests', async () => {
    const { db } = fixture.database;
    const { id } = await db
      .insertInto('users')
      .values({ email: 'many@example.com', plan: 'free', display_name: null, password_hash: null })
      .returning('id')
      .executeTakeFirstOrThrow();
    const rows = Array.from({ length: 999 }, (_, n) => ({ user_id: id, label: 'x', token_hash: `hash-${n}` }));
    await db.insertInto('api_keys').values(rows).execute();
    const make = () => fixture.ask({ kind: 'user', userId: id }, 'POST', '/keys', { label: 'one more' });
    const atOnce = await Promise.all(Array.from({ length: 5 }, make));
    expect(atOnce.filter(({ status }) => status === 201)).toHaveLength(1);
    const answer = await make();
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: 'KEY_LIMIT' }]);
  });

  it('are limited per day, regardless of revocations, which are always allowed', async () => {
    const { limits } = fixture.deps.settings;
    const { userId } = fixture.bob;
    await fixture.database.db
      .updateTable('users')
      .set({ created_on: '2030-06-15', created_count: limits.creating_writes_per_day - 1 })
      .where('id', '=', userId)
      .execute();
    const make = () => fixture.ask(fixture.bob, 'POST', '/keys', { label: 'one more' });
    const atOnce = await Promise.all([make(), make(), make()]);
    const made = atOnce.filter(({ status }) => status === 201);
    expect(made).toHaveLength(1);
    const refused = await make();
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toMatchObject([
      429,
      // Seconds from noon plus one second until midnight.
      String(12 * 60 * 60 - 1),
      {
        code: 'API_WRITES_PER_DAY',
        error: expect.stringContaining('2000 new keys, reservations, domains and connected apps'),
      },
    ]);
    const { id } = (await (made[0] as Response).json()) as CreatedKey;
    expect((await fixture.ask(fixture.bob, 'DELETE', `/keys/${id}`)).status).toBe(204);
    expect((await make()).status).toBe(429);
    await fixture.clock.advance(12 * 60 * 60_000);
    expect((await make()).status).toBe(201);
    await fixture.clock.advance(-12 * 60 * 60_000);
  });

  it('are pruned to the latest hundred revoked keys of an account, without touching other accounts', async () => {
    const { db } = fixture.database;
    const userId = fixture.alice.userId;
    const revoked_at = (n: number) => new Date(Date.UTC(2029, 0, 1) + n * 1000);
    const rows = Array.from({ length: 150 }, (_, n) => ({
      user_id: userId,
      label: `old ${n}`,
      token_hash: `revoked-${n}`,
      revoked_at: revoked_at(n),
      status: 'revoked' as const,
    }));
    await db.insertInto('api_keys').values(rows).execute();
    await db
      .insertInto('api_keys')
      .values({ ...rows[0], user_id: fixture.bob.userId, token_hash: 'of-bob' } as never)
      .execute();
    const { id } = await create(fixture.alice, 'to revoke');
    expect((await fixture.ask(fixture.alice, 'DELETE', `/keys/${id}`)).status).toBe(204);
    const left = await db
      .selectFrom('api_keys')
      .select('label')
      .where('user_id', '=', userId)
      .where('status', '=', 'revoked')
      .orderBy('revoked_at')
      .execute();
    expect([left.length, left[0]?.label, left.at(-1)?.label]).toEqual([100, 'old 51', 'to revoke']);
    const ofBob = await db.selectFrom('api_keys').select('id').where('token_hash', '=', 'of-bob').execute();
    expect(ofBob).toHaveLength(1);
  });
});
