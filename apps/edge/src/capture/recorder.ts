// One captured request, from its head to its end. The hot path calls it, so it keeps strings as they came and counts;
// whatever a person wants to see is made when somebody looks.

import type { CapturedPolicy } from '@tunnel/contract';
import type { ErrorCode } from '@tunnel/errors';
import {
  CapturedBody,
  type ChunkedForm,
  type EdgeResponse,
  edgeResponseText,
  fieldValueOf,
  isTextual,
  parseRequestHead,
  type RequestHead,
  type ResponseHead,
} from '@tunnel/http1';
import { applyRequestChanges, type HeaderPair, type RequestChanges } from '@tunnel/policy';
import type { RequestStream } from '@tunnel/protocol';
import { EDGE_LIMITS } from '../limits.ts';
import type { CapturedRules } from '../upstream/captured-rules.ts';
import type { RequestEnd, RequestRecorder } from '../upstream/response-handler.ts';

/** Holds requests within its bounds. */
export interface CaptureBuffer {
  /** More is kept of a request: this one or others may have to go. */
  onGrown(recorder: CaptureRecorder, bytes: number): void;
  /** It is as if there had been no such request. */
  onDiscarded(recorder: CaptureRecorder): void;
  /** It has its end. */
  onFinished(recorder: CaptureRecorder): void;
}

export interface CaptureInfo {
  readonly sequence: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** On the clock that finish() is told of. */
  readonly startedMs: number;
  /** How a chunked body of the request passes by. */
  readonly bodyForm: ChunkedForm;
  readonly keepsBodies: boolean;
  /** The client's service that got it, by name; null: the tunnel's own. */
  readonly serviceName: string | null;
  /** The id of the request that was sent again. */
  readonly replayOf: string | null;
  /** It differs from that one. */
  readonly isEdited: boolean;
}

const NO_NAMES: readonly string[] = [];

/** What an object of this costs beside its strings, roughly. */
const OVERHEAD_BYTES = 512;

export class CaptureRecorder implements RequestRecorder {
  readonly info: CaptureInfo;
  /** Where it was put last: by these its client calls it, too. */
  carrierTag = '';
  streamId = 0;
  /** 0: on none so far. */
  ordinal = 0;
  /** null: it has none, or none of it has come. */
  requestBody: CapturedBody | null = null;
  /** The request has a body, and its last byte has come. */
  hasWholeBody = false;
  /** 0: there was no answer. */
  status = 0;
  /** null: it is under way. */
  durationMs: number | null = null;
  aborted = false;
  fault: ErrorCode | null = null;
  /** What the rules of its tunnel did; null: there are none, or it was sent by a replay, which runs none. */
  policy: CapturedPolicy | null = null;
  /** The path that the visitor asked for; null: it is the one in `requestText`, which no rule has changed. */
  askedPath: string | null = null;
  /** Fields of the request, in lower case, that carry a token of the rules: shown to nobody. */
  secretFields: readonly string[] = NO_NAMES;
  /** As the buffer has counted them. */
  keptBytes: number;
  /** null: it was discarded. */
  #buffer: CaptureBuffer | null;
  /** false: it was pushed out by others or discarded, and nothing more is kept of it. */
  isKept = true;
  /** As received. */
  readonly #visitorsText: string;
  /** What rules changed of it for the service; null: nothing. */
  #changes: RequestChanges | null = null;
  readonly #isRequestInChunks: boolean;
  #isResponseInChunks = false;
  #keepsResponse = false;
  #responseText = '';
  #responseBody: CapturedBody | null = null;
  /** Of a rule; null: there is none. Strangers come in floods, and to every member of a group: what people see is made when somebody looks. */
  #answer: EdgeResponse | null = null;

  constructor(info: CaptureInfo, head: Pick<RequestHead, 'text' | 'framing'>, buffer: CaptureBuffer) {
    this.info = info;
    this.#visitorsText = head.text;
    this.#isRequestInChunks = info.bodyForm === 'chunks' && head.framing.kind === 'chunked';
    this.keptBytes = OVERHEAD_BYTES + head.text.length;
    this.#buffer = buffer;
  }

  /** As received, or as the rules changed it for the service. */
  get requestText(): string {
    return this.#changes === null ? this.#visitorsText : servedText(this.#visitorsText, this.#changes);
  }

  /** As the local service sent it, or a rule answered; empty while there is none. */
  get responseText(): string {
    return this.#answer === null ? this.#responseText : edgeResponseText(this.#answer, SHOWN);
  }

  get responseBody(): CapturedBody | null {
    return this.#answer === null ? this.#responseBody : ownBodyOf(this.#answer, this.info.keepsBodies);
  }

  /** Before it is put among the others, which count what it holds. */
  ruledBy({ policy, askedPath, secretFields, changes }: CapturedRules): void {
    this.policy = policy;
    this.askedPath = askedPath;
    this.secretFields = secretFields;
    this.#changes = changes;
    if (changes !== null) this.keptBytes += charsOfChanges(changes);
  }

  onSent({ carrierTag, id }: RequestStream, ordinal: number): void {
    this.carrierTag = carrierTag;
    this.streamId = id;
    this.ordinal = ordinal;
  }

