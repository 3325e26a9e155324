// The policy that applies at a route: at a tunnel without a group, or at a group with its members.

import type { CompiledPolicy, Policy } from '@tunnel/policy';
import type { BroughtStamp } from './group-policy.rules.ts';

/**
 * Number of matches and responses per rule, by the rule's index from 0. Belongs to a single route: equal policies share compiled rules,
 * but not counts.
 */
export interface RuleCounts {
  readonly matched: number[];
  readonly answered: number[];
}

/**
 * The policy of a route in a certain revision. Caches and limiters use the object as their key, so that nothing cached for one policy of
 * a route is found for the next.
 */
export interface RoutePolicy {
  /** Compiled rules, shared by all routes with an equal policy. */
  readonly compiled: CompiledPolicy;
  readonly revision: number;
  /** Hash of the policy and its services, 64 hex digits. */
  readonly hash: string;
  /** Names of services allowed as the target of the action `route`. */
  readonly services: readonly string[];
  readonly counts: RuleCounts;
}

/**
 * Holder of a route's current policy, shared by all members of a group: a new revision is set once, and applies to every member from the
 * next request. Only the policy store changes the holder. When the route ends, the policy stays, so that code with a reference to the
 * route never treats the route as open.
 */
export interface PolicyHolder {
  current: RoutePolicy | null;
}

/** A validated policy from a registration. */
export interface BroughtPolicy {
  readonly policy: Policy | null;
  readonly services: readonly string[];
  readonly stamp: BroughtStamp;
  /** Owner of the registration, as returned by `ownerKey`. */
  readonly owner: string;
}

/** Stores the policies of routes. */
export interface PolicyKeeper {
  /**
   * Creates the holder of a new route. `before` is the previous holder of the same tunnel; an equal policy continues its counts. Throws
   * if the memory limit is reached.
   */
  hold(brought: BroughtPolicy, before?: PolicyHolder | null): PolicyHolder;
  /**
   * Replaces the policy for all routes that share the holder, in a single step. Throws if the memory limit is reached, and then changes
   * nothing.
   */
  replace(holder: PolicyHolder, brought: BroughtPolicy): void;
  /** Releases the holder of a route that has ended. The holder keeps its content for code with a reference to the route. */
  release(holder: PolicyHolder): void;
  /**
   * Frees a released policy immediately, because no client will return to it. Otherwise the policy stays in memory for as long as a
   * disconnected session can be resumed.
   */
  forget(holder: PolicyHolder): void;
}

/**
 * Returns the current policy of a route, or null if every visitor is admitted. Call once per request: the request keeps the policy it
 * started with.
 */
export const policyOf = (route: { readonly policy: PolicyHolder }): RoutePolicy | null => route.policy.current;

/** Holder for tunnels without a policy. */
export const NO_POLICY: PolicyHolder = Object.freeze({ current: null });

/** Holder for routes that are not tunnels, such as the platform. The operator's rules for tunnels do not apply there either. */
export const OUTSIDE_POLICIES: PolicyHolder = Object.freeze({ current: null });
