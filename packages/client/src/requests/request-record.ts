// One request and its response as they are being seen, and what is told of them: counted always, kept when somebody wants to look.
import { CapturedBody } from '@tunnel/capture';
import { fieldValueOf, isTextual, REDACTED, type RequestHead, type ResponseHead, redactUrl } from '@tunnel/core';
import { CLIENT_LIMITS } from '../limits.ts';
import type { Tunnel, TunnelEntry } from '../tunnel.ts';
import type { SeenRequest } from './http-tap.ts';

interface RequestFacts {
  readonly id: string;
  readonly tunnel: Tunnel;
  readonly method: string;
  /** With its query; values of fields named like a secret are shown as `…`. */
  readonly path: string;
  /** When its head had come: milliseconds since the epoch. */
  readonly at: number;
  /** The id of the request that was sent again from the inspector, or null for a visitor's own. */
  readonly replayOf: string | null;
}

/** What a client tells about the requests that pass through its http tunnels. */
export type RequestEvent =
  | (RequestFacts & { readonly type: 'request-started' })
  | (RequestFacts & {
      readonly type: 'request-finished';
      /** null: no response came. */
      readonly status: number | null;
      /** From the request's head to the last byte of the response. */
      readonly durationMs: number;
      /** Of the bodies alone. */
      readonly requestBytes: number;
      readonly responseBytes: number;
      /** The connection ended before the response did. */
      readonly aborted: boolean;
    });

export type RequestListener = (event: RequestEvent) => void;

export type RecordState = 'running' | 'complete' | 'aborted';

export interface RecordDeps {
  readonly monotonic: () => number;
  /** Headers and bodies are kept, not only counted. */
  readonly keep: boolean;
  /** So many more bytes are held. */
  onGrown(record: RequestRecord, bytes: number): void;
  onEnd(record: RequestRecord): void;
}

export class RequestRecord implements SeenRequest {
  readonly id: string;
  readonly tunnel: TunnelEntry;
  readonly method: string;
  /** For people: without secrets. */
  readonly shownPath: string;
  readonly at: number;
  readonly replayOf: string | null;
  /** It differs from that one. */
  readonly isEdited: boolean;
  /** Whole, secrets included: for a replay. */
  readonly requestHead: RequestHead | null;
  readonly requestBody: CapturedBody;
  responseBody: CapturedBody;
  readonly #deps: RecordDeps;
  readonly #startedAt: number;
  #response: ResponseHead | null = null;
  #status: number | null = null;
  #state: RecordState = 'running';
  #requestEnded = false;
  #durationMs = 0;

  constructor(
    facts: Pick<RequestRecord, 'id' | 'tunnel' | 'at' | 'replayOf' | 'isEdited'>,
    head: RequestHead,
    deps: RecordDeps,
  ) {
    this.id = facts.id;
    this.tunnel = facts.tunnel;
    this.at = facts.at;
    this.replayOf = facts.replayOf;
    this.isEdited = facts.isEdited;
    this.method = head.method;
    this.shownPath = redactUrl(head.path).replaceAll(REDACTED, '…');
    this.requestHead = deps.keep ? head : null;
    this.requestBody = bodyOf(deps.keep);
    this.responseBody = bodyOf(false);
    this.#deps = deps;
    this.#startedAt = deps.monotonic();
  }

  get state(): RecordState {
    return this.#state;
  }

  get status(): number | null {
    return this.#status;
  }

  get responseHead(): ResponseHead | null {
    return this.#response;
  }

  /** So far, or in all. */
  get durationMs(): number {
    return this.#state === 'running' ? this.#deps.monotonic() - this.#startedAt : this.#durationMs;
  }

  /** Why it cannot be sent again; null: it can. */
  get replayProblem(): string | null {
    if (this.requestHead === null) return 'it was not kept';
    if (this.requestHead.upgrade !== null) return 'it asked for another protocol';
    if (!this.#requestEnded) return 'its body did not come to an end';
    return this.requestBody.isWhole ? null : 'its body was too long to be kept whole';
  }

  onRequestBody(bytes: Buffer, start: number, end: number): void {
    this.#grown(this.requestBody.take(bytes, start, end));
  }

  onRequestEnd(): void {
    this.#requestEnded = true;
  }

  onResponseHead(head: ResponseHead): void {
    this.#status = head.status;
    if (!this.#deps.keep) return;
    this.#response = head;
    this.responseBody = bodyOf(isTextual(fieldValueOf(head.headers, 'content-type')));
    this.#grown(head.text.length);
  }

  onResponseBody(bytes: Buffer, start: number, end: number): void {
    this.#grown(this.responseBody.take(bytes, start, end));
  }

  onEnd(how: 'complete' | 'aborted'): void {
    this.#durationMs = this.durationMs;
    this.#state = how;
    this.#deps.onEnd(this);
  }

  #grown(bytes: number): void {
    if (bytes > 0) this.#deps.onGrown(this, bytes);
  }
}

const bodyOf = (isKept: boolean): CapturedBody =>
  new CapturedBody({ maxBytes: isKept ? CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES : 0 });
