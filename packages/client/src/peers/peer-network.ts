// The environment of peers: packages/peer, loaded only with the first p2p tunnel or connection, and the network as seen by the current
// session.
import type * as peerPackage from '@tunnel/peer';
import type { PeerNetwork, PeerService } from '@tunnel/peer';
import { isLoopbackHost } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import type { Session } from '../connection/session.ts';

export type PeerPackage = typeof peerPackage;

export const loadPeerPackage = (): Promise<PeerPackage> => import('@tunnel/peer');

/** The part of a session with the edge that p2p connections use. */
export type EdgeView = Pick<Session, 'edgeAddress' | 'observer'>;

/** Settings of a p2p tunnel that publisher and subscriber share. */
export interface PeerIdentity {
  /** Name of the p2p tunnel in lower case. */
  readonly p2pName: string;
  readonly service: PeerService;
  readonly direct: boolean;
}

export class ClientPeerNetwork implements PeerNetwork {
  readonly #package: PeerPackage;
  readonly #clock: Clock;
  /** The latest session. May be lost: a direct path renewed without the edge then fails to learn its public address, and reports so. */
  readonly #edge: () => EdgeView | null;

  constructor(loaded: PeerPackage, clock: Clock, edge: () => EdgeView | null) {
    this.#package = loaded;
    this.#clock = clock;
    this.#edge = edge;
  }

  loadTransport(): ReturnType<PeerNetwork['loadTransport']> {
    return this.#package.loadUdxTransport();
  }

  observer(): ReturnType<PeerNetwork['observer']> {
    const observer = this.#edge()?.observer ?? null;
    if (observer === null) return null;
    return this.#package.edgeObserver(observer, this.#clock);
  }

  ownAddresses(): readonly string[] {
    return this.#package.ownAddresses(isLoopbackHost(this.#edge()?.edgeAddress ?? ''));
  }
}
