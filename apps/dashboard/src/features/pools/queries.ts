// The pools of the account, asked for again every two seconds while the page is looked at.
import { queryOptions, replaceEqualDeep } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';
import { LIVE_MS } from '../../app/query-client.ts';
import { followPools, type PoolsSeen, readPools } from './pools-seen.ts';

export const POOLS_KEY = ['pools'] as const;

export const poolsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: POOLS_KEY,
    queryFn: async () => readPools(await api.pools(), Date.now()),
    // What did not change stays the same object, and is not drawn again.
    structuralSharing: (before, now) =>
      replaceEqualDeep(before, followPools(before as PoolsSeen | undefined, now as PoolsSeen)),
    refetchInterval: LIVE_MS.pools,
    staleTime: 0,
  });
