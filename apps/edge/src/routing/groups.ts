// Manages the groups: finds or creates the group of a registration, removes members, forwards health reports, and notifies watchers.
// Finding and joining a group happen in one turn of the event loop, so that two simultaneous first registrations result in a single
// group.

import { Fault } from '@tunnel/errors';
import {
  endpointLabel,
  endpointOfProtocol,
  type HostEndpoint,
  type LeasedEndpoint,
  type Owner,
  ownerKey,
  type ProbeKind,
} from '@tunnel/rules/tunnels';
import { type Clock, crashOnThrow, type Logger, LogLimiter, randomId } from '@tunnel/runtime';
import type { EndpointRecovery } from './endpoint-recovery.ts';
import type { EndpointRegistry } from './endpoints.ts';
import { type GroupDirectory } from './group-directory.rules.ts';
import { type BroughtStamp, decideGroupPolicy, type PolicyStamp } from './group-policy.rules.ts';
import { type WantedGroup } from './registration.rules.ts';
import type { Registry } from './registry.ts';
import type { BroughtPolicy, PolicyHolder, PolicyKeeper } from './route-policy.ts';
import type { Tunnel } from './tunnel.ts';
import { type GroupEffect, TunnelGroup } from './tunnel-group.rules.ts';

type Group = TunnelGroup<Tunnel>;
type WantedPortOfGroup = Extract<WantedGroup['endpoint'], { kind: 'port' }>;

/** The health of a member changed. The group's counts already include the change. */
export interface HealthChange {
  readonly group: Group;
  readonly member: Tunnel;
  readonly healthy: boolean;
  readonly reason: string;
  /** Time of the change in milliseconds since the epoch. */
  readonly at: number;
}

/** Event: the last healthy member of a group became unhealthy or left. */
export interface ZeroHealthy {
  readonly group: Group;
  /** Owner of the member that was the last healthy one. */
  readonly owner: Owner;
  /** Distinct alert webhooks of the members, including a member that has just left. */
  readonly urls: readonly string[];
  readonly memberCount: number;
  readonly at: number;
}

export interface GroupWatcher {
  groupAdded?(group: Group): void;
  /** Called after the last member has left. */
  groupRemoved?(group: Group): void;
  memberJoined?(group: Group, member: Tunnel): void;
  memberLeft?(group: Group, member: Tunnel): void;
  memberHealthChanged?(change: HealthChange): void;
  /** Called for every TunnelUnhealthy frame, even if the frame changes nothing. */
  failureReported?(group: Group, kind: ProbeKind | 'none'): void;
  zeroHealthy?(event: ZeroHealthy): void;
}

export interface GroupsOptions {
  /** Domain of the edge, such as `example.com`, for the labels of groups. */
  readonly domain: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly endpoints: EndpointRegistry;
  readonly tunnels: Registry;
  readonly policies: PolicyKeeper;
  /** Restores endpoints after a restart of the edge. Absent if endpoints are not stored. */
  readonly recovery?: EndpointRecovery | undefined;
  readonly watchers: readonly GroupWatcher[];
}

export interface JoinRequest {
  readonly wanted: WantedGroup;
  readonly owner: Owner;
  /** Policy of the member. Becomes the group's policy if the group is new or has a lower revision. */
  readonly policy: BroughtPolicy;
  /** Group of the member when its session was interrupted, or null. The group may have ended since. */
  readonly former: TunnelGroup<Tunnel> | null;
  /** Returns true while the client is connected. Checked again after every wait. */
  readonly isCurrent: () => boolean;
  /**
   * True if the registration was admitted only for joining an existing group. If the group has ended meanwhile, the owner of the name
   * must be checked first.
   */
  readonly joinsOnly?: boolean;
  /** Creates the member object when its group is known. */
  readonly makeMember: (group: TunnelGroup<Tunnel>) => Tunnel;
  /** Called in the same turn as the join, so that group and tunnel become visible together. */
  readonly onJoined: (tunnel: Tunnel) => void;
}

/** The parts of a join request that decide about the group. */
export type DecidedRequest = Pick<JoinRequest, 'wanted' | 'owner' | 'policy' | 'former'>;

export interface Joined {
  readonly tunnel: Tunnel;
  /** True if the group was created with this member. */
  readonly isFirst: boolean;
}

