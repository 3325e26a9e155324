// The policies of an edge: each distinct one is compiled and kept once, as long as a tunnel or a group is served under it. All of them
// together are bounded, and so is what one owner brings; what finds no room is refused, never left out.

import { Fault } from '@tunnel/errors';
import { type CompiledPolicy, canonicalJson, type Policy } from '@tunnel/policy';
import { Shares } from '@tunnel/rules/rate';
import { ownerKey } from '@tunnel/rules/tunnels';
import type { Clock } from '@tunnel/runtime';
import type { GroupWatcher } from '../routing/groups.ts';
import type { TunnelWatcher } from '../routing/registry.ts';
import type { BroughtPolicy, PolicyHolder, PolicyKeeper, RoutePolicy } from '../routing/route-policy.ts';
import type { Tunnel } from '../routing/tunnel.ts';
import { RESUME_WINDOW_MS } from './limits.ts';
import { policyWeight } from './policy-weight.rules.ts';

/** about what all policies of an edge take of its memory, as JSON and made ready, equal ones once, with those that a lost client may come back to; further ones are refused */
const POLICIES_MAX_BYTES = 256 * 1024 * 1024;
/** of it what one account’s may take: a quarter; nearly at the bound of the edge, those go on who have less than the mean */
export const POLICIES_MAX_BYTES_PER_ACCOUNT = 64 * 1024 * 1024;

interface Kept {
  readonly compiled: CompiledPolicy;
  /** As JSON. */
  readonly bytes: number;
  /** About what it takes of the memory. */
  readonly weight: number;
  /** Whose share that is: of one of its owners. */
  payer: string;
  /** Holders of each owner, those that are waited for with the others. */
  readonly owners: Map<string, number>;
  /** Holders that are served under it. */
  users: number;
  /** Holders whose route is over, and to which a client that was lost may come back: until then it takes its room. */
  awaited: number;
}

export interface PolicyStoreOptions {
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly compile: (policy: Policy) => CompiledPolicy;
  /**
   * What a route was served under is over, and what is remembered for it can go: its policy, or the route itself, under which the
   * operator's rules remember.
   */
  readonly onOver?: ((served: object) => void) | undefined;
  /** As in the limits unless said otherwise. */
  readonly bytesMax?: number | undefined;
  readonly bytesPerOwner?: number | undefined;
}

/** What a holder counts for. */
interface Held {
  readonly route: RoutePolicy;
  readonly owner: string;
}

/** Of a holder whose route is over. */
interface Awaited {
  readonly hash: string;
  readonly owner: string;
  readonly untilMs: number;
}

export class PolicyStore implements PolicyKeeper, TunnelWatcher, GroupWatcher {
  readonly #given: PolicyStoreOptions;
  /** By hash. */
  readonly #kept = new Map<string, Kept>();
  /** Those without a policy are not here. */
  readonly #held = new Map<PolicyHolder, Held>();
  /** Holders of each: a tunnel that registers again has two for a moment. */
  readonly #holders = new Map<RoutePolicy, number>();
  /** The first to go first. */
  readonly #awaited = new Map<PolicyHolder, Awaited>();
  /** Whose place one takes, until it has it. */
  readonly #before = new WeakMap<PolicyHolder, PolicyHolder>();
  /** Of those that tunnels are served under. */
  #bytes = 0;
  #size = 0;
  /** Weights of all that are kept. */
  readonly #shares: Shares;

  constructor(options: PolicyStoreOptions) {
    this.#given = options;
    this.#shares = new Shares({
      limit: options.bytesMax ?? POLICIES_MAX_BYTES,
      perHolder: options.bytesPerOwner ?? POLICIES_MAX_BYTES_PER_ACCOUNT,
      unlimited: ownerKey({ kind: 'operator' }),
    });
  }

  /** Distinct ones that something is served under, as JSON. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The same, how many. */
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

  /** What it takes the place of is nobody's any more. Members that are still lost may come back to their former group. */
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
    this.#given.onOver?.(route);
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
      untilMs: this.#given.clock.monotonic() + RESUME_WINDOW_MS,
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
    // As JSON is read: objects of a schema's own making have room for more than there is, and hold half as much again.
    const kept: Kept = {
      compiled: compiledBefore ?? this.#given.compile(JSON.parse(text) as Policy),
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
    this.#given.onOver?.(route);
  }

  /** One of its holders is one no more. */
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
      // It stays for another, and is that one's from now on.
      this.#shares.give(payer, weight);
      this.#shares.take(next, weight);
      kept.payer = next;
    }
  }

  /** Those whose time is over. */
  #letGo(): void {
    const now = this.#given.clock.monotonic();
    for (const [holder, { untilMs }] of this.#awaited) {
      if (untilMs > now) return;
      this.forget(holder);
    }
  }
}

const enter = ({ owners }: Kept, owner: string): void => {
  owners.set(owner, (owners.get(owner) ?? 0) + 1);
};
