// Counts the flows of all udp tunnels of an edge by account, and selects the flow to evict when the edge is full. Source addresses can be
// forged, so a flow counts for the account of its tunnel, not for the sender.

import { Ranking } from '@tunnel/rules/collections';
import { type Flow, type FlowAccount, FlowList } from '@tunnel/rules/flows';
import { FairShare } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/** Maximum confirmed flows of an account that are inspected to find the longest idle flow for eviction. */
export const FLOWS_LOOKED_AT = 1024;

export interface FlowAccountsOptions {
  /** Maximum UDP flows of the edge. */
  readonly limit: number;
  /** Share of the limit that an account keeps while other accounts need flows, 0 to 1. */
  readonly accountShare: number;
}

export class FlowAccounts<C> {
  readonly #shares: FairShare;
  readonly #of = new Map<string, AccountFlows<C>>();

  constructor({ limit, accountShare }: FlowAccountsOptions) {
    const perHolder = Math.max(1, Math.floor(limit * accountShare));
    this.#shares = new FairShare({ limit, perHolder, unlimited: isOperatorsTenant });
  }

  /** Number of UDP flows counted for accounts. */
  get size(): number {
    return this.#shares.taken;
  }

  of(account: string): number {
    return this.#shares.of(account);
  }

  /**
   * Counts a flow for an account, keyed by `tenantKey`. When the edge is full, evicts a flow of the account with the most flows above its
   * share; its table then calls `left`. Returns false if every account is within its share; the flow is then not counted.
   */
  enter(flow: Flow<C>, account: string): boolean {
    if (!this.#makeRoom()) return false;
    let flows = this.#of.get(account);
    if (flows === undefined) {
      flows = new AccountFlows(account);
      this.#of.set(account, flows);
    }
    this.#shares.take(account);
    flow.account = flows;
    if (flow.isConfirmed) flows.confirmed(flow);
    else flows.unconfirmed.append(flow.ofAccount);
    return true;
  }

  /** Stops counting a UDP flow for its account. Does nothing if the flow is not counted. */
  left(flow: Flow<C>): void {
    if (flow.account === null) return;
    const { name } = flow.account;
    const flows = this.#of.get(name);
    flow.account = null;
    flow.ofAccount.leave();
    flows?.byIdleness.remove(flow);
    this.#shares.give(name);
    if (this.#shares.of(name) === 0) this.#of.delete(name);
  }

  #makeRoom(): boolean {
    if (this.#shares.taken < this.#shares.limit) return true;
    const giver = this.#shares.mostBeyond;
    const flow = giver === null ? null : (this.#of.get(giver)?.nextToGo() ?? null);
    flow?.evict(flow, 'taken-back');
    return this.#shares.taken < this.#shares.limit;
  }
}

class AccountFlows<C> implements FlowAccount<Flow<C>> {
  readonly name: string;
  /** Unconfirmed UDP flows of the account, oldest first. */
  readonly unconfirmed = new FlowList<Flow<C>>();
  /**
   * Confirmed flows, longest idle first. To save work, a datagram does not update the rank of its flow. A rank is therefore never too low,
   * and is corrected when the flow reaches the top.
   */
  readonly byIdleness = new Ranking<Flow<C>>();

  constructor(name: string) {
    this.name = name;
  }

  confirmed(flow: Flow<C>): void {
    flow.ofAccount.leave();
    flow.rank = -flow.activeAt;
    this.byIdleness.add(flow);
  }

  nextToGo(): Flow<C> | null {
    return this.unconfirmed.first ?? this.#longestIdle();
  }

  /** Returns the longest idle flow. If very many flows were active since the last eviction, only the inspected flows are compared. */
  #longestIdle(): Flow<C> | null {
    let found: Flow<C> | null = null;
    for (let looks = 0; looks < FLOWS_LOOKED_AT; looks += 1) {
      const { first } = this.byIdleness;
      if (first === null || first.rank === -first.activeAt) return first;
      first.rank = -first.activeAt;
      this.byIdleness.moved(first);
      if (found === null || first.activeAt < found.activeAt) found = first;
    }
    return found;
  }
}