export class Groups {
  readonly #options: GroupsOptions;
  readonly #log: LogLimiter;
  /**
   * Groups with a port that is being opened, by transport and name. Further registrations with the same name wait, and are decided
   * afterwards.
   */
  readonly #opening = new Map<string, Promise<unknown>>();
  #alerts: ZeroHealthy[] = [];
  #isShuttingDown = false;

  constructor(options: GroupsOptions) {
    this.#options = options;
    this.#log = new LogLimiter(options.logger, () => options.clock.monotonic());
  }

  /** Returns true if the request would join an existing group. Throws a Fault if joining is not allowed. */
  isJoining(request: DecidedRequest): boolean {
    const decision = this.#decide(request);
    if (decision.kind === 'refused') throw decision.fault;
    return decision.kind === 'join';
  }

  /**
   * Joins or creates a group. Returns null if the request can only join, and the group no longer exists. Throws a Fault if joining is not
   * allowed.
   */
  async join(request: JoinRequest): Promise<Joined | null> {
    const { wanted } = request;
    for (;;) {
      this.#refuseLate(request);
      const { endpoint } = wanted;
      const decision = this.#decide(request);
      if (decision.kind === 'refused') throw decision.fault;
      if (decision.kind === 'join') {
        if (decision.policy === 'replace') this.#replacePolicy(decision.group, request);
        return this.#enter(decision.group, request, false);
      }
      if (request.joinsOnly === true) return null;
      if (endpoint.kind !== 'port') return this.#enter(this.#beginAt(request, endpoint), request, true);
      const opening = this.#opening.get(openingKey(wanted.name, endpoint));
      if (opening === undefined) return this.#beginOnPort(request, endpoint);
      await opening;
    }
  }

  /**
   * Removes a member; its open connections continue. The last member takes the group with it, and the endpoint is released after its
   * listener has closed. `awaitedUntil` is the time until which a disconnected client can return; null if the member has ended.
   */
  leave(member: Tunnel, awaitedUntil: number | null = null): void {
    const { group } = member;
    if (group === null || !group.has(member)) return;
    crashOnThrow(() => {
      const effects = group.transition({ kind: 'member-left', member }, this.#options.clock.now());
      this.#tell((watcher) => watcher.memberLeft?.(group, member));
      this.#perform(group, member, effects, awaitedUntil);
    });
  }

  reportHealthy(tunnel: Tunnel): void {
    const now = this.#options.clock.now();
    const { group } = tunnel;
    if (group === null) tunnel.health.reportHealthy(now);
    else
      crashOnThrow(() =>
        this.#perform(group, tunnel, group.transition({ kind: 'reported-healthy', member: tunnel }, now)),
      );
  }

  reportUnhealthy(tunnel: Tunnel, report: { readonly reason: string; readonly consecutiveFailures: number }): void {
    const now = this.#options.clock.now();
    const { group } = tunnel;
    if (group === null) {
      tunnel.health.reportUnhealthy(report, now);
      return;
    }
    if (!group.has(tunnel)) return;
    crashOnThrow(() => {
      this.#tell((watcher) => watcher.failureReported?.(group, tunnel.health.kind ?? 'none'));
      this.#perform(group, tunnel, group.transition({ kind: 'reported-unhealthy', member: tunnel, ...report }, now));
    });
  }

  /** Suppresses alerts from now on, because members leave when the edge shuts down. */
  shutDown(): void {
    this.#isShuttingDown = true;
  }

  #decide(request: DecidedRequest): ReturnType<GroupDirectory<Tunnel>['decide']> {
    const { wanted, owner } = request;
    return this.#options.tunnels.groups.decide({ ...wanted, policy: stampFor(request) }, owner);
  }

  // ---- creating a group ----

