import { eventually, FakeClock } from '@tunnel/testkit';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import {
  createLinkServer,
  HeardChanges,
  type LinkServer,
  startLinkServer,
} from '../../http/routes/edges/edge-link.fixture.ts';
import { cleanUp } from '../../jobs/clean-up.ts';
import { setPlan, suspend } from '../accounts/account-standing.ts';
import { addBilledAccount } from '../billing/billed-account.fixture.ts';
import { setSpendCap } from '../billing/spend-cap.ts';
import { announceChange } from '../shared/edge-changes.ts';
import { ChangeFeed } from './change-feed.ts';
import type { ChangeStream } from './change-stream.ts';
import { revokeCredential } from './credentials.ts';
import { type Account, addAccount, addEdge, type Edge, type LinkFixture, OPERATOR } from './link.fixture.ts';

const isPooled = (inject('testDatabase').pooler ?? null) !== null;

let fixture: LinkFixture;
let server: LinkServer;
let account: Account;
let edge: Edge;
let stop: () => Promise<void>;
const lines: HeardChanges[] = [];
beforeEach(async () => {
  ({ fixture, server, stop } = await createLinkServer());
  account = await addAccount(fixture.db);
  edge = await addEdge(fixture);
});
afterEach(async () => {
  for (const line of lines.splice(0)) line.hangUp();
  await stop();
});

const listen = async (since: number, { url } = server, credential = edge.credential) => {
  const heard = await HeardChanges.from(url, credential, since);
  lines.push(heard);
  return heard;
};
const announce = (keyId: string) =>
  fixture.db
    .transaction()
    .execute((trx) => announceChange(trx, { kind: 'key-revoked', keyId, accountId: account.accountId }));
const alive = (heard: HeardChanges) =>
  eventually(() => expect(heard.all.filter((change) => change.kind === 'alive').length).toBeGreaterThan(0));

