// One request to a local service and its response, whichever HTTP that speaks: how far it is, its time, its body, and its end.

import { Fault } from '@tunnel/errors';
import type { ChunkedForm, Framing, HeaderField, RequestHead, ServiceRequestOptions } from '@tunnel/http1';
import { ByteQueue, type Guarded, type ReportInternalError } from '@tunnel/mux';
import type { StreamHead, StreamReason } from '@tunnel/protocol';
import type { Secret } from '@tunnel/runtime';
import type { TunnelCounters } from '../backend/tunnel-counters.ts';
import { EDGE_LIMITS } from '../limits.ts';
import type { RequestRecorder, ResponseHandler, UnsentRequest } from './response-handler.ts';
import type { Upstream } from './upstream.ts';

/** heads before the final one of a response: progress reports are some; more are a flood that HTTP/2 has no credit for */
export const HTTP_INTERIM_HEADS_MAX = 64;
/** the same by their size */
const HTTP_INTERIM_BYTES_MAX = 64 * 1024;

/** How requests are put to the local service of an http tunnel. */
export interface HttpSettings {
  /** null: the visitor's Host is kept; else what stands there instead. */
  readonly hostHeader: string | null;
  readonly localProtocol: 'http1' | 'h2c';
  readonly capture: boolean;
}

/** A tunnel as requests to its local service see it. */
export interface Service {
  readonly tunnelId: string;
  readonly upstream: Upstream;
  /** null: it is not for HTTP. */
  readonly http: HttpSettings | null;
  /** Written by what passes, read by everyone. */
  readonly counters: TunnelCounters;
  /** Of one that believes what it is told of visitors by it; absent: there is none. */
  readonly secret?: Secret | undefined;
  /** What its visitors are told instead; absent: as of every service. */
  readonly faultOf?: ((fault: Fault) => Fault) | undefined;
}

export interface ServiceRequest {
  readonly head: RequestHead;
  /** What becomes of the head on its way. */
  readonly options: ServiceRequestOptions;
  /** One of the client's services by name, which a rule chose; null: the tunnel's own. */
  readonly serviceName: string | null;
  readonly hasBody: boolean;
  /** How a chunked body is written: as its chunks came, which only a service of HTTP/1.1 takes, or as data. */
  readonly bodyForm: ChunkedForm;
  /** Whether other members of its group could serve it now; null: the service stands alone. */
  readonly hasOthers: (() => boolean) | null;
  /** null: nothing is kept of it. */
  readonly recorder: RequestRecorder | null;
}

/** What a stream to a service is opened with; its visitors are named in the heads, as it outlives each of them. */
export const streamHeadOf = ({ tunnelId }: Service, serviceName: string | null): StreamHead =>
  serviceName === null ? { tunnelId, visitor: '' } : { tunnelId, visitor: '', service: serviceName };

/** What is kept open to a service is kept for that one: no name of a service has a blank in it. */
export const serviceKeyOf = ({ tunnelId }: Service, serviceName: string | null): string =>
  serviceName === null ? tunnelId : `${tunnelId} ${serviceName}`;

export interface UpstreamContext {
  /** Read once a turn: for what is waited for. */
  readonly now: () => number;
  /** For what is measured. */
  readonly preciseNow: () => number;
  readonly firstByteTimeoutMs: number;
  onBytes(toClient: number, toVisitor: number): void;
  /** Of what belongs to no request: connections that are shared, or idle. */
  readonly report: ReportInternalError;
}

export const hasBodyOf = (framing: Framing): boolean =>
  framing.kind === 'chunked' || (framing.kind === 'length' && framing.length > 0);

/** They change nothing, so that they may be sent again (RFC 9110, 9.2.1). */
const isSafe = (method: string): boolean =>
  method === 'GET' || method === 'HEAD' || method === 'OPTIONS' || method === 'TRACE';
export const ABORTED: StreamReason = { code: 'cancelled', text: 'the visitor disconnected' };
export const UNUSABLE: StreamReason = { code: 'cancelled', text: 'the connection cannot be reused' };

const NO_TRAILERS: readonly HeaderField[] = [];

/** The heads of one response before its final one. They go around every credit, so they are few. */
export class InterimHeads {
  #count = 0;
  #bytes = 0;

