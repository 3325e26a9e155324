// The end of a visitor whom nobody serves: one who speaks HTTP gets an answer that it can read, everyone else is reset.

import type { Fault } from '@tunnel/errors';
import { parseRequestHead } from '@tunnel/http1';
import { BROKEN, type ByteDuplex, type ByteReader, type ReportInternalError } from '@tunnel/mux';
import type { StreamReason } from '@tunnel/protocol';
import type { Clock, Timer } from '@tunnel/runtime';
import { EDGE_LIMITS } from '../../limits.ts';
import { HeadReader } from '../../upstream/http1/head-reader.ts';
import { type Asked, ownAnswerText } from './own-answer.ts';

/** Time in which a visitor of a tcp tunnel without a healthy member can begin an HTTP request and get an error page. Other visitors are reset. */
export const TCP_HTTP_FALLBACK_MS = 300;

type Phase =
  /** Its first bytes decide. */
  | 'listening'
  /** We have said our last word; what still comes is thrown away, so that the visitor can read it. */
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
  /** Which of the two sides has nothing more to say. */
  #saidAll = false;
  #visitorEnded = false;

  /** `onOver`: exactly once. */
  constructor(end: ByteDuplex, fault: Fault, clock: Clock, report: ReportInternalError, onOver: () => void) {
    this.#end = end;
    this.#fault = fault;
    this.#clock = clock;
    this.#report = report;
    this.#onOver = onOver;
  }

  /** Apart from the constructor: what is already there may call back at once. */
  start(): void {
    this.#wait(TCP_HTTP_FALLBACK_MS, () => this.#decide());
    this.#end.read(this);
  }

  reset(reason: StreamReason): void {
    if (this.#phase === 'over') return;
    this.#end.reset(reason);
    this.#finish();
  }

  // ---- the visitor ----

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

  // ---- the answer ----

  /** By what has come so far. The rest of a head only says in which form the visitor wants the answer. */
  #decide(head?: string): void {
    const method = methodOf(this.#beginning);
    if (method === undefined) this.reset(UNSERVED);
    else this.#answer(head === undefined ? bareHead(method) : readHead(head, method));
  }

  #answer(head: NonNullable<Asked['head']>): void {
    this.#phase = 'lingering';
    this.#wait(EDGE_LIMITS.HTTP_SEND_TIMEOUT_MS, () => this.reset(UNSERVED));
    const { text } = ownAnswerText({ fault: this.#fault }, { head, keepAlive: false, notes: null });
    const bytes = Buffer.from(text, 'latin1');
    this.#end.write(bytes, 0, bytes.length, true);
    this.#end.end(() => {
      if (this.#phase === 'over') return;
      this.#saidAll = true;
      // Not sooner: until it is out the time is not the visitor's.
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

/** A method may come in pieces. */
const mayBeHttp = (beginning: string): boolean =>
  BEGINNINGS.some((known) => known.startsWith(beginning) || beginning.startsWith(known));

const bareHead = (method: string): NonNullable<Asked['head']> => ({ method, version: '1.1', headers: [] });

const readHead = (text: string, method: string): NonNullable<Asked['head']> => {
  const head = parseRequestHead(text);
  return head.kind === 'problem' ? bareHead(method) : head;
};
