// What a request tells of its response, in the order of the message: to a visitor of HTTP/1.1 or HTTP/2, or to a replay.

import type { Fault } from '@tunnel/errors';
import type { ChunkedForm, HeaderField, ResponseHead } from '@tunnel/http1';
import type { ByteQueue, Guarded } from '@tunnel/mux';
import type { RequestStream } from '@tunnel/protocol';
import type { UpstreamStream } from './upstream.ts';

/** onEnd, onUpgrade, onError or abandon is the last one. */
export interface ResponseHandler extends Guarded {
  /** false: its reader has not taken it; the next ones wait for resume(). */
  onInterim(head: ResponseHead): boolean;
  /** The final one. `endsStream`: HTTP/2 said with it that nothing follows, whatever length it names. */
  onHead(head: ResponseHead, endsStream: boolean): void;
  /** Data, without any framing; same rule as ByteReader.onData. */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Behind the last data, where there are any. */
  onTrailers(trailers: readonly HeaderField[]): void;
  /** All that came in this turn was told. false: stop, as with onData. */
  onTurn(): boolean;
  /** The response is complete. `requestDone` is false when it came before the request's end. */
  onEnd(requestDone: boolean): void;
  /** Protocols were switched: the stream is the handler's now; bytes[start, end) came behind the head. */
  onUpgrade(head: ResponseHead, stream: UpstreamStream, bytes: Buffer, start: number, end: number): void;
  /** Before the head an answer can still be given; afterwards the response is cut off. `unsent` null: no other service may be asked. */
  onError(fault: Fault, unsent: UnsentRequest | null): void;
  /** The request's body may go on. */
  onRequestDrain(): void;
  /**
   * An optimisation between HTTP/1.1 and HTTP/1.1, because it is measured: asked behind the head of a chunked body. Whoever gives a
   * writer gets the body by onData in its chunks as they came, pieces that are written anew by that writer, and no trailers.
   */
  passChunks(): ChunkWriter | null;
}

export interface ChunkWriter {
  /** One character per byte. */
  text(piece: string): void;
}

/** What a failed request held while it may still be put to another service. */
export interface UnsentRequest {
  /** Body bytes that waited for a way to the service; all that came so far. */
  readonly waiting: ByteQueue | null;
  readonly requestDone: boolean;
  readonly trailers: readonly HeaderField[];
}

/** `complete`: the whole response came. `aborted`: the visitor left. A fault: why there was no response, or not all of it. */
export type RequestEnd = 'complete' | 'aborted' | Fault;

/** What is kept of a request and its response is fed while they pass. */
export interface RequestRecorder {
  /** Its head goes out on that stream, as the first request of it (1) or a later one. Again when it is sent anew. */
  onSent(stream: RequestStream, ordinal: number): void;
  onRequestBody(bytes: Buffer, start: number, end: number): void;
  onRequestEnd(): void;
  /** A chunked body will pass by in that form. */
  onResponseHead(head: ResponseHead, bodyForm: ChunkedForm): void;
  onResponseBody(bytes: Buffer, start: number, end: number): void;
  finish(nowMs: number, end: RequestEnd): void;
  /** Another service gets the request, and it is recorded there. */
  discard(): void;
}
