// Totals of udp tunnels since the start. Dropped datagrams are counted by the flow tables.
import { DROP_REASONS, type DropReason } from '@tunnel/rules/flows';

export type DropCounts = Record<DropReason, number>;

export const noDrops = (): DropCounts => Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as DropCounts;

export const addDrops = (sum: DropCounts, more: Readonly<DropCounts>): void => {
  for (const reason of DROP_REASONS) sum[reason] += more[reason];
};

/** Totals of UDP flows and datagrams. Plain numbers, because every datagram changes them; metrics are read from them. */
export class UdpTotals {
  /** Number of UDP flows for which a client has opened a local socket. */
  requests = 0;
  /** Payload bytes of datagrams sent to clients. All byte counts here are of payload. */
  bytesToClient = 0;
  bytesToVisitor = 0;
  datagramsIn = 0;
  datagramsOut = 0;
  /** Datagrams included in datagramsIn that clients reported as not delivered. */
  takenBack = 0;
  /** Open UDP flows, including flows of tunnels with a disconnected client. */
  flows = 0;
  /** Denied UDP flows that are remembered. */
  denied = 0;
  /** Dropped datagrams of tunnels that have closed. */
  readonly droppedBefore = noDrops();
  /** Rejected visitors by reason. Always empty, because datagrams are dropped without a rejection. */
  readonly refused: ReadonlyMap<string, number> = new Map();
  #passedIn = 0;

  /**
   * Datagrams delivered from visitors to services. Never decreases, as required of counters: datagrams reported later as not delivered are
   * offset by the following datagrams.
   */
  get passedIn(): number {
    this.#passedIn = Math.max(this.#passedIn, this.datagramsIn - this.takenBack);
    return this.#passedIn;
  }
}
