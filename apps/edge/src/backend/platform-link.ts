// The calls of the edge link: one method each, with a time limit, a bound on the answer, and the answer checked.
import {
  EDGE_LINK_PATH,
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

/** The global fetch, unless a test stands in for the platform. */
export type LinkFetch = (request: Request) => Promise<Response>;

/** `away`: later it may work. `refused`: the platform does not take what we say, our credential above all. */
export class LinkFailure extends Error {
  readonly kind: 'away' | 'refused';

  constructor(kind: LinkFailure['kind'], message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'LinkFailure';
    this.kind = kind;
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

  /** Every name that is reserved and every own domain that is verified, a line each; `signal` ends them. That it cannot be had says nothing of who asks for one name. */
  names(signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.#lines('/names?domains=1', signal, false);
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
  async #lines(path: string, signal: AbortSignal, pauses = true): Promise<ReadableStream<Uint8Array>> {
    const ending = new AbortController();
    signal.addEventListener('abort', () => ending.abort(), { once: true });
    return this.#within(
      ending,
      async () => {
        const response = await this.#fetch(path, { method: 'GET', signal: ending.signal });
        if (!response.ok || response.body === null) throw await refusalOf(response);
        return response.body;
      },
      pauses,
    );
  }

  async #post<T>(path: string, body: object, schema: ZodType<T>, alsoRead: readonly number[] = []): Promise<T> {
    const ending = new AbortController();
    return this.#within(ending, async () => {
      const response = await this.#fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: ending.signal,
      });
      if (!response.ok && !alsoRead.includes(response.status)) throw await refusalOf(response);
      const text = await readBounded(response, EDGE_LIMITS.PLATFORM_ANSWER_MAX_BYTES);
      return schema.parse(JSON.parse(text));
    });
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    const request = new Request(this.#base + path, { ...init, redirect: 'manual' });
    request.headers.set('authorization', `Bearer ${this.#options.credential.reveal()}`);
    return this.#options.fetch(request);
  }

  async #within<T>(ending: AbortController, call: () => Promise<T>, pauses = true): Promise<T> {
    const { clock } = this.#options;
    // Whoever answers need not look at the signal.
    const late = new Promise<never>((_, reject) => {
      ending.signal.addEventListener('abort', () => reject(new LinkFailure('away', 'no answer in time')));
    });
    const timer = clock.setTimeout(() => ending.abort(), EDGE_LIMITS.PLATFORM_CALL_TIMEOUT_MS);
    try {
      const answer = await Promise.race([call(), late]);
      this.#pausedUntil = 0;
      return answer;
    } catch (error) {
      const failure = failureOf(error);
      if (failure.kind === 'away' && pauses) this.#pausedUntil = clock.monotonic() + EDGE_LIMITS.PLATFORM_PAUSE_MS;
      throw failure;
    } finally {
      timer.cancel();
      late.catch(() => undefined);
    }
  }

  #refuseInPause(): void {
    if (this.isPaused) throw new LinkFailure('away', 'the platform did not answer a moment ago');
  }
}

/** Its body is of no use, but must be done away with. */
const refusalOf = async (response: Response): Promise<LinkFailure> => {
  await response.body?.cancel().catch(() => undefined);
  const isOurs = response.status >= 300 && response.status < 500 && response.status !== 408 && response.status !== 429;
  return new LinkFailure(isOurs ? 'refused' : 'away', `the platform answered ${response.status}`);
};

const failureOf = (error: unknown): LinkFailure => {
  if (error instanceof LinkFailure) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new LinkFailure('away', cause instanceof Error ? cause.message : String(cause), error);
};
