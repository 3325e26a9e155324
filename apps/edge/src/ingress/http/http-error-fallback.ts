// Ends a visitor's connection to a tcp tunnel without a healthy member. A visitor that speaks HTTP gets an error response; other visitors
// are reset.

import type { Fault } from '@tunnel/errors';
import { parseRequestHead } from '@tunnel/http1';
import { BROKEN, type ByteDuplex, type ByteReader, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { HeadReader } from '../../upstream/http1/head-reader.ts';
import { type Asked, edgeReplyText } from './render-answer.ts';

/** Time in which a visitor of a tcp tunnel without a healthy member can begin an HTTP request and get an error page. Other visitors are reset. */
export const TCP_HTTP_FALLBACK_MS = 300;

type Phase =
  /** Waiting for the visitor's first bytes, to decide whether the visitor speaks HTTP. */
  | 'listening'
  /** The error response was sent. Further bytes are discarded, so that the visitor can read the response before the connection closes. */
  | 'lingering'
  | 'over';

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'];
const BEGINNINGS = METHODS.map((method) => `${method} `);
const LONGEST_BEGINNING = Math.max(...BEGINNINGS.map(({ length }) => length));

const UNSERVED: StreamReason = { code: 'cancelled', text: 'no service for this connection' };

export class HttpErrorFallback implements ByteReader {
  readonly #end: ByteDuplex;
  readonly #fault: Fault;
  readonly #clock: Clock;
  readonly #report: ReportInternalError;
  readonly #onOver: () => void;
  readonly #heads = new HeadReader();
  #phase: Phase = 'listening';
  #beginning = '';
  #timer: Timer | undefined;
  /** True if the error response was flushed to the visitor. */
  #saidAll = false;
  #visitorEnded = false;

  /** Prepares the error response for a visitor. `onOver` is called exactly once, when the connection has ended. */
  constructor(end: ByteDuplex, fault: Fault, clock: Clock, report: ReportInternalError, onOver: () => void) {
    this.#end = end;
    this.#fault = fault;
    this.#clock = clock;
    this.#report = report;
    this.#onOver = onOver;
  }

  /** Starts reading. Separate from the constructor, because bytes that have already arrived may call back synchronously. */
  start(): void {
    this.#wait(TCP_HTTP_FALLBACK_MS, () => this.#decide());
    this.#end.read(this);
  }

  reset(reason: StreamReason): void {
    if (this.#phase === 'over') return;
    this.#end.reset(reason);
    this.#finish();
  }

  // ---- input from the visitor ----

  onData(bytes: Buffer, start: number, end: number): boolean {
    if (this.#phase !== 'listening') return true;
    const missing = LONGEST_BEGINNING - this.#beginning.length;
    this.#beginning += bytes.toString('latin1', start, Math.min(end, start + missing));
    if (!mayBeHttp(this.#beginning)) {
      this.reset(UNSERVED);
      return true;
    }
    const reading = this.#heads.read(bytes, start, end);
    if (reading.kind === 'head') this.#decide(reading.text);
    else if (reading.kind === 'problem') this.#decide();
    return true;
  }

  onDrain(): void {}

  onEnd(): void {
    this.#visitorEnded = true;
    if (this.#phase === 'listening') this.#decide();
    else this.#finishIfRead();
  }

  onReset(): void {
    this.#finish();
  }

  // ---- error response ----

  /** Decides by the bytes received so far. The complete head only selects the format of the error response. */
  #decide(head?: string): void {
    const method = methodOf(this.#beginning);
    if (method === undefined) this.reset(UNSERVED);
    else this.#answer(head === undefined ? bareHead(method) : readHead(head, method));
  }

  #answer(head: NonNullable<Asked['head']>): void {
    this.#phase = 'lingering';
    this.#wait(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS, () => this.reset(UNSERVED));
    const { text } = edgeReplyText({ fault: this.#fault }, { head, keepAlive: false, edits: null });
    const bytes = Buffer.from(text, 'latin1');
    this.#end.write(bytes, 0, bytes.length, true);
    this.#end.end(() => {
      if (this.#phase === 'over') return;
      this.#saidAll = true;
      // The linger time starts after the response is flushed, because the visitor cannot read the response earlier.
      this.#wait(EDGE_LIMITS.HTTP_LINGER_MS, () => this.reset(UNSERVED));
      this.#finishIfRead();
    });
  }

  #wait(ms: number, then: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimeout(() => {
      try {
        then();
      } catch (error) {
        this.abandon(error, 'fallback.timer');
      }
    }, ms);
  }

  abandon(error: unknown, where: string): void {
    try {
      this.#report(error, where);
      this.#end.reset(BROKEN);
    } finally {
      this.#finish();
    }
  }

  #finishIfRead(): void {
    if (this.#saidAll && this.#visitorEnded) this.#finish();
  }

  #finish(): void {
    if (this.#phase === 'over') return;
    this.#phase = 'over';
    this.#timer?.cancel();
    this.#onOver();
  }
}

const methodOf = (beginning: string): string | undefined =>
  METHODS.find((_, index) => beginning.startsWith(BEGINNINGS[index] ?? ''));

/** Reports whether the bytes can be the start of an HTTP method, which may arrive in pieces. */
const mayBeHttp = (beginning: string): boolean =>
  BEGINNINGS.some((known) => known.startsWith(beginning) || beginning.startsWith(known));

const bareHead = (method: string): NonNullable<Asked['head']> => ({ method, version: '1.1', headers: [] });

const readHead = (text: string, method: string): NonNullable<Asked['head']> => {
  const head = parseRequestHead(text);
  return head.kind === 'problem' ? bareHead(method) : head;
};
