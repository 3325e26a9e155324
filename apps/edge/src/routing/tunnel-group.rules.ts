// State machine of a group: members, their health, counts, and when an alert is due because no healthy member is left. Takes events and
// returns effects, like every state machine here, but mutates in place, because every public connection queries it.

import {
  type GroupProtocol,
  type LeasedEndpoint,
  type MemberHealth,
  type Owner,
  ownerKey,
} from '@tunnel/rules/tunnels';
import { NO_POLICY_STAMP, type PolicyStamp } from './group-policy.rules.ts';
import { AlertUrls, HealthySet } from './member-index.rules.ts';

export interface GroupMember {
  readonly tunnelId: string;
  readonly owner: Owner;
  readonly health: MemberHealth;
  /** Webhook that is called when the group has no healthy member left. */
  readonly alertWebhook: string | null;
  /** Holder of the policy for visitors, shared with the group. */
  readonly policy: unknown;
}

interface GroupFacts<M extends GroupMember> {
  readonly groupId: string;
  readonly protocol: GroupProtocol;
  /** Name of the group, as given by the first member. */
  readonly name: string;
  /** SHA-256 of the group's key, 64 hex digits. */
  readonly keyHash: string;
  readonly endpoint: LeasedEndpoint;
  /** Short name for users: the subdomain, the port or the host. */
  readonly label: string;
  /** Policy holder shared by the group and its members. A change therefore applies to every member at the same time. */
  readonly policy: M['policy'];
  /** Revision and hash of the policy. Absent if there is no policy. */
  readonly policyStamp?: PolicyStamp | undefined;
}

export type GroupEvent<M> =
  /**
   * A member joined, or its session reconnected. After a reconnect the new object replaces the old one, without a leave or a health
   * change.
   */
  | { readonly kind: 'member-joined'; readonly member: M }
  | { readonly kind: 'member-left'; readonly member: M }
  | { readonly kind: 'reported-healthy'; readonly member: M }
  | {
      readonly kind: 'reported-unhealthy';
      readonly member: M;
      readonly reason: string;
      readonly consecutiveFailures: number;
    };

export type GroupEffect<M> =
  | { readonly kind: 'health-changed'; readonly member: M; readonly healthy: boolean; readonly reason: string }
  /**
   * The group lost its last healthy member. `urls` are the distinct alert webhooks, including the webhook of a member that has just left.
   */
  | { readonly kind: 'raise-alert'; readonly memberCount: number; readonly urls: readonly string[] }
  | { readonly kind: 'remove-group' };

interface GroupTally {
  readonly memberCount: number;
  readonly healthyCount: number;
  readonly totalDispatches: number;
  readonly totalHealthFailures: number;
}

/** Counts for the members of an owner: current members, and the totals of former members. */
class OwnerTally implements GroupTally {
  memberCount = 0;
  healthyCount = 0;
  totalDispatches = 0;
  totalHealthFailures = 0;
}

const NOTHING: GroupTally = { memberCount: 0, healthyCount: 0, totalDispatches: 0, totalHealthFailures: 0 };

export class TunnelGroup<M extends GroupMember> {
  readonly groupId: string;
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly keyHash: string;
  readonly endpoint: LeasedEndpoint;
  readonly label: string;
  readonly policy: M['policy'];
  readonly #members = new Map<string, M>();
  readonly #healthy = new HealthySet<M>();
  readonly #alertUrls = new AlertUrls();
  readonly #all = new OwnerTally();
  readonly #byOwner = new Map<string, OwnerTally>();
  #policyStamp: PolicyStamp;
  /** True after an alert for a group without healthy members, until a member becomes healthy. */
  #zeroHealthyAlerted = false;

  constructor({ groupId, protocol, name, keyHash, endpoint, label, policy, policyStamp }: GroupFacts<M>) {
    this.groupId = groupId;
    this.protocol = protocol;
    this.name = name;
    this.keyHash = keyHash;
    this.endpoint = endpoint;
    this.label = label;
    this.policy = policy;
    this.#policyStamp = policyStamp ?? NO_POLICY_STAMP;
  }

  get keyHashShort(): string {
    return this.keyHash.slice(0, 8);
  }

  get policyStamp(): PolicyStamp {
    return this.#policyStamp;
  }

  get memberCount(): number {
    return this.#members.size;
  }

  get healthyCount(): number {
    return this.#healthy.size;
  }

  get zeroHealthyAlerted(): boolean {
    return this.#zeroHealthyAlerted;
  }

  members(): IterableIterator<M> {
    return this.#members.values();
  }

  get(tunnelId: string): M | undefined {
    return this.#members.get(tunnelId);
  }

  has(member: M): boolean {
    return this.#members.get(member.tunnelId) === member;
  }

  isHealthy(member: M): boolean {
    return this.#healthy.has(member);
  }

