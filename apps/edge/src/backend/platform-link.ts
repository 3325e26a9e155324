// The calls of the edge link: one method each, with a time limit, a bound on the answer, and the answer checked.
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

/** a call to the platform that is not answered by then has failed */
export const PLATFORM_CALL_TIMEOUT_MS = 5000;
/** Time after a failed call in which the edge decides by its own copies and does not wait for the platform. */
export const PLATFORM_PAUSE_MS = 1000;
/** whether a challenge is ours must be known by then; else it is not */
const CHALLENGE_QUESTION_MS = 2000;

/** The global fetch, unless a test stands in for the platform. */
export type LinkFetch = (request: Request) => Promise<Response>;

/** `away`: later it may work. `refused`: the platform does not take what we say, our credential above all. */
export class LinkFailure extends Error {
  readonly kind: 'away' | 'refused';
  /** What it answered; null: it did not. */
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
  /** Without the path of the link. */
  readonly url: string;
  readonly credential: Secret;
  readonly clock: Clock;
}

const CONFLICT = 409;
const NOT_FOUND = 404;

/** `pauses`: a platform that does not answer is left alone by everybody for a moment. */
interface CallTerms {
  readonly pauses: boolean;
  readonly timeoutMs: number;
}

const USUAL: CallTerms = { pauses: true, timeoutMs: PLATFORM_CALL_TIMEOUT_MS };
/** That it cannot be had says nothing of who asks for one key or name. */
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

  /** A call has failed a moment ago: a platform that hangs must not make every client wait for the whole time limit. */
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

  /** May the operator have it? */
  async isNameFree(question: NameQuestion): Promise<boolean> {
    this.#refuseInPause();
    const { free } = await this.#post('/names/check', question, nameAnswer);
    return free;
  }

  /** Every name that is reserved and every own domain that is verified, a line each; `signal` ends them. */
  names(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines('/names?domains=1', signal, APART);
  }

  /** Every certificate that is kept, with its key, a line each; `signal` ends them. */
  certificates(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines('/certificates', signal, APART);
  }

  /** null: it is gone. */
  async certificate(certificateId: string): Promise<EdgeCertificate | null> {
    try {
      return await this.#call(`/certificates/${encodeURIComponent(certificateId)}`, {}, edgeCertificate, APART);
    } catch (error) {
      if (error instanceof LinkFailure && error.status === NOT_FOUND) return null;
      throw error;
    }
  }

  /** Soon or not at all: an authority waits. */
  challenge(question: ChallengeQuestion): Promise<ChallengeReply> {
    return this.#post('/challenges', question, challengeReply, [], CHALLENGE);
  }

  /** Everything up to the number is stored. Smaller than the first one's predecessor: the batch was refused for a gap. */
  async sendRecords(batch: RecordBatch): Promise<number> {
    const answer = await this.#post('/records', batch, recordBatchAnswer, [CONFLICT]);
    return answer.last_record;
  }

  /** Lines for as long as both sides live; `signal` ends them. */
  changes(since: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines(`/changes?since=${since}`, signal);
  }

  /** Only the head is waited for with a limit. */
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
    // Whoever answers need not look at the signal.
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

/** Its body is of no use, but must be done away with. */
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
