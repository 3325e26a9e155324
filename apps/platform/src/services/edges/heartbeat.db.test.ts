import { createLogger } from '@tunnel/runtime';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { closeLostEntries } from '../../jobs/close-lost-entries.ts';
import { announceChange } from '../shared/edge-changes.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { heartbeat } from './heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  beatOf,
  createLinkFixture,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
  questionOf,
} from './link.fixture.ts';

let fixture: LinkFixture;
let account: Account;
let edge: Edge;
const fixtures: LinkFixture[] = [];
beforeEach(async () => {
  // Every test has a separate fixture and clock, because a test would also see the dead edges of earlier tests.
  fixture = await createLinkFixture();
  fixtures.push(fixture);
  account = await addAccount(fixture.db);
  edge = await addEdge(fixture);
});
afterAll(() => Promise.all(fixtures.map((each) => each.close())));

const open = async (by: Edge = edge, at = NOON): Promise<string> => {
  const question = questionOf(by, account, { at });
  expect(await openTunnel(fixture, by.actor, question)).toEqual({ ok: true });
  return question.tunnel_id;
};
const endOf = async (tunnelId: string) => (await entryOf(fixture.db, tunnelId))?.unregistered_at;

describe('a heartbeat', () => {
  it("reports the edge's region and addresses, and returns the latest change number", async () => {
    await fixture.db
      .transaction()
      .execute((trx) => announceChange(trx, { kind: 'account-changed', accountId: account.accountId }));
    const beat = { ...beatOf(edge.runId, 'eu'), api_url: 'https://eu.example', version: '1.2.3' };
    const reach = { control: 'eu.example:4040', control_tls: true, http_url: 'https://eu.example' };
    expect(await heartbeat(fixture, edge.actor, { ...beat, reach })).toEqual({
      edge_id: edge.actor.edgeId,
      last_change: 1,
    });
    const row = await fixture.db.selectFrom('edges').selectAll().where('id', '=', edge.actor.edgeId).executeTakeFirst();
    expect(row).toMatchObject({
      region_id: 'eu',
      api_url: 'https://eu.example',
      api_secret: expect.stringMatching(/^v1\./),
      version: '1.2.3',
      ...reach,
      run_id: edge.runId,
      last_heartbeat_at: new Date(NOON),
    });
    // A dump does not contain the edge's API secret, and the secret decrypts only for this edge.
    const opened = (id: string) => fixture.masterKey().decrypt({ kind: 'edge-api-secret', id }, row?.api_secret ?? '');
    expect(opened(edge.actor.edgeId)).toBe('a-secret-of-this-run');
    expect(() => opened('another')).toThrow('encrypted with a different key');
  });

  it("of a new run closes the previous run's open tunnels at its last heartbeat", async () => {
    const before = await open();
    await fixture.clock.advance(5000);
    await heartbeat(fixture, edge.actor, beatOf(edge.runId));
    const late = await open(edge, NOON + 8000);
    await fixture.clock.advance(20_000);
    await heartbeat(fixture, edge.actor, beatOf('run_2'));
    expect(await endOf(before)).toEqual(new Date(NOON + 5000));
    // A tunnel never ends before it began.
    expect(await endOf(late)).toEqual(new Date(NOON + 8000));
    const now = await open({ ...edge, runId: 'run_2' });
    await heartbeat(fixture, edge.actor, beatOf('run_2'));
    expect(await endOf(now)).toBeNull();
  });

  it('does not affect tunnels of other edges', async () => {
    const other = await addEdge(fixture);
    const theirs = await open(other);
    await heartbeat(fixture, edge.actor, beatOf('run_2'));
    expect(await endOf(theirs)).toBeNull();
  });
});

describe('a silent edge', () => {
  it('has its tunnels closed at its last heartbeat within 60 s, unlike the tunnels of live edges', async () => {
    const living = await addEdge(fixture);
    const lost = await open();
    const stays = await open(living);
    for (let second = 10; second <= 40; second += 10) {
      await fixture.clock.advance(10_000);
      await heartbeat(fixture, living.actor, beatOf(living.runId));
      await closeLostEntries.run(fixture);
      expect(await endOf(lost)).toBeNull();
    }
    await fixture.clock.advance(10_000);
    await closeLostEntries.run(fixture);
    expect(await endOf(lost)).toEqual(new Date(NOON));
    expect(await endOf(stays)).toBeNull();
  });

  it('has its tunnels reopened when the same run sends a heartbeat again', async () => {
    const lost = await open();
    const ended = await open();
    await fixture.db
      .updateTable('tunnel_log')
      .set({ unregistered_at: new Date(NOON) })
      .where('tunnel_id', '=', ended)
      .execute();
    await fixture.clock.advance(50_000);
    await closeLostEntries.run(fixture);
    expect(await endOf(lost)).toEqual(new Date(NOON));
    await heartbeat(fixture, edge.actor, beatOf(edge.runId));
    expect(await endOf(lost)).toBeNull();
    expect(await endOf(ended)).toEqual(new Date(NOON));
  });

  it('loses leftover tunnels of an earlier run even while alive', async () => {
    const stray = await open();
    await fixture.db.updateTable('tunnel_log').set({ run_id: 'run_0' }).where('tunnel_id', '=', stray).execute();
    const own = await open();
    await closeLostEntries.run(fixture);
    expect(await endOf(stray)).toEqual(new Date(NOON));
    expect(await endOf(own)).toBeNull();
  });

  it('is handled by two processes during heartbeats of other edges without conflict', async () => {
    const other = new Database({
      url: fixture.database.url,
      logger: createLogger({ format: 'json', level: 'silent' }),
    });
    const living = await addEdge(fixture);
    const lost = await open();
    await fixture.clock.advance(50_000);
    await Promise.all([
      closeLostEntries.run(fixture),
      closeLostEntries.run({ ...fixture, db: other.db }),
      heartbeat(fixture, living.actor, beatOf(living.runId)),
      heartbeat({ ...fixture, db: other.db }, living.actor, beatOf(living.runId)),
    ]);
    await other.close();
    expect(await endOf(lost)).toEqual(new Date(NOON));
  });
});
