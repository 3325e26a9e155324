// Random registrations, losses and returns of members with random revisions, against the real groups and the real policy store. A group
// never serves a policy older than the last confirmed policy, is never open without its policy, and leaves nothing behind.

import { Fault } from '@tunnel/errors';
import { type CompiledPolicy, type Policy } from '@tunnel/policy';
import { MemberHealth } from '@tunnel/rules/tunnels';
import { createLogger } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { EndpointRegistry } from '../routing/endpoints.ts';
import { GroupDirectory } from '../routing/group-directory.rules.ts';
import { type PolicyStamp } from '../routing/group-policy.rules.ts';
import { Groups } from '../routing/groups.ts';
import type { Registry } from '../routing/registry.ts';
import { type BroughtPolicy, policyOf } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { type TunnelGroup } from '../routing/tunnel-group.rules.ts';
import { PolicyStore } from './policy-store.ts';

const MEMBERS = 4;
const KEY_HASH = 'ab'.repeat(32);

const move = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('register' as const),
      id: fc.nat({ max: MEMBERS - 1 }),
      revision: fc.nat({ max: 5 }),
      variant: fc.constantFrom('a', 'b', null),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('lose' as const), id: fc.nat({ max: MEMBERS - 1 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('return' as const), id: fc.nat({ max: MEMBERS - 1 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('leave' as const), id: fc.nat({ max: MEMBERS - 1 }) }) },
);

interface Client {
  /** Policy stamp of the client’s last successful registration. */
  stamp: PolicyStamp | null;
  tunnel: Tunnel | null;
  state: 'gone' | 'member' | 'lost';
}

const policyFor = ({ hash, revision }: PolicyStamp): Policy | null =>
  hash === null ? null : { login: null, rules: [{ name: `${revision} ${hash}`, deny: 403 }] };

class Stage {
  readonly directory = new GroupDirectory<Tunnel>();
  readonly over: object[] = [];
  readonly clock = new FakeClock();
  readonly store = new PolicyStore({
    clock: this.clock,
    compile: (policy) => ({ policy }) as CompiledPolicy,
    onOver: (served) => void this.over.push(served),
  });
  readonly clients: Client[] = Array.from({ length: MEMBERS }, () => ({ stamp: null, tunnel: null, state: 'gone' }));
  readonly #groups: Groups;

  constructor(kind: 'name' | 'port') {
    const endpoints = {
      names: { openAt: () => {}, reassign: () => {} },
      open: () => Promise.resolve({ kind: 'port', transport: 'tcp', port: 20_000 }),
      close: () => {},
      release: () => {},
    } as unknown as EndpointRegistry;
    this.#groups = new Groups({
      domain: 'edge.test',
      clock: this.clock,
      logger: createLogger({ level: 'silent', format: 'json' }),
      endpoints,
      tunnels: { groups: this.directory } as unknown as Registry,
      policies: this.store,
      watchers: [this.store],
    });
    this.wanted = {
      protocol: kind === 'name' ? 'http' : 'tcp',
      name: 'pool',
      keyHash: KEY_HASH,
      endpoint: kind === 'name' ? { kind, name: 'web' } : { kind, transport: 'tcp' },
    };
  }

  readonly wanted: object;

  get group(): TunnelGroup<Tunnel> | undefined {
    return [...this.directory.values()][0];
  }

  /** Registers a member. Returns the code of the refusal, or null if the member has joined. */
  async register(id: number, stamp: PolicyStamp, isReturning: boolean): Promise<string | null> {
    const client = this.clients[id] as Client;
    const policy: BroughtPolicy = {
      policy: policyFor(stamp),
      services: [],
      owner: 'operator',
      stamp: { ...stamp, isReturning },
    };
    try {
      const joined = await this.#groups.join({
        wanted: this.wanted as never,
        owner: { kind: 'operator' },
        policy,
        former: isReturning ? (client.tunnel?.group ?? null) : null,
        isCurrent: () => true,
        makeMember: (group) => memberOf(group, id),
        onJoined: () => {},
      });
      Object.assign(client, { stamp, tunnel: joined?.tunnel, state: 'member' });
      return null;
    } catch (error) {
      return Fault.from(error).code;
    }
  }

  leave(id: number, state: 'gone' | 'lost'): void {
    const client = this.clients[id] as Client;
    if (client.state === 'member') this.#groups.leave(client.tunnel as Tunnel);
    client.state = state;
  }
}

