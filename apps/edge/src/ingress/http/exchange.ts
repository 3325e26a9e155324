// One request and its response over one stream to the local service. It knows HTTP/1.1 towards the service and nothing of the
// visitor, who may speak HTTP/1.1, HTTP/2, or be a replay.
import {
  BODY_BAD,
  BODY_INCOMPLETE,
  type BodyScanner,
  type BodySink,
  ChunkedBody,
  type ChunkedForm,
  type HeaderField,
  parseResponseHead,
  type RequestHead,
  type ResponseHead,
  scannerOf,
} from '@tunnel/core';
import { Fault } from '@tunnel/errors';
import {
  ByteQueue,
  type ByteReader,
  type MuxSession,
  type MuxStream,
  type OpenAnswer,
  type Opening,
} from '@tunnel/mux';
import { LIMITS, type StreamReason } from '@tunnel/protocol';
import type { CaptureRecorder } from '../../capture/recorder.ts';
import type { Tunnel } from '../../pool/tunnel.ts';
import type { H2cSessions } from './h2c-sessions.ts';
import { HeadReader, RESPONSE_BOUNDS } from './head-reader.ts';
import type { IdleStreams } from './idle-streams.ts';

/** Who asked. Calls come in the order of the message; onFailed or onDone is the last one. */
export interface Asker {
  /** How it wants a chunked body: as chunks, or its data and then its trailers. */
  readonly bodyForm: ChunkedForm;
  onInterim(head: ResponseHead): void;
  onHead(head: ResponseHead): void;
  /** Same rule as ByteReader.onData. */
  onBody(bytes: Buffer, start: number, end: number, lend: boolean): boolean;
  /** Pieces of a body in chunks that are written anew. */
  onText(text: string): void;
  onTrailers(trailers: readonly HeaderField[]): void;
  /** All that came in this turn was told. */
  onTurn(): void;
  /** The response is complete. `requestDone` is false when it came before the request's end. */
  onDone(requestDone: boolean): void;
  /** Protocols were switched: the stream is the asker's now; bytes[start, end) came behind the head. */
  onSwitched(head: ResponseHead, stream: MuxStream, bytes: Buffer, start: number, end: number): void;
  /** Before the head an answer can still be given; afterwards the response is cut off. */
  onFailed(fault: Fault): void;
  /** The request's body may go on. */
  onBodyDrain(): void;
}

export interface ExchangeRequest {
  readonly head: Pick<RequestHead, 'method' | 'upgrade'>;
  /** What the service is sent. */
  readonly text: string;
  readonly hasBody: boolean;
  /** null: nothing is kept of it. */
  readonly recorder: CaptureRecorder | null;
}

export interface ExchangeContext {
  readonly idle: IdleStreams;
  readonly h2c: H2cSessions;
  readonly now: () => number;
  readonly firstByteTimeoutMs: number;
  onBytes(tunnel: Tunnel, toClient: number, toVisitor: number): void;
  /** A request begins; null: it is not captured. */
  capture(tunnel: Tunnel, head: RequestHead, startedMs: number): CaptureRecorder | null;
}

/** They change nothing, so that they may be sent again (RFC 9110, 9.2.1). */
export const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'TRACE']);
const ABORTED: StreamReason = { code: 'cancelled', text: 'the visitor left' };
const UNUSABLE: StreamReason = { code: 'cancelled', text: 'the connection cannot be used again' };

const NOTHING: Buffer = Buffer.alloc(0);

/** Why a stream to the local service was not opened. */
export const faultOfRefusal = ({ code, text }: StreamReason): Fault =>
  code === 'dial-refused' || code === 'dial-timeout'
    ? new Fault('LOCAL_UNREACHABLE', { reason: text })
    : new Fault('TUNNEL_AWAY');

type Phase = 'head' | 'body' | 'complete' | 'over';

export class Exchange implements ByteReader, OpenAnswer, BodySink {
  readonly #context: ExchangeContext;
  readonly #tunnel: Tunnel;
  readonly #request: ExchangeRequest;
  readonly #asker: Asker;
  readonly #heads = new HeadReader(RESPONSE_BOUNDS);
  #phase: Phase = 'head';
  #mux: MuxSession | null = null;
  #opening: Opening | null = null;
  #stream: MuxStream | null = null;
  #isReused = false;
  #hasAnswer = false;
  #requestDone: boolean;
  /** The service, or the way to it, takes no more of the body for now. */
  #isBehind = false;
  /** Body bytes that came before the stream was open; the visitor is paused meanwhile. */
  #waiting: ByteQueue | null = null;
  #response: ResponseHead | null = null;
  #body: BodyScanner | null = null;
  /** The piece that the body's scanner is looking at. */
  #piece: Buffer = NOTHING;
  #lend = false;
  #goesOn = true;
  #lastProgressMs: number;

