// Names over the edge link: the snapshot, the changes after the snapshot, and the names available to the operator.

import type { NameSnapshotLine } from '@tunnel/contract';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { NAMES_PAGE } from '../../../services/domains/edge-domains.ts';
import {
  type Account,
  addAccount,
  addEdge,
  type Edge,
  type LinkFixture,
  NOON,
} from '../../../services/edges/link.fixture.ts';
import { ask, DAY_MS, endpointOf, use } from '../../../services/names/names.fixture.ts';
import { listReservations, releaseReservation } from '../../../services/names/reservations.ts';
import { reserve } from '../../../services/names/reserve.ts';
import type { UserActor } from '../../../services/shared/service-context.ts';
import { bearer, createLinkServer, HeardChanges, type LinkServer } from './edge-link.fixture.ts';

let fixture: LinkFixture;
let server: LinkServer;
let stop: () => Promise<void>;
let eu: Edge;
let us: Edge;
let ann: Account;
let user: UserActor;
beforeAll(async () => {
  ({ fixture, server, stop } = await createLinkServer());
  [eu, us] = [await addEdge(fixture, 'eu'), await addEdge(fixture, 'us')];
  await fixture.db.updateTable('edges').set({ tcp_from: 20_000, tcp_to: 20_099 }).execute();
  await fixture.db.updateTable('plans').set({ reserved_limit: null }).execute();
});
beforeEach(async () => {
  fixture.clock.setWallClock(NOON);
  await fixture.db.deleteFrom('names').execute();
  await fixture.db.deleteFrom('tunnel_log').execute();
  ann = await addAccount(fixture.db, 'payg');
  user = { kind: 'user', userId: ann.accountId };
});
afterAll(() => stop());

const snapshotOf = async (edge: Edge): Promise<NameSnapshotLine[]> => {
  const response = await fetch(`${server.url}/names`, { headers: bearer(edge.credential) });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
  const lines = (await response.text()).split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line) as NameSnapshotLine);
};
const subdomain = (label: string) => ({ kind: 'subdomain' as const, label });
const port = (label: string, region_id: string) => ({ kind: 'tcp' as const, label, region_id });

describe('GET /names', () => {
  it("lists all reserved subdomains and the region's ports, after the latest change number", async () => {
    await use(fixture, eu, ann, 'held');
    await reserve(fixture, user, subdomain('shop'));
    await ask(fixture, eu, ann, endpointOf('shop', { group_key_hash: 'red' }));
    await reserve(fixture, user, port('20001', 'eu'));
    await reserve(fixture, user, port('20002', 'us'));
    const own = { account_id: ann.accountId };
    const at = (
      await fixture.db
        .selectFrom('edge_changes')
        .select((of) => of.fn.max('id').as('at'))
        .executeTakeFirst()
    )?.at;
    expect(await snapshotOf(eu)).toEqual([
      { at },
      { kind: 'subdomain', label: 'shop', ...own, group_key_hash: 'red' },
      { kind: 'tcp', label: '20001', ...own, group_key_hash: null },
      { end: true },
    ]);
    expect((await snapshotOf(us))[2]).toMatchObject({ kind: 'tcp', label: '20002' });
  });

  it('is complete across pages, even if the last page is full', async () => {
    await sql`
      insert into names (kind, label, user_id, state)
      select 'subdomain', 'n' || n, ${ann.accountId}::uuid, 'reserved' from generate_series(1, ${2 * NAMES_PAGE}::int) n
    `.execute(fixture.db);
    const lines = await snapshotOf(eu);
    const labels = lines.flatMap((line) => ('label' in line ? [line.label] : []));
    expect([lines.length, new Set(labels).size]).toEqual([2 * NAMES_PAGE + 2, 2 * NAMES_PAGE]);
    expect(lines.at(-1)).toEqual({ end: true });
  });

  it('returns 401 without an edge credential, as does POST /names/check', async () => {
    expect((await fetch(`${server.url}/names`)).status).toBe(401);
    expect((await fetch(`${server.url}/names/check`, { method: 'POST' })).status).toBe(401);
  });
});

it('edges are notified of reserved and released names, but of ports only in their region', async () => {
  const since = (await snapshotOf(eu))[0] as { readonly at: number };
  const inEu = await HeardChanges.from(server.url, eu.credential, since.at);
  const inUs = await HeardChanges.from(server.url, us.credential, since.at);
  try {
    await reserve(fixture, user, port('20001', 'eu'));
    await reserve(fixture, user, subdomain('shop'));
    const named = (change: object) => ('name' in change ? change.name : null);
    const own = { account_id: ann.accountId, group_key_hash: null };
    expect((await inEu.until(2)).map(named)).toEqual([
      { kind: 'tcp', label: '20001', ...own },
      { kind: 'subdomain', label: 'shop', ...own },
    ]);
    // The feed reports the state of a name at the time of reading, so the release must not happen before the read.
    expect((await inUs.until(1)).map(named)).toEqual([{ kind: 'subdomain', label: 'shop', ...own }]);
    const shop = (await listReservations(fixture, user)).find(({ label }) => label === 'shop');
    await releaseReservation(fixture, user, shop?.id ?? '');
    const gone = { kind: 'subdomain', label: 'shop', account_id: null, group_key_hash: null };
    expect((await inEu.until(3)).map(named).at(-1)).toEqual(gone);
    expect((await inUs.until(2)).map(named).at(-1)).toEqual(gone);
  } finally {
    inEu.hangUp();
    inUs.hangUp();
  }
});

describe('POST /names/check', () => {
  const isFree = async (label: string, more = {}): Promise<unknown> => {
    const body = JSON.stringify({ kind: 'subdomain', label, group_key_hash: null, ...more });
    const response = await fetch(`${server.url}/names/check`, { method: 'POST', headers: bearer(eu.credential), body });
    return response.status === 200 ? ((await response.json()) as { free: boolean }).free : response.status;
  };

  it('denies the operator names of accounts, and reserves nothing', async () => {
    expect(await isFree('shop')).toBe(true);
    await use(fixture, eu, ann, 'shop', { group_key_hash: 'red' });
    expect([await isFree('shop'), await isFree('*.shop'), await isFree('shop', { group_key_hash: 'red' })]).toEqual([
      false,
      false,
      true,
    ]);
    await reserve(fixture, user, port('20001', 'us'));
    expect(await isFree('20001', { kind: 'tcp' })).toBe(true);
    await reserve(fixture, user, port('20001', 'eu'));
    expect(await isFree('20001', { kind: 'tcp' })).toBe(false);
    fixture.clock.setWallClock(NOON + 38 * DAY_MS);
    expect(await isFree('shop')).toBe(true);
    expect(await isFree('a\0b')).toBe(400);
  });
});