  isVisibleTo(viewer: Owner): boolean {
    return viewer.kind === 'operator' || (this.#byOwner.get(ownerKey(viewer))?.memberCount ?? 0) > 0;
  }

  hasMemberOf(owner: Owner): boolean {
    return (this.#byOwner.get(ownerKey(owner))?.memberCount ?? 0) > 0;
  }

  /** Returns the counts for a viewer: of the whole group for the operator, otherwise of the viewer's own current and former members. */
  tally(viewer: Owner): GroupTally {
    return viewer.kind === 'operator' ? this.#all : (this.#byOwner.get(ownerKey(viewer)) ?? NOTHING);
  }

  /** Picks a healthy member at random, excluding members already tried. Returns null if no member is left. */
  pick(random: () => number, tried?: readonly M[]): M | null {
    return this.#healthy.pick(random, tried);
  }

  /** Counts a public connection that was dispatched to the member. */
  dispatched(member: M): void {
    this.#all.totalDispatches += 1;
    this.#tallyOf(member).totalDispatches += 1;
  }

  /** Moves the count of a connection to the member that served the connection in the end. */
  moved(from: M, to: M): void {
    this.#tallyOf(from).totalDispatches -= 1;
    this.#tallyOf(to).totalDispatches += 1;
  }

  /** Sets the stamp. Called in the turn in which the policy in the shared holder was replaced. */
  policyReplaced(stamp: PolicyStamp): void {
    this.#policyStamp = stamp;
  }

  /** Applies an event and returns its effects. `now` is in milliseconds since the epoch. Ignores events of tunnels that are not members. */
  transition(event: GroupEvent<M>, now: number): readonly GroupEffect<M>[] {
    if (event.kind === 'member-joined') return this.#join(event.member);
    const { member } = event;
    if (!this.has(member)) return NO_EFFECTS;
    switch (event.kind) {
      case 'member-left':
        return this.#leave(member);
      case 'reported-healthy': {
        if (!member.health.reportHealthy(now)) return NO_EFFECTS;
        this.#include(member);
        return [this.#changed(member)];
      }
      case 'reported-unhealthy': {
        this.#all.totalHealthFailures += 1;
        this.#tallyOf(member).totalHealthFailures += 1;
        if (!member.health.reportUnhealthy(event, now)) return NO_EFFECTS;
        this.#exclude(member);
        return [this.#changed(member), ...this.#alertIfDown(null)];
      }
    }
  }

  #join(member: M): readonly GroupEffect<M>[] {
    const before = this.#members.get(member.tunnelId);
    const wasHealthy = before !== undefined && this.#take(before);
    this.#members.set(member.tunnelId, member);
    this.#alertUrls.add(member.alertWebhook);
    this.#all.memberCount += 1;
    this.#tallyOf(member).memberCount += 1;
    if (member.health.healthy) this.#include(member);
    // A member can return with a health check that has not passed yet, and may have been the last healthy member.
    return wasHealthy ? this.#alertIfDown(null) : NO_EFFECTS;
  }

  #leave(member: M): readonly GroupEffect<M>[] {
    const wasHealthy = this.#take(member);
    if (this.#members.size === 0) return [{ kind: 'remove-group' }];
    return wasHealthy ? this.#alertIfDown(member) : NO_EFFECTS;
  }

  /** Removes a member. Returns true if the member was healthy. */
  #take(member: M): boolean {
    this.#members.delete(member.tunnelId);
    this.#alertUrls.remove(member.alertWebhook);
    this.#all.memberCount -= 1;
    this.#tallyOf(member).memberCount -= 1;
    return this.#exclude(member);
  }

  #include(member: M): void {
    this.#healthy.add(member);
    this.#all.healthyCount += 1;
    this.#tallyOf(member).healthyCount += 1;
    this.#zeroHealthyAlerted = false;
  }

  #exclude(member: M): boolean {
    if (!this.#healthy.delete(member)) return false;
    this.#all.healthyCount -= 1;
    this.#tallyOf(member).healthyCount -= 1;
    return true;
  }

  /**
   * Returns the alert if the group has no healthy member. Called only after a healthy member left or became unhealthy: a group that never
   * had a healthy member is starting, not down.
   */
  #alertIfDown(left: M | null): readonly GroupEffect<M>[] {
    if (this.#healthy.size > 0 || this.#zeroHealthyAlerted) return NO_EFFECTS;
    this.#zeroHealthyAlerted = true;
    const urls = this.#alertUrls.with(left?.alertWebhook ?? null);
    return [{ kind: 'raise-alert', memberCount: this.#members.size, urls }];
  }

  #changed(member: M): GroupEffect<M> {
    const { healthy, history } = member.health;
    return { kind: 'health-changed', member, healthy, reason: history.at(-1)?.reason ?? '' };
  }

  #tallyOf({ owner }: M): OwnerTally {
    const key = ownerKey(owner);
    let tally = this.#byOwner.get(key);
    if (tally === undefined) {
      tally = new OwnerTally();
      this.#byOwner.set(key, tally);
    }
    return tally;
  }
}

const NO_EFFECTS: readonly never[] = [];
