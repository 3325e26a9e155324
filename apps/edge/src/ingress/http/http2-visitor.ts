// One HTTP/2 connection of a visitor: requests side by side, each routed by its authority, all within bounds.
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { RequestHead } from '@tunnel/core';
import { EDGE_LIMITS } from '../../limits.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { RawFields } from './http2-fields.ts';
import { Http2Liveness } from './http2-liveness.ts';
import { Http2Request, type RequestingVisitor } from './http2-request.ts';
import type { LocalAnswer } from './local-answer.ts';
import type { Caller, Dispatch, Visitor, VisitorFacts, VisitorOwner } from './visitor.ts';

/** WebSocket over HTTP/2 (RFC 8441) is not offered: browsers then open a connection of HTTP/1.1 for it. */
const SESSION_OPTIONS = {
  maxSessionMemory: Math.ceil(EDGE_LIMITS.HTTP2_SESSION_MEMORY_BYTES / 1e6),
  maxHeaderListPairs: EDGE_LIMITS.HTTP2_FIELDS_MAX,
  settings: {
    maxConcurrentStreams: EDGE_LIMITS.HTTP2_STREAMS_PER_CONNECTION,
    initialWindowSize: EDGE_LIMITS.HTTP2_STREAM_WINDOW_BYTES,
    maxHeaderListSize: EDGE_LIMITS.HTTP2_HEAD_MAX_BYTES,
  },
};

type Phase = 'open' | 'closing' | 'closed';

export class Http2Visitor implements Visitor, RequestingVisitor {
  readonly facts: VisitorFacts;
  readonly owner: VisitorOwner;
  readonly #session: ServerHttp2Session;
  readonly #pulse: Http2Liveness;
  readonly #requests = new Set<Http2Request>();
  /** By authority, without its port. */
  readonly #dispatches = new Map<string, Dispatch>();
  #phase: Phase = 'open';
  /** When an idle connection is closed, or one that is being closed is cut off. */
  #deadlineMs: number;
  #signals = 0;
  #takenBack = 0;
  #takenBackSinceMs: number;

  /** The handshake of TLS is done. node reads the socket from here on. */
  constructor(socket: TLSSocket, facts: VisitorFacts, owner: VisitorOwner) {
    this.facts = facts;
    this.owner = owner;
    this.#takenBackSinceMs = owner.now();
    this.#deadlineMs = owner.now() + owner.headTimeoutMs;
    this.#session = performServerHandshake(socket, SESSION_OPTIONS);
    this.#pulse = new Http2Liveness(this.#session, socket, owner.now());
  }

  start(): void {
    const session = this.#session;
    session.setLocalWindowSize(EDGE_LIMITS.HTTP2_CONNECTION_WINDOW_BYTES);
    session.on('stream', (stream: ServerHttp2Stream, _headers: unknown, _flags: unknown, raw: RawFields) =>
      this.#onStream(stream, raw),
    );
    session.on('ping', () => this.#onSignal());
    session.on('remoteSettings', () => this.#onSignal());
    // Whatever it was, the close that follows is what counts.
    session.on('error', () => {});
    session.on('close', () => this.#onClosed());
  }

  #onStream(stream: ServerHttp2Stream, raw: RawFields): void {
    const request = new Http2Request(this, stream);
    this.#requests.add(request);
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    request.begin(raw);
  }

  route(head: RequestHead, caller: Caller): Tunnel | LocalAnswer {
    const dispatch = this.#dispatchOf(head.host);
    const route = this.owner.route(dispatch, head, caller);
    this.#remember(head.host, dispatch);
    return route;
  }

  another(head: RequestHead, tried: readonly Tunnel[], hasBody: boolean): Tunnel | null {
    const dispatch = this.#dispatchOf(head.host);
    const tunnel = this.owner.another(dispatch, tried, hasBody);
    this.#remember(head.host, dispatch);
    return tunnel;
  }

  onServed({ host }: RequestHead): void {
    const dispatch = this.#dispatches.get(host);
    if (dispatch !== undefined) dispatch.isServed = true;
  }

  #dispatchOf(host: string): Dispatch {
    return this.#dispatches.get(host) ?? { facts: this.facts, tunnel: null, isServed: false };
  }

  /** Only what leads somewhere: a visitor may ask for any number of names. */
  #remember(host: string, dispatch: Dispatch): void {
    if (dispatch.tunnel === null) this.#dispatches.delete(host);
    else this.#dispatches.set(host, dispatch);
  }

  onOver(request: Http2Request, isTakenBack: boolean): void {
    if (!this.#requests.delete(request)) return;
    if (this.#requests.size === 0 && this.#phase === 'open') {
      this.#deadlineMs = this.owner.now() + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
    }
    if (!isTakenBack) return;
    this.#takenBack += 1;
    if (this.#takenBack > EDGE_LIMITS.HTTP2_RESETS_MAX) this.#calmDown();
  }

  #onSignal(): void {
    this.#signals += 1;
    if (this.#signals > EDGE_LIMITS.HTTP2_SIGNALS_PER_SECOND) this.#calmDown();
  }

  /** A flood: nothing of it is worth an answer. */
  #calmDown(): void {
    // An error is needed: without one node takes the code for none.
    if (!this.#session.destroyed) this.#session.destroy(new Error('a flood'), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  // ---- time and the end ----

  tick(nowMs: number): void {
    this.#signals = 0;
    if (nowMs - this.#takenBackSinceMs >= EDGE_LIMITS.HTTP2_RESETS_WINDOW_MS) {
      this.#takenBack = 0;
      this.#takenBackSinceMs = nowMs;
    }
    for (const request of this.#requests) request.tick(nowMs);
    if (this.#pulse.isOver(nowMs)) return this.close();
    if (nowMs < this.#deadlineMs) return;
    if (this.#phase === 'open') this.shutDown();
    else if (this.#requests.size === 0) this.close();
  }

  /** GOAWAY: requests under way finish, later ones go elsewhere. */
  shutDown(): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'closing';
    this.#deadlineMs = this.owner.now() + EDGE_LIMITS.HTTP_LINGER_MS;
    this.#session.close();
  }

  close(): void {
    if (!this.#session.destroyed) this.#session.destroy();
    this.#onClosed();
  }

  #onClosed(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    for (const dispatch of this.#dispatches.values()) this.owner.leave(dispatch);
    this.#dispatches.clear();
    this.owner.onClosed(this);
  }
}
