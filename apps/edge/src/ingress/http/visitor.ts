// What a visitor's connection and the ingress are to each other, whichever version of HTTP is spoken.
import type { RequestHead } from '@tunnel/core';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { LocalAnswer } from './local-answer.ts';
import type { CallContext } from './service-call.ts';

/** Who asks, and how: as the listener knows the connection, or as a believed proxy says of one request. */
export interface VisitorFacts {
  readonly address: string;
  readonly scheme: 'http' | 'https';
  /** A proxy of `trusted_proxies`: its requests are other people's, and it says whose. */
  readonly isProxy: boolean;
  /** All that a service is told in X-Forwarded-For; undefined: what the request claims, and the address. */
  readonly forwardedFor?: string;
}

/** A request that is counted for an address by itself, as it came through a proxy. */
export interface Caller {
  readonly facts: VisitorFacts;
  /** null: its connection is what is counted, or it is over. */
  countedAddress: string | null;
}

/** What counts as one connection of a tunnel: all of HTTP/1.1, and of HTTP/2 the requests for one authority. */
export interface Dispatch {
  readonly facts: VisitorFacts;
  /** What it was dispatched to last, and is counted for. */
  tunnel: Tunnel | null;
  /** Its service has answered: what comes later does not change that it was this one. */
  isServed: boolean;
}

export interface Visitor {
  /** Once a second. */
  tick(nowMs: number): void;
  /** The edge is shutting down: what is idle ends now, what is busy after its responses. */
  shutDown(): void;
  /** Cuts the connection off, whatever it is doing. */
  close(): void;
}

export interface VisitorOwner extends CallContext {
  readonly headTimeoutMs: number;
  /** No further request on any connection: the edge is shutting down. */
  readonly isDraining: boolean;
  /** Who asks for this, on a connection with these facts. */
  factsOf(connection: VisitorFacts, head: RequestHead): VisitorFacts;
  /** Where a request goes, or why nowhere; counts the dispatch. */
  route(dispatch: Dispatch, head: RequestHead, caller: Caller): Tunnel | LocalAnswer;
  /** The request is over: it is counted for nobody's address any more. */
  release(caller: Caller): void;
  /**
   * Another member of the group for a request that those in `tried` did not get, the last of them just now; null: there is none.
   * The request then counts for the new one. A request with a body stays among services that speak the same HTTP.
   */
  another(dispatch: Dispatch, tried: readonly Tunnel[], hasBody: boolean): Tunnel | null;
  /** It is not counted any more. */
  leave(dispatch: Dispatch): void;
  onResponse(status: number, wholeMs: number, edgeMs: number | null): void;
  onClosed(visitor: Visitor): void;
}
