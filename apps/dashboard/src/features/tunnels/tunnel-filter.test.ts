import type { TunnelLogEntry } from '@tunnel/contract';
import { expect, it } from 'vitest';
import { tunnelEntry } from './tunnel-entry.fixture.ts';
import { askedProtocol, changeFilter, filterTunnels, isFiltered, readFilter } from './tunnel-filter.ts';

it('the tunnel filter reads known fields from the URL and ignores the rest', () => {
  expect(readFilter({ protocol: 'tcp', state: 'closed' })).toEqual({ protocol: 'tcp', state: 'closed' });
  expect(readFilter({ protocol: 'tls', q: '  shop ' })).toEqual({ protocol: 'tls', q: 'shop' });
  expect(readFilter({ protocol: 'gopher', state: 'all', q: ' ' })).toEqual({});
  expect(readFilter({ protocol: 'all' })).toEqual({});
  expect(readFilter({ q: 'x'.repeat(5000) }).q).toHaveLength(200);
  expect([isFiltered(readFilter({})), isFiltered(readFilter({ q: 'a' }))]).toEqual([false, true]);
});

it('changing a field of the tunnel filter keeps the others', () => {
  expect(changeFilter({ protocol: 'tcp', q: 'a' }, { state: 'active' })).toEqual({
    protocol: 'tcp',
    state: 'active',
    q: 'a',
  });
  expect(changeFilter({ protocol: 'tcp', state: 'active' }, { protocol: 'all' })).toEqual({ state: 'active' });
  expect(changeFilter({ state: 'active', q: 'a' }, { state: 'all', q: '' })).toEqual({});
});

const web = tunnelEntry(1, { public_url: 'https://shop.example.com', name: 'website', client_name: 'Anns-Laptop' });
const db = tunnelEntry(2, { protocol: 'tcp', label: '20001', public_url: 'tcp://example.com:20001' });
const vault = tunnelEntry(3, {
  protocol: 'tcp',
  label: 'vault.example.com',
  public_url: 'tls://vault.example.com:443',
});
const found = (filter: Parameters<typeof filterTunnels>[1]): TunnelLogEntry[] => [
  ...filterTunnels([web, db, vault], filter),
];

it('the filter for tls asks the API for tcp, and separates tls and tcp by URL', () => {
  expect([askedProtocol('tls'), askedProtocol('udp'), askedProtocol(undefined)]).toEqual(['tcp', 'udp', undefined]);
  expect([found({ protocol: 'tls' }), found({ protocol: 'tcp' })]).toEqual([[vault], [db]]);
});

it('the tunnel search finds every word in address, name, computer, protocol or id, in any case', () => {
  expect(found({ q: 'SHOP' })).toEqual([web]);
  expect(found({ q: 'anns website' })).toEqual([web]);
  expect(found({ q: 'website 20001' })).toEqual([]);
  expect(found({ q: 'tls' })).toEqual([vault]);
  expect(found({ q: 'tun_2' })).toEqual([db]);
  expect(found({ q: 'example.com', protocol: 'tcp' })).toEqual([db]);
});
