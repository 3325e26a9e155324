// Peers as a program around the client sees them, and as the rest of the client does: a border, behind which is the folder `peers`.
import type { Duplex } from 'node:stream';
import type { MuxStream } from '@tunnel/mux';
import type { PeerPath } from '@tunnel/peer';
import type { MessageOf, StreamReason } from '@tunnel/protocol';
import type { Secret } from '@tunnel/runtime';
import type { TrafficCounts } from './forward/traffic.ts';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/** What somebody else publishes, and where local programs find it. */
export interface ConnectPeerOptions {
  readonly p2pName: string;
  /** The publisher's. Only its SHA-256 leaves the process. */
  readonly secret: Secret | string;
  /** For people; `p2pName` when left out. */
  readonly name?: string;
  /** What is published there; `tcp` when left out. */
  readonly service?: 'tcp' | 'udp';
  /** 127.0.0.1 when left out. */
  readonly listenHost?: string;
  /** 0: any free one. Left out: nothing listens, connections are dialled with dial(). */
  readonly listenPort?: number;
  /** false: through the relay alone. */
  readonly direct?: boolean;
  /** Keeps trying for ever at the start; else a refusal counts after 30 s. */
  readonly wait?: boolean;
}

/** connecting: the publisher has never been proven · connected: there is a way to it · away: none right now · closed: over. */
export type PeerConnectionState = 'connecting' | 'connected' | 'away' | 'closed';

/** As whoever connects sees it: where new connections go now, and why. */
export interface PeerConnection extends PeerPath {
  readonly state: PeerConnectionState;
  /** For people. */
  readonly name: string;
  readonly p2pName: string;
  readonly service: 'tcp' | 'udp';
  /** The edge's name for this join; empty while there is none. */
  readonly peerId: string;
  /** null: nothing listens; connections are dialled. */
  readonly listen: ListenAddress | null;
  readonly counts: TrafficCounts;
  /** tcp: a stream to the service without a local port. Rejects with a Fault when the peer does not take it. */
  dial(): Promise<Duplex>;
  /** At each change. Returns what ends the listening. */
  onPath(listener: (path: PeerPath) => void): () => void;
  /** Nothing new from now on; what runs may take `drainMs`, and is cut off without it. Settles at once. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** A subscriber, as the owner of the tunnel sees it. */
export interface PublishedPeer extends PeerPath {
  readonly peerId: string;
  /** As the edge sees it; empty until it has said so. */
  readonly clientAddr: string;
  /** Both ways, sealed as they were. */
  readonly relayBytes: number;
  readonly directBytes: number;
}

/** The peers of one p2p tunnel, as the tunnel holds them. */
export interface TunnelPeers {
  readonly list: readonly PublishedPeer[];
  /** A relay stream that the edge has opened. */
  accept(stream: MuxStream, peerId: string): void;
  onMessage(message: MessageOf<'PeerJoined'> | MessageOf<'PeerGone'>): void;
  /** The edge has answered anew: what it was told before may be gone. */
  reportAll(): void;
  close(reason: StreamReason): void;
}
