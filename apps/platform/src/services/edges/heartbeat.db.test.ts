import { createLogger } from '@tunnel/runtime';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { Database } from '../../db/database.ts';
import { closeLostEntries } from '../../jobs/close-lost-entries.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { announceChange } from './changes.ts';
import { heartbeat } from './heartbeat.ts';
import {
  type Account,
  addAccount,
  addEdge,
  beatOf,
  createLinkWorld,
  type Edge,
  entryOf,
  type LinkWorld,
  NOON,
  questionOf,
} from './link.fixture.ts';

let world: LinkWorld;
let account: Account;
let edge: Edge;
const worlds: LinkWorld[] = [];
beforeEach(async () => {
  // Each with a clock of its own: dead edges of one test would be seen by the next.
  world = await createLinkWorld();
  worlds.push(world);
  account = await addAccount(world.db);
  edge = await addEdge(world);
});
afterAll(() => Promise.all(worlds.map((each) => each.close())));

const open = async (by: Edge = edge, at = NOON): Promise<string> => {
  const question = questionOf(by, account, { at });
  expect(await openTunnel(world, by.actor, question)).toEqual({ ok: true });
  return question.tunnel_id;
};
const endOf = async (tunnelId: string) => (await entryOf(world.db, tunnelId))?.unregistered_at;

describe('a heartbeat', () => {
  it('tells where the edge is and how it is reached, and is told the latest change', async () => {
    await world.db
      .transaction()
      .execute((trx) => announceChange(trx, { kind: 'account-changed', accountId: account.accountId }));
    const beat = { ...beatOf(edge.runId, 'eu'), api_url: 'https://eu.example', version: '1.2.3' };
    const reach = { control: 'eu.example:4040', control_tls: true, http_url: 'https://eu.example' };
    expect(await heartbeat(world, edge.actor, { ...beat, reach })).toEqual({
      edge_id: edge.actor.edgeId,
      last_change: 1,
    });
    const row = await world.db.selectFrom('edges').selectAll().where('id', '=', edge.actor.edgeId).executeTakeFirst();
    expect(row).toMatchObject({
      region_id: 'eu',
      api_url: 'https://eu.example',
      api_secret: 'a-secret-of-this-run',
      version: '1.2.3',
      ...reach,
      run_id: edge.runId,
      last_heartbeat_at: new Date(NOON),
    });
  });

  it('of a new run closes what the last run left open, at its last heartbeat', async () => {
    const before = await open();
    await world.clock.advance(5000);
    await heartbeat(world, edge.actor, beatOf(edge.runId));
    const late = await open(edge, NOON + 8000);
    await world.clock.advance(20_000);
    await heartbeat(world, edge.actor, beatOf('run_2'));
    expect(await endOf(before)).toEqual(new Date(NOON + 5000));
    // It ends no earlier than it began.
    expect(await endOf(late)).toEqual(new Date(NOON + 8000));
    const now = await open({ ...edge, runId: 'run_2' });
    await heartbeat(world, edge.actor, beatOf('run_2'));
    expect(await endOf(now)).toBeNull();
  });

  it('touches nothing of other edges', async () => {
    const other = await addEdge(world);
    const theirs = await open(other);
    await heartbeat(world, edge.actor, beatOf('run_2'));
    expect(await endOf(theirs)).toBeNull();
  });
});

describe('an edge that is silent', () => {
  it('has its entries closed at its last heartbeat, within 60 s of it; those of living edges stay', async () => {
    const living = await addEdge(world);
    const [lost, stays] = [await open(), await open(living)];
    for (let second = 10; second <= 40; second += 10) {
      await world.clock.advance(10_000);
      await heartbeat(world, living.actor, beatOf(living.runId));
      await closeLostEntries.run(world);
      expect(await endOf(lost)).toBeNull();
    }
    await world.clock.advance(10_000);
    await closeLostEntries.run(world);
    expect(await endOf(lost)).toEqual(new Date(NOON));
    expect(await endOf(stays)).toBeNull();
  });

  it('has them opened again when the same run is heard again', async () => {
    const [lost, ended] = [await open(), await open()];
    await world.db
      .updateTable('tunnel_log')
      .set({ unregistered_at: new Date(NOON) })
      .where('tunnel_id', '=', ended)
      .execute();
    await world.clock.advance(50_000);
    await closeLostEntries.run(world);
    expect(await endOf(lost)).toEqual(new Date(NOON));
    await heartbeat(world, edge.actor, beatOf(edge.runId));
    expect(await endOf(lost)).toBeNull();
    expect(await endOf(ended)).toEqual(new Date(NOON));
  });

  it('loses what an earlier run has left behind even while it lives', async () => {
    const stray = await open();
    await world.db.updateTable('tunnel_log').set({ run_id: 'run_0' }).where('tunnel_id', '=', stray).execute();
    const own = await open();
    await closeLostEntries.run(world);
    expect(await endOf(stray)).toEqual(new Date(NOON));
    expect(await endOf(own)).toBeNull();
  });

  it('is dealt with once by two processes, while heartbeats of others come in', async () => {
    const other = new Database({ url: world.database.url, logger: createLogger({ format: 'json', level: 'silent' }) });
    const living = await addEdge(world);
    const lost = await open();
    await world.clock.advance(50_000);
    await Promise.all([
      closeLostEntries.run(world),
      closeLostEntries.run({ ...world, db: other.db }),
      heartbeat(world, living.actor, beatOf(living.runId)),
      heartbeat({ ...world, db: other.db }, living.actor, beatOf(living.runId)),
    ]);
    await other.close();
    expect(await endOf(lost)).toEqual(new Date(NOON));
  });
});
