// The living tunnels by id and by place. Removal is by identity: the late end of an old tunnel cannot evict its successor.
import { type Place, placeKey } from '@tunnel/core';
import type { Tunnel } from './tunnel.ts';

export class TunnelTable {
  readonly #byId = new Map<string, Tunnel>();
  readonly #byPlace = new Map<string, Tunnel>();

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
  }

  remove(tunnel: Tunnel): void {
    if (this.#byId.get(tunnel.tunnelId) === tunnel) this.#byId.delete(tunnel.tunnelId);
    if (this.at(tunnel.place) === tunnel) this.#byPlace.delete(placeKey(tunnel.place));
  }
}
