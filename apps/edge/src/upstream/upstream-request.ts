// A request to a local service and its response, for HTTP/1.1 and HTTP/2: state, timing, body and end.

import { Fault } from '@tunnel/errors';
import type { ChunkedForm, Framing, HeaderField, RequestHead, ServiceRequestOptions } from '@tunnel/http1';
import { ByteQueue, type Guarded, type ReportInternalError } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { Secret } from '@tunnel/runtime';
import type { TunnelCounters } from '../backend/tunnel-counters.ts';
import { EDGE_LIMITS } from '../limits.ts';
import type { RequestRecorder, ResponseHandler, UnsentRequest } from './response-handler.ts';
import type { Upstream } from './upstream.ts';

/** Maximum interim heads of a response. Progress reports need a few; more are a flood, which HTTP/2 cannot stop by flow control. */
export const HTTP_INTERIM_HEADS_MAX = 64;
/** Maximum size of all interim heads (1xx) of a response, in bytes. */
const HTTP_INTERIM_BYTES_MAX = 64 * 1024;

/** Settings for requests to the local service of an http tunnel. */
export interface HttpSettings {
  /** Replacement for the visitor's Host header, or null to keep the header. */
  readonly hostHeader: string | null;
  readonly localProtocol: 'http1' | 'h2c';
  readonly capture: boolean;
}

/** A tunnel as seen by requests to its local service. */
export interface Service {
  readonly tunnelId: string;
  readonly upstream: Upstream;
  /** HTTP settings of the tunnel. Null for tunnels without HTTP. */
  readonly http: HttpSettings | null;
  /** Counters of the tunnel, written by the traffic, read by metrics and API. */
  readonly counters: TunnelCounters;
  /** Shared secret by which the platform trusts the edge's visitor headers. Undefined for tunnels. */
  readonly secret?: Secret | undefined;
  /** Replaces a fault of the service before visitors see it. Undefined to show faults unchanged. */
  readonly faultOf?: ((fault: Fault) => Fault) | undefined;
}

export interface ServiceRequest {
  readonly head: RequestHead;
  /** Changes to the request head for the service. */
  readonly options: ServiceRequestOptions;
  /** Name of the client's service selected by a rule, or null for the tunnel's default service. */
  readonly serviceName: string | null;
  readonly hasBody: boolean;
  /** Form in which a chunked body is written: chunks unchanged (only to HTTP/1.1 services), or raw data. */
  readonly bodyForm: ChunkedForm;
  /** Reports whether another member of the group can currently serve the request. Null without a group. */
  readonly hasOthers: (() => boolean) | null;
  /** Records the request for the capture. Null if the request is not captured. */
  readonly recorder: RequestRecorder | null;
}

/** Returns the head of a stream to a service. Visitors are named in the request heads, because a stream outlives a request. */
export const streamHeadOf = ({ tunnelId }: Service, serviceName: string | null): StreamHead =>
  serviceName === null ? { tunnelId, visitor: '' } : { tunnelId, visitor: '', service: serviceName };

/** Returns the key under which connections to a service are kept. The separator is safe, because service names contain no space. */
export const serviceKeyOf = ({ tunnelId }: Service, serviceName: string | null): string =>
  serviceName === null ? tunnelId : `${tunnelId} ${serviceName}`;

export interface UpstreamContext {
  /** Returns monotonic milliseconds, read once per turn of the event loop. For timeouts. */
  readonly now: () => number;
  /** Returns monotonic milliseconds, read at each call, for measurements of durations. */
  readonly preciseNow: () => number;
  readonly firstByteTimeoutMs: number;
  onBytes(toClient: number, toVisitor: number): void;
  /** Reports errors that belong to no request, for example on shared or idle connections. */
  readonly report: ReportInternalError;
}

export const hasBodyOf = (framing: Framing): boolean =>
  framing.kind === 'chunked' || (framing.kind === 'length' && framing.length > 0);

/** Safe methods change nothing, so such requests can be sent again (RFC 9110, 9.2.1). */
const isSafe = (method: string): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'TRACE';
export const ABORTED: StreamReason = { code: 'cancelled', text: 'the visitor disconnected' };
export const UNUSABLE: StreamReason = { code: 'cancelled', text: 'the connection cannot be reused' };

const NO_TRAILERS: readonly HeaderField[] = [];

/** Limits the interim heads (1xx) of a response, which bypass flow control. */
export class InterimHeads {
  #count = 0;
  #bytes = 0;

  /** Counts an interim response head (1xx). Returns the problem if a limit is exceeded, otherwise null. */
  take(bytes: number): string | null {
    this.#count += 1;
    this.#bytes += bytes;
    if (this.#count > HTTP_INTERIM_HEADS_MAX) return 'the service sends too many interim responses';
    return this.#bytes > HTTP_INTERIM_BYTES_MAX ? 'the interim responses are too large' : null;
  }
}

export abstract class UpstreamRequest implements Guarded {
  protected readonly context: UpstreamContext;
  protected readonly service: Service;
  protected readonly request: ServiceRequest;
  protected readonly handler: ResponseHandler;
  protected isOver = false;
  protected requestDone: boolean;
  /** Trailers of the request, if its body is sent to the service as data. */
  protected requestTrailers: readonly HeaderField[] = NO_TRAILERS;
  /** Whether any part of the request may have reached the service. */
  protected isSent = false;
  /** Whether any byte of the service's response has arrived, even of an interim response. */
  protected hasAnswer = false;
  /** Whether another group member may still serve the request. Until then, the request is counted as provisional. */
  #isPendingFailover: boolean;
  /** Body bytes received before the connection to the service was open. Above a limit, reading from the visitor is paused. */
  protected waiting: ByteQueue | null = null;
  protected lastProgressMs: number;

