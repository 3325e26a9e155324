// Reads the HTTP/1.1 messages of one connection as they pass, requests and responses together. It changes and holds nothing:
// whatever it cannot read only ends its own looking.
import { type Framing, parseRequestHead, parseResponseHead, type RequestHead, type ResponseHead } from '@tunnel/core';
import type { ByteDuplex, ByteReader } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import { MessageReader } from './message-reader.ts';

/** One request and its response, as they are seen. Nothing is called after onEnd. */
export interface SeenRequest {
  onRequestBody(bytes: Buffer, start: number, end: number): void;
  onRequestEnd(): void;
  /** Interim responses (100, 103) are left out. */
  onResponseHead(head: ResponseHead): void;
  onResponseBody(bytes: Buffer, start: number, end: number): void;
  /** `aborted`: the connection ended first, or the rest could not be read. */
  onEnd(how: 'complete' | 'aborted'): void;
}

/** null: nobody is interested (any more), and the tap lets go of the connection. */
export type RequestOpener = (head: RequestHead) => SeenRequest | null;

interface Pending {
  readonly head: RequestHead;
  readonly seen: SeenRequest;
}

/** Requests that wait for their answers; a visitor's ingress sends one at a time. */
const PENDING_MAX = 64;
const NO_BODY: Framing = { kind: 'none' };

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
    this.#requests = new MessageReader({
      onHead: (text) => this.#onRequestHead(text),
      onBody: (bytes, start, end) => this.#current?.seen.onRequestBody(bytes, start, end),
      onMessageEnd: () => this.#onRequestEnd(),
    });
    this.#responses = new MessageReader({
      onHead: (text) => this.#onResponseHead(text),
      onBody: (bytes, start, end) => this.#pending[0]?.seen.onResponseBody(bytes, start, end),
      onMessageEnd: () => this.#onResponseEnd(),
    });
  }

  /** From the visitor. */
  request(bytes: Buffer, start: number, end: number): void {
    if (!this.#requests.isStopped) this.#guard(() => this.#requests.push(bytes, start, end));
  }

  /** From the local service. */
  response(bytes: Buffer, start: number, end: number): void {
    if (!this.#responses.isStopped) {
      this.#guard(() => {
        this.#responses.push(bytes, start, end);
        // What cannot be read is followed by nothing that can.
        if (this.#responses.isStopped) this.#abortAll();
      });
    }
  }

  /** The local service has finished sending. */
  responseEnded(): void {
    this.#guard(() => {
      this.#responses.close();
      this.#abortAll();
    });
  }

  /** Both directions are gone. */
  over(): void {
    this.#guard(() => this.#abortAll());
  }

  #onRequestHead(text: string): Framing | null {
    const head = parseRequestHead(text);
    if (head.kind === 'problem' || this.#pending.length === PENDING_MAX) return null;
    const seen = this.#open(head);
    if (seen === null) {
      if (this.#pending.length === 0) this.#responses.stop();
      return null;
    }
    this.#current = { head, seen };
    this.#pending.push(this.#current);
    return head.framing;
  }

  #onRequestEnd(): void {
    const current = this.#current;
    this.#current = null;
    current?.seen.onRequestEnd();
  }

  #onResponseHead(text: string): Framing | null {
    const [first] = this.#pending;
    if (first === undefined) return null;
    const head = parseResponseHead(text, first.head);
    if (head.kind === 'problem') return null;
    this.#isInterim = head.interim;
    if (head.interim) return NO_BODY;
    first.seen.onResponseHead(head);
    if (head.status !== 101) return head.framing;
    // From here on the bytes are another protocol's.
    this.#finishFirst();
    return null;
  }

  #onResponseEnd(): void {
    if (!this.#isInterim) this.#finishFirst();
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
  #guard(look: () => void): void {
    try {
      look();
    } catch {
      this.#requests.stop();
      this.#responses.stop();
      this.#pending.length = 0;
      this.#current = null;
    }
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
