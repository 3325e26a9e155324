import { expect, it } from 'vitest';
import { makeMember, makePool } from './pool.fixture.ts';
import { followPools, readPools, silentRegions } from './pools-seen.ts';

const SILENT = 'region far did not answer: its pools are missing here';
const namesOf = ({ groups }: { readonly groups: readonly { readonly name: string }[] }) =>
  groups.map(({ name }) => name);

it('pools and members have one order, whatever the order of the answer', () => {
  const early = makeMember({ tunnel_id: 'tun_z', connected_since: '2030-01-01T00:00:00.000Z' });
  const late = makeMember({ tunnel_id: 'tun_a', connected_since: '2030-01-02T00:00:00.000Z' });
  const [b, a] = [makePool({ name: 'b', members: [late, early] }), makePool({ name: 'a' })];
  const seen = readPools({ groups: [b, a], warnings: [] }, 1500);
  expect(namesOf(seen)).toEqual(['a', 'b']);
  expect(seen.groups[1]?.members).toEqual([early, late]);
  expect(seen.at).toBe(1000);
});

it('a region that does not answer keeps its pools, with the time of its last answer', () => {
  const far = makePool({ name: 'far', region_id: 'far' });
  const near = makePool({ name: 'near', region_id: 'near' });
  const first = readPools({ groups: [far, near], warnings: [] }, 1000);
  const second = followPools(first, readPools({ groups: [near], warnings: [SILENT] }, 3000));
  const third = followPools(second, readPools({ groups: [near], warnings: [SILENT] }, 5000));
  expect([namesOf(third), third.oldSince, third.at]).toEqual([['far', 'near'], { far: 1000 }, 5000]);
  const back = followPools(third, readPools({ groups: [near], warnings: [] }, 7000));
  expect([namesOf(back), back.oldSince]).toEqual([['near'], {}]);
});

it('a pool that has ended in a region that answers is gone at once', () => {
  const first = readPools({ groups: [makePool()], warnings: [] }, 1000);
  expect(followPools(first, readPools({ groups: [], warnings: [SILENT] }, 3000)).groups).toEqual([]);
});

it('of a region with several edges what was answered is newer than what is remembered', () => {
  const before = makePool({ region_id: 'far', total_dispatches: 1 });
  const now = makePool({ region_id: 'far', total_dispatches: 2 });
  const seen = followPools(
    readPools({ groups: [before], warnings: [] }, 1000),
    readPools({ groups: [now], warnings: [SILENT] }, 3000),
  );
  expect(seen.groups).toEqual([now]);
});

it('warnings that name no region are words alone', () => {
  expect(silentRegions(['something else', SILENT])).toEqual(new Set(['far']));
});
