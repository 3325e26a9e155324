// The flows of all udp tunnels of an edge by account, and which one is taken back when the edge has all the flows it can have. A source can be
// forged, so a flow counts for the account of its tunnel, whoever sends.

import { Ranking } from '@tunnel/rules/collections';
import { type Flow, type FlowAccount, FlowList } from '@tunnel/rules/flows';
import { Shares } from '@tunnel/rules/rate';
import { isOperatorsTenant } from '@tunnel/rules/tunnels';

/** confirmed flows of an account that are looked at to find the one that has been idle longest, when a flow is taken back */
export const FLOWS_LOOKED_AT = 1024;

export interface FlowAccountsOptions {
  /** Flows of the edge. */
  readonly limit: number;
  /** The part of them that an account keeps while others want flows, 0 to 1. */
  readonly accountShare: number;
}

export class FlowAccounts<C> {
  readonly #shares: Shares;
  readonly #of = new Map<string, AccountFlows<C>>();

  constructor({ limit, accountShare }: FlowAccountsOptions) {
    const perHolder = Math.max(1, Math.floor(limit * accountShare));
    this.#shares = new Shares({ limit, perHolder, unlimited: isOperatorsTenant });
  }

  /** Flows that are counted. */
  get size(): number {
    return this.#shares.taken;
  }

  of(account: string): number {
    return this.#shares.of(account);
  }

  /**
   * Counts a flow for an account, as `tenantKey` names it. When the edge is full, a flow of the account with the most beyond its share ends, and its table
   * says so by `left`. false: every account is within its share, and the flow is not counted.
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

  /** Does nothing for a flow that is not counted. */
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
  /** Oldest first. */
  readonly unconfirmed = new FlowList<Flow<C>>();
  /**
   * The confirmed ones, longest idle first. A datagram does not move its flow here, because that would cost something for each; a flow
   * is at least as high as it should be, and is moved down when it comes up.
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

  /** Of those that are looked at when very many were active since the last look. */
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
