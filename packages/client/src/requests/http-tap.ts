// Observes the HTTP/1.1 messages of one connection, requests and responses. The tap changes and delays nothing; unreadable data only ends
// the observation.
import { NOT_PLAIN } from '@tunnel/http1';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { type MessageHandlers, MessageReader } from './message-reader.ts';
import {
  type AnsweringHead,
  type Asked,
  LastType,
  type OpeningHead,
  SniffedRequestHead,
  SniffedResponseHead,
} from './sniffed-head.ts';

/** Observer of one request and its response. No method is called after onEnd. */
export interface SeenRequest {
  onRequestBody(bytes: Buffer, start: number, end: number): void;
  onRequestEnd(): void;
  /** Called with the head of the final response. Interim responses (100, 103) are skipped. */
  onResponseHead(head: AnsweringHead): void;
  onResponseBody(bytes: Buffer, start: number, end: number): void;
  /** `aborted`: the connection ended early, or the rest could not be parsed. */
  onEnd(how: 'complete' | 'aborted'): void;
}

/** Called at the head of a request. Returns null if nothing observes requests any more; then the tap stops. */
export type RequestOpener = (head: OpeningHead) => SeenRequest | null;

/** An observed request without a complete response. */
interface Pending extends Asked {
  readonly seen: SeenRequest;
}

/** Maximum number of unanswered requests. The edge sends one request at a time. */
const PENDING_MAX = 64;

export class HttpTap {
  readonly #open: RequestOpener;
  /** Observed requests without a complete response, in the order of their responses. */
  readonly #pending: Pending[] = [];
  /** The request with the body that is currently passing. */
  #current: Pending | null = null;
  /** True while an interim response passes, which does not answer the first of `#pending`. */
  #isInterim = false;
  readonly #lastType = new LastType();
  readonly #requests: MessageReader;
  readonly #responses: MessageReader;

  constructor(open: RequestOpener) {
    this.#open = open;
    this.#requests = new MessageReader(this.#requestHandlers());
    this.#responses = new MessageReader(this.#responseHandlers());
  }

