// Ports and names behind one interface: whoever registers a tunnel asks for an endpoint, whoever ends it gives the endpoint back.
import type { LeasedEndpoint, WantedEndpoint } from '@tunnel/core';
import type { NamePool } from './name-pool.ts';
import type { PortPool } from './port-pool.ts';

export type OwnWish = Exclude<WantedEndpoint, { kind: 'group' }>;

export class Endpoints {
  readonly ports: PortPool;
  readonly names: NamePool;

  constructor(ports: PortPool, names: NamePool) {
    this.ports = ports;
    this.names = names;
  }

  /** Throws a fault when there is no such endpoint. */
  async open(owner: string, wanted: OwnWish): Promise<LeasedEndpoint> {
    return wanted.kind === 'port'
      ? { kind: 'port', port: await this.ports.open(owner, wanted.wanted) }
      : { kind: 'name', name: this.names.open(owner, wanted.wanted) };
  }

  /** No visitor comes in any more; the lease stays until hold or release. A name stops with its entry in the table. */
  close(endpoint: LeasedEndpoint): void {
    if (endpoint.kind === 'port') this.ports.close(endpoint.port);
  }

  /** `until` on the monotonic clock. */
  hold(endpoint: LeasedEndpoint, owner: string, until: number): void {
    if (endpoint.kind === 'port') this.ports.hold(endpoint.port, owner, until);
    else this.names.hold(endpoint.name, owner, until);
  }

  release(endpoint: LeasedEndpoint, owner: string): void {
    if (endpoint.kind === 'port') this.ports.release(endpoint.port, owner);
    else this.names.release(endpoint.name, owner);
  }
}
