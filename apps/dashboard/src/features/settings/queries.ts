// Where the account is logged in.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';

export const SESSIONS_KEY = ['sessions'] as const;

export const sessionsQuery = (api: PlatformClient) =>
  queryOptions({ queryKey: SESSIONS_KEY, queryFn: () => api.sessions() });
