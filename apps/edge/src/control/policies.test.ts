// Policies over the real control port: accepted and refused policies, the policy of a group, and no moment in which a tunnel is open
// without its policy.
import { canonicalJson, policyHash } from '@tunnel/policy';
import { CAPABILITY } from '@tunnel/protocol';
import { sha256Hex } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { policyOf } from '../routing/route-policy.ts';
import { type ControlFixture, type ControlFixtureOptions, startControl, WINDOW_MS } from './control.fixture.ts';
import { policyWeight } from './policy-weight.rules.ts';
import { RawClient } from './raw-client.fixture.ts';

const WEB = { protocol: 'http', subdomain: 'web' };
const GROUP = { ...WEB, group: 'pool', group_key_hash: '1'.repeat(64) };

/** A policy that denies with the given status. Different statuses give different policies. */
const deny = (status: number) => ({ login: null, rules: [{ name: `deny ${status}`, deny: status }] });
const hashOf = (policy: ReturnType<typeof deny>, services: string[] = []): string =>
  policyHash(policy as never, services, sha256Hex);
const short = (policy: ReturnType<typeof deny>): string => hashOf(policy).slice(0, 8);

let clock: FakeClock;
let fixture: ControlFixture;

const start = async (options: Partial<ControlFixtureOptions> = {}): Promise<void> => {
  clock = new FakeClock();
  fixture = await startControl({ clock, ports: 3, tunnelsPerSession: 5, ...options });
};
beforeEach(() => start());
afterEach(() => fixture.stop());

const enter = async (token = 'alice', resume?: { session_id: string; secret: string }) => {
  const { client, welcome } = await RawClient.enter(fixture.port, token, resume, [CAPABILITY.POLICY]);
  return { client, welcome, claim: { session_id: welcome.session_id, secret: welcome.resume_secret } };
};

const member = async (fields: object) => {
  const { client, claim } = await enter();
  return { client, claim, tunnel: await client.registered({ ...GROUP, ...fields }) };
};

const at = (name: string) => fixture.tunnels.at({ kind: 'name', name });
/** Effect of the current policy on a visitor of the name: the status of the deny rule, or null if every visitor is let in. */
const served = (name = 'web'): number | null => {
  const route = at(name);
  if (route === undefined) throw new Error(`nothing at ${name}`);
  const rule = policyOf(route)?.compiled.policy.rules[0];
  return rule === undefined || !('deny' in rule) ? null : rule.deny;
};

