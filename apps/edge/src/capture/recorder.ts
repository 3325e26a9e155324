// A captured request, from its head to its end. Called on the hot path, so it only keeps strings and counts bytes. Presentation is done on
// access.

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

/** Buffer that keeps a tunnel's captured requests within limits. */
export interface CaptureBuffer {
  /** Called when more bytes of a request are kept. The request or others may be dropped. */
  onGrown(recorder: CaptureRecorder, bytes: number): void;
  /** Removes a captured request as if it had never existed. */
  onDiscarded(recorder: CaptureRecorder): void;
  /** Called when the captured request has finished. */
  onFinished(recorder: CaptureRecorder): void;
}

export interface CaptureInfo {
  readonly sequence: number;
  /** Start of the captured request, in milliseconds since the epoch. */
  readonly at: number;
  /** Start of the captured request, in milliseconds on the clock used for finish(). */
  readonly startedMs: number;
  /** Form in which the chunks of a captured request's body are recorded. */
  readonly bodyForm: ChunkedForm;
  readonly keepsBodies: boolean;
  /** Name of the client's service that received the request, or null for the tunnel's default service. */
  readonly serviceName: string | null;
  /** Id of the original if the captured request is a replay, or null. */
  readonly replayOf: string | null;
  /** Whether the replay differs from the original request. */
  readonly isEdited: boolean;
}

const NO_NAMES: readonly string[] = [];

/** Approximate memory size of a captured request in bytes, without its strings. */
const OVERHEAD_BYTES = 512;
/** Maximum kept bytes of a request in progress that the buffer has not counted yet. Counting every piece would cost more than keeping it. */
const UNCOUNTED_MAX_BYTES = 4096;

export class CaptureRecorder implements RequestRecorder {
  readonly info: CaptureInfo;
  /** Last stream on which the request was sent. The client identifies the request by the same values. */
  carrierTag = '';
  streamId = 0;
  /** Position of the request on its stream, starting with 1. 0 before the request is sent. */
  ordinal = 0;
  /** Request body. Null if the request has no body, or no byte of the body has arrived. */
  requestBody: CapturedBody | null = null;
  /** True if the captured request has a body and its last byte has arrived. */
  hasWholeBody = false;
  /** HTTP status of the captured response. 0 without a response. */
  status = 0;
  /** Duration of the captured request. Null while the request is in progress. */
  durationMs: number | null = null;
  aborted = false;
  fault: ErrorCode | null = null;
  /** Result of the tunnel's policy. Null without a policy, and for replays, which run no policy. */
  policy: CapturedPolicy | null = null;
  /** Path requested by the visitor. Null if no rule changed the path in `requestText`. */
  askedPath: string | null = null;
  /** Request fields, in lower case, that carry a token of the policy and are never shown. */
  secretFields: readonly string[] = NO_NAMES;
  /** Bytes of the captured request as counted by the buffer. */
  keptBytes: number;
  /** Kept bytes that the buffer has not counted yet. */
  #uncountedBytes = 0;
  /** Buffer that keeps the captured request. Null after the request was discarded. */
  #buffer: CaptureBuffer | null;
  /** Whether the request is still kept. False after it was dropped or discarded; further bytes are then ignored. */
  isKept = true;
  /** Head of the captured request as received. */
  readonly #visitorsText: string;
  /** Changes that the policy made to the request for the service, or null. */
  #changes: RequestChanges | null = null;
  readonly #isRequestInChunks: boolean;
  #isResponseInChunks = false;
  #keepsResponse = false;
  #responseText = '';
  #responseBody: CapturedBody | null = null;
  /**
   * Response made by a rule, or null. Rendered only on access, because floods of rejected requests are captured for every member of a
   * group.
   */
  #answer: EdgeResponse | null = null;

  constructor(info: CaptureInfo, head: Pick<RequestHead, 'text' | 'framing'>, buffer: CaptureBuffer) {
    this.info = info;
    this.#visitorsText = head.text;
    this.#isRequestInChunks = info.bodyForm === 'chunks' && head.framing.kind === 'chunked';
    this.keptBytes = OVERHEAD_BYTES + head.text.length;
    this.#buffer = buffer;
  }

  /** Request head as received, or as changed by the policy for the service. */
  get requestText(): string {
    return this.#changes === null ? this.#visitorsText : servedText(this.#visitorsText, this.#changes);
  }

  /** Response head as sent by the local service or a rule. Empty without a response. */
  get responseText(): string {
    return this.#answer === null ? this.#responseText : edgeResponseText(this.#answer, SHOWN);
  }

  get responseBody(): CapturedBody | null {
    return this.#answer === null ? this.#responseBody : ownBodyOf(this.#answer, this.info.keepsBodies);
  }

  /** Adds the policy details. Must be called before the recorder is added to the buffer, which counts its bytes. */
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

