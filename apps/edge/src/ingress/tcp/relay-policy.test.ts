// Policy rules for visitors of TCP tunnels, applied when the edge accepts a connection and before it asks a member. Also, the public
// address in OPEN for clients that need it.
import { hostPort } from '@tunnel/rules/net';
import { eventually } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { holderOf, testGate } from '../../policy/policy.fixture.ts';
import type { PolicyHolder } from '../../routing/route-policy.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import { echoing, endOf, expectOver, type Member, newGroup, RelayStage } from './relay.fixture.ts';

const stage = new RelayStage();
afterEach(() => stage.clear());

const under = (member: Member, policy: PolicyHolder): Tunnel => Object.assign(member.tunnel, { policy });

it('a denied visitor is reset, reaches no client and counts for no tunnel', async () => {
  const member = await stage.startMember(echoing);
  const policies = testGate();
  const stand = await stage.startRelay(under(member, holderOf({ allow_addresses: ['192.0.2.0/24'] })), { policies });
  for (let n = 0; n < 3; n += 1) expect(await endOf(stand.visit())).toBe('ECONNRESET');
  expect([stand.relay.totals.refused.get('policy'), member.heads, member.tunnel.counters.requests]).toEqual([3, [], 0]);
  expect([...policies.answers.values()]).toEqual([{ action: 'allow_addresses', status: 403, count: 3 }]);
  await expectOver(stand, [member]);
});

it('a rate limit accepts its number of connections and resets the next', async () => {
  const member = await stage.startMember(echoing);
  const policy = holderOf({ rate_limit: { requests: 2, per_secs: 3600, burst: 2, by: 'address' } });
  const stand = await stage.startRelay(under(member, policy), { policies: testGate() });
  const served = [stand.visit(), stand.visit()];
  for (const socket of served) socket.write('hello');
  await eventually(() => expect(member.heads).toHaveLength(2));
  expect(await endOf(stand.visit())).toBe('ECONNRESET');
});

it('OPEN has the public address that the visitor reached if the client writes the PROXY protocol', async () => {
  const member = await stage.startMember(echoing, { proxyProtocol: 'v2' });
  const stand = await stage.startRelay(member.tunnel);
  stand.visit().write('hello');
  await eventually(() => expect(member.heads).toHaveLength(1));
  const [head] = member.heads;
  expect(head).toMatchObject({
    visitor: hostPort('127.0.0.1', stand.visitorPorts[0] ?? 0),
    publicAddress: hostPort('127.0.0.1', stand.port),
  });
});

it('in a group, only members that write the PROXY protocol get the public address', async () => {
  const group = newGroup();
  const plain = await stage.startMember(echoing, { group, tunnelId: 'tun_1' });
  const proxied = await stage.startMember(echoing, { group, tunnelId: 'tun_2', proxyProtocol: 'v1' });
  let next = 0;
  const stand = await stage.startRelay(group, { random: () => (next++ % 2) / 2 });
  for (let n = 0; n < 4; n += 1) stand.visit().write('hello');
  await eventually(() => expect(plain.heads.length + proxied.heads.length).toBe(4));
  expect(plain.heads.map(({ publicAddress }) => publicAddress)).toEqual(plain.heads.map(() => undefined));
  expect(proxied.heads.map(({ publicAddress }) => publicAddress)).toEqual(
    proxied.heads.map(() => hostPort('127.0.0.1', stand.port)),
  );
  expect(proxied.heads.length).toBeGreaterThan(0);
});
