// The machine of one group: who is in it, who is healthy, what was counted, and when people must be told that nobody is left.
// It changes in place, because it is asked on every public connection; events go in, effects come out, as with any machine here.

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
  /** Where its owner wants to be told that the group is down. */
  readonly alertWebhook: string | null;
  /** Holds the policy that its visitors meet, which is the group's. */
  readonly policy: unknown;
}

interface GroupFacts<M extends GroupMember> {
  readonly groupId: string;
  readonly protocol: GroupProtocol;
  /** The first joiner's. */
  readonly name: string;
  /** 64 hex digits of SHA-256. */
  readonly keyHash: string;
  readonly endpoint: LeasedEndpoint;
  /** What people call it: the subdomain, the port, or the host. */
  readonly label: string;
  /** One object for the group and all its members: what changes in it changes for all in one step. */
  readonly policy: M['policy'];
  /** Of that policy; absent: there is none. */
  readonly policyStamp?: PolicyStamp | undefined;
}

export type GroupEvent<M> =
  /** Also when a member's session changed its connection: the new object stands in for the old one, and nobody notices. */
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
  /** The downward edge. `urls` are distinct, those of a member that has just left among them. */
  | { readonly kind: 'raise-alert'; readonly memberCount: number; readonly urls: readonly string[] }
  | { readonly kind: 'remove-group' };

interface GroupTally {
  readonly memberCount: number;
  readonly healthyCount: number;
  readonly totalDispatches: number;
  readonly totalHealthFailures: number;
}

/** Of one owner's members: those that are there, and what those that left have counted. */
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
  /** Set by the downward edge, taken back when any member becomes healthy. */
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

  /** For the operator of all, else of the viewer's own members, present and past. */
  tally(viewer: Owner): GroupTally {
    return viewer.kind === 'operator' ? this.#all : (this.#byOwner.get(ownerKey(viewer)) ?? NOTHING);
  }

  /** Uniform over the healthy ones that were not tried; null: there is none. */
  pick(random: () => number, tried?: readonly M[]): M | null {
    return this.#healthy.pick(random, tried);
  }

  /** A public connection was given to the member. */
  dispatched(member: M): void {
    this.#all.totalDispatches += 1;
    this.#tallyOf(member).totalDispatches += 1;
  }

  /** It was served by another one after all. */
  moved(from: M, to: M): void {
    this.#tallyOf(from).totalDispatches -= 1;
    this.#tallyOf(to).totalDispatches += 1;
  }

  /** In the turn in which what `policy` holds was replaced. */
  policyReplaced(stamp: PolicyStamp): void {
    this.#policyStamp = stamp;
  }

  /** `now` in milliseconds since the epoch. What concerns a member that is not in the group (any more) changes nothing. */
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
    // It came back with a probe it has not passed yet, and may have been the last healthy one.
    return wasHealthy ? this.#alertIfDown(null) : NO_EFFECTS;
  }

  #leave(member: M): readonly GroupEffect<M>[] {
    const wasHealthy = this.#take(member);
    if (this.#members.size === 0) return [{ kind: 'remove-group' }];
    return wasHealthy ? this.#alertIfDown(member) : NO_EFFECTS;
  }

  /** true: it was healthy. */
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

  /** Called where the last healthy member may have gone. A group that never had one is not down: it has not begun. */
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
