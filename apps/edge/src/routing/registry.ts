// The living tunnels by id, and what the public finds at a name or a port. Removal is by identity: the late end of an old
// tunnel cannot evict its successor.
import { endpointKey, type LeasedEndpoint, type PublicEndpoint } from '@tunnel/rules/tunnels';
import { GroupDirectory } from './group-directory.rules.ts';
import type { Tunnel } from './tunnel.ts';
import { TunnelGroup } from './tunnel-group.rules.ts';

/** What stands at one public endpoint. */
export type Route = Tunnel | TunnelGroup<Tunnel>;

export const isGroup = (route: Route): route is TunnelGroup<Tunnel> => route instanceof TunnelGroup;

/** A tunnel keeps its key when its client comes back, and a group when its members change. */
export const routeKeyOf = (route: Route): string => (isGroup(route) ? route.groupId : route.tunnelId);

const OPERATOR = { kind: 'operator' } as const;

export const isOperators = (route: Route): boolean =>
  isGroup(route) ? route.hasMemberOf(OPERATOR) : route.owner.kind === OPERATOR.kind;

export interface TunnelWatcher {
  /** Also when a tunnel comes back, or a successor takes its place. */
  tunnelAdded(tunnel: Tunnel): void;
  /** Its id is nobody's any more. */
  tunnelRemoved(tunnel: Tunnel): void;
}

export class Registry {
  readonly groups: GroupDirectory<Tunnel>;
  readonly #watchers: readonly TunnelWatcher[];
  readonly #byId = new Map<string, Tunnel>();
  /** Those that stand alone: at a name or an own domain, asked for with each request, and elsewhere. */
  readonly #byName = new Map<string, Tunnel>();
  readonly #byDomain = new Map<string, Tunnel>();
  readonly #byEndpoint = new Map<string, Tunnel>();

  constructor(watchers: readonly TunnelWatcher[] = [], groups = new GroupDirectory<Tunnel>()) {
    this.#watchers = watchers;
    this.groups = groups;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(tunnelId: string): Tunnel | undefined {
    return this.#byId.get(tunnelId);
  }

  /** It is this very one that lives, no predecessor of it. */
  has(tunnel: { readonly tunnelId: string }): boolean {
    return this.#byId.get(tunnel.tunnelId) === tunnel;
  }

  /** What a visitor of this endpoint finds. */
  at(endpoint: LeasedEndpoint): Route | undefined {
    return this.#aloneAt(endpoint) ?? this.groups.at(endpoint);
  }

  values(): IterableIterator<Tunnel> {
    return this.#byId.values();
  }

  add(tunnel: Tunnel): void {
    this.#byId.set(tunnel.tunnelId, tunnel);
    const { endpoint } = tunnel;
    if (tunnel.group === null) this.#tunnelsLike(endpoint).set(keyOf(endpoint), tunnel);
    for (const watcher of this.#watchers) watcher.tunnelAdded(tunnel);
  }

  remove(tunnel: Tunnel): void {
    const { endpoint } = tunnel;
    if (this.#aloneAt(endpoint) === tunnel) this.#tunnelsLike(endpoint).delete(keyOf(endpoint));
    if (this.#byId.get(tunnel.tunnelId) !== tunnel) return;
    this.#byId.delete(tunnel.tunnelId);
    for (const watcher of this.#watchers) watcher.tunnelRemoved(tunnel);
  }

  #aloneAt(endpoint: PublicEndpoint): Tunnel | undefined {
    return this.#tunnelsLike(endpoint).get(keyOf(endpoint));
  }

  #tunnelsLike({ kind }: PublicEndpoint): Map<string, Tunnel> {
    if (kind === 'name') return this.#byName;
    return kind === 'domain' ? this.#byDomain : this.#byEndpoint;
  }
}

/** A name is its own key: one that is put together anew would have to be hashed with each request. */
const keyOf = (endpoint: PublicEndpoint): string =>
  endpoint.kind === 'name' || endpoint.kind === 'domain' ? endpoint.name : endpointKey(endpoint);