  constructor(context: UpstreamContext, service: Service, request: ServiceRequest, handler: ResponseHandler) {
    this.context = context;
    this.service = service;
    this.request = request;
    this.handler = handler;
    this.requestDone = !request.hasBody;
    this.lastProgressMs = context.now();
    this.#isPendingFailover = request.hasOthers !== null;
    if (this.#isPendingFailover) service.counters.addPendingFailover();
  }

  abstract start(): void;
  /** Writes the next bytes of the body, in the request's bodyForm. Follows the rules of ByteDuplex.write. */
  abstract writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Ends the body. Trailers are used only for a body written as data. */
  abstract endBody(trailers?: readonly HeaderField[]): void;
  /** Resumes reading the response, because its handler has drained. */
  abstract resume(): void;

  /** True if the final response head is missing or incomplete. */
  protected abstract readonly awaitsHead: boolean;
  /** Whether the service or the path to it currently accepts no more of the request body. */
  protected abstract readonly isBehind: boolean;
  /** Releases the request's connection to the service. Called once. */
  protected abstract letGo(reason: StreamReason): void;

  /** Returns the time since the last byte of the request, spent by the service and the path to it. */
  serviceMs(nowMs: number): number {
    return nowMs - this.lastProgressMs;
  }

  protected get isRepeatable(): boolean {
    return !this.request.hasBody && isSafe(this.request.head.method);
  }

  /** Whether to retry the request on the same service. While its client is disconnected, other members of the group are tried first. */
  protected get isConnected(): boolean {
    return this.service.upstream.isConnected || this.request.hasOthers?.() !== true;
  }

  /** Marks the request as answered, which rules out a retry on another member. */
  protected answered(): void {
    this.hasAnswer = true;
    this.#settle();
  }

  #settle(): void {
    if (!this.#isPendingFailover) return;
    this.#isPendingFailover = false;
    this.service.counters.endPendingFailover();
  }

  /**
   * Keeps body bytes until the connection is open. Reading from the visitor continues up to a limit, because a disconnect is not noticed on
   * a socket that is not read.
   */
  protected keepWaiting(bytes: Buffer, start: number, end: number): boolean {
    this.waiting ??= new ByteQueue();
    this.waiting.push(bytes, start, end);
    return this.waiting.length < EDGE_LIMITS.PRECONNECT_BUFFER_BYTES;
  }

  /** Enforces the timeout of the service, which starts with the last byte of the request. Called once a second. */
  tick(nowMs: number): void {
    if (this.isOver || !this.awaitsHead || !(this.requestDone || this.isBehind)) return;
    if (nowMs - this.lastProgressMs < this.context.firstByteTimeoutMs) return;
    // The request is not retried on another member, because the service may be processing it.
    this.#end(new Fault('LOCAL_TIMEOUT', { seconds: this.context.firstByteTimeoutMs / 1000 }), null);
  }

  /** Cancels the request, because the visitor disconnected. The service's stream is reset. */
  abort(): void {
    if (this.isOver) return;
    this.request.recorder?.finish(this.context.now(), 'aborted');
    this.#leave(ABORTED);
  }

  /** Passes an internal error to the handler, which ends the request and calls giveUp(). */
  abandon(error: unknown, where: string): void {
    this.handler.abandon(error, where);
  }

  /** Drops the request after an internal error, without further calls to the handler. */
  giveUp(): void {
    if (this.isOver) return;
    try {
      this.request.recorder?.finish(this.context.now(), new Fault('INTERNAL'));
    } finally {
      this.#leave(UNUSABLE);
    }
  }

  protected fail(fault: Fault): void {
    if (!this.isOver) this.#end(fault, this.#unsent());
  }

  /** Ends the request with a fault for the visitor, without a retry on another member. */
  refuse(fault: Fault): void {
    if (!this.isOver) this.#end(fault, null);
  }

  #end(fault: Fault, unsent: UnsentRequest | null): void {
    this.request.recorder?.finish(this.context.now(), fault);
    this.#leave(UNUSABLE);
    this.handler.onError(this.service.faultOf?.(fault) ?? fault, unsent);
  }

  /** Returns null if the service may have acted on the request, or without a group. */
  #unsent(): UnsentRequest | null {
    const { waiting, requestDone, requestTrailers: trailers } = this;
    if (this.request.hasOthers === null || this.hasAnswer || (this.isSent && !this.isRepeatable)) return null;
    return { waiting, requestDone, trailers };
  }

  #leave(reason: StreamReason): void {
    this.isOver = true;
    this.waiting = null;
    // A retry on another member is counted before this turn of the event loop ends.
    this.#settle();
    this.letGo(reason);
  }
}
