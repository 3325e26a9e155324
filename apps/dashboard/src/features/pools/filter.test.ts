import { expect, it } from 'vitest';
import { filterPools } from './filter.ts';
import { makeMember, makePool } from './pool.fixture.ts';

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
])('%j finds %j', (text, names) => {
  expect(found(text)).toEqual(names);
});

it('trouble: those with a member that is not healthy', () => {
  expect(found('', 'trouble')).toEqual(['db']);
  expect(found('shop', 'trouble')).toEqual([]);
});
