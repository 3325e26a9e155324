// Reads the HTTP/1.1 messages of one connection as they pass, requests and responses together. It changes and holds nothing:
// whatever it cannot read only ends its own looking.
import { NOT_PLAIN } from '@tunnel/http1';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { type MessageHandlers, MessageReader } from './message-reader.ts';
import {
  type AnsweringHead,
  type Asked,
  type OpeningHead,
  SniffedRequestHead,
  SniffedResponseHead,
} from './sniffed-head.ts';

/** One request and its response, as they are seen. Nothing is called after onEnd. */
export interface SeenRequest {
  onRequestBody(bytes: Buffer, start: number, end: number): void;
  onRequestEnd(): void;
  /** Interim responses (100, 103) are left out. */
  onResponseHead(head: AnsweringHead): void;
  onResponseBody(bytes: Buffer, start: number, end: number): void;
  /** `aborted`: the connection ended first, or the rest could not be read. */
  onEnd(how: 'complete' | 'aborted'): void;
}

/** null: nobody is interested (any more), and the tap lets go of the connection. */
export type RequestOpener = (head: OpeningHead) => SeenRequest | null;

/** A request that waits for its answer, or for the end of it. */
interface Pending extends Asked {
  readonly seen: SeenRequest;
}

/** Requests that wait for their answers; a visitor's ingress sends one at a time. */
const PENDING_MAX = 64;

export class HttpTap {
  readonly #open: RequestOpener;
  /** In the order in which they will be answered. */
  readonly #pending: Pending[] = [];
  /** The request whose body is passing. */
  #current: Pending | null = null;
  /** The response that is passing answers the first of `#pending`; an interim one does not. */
  #isInterim = false;
  readonly #requests: MessageReader;
  readonly #responses: MessageReader;

  constructor(open: RequestOpener) {
    this.#open = open;
    this.#requests = new MessageReader(this.#requestHandlers());
    this.#responses = new MessageReader(this.#responseHandlers());
  }

  /** From the visitor. */
  request(bytes: Buffer, start: number, end: number): void {
    if (this.#requests.isStopped) return;
    try {
      this.#requests.push(bytes, start, end);
    } catch {
      this.#giveUp();
    }
  }

  /** From the local service. */
  response(bytes: Buffer, start: number, end: number): void {
    if (this.#responses.isStopped) return;
    try {
      this.#responses.push(bytes, start, end);
      // What cannot be read is followed by nothing that can.
      if (this.#responses.isStopped) this.#abortAll();
    } catch {
      this.#giveUp();
    }
  }

  /** The local service has finished sending. */
  responseEnded(): void {
    try {
      this.#responses.close();
      this.#abortAll();
    } catch {
      this.#giveUp();
    }
  }

  /** Both directions are gone. */
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
        const head = new SniffedResponseHead();
        const next = head.scan(bytes, start, end, first);
        if (next !== NOT_PLAIN) this.#onResponse(head);
        return next;
      },
      onHead: (text) => {
        const first = this.#pending[0];
        if (first === undefined) return;
        const head = new SniffedResponseHead();
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
    // From a 101 on the bytes are another protocol's.
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

  /** A mistake here must cost a line in a list, never a visitor. */
  #giveUp(): void {
    this.#requests.stop();
    this.#responses.stop();
    this.#pending.length = 0;
    this.#current = null;
  }
}

/**
 * The visitor's end with somebody looking on: bytes pass first and are looked at after, in the memory they came in.
 * What is read from `visitor` are requests, what is written to it are responses.
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
