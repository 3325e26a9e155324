// A request and its response while being observed, and its events. Always counted; captured only for the inspector.
import {
  CapturedBody,
  parseRequestHead,
  parseResponseHead,
  REDACTED,
  type RequestHead,
  type ResponseHead,
  redactUrl,
} from '@tunnel/http1';
import { CLIENT_LIMITS } from '../limits.ts';
import type { Tunnel, TunnelEntry } from '../tunnels/tunnel.ts';
import type { SeenRequest } from './http-tap.ts';
import type { RequestReporter } from './request-reporter.ts';
import type { RequestStore } from './request-store.ts';
import type { AnsweringHead, OpeningHead } from './sniffed-head.ts';

interface RequestFacts {
  readonly id: string;
  readonly tunnel: Tunnel;
  readonly method: string;
  /** Path of the request with query. Values of secret-looking parameters are shown as `…`. */
  readonly path: string;
  /** Time when the request's head arrived, in epoch milliseconds. */
  readonly at: number;
  /** Id of the original if the request is a replay, from the inspector, the dashboard or `tunnel replay`. Null for a visitor's request. */
  readonly replayOf: string | null;
}

/** Events of requests through a client's http tunnels. */
export type RequestEvent =
  | (RequestFacts & { readonly type: 'request-started' })
  | (RequestFacts & {
      readonly type: 'request-finished';
      /** Status of the response. Null without a response. */
      readonly status: number | null;
      /** Time from the request's head to the last byte of the response. */
      readonly durationMs: number;
      /** Size of the request's and the response's body, without heads. */
      readonly requestBytes: number;
      readonly responseBytes: number;
      /** True if the connection ended before the response was complete. */
      readonly aborted: boolean;
    })
  /** The edge answered the visitor, because the service did not answer or a rule responded. At most 20 events per second and tunnel. */
  | (RequestFacts & EdgeAnswer & { readonly type: 'edge-answered' })
  /** Number of further requests answered by the edge, without separate events. */
  | { readonly type: 'edge-answered-more'; readonly tunnel: Tunnel; readonly count: number };

/** A response by the edge itself. */
export interface EdgeAnswer {
  readonly status: number;
  /** Error code of the catalogue. Null if the response is no error, such as a redirect by a rule. */
  readonly code: string | null;
  /** Name of the rule that responded, its number if it has no name, or `of the operator`. Null if no rule responded. */
  readonly rule: string | null;
  readonly durationMs: number;
}

export type RequestListener = (event: RequestEvent) => void;

export type RecordState = 'running' | 'complete' | 'aborted';

/** Marks a recorded request as a replay of another request. */
export interface Replay {
  readonly of: string;
  readonly isEdited: boolean;
  onEnd(): void;
}

/** Creator of a request record, notified when the request has ended. */
type Owner = Pick<RequestReporter, 'monotonic' | 'onEnd'>;

/** Keeps captured records and counts their memory. */
type Keeper = Pick<RequestStore, 'grow'>;

interface RecordFacts {
  readonly id: string;
  readonly tunnel: TunnelEntry;
  /** Name of the service chosen by a policy. Undefined for the tunnel's main service. */
  readonly service: string | undefined;
  readonly at: number;
  readonly replay: Replay | null;
  /** Store of the captured request. Null if the request is only counted and neither heads nor bodies are captured. */
  readonly keeper: Keeper | null;
}

/** Shared empty body for recorded messages without a body. */
const NO_BODY = new CapturedBody({ maxBytes: 0 });

/** A request and its response. Heads are kept as text and parsed on demand, because most requests are never viewed. */
export class RequestRecord implements SeenRequest {
  readonly id: string;
  readonly tunnel: TunnelEntry;
  readonly service: string | undefined;
  readonly method: string;
  /** Path of the request for display, without secrets. */
  readonly shownPath: string;
  readonly at: number;
  readonly replay: Replay | null;
  /** Bytes counted by the keeper. -1 if the record is not or no longer kept. */
  heldBytes = -1;
  /** Whole head of the request including secrets, for a replay. Null if not captured. */
  readonly requestText: string | null;
  readonly #owner: Owner;
  readonly #keeper: Keeper | null;
  readonly #startedAt: number;
  #requestBody: CapturedBody | null = null;
  #responseBody: CapturedBody | null = null;
  #responseText: string | null = null;
  #keepsResponse = false;
  #status: number | null = null;
  #state: RecordState = 'running';
  #requestEnded = false;
  #durationMs = 0;
  #edgeAnswer: EdgeAnswer | null = null;

