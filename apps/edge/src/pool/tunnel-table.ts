// The living tunnels by id and by port. Removal is by identity: the late end of an old tunnel cannot evict its successor.
import type { Tunnel } from './tunnel.ts';

export class TunnelTable {
  readonly #byId = new Map<string, Tunnel>();
  readonly #byPort = new Map<number, Tunnel>();

  get size(): number {
    return this.#byId.size;
  }

  get(tunnelId: string): Tunnel | undefined {
    return this.#byId.get(tunnelId);
  }

  byPort(port: number): Tunnel | undefined {
    return this.#byPort.get(port);
  }

  values(): IterableIterator<Tunnel> {
    return this.#byId.values();
  }

  add(tunnel: Tunnel): void {
    this.#byId.set(tunnel.tunnelId, tunnel);
    this.#byPort.set(tunnel.assignedPort, tunnel);
  }

  remove(tunnel: Tunnel): void {
    if (this.#byId.get(tunnel.tunnelId) === tunnel) this.#byId.delete(tunnel.tunnelId);
    if (this.#byPort.get(tunnel.assignedPort) === tunnel) this.#byPort.delete(tunnel.assignedPort);
  }
}
