// Who is signed in.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';

export const ME_KEY = ['me'] as const;

export const meQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: ME_KEY, queryFn: () => api.me(), staleTime: 60_000 });
