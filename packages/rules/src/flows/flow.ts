// One visitor address and port of a udp tunnel: what has passed, and what is known of whoever sends. Its table moves it; others read it.
import { NOT_RANKED, type Ranked } from '../collections/ranking.ts';
import { type FlowKey, flowKeyOf } from './flow-key.ts';
import { FlowLink } from './flow-list.ts';

/** How a flow ends. Idle: nothing passed for too long. Evicted: it made room for a new one. Taken back: it made room for another account's. Closed: by the owner of its table. */
export type FlowEnd = 'idle' | 'evicted' | 'taken-back' | 'closed';

/** The account that a flow is counted for. */
export interface FlowAccount<F> {
  readonly name: string;
  /** The visitor has proven that it is there: the flow is now among the last to be taken back. */
  confirmed(flow: F): void;
}

/** `C`: what the ingress keeps with it, its stream above all. */
export class Flow<C> implements Ranked {
  readonly key: FlowKey;
  /** As it came: replies go there. */
  readonly address: string;
  readonly port: number;
  /** Monotonic, as all times here. */
  readonly since: number;
  /** The last datagram of either direction. */
  activeAt: number;
  /** A reply has gone to it. */
  isAnswered = false;
  /** The visitor sent something after a reply had gone to it: whoever forges an address does not see the reply. */
  isConfirmed = false;
  /** Refused until then; 0: it is not. */
  deniedUntil = 0;
  isEnded = false;
  /** Of the replies while it was not confirmed. */
  unconfirmedBytes = 0;
  datagramsIn = 0;
  datagramsOut = 0;
  bytesIn = 0;
  bytesOut = 0;
  dropped = 0;
  /** null: nothing is open for it; the next datagram opens. */
  context: C | null = null;
  /** null while it is counted for no account. */
  account: FlowAccount<Flow<C>> | null = null;

  // Where it stands: in the wheel of expiry, and while it is not confirmed among those that may have to make room.
  readonly inWheel: FlowLink<Flow<C>>;
  readonly inTable: FlowLink<Flow<C>>;
  readonly ofAddress: FlowLink<Flow<C>>;
  readonly ofAccount: FlowLink<Flow<C>>;
  // Among the confirmed ones of its account: how idle it was when that was last looked at.
  rank = 0;
  heapIndex = NOT_RANKED;
  /** Ends it, whichever table it is of. */
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
