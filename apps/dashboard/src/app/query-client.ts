// How answers of the API are kept and asked for again.
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { Fault } from '@tunnel/errors';
import { meansAway } from './reach.ts';

const FRESH_MS = 10_000;
const RETRIES = 2;

/** How often a page that is looked at asks again. Hidden tabs do not. */
export const LIVE_MS = { pools: 2000, overview: 5000, tunnels: 5000 } as const;

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
