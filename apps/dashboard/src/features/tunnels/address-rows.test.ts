import { expect, it } from 'vitest';
import { groupByAddress, listRows, liveTunnelsOf } from './address-rows.ts';
import { tunnelEntry } from './tunnel-entry.fixture.ts';

const at = (n: number, url: string, more: Parameters<typeof tunnelEntry>[1] = {}) =>
  tunnelEntry(n, { public_url: url, ...more });
const live = { unregistered_at: null };
const shop = [
  at(9, 'https://shop.test', { ...live, request_count: 4, bytes_proxied: 40 }),
  at(7, 'https://shop.test', { ...live, request_count: 2, bytes_proxied: 2 }),
  at(3, 'https://shop.test', { request_count: 100 }),
] as const;
const blog = at(8, 'https://blog.test', { request_count: 5 });
const oldBlog = at(2, 'https://blog.test', { request_count: 6 });
const entries = [shop[0], shop[1], blog, shop[2], oldBlog];

it('tunnels with the same address share a row, in the order of their first tunnel', () => {
  expect(groupByAddress(entries).map(({ lead, entries: all }) => [lead.id, all.length])).toEqual([
    [shop[0].id, 3],
    [blog.id, 2],
  ]);
});

it('addresses of different protocols have separate rows, and so do tunnels without an address', () => {
  const tcp = tunnelEntry(1, { protocol: 'tcp', public_url: 'tcp://h:20000', label: '20000' });
  const udp = tunnelEntry(2, { protocol: 'udp', public_url: 'udp://h:20000', label: '20000' });
  const nameless = [tunnelEntry(3, { label: '' }), tunnelEntry(4, { label: '' })];
  expect(groupByAddress([tcp, udp, ...nameless])).toHaveLength(4);
});

it('an address row sums its live tunnels, or shows the newest ended tunnel', () => {
  const [first, second] = listRows(groupByAddress(entries), undefined);
  expect(first).toMatchObject({ count: 3, liveCount: 2, requests: 6, bytes: 42, isPart: false });
  expect(second).toMatchObject({ count: 2, liveCount: 0, requests: 5 });
});

it('an expanded address row lists every tunnel of the address', () => {
  const rows = groupByAddress(entries);
  const keys = listRows(rows, rows[0]?.key).map(({ key }) => key);
  expect(keys).toEqual([rows[0]?.key, ...shop.map(({ id }) => id), rows[1]?.key]);
  expect(listRows(rows, 'http https://gone.test')).toHaveLength(2);
  const alone = groupByAddress([blog]);
  expect(listRows(alone, alone[0]?.key)).toHaveLength(1);
});

it('a row of an address and a row of a single tunnel know the live tunnels', () => {
  const rows = groupByAddress(entries);
  expect(liveTunnelsOf(rows, rows[0]?.key ?? '')).toEqual([shop[0], shop[1]]);
  expect(liveTunnelsOf(rows, shop[1].id)).toEqual([shop[1]]);
  expect([liveTunnelsOf(rows, blog.id), liveTunnelsOf(rows, 'gone')]).toEqual([[], []]);
});
