// The groups of one edge by what identifies them, and the decision whether a registration joins one, begins one, or is refused.
// http: the subdomain; tcp: name and key hash, because a port is not known before.
import { Fault } from '@tunnel/errors';
import type { Owner } from '../owner.ts';
import type { GroupMember, GroupProtocol, TunnelGroup } from './tunnel-group.ts';

type GroupDecision<M extends GroupMember> =
  | { readonly kind: 'join'; readonly group: TunnelGroup<M> }
  /** There is none; who owns the name or has the ports decides whether there can be one. */
  | { readonly kind: 'create' }
  | { readonly kind: 'refused'; readonly fault: Fault };

export class GroupDirectory<M extends GroupMember> {
  readonly #bySubdomain = new Map<string, TunnelGroup<M>>();
  readonly #byPort = new Map<number, TunnelGroup<M>>();
  /** tcp groups: several may have one name. */
  readonly #byName = new Map<string, Set<TunnelGroup<M>>>();

  get size(): number {
    return this.#bySubdomain.size + this.#byPort.size;
  }

  bySubdomain(subdomain: string): TunnelGroup<M> | undefined {
    return this.#bySubdomain.get(subdomain);
  }

  byPort(port: number): TunnelGroup<M> | undefined {
    return this.#byPort.get(port);
  }

  *values(): IterableIterator<TunnelGroup<M>> {
    yield* this.#bySubdomain.values();
    yield* this.#byPort.values();
  }

  decideHttp(subdomain: string, keyHash: string, protocol: GroupProtocol): GroupDecision<M> {
    const group = this.#bySubdomain.get(subdomain);
    if (group === undefined) return { kind: 'create' };
    // Before anything of the group is told.
    if (!sameHash(group.keyHash, keyHash)) return refuse(new Fault('GROUP_KEY_MISMATCH'));
    if (group.protocol !== protocol) return refuse(new Fault('GROUP_PROTOCOL_MISMATCH'));
    return { kind: 'join', group };
  }

  /** A name that only others use is no secret of theirs: the same name begins a pool of one's own. */
  decideTcp(name: string, keyHash: string, owner: Owner): GroupDecision<M> {
    let isOwn = false;
    let joined: TunnelGroup<M> | null = null;
    for (const group of this.#byName.get(name) ?? []) {
      if (sameHash(group.keyHash, keyHash)) joined = group;
      else if (group.hasMemberOf(owner)) isOwn = true;
    }
    if (joined !== null) return { kind: 'join', group: joined };
    return isOwn ? refuse(new Fault('GROUP_KEY_MISMATCH')) : { kind: 'create' };
  }

  add(group: TunnelGroup<M>): void {
    const { endpoint, name } = group;
    if (endpoint.kind === 'name') this.#bySubdomain.set(endpoint.name, group);
    else {
      this.#byPort.set(endpoint.port, group);
      const namesakes = this.#byName.get(name) ?? new Set();
      this.#byName.set(name, namesakes.add(group));
    }
  }

  /** By identity: the late end of an old group cannot remove its successor. */
  remove(group: TunnelGroup<M>): void {
    const { endpoint, name } = group;
    if (endpoint.kind === 'name') {
      if (this.#bySubdomain.get(endpoint.name) === group) this.#bySubdomain.delete(endpoint.name);
      return;
    }
    if (this.#byPort.get(endpoint.port) === group) this.#byPort.delete(endpoint.port);
    const namesakes = this.#byName.get(name);
    namesakes?.delete(group);
    if (namesakes?.size === 0) this.#byName.delete(name);
  }
}

const refuse = (fault: Fault): { kind: 'refused'; fault: Fault } => ({ kind: 'refused', fault });

/** Every character is looked at: how long it takes says nothing about where two hashes differ. */
const sameHash = (a: string, b: string): boolean => {
  let difference = a.length ^ b.length;
  for (let at = 0; at < a.length; at += 1) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference === 0;
};
