// A visitor address and port of a UDP tunnel: counters and what is known about the sender. Only its table changes a flow.
import { NOT_RANKED, type Ranked } from '../collections/ranking.ts';
import { type FlowKey, flowKeyOf } from './flow-key.ts';
import { FlowLink } from './flow-list.ts';

/**
 * Reason for the end of a flow. `idle`: no datagram for too long. `evicted`: made room for a new flow. `taken-back`: made room for another
 * account's flow. `closed`: by the owner of the table.
 */
export type FlowEnd = 'idle' | 'evicted' | 'taken-back' | 'closed';

/** Account for which a UDP flow is counted. */
export interface FlowAccount<F> {
  readonly name: string;
  /** The visitor is proven to exist, so the flow is now among the last to be reclaimed. */
  confirmed(flow: F): void;
}

/** UDP flow: the datagrams of a visitor's address and port to a tunnel. `C` is the ingress's context of the flow, mainly its stream. */
export class Flow<C> implements Ranked {
  readonly key: FlowKey;
  /** Visitor's address as received. Replies are sent there. */
  readonly address: string;
  readonly port: number;
  /** Start of the flow in monotonic time, like all times in this class. */
  readonly since: number;
  /** Time of the flow's last datagram in either direction. */
  activeAt: number;
  /** True once a reply was sent to the visitor. */
  isAnswered = false;
  /** True if the visitor sent a datagram after a reply. A forged sender never sees the reply. */
  isConfirmed = false;
  /** A policy denies the flow until this time. 0 if not denied. */
  deniedUntil = 0;
  isEnded = false;
  /** Bytes of replies sent while the visitor's address was unconfirmed. */
  unconfirmedBytes = 0;
  datagramsIn = 0;
  datagramsOut = 0;
  bytesIn = 0;
  bytesOut = 0;
  dropped = 0;
  /** Context of the flow's open stream. Null while no stream is open; the next datagram opens a stream. */
  context: C | null = null;
  /** Account for which the flow is counted. Null while the flow is not counted. */
  account: FlowAccount<Flow<C>> | null = null;

  // Positions of the flow in the expiry wheel and, while unconfirmed, in the eviction lists.
  readonly inWheel: FlowLink<Flow<C>>;
  readonly inTable: FlowLink<Flow<C>>;
  readonly ofAddress: FlowLink<Flow<C>>;
  readonly ofAccount: FlowLink<Flow<C>>;
  // Rank of the flow among the account's confirmed flows: the idle time when last computed.
  rank = 0;
  heapIndex = NOT_RANKED;
  /** Removes this flow from the flow table and frees its place. */
  readonly evict: (flow: Flow<C>, end: FlowEnd) => void;

  constructor(address: string, port: number, now: number, evict: (flow: Flow<C>, end: FlowEnd) => void) {
    this.key = flowKeyOf(address, port);
    this.address = address;
    this.port = port;
    this.since = now;
    this.activeAt = now;
    this.evict = evict;
    this.inWheel = new FlowLink(this);
    this.inTable = new FlowLink(this);
    this.ofAddress = new FlowLink(this);
    this.ofAccount = new FlowLink(this);
  }
}
