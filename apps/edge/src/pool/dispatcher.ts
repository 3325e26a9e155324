// Gives a public connection to a tunnel. One that stands alone is a pool of one, so that callers need not tell the two apart.
import { EDGE_LIMITS } from '../limits.ts';
import type { Tunnel } from './tunnel.ts';
import { isGroup, type Target } from './tunnel-table.ts';

export interface DispatcherDeps {
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

export class Dispatcher {
  readonly #random: () => number;

  constructor({ random }: DispatcherDeps) {
    this.#random = random;
  }

  /** null: none is healthy, or each that is was tried, or enough were. */
  choose(target: Target, tried: readonly Tunnel[]): Tunnel | null {
    if (!isGroup(target)) return tried.length === 0 ? target : null;
    if (tried.length >= EDGE_LIMITS.MEMBER_TRIES_MAX) return null;
    const first = target.pick(this.#random, tried);
    if (first === null || isConnected(first)) return first;
    // Its client dials new carriers, which the visitor would have to wait for: those that have some come first.
    const waiting = [...tried, first];
    for (;;) {
      const other = waiting.length < EDGE_LIMITS.MEMBER_TRIES_MAX ? target.pick(this.#random, waiting) : null;
      if (other === null) return first;
      if (isConnected(other)) return other;
      waiting.push(other);
    }
  }

  /** Whether the next request of a connection may go where the last one went. */
  stays(target: Target, tunnel: Tunnel): boolean {
    return isGroup(target) ? target.isHealthy(tunnel) : target === tunnel;
  }

  /** One public connection was given to it. */
  dispatched(tunnel: Tunnel): void {
    tunnel.group?.dispatched(tunnel);
  }

  /** The connection was served by another one after all. */
  moved(from: Tunnel, to: Tunnel): void {
    if (from.group !== null && from.group === to.group) from.group.moved(from, to);
  }
}

const isConnected = ({ session }: Tunnel): boolean => (session.mux?.liveCarriers ?? 0) > 0;