  /** One more has come; a text: it is one too many. */
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
  /** Of a body that is written as data. */
  protected requestTrailers: readonly HeaderField[] = NO_TRAILERS;
  /** Something of the request may be at the service. */
  protected isSent = false;
  /** A byte of a response has come, be it an interim one. */
  protected hasAnswer = false;
  /** Another member may yet serve it: it is not counted for good. */
  #isPendingFailover: boolean;
  /** Body bytes that came before the way to the service was open; from a bound on the visitor is paused meanwhile. */
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
  /** The next bytes of the body, in the request's bodyForm; same rule as ByteDuplex.write. */
  abstract writeBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** The body's last byte was written. The trailers count only when it was written as data. */
  abstract endBody(trailers?: readonly HeaderField[]): void;
  /** The handler has drained. */
  abstract resume(): void;

  /** No byte of the final head has come yet, or not all of them. */
  protected abstract readonly awaitsHead: boolean;
  /** The service, or the way to it, takes no more of the body for now. */
  protected abstract readonly isBehind: boolean;
  /** Lets go of the way to the service. Called once. */
  protected abstract letGo(reason: StreamReason): void;

  /** From the last byte of the request to now: what the service, and the way to it, takes. */
  serviceMs(nowMs: number): number {
    return nowMs - this.lastProgressMs;
  }

  protected get isRepeatable(): boolean {
    return !this.request.hasBody && isSafe(this.request.head.method);
  }

  /** Whether the same service is worth a second try: the others of its group are asked sooner than a client is waited for. */
  protected get isAtHand(): boolean {
    return this.service.upstream.isConnected || this.request.hasOthers?.() !== true;
  }

  /** A byte of a response has come: nobody else is asked any more. */
  protected answered(): void {
    this.hasAnswer = true;
    this.#settle();
  }

  #settle(): void {
    if (!this.#isPendingFailover) return;
    this.#isPendingFailover = false;
    this.service.counters.endPendingFailover();
  }

  /** For what comes before the way is open. The first of it does not stop the visitor: who is not read cannot be heard leaving. */
  protected keepWaiting(bytes: Buffer, start: number, end: number): boolean {
    this.waiting ??= new ByteQueue();
    this.waiting.push(bytes, start, end);
    return this.waiting.length < EDGE_LIMITS.PRECONNECT_BUFFER_BYTES;
  }

  /** Once a second. The service has time from the last byte of the request on; until then it is the visitor's. */
  tick(nowMs: number): void {
    if (this.isOver || !this.awaitsHead || !(this.requestDone || this.isBehind)) return;
    if (nowMs - this.lastProgressMs < this.context.firstByteTimeoutMs) return;
    // Nobody else: it may be at work on the request.
    this.#end(new Fault('LOCAL_TIMEOUT', { seconds: this.context.firstByteTimeoutMs / 1000 }), null);
  }

  /** The visitor left: the service is told by a reset. */
  abort(): void {
    if (this.isOver) return;
    this.request.recorder?.finish(this.context.now(), 'aborted');
    this.#leave(ABORTED);
  }

  /** Whoever asked ends it, and calls giveUp(). */
  abandon(error: unknown, where: string): void {
    this.handler.abandon(error, where);
  }

  /** Something of ours threw, here or in the handler, which is told nothing more. */
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

  /** Whoever asked must not: the fault is the answer, and nobody else is asked. */
  refuse(fault: Fault): void {
    if (!this.isOver) this.#end(fault, null);
  }

  #end(fault: Fault, unsent: UnsentRequest | null): void {
    this.request.recorder?.finish(this.context.now(), fault);
    this.#leave(UNUSABLE);
    this.handler.onError(this.service.faultOf?.(fault) ?? fault, unsent);
  }

  /** null: the service may have acted on the request, or there is no group to go on in. */
  #unsent(): UnsentRequest | null {
    const { waiting, requestDone, requestTrailers: trailers } = this;
    if (this.request.hasOthers === null || this.hasAnswer || (this.isSent && !this.isRepeatable)) return null;
    return { waiting, requestDone, trailers };
  }

  #leave(reason: StreamReason): void {
    this.isOver = true;
    this.waiting = null;
    // When it goes to another member, that is told before this turn is over.
    this.#settle();
    this.letGo(reason);
  }
}
