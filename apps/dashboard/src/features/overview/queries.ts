// Queries of the overview page and their refresh intervals.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient, TunnelLogEntry } from '@tunnel/contract';
import { LIVE_MS } from '../../api/queries.ts';

/** Refresh interval of the usage chart. Long, because a day's bar changes slowly. */
const CHART_EVERY_MS = 30_000;
const FIRST_RUN_EVERY_MS = 2000;
const RECENT = 5;
/** Number of live tunnels requested. Higher than the number of addresses shown, because several tunnels can share an address. */
const LIVE_MAX = 20;

export const usageQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ['usage'], queryFn: () => api.usage(), refetchInterval: LIVE_MS.overview });

export const chartQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['usage-chart'],
    queryFn: () => api.usageChart({ days: 30 }),
    refetchInterval: CHART_EVERY_MS,
  });

export const recentTunnelsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['tunnels', 'recent'],
    queryFn: () => api.tunnels({ limit: RECENT }),
    refetchInterval: LIVE_MS.overview,
  });

export const newestLiveQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['tunnels', 'newest-live'],
    queryFn: () => api.tunnels({ state: 'active', limit: LIVE_MAX }),
    refetchInterval: LIVE_MS.overview,
  });

export const poolStatesQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ['pools', 'states'], queryFn: () => api.pools(), refetchInterval: LIVE_MS.overview });

/** Query for the progress of a new user: keys, the newest tunnel and its requests. */
export const firstRunQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: ['first-run'],
    queryFn: async () => {
      const [keys, tunnels] = await Promise.all([api.keys(), api.tunnels({ limit: 1 })]);
      return { keys, tunnel: tunnels[0], requests: await requestsOf(api, tunnels[0]) };
    },
    refetchInterval: FIRST_RUN_EVERY_MS,
    staleTime: 0,
  });

const requestsOf = async (api: PlatformClient, tunnel: TunnelLogEntry | undefined) => {
  if (tunnel?.protocol !== 'http') return [];
  try {
    return (await api.requests(tunnel.id, { limit: 10 })).requests;
  } catch {
    // If the region does not respond, the progress of the other steps is still shown.
    return [];
  }
};
