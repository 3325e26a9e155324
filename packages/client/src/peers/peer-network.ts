// What peers need of this machine: packages/peer, loaded with the first p2p tunnel or connection and never before, and the network as the
// session of the moment shows it.
import type * as peerPackage from '@tunnel/peer';
import type { PeerNetwork, PeerService } from '@tunnel/peer';
import { isLoopbackHost } from '@tunnel/rules/net';
import type { Clock } from '@tunnel/runtime';
import type { Session } from '../connection/session.ts';

export type PeerPackage = typeof peerPackage;

export const loadPeerPackage = (): Promise<PeerPackage> => import('@tunnel/peer');

/** What of a session with the edge peers go by. */
export type EdgeView = Pick<Session, 'edgeAddress' | 'observer'>;

/** What both roles are made of. */
export interface PeerIdentity {
  /** In lower case. */
  readonly p2pName: string;
  readonly service: PeerService;
  readonly direct: boolean;
}

export class ClientPeerNetwork implements PeerNetwork {
  readonly #package: PeerPackage;
  readonly #clock: Clock;
  /** The newest there was: a direct path that is renewed while the edge is lost asks in vain, and that is what is said. */
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
