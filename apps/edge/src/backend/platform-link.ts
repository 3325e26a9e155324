// Requests from the edge to the platform, a method per request. Each request has a timeout and a maximum response size, and the response
// is validated.
import {
  type ChallengeQuestion,
  type ChallengeReply,
  challengeReply,
  EDGE_LINK_PATH,
  type EdgeCertificate,
  edgeCertificate,
  type Heartbeat,
  type HeartbeatAnswer,
  heartbeatAnswer,
  type KeyAnswer,
  keyAnswer,
  type NameQuestion,
  nameAnswer,
  type RecordBatch,
  recordBatchAnswer,
  type TunnelAnswer,
  type TunnelQuestion,
  tunnelAnswer,
} from '@tunnel/contract';
import { readBounded } from '@tunnel/http-shell';
import type { Clock, Secret } from '@tunnel/runtime';
import type { ZodType } from 'zod';
import { EDGE_LIMITS } from '../limits.ts';

/** Timeout of a request to the platform. */
export const PLATFORM_CALL_TIMEOUT_MS = 5000;
/** Time after a failed request in which the edge does not wait for the platform and decides by its local copies. */
export const PLATFORM_PAUSE_MS = 1000;
/** Timeout of a challenge lookup. After a timeout, the challenge is treated as unknown. */
const CHALLENGE_QUESTION_MS = 2000;

/** Function that sends a request: the global fetch, or a simulated platform in tests. */
export type LinkFetch = (request: Request) => Promise<Response>;

/**
 * Failure of a request to the platform. `away`: the platform is unreachable, and a later attempt may succeed. `refused`: the platform
 * rejected the request, usually because of the credential.
 */
export class LinkFailure extends Error {
  readonly kind: 'away' | 'refused';
  /** HTTP status of the platform's response. Null without a response. */
  readonly status: number | null;

  constructor(kind: LinkFailure['kind'], message: string, cause?: unknown, status: number | null = null) {
    super(message, { cause });
    this.name = 'LinkFailure';
    this.kind = kind;
    this.status = status;
  }
}

export interface PlatformLinkOptions {
  readonly fetch: LinkFetch;
  /** URL of the platform, without the path of the link. */
  readonly url: string;
  readonly credential: Secret;
  readonly clock: Clock;
}

const CONFLICT = 409;
const NOT_FOUND = 404;

/**
 * Settings of a request. `pauses`: if the platform does not respond, all requests that check keys, tunnels or names fail at once for a
 * moment.
 */
interface CallTerms {
  readonly pauses: boolean;
  readonly timeoutMs: number;
}

const USUAL: CallTerms = { pauses: true, timeoutMs: PLATFORM_CALL_TIMEOUT_MS };
/**
 * Settings of snapshots and certificate downloads. A failed download does not pause other requests, because a check of a single key or
 * name may still succeed.
 */
const APART: CallTerms = { ...USUAL, pauses: false };
const CHALLENGE: CallTerms = { pauses: false, timeoutMs: CHALLENGE_QUESTION_MS };

export class PlatformLink {
  readonly #options: PlatformLinkOptions;
  readonly #base: string;
  #pausedUntil = 0;

  constructor(options: PlatformLinkOptions) {
    this.#options = options;
    this.#base = options.url.replace(/\/+$/, '') + EDGE_LINK_PATH;
  }

  /** True shortly after a failed request. Without the pause, an unresponsive platform would make every client wait for the full timeout. */
  get isPaused(): boolean {
    return this.#options.clock.monotonic() < this.#pausedUntil;
  }

  heartbeat(told: Heartbeat): Promise<HeartbeatAnswer> {
    return this.#post('/heartbeat', told, heartbeatAnswer);
  }

  async verifyKey(tokenHash: string): Promise<KeyAnswer> {
    this.#refuseInPause();
    return this.#post('/keys/verify', { token_hash: tokenHash }, keyAnswer);
  }

  async openTunnel(question: TunnelQuestion): Promise<TunnelAnswer> {
    this.#refuseInPause();
    return this.#post('/tunnels', question, tunnelAnswer);
  }

  /** Asks the platform whether the operator can use a name. */
  async isNameFree(question: NameQuestion): Promise<boolean> {
    this.#refuseInPause();
    const { free } = await this.#post('/names/check', question, nameAnswer);
    return free;
  }

  /** Downloads all reserved names and verified domains, one per line. `signal` cancels the download. */
  names(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines('/names?domains=1', signal, APART);
  }

  /** Downloads all certificates with their private keys, one per line. `signal` cancels the download. */
  certificates(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines('/certificates', signal, APART);
  }