describe('the policy of a single tunnel', () => {
  it('needs the capability, and the response has the hash of policy and services', async () => {
    const { client, welcome } = await enter();
    expect(welcome.capabilities).toEqual([CAPABILITY.POLICY]);
    const services = ['api', 'admin'];
    const answer = await client.registered({ ...WEB, policy: deny(403), services, policy_revision: 4 });
    expect(answer.policy_hash).toBe(hashOf(deny(403), services));
    expect(policyOf(at('web') as never)).toMatchObject({ revision: 4, services, hash: answer.policy_hash });
    expect((await client.registered({ protocol: 'http', subdomain: 'open' })).policy_hash).toBeUndefined();
    expect(served('open')).toBeNull();
  });

  it('opens no tunnel if invalid, and the refusal is permanent', async () => {
    const { client } = await enter();
    const policy = { login: null, rules: [{ allow: true }, { name: 'office', deny: 99 }] };
    const refusal = await client.refused({ ...WEB, policy });
    expect(refusal).toMatchObject({ code: 'POLICY_INVALID', retryable: false });
    expect(refusal.message).toMatch(/^policy rule 2 \(office\): /);
    expect(at('web')).toBeUndefined();
    expect([fixture.policies.size, fixture.backend.asked]).toEqual([0, []]);
    const p2p = { protocol: 'p2p', p2p_name: 'n', p2p_secret_hash: '1'.repeat(64) };
    expect((await client.refused({ ...WEB, policy, protocol: 'https', services: ['a', 'a'] })).message).toBe(
      "services: 'a' is listed twice",
    );
    expect((await client.refused({ ...p2p, policy: deny(403) })).code).toMatch(/^(POLICY_INVALID|TUNNEL_PROTOCOL_)/);
  });

  it('is replaced when the tunnel registers again; a refused policy leaves the old policy in force', async () => {
    const { client } = await enter();
    const { tunnel_id } = await client.registered({ ...WEB, policy: deny(403) });
    const again = { ...WEB, tunnel_id };
    expect((await client.registered({ ...again, policy: deny(404) })).tunnel_id).toBe(tunnel_id);
    expect([served(), fixture.policies.size]).toEqual([404, 1]);
    await client.refused({ ...again, policy: deny(7) });
    expect(served()).toBe(404);
    await client.registered(again);
    expect([served(), fixture.policies.size]).toEqual([null, 0]);
  });

  it('is restored with its counts when the tunnel returns', async () => {
    const { client, claim } = await enter();
    const fields = { ...WEB, policy: deny(403) };
    const { tunnel_id } = await client.registered(fields);
    const counts = policyOf(at('web') as never)?.counts;
    if (counts !== undefined) counts.answered[0] = 5;
    client.ws.terminate();
    await eventually(() => expect([at('web'), fixture.policies.size]).toEqual([undefined, 0]));
    const back = await enter('alice', claim);
    await back.client.registered({ ...fields, tunnel_id });
    expect([served(), policyOf(at('web') as never)?.counts.answered, fixture.policies.size]).toEqual([403, [5], 1]);
  });

  it('is freed when the tunnel ends, for any reason', async () => {
    const { client } = await enter();
    const { tunnel_id } = await client.registered({ ...WEB, policy: deny(403) });
    await client.registered({ protocol: 'http', subdomain: 'b', policy: deny(404) });
    await client.registered({ policy: deny(405) });
    client.send({ type: 'UnregisterTunnel', request_id: 'u', tunnel_id });
    await client.next('TunnelUnregistered');
    expect(fixture.policies.size).toBe(2);
    client.ws.terminate();
    await eventually(() => expect([fixture.policies.size, fixture.policies.bytes]).toEqual([0, 0]));
    await clock.advance(WINDOW_MS);
    expect(fixture.policies.size).toBe(0);
  });

  it('is refused if the edge has no memory left for policies, without affecting existing tunnels', async () => {
    await fixture.stop();
    await start({ policyBytesMax: 1.5 * policyWeight(canonicalJson(deny(403))) });
    const { client } = await enter();
    await client.registered({ ...WEB, policy: deny(403) });
    const other = { protocol: 'http', subdomain: 'b', policy: deny(404) };
    for (const fields of [other, { policy: deny(405) }, { ...GROUP, subdomain: 'c', policy: deny(406) }]) {
      expect(await client.refused(fields)).toMatchObject({ code: 'POLICY_BUSY', retryable: true });
    }
    expect([at('b'), at('c'), served(), fixture.tunnels.size]).toEqual([undefined, undefined, 403, 1]);
    expect((await client.registered({ ...other, policy: deny(403) })).policy_hash).toBe(hashOf(deny(403)));
  });

  it('can name a login provider of this edge, and no other provider', async () => {
    await fixture.stop();
    await start({ loginProviders: ['company'] });
    const { client } = await enter();
    const policy = (provider: string) => ({
      login: { provider, session_secs: 600, trusted_origins: [] },
      rules: [{ auth: { token_header: 'x-tunnel-token', login: { anyone: true } } }],
    });
    await client.registered({ ...WEB, policy: policy('company') });
    expect((await client.refused({ ...WEB, subdomain: 'b', policy: policy('x') })).message).toBe(
      "policy login: provider 'x' is not known to this edge",
    );
  });

  it('on a tcp port includes the PROXY protocol version of the client', async () => {
    const { client } = await enter();
    const { tunnel_id } = await client.registered({ policy: deny(403), proxy_protocol: 'v2' });
    expect(fixture.tunnels.get(tunnel_id)).toMatchObject({ proxyProtocol: 'v2' });
    const refusal = await client.refused({ policy: { login: null, rules: [{ max_body: 10 }] } });
    expect(refusal.message).toBe('policy rule 1: `max_body` is for http tunnels');
  });
});

