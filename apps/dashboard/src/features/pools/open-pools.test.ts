import { expect, it } from 'vitest';
import { choose, FEW_MEMBERS, isOpen, readChosen } from './open-pools.ts';
import { makeMember, makePool } from './pool.fixture.ts';
import { poolKey } from './pools.ts';

const poolOf = (count: number) =>
  makePool({ members: Array.from({ length: count }, (_, index) => makeMember({ tunnel_id: `tun_${index}` })) });

it('small groups are expanded and large groups collapsed until the user chooses otherwise', () => {
  const small = poolOf(FEW_MEMBERS);
  const large = poolOf(FEW_MEMBERS + 1);
  expect([isOpen(small, new Map()), isOpen(large, new Map())]).toEqual([true, false]);
  const key = poolKey(small);
  expect([isOpen(small, new Map([[key, false]])), isOpen(large, new Map([[key, true]]))]).toEqual([false, true]);
});

it('the latest 500 choices of expanded groups are remembered', () => {
  let chosen = readChosen(null);
  for (let index = 0; index < 600; index += 1) chosen = choose(chosen, `pool-${index}`, true);
  chosen = choose(chosen, 'pool-100', false);
  expect(chosen.size).toBe(500);
  expect(['pool-99', 'pool-100', 'pool-599'].map((key) => chosen.get(key))).toEqual([undefined, false, true]);
});

it('invalid stored choices of expanded groups are ignored', () => {
  expect(readChosen('{"a":true,"b":1}')).toEqual(new Map([['a', true]]));
  for (const text of ['nonsense', '[]', 'null', '7']) expect(readChosen(text).size).toBe(0);
});
