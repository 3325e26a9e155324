import type { OwnDomainView, TunnelLogEntry } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { NAV_PAGES } from './nav-pages.ts';
import { paletteEntries, rankEntries, selectedIndex } from './palette-entries.ts';

const tunnel = (label: string, some: Partial<TunnelLogEntry> = {}): TunnelLogEntry => ({
  id: label,
  tunnel_id: `tun_${label}`,
  protocol: 'http',
  label,
  public_url: `http://${label}.localhost:8000`,
  registered_at: '2030-01-01T00:00:00.000Z',
  unregistered_at: null,
  region_id: 'local',
  request_count: 0,
  bytes_proxied: 0,
  ...some,
});
const domain = (name: string): OwnDomainView => ({ id: name, name }) as OwnDomainView;

const found = (text: string, tunnels: readonly TunnelLogEntry[] = [], domains: readonly OwnDomainView[] = []) =>
  rankEntries(paletteEntries(NAV_PAGES, tunnels, domains), text).map(({ label }) => label);

it('the command palette without a text lists all pages, then tunnels, then domains', () => {
  const all = found(' ', [tunnel('web')], [domain('shop.example.com')]);
  expect(all.slice(0, NAV_PAGES.length)).toEqual(NAV_PAGES.map(({ label }) => label));
  expect(all.slice(NAV_PAGES.length)).toEqual(['web.localhost:8000', 'shop.example.com']);
});

it('the command palette ranks labels that start with the text first, then word starts, then other matches', () => {
  const tunnels = [tunnel('oakey'), tunnel('my-key'), tunnel('keyring')];
  expect(found('key', tunnels)).toEqual([
    'Keys',
    'keyring.localhost:8000',
    'my-key.localhost:8000',
    'oakey.localhost:8000',
  ]);
});

it('the command palette requires every word in any case, and also finds computers and tunnel ids', () => {
  const tunnels = [tunnel('web', { client_name: 'Laptop of Ann' }), tunnel('api', { client_name: 'server' })];
  expect(found('LAPTOP web', tunnels)).toEqual(['web.localhost:8000']);
  expect(found('tun_api', tunnels)).toEqual(['api.localhost:8000']);
  expect(found('laptop api', tunnels)).toEqual([]);
  expect(found('[.*(', tunnels)).toEqual([]);
});

it('when the selected palette entry disappears, its neighbor is selected', () => {
  const entries = paletteEntries([], [tunnel('a'), tunnel('b'), tunnel('c')], []);
  const [a, b, c] = entries;
  if (a === undefined || b === undefined || c === undefined) throw new Error('three entries');
  expect(selectedIndex(entries, null)).toBe(0);
  expect(selectedIndex(entries, { id: b.id, index: 1 })).toBe(1);
  expect(selectedIndex([b, c], { id: b.id, index: 1 })).toBe(0);
  expect(selectedIndex([a, c], { id: b.id, index: 1 })).toBe(1);
  expect(selectedIndex([a], { id: c.id, index: 2 })).toBe(0);
  expect(selectedIndex([], { id: c.id, index: 2 })).toBe(-1);
});
