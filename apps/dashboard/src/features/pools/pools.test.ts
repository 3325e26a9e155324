import type { UsageRegion } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { makeMember, makePool } from './pool.fixture.ts';
import {
  alertText,
  failureText,
  filterPools,
  mergePools,
  poolAddress,
  readPools,
  servedText,
  sharesOf,
  shareText,
  silentRegions,
} from './pools.ts';

const SILENT = 'region far did not answer: groups in this region are missing';
const namesOf = ({ groups }: { readonly groups: readonly { readonly name: string }[] }) =>
  groups.map(({ name }) => name);

it('groups and members are sorted the same way for any order of the response', () => {
  const early = makeMember({ tunnel_id: 'tun_z', connected_since: '2030-01-01T00:00:00.000Z' });
  const late = makeMember({ tunnel_id: 'tun_a', connected_since: '2030-01-02T00:00:00.000Z' });
  const b = makePool({ name: 'b', members: [late, early] });
  const a = makePool({ name: 'a' });
  const snapshot = readPools({ groups: [b, a], warnings: [] }, 1500);
  expect(namesOf(snapshot)).toEqual(['a', 'b']);
  expect(snapshot.groups[1]?.members).toEqual([early, late]);
  expect(snapshot.at).toBe(1000);
});

it('groups of a region that does not respond stay, with the time of the last response', () => {
  const far = makePool({ name: 'far', region_id: 'far' });
  const near = makePool({ name: 'near', region_id: 'near' });
  const first = readPools({ groups: [far, near], warnings: [] }, 1000);
  const second = mergePools(first, readPools({ groups: [near], warnings: [SILENT] }, 3000));
  const third = mergePools(second, readPools({ groups: [near], warnings: [SILENT] }, 5000));
  expect([namesOf(third), third.staleSince, third.at]).toEqual([['far', 'near'], { far: 1000 }, 5000]);
  const back = mergePools(third, readPools({ groups: [near], warnings: [] }, 7000));
  expect([namesOf(back), back.staleSince]).toEqual([['near'], {}]);
});

it('a group that ended in a responding region disappears at once', () => {
  const first = readPools({ groups: [makePool()], warnings: [] }, 1000);
  expect(mergePools(first, readPools({ groups: [], warnings: [SILENT] }, 3000)).groups).toEqual([]);
});

it('for a region with several edges the latest response replaces the remembered group', () => {
  const before = makePool({ region_id: 'far', total_dispatches: 1 });
  const now = makePool({ region_id: 'far', total_dispatches: 2 });
  const snapshot = mergePools(
    readPools({ groups: [before], warnings: [] }, 1000),
    readPools({ groups: [now], warnings: [SILENT] }, 3000),
  );
  expect(snapshot.groups).toEqual([now]);
});

it('a warning that names no region does not mark a region as silent', () => {
  expect(silentRegions(['something else', SILENT])).toEqual(new Set(['far']));
});

const shop = makePool({ name: 'Shop', region_id: 'fra' });
const db = makePool({
  name: 'db',
  label: '20001',
  protocol: 'tcp',
  region_id: 'nyc',
  members: [makeMember({ tunnel_id: 'tun_Xy', healthy: false })],
});
const found = (text: string, shown: 'all' | 'trouble' = 'all') =>
  filterPools([shop, db], text, shown).map(({ name }) => name);

it.each([
  ['', ['Shop', 'db']],
  ['  shop ', ['Shop']],
  ['2000', ['db']],
  ['TUN_xy', ['db']],
  ['203.0.113.7', ['Shop', 'db']],
  ['tcp nyc', ['db']],
  ['tcp fra', []],
])('the group search %j finds %j', (text, names) => {
  expect(found(text)).toEqual(names);
});

it('the group search finds members by name, computer and address', () => {
  const named = makePool({
    members: [makeMember({ name: 'checkout', client_name: 'Anns-Mac', public_url: 'http://shop.test' })],
  });
  for (const word of ['checkout', 'anns-mac', 'shop.test'])
    expect(filterPools([named, db], word, 'all')).toEqual([named]);
});

it('the address of a group comes from its members, or else from the region and the label', () => {
  const region = { http_url: 'http://localhost:8000' } as UsageRegion;
  expect(poolAddress(shop, region)).toEqual({ text: 'http://shop.localhost:8000', href: 'http://shop.localhost:8000' });
  expect(poolAddress(db, region)).toEqual({ text: 'localhost:20001', href: null });
  expect(poolAddress(db, undefined)).toBeNull();
  const told = makePool({ protocol: 'tcp', members: [makeMember({ public_url: 'tcp://edge.test:20001' })] });
  expect(poolAddress(told, region)).toEqual({ text: 'edge.test:20001', href: null });
});

it('a failing member shows the number of failures and the reason', () => {
  expect(failureText(makeMember())).toBe('no health check has passed yet');
  const failing = { consecutive_failures: 3, last_failure_reason: 'status 500' };
  expect(failureText(makeMember(failing))).toBe('3 failures in a row: status 500');
  expect(failureText(makeMember({ consecutive_failures: 1 }))).toBe('1 failure in a row');
});

it('a member with an alert webhook shows the result of the last alert', () => {
  expect(alertText(undefined)).toBe('with alert');
  expect(alertText({ at: '2030-01-01T00:00:00.000Z', outcome: 'failed' })).toBe('alert not delivered');
});

it('the filter for trouble shows groups with an unhealthy member', () => {
  expect(found('', 'trouble')).toEqual(['db']);
  expect(found('shop', 'trouble')).toEqual([]);
});

const counted = (...counts: number[]) => counts.map((request_count) => ({ request_count }));

it("the share of a member is the fraction of the group's requests", () => {
  expect(sharesOf(counted(30, 10, 0))).toEqual([0.75, 0.25, 0]);
});

it('without requests all shares are zero, and there is no division by zero', () => {
  expect(sharesOf(counted(0, 0))).toEqual([0, 0]);
  expect(sharesOf([])).toEqual([]);
});

it('traffic is counted in requests for http and in connections for tcp', () => {
  expect([servedText(1, 'http'), servedText(1234, 'http')]).toEqual(['1 request', '1,234 requests']);
  expect([servedText(1, 'tcp'), servedText(2, 'tcp')]).toEqual(['1 connection', '2 connections']);
  expect(shareText(0.75, 30, 'tcp')).toBe("75 % of the group's traffic: 30 connections");
});
