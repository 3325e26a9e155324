// Which tunnel of a target has a connection: chosen by the dispatcher, within the limits, and counted for as long as it has it.
import type { ConnectionCounts } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import type { Dispatcher } from '../pool/dispatcher.ts';
import type { Tunnel } from '../pool/tunnel.ts';
import { isGroup, type Target } from '../pool/tunnel-table.ts';
import type { RefusalReason } from './relay-totals.ts';

export interface Refusal {
  readonly reason: Extract<RefusalReason, 'tunnel-limit' | 'address-limit' | 'no-healthy'>;
  readonly fault: Fault;
}

export type Assignment = { readonly tunnel: Tunnel } | Refusal;

export class Assigner {
  readonly #dispatcher: Pick<Dispatcher, 'choose'>;
  readonly #counts: ConnectionCounts;

  constructor(dispatcher: Pick<Dispatcher, 'choose'>, counts: ConnectionCounts) {
    this.#dispatcher = dispatcher;
    this.#counts = counts;
  }

  /** Assigned: the caller owes one takeBack(). A member that is full leaves it to the others. */
  assign(target: Target, address: string, tried: readonly Tunnel[]): Assignment {
    let passed = tried;
    let refusal: Refusal | null = null;
    for (;;) {
      const tunnel = this.#dispatcher.choose(target, passed);
      if (tunnel === null) return refusal ?? noneHealthy(target);
      refusal = this.#count(tunnel.tunnelId, address);
      if (refusal === null) {
        tunnel.counters.openConnections += 1;
        return { tunnel };
      }
      if (refusal.reason === 'address-limit') return refusal;
      passed = [...passed, tunnel];
    }
  }

  takeBack(tunnel: Tunnel, address: string): void {
    tunnel.counters.openConnections -= 1;
    this.#counts.closed(tunnel.tunnelId, address);
  }

  /** For the time that a connection takes although no tunnel has it. null: it is counted, for `targetId`. */
  countUnserved(target: Target, address: string): Refusal | null {
    return this.#count(targetId(target), address);
  }

  forgetUnserved(countedFor: string, address: string): void {
    this.#counts.closed(countedFor, address);
  }

  #count(countedFor: string, address: string): Refusal | null {
    const verdict = this.#counts.opened(countedFor, address);
    if (verdict.kind === 'counted') return null;
    const { limit } = verdict;
    return verdict.kind === 'tunnel-full'
      ? { reason: 'tunnel-limit', fault: new Fault('CONNECTIONS_PER_TUNNEL', { limit }) }
      : { reason: 'address-limit', fault: new Fault('CONNECTIONS_PER_ADDRESS', { limit }) };
  }
}

export const targetId = (target: Target): string => (isGroup(target) ? target.groupId : target.tunnelId);

const noneHealthy = (target: Target): Refusal => ({
  reason: 'no-healthy',
  fault: new Fault(isGroup(target) ? 'GROUP_UNHEALTHY' : 'TUNNEL_AWAY'),
});
