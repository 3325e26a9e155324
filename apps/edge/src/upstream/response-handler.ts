// Callbacks for the response to a request, in the order of the message. Implemented for visitors with HTTP/1.1 or HTTP/2, and for replays.

import type { Fault } from '@tunnel/errors';
import type { ChunkedForm, HeaderField, ResponseHead } from '@tunnel/http1';
import type { ByteQueue, Guarded } from '@tunnel/mux';
import type { RequestStream } from '@tunnel/protocol';
import type { UpstreamStream } from './upstream.ts';

/** Receives the response of a service. The last call is onEnd, onUpgrade, onError or abandon. */
export interface ResponseHandler extends Guarded {
  /** Passes an interim head. Returns false if the reader has not accepted it; further heads wait for resume(). */
  onInterim(head: ResponseHead): boolean;
  /** Passes the final head. `endsStream`: in HTTP/2, the head ended the stream, regardless of its Content-Length. */
  onHead(head: ResponseHead, endsStream: boolean): void;
  /** Passes data of the response body without framing. Follows the rules of ByteReader.onData. */
  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Passes the trailers of the response, if any, after the last data. */
  onTrailers(trailers: readonly HeaderField[]): void;
  /** Called after all bytes of the current turn of the event loop were passed. Returns false to stop, like onData. */
  onTurn(): boolean;
  /** The response is complete. `requestDone` is false if the response ended before the request. */
  onEnd(requestDone: boolean): void;
  /** The protocol was switched. The handler takes over the stream; bytes[start, end) arrived after the head. */
  onUpgrade(head: ResponseHead, stream: UpstreamStream, bytes: Buffer, start: number, end: number): void;
  /**
   * Reports a failure. Before the head, an error response is still possible; afterwards the response is cut off. `unsent` is null if the
   * request must not be retried on another service.
   */
  onError(fault: Fault, unsent: UnsentRequest | null): void;
  /** Called when the service accepts more of the request's body, so that the sender resumes. */
  onRequestDrain(): void;
  /**
   * Called after the head of a chunked body. A handler that returns a writer gets the chunks unchanged through onData, re-encoded pieces
   * through the writer, and no trailers. Saves measurable time between HTTP/1.1 and HTTP/1.1. Returns null for raw data.
   */
  passChunks(): ChunkWriter | null;
}

export interface ChunkWriter {
  /** Writes text between chunks of the response, with a byte per character (Latin-1). */
  text(piece: string): void;
}

/** State of a failed request that may still be sent to another service. */
export interface UnsentRequest {
  /** All body bytes received so far, which waited for a connection to the service. */
  readonly waiting: ByteQueue | null;
  readonly requestDone: boolean;
  readonly trailers: readonly HeaderField[];
}

/**
 * End of a request. `complete`: the whole response arrived. `aborted`: the visitor disconnected. A fault: why the response is missing or
 * incomplete.
 */
export type RequestEnd = 'complete' | 'aborted' | Fault;

/** Records a request and its response while both pass through the edge. */
export interface RequestRecorder {
  /** Called when the head is sent on a stream, as its first request (1) or a later request. Called again if the request is sent again. */
  onSent(stream: RequestStream, ordinal: number): void;
  onRequestBody(bytes: Buffer, start: number, end: number): void;
  onRequestEnd(): void;
  /** Records the response head. `bodyForm` is the form in which chunks of a chunked body are passed to onResponseBody. */
  onResponseHead(head: ResponseHead, bodyForm: ChunkedForm): void;
  onResponseBody(bytes: Buffer, start: number, end: number): void;
  finish(nowMs: number, end: RequestEnd): void;
  /** Discards the record, because the request is sent to another service and recorded there. */
  discard(): void;
}
