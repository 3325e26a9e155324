// Reads a visitor's bytes like an edge, in any pieces: head search, head, body, next request.

import { createBodyScanner } from './bodies.ts';
import { latin1Text } from './characters.ts';
import { BODY_BAD, BODY_INCOMPLETE, type BodyScanner } from './framing.ts';
import { findHeadEnd, HEAD_INCOMPLETE, HEAD_TOO_LONG, newHeadSearch, resetHeadSearch } from './head-search.ts';
import { HTTP1_BOUNDS } from './limits.ts';
import { parseRequestHead, type RequestHead } from './request-head.ts';

export interface ReadRequest {
  readonly head: RequestHead;
  /** `content` is the decoded body; `passedOn` has the bytes for the local service. */
  content: string;
  passedOn: string;
  isComplete: boolean;
}

export interface Reading {
  readonly requests: ReadRequest[];
  problem: { readonly status: number; readonly reason: string } | null;
  /** Number of bytes of an incomplete head. */
  pendingBytes: number;
  /** Number of bytes after the last request of the connection. */
  surplusBytes: number;
}

export const latin1Bytes = (text: string): Uint8Array => Uint8Array.from(text, (character) => character.charCodeAt(0));

export class RequestReader {
  readonly reading: Reading = { requests: [], problem: null, pendingBytes: 0, surplusBytes: 0 };
  readonly #search = newHeadSearch();
  #headText = '';
  #body: { readonly framed: BodyScanner; readonly content: BodyScanner } | null = null;
  #isOver = false;

  push(bytes: Uint8Array, from: number, to: number): void {
    let at = from;
    while (at < to) {
      if (this.reading.problem !== null) return;
      if (this.#isOver) this.reading.surplusBytes += to - at;
      if (this.#isOver) return;
      at = this.#body === null ? this.#readHead(bytes, at, to) : this.#readBody(bytes, at, to);
    }
  }

  #readHead(bytes: Uint8Array, at: number, to: number): number {
    const found = findHeadEnd(bytes, at, to, this.#search, HTTP1_BOUNDS);
    if (found < 0 && found !== HEAD_INCOMPLETE) {
      this.reading.problem = { status: found === HEAD_TOO_LONG ? 431 : 400, reason: 'search' };
      return to;
    }
    const stop = found === HEAD_INCOMPLETE ? to : found;
    this.#headText += latin1Text(bytes, at, stop);
    this.reading.pendingBytes = this.#search.seenBytes - this.#search.leadBytes;
    if (found === HEAD_INCOMPLETE) return stop;
    const head = parseRequestHead(this.#headText.slice(this.#search.leadBytes));
    this.#headText = '';
    this.reading.pendingBytes = 0;
    resetHeadSearch(this.#search);
    if (head.kind === 'problem') this.reading.problem = head;
    else this.#begin(head);
    return stop;
  }

  #begin(head: RequestHead): void {
    const framed = createBodyScanner(head.framing);
    const content = createBodyScanner(head.framing, 'data');
    this.reading.requests.push({ head, content: '', passedOn: '', isComplete: framed === null });
    if (framed !== null && content !== null) this.#body = { framed, content };
    else this.#isOver = isLast(head);
  }

  #readBody(bytes: Uint8Array, at: number, to: number): number {
    const request = this.reading.requests.at(-1)!;
    const { framed, content } = this.#body!;
    const stop = framed.push(bytes, at, to, {
      forward: (start, end) => (request.passedOn += latin1Text(bytes, start, end)),
      text: (piece) => (request.passedOn += piece),
    });
    const same = content.push(bytes, at, to, {
      forward: (start, end) => (request.content += latin1Text(bytes, start, end)),
      text: () => {
        throw new Error('the content has no text of ours');
      },
    });
    if (stop !== same) throw new Error('two forms of one body end at two places');
    if (stop === BODY_BAD) this.reading.problem = { status: 400, reason: framed.problem ?? '' };
    if (stop === BODY_BAD || stop === BODY_INCOMPLETE) return to;
    request.isComplete = true;
    this.#body = null;
    this.#isOver = isLast(request.head);
    return stop;
  }
}

const isLast = (head: RequestHead): boolean => !head.keepAlive || head.upgrade !== null;

/** Reads the text in pieces. `cuts` are positions between 0 and the length, in any order. */
export const readRequests = (text: string, cuts: readonly number[] = []): Reading => {
  const bytes = latin1Bytes(text);
  const stops = [0, ...cuts, bytes.length].toSorted((a, b) => a - b);
  const reader = new RequestReader();
  // Each piece lies inside a larger buffer, as in an edge, so that the tests notice reads outside of the piece.
  for (const [index, from] of stops.entries()) reader.push(bytes, from, stops[index + 1] ?? from);
  return reader.reading;
};
