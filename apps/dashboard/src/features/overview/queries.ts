// What the overview asks for, and how often.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient, TunnelLogEntry } from '@tunnel/contract';
import { LIVE_MS } from '../../api/queries.ts';

/** A day of a chart changes slowly to the eye. */
const CHART_EVERY_MS = 30_000;
const FIRST_RUN_EVERY_MS = 2000;
const RECENT = 5;
/** Live tunnels that are asked for. Several of them may share an address. */
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

/** How far somebody new has come. */
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
    // The region does not answer; the other steps are told all the same.
    return [];
  }
};
