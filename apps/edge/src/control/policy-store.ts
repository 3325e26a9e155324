// Policies of an edge. Each distinct policy is compiled and stored once, as long as a tunnel or group uses it. Memory is limited per edge
// and per owner; a tunnel is rejected if its policy does not fit, and never opened without its policy.

import { Fault } from '@tunnel/errors';
import { type CompiledPolicy, canonicalJson, type Policy } from '@tunnel/policy';
import { FairShare } from '@tunnel/rules/rate';
import { ownerKey } from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import type { GroupWatcher } from '../routing/groups.ts';
import type { TunnelWatcher } from '../routing/registry.ts';
import type { BroughtPolicy, PolicyHolder, PolicyKeeper, RoutePolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import { policyWeight } from './policy-weight.rules.ts';

/**
 * Approximate memory for all policies of an edge, as JSON and compiled. Equal policies count once; policies held for a disconnected client
 * are included. Further policies are rejected.
 */
const POLICIES_MAX_BYTES = 256 * 1024 * 1024;
/**
 * Memory for the policies of an account: a quarter of the total. Near the edge's maximum, only accounts below the average can add policies.
 */
export const POLICIES_MAX_BYTES_PER_ACCOUNT = 64 * 1024 * 1024;

interface Kept {
  readonly compiled: CompiledPolicy;
  /** Size of the policy as JSON in bytes. */
  readonly bytes: number;
  /** Approximate memory that the policy takes, in bytes. */
  readonly weight: number;
  /** Owner charged for the policy's memory: one of its owners. */
  payer: string;
  /** Number of holders of the policy per owner, including kept holders of disconnected clients. */
  readonly owners: Map<string, number>;
  /** Number of holders of the policy in use by a tunnel or group. */
  users: number;
  /** Number of the policy's closed holders that wait for a disconnected client. The policy stays in memory until then. */
  awaited: number;
}

export interface PolicyStoreOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly compile: (policy: Policy) => CompiledPolicy;
  /**
   * Called when a policy or route is no longer in use, so that its remembered state can be deleted. The operator's rules store their state
   * under the route.
   */
  readonly onOver?: ((served: object) => void) | undefined;
  /** Memory limits for policies in bytes. Default: POLICIES_MAX_BYTES and POLICIES_MAX_BYTES_PER_ACCOUNT. */
  readonly bytesMax?: number | undefined;
  readonly bytesPerOwner?: number | undefined;
}

/** Route and owner for which a policy's holder is counted. */
interface Held {
  readonly route: RoutePolicy;
  readonly owner: string;
}

/** Closed holder of a policy, kept for a disconnected client. */
interface Awaited {
  readonly hash: string;
  readonly owner: string;
  readonly untilMs: number;
}

export class PolicyStore implements PolicyKeeper, TunnelWatcher, GroupWatcher {
  readonly #options: PolicyStoreOptions;
  /** Stored policies by their hash. */
  readonly #kept = new Map<string, Kept>();
  /** Holders of tunnels and groups with a policy. Holders without a policy are not stored. */
  readonly #held = new Map<PolicyHolder, Held>();
  /** Number of holders per route. A tunnel that registers again briefly has two. */
  readonly #holders = new Map<RoutePolicy, number>();
  /** Kept policy holders of disconnected clients, by expiry. */
  readonly #awaited = new Map<PolicyHolder, Awaited>();
  /** Maps a new holder to the holder it will replace, until its tunnel is listed. */
  readonly #before = new WeakMap<PolicyHolder, PolicyHolder>();
  /** Total size of the policies in use as JSON. */
  #bytes = 0;
  #size = 0;
  /** Shares of the policy memory per owner, for all stored policies. */
  readonly #shares: FairShare;

  constructor(options: PolicyStoreOptions) {
    this.#options = options;
    this.#shares = new FairShare({
      limit: options.bytesMax ?? POLICIES_MAX_BYTES,
      perHolder: options.bytesPerOwner ?? POLICIES_MAX_BYTES_PER_ACCOUNT,
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  /** Total size of the distinct policies in use as JSON, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of distinct policies in use. */
  get size(): number {
    return this.#size;
  }

  hold(brought: BroughtPolicy, before: PolicyHolder | null = null): PolicyHolder {
    const holder: PolicyHolder = { current: null };
    this.#put(holder, this.#use(brought, before?.current ?? null), brought.owner);
    if (before !== null) this.#before.set(holder, before);
    return holder;
  }

  replace(holder: PolicyHolder, brought: BroughtPolicy): void {
    const next = this.#use(brought, holder.current);
    const before = this.#held.get(holder);
    this.#held.delete(holder);
    this.#put(holder, next, brought.owner);
    if (before !== undefined) this.#give(before);
  }

  release(holder: PolicyHolder): void {
    const held = this.#held.get(holder);
    if (held === undefined) return;
    this.#held.delete(holder);
    this.#give(held);
  }

  forget(holder: PolicyHolder): void {
    const awaited = this.#awaited.get(holder);
    if (awaited === undefined) return;
    this.#awaited.delete(holder);
    const kept = this.#kept.get(awaited.hash);
    if (kept === undefined) return;
    kept.awaited -= 1;
    this.#leave(awaited.hash, kept, awaited.owner);
  }

  // ---- the life of routes ----

  /**
   * Releases the holder replaced by a new tunnel. A group's holder is kept, because disconnected members can return to their former group.
   */
  tunnelAdded({ group, policy }: Pick<Tunnel, 'group' | 'policy'>): void {
    const before = this.#before.get(policy);
    this.#before.delete(policy);
    if (group === null && before !== undefined) this.forget(before);
    this.#letGo();
  }

  tunnelRemoved(tunnel: Pick<Tunnel, 'group' | 'policy'>): void {
    if (tunnel.group === null) this.#routeOver(tunnel);
  }

  groupRemoved(group: { readonly policy: PolicyHolder }): void {
    this.#routeOver(group);
  }

  #routeOver(route: { readonly policy: PolicyHolder }): void {
    this.#letGo();
    this.#await(route.policy);
    this.release(route.policy);
    this.#options.onOver?.(route);
  }

