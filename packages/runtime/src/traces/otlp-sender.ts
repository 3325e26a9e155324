// Sends a batch of spans to the collector: one POST, without redirects, with limits for time and size.

import type { Clock } from '../clock.ts';
import { lazySecureContext } from '../guarded-fetch/guarded-fetch.ts';
import { reasonOf, requestOnce } from '../guarded-fetch/request-once.ts';
import type { Secret } from '../secret.ts';
import { parseOtlpHeaders } from './otlp-headers.rules.ts';
import type { BatchResult } from './span-queue.rules.ts';

/** Maximum time for a batch, from the DNS lookup to the head of the response. */
export const OTLP_TIMEOUT_MS = 10_000;
const TRACES_PATH = '/v1/traces';

/** Statuses after which the same batch may be accepted later. For other errors, the protocol forbids a retry. */
const RETRIED: ReadonlySet<number> = new Set([429, 502, 503, 504]);

export interface OtlpSenderOptions {
  /** URL of the collector without the path for traces. Chosen by the operator, so any address is allowed. */
  readonly endpoint: string;
  /** Additional headers, such as a key of the collector: "name=value,name=value". */
  readonly headers: Secret;
  readonly userAgent: string;
  readonly clock: Clock;
}

export interface SendResult {
  readonly result: BatchResult;
  /** Why the batch was not delivered, for the log. Empty if it was delivered. */
  readonly reason: string;
}

/** Sends a body. Never rejects. `signal` ends the attempt early. */
export type OtlpSender = (body: Buffer, signal: AbortSignal) => Promise<SendResult>;

export const createOtlpSender = ({ endpoint, headers, userAgent, clock }: OtlpSenderOptions): OtlpSender => {
  const url = new URL(`${endpoint.replace(/\/+$/, '')}${TRACES_PATH}`);
  const secureContext = lazySecureContext(undefined);
  return async (body, signal) => {
    const ended = new AbortController();
    const end = (): void => ended.abort();
    const timer = clock.setTimeout(end, OTLP_TIMEOUT_MS);
    timer.unref?.();
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      const { status } = await requestOnce({
        url,
        method: 'POST',
        headers: {
          'user-agent': userAgent,
          ...parseOtlpHeaders(headers.reveal()),
          'content-type': 'application/json',
        },
        body,
        addresses: null,
        // The response body is not read, because the status is sufficient.
        maxBytes: 0,
        secureContext,
        signal: ended.signal,
      });
      if (status >= 200 && status < 300) return { result: 'delivered', reason: '' };
      return { result: RETRIED.has(status) ? 'retry' : 'rejected', reason: `status ${status}` };
    } catch (error) {
      const isLate = ended.signal.aborted && !signal.aborted;
      return {
        result: 'retry',
        reason: isLate ? `no response within ${OTLP_TIMEOUT_MS / 1000} s` : reasonOf(error),
      };
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', end);
    }
  };
};
