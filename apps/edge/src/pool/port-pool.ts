// Ports with their listeners: a lease is given out once its listener is open, and goes back after its listener has closed.
import { PortLeases, type WantedPort } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../limits.ts';

export interface PortListeners {
  listen(port: number): Promise<'listening' | 'taken'>;
  close(port: number): Promise<void>;
}

export interface PortPoolOptions {
  readonly range: { readonly from: number; readonly to: number };
  readonly listeners: PortListeners;
  readonly clock: Clock;
  readonly random: () => number;
}

export class PortPool {
  readonly range: { readonly from: number; readonly to: number };
  readonly #leases: PortLeases;
  readonly #listeners: PortListeners;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #closing = new Map<number, Promise<void>>();

  constructor({ range, listeners, clock, random }: PortPoolOptions) {
    this.range = range;
    this.#leases = new PortLeases(range);
    this.#listeners = listeners;
    this.#clock = clock;
    this.#random = random;
  }

  /** Leases a port and opens it. Throws a fault when there is none; a port of another program is skipped. */
  async open(owner: string, wanted: WantedPort): Promise<number> {
    // A port on its way back is waited for: its release must come before a new lease, not after it.
    if (wanted.kind !== 'any') await this.#closing.get(wanted.port);
    let next = wanted;
    for (;;) {
      const port = this.#lease(owner, next);
      if (await this.#listen(port, owner)) return port;
      this.#leases.markOutside(port, owner, this.#clock.monotonic() + EDGE_LIMITS.PORT_TAKEN_RETRY_MS);
      if (next.kind === 'exact') throw new Fault('TUNNEL_PORT_IN_USE', { port });
      next = { kind: 'any' };
    }
  }

  /** No visitor comes in any more; the lease stays until hold or release. */
  close(port: number): void {
    const closed = this.#listeners.close(port).finally(() => {
      if (this.#closing.get(port) === closed) this.#closing.delete(port);
    });
    this.#closing.set(port, closed);
  }

  /** `until` on the monotonic clock. */
  hold(port: number, owner: string, until: number): void {
    this.#leases.hold(port, owner, until);
  }

  release(port: number, owner: string): void {
    const closing = this.#closing.get(port);
    const release = (): void => void this.#leases.release(port, owner);
    if (closing === undefined) release();
    else closing.then(release, release);
  }

  #lease(owner: string, wanted: WantedPort): number {
    const answer = this.#leases.lease(owner, wanted, this.#random(), this.#clock.monotonic());
    switch (answer.kind) {
      case 'leased':
        return answer.port;
      case 'in-use':
        throw new Fault('TUNNEL_PORT_IN_USE', { port: answer.port });
      case 'out-of-range':
        throw new Fault('TUNNEL_PORT_OUT_OF_RANGE', { port: answer.port, ...this.range });
      case 'exhausted':
        throw new Fault('TUNNEL_PORTS_EXHAUSTED', { ...this.range });
    }
  }

  async #listen(port: number, owner: string): Promise<boolean> {
    try {
      return (await this.#listeners.listen(port)) === 'listening';
    } catch (error) {
      this.#leases.release(port, owner);
      throw error;
    }
  }
}