const memberOf = (group: TunnelGroup<Tunnel>, id: number): Tunnel =>
  ({
    tunnelId: `tun_${id}`,
    owner: { kind: 'operator' },
    group,
    policy: group.policy,
    health: new MemberHealth(null),
    alertWebhook: null,
  }) as unknown as Tunnel;

it.each(['name', 'port'] as const)(
  'a group at a %s never serves an older or missing policy, over random joins, losses and returns',
  async (kind) => {
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 60, size: 'max' }), async (moves) => {
        const stage = new Stage(kind);
        for (const what of moves) {
          const client = stage.clients[what.id] as Client;
          stage.over.length = 0;
          const before = stage.group;
          const stampBefore = before?.policyStamp;
          if (what.do === 'leave') stage.leave(what.id, 'gone');
          else if (what.do === 'lose' && client.state === 'member') stage.leave(what.id, 'lost');
          else if (what.do === 'return' && client.state === 'lost') {
            const { stamp, tunnel } = client;
            // A return is never refused. If the group has ended meanwhile, it restarts with its last policy, or with a newer policy.
            expect(await stage.register(what.id, stamp as PolicyStamp, true)).toBeNull();
            const had = stampBefore ?? tunnel?.group?.policyStamp;
            const newest = Math.max(had?.revision ?? 0, stamp?.revision ?? 0);
            expect(stage.group?.policyStamp.revision).toBe(newest);
            if (had?.revision === newest) expect(stage.group?.policyStamp).toEqual(had);
          } else if (what.do === 'register' && client.state !== 'lost') {
            const { revision, variant } = what;
            const stamp = { revision, hash: variant === null ? null : `${variant}${revision}`.padEnd(64, '0') };
            const refusal = await stage.register(what.id, stamp, false);
            const isSame = stamp.revision === stampBefore?.revision && stamp.hash === stampBefore.hash;
            const mayJoin = stampBefore === undefined || isSame || stamp.revision > stampBefore.revision;
            expect(refusal).toBe(mayJoin ? null : 'GROUP_POLICY_MISMATCH');
            // A confirmed policy is in force.
            if (refusal === null) expect(stage.group?.policyStamp).toEqual(stamp);
          }
          const { group } = stage;
          if (group === undefined) {
            expect([stage.store.size, stage.store.bytes]).toEqual([0, 0]);
            continue;
          }
          const { revision, hash } = group.policyStamp;
          const current = policyOf(group);
          // A group with a policy is never open, and is never under the policy of another stamp.
          expect(current === null).toBe(hash === null);
          if (current !== null) {
            expect(current).toMatchObject({ revision, hash });
            expect(current.compiled.policy).toEqual(policyFor(group.policyStamp));
            // The policy in force has not been reported as ended.
            expect(stage.over).not.toContain(current);
          }
          // The policy in force is never older than the last policy confirmed to a member of the group.
          if (group === before) expect(revision).toBeGreaterThanOrEqual(stampBefore?.revision ?? 0);
          for (const member of group.members()) expect(member.policy).toBe(group.policy);
          expect(stage.store.size).toBe(hash === null ? 0 : 1);
        }
        for (let id = 0; id < MEMBERS; id += 1) stage.leave(id, 'gone');
        expect([stage.group, stage.store.size, stage.store.bytes]).toEqual([undefined, 0, 0]);
      }),
      { numRuns: 75 },
    );
  },
);
