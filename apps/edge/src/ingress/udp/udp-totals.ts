// What udp tunnels have passed since the start. What was dropped is counted by the tables of flows.
import { DROP_REASONS, type DropReason } from '@tunnel/rules/flows';

export type DropCounts = Record<DropReason, number>;

export const noDrops = (): DropCounts => Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as DropCounts;

export const addDrops = (sum: DropCounts, more: Readonly<DropCounts>): void => {
  for (const reason of DROP_REASONS) sum[reason] += more[reason];
};

/** Plain numbers, because they change with every datagram; metrics read them. */
export class UdpTotals {
  /** Flows for which a client has opened a local socket. */
  requests = 0;
  /** Payloads, as all bytes here. */
  bytesToClient = 0;
  bytesToVisitor = 0;
  datagramsIn = 0;
  datagramsOut = 0;
  /** Of those in: what clients say they did not pass on. */
  takenBack = 0;
  /** Flows that live now, those of tunnels that come back included. */
  flows = 0;
  /** Flows that were refused a moment ago and are remembered. */
  denied = 0;
  /** Of tunnels that are gone. */
  readonly droppedBefore = noDrops();
  /** No visitor is told anything: their datagrams are dropped. */
  readonly refused: ReadonlyMap<string, number> = new Map();
  #passedIn = 0;

  /** From visitors to their services. It never falls, as counters may not: what is taken back is made up for by what follows. */
  get passedIn(): number {
    this.#passedIn = Math.max(this.#passedIn, this.datagramsIn - this.takenBack);
    return this.#passedIn;
  }
}
