// One request and its response as they are being seen, and what is told of them: counted always, kept when somebody wants to look.
import {
  CapturedBody,
  isTextual,
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
  /** With its query; values of fields named like a secret are shown as `…`. */
  readonly path: string;
  /** When its head had come: milliseconds since the epoch. */
  readonly at: number;
  /** The id of the request that was sent again, from the inspector, the dashboard or by `tunnel replay`; null for a visitor's own. */
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
    })
  /** The visitor got an answer of the edge's own: the service did not answer, or a rule did. At most 20 a second and tunnel. */
  | (RequestFacts & EdgeAnswer & { readonly type: 'edge-answered' })
  /** So many more requests of the tunnel were answered by the edge, and are not told one by one. */
  | { readonly type: 'edge-answered-more'; readonly tunnel: Tunnel; readonly count: number };

/** What the edge answered a visitor itself. */
export interface EdgeAnswer {
  readonly status: number;
  /** Of the catalogue of errors; null: the answer is no error, such as a redirect by a rule. */
  readonly code: string | null;
  /** The name of the rule that answered, its number when it has no name, or `of the operator`; null: no rule answered. */
  readonly rule: string | null;
  readonly durationMs: number;
}

export type RequestListener = (event: RequestEvent) => void;

export type RecordState = 'running' | 'complete' | 'aborted';

/** What makes a request one that was sent again. */
export interface Replay {
  readonly of: string;
  readonly isEdited: boolean;
  onEnd(): void;
}

/** Who began a record, and hears of its end. */
type Owner = Pick<RequestReporter, 'monotonic' | 'onEnd'>;

/** Who keeps records for a look, and counts what they hold. */
type Keeper = Pick<RequestStore, 'grow'>;

interface RecordFacts {
  readonly id: string;
  readonly tunnel: TunnelEntry;
  /** Of the tunnel's `services`, where a policy sent it; undefined: its own. */
  readonly service: string | undefined;
  readonly at: number;
  readonly replay: Replay | null;
  /** null: it is counted only, and nothing of its heads and bodies is kept. */
  readonly keeper: Keeper | null;
}

/** Never taken from: of a message that has no body. */
const NO_BODY = new CapturedBody({ maxBytes: 0 });

/** Heads are kept as text and read when somebody looks: of most requests nobody ever does. */
export class RequestRecord implements SeenRequest {
  readonly id: string;
  readonly tunnel: TunnelEntry;
  readonly service: string | undefined;
  readonly method: string;
  /** For people: without secrets. */
  readonly shownPath: string;
  readonly at: number;
  readonly replay: Replay | null;
  /** As its keeper counts; -1: it is not kept, or no longer. */
  heldBytes = -1;
  /** Whole, secrets included: for a replay. */
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

  /** The id of the request that was sent again, or null for a visitor's own. */
  get replayOf(): string | null {
    return this.replay === null ? null : this.replay.of;
  }

  /** It differs from that one. */
  get isEdited(): boolean {
    return this.replay?.isEdited ?? false;
  }

  get state(): RecordState {
    return this.#state;
  }

  /** What the visitor got: from the service, or in its place from the edge. */
  get status(): number | null {
    return this.#edgeAnswer?.status ?? this.#status;
  }

  /** null: the service answered, or nobody has. */
  get edgeAnswer(): EdgeAnswer | null {
    return this.#edgeAnswer;
  }

  /** The edge has answered in the place of the service. A request that the service never saw is complete with that. */
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

  /** So far, or in all. */
  get durationMs(): number {
    return this.#state === 'running' ? this.#owner.monotonic() - this.#startedAt : this.#durationMs;
  }

  /** Only the edge has it whole, and can send it again. */
  get isKeptAtEdge(): boolean {
    const { code = null, rule = null } = this.#edgeAnswer ?? {};
    const isOfService = code !== null && KEPT_CODES.test(code);
    return this.requestText === null && rule === null && isOfService && this.tunnel.asked.capture !== false;
  }

  /** Why it cannot be sent again; null: it can. */
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
    this.#keepsResponse = isTextual(head.contentType);
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

/** Answers of the edge to requests that it had for the service, and keeps. */
const KEPT_CODES = /^(?:LOCAL_|TUNNEL_AWAY$)/;

const bodyOf = (isKept: boolean): CapturedBody =>
  new CapturedBody({ maxBytes: isKept ? CLIENT_LIMITS.INSPECTOR_BODY_MAX_BYTES : 0 });

/** Most paths have no query, and so nothing to hide. What the edge tells is redacted already. */
const shownPathOf = (path: string): string => (path.includes('?') ? redactUrl(path).replaceAll(REDACTED, '…') : path);
