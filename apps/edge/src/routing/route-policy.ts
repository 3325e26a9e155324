// The policy that a route is served under: of a tunnel that stands alone, or of a group and all its members.
import type { CompiledPolicy } from '@tunnel/core';
import type { Route } from './registry.ts';

/** How often each rule matched and answered, by its index from 0. Of one route: equal policies share what is compiled, never this. */
export interface RuleCounts {
  readonly matched: number[];
  readonly answered: number[];
}

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
 * It never becomes null because its route went away: whoever still has the route must not find it open.
 */
export interface PolicyHolder {
  readonly current: RoutePolicy | null;
}

/** null: open to everyone. Asked once a request: what it was decided by stays what it was. */
export const policyOf = (route: Route): RoutePolicy | null => route.policy.current;

/** Of tunnels that have none and can have none. */
export const NO_POLICY: PolicyHolder = { current: null };
