// All relay streams of all p2p tunnels: admits streams of subscribers within the tunnel's limits, keeps the totals, and reports when the
// last stream has ended.

import type { MuxStream, ReportInternalError } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import { ownerKey } from '@tunnel/rules/tunnels';
import { type Clock, type Logger, LogLimiter } from '@tunnel/runtime';
import { type Balancer, Lease } from '../../routing/balancer.ts';
import type { Registry } from '../../routing/registry.ts';
import type { Tunnel } from '../../routing/tunnel.ts';
import type { JoinedPeer } from './joined-peer.ts';
import type { PeerJoins } from './peer-joins.ts';
import { PeerRelay } from './peer-relay.ts';

/**
 * Maximum concurrent relay streams of a peer. A client normally has a single stream, and a second while the first is ending. The limit
 * keeps a peer from using all connections of its tunnel.
 */
export const P2P_RELAYS_PER_PEER = 16;

export interface PeerRelaysOptions {
  readonly joins: PeerJoins;
  readonly tunnels: Pick<Registry, 'get'>;
  readonly balancer: Balancer;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly report: ReportInternalError;
  /** Called when a relay stream has ended and all its bytes are counted. */
  readonly onStreamEnd?: () => void;
}

const UNKNOWN: StreamReason = { code: 'unknown-tunnel', text: 'the session has no such peer' };
const AWAY: StreamReason = { code: 'carrier-lost', text: 'the publisher is not connected right now' };
const TOO_MANY: StreamReason = { code: 'limit', text: 'the peer has reached the limit of relay streams' };
const SHUTTING_DOWN: StreamReason = { code: 'shutting-down', text: 'the edge is shutting down' };

export class PeerRelays {
  readonly report: ReportInternalError;
  readonly #options: PeerRelaysOptions;
  readonly #log: LogLimiter;
  readonly #live = new Set<PeerRelay>();
  #isDraining = false;
  #idleWaiters: (() => void)[] = [];

  constructor(options: PeerRelaysOptions) {
    this.report = options.report;
    this.#options = options;
    this.#log = new LogLimiter(options.logger, () => options.clock.monotonic());
  }

  get connections(): number {
    return this.#live.size;
  }

  /** Relays a stream opened by the client of a session. The stream must name a join of the same session. */
  carry(sessionId: string, stream: MuxStream, { tunnelId: peerId }: StreamHead): void {
    const { joins, tunnels, balancer } = this.#options;
    const joined = joins.find(sessionId, peerId);
    if (joined === undefined) return this.#refuse(stream, 'no-tunnel', UNKNOWN);
    if (this.#isDraining) return stream.refuse(SHUTTING_DOWN);
    const publisher = tunnels.get(joined.peer.tunnelId);
    if (publisher === undefined) return this.#refuse(stream, 'no-carrier', AWAY);
    if (joined.relays.size >= P2P_RELAYS_PER_PEER) {
      this.#note('limit', joined, publisher, TOO_MANY.text);
      return stream.refuse(TOO_MANY);
    }
    const lease = new Lease();
    const refusal = balancer.acquire(lease, publisher);
    if (refusal !== null) {
      const { message } = refusal.fault;
      this.#note(refusal.reason, joined, publisher, message);
      return stream.refuse({ code: 'limit', text: message });
    }
    const relay = new PeerRelay(stream, joined, publisher, lease, this);
    this.#live.add(relay);
    joined.relays.add(relay);
    relay.start();
  }

  #refuse(stream: MuxStream, counted: 'no-tunnel' | 'no-carrier', reason: StreamReason): void {
    this.#options.joins.totals.countRefusal(counted);
    stream.refuse(reason);
  }

  // ---- shutdown ----

  /** Stops accepting relay streams of p2p subscribers. Open streams continue. */
  async closeAll(): Promise<void> {
    this.#isDraining = true;
  }

  resetConnections(): void {
    this.#isDraining = true;
    for (const relay of [...this.#live]) relay.reset(SHUTTING_DOWN);
  }

  whenIdle(): Promise<void> {
    if (this.#live.size === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#idleWaiters.push(resolve);
    });
  }

  // ---- calls from relay streams ----

  onBytes(toClient: number, toVisitor: number): void {
    const { totals } = this.#options.joins;
    totals.bytesToClient += toClient;
    totals.bytesToVisitor += toVisitor;
  }

  /** Called when the publisher's client rejected the relay stream. onOver follows. */
  onRefused({ joined, lease: { member } }: PeerRelay, { code, text }: StreamReason): void {
    if (member !== null) this.#note(code, joined, member, text);
  }

  /** Called when a relay stream has ended: last, and exactly once. */
  onOver(relay: PeerRelay): void {
    const { balancer, onStreamEnd } = this.#options;
    balancer.release(relay.lease);
    this.#live.delete(relay);
    relay.joined.relays.delete(relay);
    onStreamEnd?.();
    if (this.#live.size > 0) return;
    const waiters = this.#idleWaiters;
    this.#idleWaiters = [];
    for (const resolve of waiters) resolve();
  }

  #note(
    reason: Parameters<PeerJoins['totals']['countRefusal']>[0],
    { peer }: JoinedPeer,
    publisher: Tunnel,
    text: string,
  ): void {
    this.#options.joins.totals.countRefusal(reason);
    const fields = { reason, tunnel_id: publisher.tunnelId, peer_id: peer.peerId };
    this.#log.log('warn', `relay ${ownerKey(publisher.owner)}`, fields, `peer connection failed: ${text}`);
  }
}
