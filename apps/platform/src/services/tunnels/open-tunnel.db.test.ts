import { createLogger } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { PATIENCE_MS } from '../../db/test-database.fixture.ts';
import { heartbeat } from '../edges/heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  addKey,
  beatOf,
  createLinkFixture,
  daysOf,
  entryOf,
  type LinkFixture,
  NOON,
  questionOf,
  tunnelCountOf,
} from '../edges/link.fixture.ts';
import { listKeys } from '../keys/keys.ts';
import { openTunnel } from './open-tunnel.ts';

let fixture: LinkFixture;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
afterAll(() => fixture.close());

const openOf = async (account: Account) => {
  const rows = await fixture.db
    .selectFrom('tunnel_log')
    .select('id')
    .where('user_id', '=', account.accountId)
    .where('unregistered_at', 'is', null)
    .execute();
  return rows.length;
};

describe('opening a tunnel', () => {
  it('writes a log entry and counts the tunnel for its key and day', async () => {
    const account = await addAccount(fixture.db);
    const edge = await addEdge(fixture, 'eu');
    const question = questionOf(edge, account, { name: 'shop' });
    expect(await openTunnel(fixture, edge.actor, question)).toEqual({ ok: true });
    expect(await entryOf(fixture.db, question.tunnel_id)).toMatchObject({
      user_id: account.accountId,
      key_id: account.keyId,
      edge_id: edge.actor.edgeId,
      run_id: edge.runId,
      region_id: 'eu',
      session_id: 'ses_1',
      name: 'shop',
      protocol: 'http',
      label: '',
      registered_at: new Date(NOON),
      unregistered_at: null,
    });
    expect(await tunnelCountOf(fixture.db, account.keyId)).toBe(1);
    expect(await daysOf(fixture.db, account.accountId)).toEqual([
      { day: '2030-06-15', tunnels: 1, requests: 0, bytes: 0 },
    ]);
  });

  it("updates the key's last use and tunnel counts immediately", async () => {
    const account = await addAccount(fixture.db);
    const other = await addKey(fixture.db, account.accountId);
    const edge = await addEdge(fixture);
    const listed = async (keyId: string) =>
      (await listKeys(fixture, { kind: 'user', userId: account.accountId })).find(({ id }) => id === keyId);
    expect(await listed(account.keyId)).toMatchObject({ last_used_at: null, tunnel_count: 0, active_tunnels: 0 });
    const first = questionOf(edge, account);
    const second = questionOf(edge, account);
    for (const question of [first, second]) await openTunnel(fixture, edge.actor, question);
    const used = { last_used_at: new Date(fixture.clock.now()).toISOString(), tunnel_count: 2 };
    expect(await listed(account.keyId)).toMatchObject({ ...used, active_tunnels: 2 });
    expect(await listed(other.keyId)).toMatchObject({ last_used_at: null, active_tunnels: 0 });
    await fixture.db
      .updateTable('tunnel_log')
      .set({ unregistered_at: new Date(NOON) })
      .where('tunnel_id', '=', first.tunnel_id)
      .execute();
    expect(await listed(account.keyId)).toMatchObject({ ...used, active_tunnels: 1 });
  });

  it("admits exactly the plan's 10 of a hundred concurrent tunnels, across two edges and two processes", async () => {
    const account = await addAccount(fixture.db);
    const edges = [await addEdge(fixture, 'eu'), await addEdge(fixture, 'us')];
    const logger = createLogger({ format: 'json', level: 'silent' });
    const other = new Database({ url: fixture.database.url, logger, connections: 20, timeoutMs: PATIENCE_MS });
    try {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, index) => {
          const edge = edges[index % 2]!;
          return openTunnel(
            index % 4 < 2 ? fixture : { ...fixture, db: other.db },
            edge.actor,
            questionOf(edge, account),
          );
        }),
      );
      expect(answers.filter((answer) => answer.ok)).toHaveLength(10);
      for (const answer of answers.filter(({ ok }) => !ok)) {
        expect(answer).toEqual({ ok: false, code: 'TUNNEL_PLAN_LIMIT', message: 'tunnel limit of 10 reached' });
      }
    } finally {
      await other.close();
    }
    expect(await openOf(account)).toBe(10);
    expect(await tunnelCountOf(fixture.db, account.keyId)).toBe(10);
    expect(await daysOf(fixture.db, account.accountId)).toMatchObject([{ tunnels: 10 }]);
  });

  it('does not count the same tunnel again, even at the limit and under concurrent repeats', async () => {
    const account = await addAccount(fixture.db);
    const edge = await addEdge(fixture);
    const questions = Array.from({ length: 10 }, () => questionOf(edge, account));
    for (const question of questions) await openTunnel(fixture, edge.actor, question);
    const again = await Promise.all(
      [...questions, ...questions].map((question) =>
        openTunnel(fixture, edge.actor, { ...question, session_id: 'ses_2' }),
      ),
    );
    expect(again.every((answer) => answer.ok)).toBe(true);
    expect(await openOf(account)).toBe(10);
    expect(await tunnelCountOf(fixture.db, account.keyId)).toBe(10);
    expect(await entryOf(fixture.db, questions[0]!.tunnel_id)).toMatchObject({ session_id: 'ses_2' });
  });

  it('has no limit for unlimited keys and for plans without a limit', async () => {
    const edge = await addEdge(fixture);
    const free = await addAccount(fixture.db);
    const unlimited = { ...free, ...(await addKey(fixture.db, free.accountId, true)) };
    const payg = await addAccount(fixture.db, 'payg');
    for (const account of [unlimited, payg]) {
      const answers = await Promise.all(
        Array.from({ length: 12 }, () => openTunnel(fixture, edge.actor, questionOf(edge, account))),
      );
      expect(answers.every((answer) => answer.ok)).toBe(true);
    }
    expect(await openTunnel(fixture, edge.actor, questionOf(edge, free))).toMatchObject({ code: 'TUNNEL_PLAN_LIMIT' });
  });

  it('refuses a custom subdomain on a plan without custom subdomains', async () => {
    const edge = await addEdge(fixture);
    const ask = (account: Account) =>
      openTunnel(fixture, edge.actor, questionOf(edge, account, { custom_subdomain: true }));
    expect(await ask(await addAccount(fixture.db))).toMatchObject({ ok: false, code: 'TUNNEL_CUSTOM_SUBDOMAIN' });
    expect(await ask(await addAccount(fixture.db, 'payg'))).toEqual({ ok: true });
  });

  it('refuses a revoked, suspended, unknown, foreign or malformed key or account', async () => {
    const edge = await addEdge(fixture);
    const account = await addAccount(fixture.db);
    const other = await addAccount(fixture.db);
    const suspended = await addAccount(fixture.db);
    const revoked = { ...account, ...(await addKey(fixture.db, account.accountId)) };
    await fixture.db.updateTable('api_keys').set({ status: 'revoked' }).where('id', '=', revoked.keyId).execute();
    await fixture.db.updateTable('users').set({ status: 'suspended' }).where('id', '=', suspended.accountId).execute();
    const codeFor = async (who: Pick<Account, 'accountId' | 'keyId'>) => {
      const answer = await openTunnel(fixture, edge.actor, questionOf(edge, who));
      return answer.ok ? 'ok' : answer.code;
    };
    expect(await codeFor(revoked)).toBe('AUTH_TOKEN_REVOKED');
    expect(await codeFor(suspended)).toBe('ACCOUNT_SUSPENDED');
    expect(await codeFor({ ...account, keyId: other.keyId })).toBe('AUTH_TOKEN_INVALID');
    expect(await codeFor({ ...account, accountId: crypto.randomUUID() })).toBe('AUTH_TOKEN_INVALID');
    expect(await codeFor({ accountId: 'alice', keyId: "';--" })).toBe('AUTH_TOKEN_INVALID');
  });

  it('refuses calls of an ended edge run, and a tunnel ID of another edge', async () => {
    const account = await addAccount(fixture.db);
    const edge = await addEdge(fixture);
    const stranger = await addEdge(fixture);
    const question = questionOf(edge, account);
    await openTunnel(fixture, edge.actor, question);
    await expect(openTunnel(fixture, stranger.actor, { ...question, run_id: stranger.runId })).rejects.toMatchObject({
      code: 'API_BAD_REQUEST',
    });
    await heartbeat(fixture, edge.actor, beatOf('run_next'));
    await expect(openTunnel(fixture, edge.actor, questionOf(edge, account))).rejects.toMatchObject({
      code: 'API_BAD_REQUEST',
    });
  });
});
