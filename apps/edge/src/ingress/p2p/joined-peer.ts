// A subscriber that has joined a p2p tunnel: the publisher's reports on it, relayed bytes, and current relay streams.

import type { MessageOf, StreamReason } from '@tunnel/protocol';
import type { Peer } from './p2p-registry.rules.ts';
import type { PeerRelay } from './peer-relay.ts';

type PeerReport = MessageOf<'PeerReport'>;

export class JoinedPeer {
  readonly peer: Peer;
  /** Session id of the publisher, which is notified when the subscriber leaves. */
  readonly publisherId: string;
  /** Address of the subscriber as host:port. May change when the subscriber reconnects. */
  clientAddr: string;
  /** Time when the subscriber joined, in milliseconds since the epoch. */
  readonly since: number;
  /** Bytes relayed between subscriber and publisher in both directions, each byte counted once. */
  relayedBytes = 0;
  // Path figures as reported by the publisher. Every peer starts on the relay.
  path: PeerReport['path'] = 'relay';
  reason: PeerReport['reason'] = 'punching';
  rttMs: number | null = null;
  directBytes = 0;
  readonly relays = new Set<PeerRelay>();

  constructor(options: Pick<JoinedPeer, 'peer' | 'publisherId' | 'clientAddr' | 'since'>) {
    this.peer = options.peer;
    this.publisherId = options.publisherId;
    this.clientAddr = options.clientAddr;
    this.since = options.since;
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
