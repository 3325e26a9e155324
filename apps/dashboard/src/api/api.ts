// How pages call the platform API: with a token that is renewed when it has run out, and with answers that are cached.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { PlatformClient, type PlatformFetch } from '@tunnel/contract';
import { type ErrorCode, Fault } from '@tunnel/errors';
import { meansAway } from './reachability.ts';
import type { Session } from './session.ts';

/** Without a session: for refresh and logout, and for those who are not signed in. */
export const createOpenClient = (origin: string, fetch: PlatformFetch): PlatformClient =>
  new PlatformClient({ url: origin, fetch });

export const createApi = (origin: string, fetch: PlatformFetch, session: Session): PlatformClient =>
  new PlatformClient({
    url: origin,
    fetch: renewingFetch(fetch, session),
    accessToken: () => session.accessToken,
  });

/** What refuses a password, not the token that came with it: asked once more it would count as a second try. */
const WRONG_PASSWORD: ErrorCode = 'PASSWORD_WRONG';

/** A call whose access token has run out is repeated once with a new one. Rejects with the fault of the renewal when the session has ended. */
export const renewingFetch =
  (fetch: PlatformFetch, session: Pick<Session, 'accessToken' | 'renew'>): PlatformFetch =>
  async (url, request) => {
    const sent = request.headers['authorization'];
    const answer = await fetch(url, request);
    if (sent === undefined || answer.status !== 401) return answer;
    const text = await answer.text();
    if (text.includes(`"${WRONG_PASSWORD}"`)) return { status: 401, headers: answer.headers, text: async () => text };
    const now = session.accessToken;
    // Another call may have renewed it meanwhile.
    const token = now !== '' && sent !== `Bearer ${now}` ? now : await session.renew();
    return fetch(url, { ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } });
  };

const FRESH_MS = 10_000;
const RETRIES = 2;

/** How answers of the API are kept and asked for again. */
export const createQueryClient = (onError: (error: unknown) => void): QueryClient =>
  new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: FRESH_MS,
        retry: shouldRetry,
        retryDelay: (count) => Math.min(500 * 2 ** count, 4000),
        // Whether we are offline the calls themselves tell.
        networkMode: 'always',
        refetchIntervalInBackground: false,
      },
      mutations: { networkMode: 'always', retry: false },
    },
  });

/** An absence is told at once, and ends by itself: the banner asks again. */
export const shouldRetry = (count: number, error: unknown): boolean =>
  count < RETRIES && error instanceof Fault && error.retryable && !meansAway(error);
