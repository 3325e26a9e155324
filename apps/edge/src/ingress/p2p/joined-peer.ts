// One subscriber that has joined a p2p tunnel: what its publisher reports of it, what passed through the relay, and the relay streams it has now.

import type { MessageOf, StreamReason } from '@tunnel/protocol';
import type { Peer } from './p2p-registry.rules.ts';
import type { PeerRelay } from './peer-relay.ts';

type PeerReport = MessageOf<'PeerReport'>;

export class JoinedPeer {
  readonly peer: Peer;
  /** The session of its publisher, which is told when it goes. */
  readonly publisherId: string;
  /** host:port of the subscriber; it may come back from elsewhere. */
  clientAddr: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** Both ways, each byte once. */
  relayedBytes = 0;
  // As the publisher reports; every peer begins on the relay.
  path: PeerReport['path'] = 'relay';
  reason: PeerReport['reason'] = 'punching';
  rttMs: number | null = null;
  directBytes = 0;
  readonly relays = new Set<PeerRelay>();

  constructor(given: Pick<JoinedPeer, 'peer' | 'publisherId' | 'clientAddr' | 'since'>) {
    this.peer = given.peer;
    this.publisherId = given.publisherId;
    this.clientAddr = given.clientAddr;
    this.since = given.since;
  }

  report({ path, reason, rtt_ms, direct_bytes }: PeerReport): void {
    this.path = path;
    this.reason = reason;
    this.rttMs = rtt_ms;
    this.directBytes = direct_bytes;
  }

  resetRelays(reason: StreamReason): void {
    for (const relay of [...this.relays]) relay.reset(reason);
  }
}
