// Ports and names behind one interface: whoever registers a tunnel asks for a place, whoever ends it gives the place back.
import type { OwnPlace, PlaceWish } from '@tunnel/core';
import type { NamePool } from './name-pool.ts';
import type { PortPool } from './port-pool.ts';

export type OwnWish = Exclude<PlaceWish, { kind: 'group' }>;

export class Places {
  readonly ports: PortPool;
  readonly names: NamePool;

  constructor(ports: PortPool, names: NamePool) {
    this.ports = ports;
    this.names = names;
  }

  /** Throws a fault when there is no such place. */
  async open(owner: string, wish: OwnWish): Promise<OwnPlace> {
    return wish.kind === 'port'
      ? { kind: 'port', port: await this.ports.open(owner, wish.wish) }
      : { kind: 'name', name: this.names.open(owner, wish.wish) };
  }

  /** No visitor comes in any more; the lease stays until hold or release. A name stops with its entry in the table. */
  close(place: OwnPlace): void {
    if (place.kind === 'port') this.ports.close(place.port);
  }

  /** `until` on the monotonic clock. */
  hold(place: OwnPlace, owner: string, until: number): void {
    if (place.kind === 'port') this.ports.hold(place.port, owner, until);
    else this.names.hold(place.name, owner, until);
  }

  release(place: OwnPlace, owner: string): void {
    if (place.kind === 'port') this.ports.release(place.port, owner);
    else this.names.release(place.name, owner);
  }
}
