// The living tunnels by id and by place. Removal is by identity: the late end of an old tunnel cannot evict its successor.
import { type Place, placeKey } from '@tunnel/core';
import type { Tunnel } from './tunnel.ts';

export interface TunnelWatcher {
  /** Also when a tunnel comes back, or a successor takes its place. */
  tunnelAdded(tunnel: Tunnel): void;
  /** Its id is nobody's any more. */
  tunnelRemoved(tunnel: Tunnel): void;
}

export class TunnelTable {
  readonly #watcher: TunnelWatcher | null;
  readonly #byId = new Map<string, Tunnel>();
  readonly #byPlace = new Map<string, Tunnel>();

  constructor(watcher: TunnelWatcher | null = null) {
    this.#watcher = watcher;
  }

  get size(): number {
    return this.#byId.size;
  }

  get(tunnelId: string): Tunnel | undefined {
    return this.#byId.get(tunnelId);
  }

  at(place: Place): Tunnel | undefined {
    return this.#byPlace.get(placeKey(place));
  }

  byPort(port: number): Tunnel | undefined {
    return this.at({ kind: 'port', port });
  }

  /** A subdomain. */
  byName(name: string): Tunnel | undefined {
    return this.at({ kind: 'name', name });
  }

  values(): IterableIterator<Tunnel> {
    return this.#byId.values();
  }

  add(tunnel: Tunnel): void {
    this.#byId.set(tunnel.tunnelId, tunnel);
    this.#byPlace.set(placeKey(tunnel.place), tunnel);
    this.#watcher?.tunnelAdded(tunnel);
  }

  remove(tunnel: Tunnel): void {
    if (this.at(tunnel.place) === tunnel) this.#byPlace.delete(placeKey(tunnel.place));
    if (this.#byId.get(tunnel.tunnelId) !== tunnel) return;
    this.#byId.delete(tunnel.tunnelId);
    this.#watcher?.tunnelRemoved(tunnel);
  }
}