  constructor(facts: RecordFacts, head: OpeningHead, owner: Owner) {
    this.id = facts.id;
    this.tunnel = facts.tunnel;
    this.service = facts.service;
    this.at = facts.at;
    this.replay = facts.replay;
    this.method = head.method;
    this.shownPath = shownPathOf(head.path);
    this.requestText = facts.keeper === null ? null : head.text;
    this.#keeper = facts.keeper;
    this.#owner = owner;
    this.#startedAt = owner.monotonic();
  }

  /** Id of the original request of a replay. Null for a visitor's request. */
  get replayOf(): string | null {
    return this.replay === null ? null : this.replay.of;
  }

  /** True if this request is a replay that differs from the original. */
  get isEdited(): boolean {
    return this.replay?.isEdited ?? false;
  }

  get state(): RecordState {
    return this.#state;
  }

  /** Status of the response that the visitor got, from the service or from the edge. */
  get status(): number | null {
    return this.#edgeAnswer?.status ?? this.#status;
  }

  /** The edge's response to the request. Null if the service answered, or without a response. */
  get edgeAnswer(): EdgeAnswer | null {
    return this.#edgeAnswer;
  }

  /** Records that the edge answered instead of the service. A request that never reached the service is then complete. */
  answeredByEdge(answer: EdgeAnswer): void {
    this.#edgeAnswer = answer;
    if (this.requestText !== null || this.#state !== 'running') return;
    this.#durationMs = answer.durationMs;
    this.#state = 'complete';
  }

  get requestHead(): RequestHead | null {
    const head = this.requestText === null ? null : parseRequestHead(this.requestText);
    return head?.kind === 'request' ? head : null;
  }

  get responseHead(): ResponseHead | null {
    if (this.#responseText === null) return null;
    const head = parseResponseHead(this.#responseText, {
      method: this.method,
      upgrade: this.requestHead?.upgrade ?? null,
    });
    return head.kind === 'response' ? head : null;
  }

  get requestBody(): CapturedBody {
    return this.#requestBody ?? NO_BODY;
  }

  get responseBody(): CapturedBody {
    return this.#responseBody ?? NO_BODY;
  }

  /** Duration of the request in milliseconds, so far or in total. */
  get durationMs(): number {
    return this.#state === 'running' ? this.#owner.monotonic() - this.#startedAt : this.#durationMs;
  }

  /** True if only the edge has the whole request and can replay it. */
  get isKeptAtEdge(): boolean {
    const { code = null, rule = null } = this.#edgeAnswer ?? {};
    const isOfService = code !== null && KEPT_CODES.test(code);
    return this.requestText === null && rule === null && isOfService && this.tunnel.asked.capture !== false;
  }

  /** Reason why the request cannot be replayed. Null if it can. */
  get replayProblem(): string | null {
    if ((this.#edgeAnswer?.rule ?? null) !== null) return 'a rule responded, so the request never reached your service';
    if (this.isKeptAtEdge) return null;
    const head = this.requestHead;
    if (head === null) return 'it was not captured';
    if (head.upgrade !== null) return 'the request switched to another protocol';
    if (!this.#requestEnded) return 'the request body is incomplete';
    return this.requestBody.isWhole ? null : 'the request body was too large to capture';
  }

  onRequestBody(bytes: Buffer, start: number, end: number): void {
    this.#requestBody ??= bodyOf(this.#keeper !== null);
    this.#grown(this.#requestBody.take(bytes, start, end));
  }

  onRequestEnd(): void {
    this.#requestEnded = true;
  }

  onResponseHead(head: AnsweringHead): void {
    this.#status = head.status;
    if (this.#keeper === null) return;
    this.#responseText = head.text;
    this.#keepsResponse = head.isTextual;
    this.#grown(this.#responseText.length);
  }

  onResponseBody(bytes: Buffer, start: number, end: number): void {
    this.#responseBody ??= bodyOf(this.#keepsResponse);
    this.#grown(this.#responseBody.take(bytes, start, end));
  }

  onEnd(how: 'complete' | 'aborted'): void {
    this.#durationMs = this.durationMs;
    this.#state = how;
    this.#owner.onEnd(this);
  }

  #grown(bytes: number): void {
    if (bytes > 0) this.#keeper?.grow(this, bytes);
  }
}

/** Error codes of requests that the edge captured because the service did not answer. */
const KEPT_CODES = /^(?:LOCAL_|TUNNEL_AWAY$)/;

const bodyOf = (isKept: boolean): CapturedBody =>
  new CapturedBody({ maxBytes: isKept ? CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES : 0 });

/** Returns the path without secrets. A path without a query contains none. Paths from the edge are already redacted. */
const shownPathOf = (path: string): string => (path.includes('?') ? redactUrl(path).replaceAll(REDACTED, '…') : path);
