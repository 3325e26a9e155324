// A single call to an authority over a trusted connection, with limits for time and size. Responses are JSON or PEM.
import type { IncomingHttpHeaders } from 'node:http';
import { Fault } from '@tunnel/errors';
import { type Clock, lazySecureContext, reasonOf, requestOnce } from '@tunnel/runtime';
import type { z } from 'zod';
import { readProblem } from './acme-problem.ts';

/** Time limit of a call to a certificate authority, from DNS lookup to the last byte. */
export const AUTHORITY_CALL_TIMEOUT_MS = 30_000;
/** Maximum size of a response from a certificate authority: a directory, order or error. */
export const ANSWER_MAX_BYTES = 64 * 1024;

export interface AcmeHttpOptions {
  readonly clock: Clock;
  /** CA certificate of a private authority in PEM. Undefined for the default CAs. */
  readonly ca?: string | undefined;
}

export interface AcmeAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly retryAfterMs: number | null;
}

export interface CallBounds {
  readonly signal?: AbortSignal | undefined;
  readonly maxBytes?: number;
}

export type AcmeHttp = (url: string, body: string | null, bounds: CallBounds) => Promise<AcmeAnswer>;

/** Returns a response of any status. Throws a fault if there is no response. */
export const createAcmeHttp = ({ clock, ca }: AcmeHttpOptions): AcmeHttp => {
  const secureContext = lazySecureContext(ca);
  return async (url, body, { signal, maxBytes = ANSWER_MAX_BYTES }) => {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    const timer = clock.setTimeout(end, AUTHORITY_CALL_TIMEOUT_MS);
    signal?.addEventListener('abort', end, { once: true });
    if (signal?.aborted === true) end();
    try {
      const {
        status,
        headers,
        body: bytes,
      } = await requestOnce({
        url: new URL(url),
        method: body === null ? 'GET' : 'POST',
        headers: { 'user-agent': 'tunnel-platform', accept: '*/*', ...(body === null ? {} : JOSE) },
        body: body === null ? undefined : Buffer.from(body),
        addresses: null,
        maxBytes,
        secureContext,
        signal: ended.signal,
      });
      return { status, headers, text: bytes.toString('utf8'), retryAfterMs: retryAfterMs(headers, clock.now()) };
    } catch (error) {
      const late = ended.signal.aborted && signal?.aborted !== true;
      const reason = late ? `no response within ${AUTHORITY_CALL_TIMEOUT_MS / 1000} s` : reasonOf(error);
      throw new Fault('ACME_AWAY', { host: new URL(url).host, reason }, { cause: error });
    } finally {
      timer.cancel();
      signal?.removeEventListener('abort', end);
    }
  };
};

const JOSE = { 'content-type': 'application/jose+json' };

/** A date counts from the response's Date field, because the authority's clock may be an hour off. */
const retryAfterMs = (headers: IncomingHttpHeaders, now: number): number | null => {
  const text = headers['retry-after']?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  const until = Date.parse(text);
  if (Number.isNaN(until)) return null;
  const from = Date.parse(headers.date ?? '');
  return Math.max(0, until - (Number.isNaN(from) ? now : from));
};

export const throwProblem = (answer: AcmeAnswer): void => {
  if (answer.status < 400) return;
  throw readProblem(jsonOf(answer.text), answer.status, answer.retryAfterMs);
};

export const readAnswer = <T>(schema: z.ZodType<T>, answer: AcmeAnswer, url: string): T => {
  const parsed = schema.safeParse(jsonOf(answer.text));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw badAnswer(url, `${issue?.path.join('.') || 'the whole'}: ${issue?.message ?? 'unreadable'}`);
};

export const badAnswer = (url: string, reason: string): Fault =>
  new Fault('ACME_BAD_ANSWER', { host: new URL(url).host, reason });

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
