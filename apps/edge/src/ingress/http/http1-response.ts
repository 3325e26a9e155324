// The answer to one request of an HTTP/1.1 visitor: the service's, rewritten for this visitor, or one of our own.
import {
  type ChunkedForm,
  type RequestHead,
  type ResponseHead,
  responseHeadFor,
  type VisitorResponse,
} from '@tunnel/core';
import type { Fault } from '@tunnel/errors';
import type { MuxStream } from '@tunnel/mux';
import type { Asker, FailedTry } from './asker.ts';
import type { Http1Calls } from './http1-calls.ts';
import { type LocalAnswer, localAnswer } from './local-answer.ts';
import type { VisitorWriter } from './visitor-writer.ts';

/** The visitor's connection, as its answers see it. */
export interface RespondingVisitor {
  readonly calls: Pick<Http1Calls, 'answered' | 'askAnother' | 'owner'>;
  /** The request's last byte has come. */
  readonly requestDone: boolean;
  /** A service has answered on this connection. */
  isServed: boolean;
  /** The last byte of the answer is written. */
  onResponded(keepAlive: boolean): void;
  /** Half of an answer is out: only a cut tells the visitor that the rest is missing. */
  onCutOff(): void;
  onSwitched(stream: MuxStream): void;
  onBodyDrain(): void;
}

export class Http1Response implements Asker {
  bodyForm: ChunkedForm = 'chunks';
  readonly #visitor: RespondingVisitor;
  readonly #out: VisitorWriter;
  /** null: there was no head that could be read. */
  readonly #head: RequestHead | null;
  #keepAlive: boolean;
  #isBegun = false;
  /** Of the service's head; null: none, or it is out. Until then it can be taken back. */
  #waitingStatus: number | null = null;

  constructor(visitor: RespondingVisitor, out: VisitorWriter, head: RequestHead | null) {
    this.#visitor = visitor;
    this.#out = out;
    this.#head = head;
    this.#keepAlive = head?.keepAlive ?? false;
  }

  // ---- the service's ----

  onInterim(head: ResponseHead): void {
    this.#out.text(this.#rewritten(head).text);
    this.#out.flush();
  }

  onHead(head: ResponseHead): void {
    this.#visitor.isServed = true;
    this.#decideKeepAlive();
    const { text, form, keepAlive } = this.#rewritten(head);
    this.bodyForm = form;
    this.#keepAlive = keepAlive;
    this.#isBegun = true;
    this.#waitingStatus = head.status;
    this.#out.text(text);
  }

  onBody(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    this.#goOut();
    return this.#out.bytes(bytes, start, end, borrowed);
  }

  onText(text: string): void {
    this.#out.text(text);
  }

  /** In chunks they have passed already; HTTP/1.0 has none. */
  onTrailers(): void {}

  onTurn(): void {
    this.#goOut();
    this.#out.flush();
  }

  onDone(requestDone: boolean): void {
    this.onTurn();
    this.#visitor.onResponded(this.#keepAlive && requestDone);
  }

  onFailed(fault: Fault, failed: FailedTry | null): void {
    if (this.#waitingStatus !== null) this.#takeBack({ fault });
    else if (this.#isBegun) this.#visitor.onCutOff();
    else if (failed === null || !this.#visitor.calls.askAnother(failed)) this.answer({ fault });
  }

  onSwitched(head: ResponseHead, stream: MuxStream, bytes: Buffer, start: number, end: number): void {
    this.#begin(head.status, this.#rewritten(head).text);
    if (end > start) this.#out.bytes(bytes, start, end, false);
    else this.#out.flush();
    this.#visitor.onSwitched(stream);
  }

  onBodyDrain(): void {
    this.#visitor.onBodyDrain();
  }

  // ---- our own ----

  answer(answer: LocalAnswer): void {
    this.#decideKeepAlive();
    const { status, text } = localAnswer(answer, { head: this.#head, keepAlive: this.#keepAlive });
    this.#begin(status, text);
    this.#out.flush();
    this.#visitor.onResponded(this.#keepAlive);
  }

  /** Until the request is complete nobody knows whether another one can follow: then none does. */
  #decideKeepAlive(): void {
    if (!this.#visitor.requestDone || this.#visitor.calls.owner.isDraining) this.#keepAlive = false;
  }

  #goOut(): void {
    if (this.#waitingStatus === null) return;
    this.#visitor.calls.answered(this.#waitingStatus);
    this.#waitingStatus = null;
  }

  /** What came right behind the head was malformed: nothing has left yet. */
  #takeBack(answer: LocalAnswer): void {
    this.#waitingStatus = null;
    this.#out.drop();
    this.answer(answer);
  }

  #begin(status: number, text: string): void {
    this.#isBegun = true;
    this.#out.text(text);
    this.#visitor.calls.answered(status);
  }

  #rewritten(head: ResponseHead): VisitorResponse {
    return responseHeadFor(head, { visitorVersion: this.#head?.version ?? '1.1', keepAlive: this.#keepAlive });
  }
}