  constructor(context: ExchangeContext, tunnel: Tunnel, request: ExchangeRequest, asker: Asker) {
    this.#context = context;
    this.#tunnel = tunnel;
    this.#request = request;
    this.#asker = asker;
    this.#requestDone = !request.hasBody;
    this.#lastProgressMs = context.now();
  }

  /** From the last byte of the request to now: what the service, and the way to it, takes. */
  get serviceMs(): number {
    return this.#context.now() - this.#lastProgressMs;
  }

  get isReplayable(): boolean {
    return !this.#request.hasBody && SAFE_METHODS.has(this.#request.head.method);
  }

  start(): void {
    const { idle, now } = this.#context;
    const maxIdleMs = this.isReplayable ? LIMITS.HTTP_IDLE_STREAM_MS : LIMITS.HTTP_IDLE_STREAM_UNSAFE_MS;
    const stream = this.#request.head.upgrade === null ? idle.take(this.#tunnel, now(), maxIdleMs) : null;
    this.#mux = this.#tunnel.session.mux;
    if (stream === null) {
      this.#openAnew();
      return;
    }
    this.#isReused = true;
    this.#begin(stream);
  }

  #openAnew(): void {
    this.#mux = this.#tunnel.session.mux;
    // The visitor's address is in the head; the stream outlives this visitor.
    const head = { tunnelId: this.#tunnel.tunnelId, visitor: '' };
    const opening = this.#mux?.open(head, this) ?? null;
    if (opening === null) this.#fail(new Fault('TUNNEL_AWAY'));
    else if (this.#stream === null && this.#phase === 'head') this.#opening = opening;
  }

  onOpened(stream: MuxStream): void {
    this.#opening = null;
    if (this.#phase === 'over') stream.reset(ABORTED);
    else this.#begin(stream);
  }

  onRefused(reason: StreamReason): void {
    this.#opening = null;
    this.#fail(faultOfRefusal(reason));
  }

  #begin(stream: MuxStream): void {
    this.#stream = stream;
    stream.read(this);
    if (this.#stream !== stream) return;
    const text = this.#request.text;
    const head = Buffer.from(text, 'latin1');
    this.#lastProgressMs = this.#context.now();
    this.#count(head.length, 0);
    let isFree = stream.write(head, 0, head.length, true);
    const waiting = this.#waiting;
    this.#waiting = null;
    while (waiting !== null && waiting.length > 0) {
      const bytes = waiting.shift(waiting.length);
      isFree = stream.write(bytes, 0, bytes.length, false);
    }
    this.#isBehind = !isFree;
    if (waiting !== null && isFree) this.#asker.onBodyDrain();
  }

  // ---- the request's body ----

  writeBody(bytes: Buffer, start: number, end: number, lend: boolean): boolean {
    this.#lastProgressMs = this.#context.now();
    if (this.#phase === 'over') return true;
    this.#count(end - start, 0);
    this.#request.recorder?.onRequestBody(bytes, start, end);
    if (this.#stream !== null) {
      this.#isBehind = !this.#stream.write(bytes, start, end, lend);
      return !this.#isBehind;
    }
    this.#isBehind = true;
    this.#waiting ??= new ByteQueue();
    this.#waiting.push(bytes, start, end);
    return false;
  }

  /** The body's last byte was written. */
  endBody(): void {
    this.#requestDone = true;
    this.#request.recorder?.onRequestEnd();
    this.#lastProgressMs = this.#context.now();
  }

  onDrain(): void {
    this.#isBehind = false;
    this.#lastProgressMs = this.#context.now();
    this.#asker.onBodyDrain();
  }

  // ---- the response ----

  /** The asker has drained. */
  resume(): void {
    this.#stream?.resume();
  }

  onData(bytes: Buffer, start: number, end: number, lend: boolean): boolean {
    this.#count(0, end - start);
    this.#hasAnswer = true;
    let at = start;
    this.#goesOn = true;
    while (at < end && (this.#phase === 'head' || this.#phase === 'body')) {
      if (this.#phase === 'head') at = this.#takeHead(bytes, at, end);
      else at = this.#takeBody(bytes, at, end, lend);
    }
    if (this.#phase === 'over') return true;
    this.#asker.onTurn();
    if (this.#phase === 'complete') this.#finish(at === end);
    return this.#goesOn;
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    const reading = this.#heads.read(bytes, start, end);
    if (reading.kind === 'more') return end;
    if (reading.kind === 'problem') return this.#malformed(reading.reason, end);
    const head = parseResponseHead(reading.text, this.#request.head);
    if (head.kind === 'problem') return this.#malformed(head.reason, end);
    if (head.interim) {
      this.#asker.onInterim(head);
      return reading.next;
    }
    this.#response = head;
    if (head.status === 101) {
      this.#switch(head, bytes, reading.next, end);
      return end;
    }
    this.#asker.onHead(head);
    this.#request.recorder?.onResponseHead(head, this.#asker.bodyForm);
    this.#body = scannerOf(head.framing, this.#asker.bodyForm);
    this.#phase = this.#body === null ? 'complete' : 'body';
    return reading.next;
  }

  #switch(head: ResponseHead, bytes: Buffer, start: number, end: number): void {
    const stream = this.#stream;
    this.#stream = null;
    this.#phase = 'over';
    const { recorder } = this.#request;
    recorder?.onResponseHead(head, 'chunks');
    recorder?.finish(this.#context.now(), 'complete');
    if (stream !== null) this.#asker.onSwitched(head, stream, bytes, start, end);
  }

  #takeBody(bytes: Buffer, start: number, end: number, lend: boolean): number {
    const body = this.#body as BodyScanner;
    this.#piece = bytes;
    this.#lend = lend;
    const next = body.push(bytes, start, end, this);
    this.#piece = NOTHING;
    if (next === BODY_INCOMPLETE) return end;
    if (next === BODY_BAD) return this.#malformed(body.problem ?? '', end);
    this.#phase = 'complete';
    if (body instanceof ChunkedBody && body.trailers.length > 0) this.#asker.onTrailers(body.trailers);
    return next;
  }

  forward(start: number, end: number): void {
    this.#request.recorder?.onResponseBody(this.#piece, start, end);
    if (!this.#asker.onBody(this.#piece, start, end, this.#lend)) this.#goesOn = false;
  }

  text(piece: string): void {
    this.#asker.onText(piece);
  }

  #malformed(reason: string, end: number): number {
    this.#fail(new Fault('LOCAL_MALFORMED', { reason }));
    return end;
  }

  onEnd(): void {
    if (this.#phase === 'body' && this.#response?.framing.kind === 'until-close') {
      this.#phase = 'complete';
      this.#finish(true);
    } else this.#broken('it closed the connection');
  }

  onReset(reason: StreamReason): void {
    if (reason.code === 'carrier-lost') this.#broken('the connection to the client was lost');
    else this.#broken('it reset the connection');
  }

  /** The stream ended before the response did. A service that hung up on an idle connection did not see the request. */
  #broken(reason: string): void {
    const stream = this.#stream;
    this.#stream = null;
    if (this.#phase === 'over') return;
    stream?.reset(UNUSABLE);
    if (this.#isReused && !this.#hasAnswer && this.isReplayable) {
      this.#isReused = false;
      this.#openAnew();
    } else this.#fail(new Fault('LOCAL_CLOSED', { reason }));
  }

  // ---- time ----

  /** Once a second. The service has time from the last byte of the request on; until then it is the visitor's. */
  tick(nowMs: number): void {
    const isServices = this.#requestDone || this.#isBehind;
    if (this.#phase !== 'head' || !isServices) return;
    if (nowMs - this.#lastProgressMs < this.#context.firstByteTimeoutMs) return;
    this.#fail(new Fault('LOCAL_TIMEOUT', { seconds: this.#context.firstByteTimeoutMs / 1000 }));
  }

  // ---- the end ----

  /** The visitor left: the service is told by a reset. */
  abort(): void {
    if (this.#phase !== 'over') this.#request.recorder?.finish(this.#context.now(), 'aborted');
    this.#leave(ABORTED);
  }

  #finish(isClean: boolean): void {
    const { idle, now } = this.#context;
    const stream = this.#stream;
    const response = this.#response;
    this.#stream = null;
    this.#phase = 'over';
    if (stream !== null && this.#mux !== null) {
      if (!isClean || !this.#requestDone) stream.reset(UNUSABLE);
      else if (response?.keepAlive) idle.give(this.#tunnel, this.#mux, stream, now());
      else idle.letClose(this.#tunnel, this.#mux, stream, now());
    }
    this.#request.recorder?.finish(now(), 'complete');
    this.#asker.onDone(this.#requestDone);
  }

  #fail(fault: Fault): void {
    if (this.#phase === 'over') return;
    this.#request.recorder?.finish(this.#context.now(), fault);
    this.#leave(UNUSABLE);
    this.#asker.onFailed(fault);
  }

  #leave(reason: StreamReason): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#waiting = null;
    this.#opening?.reset(reason);
    this.#opening = null;
    this.#stream?.reset(reason);
    this.#stream = null;
  }

  #count(toClient: number, toVisitor: number): void {
    this.#tunnel.counters.bytes += toClient + toVisitor;
    this.#context.onBytes(this.#tunnel, toClient, toVisitor);
  }
}
