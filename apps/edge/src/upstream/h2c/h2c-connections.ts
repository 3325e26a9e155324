// Connections to local services that speak HTTP/2: shared by the calls of a tunnel, few, and closed when nobody needs them.
import { EDGE_LIMITS } from '../../limits.ts';
import type { Service, UpstreamContext } from '../upstream-request.ts';
import { H2cConnection, type H2cWaiter } from './h2c-connection.ts';

export class H2cConnections {
  readonly #context: Pick<UpstreamContext, 'now' | 'onBytes'>;
  readonly #byTunnel = new Map<string, H2cConnection[]>();

  constructor(context: Pick<UpstreamContext, 'now' | 'onBytes'>) {
    this.#context = context;
  }

  /** Exactly one of the waiter's answers comes, at once or later. */
  take(service: Service, waiter: H2cWaiter): void {
    const usable = this.#of(service).filter((connection) => connection.takesCalls);
    const free = leastLoaded(usable.filter((connection) => connection.hasRoom));
    if (free !== null) free.take(waiter);
    else if (usable.length < EDGE_LIMITS.H2C_SESSIONS_PER_TUNNEL) this.#open(service, waiter);
    // node lets what is over the service's bound wait for its turn.
    else leastLoaded(usable)?.take(waiter);
  }

  #of({ tunnelId }: Service): H2cConnection[] {
    return this.#byTunnel.get(tunnelId) ?? [];
  }

  #open(service: Service, waiter: H2cWaiter): void {
    const connection = new H2cConnection({
      service,
      now: this.#context.now,
      onBytes: (toClient, toVisitor) => {
        service.counters.addBytes(toClient + toVisitor);
        this.#context.onBytes(toClient, toVisitor);
      },
      onExcess: (excess) => this.take(service, excess),
    });
    this.#byTunnel.set(service.tunnelId, [...this.#of(service), connection]);
    connection.take(waiter);
    connection.start();
  }

  /** Once a second. */
  sweep(nowMs: number): void {
    for (const [tunnelId, connections] of this.#byTunnel) {
      const kept = connections.filter((connection) => connection.isKept(nowMs));
      if (kept.length > 0) this.#byTunnel.set(tunnelId, kept);
      else this.#byTunnel.delete(tunnelId);
    }
  }

  close(): void {
    for (const connections of this.#byTunnel.values()) for (const connection of connections) connection.close();
    this.#byTunnel.clear();
  }
}

const leastLoaded = (connections: readonly H2cConnection[]): H2cConnection | null => {
  let best: H2cConnection | null = null;
  for (const connection of connections) if (best === null || connection.load < best.load) best = connection;
  return best;
};
