// Public types of peers, for programs that embed the client: options, connections and events.
import type { Duplex } from 'node:stream';
import type { Fault } from '@tunnel/errors';
import type { PeerPath } from '@tunnel/peer';
import type { Secret } from '@tunnel/runtime';
import type { TrafficCounts } from '../local/traffic.ts';
import type { Tunnel } from '../tunnels/tunnel.ts';

export interface ListenAddress {
  readonly host: string;
  /** Local port. 0 chooses any free port. */
  readonly port: number;
}

/** Options of a connection to a p2p tunnel published by another client. */
export interface ConnectPeerOptions {
  readonly p2pName: string;
  /** The publisher's p2p secret. Only its SHA-256 hash leaves the process. */
  readonly secret: Secret | string;
  /** Display name of the p2p connection. Default: `p2pName`. */
  readonly name?: string;
  /** Protocol of the published service. Default: `tcp`. */
  readonly service?: 'tcp' | 'udp';
  /** Host of the local port for the p2p connection. Default: 127.0.0.1. */
  readonly listenHost?: string;
  /** Local port; 0 chooses any free port. If undefined, no port is opened, and connections are opened with dial(). */
  readonly listenPort?: number;
  /** False allows only the relay, without attempts to connect directly. */
  readonly direct?: boolean;
  /** If true, the first attempt to join the p2p tunnel is repeated without limit. Otherwise a refusal is final after 30 s. */
  readonly wait?: boolean;
}

/** connecting: the publisher was never proven yet · connected: a path to the publisher exists · away: no path right now · closed: ended. */
export type PeerConnectionState = 'connecting' | 'connected' | 'away' | 'closed';

/** A connection to a peer as seen by the subscriber, with the current path of new connections and its reason. */
export interface PeerConnection extends PeerPath {
  readonly state: PeerConnectionState;
  /** Display name of the p2p connection. */
  readonly name: string;
  readonly p2pName: string;
  readonly service: 'tcp' | 'udp';
  /** Id that the edge gave this join of a p2p tunnel. Empty while not joined. */
  readonly peerId: string;
  /** Address of the local port. Null if no local port is open, and connections use dial(). */
  readonly listen: ListenAddress | null;
  readonly counts: TrafficCounts;
  /** tcp: opens a stream to the service without a local port. Rejects with a Fault if the peer refuses. */
  dial(): Promise<Duplex>;
  /** Calls the listener at every change of the path. Returns a function that ends the subscription. */
  onPath(listener: (path: PeerPath) => void): () => void;
  /** Accepts no new connections. Running connections have `drainMs` to finish; by default they are cut off. Resolves immediately. */
  close(options?: { readonly drainMs?: number }): Promise<void>;
}

/** Status events of p2p tunnels, for publishers and subscribers. */
export type PeerEvent =
  /** p2p, at the publisher: a subscriber has proven the secret, or has left. */
  | {
      readonly type: 'peer';
      readonly tunnel: Tunnel;
      readonly peerId: string;
      readonly state: 'joined' | 'gone';
      readonly clientAddr: string;
      /** Reason of `gone`: `left`, `lost`, `dismissed`, `revoked`, or the reason why the tunnel ended. */
      readonly reason: string;
    }
  /** p2p, at both ends: the path of new connections, or its reason, has changed. `name` is the name of the tunnel or the connection. */
  | ({ readonly type: 'path'; readonly name: string; readonly peerId: string } & PeerPath)
  /** The publisher has proven the p2p secret for the first time. */
  | { readonly type: 'peer-ready'; readonly connection: PeerConnection }
  /** The connection failed. `final` means that the connection has ended; otherwise the client retries. */
  | {
      readonly type: 'peer-error';
      readonly connection: PeerConnection;
      readonly fault: Fault;
      readonly final: boolean;
    };
