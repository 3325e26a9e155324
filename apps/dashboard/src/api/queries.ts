// Queries shared by several pages (the signed-in account, the regions, the server named in commands, whether billing is shown), and the
// refresh intervals of live pages.
import { queryOptions, useQuery } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';
import type { ServerAddress } from '../shared/client-commands.ts';
import { useApi } from './app-context.tsx';

/** Refresh interval of each live page in ms. Hidden browser tabs do not refresh. */
export const LIVE_MS = { pools: 2000, overview: 5000, tunnels: 5000, unguarded: 15_000 } as const;

export const ME_KEY = ['me'] as const;

export const meQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ME_KEY, queryFn: () => api.me(), staleTime: 60_000 });

/** Query for the regions that are online, with their addresses for clients and visitors. */
export const regionsQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ['regions'], queryFn: () => api.regions(), staleTime: 60_000, refetchInterval: 60_000 });

/**
 * Returns the server to name in the commands of a page. Null while the regions are loading: a command without the server would connect to
 * the client's default server. Undefined if no region reports an address for clients, so that the client's default applies.
 */
export const useServer = (): ServerAddress | null | undefined => {
  const { data, isPending } = useQuery(regionsQuery(useApi()));
  return isPending ? null : data?.find(({ control }) => control !== '');
};

/**
 * Query for live tunnels without access rules, which are open to every visitor. The interval is long, because rules rarely change and the
 * platform has to query every edge with a tunnel.
 */
export const unguardedQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['unguarded'],
    queryFn: () => api.unguardedTunnels(),
    staleTime: LIVE_MS.unguarded,
    refetchInterval: LIVE_MS.unguarded,
  });

/**
 * Query for whether the dashboard shows billing. Billing is hidden if payments are simulated on a public platform. Fetched once, because
 * the setting cannot change while a page is open.
 */
const billingShownQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['billing-shown'],
    queryFn: async () => (await api.billing()).hidden !== true,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Query for whether the platform serves `/mcp`. Fetched once, because the setting cannot change while a page is open. */
const mcpShownQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['mcp-shown'],
    queryFn: async () => (await api.oauthGrants()).mcp !== false,
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Returns whether the platform serves `/mcp`. Undefined while unknown. */
export const useIsMcpShown = (): boolean | undefined => useQuery(mcpShownQuery(useApi())).data;

/** Returns whether the dashboard shows billing. Undefined while unknown. */
export const useIsBillingShown = (): boolean | undefined => useQuery(billingShownQuery(useApi())).data;