describe('the policy of a group', () => {
  it.each([
    ['http', GROUP],
    ['tcp', { group: 'pool', group_key_hash: '1'.repeat(64) }],
  ])('of %s comes from the first member, and every other member must have the same policy', async (_, fields) => {
    const first = await enter();
    const { tunnel_id } = await first.client.registered({ ...fields, policy: deny(403) });
    const second = await enter('bob');
    const joined = await second.client.registered({ ...fields, policy: deny(403) });
    expect(joined).toMatchObject({ policy_hash: hashOf(deny(403)), warnings: [] });
    const [one, two] = [tunnel_id, joined.tunnel_id].map((id) => fixture.tunnels.get(id));
    expect(one?.policy).toBe(two?.policy);
    expect(one?.policy).toBe(one?.group?.policy);
    const { client } = await enter();
    const refusal = await client.refused({ ...fields, policy: deny(404) });
    expect(refusal).toMatchObject({
      code: 'GROUP_POLICY_MISMATCH',
      message: `group policy does not match: the group has revision 0 (${short(deny(403))}), this member brings revision 0 (${short(deny(404))})`,
    });
    expect((await client.refused(fields)).message).toContain('this member brings revision 0 (none)');
    expect(one?.group?.memberCount).toBe(2);
  });

  it('is replaced for all members in one step by a higher revision; lower revisions are then refused', async () => {
    const first = await member({ policy: deny(403), policy_revision: 2 });
    const group = fixture.tunnels.get(first.tunnel.tunnel_id)?.group;
    await member({ policy: deny(404), policy_revision: 3, services: ['api'] });
    expect([served(), group?.memberCount, fixture.policies.size]).toEqual([404, 2, 1]);
    expect(policyOf(group as never)).toMatchObject({ revision: 3, services: ['api'] });
    // The first member stays in the group and can update to the new revision later.
    const { client, tunnel } = first;
    const refusal = await client.refused({
      ...GROUP,
      tunnel_id: tunnel.tunnel_id,
      policy: deny(405),
      policy_revision: 2,
    });
    const had = hashOf(deny(404), ['api']).slice(0, 8);
    const brought = short(deny(405));
    expect(refusal.message).toBe(
      `group policy does not match: the group has revision 3 (${had}), this member brings revision 2 (${brought})`,
    );
    expect([served(), group?.memberCount]).toEqual([404, 2]);
    const rolled = { ...GROUP, tunnel_id: tunnel.tunnel_id, policy: deny(404), policy_revision: 3, services: ['api'] };
    expect((await client.registered(rolled)).warnings).toEqual([]);
    expect([served(), group?.memberCount]).toEqual([404, 2]);
  });

  it('is replaced by a member that registers again with a higher revision, under its id', async () => {
    const { client, tunnel } = await member({ policy: deny(403) });
    await member({ policy: deny(403) });
    const { tunnel_id } = tunnel;
    await client.registered({ ...GROUP, tunnel_id, policy: deny(404), policy_revision: 1 });
    expect(served()).toBe(404);
    await client.registered({ ...GROUP, tunnel_id, policy_revision: 2 });
    expect([served(), fixture.policies.size]).toEqual([null, 0]);
    await client.refused({ ...GROUP, tunnel_id, policy: deny(404), policy_revision: 1 });
    expect(served()).toBeNull();
  });

  it('applies to a resuming member with an older revision, which is accepted with a warning', async () => {
    const waiting = await member({ policy: deny(403), policy_revision: 1 });
    const rolled = await member({ policy: deny(404), policy_revision: 2 });
    waiting.client.ws.terminate();
    const group = fixture.tunnels.get(rolled.tunnel.tunnel_id)?.group;
    await eventually(() => expect(group?.memberCount).toBe(1));
    const back = await enter('alice', waiting.claim);
    const { tunnel_id } = waiting.tunnel;
    const answer = await back.client.registered({ ...GROUP, tunnel_id, policy: deny(403), policy_revision: 1 });
    expect([served(), group?.memberCount]).toEqual([404, 2]);
    // The hash in the response is the hash of the policy as sent, which tells the client that the edge has read all of it.
    expect(answer.policy_hash).toBe(hashOf(deny(403)));
    expect(answer.warnings).toEqual([
      `policy: this member brings revision 1 (${short(deny(403))}) but the group's policy applies: revision 2 (${short(deny(404))})`,
    ]);
    // After its return the member is treated like any other member.
    await back.client.refused({ ...GROUP, tunnel_id, policy: deny(405), policy_revision: 1 });
  });

  it('applies to a member with its previous revision and a new local address, which is accepted with a warning', async () => {
    const waiting = { policy: deny(403), policy_revision: 1 };
    const { client, tunnel } = await member(waiting);
    await member({ policy: deny(404), policy_revision: 2 });
    const { tunnel_id } = tunnel;
    const moved = { ...GROUP, tunnel_id, ...waiting, local_addr: '127.0.0.1:4000' };
    expect((await client.registered(moved)).warnings).toEqual([expect.stringContaining('brings revision 1')]);
    expect(served()).toBe(404);
    // The same registration does not admit the member to another group.
    await member({ subdomain: 'other', policy: deny(405), policy_revision: 2 });
    await client.refused({ ...moved, subdomain: 'other' });
    // After a newer policy, the member cannot go back to its older policy.
    await client.registered({ ...GROUP, tunnel_id, policy: deny(404), policy_revision: 2 });
    await client.refused(moved);
    expect(served()).toBe(404);
  });

  it('applies to a resuming member with an older revision, even if the old connection was still open', async () => {
    const waiting = await member({ policy: deny(403), policy_revision: 1 });
    await member({ policy: deny(404), policy_revision: 2 });
    const back = await enter('alice', waiting.claim);
    await back.client.registered({
      ...GROUP,
      tunnel_id: waiting.tunnel.tunnel_id,
      policy: deny(403),
      policy_revision: 1,
    });
    expect(served()).toBe(404);
  });

  it('is restored after all members were away, even if a member with an older revision returns first', async () => {
    const waiting = await member({ policy: deny(403), policy_revision: 1 });
    const rolled = await member({ policy: deny(404), policy_revision: 2 });
    for (const { client } of [waiting, rolled]) client.ws.terminate();
    await eventually(() => expect([at('web'), fixture.policies.size]).toEqual([undefined, 0]));
    const back = await enter('alice', waiting.claim);
    const older = { policy: deny(403), policy_revision: 1, tunnel_id: waiting.tunnel.tunnel_id };
    await back.client.registered({ ...GROUP, ...older });
    expect(served()).toBe(404);
    const other = await enter('alice', rolled.claim);
    const newer = { policy: deny(404), policy_revision: 2, tunnel_id: rolled.tunnel.tunnel_id };
    expect((await other.client.registered({ ...GROUP, ...newer })).warnings).toEqual([]);
    expect([served(), fixture.policies.size]).toEqual([404, 1]);
  });

  it('is not revealed to a client with another group key or another protocol', async () => {
    await member({ policy: deny(403), policy_revision: 3 });
    const { client } = await enter();
    const fields = { ...GROUP, policy: deny(404), policy_revision: 9 };
    expect((await client.refused({ ...fields, group_key_hash: '2'.repeat(64) })).message).toBe(
      'group key does not match',
    );
    expect((await client.refused({ ...fields, protocol: 'https' })).message).toBe('group protocol does not match');
    expect(served()).toBe(403);
  });

  it('is required of an older client, which can join only groups without a policy', async () => {
    const { client, welcome } = await RawClient.enter(fixture.port, 'alice', undefined, []);
    expect(welcome.capabilities).toBeUndefined();
    for (const fields of [{}, { protocol: 'http', subdomain: 'old' }, { ...GROUP, subdomain: 'old-pool' }]) {
      const answer = await client.registered(fields);
      expect([answer.policy_hash, answer.warnings]).toEqual([undefined, []]);
    }
    expect([served('old'), served('old-pool'), fixture.policies.size]).toEqual([null, null, 0]);
    await member({ policy: deny(403) });
    expect((await client.refused(GROUP)).message).toContain('this member brings revision 0 (none)');
    // In the other direction, a newer member can give the older client’s group a policy: the edge applies it for every member.
    await member({ subdomain: 'old-pool', policy: deny(404), policy_revision: 1 });
    expect(served('old-pool')).toBe(404);
  });

  it('is freed with the last member', async () => {
    const members = [await member({ policy: deny(403) }), await member({ policy: deny(403) })];
    for (const { client } of members) {
      expect(fixture.policies.size).toBe(1);
      client.send({ type: 'ShuttingDown', reason: 'done', drain_secs: 0 });
      await client.settle();
    }
    expect(fixture.policies.size).toBe(0);
  });

  it('is the highest of ten revisions registered at the same time', async () => {
    const clients = await Promise.all(Array.from({ length: 10 }, () => enter()));
    const answers = await Promise.all(
      clients.map(async ({ client }, revision) => {
        client.register({ ...GROUP, policy: deny(400 + revision), policy_revision: revision });
        await eventually(() => expect(client.heard.length).toBeGreaterThan(0));
        return client.heard[0]?.type;
      }),
    );
    expect([served(), fixture.policies.size]).toEqual([409, 1]);
    expect(answers[9]).toBe('TunnelRegistered');
  });
});