  #await(holder: PolicyHolder): void {
    const held = this.#held.get(holder);
    const kept = held === undefined ? undefined : this.#kept.get(held.route.hash);
    if (held === undefined || kept === undefined) return;
    const { owner, route } = held;
    kept.awaited += 1;
    enter(kept, owner);
    this.#awaited.set(holder, {
      hash: route.hash,
      owner,
      untilMs: this.#options.clock.monotonic() + RESUME_WINDOW_MS,
    });
  }

  // ---- what is kept ----

  #use({ policy, services, stamp, owner }: BroughtPolicy, before: RoutePolicy | null): RoutePolicy | null {
    const { revision, hash } = stamp;
    if (policy === null || hash === null) return null;
    const same = before?.hash === hash && before.revision === revision ? before : null;
    const kept = this.#kept.get(hash) ?? this.#keep(hash, policy, owner, same?.compiled);
    if (kept.users === 0) {
      this.#bytes += kept.bytes;
      this.#size += 1;
    }
    kept.users += 1;
    enter(kept, owner);
    const { compiled } = kept;
    const route = same?.compiled === compiled ? same : this.#route(compiled, { revision, hash, services }, same);
    this.#holders.set(route, (this.#holders.get(route) ?? 0) + 1);
    return route;
  }

  #keep(hash: string, policy: Policy, owner: string, compiledBefore: CompiledPolicy | undefined): Kept {
    const text = canonicalJson(policy);
    const weight = policyWeight(text);
    this.#letGo();
    if (this.#shares.refusal(owner, weight) !== null) throw new Fault('POLICY_BUSY');
    // Parsed from JSON again: objects created by the schema library have spare capacity and take about 50 % more memory.
    const kept: Kept = {
      compiled: compiledBefore ?? this.#options.compile(JSON.parse(text) as Policy),
      bytes: Buffer.byteLength(text),
      weight,
      payer: owner,
      owners: new Map(),
      users: 0,
      awaited: 0,
    };
    this.#kept.set(hash, kept);
    this.#shares.take(owner, weight);
    return kept;
  }

  #route(
    compiled: CompiledPolicy,
    facts: Pick<RoutePolicy, 'revision' | 'hash' | 'services'>,
    same: RoutePolicy | null,
  ): RoutePolicy {
    const none = (): number[] => compiled.policy.rules.map(() => 0);
    const counts = same?.counts ?? { matched: none(), answered: none() };
    return { compiled, ...facts, counts };
  }

  #put(holder: PolicyHolder, route: RoutePolicy | null, owner: string): void {
    holder.current = route;
    if (route !== null) this.#held.set(holder, { route, owner });
  }

  #give({ route, owner }: Held): void {
    const kept = this.#kept.get(route.hash);
    if (kept !== undefined) {
      kept.users -= 1;
      if (kept.users === 0) {
        this.#bytes -= kept.bytes;
        this.#size -= 1;
      }
      this.#leave(route.hash, kept, owner);
    }
    const holders = (this.#holders.get(route) ?? 0) - 1;
    if (holders > 0) {
      this.#holders.set(route, holders);
      return;
    }
    this.#holders.delete(route);
    this.#options.onOver?.(route);
  }

  /** Removes a holder (tunnel or group) of a stored policy. */
  #leave(hash: string, kept: Kept, owner: string): void {
    const { owners, weight, payer } = kept;
    const holders = (owners.get(owner) ?? 0) - 1;
    if (holders > 0) owners.set(owner, holders);
    else owners.delete(owner);
    const [next] = owners.keys();
    if (next === undefined) {
      this.#kept.delete(hash);
      this.#shares.give(payer, weight);
    } else if (!owners.has(payer)) {
      // The policy stays in use by another owner, who is charged from now on.
      this.#shares.give(payer, weight);
      this.#shares.take(next, weight);
      kept.payer = next;
    }
  }

  /** Releases kept policy holders after their waiting time. */
  #letGo(): void {
    const now = this.#options.clock.monotonic();
    for (const [holder, { untilMs }] of this.#awaited) {
      if (untilMs > now) return;
      this.forget(holder);
    }
  }
}

const enter = ({ owners }: Kept, owner: string): void => {
  owners.set(owner, (owners.get(owner) ?? 0) + 1);
};
