// An HTTP/2 connection of a visitor: concurrent requests, routed by their authority, within limits.
import { constants, performServerHandshake, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { guard, takenBytes, unsentBytes } from '@tunnel/mux';
import { type ConnectionState } from '@tunnel/rules/admission';
import { type ListNode } from '@tunnel/rules/collections';
import { EDGE_LIMITS } from '../../../limits.ts';
import { ConnectionAuthCache } from '../../../policy/connection-auth-cache.ts';
import { Lease } from '../../../routing/balancer.ts';
import type { VisitorInfo } from '../../../routing/http-router.ts';
import type { RawFields } from '../../../upstream/h2c/http2-fields.ts';
import type { LeaseHolder } from '../proxied-request.ts';
import { StallWatch } from '../stall-watch.rules.ts';
import type { Visitor, VisitorOwner } from '../visitor.ts';
import { Http2Liveness } from './http2-liveness.ts';
import { Http2Outbound, type OutboundSession } from './http2-outbound.ts';
import { Http2Request } from './http2-request.ts';

/**
 * Maximum concurrent requests of a visitor's connection. Browsers are satisfied with 100.
 * @limit visitors: HTTP/2 concurrent requests per connection | further requests wait in the browser
 */
export const HTTP2_STREAMS_PER_CONNECTION = 128;
/** Maximum bytes in flight of all request bodies of an HTTP/2 connection. */
const HTTP2_CONNECTION_WINDOW_BYTES = 1024 * 1024;
/**
 * Maximum requests canceled by a visitor before the response. With more the connection is closed (rapid reset attack).
 * @limit visitors: HTTP/2 requests canceled within 10 s per connection | the connection is closed
 */
export const HTTP2_RESETS_MAX = 500;
/** Period for counting canceled requests. Leaving a page can cancel several hundred requests at once. */
const HTTP2_RESETS_WINDOW_MS = 10_000;
/** Maximum pings and settings frames per second on a connection. gRPC sends many pings to measure the path. */
const HTTP2_SIGNALS_PER_SECOND = 5000;

/** WebSocket over HTTP/2 (RFC 8441) is not offered, so browsers open an HTTP/1.1 connection for WebSockets. */
const SESSION_OPTIONS = {
  maxSessionMemory: Math.ceil(EDGE_LIMITS.HTTP2_SESSION_MEMORY_BYTES / 1e6),
  maxHeaderListPairs: EDGE_LIMITS.HTTP2_FIELDS_MAX,
  settings: {
    maxConcurrentStreams: HTTP2_STREAMS_PER_CONNECTION,
    initialWindowSize: EDGE_LIMITS.HTTP2_STREAM_WINDOW_BYTES,
    maxHeaderListSize: EDGE_LIMITS.HTTP2_HEAD_MAX_BYTES,
  },
};

type Phase = 'open' | 'closing' | 'closed';

export class Http2Visitor implements Visitor, LeaseHolder, OutboundSession {
  readonly info: VisitorInfo;
  readonly owner: VisitorOwner;
  amongServed: ListNode<Visitor> | null = null;
  readonly authCache = new ConnectionAuthCache();
  readonly outbound = new Http2Outbound(this, () => this.#onOverrun());
  readonly #socket: TLSSocket;
  readonly #session: ServerHttp2Session;
  readonly #liveness: Http2Liveness;
  readonly #requests = new Set<Http2Request>();
  /** Requests of the HTTP/2 connection that wait until earlier responses are sent. */
  #held: { readonly request: Http2Request; readonly raw: RawFields }[] = [];
  readonly #sending = new StallWatch(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS);
  /** Leases by route. A connection counts once per tunnel or group, no matter how many names of the group are requested. */
  readonly #leases = new Map<string, Lease>();
  #phase: Phase = 'open';
  /** Time at which an idle connection is shut down, or a closing connection is cut off. */
  #deadlineMs: number;
  #signals = 0;
  #takenBack = 0;
  #takenBackSinceMs: number;
  /** Time at which the connection's last request began or ended. Monotonic milliseconds. */
  #activeAtMs: number;

  /** Starts HTTP/2 on a socket after the TLS handshake. Node reads the socket from now on. */
  constructor(socket: TLSSocket, info: VisitorInfo, owner: VisitorOwner) {
    this.info = info;
    this.owner = owner;
    this.#socket = socket;
    this.#activeAtMs = owner.services.now();
    this.#takenBackSinceMs = this.#activeAtMs;
    this.#deadlineMs = this.#activeAtMs + owner.headTimeoutMs;
    this.#session = performServerHandshake(socket, SESSION_OPTIONS);
    this.#liveness = new Http2Liveness(this.#session, socket, owner.services.now());
  }

  get isIdle(): boolean {
    return this.#requests.size === 0;
  }

  get activeAtMs(): number {
    return this.#activeAtMs;
  }

  describe(): ConnectionState {
    const count = this.#requests.size;
    const [lease] = this.#leases.values();
    const requests = count === 0 ? 'a request from the visitor' : `${count} of its requests`;
    const waitsFor = unsentBytes(this.#socket) > 0 ? 'the visitor to read the response' : requests;
    return { phase: `http2 ${this.#phase}`, waitsFor, tunnelId: lease?.member?.tunnelId ?? null };
  }

  start(): void {
    const session = this.#session;
    session.setLocalWindowSize(HTTP2_CONNECTION_WINDOW_BYTES);
    const scope = 'http2.session';
    guard.listen(session, 'stream', this, scope, (stream: ServerHttp2Stream, _headers, _flags, raw: RawFields) =>
      this.#onStream(stream, raw),
    );
    guard.listen(session, 'ping', this, scope, () => this.#onSignal());
    guard.listen(session, 'remoteSettings', this, scope, () => this.#onSignal());
    // Errors of the HTTP/2 session are handled by the 'close' event that follows.
    guard.listen(session, 'error', this, scope, () => {});
    guard.listen(session, 'close', this, scope, () => this.#onClosed());
  }

  #onStream(stream: ServerHttp2Stream, raw: RawFields): void {
    const request = new Http2Request(this, stream);
    this.#requests.add(request);
    this.#activeAtMs = this.owner.services.now();
    this.#deadlineMs = Number.POSITIVE_INFINITY;
    if (this.#held.length > 0 || this.outbound.isFull) this.#held.push({ request, raw });
    else begin(request, raw);
  }

  #forgetHeld(request: Http2Request): void {
    this.#held = this.#held.filter((held) => held.request !== request);
    this.#beginHeld();
  }

  #beginHeld(): void {
    while (this.#held.length > 0 && !this.outbound.isFull) {
      const next = this.#held.shift();
      if (next !== undefined) begin(next.request, next.raw);
    }
  }

  // ---- outbound queue ----

  isAllOut(): boolean {
    return unsentBytes(this.#socket) === 0 && (this.#session.state.outboundQueueSize ?? 0) === 0;
  }

  get takenBytes(): number {
    return takenBytes(this.#socket);
  }

  /** Queued bytes. Service data that Node has passed to TLS may be counted twice. */
  get queuedBytes(): number {
    let sum = this.outbound.queuedBytes + unsentBytes(this.#socket);
    for (const request of this.#requests) sum += request.queuedBytes;
    return sum;
  }

  #onOverrun(): void {
    this.owner.onOverrun();
    this.close();
  }

  leaseFor(routeKey: string): Lease {
    return this.#leases.get(routeKey) ?? new Lease();
  }

  /**
   * Stores or removes the lease of a route. A lease without a member is removed. Because tunnels open and close during a connection, there
   * are at most as many leases as requests: the oldest unused lease is released.
   */
  onLeased(routeKey: string, lease: Lease): void {
    if (lease.member === null) this.#leases.delete(routeKey);
    else this.#leases.set(routeKey, lease);
    if (this.#leases.size <= HTTP2_STREAMS_PER_CONNECTION) return;
    const used = new Set([...this.#requests].map((request) => request.routeKey)).add(routeKey);
    for (const [key, unused] of this.#leases) {
      if (used.has(key)) continue;
      this.#leases.delete(key);
      return this.owner.balancer.release(unused);
    }
  }

  /** Marks the lease of a route as served, because a service has responded. */
  onServed(routeKey: string): void {
    const lease = this.#leases.get(routeKey);
    if (lease !== undefined) lease.isServed = true;
  }

  /** Removes a request that has ended. `isTakenBack`: the visitor canceled the request before the end of the response. */
  onOver(request: Http2Request, isTakenBack: boolean): void {
    if (!this.#requests.delete(request)) return;
    this.#activeAtMs = this.owner.services.now();
    if (this.#held.length > 0) this.#forgetHeld(request);
    if (this.#requests.size === 0 && this.#phase === 'open') {
      this.#deadlineMs = this.#activeAtMs + EDGE_LIMITS.HTTP_KEEP_ALIVE_MS;
    }
    if (!isTakenBack) return;
    this.#takenBack += 1;
    if (this.#takenBack > HTTP2_RESETS_MAX) this.#calmDown();
  }

  #onSignal(): void {
    this.#signals += 1;
    if (this.#signals > HTTP2_SIGNALS_PER_SECOND) this.#calmDown();
  }

  /** Closes the connection of a visitor that floods the edge, without responses. */
  #calmDown(): void {
    if (this.#phase === 'open') this.#phase = 'closing';
    // Node waits for the end of a write before closing. The deadline covers visitors that do not read.
    this.#deadlineMs = this.owner.services.now() + EDGE_LIMITS.HTTP_LINGER_MS;
    // Without an error object, Node.js ignores the HTTP/2 error code.
    if (!this.#session.destroyed) this.#session.destroy(new Error('a flood'), constants.NGHTTP2_ENHANCE_YOUR_CALM);
  }

  // ---- ticks, errors and closing ----

  tick(nowMs: number): void {
    this.#signals = 0;
    if (nowMs - this.#takenBackSinceMs >= HTTP2_RESETS_WINDOW_MS) {
      this.#takenBack = 0;
      this.#takenBackSinceMs = nowMs;
    }
    for (const request of this.#requests) {
      try {
        request.tick(nowMs);
      } catch (error) {
        request.abandon(error, 'http2.tick');
      }
    }
    if (this.#isStalled(nowMs) || this.#liveness.isOver(nowMs, this.#areClosed)) return this.close();
    this.#beginHeld();
    if (nowMs < this.#deadlineMs) return;
    if (this.#phase === 'open') this.shutDown();
    else if (this.#requests.size === 0) this.close();
  }

  #isStalled(nowMs: number): boolean {
    const isUnread = unsentBytes(this.#socket) > 0;
    const isUnsent = this.#sending.isOver(nowMs, isUnread, isUnread ? this.takenBytes : 0);
    return this.outbound.isStalled(nowMs) || isUnsent;
  }

  readonly #areClosed = (): boolean => [...this.#requests].every((request) => request.isClosed);

  /** Sends GOAWAY. Requests in progress finish; the visitor sends later requests on another connection. */
  shutDown(): void {
    if (this.#phase !== 'open') return;
    this.#phase = 'closing';
    this.#deadlineMs = this.owner.services.now() + EDGE_LIMITS.HTTP_LINGER_MS;
    this.#session.close();
  }

  /** Closes the connection after an internal error that concerns the connection, not a single request. */
  abandon(error: unknown, where: string): void {
    try {
      this.owner.report(error, where);
    } finally {
      this.close();
    }
  }

  close(): void {
    if (!this.#session.destroyed) this.#session.destroy();
    // The socket is destroyed, because Node.js would wait for a write that the visitor never accepts.
    this.#socket.destroy();
    this.#onClosed();
  }

  #onClosed(): void {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#held = [];
    for (const lease of this.#leases.values()) this.owner.balancer.release(lease);
    this.#leases.clear();
    this.owner.onClosed(this);
  }
}

/** Starts a request. A thrown error ends only that request, not the whole connection. */
const begin = (request: Http2Request, raw: RawFields): void => {
  try {
    request.begin(raw);
  } catch (error) {
    request.abandon(error, 'http2.request');
  }
};
