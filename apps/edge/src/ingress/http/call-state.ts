// What every call has, whichever HTTP its service speaks: the request, how far it is, its time, and its end. Calls are made once
// per request, so this is a part of them and no object of its own.
import type { HeaderField } from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import { ByteQueue } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { Asker, FailedTry } from './asker.ts';
import type { CallContext, ServiceRequest } from './service-call.ts';

/** They change nothing, so that they may be sent again (RFC 9110, 9.2.1). */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
export const ABORTED: StreamReason = { code: 'cancelled', text: 'the visitor left' };
export const UNUSABLE: StreamReason = { code: 'cancelled', text: 'the connection cannot be used again' };

const NO_TRAILERS: readonly HeaderField[] = [];

export abstract class CallState {
  protected readonly context: CallContext;
  protected readonly tunnel: Tunnel;
  protected readonly request: ServiceRequest;
  protected readonly asker: Asker;
  protected isOver = false;
  protected requestDone: boolean;
  /** Of a body that is written as `data`. */
  protected requestTrailers: readonly HeaderField[] = NO_TRAILERS;
  /** Something of the request may be at the service. */
  protected isSent = false;
  /** A byte of a response has come, be it an interim one. */
  protected hasAnswer = false;
  /** Another member may yet serve it: it is not counted for good. */
  #isPendingFailover: boolean;
  /** Body bytes that came before the way to the service was open; the visitor is paused meanwhile. */
  protected waiting: ByteQueue | null = null;
  protected lastProgressMs: number;

  constructor(context: CallContext, tunnel: Tunnel, request: ServiceRequest, asker: Asker) {
    this.context = context;
    this.tunnel = tunnel;
    this.request = request;
    this.asker = asker;
    this.requestDone = !request.hasBody;
    this.lastProgressMs = context.now();
    this.#isPendingFailover = tunnel.group !== null;
    if (this.#isPendingFailover) tunnel.counters.pendingFailover += 1;
  }

  /** No byte of the final head has come yet, or not all of them. */
  protected abstract readonly awaitsHead: boolean;
  /** The service, or the way to it, takes no more of the body for now. */
  protected abstract readonly isBehind: boolean;
  /** Lets go of the way to the service. Called once. */
  protected abstract letGo(reason: StreamReason): void;

  /** From the last byte of the request to now: what the service, and the way to it, takes. */
  get serviceMs(): number {
    return this.context.now() - this.lastProgressMs;
  }

  protected get isRepeatable(): boolean {
    return !this.request.hasBody && SAFE_METHODS.has(this.request.head.method);
  }

  /** Whether the same tunnel is worth a second try: the others of its group are asked sooner than a client is waited for. */
  protected get isAtHand(): boolean {
    const { group, session } = this.tunnel;
    if (group === null || (session.mux?.liveCarriers ?? 0) > 0) return true;
    return group.healthyCount === (group.isHealthy(this.tunnel) ? 1 : 0);
  }

  /** A byte of a response has come: nobody else is asked any more. */
  protected answered(): void {
    this.hasAnswer = true;
    this.#decide();
  }

  #decide(): void {
    if (!this.#isPendingFailover) return;
    this.#isPendingFailover = false;
    this.tunnel.counters.pendingFailover -= 1;
  }

  /** For what comes before the way is open. */
  protected keepWaiting(bytes: Buffer, start: number, end: number): false {
    this.waiting ??= new ByteQueue();
    this.waiting.push(bytes, start, end);
    return false;
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

  protected fail(fault: Fault): void {
    if (!this.isOver) this.#end(fault, this.#failedTry());
  }

  #end(fault: Fault, failed: FailedTry | null): void {
    this.request.recorder?.finish(this.context.now(), fault);
    this.#leave(UNUSABLE);
    this.asker.onFailed(fault, failed);
  }

  /** null: the service may have acted on the request, or there is no group to go on in. */
  #failedTry(): FailedTry | null {
    const { tunnel, waiting, requestDone, requestTrailers: trailers } = this;
    if (tunnel.group === null || this.hasAnswer || (this.isSent && !this.isRepeatable)) return null;
    return { tunnel, recorder: this.request.recorder, waiting, requestDone, trailers };
  }

  #leave(reason: StreamReason): void {
    this.isOver = true;
    this.waiting = null;
    // When it goes to another member, that is told before this turn is over.
    this.#decide();
    this.letGo(reason);
  }
}
