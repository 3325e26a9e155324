// The platform API client of the pages. The client renews expired access tokens, and a query cache stores responses.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { PlatformClient, type PlatformFetch } from '@tunnel/contract';
import { type ErrorCode, Fault } from '@tunnel/errors';
import { meansAway } from './reachability.ts';
import type { Session } from './session.ts';

/** Creates an API client without an access token, for session renewal, sign-out and signed-out pages. */
export const createOpenClient = (origin: string, fetch: PlatformFetch): PlatformClient =>
  new PlatformClient({ url: origin, fetch });

export const createApi = (origin: string, fetch: PlatformFetch, session: Session): PlatformClient =>
  new PlatformClient({
    url: origin,
    fetch: renewingFetch(fetch, session),
    accessToken: () => session.accessToken,
  });

/**
 * Error code of a 401 response for a wrong password. The access token is still valid, so the request is not repeated: the platform would
 * count a second failed attempt.
 */
const WRONG_PASSWORD: ErrorCode = 'PASSWORD_WRONG';

/**
 * Wraps `fetch` so that a request with an expired access token is repeated once with a new token. Rejects with the renewal's fault if the
 * session has ended.
 */
export const renewingFetch =
  (fetch: PlatformFetch, session: Pick<Session, 'accessToken' | 'renew'>): PlatformFetch =>
  async (url, request) => {
    const sent = request.headers['authorization'];
    const answer = await fetch(url, request);
    if (sent === undefined || answer.status !== 401) return answer;
    const text = await answer.text();
    if (text.includes(`"${WRONG_PASSWORD}"`)) return { status: 401, headers: answer.headers, text: async () => text };
    const now = session.accessToken;
    // A concurrent request may have renewed the token already.
    const token = now !== '' && sent !== `Bearer ${now}` ? now : await session.renew();
    return fetch(url, { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
  };

const FRESH_MS = 10_000;
const RETRIES = 2;

/** Creates the cache of API responses, with the rules for retries and refetching. */
export const createQueryClient = (onError: (error: unknown) => void): QueryClient =>
  new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: FRESH_MS,
        retry: shouldRetry,
        retryDelay: (count) => Math.min(500 * 2 ** count, 4000),
        // Requests are sent even if the browser reports that the network is offline. Only failed requests show whether the platform is
        // reachable.
        networkMode: 'always',
        refetchIntervalInBackground: false,
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });

/**
 * Returns whether a failed query is retried. An unreachable platform is reported at once without retries, because the reachability check
 * probes until the platform is back.
 */
export const shouldRetry = (count: number, error: unknown): boolean =>
  count < RETRIES && error instanceof Fault && error.retryable && !meansAway(error);
