// Who asked: what a call tells the visitor's side about the response, in the order of the message.
import type { ChunkedForm, HeaderField, ResponseHead } from '@tunnel/core';
import type { Fault } from '@tunnel/errors';
import type { ByteQueue, MuxStream } from '@tunnel/mux';
import type { CaptureRecorder } from '../../capture/recorder.ts';
import type { Tunnel } from '../../pool/tunnel.ts';

/** A call that failed while the same request may still be put to another member of the group, and what it held of that request. */
export interface FailedTry {
  readonly tunnel: Tunnel;
  readonly recorder: CaptureRecorder | null;
  /** Body bytes that waited for a way to the service, in the form of requestFormOf(tunnel); all that came so far. */
  readonly waiting: ByteQueue | null;
  readonly requestDone: boolean;
  readonly trailers: readonly HeaderField[];
}

/** onFailed, onSwitched or onDone is the last one. */
export interface Asker {
  /** How it wants a chunked body: as chunks, or its data and then its trailers. */
  readonly bodyForm: ChunkedForm;
  onInterim(head: ResponseHead): void;
  onHead(head: ResponseHead): void;
  /** Same rule as ByteReader.onData. */
  onBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean;
  /** Pieces of a body in chunks that are written anew. */
  onText(text: string): void;
  onTrailers(trailers: readonly HeaderField[]): void;
  /** All that came in this turn was told. */
  onTurn(): void;
  /** The response is complete. `requestDone` is false when it came before the request's end. */
  onDone(requestDone: boolean): void;
  /** Protocols were switched: the stream is the asker's now; bytes[start, end) came behind the head. */
  onSwitched(head: ResponseHead, stream: MuxStream, bytes: Buffer, start: number, end: number): void;
  /** Before the head an answer can still be given; afterwards the response is cut off. `failed` null: nobody else may be asked. */
  onFailed(fault: Fault, failed: FailedTry | null): void;
  /** The request's body may go on. */
  onBodyDrain(): void;
}
