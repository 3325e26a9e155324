// The registered tunnels by id, and the routes at public names and ports. Tunnels are removed by identity, so that a delayed removal of
// an old tunnel cannot remove its successor.
import { endpointKey, type LeasedEndpoint, type PublicEndpoint } from '@tunnel/rules/tunnels';
import { GroupDirectory } from './group-directory.rules.ts';
import type { Tunnel } from './tunnel.ts';
import { TunnelGroup } from './tunnel-group.rules.ts';

/** The tunnel or group at a public endpoint. */
export type Route = Tunnel | TunnelGroup<Tunnel>;

export const isGroup = (route: Route): route is TunnelGroup<Tunnel> => route instanceof TunnelGroup;

/** Returns the id of a route. The id of a tunnel survives a reconnect of the client, and the id of a group survives changes of members. */
export const routeKeyOf = (route: Route): string => (isGroup(route) ? route.groupId : route.tunnelId);

const OPERATOR = { kind: 'operator' } as const;

export const isOperators = (route: Route): boolean =>
  isGroup(route) ? route.hasMemberOf(OPERATOR) : route.owner.kind === OPERATOR.kind;

export interface TunnelWatcher {
  /** Called for a new tunnel, for a tunnel that has returned, and for a successor that replaces a tunnel. */
  tunnelAdded(tunnel: Tunnel): void;
  /** Called when the tunnel's id no longer belongs to any tunnel. */
  tunnelRemoved(tunnel: Tunnel): void;
}

export class Registry {
  readonly groups: GroupDirectory<Tunnel>;
  readonly #watchers: readonly TunnelWatcher[];
  readonly #byId = new Map<string, Tunnel>();
  /**
   * Tunnels without a group, by endpoint. Subdomains and custom domains have separate maps, because a name is looked up for every
   * request.
   */
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

  /** Returns true if exactly this tunnel is registered, and not a predecessor or successor with the same id. */
  has(tunnel: { readonly tunnelId: string }): boolean {
    return this.#byId.get(tunnel.tunnelId) === tunnel;
  }

  /** Returns the tunnel or group that serves visitors of an endpoint. */
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

/** Returns the map key of an endpoint. A name is its own key, because a newly built string would have to be hashed for every request. */
const keyOf = (endpoint: PublicEndpoint): string =>
  endpoint.kind === 'name' || endpoint.kind === 'domain' ? endpoint.name : endpointKey(endpoint);
