// The keys of the account, and how many tunnels are open now.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';

export const KEYS_KEY = ['keys'] as const;

/** When a key was last used changes by itself. */
const REFRESH_MS = 10_000;

export const keysQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: KEYS_KEY, queryFn: () => api.keys(), refetchInterval: REFRESH_MS });

/** Asked when a key is about to be revoked: always as it is now. */
export const activeTunnelsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['active-tunnels'],
    queryFn: async () => (await api.usage()).active_tunnels,
    staleTime: 0,
    retry: false,
  });
