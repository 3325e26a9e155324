// What happens in the groups of an edge, for those who tell others: the event streams, the alerts, the metrics.
import type { ProbeKind, TunnelGroup } from '@tunnel/core';
import type { Tunnel } from './tunnel.ts';

type Group = TunnelGroup<Tunnel>;

/** A member's health bit changed; the group's counts are those after it. */
export interface HealthChange {
  readonly group: Group;
  readonly member: Tunnel;
  readonly healthy: boolean;
  readonly reason: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The last healthy member became unhealthy, or left. */
export interface ZeroHealthy {
  readonly group: Group;
  /** Of the members, one that has just left among them; distinct. */
  readonly urls: readonly string[];
  readonly memberCount: number;
  readonly at: number;
}

export interface GroupWatcher {
  groupAdded?(group: Group): void;
  /** Its last member has left. */
  groupRemoved?(group: Group): void;
  memberJoined?(group: Group, member: Tunnel): void;
  memberLeft?(group: Group, member: Tunnel): void;
  memberHealthChanged?(change: HealthChange): void;
  /** A TunnelUnhealthy frame came, whether it changed anything or not. */
  failureReported?(group: Group, kind: ProbeKind | 'none'): void;
  zeroHealthy?(event: ZeroHealthy): void;
}
