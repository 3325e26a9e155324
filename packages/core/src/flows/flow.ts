// One visitor address and port of a udp tunnel: what has passed, and what is known of whoever sends. Its table moves it; others read it.
import { type FlowKey, flowKeyOf } from './flow-key.ts';
import { FlowLink } from './flow-list.ts';

/** `C`: what the ingress keeps with it, its stream above all. */
export class Flow<C> {
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

  // Where it stands: in the wheel of expiry, and while it is not confirmed among those that may have to make room.
  readonly inWheel: FlowLink<Flow<C>>;
  readonly inTable: FlowLink<Flow<C>>;
  readonly ofAddress: FlowLink<Flow<C>>;
  /** Ends it, whichever table it is of. */
  readonly evict: (flow: Flow<C>) => void;

  constructor(address: string, port: number, now: number, evict: (flow: Flow<C>) => void) {
    this.key = flowKeyOf(address, port);
    this.address = address;
    this.port = port;
    this.since = now;
    this.activeAt = now;
    this.evict = evict;
    this.inWheel = new FlowLink(this);
    this.inTable = new FlowLink(this);
    this.ofAddress = new FlowLink(this);
  }
}