  #beginAt(request: JoinRequest, endpoint: HostEndpoint): Group {
    const { endpoints, recovery, policies } = this.#options;
    const { brought, before } = policyToBegin(request);
    const policy = policies.hold(brought, before);
    const groupId = randomId('grp');
    recovery?.claimForGroup(groupId, request.wanted, request.owner);
    endpoints.names.reassign(endpoint, awaitedBy(request.wanted), groupId);
    try {
      endpoints.names.openAt(groupId, endpoint);
    } catch (error) {
      policies.release(policy);
      // The name belongs to a tunnel without a group, but the client must not learn that.
      throw IN_USE.has(Fault.from(error).code) ? new Fault('GROUP_KEY_MISMATCH') : error;
    }
    const own = endpointOfProtocol(request.wanted.protocol, endpoint);
    return this.#begin(groupId, request, own, { policy, stamp: brought.stamp });
  }

  async #beginOnPort(request: JoinRequest, endpoint: WantedPortOfGroup): Promise<Joined> {
    const { endpoints, recovery, policies } = this.#options;
    const { wanted, owner } = request;
    // Store the policy before opening the port, so that the port is never open without the policy.
    const { brought, before } = policyToBegin(request);
    const policy = policies.hold(brought, before);
    const groupId = randomId('grp');
    const begunAt = recovery?.claimForGroup(groupId, wanted, owner) ?? endpoint;
    const user = { owner, groupKeyHash: wanted.keyHash };
    const opened = endpoints.open(groupId, begunAt.kind === 'port' ? begunAt : endpoint, user);
    const settled = opened.then(
      () => undefined,
      () => undefined,
    );
    const key = openingKey(wanted.name, endpoint);
    this.#opening.set(key, settled);
    try {
      const own = await opened;
      try {
        this.#refuseLate(request);
      } catch (error) {
        this.#giveBack(own, groupId);
        throw error;
      }
      return this.#enter(this.#begin(groupId, request, own, { policy, stamp: brought.stamp }), request, true);
    } catch (error) {
      policies.release(policy);
      throw error;
    } finally {
      this.#opening.delete(key);
    }
  }

  #refuseLate({ isCurrent }: JoinRequest): void {
    if (this.#isShuttingDown) throw new Fault('EDGE_SHUTTING_DOWN');
    if (!isCurrent()) throw new Fault('TUNNEL_CLOSED');
  }

  #begin(
    groupId: string,
    { wanted, owner }: JoinRequest,
    endpoint: LeasedEndpoint,
    { policy, stamp: { revision, hash } }: { readonly policy: PolicyHolder; readonly stamp: PolicyStamp },
  ): Group {
    const { protocol, name, keyHash } = wanted;
    const policyStamp = { revision, hash };
    const label = endpointLabel(protocol, endpoint, this.#options.domain);
    const group: Group = new TunnelGroup({ groupId, protocol, name, keyHash, endpoint, label, policy, policyStamp });
    this.#options.tunnels.groups.add(group);
    this.#log.log('info', `group-begins ${ownerKey(owner)}`, { ...fieldsOf(group), protocol }, 'group begins');
    this.#tell((watcher) => watcher.groupAdded?.(group));
    return group;
  }

  /** Replaces the policy of all members from the next request. The member's registration is answered afterwards. */
  #replacePolicy(group: Group, { policy, owner }: JoinRequest): void {
    const { revision, hash } = policy.stamp;
    this.#options.policies.replace(group.policy, policy);
    group.policyReplaced({ revision, hash });
    const fields = { ...fieldsOf(group), revision };
    this.#log.log('info', `group-policy ${ownerKey(owner)}`, fields, 'group policy replaced');
  }

  #enter(group: Group, { makeMember, onJoined }: JoinRequest, isFirst: boolean): Joined {
    const tunnel = makeMember(group);
    const isNew = group.get(tunnel.tunnelId) === undefined;
    crashOnThrow(() => {
      const effects = group.transition({ kind: 'member-joined', member: tunnel }, this.#options.clock.now());
      if (isNew) this.#tell((watcher) => watcher.memberJoined?.(group, tunnel));
      onJoined(tunnel);
      this.#perform(group, tunnel, effects);
    });
    return { tunnel, isFirst };
  }

  // ---- effects of a transition ----

  /** Performs the effects of a transition. `cause` is the member that joined, left or reported. */
  #perform(
    group: Group,
    cause: Tunnel,
    effects: readonly GroupEffect<Tunnel>[],
    awaitedUntil: number | null = null,
  ): void {
    const at = this.#options.clock.now();
    for (const effect of effects) {
      if (effect.kind === 'remove-group') this.#remove(group, cause, awaitedUntil);
      else if (effect.kind === 'raise-alert') this.#raise({ group, owner: cause.owner, at, ...effect });
      else {
        const { member, healthy, reason } = effect;
        const fields = { ...fieldsOf(group), tunnel_id: member.tunnelId, healthy, reason };
        this.#log.log('info', `member-health ${ownerKey(member.owner)}`, fields, 'member health');
        this.#tell((watcher) => watcher.memberHealthChanged?.({ group, member, healthy, reason, at }));
      }
    }
  }

  #remove(group: Group, { owner }: Tunnel, awaitedUntil: number | null): void {
    const { endpoint, groupId } = group;
    this.#options.tunnels.groups.remove(group);
    // While all members of a tls group are offline, the edge must not end the visitors' TLS with its own certificate, so the host stays
    // held.
    const passesTls = endpoint.kind !== 'port' && endpoint.kind !== 'peer-name' && endpoint.passesTls === true;
    if (awaitedUntil === null || !passesTls) this.#giveBack(endpoint, groupId);
    else {
      this.#options.endpoints.reassign(endpoint, groupId, awaitedBy(group));
      this.#options.endpoints.hold(endpoint, awaitedBy(group), awaitedUntil);
    }
    this.#log.log('info', `group-ends ${ownerKey(owner)}`, fieldsOf(group), 'group ends');
    this.#tell((watcher) => watcher.groupRemoved?.(group));
  }

  #giveBack(endpoint: LeasedEndpoint, groupId: string): void {
    this.#options.endpoints.close(endpoint);
    this.#options.endpoints.release(endpoint, groupId);
  }

  /**
   * Queues an alert until the end of the turn: if a client leaves with all members of a group, the group is removed and no alert is
   * needed.
   */
  #raise(event: ZeroHealthy): void {
    this.#alerts.push(event);
    if (this.#alerts.length > 1) return;
    queueMicrotask(() => {
      const alerts = this.#alerts;
      this.#alerts = [];
      for (const alert of alerts) {
        const { group } = alert;
        if (this.#isShuttingDown || group.memberCount === 0) continue;
        const fields = { ...fieldsOf(group), members: group.memberCount };
        this.#log.log('warn', `zero-healthy ${ownerKey(alert.owner)}`, fields, 'group has no healthy member');
        this.#tell((watcher) => watcher.zeroHealthy?.({ ...alert, memberCount: group.memberCount }));
      }
    });
  }

  #tell(tell: (watcher: GroupWatcher) => void): void {
    for (const watcher of this.#options.watchers) tell(watcher);
  }
}

