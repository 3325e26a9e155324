// The groups of an edge. Decides whether a registration joins a group, creates a group or is rejected. A group with a host is identified
// by its subdomain or custom domain; a group on a port by its name and key hash, because the port is not known in advance.
import { Fault } from '@tunnel/errors';
import {
  endpointKey,
  type GroupProtocol,
  type LeasedEndpoint,
  type Owner,
  type Transport,
} from '@tunnel/rules/tunnels';
import { type BroughtStamp, decideGroupPolicy } from './group-policy.rules.ts';
import type { GroupMember, TunnelGroup } from './tunnel-group.rules.ts';

/** The group requested by a registration. */
interface GroupClaim {
  readonly protocol: GroupProtocol;
  readonly name: string;
  readonly keyHash: string;
  readonly endpoint:
    | { readonly kind: 'port'; readonly transport: Transport }
    | { readonly kind: 'name' | 'domain'; readonly name: string };
  readonly policy: BroughtStamp;
}

type GroupDecision<M extends GroupMember> =
  /** Join an existing group. `policy`: whether the group keeps its policy, or gets the member's policy in the same turn. */
  | { readonly kind: 'join'; readonly group: TunnelGroup<M>; readonly policy: 'keep' | 'replace' }
  /** There is no such group. The owner of the name, or the port range, decides whether the group can be created. */
  | { readonly kind: 'create' }
  | { readonly kind: 'refused'; readonly fault: Fault };

export class GroupDirectory<M extends GroupMember> {
  readonly #atNames = new Map<string, TunnelGroup<M>>();
  readonly #atDomains = new Map<string, TunnelGroup<M>>();
  readonly #onPorts = new Map<string, TunnelGroup<M>>();
  /** Groups on ports, by transport and name. Several groups on ports can have the same name. */
  readonly #namesakes = new Map<string, Set<TunnelGroup<M>>>();

  get size(): number {
    return this.#atNames.size + this.#atDomains.size + this.#onPorts.size;
  }

  at(endpoint: LeasedEndpoint): TunnelGroup<M> | undefined {
    return this.#groupsLike(endpoint).get(keyOf(endpoint));
  }

  *values(): IterableIterator<TunnelGroup<M>> {
    yield* this.#atNames.values();
    yield* this.#atDomains.values();
    yield* this.#onPorts.values();
  }

  decide(claim: GroupClaim, owner: Owner): GroupDecision<M> {
    const { endpoint } = claim;
    return endpoint.kind === 'port'
      ? this.#decideOnPort(endpoint.transport, claim, owner)
      : this.#decideAt(endpoint, claim);
  }

  add(group: TunnelGroup<M>): void {
    const { endpoint, name } = group;
    this.#groupsLike(endpoint).set(keyOf(endpoint), group);
    if (endpoint.kind !== 'port') return;
    const key = namesakeKey(endpoint.transport, name);
    this.#namesakes.set(key, (this.#namesakes.get(key) ?? new Set()).add(group));
  }

  /** Removes a group by identity, so that a delayed removal of an old group cannot remove its successor. */
  remove(group: TunnelGroup<M>): void {
    const { endpoint, name } = group;
    if (this.at(endpoint) === group) this.#groupsLike(endpoint).delete(keyOf(endpoint));
    if (endpoint.kind !== 'port') return;
    const key = namesakeKey(endpoint.transport, name);
    const namesakes = this.#namesakes.get(key);
    namesakes?.delete(group);
    if (namesakes?.size === 0) this.#namesakes.delete(key);
  }

  #decideAt(endpoint: LeasedEndpoint, { keyHash, protocol, policy }: GroupClaim): GroupDecision<M> {
    const group = this.at(endpoint);
    if (group === undefined) return { kind: 'create' };
    // Check the key first: without the key, a client must learn nothing about the group.
    if (!sameHash(group.keyHash, keyHash)) return refuse(new Fault('GROUP_KEY_MISMATCH'));
    if (group.protocol !== protocol) return refuse(new Fault('GROUP_PROTOCOL_MISMATCH'));
    return joinUnder(group, policy);
  }

  /**
   * Decides about a group on a port. If only groups of other accounts use the name, a new group is created: names of groups on ports are
   * not exclusive.
   */
  #decideOnPort(transport: Transport, { name, keyHash, policy }: GroupClaim, owner: Owner): GroupDecision<M> {
    let isOwn = false;
    let joined: TunnelGroup<M> | null = null;
    for (const group of this.#namesakes.get(namesakeKey(transport, name)) ?? []) {
      if (sameHash(group.keyHash, keyHash)) joined = group;
      else if (group.hasMemberOf(owner)) isOwn = true;
    }
    if (joined !== null) return joinUnder(joined, policy);
    return isOwn ? refuse(new Fault('GROUP_KEY_MISMATCH')) : { kind: 'create' };
  }

  #groupsLike({ kind }: LeasedEndpoint): Map<string, TunnelGroup<M>> {
    if (kind === 'name') return this.#atNames;
    return kind === 'domain' ? this.#atDomains : this.#onPorts;
  }
}

/**
 * Returns the map key of a group's endpoint. Names and domains have separate maps, where the name is the key, because a name is looked up
 * for every request.
 */
const keyOf = (endpoint: LeasedEndpoint): string =>
  endpoint.kind === 'name' || endpoint.kind === 'domain' ? endpoint.name : endpointKey(endpoint);

const namesakeKey = (transport: Transport, name: string): string => `${transport} ${name}`;

/**
 * Joins a group if the policies fit. Called last: the refusal reveals the group's revision, so the client must have proved that it has
 * the key.
 */
const joinUnder = <M extends GroupMember>(group: TunnelGroup<M>, brought: BroughtStamp): GroupDecision<M> => {
  const decision = decideGroupPolicy(group.policyStamp, brought);
  return decision.kind === 'refused' ? decision : { kind: 'join', group, policy: decision.kind };
};

const refuse = (fault: Fault): { kind: 'refused'; fault: Fault } => ({ kind: 'refused', fault });

/** Compares two hashes in constant time, so that the duration does not reveal the position of a difference. */
const sameHash = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
};
