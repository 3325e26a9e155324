// Fetches a URL chosen by a stranger: guarded, pinned to checked addresses, once, with limits for time and size. Never rejects: errors are
// returned as text that a page may show.
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Clock } from '../clock.ts';
import type { NameLookup } from './name-lookup.ts';
import { type Answer, AnswerTooLong, reasonOf, requestOnce } from './request-once.ts';
import { type AddressRule, UrlGuard } from './url-guard.ts';

export interface GuardedFetchOptions {
  readonly problemOfAddress: AddressRule;
  readonly clock: Clock;
  readonly lookup?: NameLookup | undefined;
  /** CA certificates to trust instead of the default CAs. */
  readonly ca?: string | undefined;
}

export interface FetchBounds {
  /** Maximum size of the response body. */
  readonly maxBytes: number;
  /** Time limit from the DNS lookup to the last byte of the response. */
  readonly timeoutMs: number;
  /** Undefined sends a GET, otherwise a POST. */
  readonly body?: Buffer | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Receives the body of a 200 in pieces, for a body that is too large for memory. */
  readonly onPiece?: ((piece: Buffer) => Promise<void>) | undefined;
  /** The caller's signal, which ends the request like the time limit. */
  readonly signal?: AbortSignal | undefined;
}

export type FetchOutcome =
  /** A response of any status. Redirects are not followed. */
  | ({ readonly kind: 'answer' } & Answer)
  /** `reason` completes "it could not be read: ". It names the host, but never path, query or address. */
  | {
      readonly kind: 'refused' | 'unresolved' | 'timeout' | 'too_long' | 'failed';
      readonly reason: string;
    };

export type GuardedFetch = (url: string, bounds: FetchBounds) => Promise<FetchOutcome>;

export const createGuardedFetch = (deps: GuardedFetchOptions): GuardedFetch => {
  const guard = new UrlGuard(deps);
  const trust = lazySecureContext(deps.ca);
  return async (text, bounds) => {
    const reading = guard.read(text);
    if (reading.kind === 'refused') return { kind: 'refused', reason: reading.reason };
    const { url } = reading;
    const { hostname } = url;
    const { maxBytes, timeoutMs, body, headers = {}, onPiece } = bounds;
    const deadline = new AbortController();
    const giveUp = (): void => deadline.abort();
    const timer = deps.clock.setTimeout(giveUp, timeoutMs);
    bounds.signal?.addEventListener('abort', giveUp, { once: true });
    if (bounds.signal?.aborted === true) giveUp();
    const late: FetchOutcome = { kind: 'timeout', reason: `${hostname} did not respond within ${timeoutMs / 1000} s` };
    try {
      const verdict = await guard.pin(url, deadline.signal);
      if (verdict.kind !== 'pinned') return verdict.kind === 'unresolved' && deadline.signal.aborted ? late : verdict;
      const method = body === undefined ? 'GET' : 'POST';
      const { addresses } = verdict;
      const plan = {
        url,
        method,
        headers,
        body,
        addresses,
        maxBytes,
        onPiece,
        secureContext: trust,
        signal: deadline.signal,
      } as const;
      return { kind: 'answer', ...(await requestOnce(plan)) };
    } catch (error) {
      if (deadline.signal.aborted) return late;
      if (error instanceof AnswerTooLong)
        return { kind: 'too_long', reason: `${hostname} sent more than ${maxBytes} bytes` };
      return { kind: 'failed', reason: `${hostname} could not be reached (${reasonOf(error)})` };
    } finally {
      timer.cancel();
      bounds.signal?.removeEventListener('abort', giveUp);
    }
  };
};

/** Created once, at the first https request, because loading the CAs takes longer than a handshake. */
export const lazySecureContext = (ca: string | undefined): (() => SecureContext) => {
  let context: SecureContext | undefined;
  return () => {
    context ??= createSecureContext(ca === undefined ? {} : { ca });
    return context;
  };
};
