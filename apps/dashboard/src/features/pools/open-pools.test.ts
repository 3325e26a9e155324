import { expect, it } from 'vitest';
import { choose, FEW_MEMBERS, isOpen, readChosen } from './open-pools.ts';
import { makeMember, makePool } from './pool.fixture.ts';
import { poolKey } from './pools.ts';

const poolOf = (count: number) =>
  makePool({ members: Array.from({ length: count }, (_, index) => makeMember({ tunnel_id: `tun_${index}` })) });

it('small pools are open, large ones closed, until somebody chooses', () => {
  const [small, large] = [poolOf(FEW_MEMBERS), poolOf(FEW_MEMBERS + 1)];
  expect([isOpen(small, {}), isOpen(large, {})]).toEqual([true, false]);
  const key = poolKey(small);
  expect([isOpen(small, { [key]: false }), isOpen(large, { [key]: true })]).toEqual([false, true]);
});

it('remembers a bounded number of choices, the newest', () => {
  let chosen = readChosen(null);
  for (let index = 0; index < 600; index += 1) chosen = choose(chosen, `pool-${index}`, true);
  chosen = choose(chosen, 'pool-100', false);
  expect(Object.keys(chosen)).toHaveLength(500);
  expect([chosen['pool-99'], chosen['pool-100'], chosen['pool-599']]).toEqual([undefined, false, true]);
});

it('what was stored by something else is nothing', () => {
  expect([readChosen('{"a":true,"b":1}'), readChosen('nonsense'), readChosen('[]'), readChosen('null')]).toEqual([
    { a: true },
    {},
    {},
    {},
  ]);
});
