// Where clients and visitors come to: the regions that are there now.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';

export const regionsQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ['regions'], queryFn: () => api.regions(), staleTime: 60_000, refetchInterval: 60_000 });
