// Peers as a program around the client sees them: what it asks for, what it is given, and what it is told while they are there.
import type { Duplex } from 'node:stream';
import type { Fault } from '@tunnel/errors';
import type { PeerPath } from '@tunnel/peer';
import type { Secret } from '@tunnel/runtime';
import type { TrafficCounts } from '../local/traffic.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';

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

/** What a client tells of peers, at either end. */
export type PeerEvent =
  /** p2p, at the publisher: a subscriber has proven the secret, or is gone. */
  | {
      readonly type: 'peer';
      readonly tunnel: Tunnel;
      readonly peerId: string;
      readonly state: 'joined' | 'gone';
      readonly clientAddr: string;
      /** Of `gone`: `left`, `lost`, `dismissed`, `revoked`, or why the tunnel ended. */
      readonly reason: string;
    }
  /** p2p, at either end: new connections go another way than before, or for another reason. `name`: of the tunnel or the connection. */
  | ({ readonly type: 'path'; readonly name: string; readonly peerId: string } & PeerPath)
  /** The publisher is proven for the first time. */
  | { readonly type: 'peer-ready'; readonly connection: PeerConnection }
  /** `final`: the connection is over; else it is tried again by itself. */
  | {
      readonly type: 'peer-error';
      readonly connection: PeerConnection;
      readonly fault: Fault;
      readonly final: boolean;
    };
