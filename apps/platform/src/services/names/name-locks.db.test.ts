// Deadlock tests: edges report the same names at the same time, as after an outage, while accounts open, reserve and release the names.
import { randomId } from '@tunnel/runtime';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import {
  type Account,
  addEdge,
  createLinkFixture,
  type Edge,
  entryOf,
  type LinkFixture,
  NOON,
} from '../edges/link.fixture.ts';
import { beginWithNoNames, closedAt, endpointOf, nameOf, openedAt, tell } from './names.fixture.ts';

let fixture: LinkFixture;
let eu: Edge;
let us: Edge;
let ann: Account;
beforeAll(async () => {
  fixture = await createLinkFixture();
  [eu, us] = [await addEdge(fixture, 'eu'), await addEdge(fixture, 'us')];
});
beforeEach(async () => {
  [ann] = await beginWithNoNames(fixture);
});
afterAll(() => fixture.close());

const opened = (edge: Edge, label: string, tunnelId = randomId('tun')) =>
  openedAt(fixture, edge, ann, tunnelId, label, endpointOf(label, { asked: false }));

it('two batches lock names in one order, by the deciding name, without a deadlock', async () => {
  const names = Array.from({ length: 12 }, (_, index) => `n${index}`);
  for (let round = 0; round < 15; round += 1) {
    await fixture.db.deleteFrom('names').execute();
    // Nested names: sorted as text, their order is the reverse of the order of the deciding names.
    const up = names.map((name, index) => opened(eu, `a${10 + index}.${name}-${round}`));
    const down = names.map((name, index) => opened(us, `a${40 - index}.${name}-${round}`));
    await expect(Promise.all([tell(fixture, eu, up), tell(fixture, us, down)])).resolves.toBeDefined();
  }
});

it('batches with ended and opened tunnels lock names in one order, without a deadlock', async () => {
  const names = Array.from({ length: 8 }, (_, index) => `m${index}`);
  for (let round = 0; round < 15; round += 1) {
    const open = async (edge: Edge, of: readonly string[]) => {
      const ids = of.map(() => randomId('tun'));
      await tell(
        fixture,
        edge,
        of.map((name, index) => opened(edge, name, ids[index])),
      );
      return ids;
    };
    const first = names.slice(0, 4);
    const second = names.slice(4);
    const hers = await open(eu, first);
    const theirs = await open(us, second);
    fixture.clock.setWallClock(NOON + round * 1000);
    // The batches cross: an edge ends its tunnels on the names on which the second edge opens tunnels.
    await expect(
      Promise.all([
        tell(fixture, eu, [...hers.map((id) => closedAt(fixture, id)), ...second.map((name) => opened(eu, name))]),
        tell(fixture, us, [...theirs.map((id) => closedAt(fixture, id)), ...first.map((name) => opened(us, name))]),
      ]),
    ).resolves.toBeDefined();
    for (const id of [...hers, ...theirs]) expect((await entryOf(fixture.db, id))?.unregistered_at).not.toBeNull();
    expect(await nameOf(fixture, 'm0')).toMatchObject({ user_id: ann.accountId });
  }
});
