import { type ApiToken, apiTokens, type CreatedKey } from '@tunnel/contract';
import { isApiKey } from '@tunnel/core';
import { sha256Hex } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { UserActor } from '../../services/service-context.ts';
import { openPlatformFixture, type PlatformFixture } from '../platform.fixture.ts';
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
  it('are shown once, and listed by their hash, newest first, with what the plan allows', async () => {
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
    });
    const stored = await fixture.database.db.selectFrom('api_keys').selectAll().execute();
    expect(JSON.stringify(stored)).not.toContain(first.token);
  });

  it('leave the list when they are revoked, edges are told, and the deed is written down', async () => {
    const { id } = await create(fixture.bob, 'old');
    expect((await fixture.ask(fixture.bob, 'DELETE', `/keys/${id}`)).status).toBe(204);
    expect(await list(fixture.bob)).toEqual([]);
    const changes = await fixture.database.db.selectFrom('edge_changes').selectAll().where('key_id', '=', id).execute();
    expect(changes).toMatchObject([{ kind: 'key-revoked', account_id: fixture.bob.userId }]);
    const actor = `user:${fixture.bob.userId}`;
    expect(await auditOf(id)).toEqual([`${actor} key.created`, `${actor} key.revoked`]);
    expect((await fixture.ask(fixture.bob, 'DELETE', `/keys/${id}`)).status).toBe(404);
  });

  it('are bounded in number, also when many are asked for at once', async () => {
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
});