const IN_USE: ReadonlySet<string> = new Set(['TUNNEL_SUBDOMAIN_IN_USE', 'TUNNEL_DOMAIN_IN_USE']);

/** Returns the stamp of the member's policy. A member counts as returning only if it was in the same group before. */
const stampFor = ({ policy: { stamp }, former, wanted }: DecidedRequest): BroughtStamp => {
  const isReturning = stamp.isReturning && former !== null && isSameGroup(former, wanted);
  return { ...stamp, isReturning };
};

/**
 * Returns the policy for a new group. If the group existed before with all members offline, the group keeps its last policy: the first
 * member to return may still wait for its turn in a rolling update, and visitors must not get an older policy again.
 */
const policyToBegin = ({
  policy,
  former,
  wanted,
}: JoinRequest): { readonly brought: BroughtPolicy; readonly before: PolicyHolder | null } => {
  if (former === null || !isSameGroup(former, wanted)) return { brought: policy, before: null };
  const before = former.policy;
  if (decideGroupPolicy(former.policyStamp, policy.stamp).kind === 'replace') return { brought: policy, before };
  const { current } = before;
  const stamp = { ...former.policyStamp, isReturning: true };
  return {
    brought: {
      policy: current?.compiled.policy ?? null,
      services: current?.services ?? [],
      stamp,
      owner: policy.owner,
    },
    before,
  };
};

/** Returns true if the group is exactly the requested group. */
export const isSameGroup = ({ name, keyHash, endpoint }: Group, wanted: WantedGroup): boolean => {
  if (keyHash !== wanted.keyHash || endpoint.kind !== wanted.endpoint.kind) return false;
  if (endpoint.kind === 'port' || wanted.endpoint.kind === 'port') return name === wanted.name;
  return endpoint.name === wanted.endpoint.name;
};

/** The holder of a group's host while all members are away. A client with the group's key starts the group again. Account ids contain no space, so no account is taken for this holder. */
const awaitedBy = ({ name, keyHash }: Pick<WantedGroup, 'name' | 'keyHash'>): string => `group ${name} ${keyHash}`;

const openingKey = (name: string, { transport }: WantedPortOfGroup): string => `${transport} ${name}`;

const fieldsOf = ({ groupId, name, label }: Group) => ({ group_id: groupId, group: name, label });