  /** Downloads a certificate. Returns null if the certificate no longer exists. */
  async certificate(certificateId: string): Promise<EdgeCertificate | null> {
    try {
      return await this.#call(`/certificates/${encodeURIComponent(certificateId)}`, {}, edgeCertificate, APART);
    } catch (error) {
      if (error instanceof LinkFailure && error.status === NOT_FOUND) return null;
      throw error;
    }
  }

  /** Looks up the response to a challenge. The timeout is short, because a certificate authority is waiting. */
  challenge(question: ChallengeQuestion): Promise<ChallengeReply> {
    return this.#post('/challenges', question, challengeReply, [], CHALLENGE);
  }

  /**
   * Sends a batch of records. Returns the number of the last stored record. If that number is more than one below the batch's first
   * number, the platform rejected the batch because of a gap.
   */
  async sendRecords(batch: RecordBatch): Promise<number> {
    const answer = await this.#post('/records', batch, recordBatchAnswer, [CONFLICT]);
    return answer.last_record;
  }

  /** Opens the stream of changes, one per line. The stream stays open until either side stops; `signal` closes the stream. */
  changes(since: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines(`/changes?since=${since}`, signal);
  }

  /** Requests a response with lines. The timeout applies only to the response head. */
  async #lines(path: string, signal: AbortSignal, terms = USUAL): Promise<ReadableStream<Uint8Array>> {
    const ending = new AbortController();
    signal.addEventListener('abort', () => ending.abort(), { once: true });
    return this.#within(
      ending,
      async () => {
        const response = await this.#fetch(path, { method: 'GET', signal: ending.signal });
        if (!response.ok || response.body === null) throw await refusalOf(response);
        return response.body;
      },
      terms,
    );
  }

  #post<T>(
    path: string,
    body: object,
    schema: ZodType<T>,
    alsoRead: readonly number[] = [],
    terms = USUAL,
  ): Promise<T> {
    const headers = { 'content-type': 'application/json' };
    return this.#call(path, { method: 'POST', headers, body: JSON.stringify(body) }, schema, terms, alsoRead);
  }

  async #call<T>(
    path: string,
    init: RequestInit,
    schema: ZodType<T>,
    terms: CallTerms,
    alsoRead: readonly number[] = [],
  ): Promise<T> {
    const ending = new AbortController();
    return this.#within(
      ending,
      async () => {
        const response = await this.#fetch(path, { ...init, signal: ending.signal });
        if (!response.ok && !alsoRead.includes(response.status)) throw await refusalOf(response);
        const text = await readBounded(response, EDGE_LIMITS.PLATFORM_ANSWER_MAX_BYTES);
        return schema.parse(JSON.parse(text));
      },
      terms,
    );
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    const request = new Request(this.#base + path, { ...init, redirect: 'manual' });
    request.headers.set('authorization', `Bearer ${this.#options.credential.reveal()}`);
    return this.#options.fetch(request);
  }

  async #within<T>(ending: AbortController, call: () => Promise<T>, { pauses, timeoutMs }: CallTerms): Promise<T> {
    const { clock } = this.#options;
    // Rejects on abort, because the fetch function may ignore the signal.
    const late = new Promise<never>((_, reject) => {
      ending.signal.addEventListener('abort', () => reject(new LinkFailure('away', 'no response in time')));
    });
    const timer = clock.setTimeout(() => ending.abort(), timeoutMs);
    try {
      const answer = await Promise.race([call(), late]);
      this.#pausedUntil = 0;
      return answer;
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === 'away' && pauses) this.#pausedUntil = clock.monotonic() + PLATFORM_PAUSE_MS;
      throw failure;
    } finally {
      timer.cancel();
      late.catch(() => undefined);
    }
  }

  #refuseInPause(): void {
    if (this.isPaused) throw new LinkFailure('away', 'the platform did not respond a moment ago');
  }
}

/** Creates the failure for an error response. The unused body is canceled, so that the connection is freed. */
const refusalOf = async (response: Response): Promise<LinkFailure> => {
  await response.body?.cancel().catch(() => undefined);
  const isOurs = response.status >= 300 && response.status < 500 && response.status !== 408 && response.status !== 429;
  const { status } = response;
  return new LinkFailure(isOurs ? 'refused' : 'away', `the platform responded with ${status}`, undefined, status);
};

const failureOf = (error: unknown): LinkFailure => {
  if (error instanceof LinkFailure) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new LinkFailure('away', cause instanceof Error ? cause.message : String(cause), error);
};
