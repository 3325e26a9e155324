// What several pages ask for (who is signed in, the regions, the edge that commands name, whether there is billing), and how often live pages ask.
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';
import type { ServerAddress } from '../shared/client-commands.ts';
import { useApi } from './app-context.tsx';

/** How often a page that is looked at asks again. Hidden tabs do not. */
export const LIVE_MS = { pools: 2000, overview: 5000, tunnels: 5000, unguarded: 15_000 } as const;

export const ME_KEY = ['me'] as const;

export const meQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ME_KEY, queryFn: () => api.me(), staleTime: 60_000 });

/** Where clients and visitors come to: the regions that are there now. */
export const regionsQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ['regions'], queryFn: () => api.regions(), staleTime: 60_000, refetchInterval: 60_000 });

/** The edge that the commands of a page name. null: not known yet, and a command without it would go elsewhere. undefined: nobody says; the client has a default. */
export const useServer = (): ServerAddress | null | undefined => {
  const { data, isPending } = useQuery(regionsQuery(useApi()));
  return isPending ? null : data?.find(({ control }) => control !== '');
};

/** Which living tunnels are open to everyone. Rules change seldom, and every edge with a tunnel is asked for it. */
export const unguardedQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['unguarded'],
    queryFn: () => api.unguardedTunnels(),
    staleTime: LIVE_MS.unguarded,
    refetchInterval: LIVE_MS.unguarded,
  });

/** Whether payments are simulated for the public does not change while a page is open. */
const billingShownQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['billing-shown'],
    queryFn: async () => (await api.billing()).hidden !== true,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Whether the platform has `/mcp` does not change while a page is open. */
const mcpShownQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['mcp-shown'],
    queryFn: async () => (await api.oauthGrants()).mcp !== false,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** undefined: not known yet. */
export const useIsMcpShown = (): boolean | undefined => useQuery(mcpShownQuery(useApi())).data;

/** undefined: not known yet. */
export const useIsBillingShown = (): boolean | undefined => useQuery(billingShownQuery(useApi())).data;
