import type { Reservation, UsageRegion } from '@tunnel/contract';
import { describe, expect, it } from 'vitest';
import {
  addressText,
  clientWords,
  hrefOf,
  keptAfterRelease,
  keptAfterUse,
  kindText,
  limitText,
  nameOf,
  reservationOf,
  serverOf,
  sortReservations,
} from './reservations.ts';

const make = (some: Partial<Reservation> = {}): Reservation => ({
  id: 'res-1',
  kind: 'subdomain',
  label: 'shop',
  region_id: null,
  state: 'reserved',
  public_address: 'https://shop.example.com',
  active_tunnels: 0,
  created_at: '2030-01-01T00:00:00.000Z',
  last_used_at: null,
  expires_at: null,
  ...some,
});

const port = (kind: 'tcp' | 'udp', label: string, region_id: string): Reservation =>
  make({
    id: `${kind}-${label}-${region_id}`,
    kind,
    label,
    region_id,
    public_address: `${kind}://${region_id}.example.com:${label}`,
  });

it('a reservation is shown with name, kind and region', () => {
  expect([nameOf(make()), kindText(make())]).toEqual(['shop', 'Name']);
  expect([nameOf(port('tcp', '20042', 'fra')), kindText(port('tcp', '20042', 'fra'))]).toEqual([
    'tcp/20042',
    'TCP port, fra',
  ]);
});

it('the address of a reserved port is host and port', () => {
  expect(addressText(make())).toBe('https://shop.example.com');
  expect(addressText(port('udp', '20153', 'fra'))).toBe('fra.example.com:20153');
});

it('a reservation link exists for names except wildcards, and only with http or https', () => {
  expect(hrefOf(make())).toBe('https://shop.example.com');
  expect(hrefOf(make({ label: '*.shop', public_address: 'https://*.shop.example.com' }))).toBeNull();
  expect(hrefOf(make({ public_address: 'javascript:alert(1)' }))).toBeNull();
  expect(hrefOf(port('tcp', '20042', 'fra'))).toBeNull();
});

it('reserved names are listed apart, and other names by current use and then by last use', () => {
  const list = [
    make({ id: 'old', state: 'held', last_used_at: '2030-01-01T00:00:00.000Z' }),
    make({ id: 'kept' }),
    make({ id: 'new', state: 'released', last_used_at: '2030-01-03T00:00:00.000Z' }),
    make({ id: 'never', state: 'held' }),
    make({ id: 'live', state: 'held', active_tunnels: 1 }),
  ];
  const { reserved, keptForNow } = sortReservations(list);
  expect(reserved.map(({ id }) => id)).toEqual(['kept']);
  expect(keptForNow.map(({ id }) => id)).toEqual(['live', 'new', 'old', 'never']);
});

it('unused random names are folded in any state, and other names stay visible', () => {
  const list = [
    make({ id: 'random', state: 'held', assigned: true }),
    make({ id: 'random-released', state: 'released', assigned: true }),
    make({ id: 'random-live', state: 'held', assigned: true, active_tunnels: 1 }),
    make({ id: 'random-reserved', assigned: true }),
    make({ id: 'chosen', state: 'held', assigned: false }),
    make({ id: 'untold', state: 'held' }),
  ];
  const { reserved, keptForNow, unusedRandom } = sortReservations(list);
  expect(reserved.map(({ id }) => id)).toEqual(['random-reserved']);
  expect(keptForNow.map(({ id }) => id)).toEqual(['random-live', 'chosen', 'untold']);
  expect(unusedRandom.map(({ id }) => id)).toEqual(['random', 'random-released']);
});

it.each([
  [{ state: 'held', hold_seconds: 30 * 86_400, grace_seconds: 7 * 86_400 }, '30 days', '7 days'],
  [{ state: 'held', hold_seconds: 86_400, grace_seconds: 86_400 }, '24 hours', '24 hours'],
  [{ state: 'held', hold_seconds: 36 * 3600, grace_seconds: 0 }, '36 hours', ''],
  [{ state: 'held', hold_seconds: 3600, grace_seconds: 0 }, '1 hour', ''],
  [{ state: 'released', hold_seconds: 30 * 86_400, grace_seconds: 7 * 86_400 }, '7 days', '7 days'],
  [{ state: 'held' }, '', ''],
] as const)('%j is kept %j after the last use and %j after a release', (some, afterUse, afterRelease) => {
  expect([keptAfterUse(make(some)), keptAfterRelease(make(some))]).toEqual([afterUse, afterRelease]);
});

it.each([
  [1, 3, '1 of 3 on your free plan.'],
  [3, 3, '3 of 3 on your free plan. Release a name or port to reserve another.'],
  [5, 3, '5 reserved; your free plan includes 3. Existing reservations stay until you release them.'],
  [5, null, '5 reserved. Your free plan has no limit.'],
])('%i reservations of %j allowed are described as: %s', (reserved, limit, text) => {
  expect(limitText(reserved, 'free', limit)).toBe(text);
});

describe('the reservation that belongs to a tunnel', () => {
  const shop = make();
  const nested = make({ id: 'nested', label: '*.shop', public_address: 'https://*.shop.example.com' });
  const fra = port('tcp', '20042', 'fra');
  const nyc = port('tcp', '20042', 'nyc');
  const list = [shop, nested, fra, nyc, port('udp', '20153', 'fra')];
  it.each([
    ['http', 'shop', 'fra', shop.id],
    ['http', '*.shop', 'fra', nested.id],
    ['http', 'a.shop', 'fra', shop.id],
    ['http', 'workshop', 'fra', undefined],
    ['tcp', '20042', 'nyc', nyc.id],
    ['udp', '20042', 'fra', undefined],
    ['tcp', 'shop.example.com', 'fra', shop.id],
    ['tcp', 'a.shop.example.com', 'fra', shop.id],
    ['tcp', 'other.example.com', 'fra', undefined],
    ['p2p', 'shop', 'fra', undefined],
  ] as const)('is found for %s %s in %s', (protocol, label, region_id, id) => {
    expect(reservationOf({ protocol, label, region_id }, list)?.id).toBe(id);
  });
});

it.each([
  [make(), 'http 3000 --subdomain shop'],
  [make({ label: '*.shop' }), "http 3000 --subdomain '*.shop'"],
  [port('tcp', '20042', 'fra'), 'tcp 22 --remote-port 20042'],
  [port('udp', '20153', 'fra'), 'udp 53 --remote-port 20153'],
])('the client command fits the kind of reservation: row %#', (one, words) => {
  expect(clientWords(one)).toBe(words);
});

it('the client command names the server only for a port when there are several regions', () => {
  const region = (region_id: string): UsageRegion => ({
    region_id,
    name: region_id,
    location: '',
    http_url: '',
    control_tls: true,
    control: `${region_id}.example.com:4040`,
  });
  const fra = region('fra');
  const nyc = region('nyc');
  expect(serverOf(port('tcp', '20042', 'nyc'), [fra, nyc])).toBe(nyc);
  expect(serverOf(port('tcp', '20042', 'fra'), [fra])).toBeUndefined();
  expect(serverOf(make(), [fra, nyc])).toBeUndefined();
});
