// What rules have noted for a response, done to the service's on its way to the visitor: a handler around the visitor's own. It is there only where
// something was noted, or where a held body has to follow the request.
import { type HeaderField, notedHead, type ResponseHead, type ResponseNote } from '@tunnel/core';
import type { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { ChunkWriter, ResponseHandler, UnsentRequest } from '../../upstream/response-handler.ts';

/** Whose response it is. */
export interface NotedResponseOwner {
  /** The request's body may go on, wherever it comes from. */
  onRequestDrain(visitor: ResponseHandler): void;
}

export class NotedResponse implements ResponseHandler {
  readonly #inner: ResponseHandler;
  readonly #notes: readonly ResponseNote[];
  readonly #owner: NotedResponseOwner;

  constructor(inner: ResponseHandler, notes: readonly ResponseNote[], owner: NotedResponseOwner) {
    this.#inner = inner;
    this.#notes = notes;
    this.#owner = owner;
  }

  /** Of those the visitor learns what it is told early, and no more: the answer is the one that follows. */
  onInterim(head: ResponseHead): boolean {
    return this.#inner.onInterim(this.#noted(head));
  }

  onHead(head: ResponseHead, endsStream: boolean): void {
    this.#inner.onHead(this.#noted(head), endsStream);
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    return this.#inner.onData(bytes, start, end, borrowed);
  }

  passChunks(): ChunkWriter | null {
    return this.#inner.passChunks();
  }

  onTrailers(trailers: readonly HeaderField[]): void {
    this.#inner.onTrailers(trailers);
  }

  onTurn(): boolean {
    return this.#inner.onTurn();
  }

  onEnd(requestDone: boolean): void {
    this.#inner.onEnd(requestDone);
  }

  onUpgrade(head: ResponseHead, stream: MuxStream, bytes: Buffer, start: number, end: number): void {
    this.#inner.onUpgrade(this.#noted(head), stream, bytes, start, end);
  }

  /** An answer of our own is noted where it is written. */
  onError(fault: Fault, unsent: UnsentRequest | null): void {
    this.#inner.onError(fault, unsent);
  }

  onRequestDrain(): void {
    this.#owner.onRequestDrain(this.#inner);
  }

  abandon(error: unknown, where: string): void {
    this.#inner.abandon(error, where);
  }

  #noted(head: ResponseHead): ResponseHead {
    return this.#notes.length === 0 ? head : notedHead(head, this.#notes);
  }
}
