// Measures groups: the cost for a public connection to find its member, and for a member to join, report and leave, for different numbers
// of members.

import { InFlight } from '@tunnel/rules/rate';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { Balancer, Lease } from '../../apps/edge/src/routing/balancer.ts';
import { Registry } from '../../apps/edge/src/routing/registry.ts';
import { TunnelGroup } from '../../apps/edge/src/routing/tunnel-group.rules.ts';

const POOLS = [1, 100, 10_000];
const GROUPS = 2000;
const MEMBERS_EACH = 5;
const FIRST_PORT = 20_000;

const KEY_HASH = 'ab'.repeat(32);
const OWNER = { kind: 'account', accountId: 'acc_1' };
const upstream = { isConnected: true };
const balancer = new Balancer({ counts: new InFlight({ perKey: 1000 }), random: Math.random });
const lease = new Lease();

const endpointAt = (port) => ({ kind: 'port', transport: 'tcp', port });

const groupAt = (port) =>
  new TunnelGroup({
    groupId: `grp_${port}`,
    protocol: 'tcp',
    name: `pool-${port}`,
    keyHash: KEY_HASH,
    endpoint: endpointAt(port),
  });

const memberOf = (group, tunnelId) => ({
  tunnelId,
  owner: OWNER,
  group,
  endpoint: { kind: 'member', groupId: group.groupId },
  health: new MemberHealth('tcp'),
  alertWebhook: null,
  http: null,
  upstream,
  counters: { openConnections: 0 },
});

/** Lets a member join and report its first successful probe, like a client. */
function enter(group, member) {
  group.transition({ kind: 'member-joined', member }, 0);
  group.transition({ kind: 'reported-healthy', member }, 0);
  return member;
}

function poolOf(count) {
  const group = groupAt(FIRST_PORT);
  for (let index = 0; index < count; index++) enter(group, memberOf(group, `tun_${index}`));
  return group;
}

function edgeOf(groups, membersEach) {
  const table = new Registry();
  for (let index = 0; index < groups; index++) {
    const group = groupAt(FIRST_PORT + index);
    table.groups.add(group);
    for (let n = 0; n < membersEach; n++) table.add(enter(group, memberOf(group, `tun_${index}_${n}`)));
  }
  return table;
}

/** Prepares the operation at its first run, so that ten thousand members do not affect earlier measurements. */
function repeating(prepare) {
  let operation;
  return (times) => {
    operation ??= prepare();
    for (let done = 0; done < times; done++) if (!operation(done)) throw new Error('nothing was done');
  };
}

/** Acquires and releases a member, like a connection at its start and end. */
function lend(route) {
  const isLent = balancer.acquire(lease, route) === null;
  balancer.release(lease);
  return isLent;
}

const picking = (count) => () => {
  const group = poolOf(count);
  return () => lend(group);
};

let newcomers = 0;

/**
 * Lets a new member join, become healthy and unhealthy, and leave. Ids are never reused, because V8's maps walk past the deleted entries
 * of a key.
 */
function visit(group) {
  newcomers += 1;
  const member = enter(group, memberOf(group, `tun_new_${newcomers}`));
  const report = { kind: 'reported-unhealthy', member, reason: 'connection refused', consecutiveFailures: 3 };
  const [change] = group.transition(report, 1);
  group.transition({ kind: 'member-left', member }, 2);
  return change?.kind === 'health-changed';
}

const visiting = (count) => () => {
  const group = poolOf(count);
  return () => visit(group);
};

const portOf = (done) => FIRST_PORT + ((done * 7919) % GROUPS);

const pickingByPort = () => {
  const table = edgeOf(GROUPS, MEMBERS_EACH);
  return (done) => lend(table.at(endpointAt(portOf(done))));
};

const NO_POLICY = { revision: 0, hash: null, isReturning: false };

/** Returns an operation that also decides which group is meant by name and key. */
const visitingByName = () => {
  const table = edgeOf(GROUPS, MEMBERS_EACH);
  return (done) => {
    const name = `pool-${portOf(done)}`;
    const claim = { protocol: 'tcp', name, keyHash: KEY_HASH, endpoint: endpointAt(0), policy: NO_POLICY };
    const decision = table.groups.decide(claim, OWNER);
    return decision.kind === 'join' && visit(decision.group);
  };
};

const members = (count) => `${count.toLocaleString('en-US')} ${count === 1 ? 'member' : 'members'}`;

export const groupPick = [
  ...POOLS.map((count) => ({ name: `groups: a pick among ${members(count)}`, run: repeating(picking(count)) })),
  { name: `groups: a pick by port among 2,000 groups`, run: repeating(pickingByPort) },
  ...POOLS.map((count) => ({
    name: `groups: join, two reports, leave; ${members(count)}`,
    run: repeating(visiting(count)),
  })),
  { name: `groups: the same by name among 2,000 groups`, run: repeating(visitingByName) },
];