  /** The next bytes of the request's body. They are kept whatever their type, for a replay, and shown when textual. */
  onRequestBody(bytes: Buffer, start: number, end: number): void {
    if (!this.isKept) return;
    this.requestBody ??= bodyOf(this.info.keepsBodies, this.#isRequestInChunks);
    this.#grow(this.requestBody.take(bytes, start, end));
  }

  /** The last byte of the request's body has come; not needed for a request without one. */
  onRequestEnd(): void {
    this.hasWholeBody = true;
  }

  /** The final head, as the local service sent it; a chunked body will pass by in that form. */
  onResponseHead(head: Pick<ResponseHead, 'text' | 'status' | 'headers' | 'framing'>, bodyForm: ChunkedForm): void {
    this.status = head.status;
    if (!this.isKept) return;
    this.#responseText = head.text;
    this.#isResponseInChunks = bodyForm === 'chunks' && head.framing.kind === 'chunked';
    this.#keepsResponse = this.info.keepsBodies && isTextual(fieldValueOf(head.headers, 'content-type'));
    this.#grow(head.text.length);
  }

  /** The next bytes of the response's body. */
  onResponseBody(bytes: Buffer, start: number, end: number): void {
    if (!this.isKept) return;
    this.#responseBody ??= bodyOf(this.#keepsResponse, this.#isResponseInChunks);
    this.#grow(this.#responseBody.take(bytes, start, end));
  }

  #grow(bytes: number): void {
    if (bytes > 0 && this.isKept) this.#buffer?.onGrown(this, bytes);
  }

  /** A rule has answered: there is no service, and this is all that comes. */
  answered(response: EdgeResponse, nowMs: number): void {
    const { status, headers } = response;
    this.status = status;
    this.fault = (valueOf(headers, 'x-tunnel-error') as ErrorCode | null) ?? null;
    this.#answer = response;
    this.#grow(charsOfOwn(response));
    this.finish(nowMs, 'complete');
  }

  /** Once; a second call changes nothing. */
  finish(nowMs: number, end: RequestEnd): void {
    if (this.durationMs !== null) return;
    this.durationMs = Math.max(0, nowMs - this.info.startedMs);
    if (end !== 'complete') this.#failed(end);
    this.#buffer?.onFinished(this);
  }

  #failed(end: Exclude<RequestEnd, 'complete'>): void {
    // Before the head the visitor gets a page of ours, which is an answer; after it only a cut.
    this.aborted = end === 'aborted' || this.status !== 0;
    if (end === 'aborted') return;
    this.fault = end.code;
    if (this.status === 0) this.status = end.status;
  }

  /** Others push it out: nothing more is kept of it. Its end is still reported, for callers that wait for a request to finish. */
  letGo(): void {
    this.isKept = false;
  }

  /** Another tunnel serves the request, and captures it. */
  discard(): void {
    const buffer = this.#buffer;
    const wasKept = this.isKept;
    this.#buffer = null;
    this.isKept = false;
    if (wasKept) buffer?.onDiscarded(this);
  }
}

/** The head alone. */
const SHOWN = { keepAlive: true, visitorVersion: '1.1', isHead: true } as const;

const valueOf = (headers: EdgeResponse['headers'], lower: string): string | null =>
  headers.find(([name]) => name.toLowerCase() === lower)?.[1] ?? null;

const bodyOf = (isKept: boolean, isInChunks: boolean): CapturedBody =>
  new CapturedBody({ maxBytes: isKept ? EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES : 0, isInChunks });

/** null: it has none. */
const ownBodyOf = ({ headers, body }: EdgeResponse, keepsBodies: boolean): CapturedBody | null => {
  const bytes = Buffer.from(body, 'latin1');
  if (bytes.length === 0) return null;
  const made = bodyOf(keepsBodies && isTextual(valueOf(headers, 'content-type')), false);
  made.take(bytes, 0, bytes.length);
  return made;
};

/** What it takes to keep it, roughly. */
const charsOfOwn = ({ headers, body }: EdgeResponse): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length);

/** It was read strictly when it came, and was within its bounds. */
const UNBOUNDED = { fieldsMax: Number.POSITIVE_INFINITY };

/**
 * The head of a captured request as its service got it, where rules changed it: made when somebody looks, from what came and what they changed. Most
 * captures nobody looks at. Empty where it cannot be told any more: what a rule has taken away is never shown instead.
 */
export const servedText = (text: string, changes: RequestChanges): string => {
  const head = parseRequestHead(text, UNBOUNDED);
  return head.kind === 'problem' ? '' : applyRequestChanges(head, changes).text;
};

/** What is kept of the changes of one request. */
const charsOfChanges = ({ path, cookie, set, add }: RequestChanges): number =>
  (path?.length ?? 0) + (cookie?.length ?? 0) + charsOf(set) + charsOf(add);

const charsOf = (pairs: readonly HeaderPair[]): number => {
  let chars = 0;
  for (const pair of pairs) chars += pair[0].length + pair[1].length;
  return chars;
};
