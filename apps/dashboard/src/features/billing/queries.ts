// Queries for the account's billing status, usage costs and invoices.
import { queryOptions } from '@tanstack/react-query';
import type { PlatformClient } from '@tunnel/contract';

export const BILLING_KEY = ['billing'] as const;
export const BILLING_USAGE_KEY = ['billing', 'usage'] as const;
export const INVOICES_KEY = ['billing', 'invoices'] as const;

/** Refresh interval of the billing status. After a visit to the payment processor, its update can arrive later than the user's browser. */
const REFRESH_MS = 5000;
const INVOICES_FRESH_MS = 60_000;

export const billingQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: BILLING_KEY,
    queryFn: () => api.billing(),
    refetchInterval: REFRESH_MS,
    refetchOnWindowFocus: 'always',
  });

export const billingUsageQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: BILLING_USAGE_KEY,
    queryFn: () => api.billingUsage(),
    refetchInterval: REFRESH_MS,
  });

export const invoicesQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: INVOICES_KEY,
    queryFn: async () => (await api.invoices()).invoices,
    staleTime: INVOICES_FRESH_MS,
    refetchOnWindowFocus: 'always',
  });
