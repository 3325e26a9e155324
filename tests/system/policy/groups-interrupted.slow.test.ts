// Tests of an interrupted policy roll: all sessions are cut, or the edge is killed. Every member comes back, and no visitor is served
// without rules, or by older rules than the rules in force.
import { eventually, FastClock, startRelay } from '@tunnel/testkit';
import { expect } from 'vitest';
import { askHttp } from '../http-tunnels.fixture.ts';
import { itWith } from '../in-process.fixture.ts';
import { GROUPS_ON, RollingMember, RollVisitors, revisionOf } from './rolling-group.fixture.ts';

// Clients wait before they reconnect, and visitors do not. A fast clock shortens the wait.
const it = itWith({ clock: new FastClock(5) });

it('after all sessions break during a policy roll, waiting members come back and follow the new policy', async ({
  harness,
}) => {
  const stack = await harness.stack(GROUPS_ON);
  const reached: string[] = [];
  const closed = (url: string): void => void reached.push(url);
  const relays = [];
  const members: RollingMember[] = [];
  for (let n = 0; n < 3; n += 1) {
    const relay = harness.use(await startRelay({ target: { port: stack.controlPort } }));
    relays.push(relay);
    const server = `127.0.0.1:${relay.port}`;
    members.push(await RollingMember.start(harness, stack, { revision: 1, closed, server }));
    await members[n]?.program.ready();
  }
  const [first, ...waiting] = members as [RollingMember, ...RollingMember[]];
  const visitors = harness.use(new RollVisitors(await first.endpoint(), { floor: 1, mayFail: true }));
  await visitors.more(5);
  await first.roll(2);
  visitors.floor = 2;
  // All sessions break at once, so the group is away for a moment, and the first member to return starts the group again.
  for (let round = 1; round <= 3; round += 1) {
    for (const relay of relays) relay.resetAll();
    for (const { program } of members) {
      expect(await program.waitFor('reconnected', { nth: round })).toMatchObject({ resumed: true });
    }
    await eventually(async () => expect(await stack.tunnels()).toHaveLength(3), { timeoutMs: 30_000 });
    await visitors.more(5);
  }
  for (const member of waiting) await member.roll(2);
  await visitors.more(5);
  await visitors.close();
  expect([visitors.problems, reached]).toEqual([[], []]);
  for (const { program } of members) expect([program.exit, program.events('error')]).toEqual([null, []]);
});

it('after a kill of the edge during a policy roll, no client ends and no visitor is served without a policy', async ({
  harness,
}) => {
  const stack = await harness.stack({ ...GROUPS_ON, fixedPorts: true });
  const reached: string[] = [];
  const closed = (url: string): void => void reached.push(url);
  const members: RollingMember[] = [];
  for (let n = 0; n < 3; n += 1) {
    members.push(await RollingMember.start(harness, stack, { revision: 1, closed }));
    await members[n]?.program.ready();
  }
  const [first, ...waiting] = members as [RollingMember, ...RollingMember[]];
  const endpoint = await first.endpoint();
  // A restarted edge does not remember the group, so a member with the older revision can come back first.
  const visitors = harness.use(new RollVisitors(endpoint, { floor: 1, mayFail: true }));
  await visitors.more(5);
  await first.roll(2);
  await stack.kill();
  await stack.start();
  await eventually(async () => expect(revisionOf(await askHttp(endpoint))).toBe(2), { timeoutMs: 60_000 });
  visitors.floor = 2;
  await visitors.more(5);
  // The waiting members are back, or were refused and retry. Now they also get the new revision.
  for (const member of waiting) {
    member.write(2);
    member.program.signal('SIGHUP');
  }
  await eventually(async () => expect(await stack.tunnels()).toHaveLength(3), { timeoutMs: 60_000 });
  await visitors.more(5);
  await visitors.close();
  expect([visitors.problems, reached]).toEqual([[], []]);
  for (const { program } of members) expect(program.exit).toBeNull();
});
