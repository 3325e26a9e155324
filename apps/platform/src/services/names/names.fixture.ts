// Edges that request names, and the resulting rows, without HTTP. For tests only.
import type { TunnelAnswer, TunnelQuestion, WantedNameEndpoint } from '@tunnel/contract';
import { randomId } from '@tunnel/runtime';
import {
  type Account,
  addAccount,
  type Edge,
  type LinkFixture,
  NOON,
  openedOf,
  questionOf,
} from '../edges/link.fixture.ts';
import { openTunnel } from '../tunnels/open-tunnel.ts';
import { storeRecords } from '../tunnels/store-records.ts';

export const DAY_MS = 24 * 60 * 60 * 1000;

/** Resets the state before a test: the clock shows noon, all names are free, and two new accounts exist. */
export const beginWithNoNames = async ({ clock, db }: LinkFixture): Promise<readonly [Account, Account]> => {
  clock.setWallClock(NOON);
  await db.deleteFrom('names').execute();
  await db.deleteFrom('tunnel_log').execute();
  return [await addAccount(db, 'payg'), await addAccount(db, 'payg')];
};

export const endpointOf = (label: string | null, more: Partial<WantedNameEndpoint> = {}): WantedNameEndpoint => ({
  kind: 'subdomain',
  label,
  asked: true,
  group_key_hash: null,
  joins_group: false,
  ...more,
});

export interface Asked {
  readonly answer: TunnelAnswer;
  readonly tunnelId: string;
}

export const ask = async (
  fixture: LinkFixture,
  edge: Edge,
  account: Account,
  endpoint: WantedNameEndpoint,
  more: Partial<TunnelQuestion> = {},
): Promise<Asked> => {
  const question = questionOf(edge, account, { endpoint, at: fixture.clock.now(), ...more });
  return { answer: await openTunnel(fixture, edge.actor, question), tunnelId: question.tunnel_id };
};

/** Stores an edge's records about opened or closed tunnels. */
export const tell = async (fixture: LinkFixture, edge: Edge, records: readonly object[]): Promise<void> => {
  const batch = { run_id: edge.runId, journal_id: randomId('jrn'), first: 1, records: [...records] as never[] };
  await storeRecords(fixture, edge.actor, batch);
};

export const openedAt = (
  fixture: LinkFixture,
  edge: Edge,
  account: Account,
  tunnelId: string,
  label: string,
  endpoint?: WantedNameEndpoint,
): object => ({ ...openedOf(edge, account, tunnelId, fixture.clock.now()), label, endpoint });

export const closedAt = (fixture: LinkFixture, tunnelId: string, abandoned = false): object => ({
  kind: 'closed',
  tunnel_id: tunnelId,
  at: fixture.clock.now(),
  abandoned,
});

export const nameOf = (fixture: LinkFixture, label: string) =>
  fixture.db.selectFrom('names').selectAll().where('label', '=', label).executeTakeFirst();

/** Opens and closes a tunnel on the name. */
export const use = async (
  fixture: LinkFixture,
  edge: Edge,
  account: Account,
  label: string,
  more: Partial<WantedNameEndpoint> = {},
): Promise<void> => {
  const { answer, tunnelId } = await ask(fixture, edge, account, endpointOf(label, more));
  if (!answer.ok) throw new Error(answer.message);
  await tell(fixture, edge, [openedAt(fixture, edge, account, tunnelId, label), closedAt(fixture, tunnelId)]);
};
