// The policy that a route is served under: of a tunnel that stands alone, or of a group and all its members.

import type { CompiledPolicy, Policy } from '@tunnel/policy';
import type { BroughtStamp } from './group-policy.rules.ts';

/** How often each rule matched and answered, by its index from 0. Of one route: equal policies share what is compiled, never this. */
export interface RuleCounts {
  readonly matched: number[];
  readonly answered: number[];
}

/** By its identity caches and limiters know what they belong to: what is known under one policy of a route is unknown under the next. */
export interface RoutePolicy {
  /** Shared by every route with an equal policy. */
  readonly compiled: CompiledPolicy;
  readonly revision: number;
  /** 64 hex digits, of policy and services. */
  readonly hash: string;
  /** What `route` may name. */
  readonly services: readonly string[];
  readonly counts: RuleCounts;
}

/**
 * Shared by all members of a group: a higher revision is put here once, and is in force for each of them with the next request.
 * The store alone changes it. It never becomes null because its route went away: whoever still has the route must not find it open.
 */
export interface PolicyHolder {
  current: RoutePolicy | null;
}

/** A policy that was judged good, as a registration brings it. */
export interface BroughtPolicy {
  readonly policy: Policy | null;
  readonly services: readonly string[];
  readonly stamp: BroughtStamp;
  /** Who brings it, as `ownerKey` has it. */
  readonly owner: string;
}

/** Keeps what routes are served under. */
export interface PolicyKeeper {
  /** For a route that begins; `before`: of the same tunnel, whose counts go on under an equal policy. Throws when there is no room. */
  hold(brought: BroughtPolicy, before?: PolicyHolder | null): PolicyHolder;
  /** In one step, for all who share the holder. Throws when there is no room, and nothing has changed then. */
  replace(holder: PolicyHolder, brought: BroughtPolicy): void;
  /** Its route is over. What it holds stays for whoever still has the route. */
  release(holder: PolicyHolder): void;
  /** Nobody comes back to what it held. Who does not say so is waited for, for as long as a lost session is. */
  forget(holder: PolicyHolder): void;
}

/** null: open to everyone. Asked once a request: what it was decided by stays what it was. */
export const policyOf = (route: { readonly policy: PolicyHolder }): RoutePolicy | null => route.policy.current;

/** Of tunnels that have none. */
export const NO_POLICY: PolicyHolder = Object.freeze({ current: null });

/** Of what is no tunnel: the operator's rules for all of them do not hold there, either. */
export const OUTSIDE_POLICIES: PolicyHolder = Object.freeze({ current: null });