describe('the change feed of an edge', () => {
  it('sends changes in order and immediately, with the state at the time of sending', async () => {
    const heard = await listen(0);
    await alive(heard);
    const began = performance.now();
    await setPlan(fixture, OPERATOR, { email: account.email, plan: 'payg' });
    await suspend(fixture, OPERATOR, account.email);
    await announce(account.keyId);
    expect(await heard.until(3)).toEqual([
      {
        kind: 'account-changed',
        id: 1,
        account: {
          account_id: account.accountId,
          plan: 'payg',
          tunnel_limit: null,
          allow_custom_subdomains: true,
        },
      },
      {
        kind: 'account-closed',
        id: 2,
        account_id: account.accountId,
        code: 'ACCOUNT_SUSPENDED',
        message: 'the account is suspended',
      },
      { kind: 'key-revoked', id: 3, key_id: account.keyId, account_id: account.accountId },
    ]);
    // Takes milliseconds on an idle machine.
    expect(performance.now() - began).toBeLessThan(9000);
  });

  it('omits a spend cap closing that no longer applies', async () => {
    const { accountId } = await addBilledAccount(fixture.db, { capCents: 0 });
    const closed = {
      kind: 'account-closed',
      code: 'SPEND_CAP_REACHED',
      message: 'spend cap of $0.00 reached',
    } as const;
    await fixture.db.transaction().execute((trx) => announceChange(trx, { ...closed, accountId }));
    const first = await listen(0);
    expect(await first.until(1)).toEqual([{ ...closed, id: 1, account_id: accountId }]);
    await setSpendCap(fixture, { kind: 'user', userId: accountId }, { spend_cap_cents: null });
    // A late closing would end tunnels opened since then.
    expect(await (await listen(0)).until(1)).toMatchObject([{ kind: 'account-changed', id: 2 }]);
    expect(await first.until(2)).toHaveLength(2);
  });

  it('resumes after a given number without gaps, even at another process', async () => {
    const first = await listen(0);
    await announce(account.keyId);
    const [told] = await first.until(1);
    first.hangUp();
    await sql`
      insert into edge_changes (kind, account_id, key_id)
      select 'key-revoked', ${account.accountId}::uuid, ${account.keyId}::uuid from generate_series(1, 700)
    `.execute(fixture.db);
    const other = await startLinkServer(fixture);
    const here = await listen(told!.id);
    const there = await listen(told!.id, other);
    await announce(account.keyId);
    for (const heard of [here, there]) {
      const news = await heard.until(701);
      expect(news.map((change) => change.id)).toEqual(Array.from({ length: 701 }, (_, i) => i + 2));
    }
    await other.stop();
    await eventually(() => expect(there.ended).toBe(true));
  });

  it('serves an edge that connects while another edge is being looked up', async () => {
    await announce(account.keyId);
    const streams: ChangeStream[] = [];
    let isAsked = false;
    // The second database query is the lookup for the first edge.
    const db = new Proxy(fixture.db, {
      get: (target, key) => {
        if (isAsked && streams.length === 1) open();
        const value: unknown = Reflect.get(target, key, target);
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      },
    });
    const feed = new ChangeFeed({ ...fixture, db, pool: fixture.database.pool });
    const open = (): void => {
      const stream = feed.open(edge.actor.edgeId, 0);
      streams.push(stream);
      void stream.body.pipeTo(new WritableStream());
    };
    open();
    isAsked = true;
    await eventually(() => expect(streams.map(({ cursor }) => cursor)).toEqual([1, 1]));
    await feed.stop();
  });

  it('sends concurrent changes once each, in the order of their numbers', async () => {
    const heard = await listen(0);
    await Promise.all(Array.from({ length: 40 }, () => announce(account.keyId)));
    const news = await heard.until(40);
    expect(news.map((change) => change.id)).toEqual(news.map((change) => change.id).toSorted((a, b) => a - b));
    expect(new Set(news.map((change) => change.id)).size).toBe(40);
  });

  // Behind a pooler the platform has no listening connection.
  it.skipIf(isPooled)('continues after its PostgreSQL connection is cut', async () => {
    const heard = await listen(0);
    await alive(heard);
    const { rows } = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and query ilike 'listen %' and pid <> pg_backend_pid()`.execute(fixture.db);
    expect(rows).toHaveLength(1);
    await announce(account.keyId);
    await heard.until(1);
  });

  it('sends forget if the requested position was deleted or never existed', async () => {
    for (let i = 0; i < 3; i += 1) await announce(account.keyId);
    await sql`update edge_changes set at = now() - interval '8 days'`.execute(fixture.db);
    fixture.clock.setWallClock(Date.now());
    await cleanUp({ audit_days: 0, tunnel_log_days: 0, unverified_user_days: 0 }).run(fixture);
    // The newest change stays, so that the number of the latest change never decreases.
    for (const since of [0, 1, 99]) {
      expect(await (await listen(since)).until(1)).toEqual([{ kind: 'forget', id: 3 }]);
    }
    const heard = await listen(2);
    expect(await heard.until(1)).toMatchObject([{ kind: 'key-revoked', id: 3 }]);
  });

  it("ends when the edge's credential is revoked", async () => {
    const other = await addEdge(fixture);
    const mine = await listen(0);
    const theirs = await listen(0, server, other.credential);
    await alive(mine);
    await revokeCredential(fixture, OPERATOR, edge.actor.edgeId);
    await eventually(() => expect(mine.ended).toBe(true));
    expect(theirs.ended).toBe(false);
    await expect(listen(0)).rejects.toThrow('401');
  });

  it('sends a keep-alive every 10 s without changes', async () => {
    const clock = new FakeClock();
    const slow = await startLinkServer(fixture, { clock });
    const heard = await listen(0, slow);
    await alive(heard);
    for (let signs = 2; signs < 5; signs += 1) {
      await clock.advance(10_000);
      await eventually(() => expect(heard.all).toHaveLength(signs));
    }
    expect(heard.all).toEqual(Array.from({ length: 4 }, () => ({ kind: 'alive', id: 0 })));
    await slow.stop();
  });

  it('is closed if the edge does not read, without queueing further lines', async () => {
    const clock = new FakeClock();
    const slow = await startLinkServer(fixture, { clock });
    const line = slow.feed.open(edge.actor.edgeId, 0);
    // The database responds in real time, whatever the fake clock says.
    await eventually(() => expect(line.checked).toBe(true));
    for (let i = 0; i < 5; i += 1) {
      await announce(account.keyId);
      await clock.advance(10_000);
    }
    const read = await new Response(line.body).text();
    // Only one keep-alive line was waiting, and no further lines were queued.
    expect(read.trim().split('\n')).toHaveLength(1);
    await slow.stop();
  });
});