  /** Records bytes of the request body. Bodies of any type are kept for replays; only text is shown. */
  onRequestBody(bytes: Buffer, start: number, end: number): void {
    if (!this.isKept) return;
    this.requestBody ??= bodyOf(this.info.keepsBodies, this.#isRequestInChunks);
    this.#grow(this.requestBody.take(bytes, start, end));
  }

  /** Called when the last byte of the request body has arrived. Not needed for requests without a body. */
  onRequestEnd(): void {
    this.hasWholeBody = true;
  }

  /** Records the final head from the local service. `bodyForm` is the form in which chunks are recorded. */
  onResponseHead(head: Pick<ResponseHead, 'text' | 'status' | 'headers' | 'framing'>, bodyForm: ChunkedForm): void {
    this.status = head.status;
    if (!this.isKept) return;
    this.#responseText = head.text;
    this.#isResponseInChunks = bodyForm === 'chunks' && head.framing.kind === 'chunked';
    this.#keepsResponse = this.info.keepsBodies && isTextual(fieldValueOf(head.headers, 'content-type'));
    this.#grow(head.text.length);
  }

  /** Records bytes of the captured response's body. */
  onResponseBody(bytes: Buffer, start: number, end: number): void {
    if (!this.isKept) return;
    this.#responseBody ??= bodyOf(this.#keepsResponse, this.#isResponseInChunks);
    this.#grow(this.#responseBody.take(bytes, start, end));
  }

  #grow(bytes: number): void {
    this.#uncountedBytes += bytes;
    if (this.#uncountedBytes > UNCOUNTED_MAX_BYTES || this.durationMs !== null) this.#count();
  }

  #count(): void {
    const bytes = this.#uncountedBytes;
    this.#uncountedBytes = 0;
    if (bytes > 0 && this.isKept) this.#buffer?.onGrown(this, bytes);
  }

  /** Records a response made by a rule. The request ends with it, because no service is involved. */
  answered(response: EdgeResponse, nowMs: number): void {
    const { status, headers } = response;
    this.status = status;
    this.fault = (valueOf(headers, 'x-tunnel-error') as ErrorCode | null) ?? null;
    this.#answer = response;
    this.#grow(charsOfOwn(response));
    this.finish(nowMs, 'complete');
  }

  /** Ends the recording of the request. Further calls have no effect. */
  finish(nowMs: number, end: RequestEnd): void {
    if (this.durationMs !== null) return;
    this.durationMs = Math.max(0, nowMs - this.info.startedMs);
    if (end !== 'complete') this.#failed(end);
    this.#count();
    this.#buffer?.onFinished(this);
  }

  #failed(end: Exclude<RequestEnd, 'complete'>): void {
    // A failure before the response head gives the visitor an error page, which is a complete response. A failure after the head cuts off
    // the response.
    this.aborted = end === 'aborted' || this.status !== 0;
    if (end === 'aborted') return;
    this.fault = end.code;
    if (this.status === 0) this.status = end.status;
  }

  /** Stops keeping bytes, because newer requests displaced the request. The end of the request is still reported to waiting callers. */
  letGo(): void {
    this.isKept = false;
  }

  /** Discards the recording, because another tunnel serves and captures the request. */
  discard(): void {
    const buffer = this.#buffer;
    const wasKept = this.isKept;
    this.#buffer = null;
    this.isKept = false;
    if (wasKept) buffer?.onDiscarded(this);
  }
}

/** Options for rendering only the head of an edge response. */
const SHOWN = { keepAlive: true, visitorVersion: '1.1', isHead: true } as const;

const valueOf = (headers: EdgeResponse['headers'], lower: string): string | null =>
  headers.find(([name]) => name.toLowerCase() === lower)?.[1] ?? null;

const bodyOf = (isKept: boolean, isInChunks: boolean): CapturedBody =>
  new CapturedBody({ maxBytes: isKept ? EDGE_LIMITS.CAPTURE_BODY_MAX_BYTES : 0, isInChunks });

/** Returns the body of an edge response for the capture, or null if it has none. */
const ownBodyOf = ({ headers, body }: EdgeResponse, keepsBodies: boolean): CapturedBody | null => {
  const bytes = Buffer.from(body, 'latin1');
  if (bytes.length === 0) return null;
  const made = bodyOf(keepsBodies && isTextual(valueOf(headers, 'content-type')), false);
  made.take(bytes, 0, bytes.length);
  return made;
};

/** Returns the approximate size of an edge response in bytes. */
const charsOfOwn = ({ headers, body }: EdgeResponse): number =>
  headers.reduce((sum, [name, value]) => sum + name.length + value.length, body.length);

/** The limits of a captured head were already checked when the request arrived. */
const UNBOUNDED = { fieldsMax: Number.POSITIVE_INFINITY };

/**
 * Returns the head as sent to the service, recreated from the received head and the policy's changes. Computed on access, because most
 * captures are never viewed. Empty if the head cannot be recreated, so that content removed by a rule is never shown.
 */
export const servedText = (text: string, changes: RequestChanges): string => {
  const head = parseRequestHead(text, UNBOUNDED);
  return head.kind === 'problem' ? '' : applyRequestChanges(head, changes).text;
};

/** Returns the approximate size of a policy's changes kept with a captured request. */
const charsOfChanges = ({ path, cookie, set, add }: RequestChanges): number =>
  (path?.length ?? 0) + (cookie?.length ?? 0) + charsOf(set) + charsOf(add);

const charsOf = (pairs: readonly HeaderPair[]): number => {
  let chars = 0;
  for (const pair of pairs) chars += pair[0].length + pair[1].length;
  return chars;
};