  /** Observes bytes that pass from the visitor to the local service. */
  request(bytes: Buffer, start: number, end: number): void {
    if (this.#requests.isStopped) return;
    try {
      this.#requests.push(bytes, start, end);
    } catch {
      this.#giveUp();
    }
  }

  /** Observes bytes that pass from the local service to the visitor. */
  response(bytes: Buffer, start: number, end: number): void {
    if (this.#responses.isStopped) return;
    try {
      this.#responses.push(bytes, start, end);
      // After unreadable data no further responses can be parsed, so pending requests are reported as aborted.
      if (this.#responses.isStopped) this.#abortAll();
    } catch {
      this.#giveUp();
    }
  }

  /** Called when the local service has finished sending. */
  responseEnded(): void {
    try {
      this.#responses.close();
      this.#abortAll();
    } catch {
      this.#giveUp();
    }
  }

  /** Called when both directions of the observed connection have ended. */
  over(): void {
    try {
      this.#abortAll();
    } catch {
      this.#giveUp();
    }
  }

  #requestHandlers(): MessageHandlers {
    return {
      onPlainHead: (bytes, start, end) => {
        const head = new SniffedRequestHead();
        const next = head.scan(bytes, start, end);
        if (next !== NOT_PLAIN) this.#onRequest(head);
        return next;
      },
      onHead: (text) => {
        const head = new SniffedRequestHead();
        if (head.read(text)) this.#onRequest(head);
      },
      onBody: (bytes, start, end) => this.#current?.seen.onRequestBody(bytes, start, end),
      onMessageEnd: () => {
        const current = this.#current;
        this.#current = null;
        current?.seen.onRequestEnd();
      },
    };
  }

  #responseHandlers(): MessageHandlers {
    return {
      onPlainHead: (bytes, start, end) => {
        const first = this.#pending[0];
        if (first === undefined) return NOT_PLAIN;
        const head = new SniffedResponseHead(this.#lastType);
        const next = head.scan(bytes, start, end, first);
        if (next !== NOT_PLAIN) this.#onResponse(head);
        return next;
      },
      onHead: (text) => {
        const first = this.#pending[0];
        if (first === undefined) return;
        const head = new SniffedResponseHead(this.#lastType);
        if (head.read(text, first)) this.#onResponse(head);
      },
      onBody: (bytes, start, end) => this.#pending[0]?.seen.onResponseBody(bytes, start, end),
      onMessageEnd: () => {
        if (!this.#isInterim) this.#finishFirst();
      },
    };
  }

  #onRequest(head: SniffedRequestHead): void {
    if (this.#pending.length === PENDING_MAX) return;
    const seen = this.#open(head);
    if (seen === null) {
      if (this.#pending.length === 0) this.#responses.stop();
      return;
    }
    this.#current = { method: head.method, upgrade: head.upgrade, seen };
    this.#pending.push(this.#current);
    this.#requests.expectBody(head.body);
  }

  #onResponse(head: SniffedResponseHead): void {
    this.#isInterim = head.isInterim;
    if (head.isInterim) return this.#responses.expectBody(0);
    this.#pending[0]?.seen.onResponseHead(head);
    // After a response with status 101 the bytes belong to another protocol.
    if (head.status === 101) this.#finishFirst();
    else this.#responses.expectBody(head.body);
  }

  #finishFirst(): void {
    const first = this.#pending.shift();
    if (first === this.#current) this.#current = null;
    first?.seen.onEnd('complete');
  }

  #abortAll(): void {
    this.#requests.stop();
    this.#responses.stop();
    this.#current = null;
    for (const { seen } of this.#pending.splice(0)) seen.onEnd('aborted');
  }

  /** Stops observing after an internal error, which must never affect the visitor. */
  #giveUp(): void {
    this.#requests.stop();
    this.#responses.stop();
    this.#pending.length = 0;
    this.#current = null;
  }
}

/**
 * A visitor's end with a tap. Bytes are forwarded first and observed afterwards, without a copy. Data read from `visitor` are requests;
 * data written to it are responses.
 */
export class TappedDuplex implements ByteDuplex {
  readonly #visitor: ByteDuplex;
  readonly #tap: HttpTap;

  constructor(visitor: ByteDuplex, tap: HttpTap) {
    this.#visitor = visitor;
    this.#tap = tap;
  }

  read(reader: ByteReader): void {
    this.#visitor.read(new TappedReader(reader, this.#tap));
  }

  write(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const goOn = this.#visitor.write(bytes, start, end, borrowed);
    this.#tap.response(bytes, start, end);
    return goOn;
  }

  resume(): void {
    this.#visitor.resume();
  }

  end(onFlushed?: () => void): void {
    this.#visitor.end(onFlushed);
    this.#tap.responseEnded();
  }

  reset(reason: StreamReason): void {
    this.#visitor.reset(reason);
    this.#tap.over();
  }
}

class TappedReader implements ByteReader {
  readonly #reader: ByteReader;
  readonly #tap: HttpTap;

  constructor(reader: ByteReader, tap: HttpTap) {
    this.#reader = reader;
    this.#tap = tap;
  }

  onData(bytes: Buffer, start: number, end: number, borrowed: boolean): boolean {
    const goOn = this.#reader.onData(bytes, start, end, borrowed);
    this.#tap.request(bytes, start, end);
    return goOn;
  }

  onDrain(): void {
    this.#reader.onDrain();
  }

  onEnd(): void {
    this.#reader.onEnd();
  }

  onReset(reason: StreamReason): void {
    this.#reader.onReset(reason);
    this.#tap.over();
  }

  abandon(error: unknown, where: string): void {
    this.#tap.over();
    this.#reader.abandon(error, where);
  }
}
