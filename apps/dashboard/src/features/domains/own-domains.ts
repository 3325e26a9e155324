// Queries for the account's custom domains, and pure functions about them: refresh intervals, URLs, and the domain used by a tunnel.
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import type { OwnDomainView, PlatformClient, TunnelLogEntry } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';

export const DOMAINS_KEY = ['domains'] as const;

const LIST_KEY = [...DOMAINS_KEY, 'all'] as const;
const keyOf = (id: string) => [...DOMAINS_KEY, 'one', id] as const;

/**
 * Refresh intervals: `waiting` while a domain waits for DNS records or a certificate, `settled` while only tunnels can open and close.
 * Hidden browser tabs do not refresh.
 */
const REFRESH_MS = { waiting: 3000, settled: 5000 } as const;

export const domainsQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: LIST_KEY,
    queryFn: () => api.domains(),
    refetchInterval: ({ state }) => refreshMs(state.data ?? []),
  });

export const domainQuery = (api: PlatformClient, id: string) =>
  queryOptions({
    queryKey: keyOf(id),
    queryFn: () => api.domain(id),
    refetchInterval: ({ state }) => !isGone(state.error) && refreshMs(state.data === undefined ? [] : [state.data]),
  });

/** Query for the plan's limit of custom domains. Fetched when the page opens, and after the list has changed. */
export const domainLimitQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: [...DOMAINS_KEY, 'limit'],
    queryFn: async () => {
      const { plan, domain_limit: limit = null } = await api.usage();
      return { plan, limit };
    },
    staleTime: 60_000,
  });

/** Caches a domain returned by an API call, so that the page shows the domain before the refetch completes. */
export const keepDomain = (queries: QueryClient, domain: OwnDomainView): Promise<void> => {
  queries.setQueryData(keyOf(domain.id), domain);
  return queries.invalidateQueries({ queryKey: DOMAINS_KEY });
};

/**
 * Removes a deleted domain from the cached list. The query of the domain itself is not refetched, because the API would respond with an
 * error.
 */
export const dropDomain = (queries: QueryClient, id: string): Promise<void> => {
  queries.setQueryData<OwnDomainView[]>(LIST_KEY, (list) => list?.filter((one) => one.id !== id));
  return queries.invalidateQueries({ queryKey: DOMAINS_KEY, predicate: ({ queryKey }) => queryKey[2] !== id });
};

export const refreshMs = (domains: readonly OwnDomainView[]): number =>
  domains.some(isWaiting) ? REFRESH_MS.waiting : REFRESH_MS.settled;

/** Returns whether a domain is waiting for its DNS records or its certificate. */
export const isWaiting = ({ state, certificate }: Pick<OwnDomainView, 'state' | 'certificate'>): boolean =>
  state === 'pending' ||
  (state === 'verified' && certificate !== null && ['none', 'ordering', 'renewing'].includes(certificate.state));

/** Returns whether the domain was removed or never belonged to this account. A retry would fail in the same way. */
export const isGone = (error: unknown): boolean => error instanceof Fault && error.code === 'DOMAIN_UNKNOWN';

/** Returns the seconds to wait until the next attempt, as given by an API error. Null if the error names no time. */
export const secondsToWait = (error: unknown): number | null => {
  const seconds = error instanceof Fault ? error.values['seconds'] : undefined;
  return typeof seconds === 'number' && seconds > 0 ? seconds : null;
};

/**
 * Extracts the domain from typed text, because users paste browser URLs: `https://Shop.example.com/cart` becomes `shop.example.com`. The
 * platform rejects invalid names.
 */
export const typedName = (text: string): string =>
  text
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/[/?#].*$/, '')
    .replace(/\.$/, '')
    .toLowerCase();

/** Returns the URL of a domain for a browser. Null for a wildcard domain, and for a domain that is not verified and so has no service. */
export const hrefOf = ({ name, wildcard, state, certificate }: OwnDomainView): string | null =>
  wildcard || state !== 'verified' ? null : `${hasCertificate(certificate) ? 'https' : 'http'}://${name}`;

/** Returns whether a certificate is in use, even if its renewal is failing. */
export const hasCertificate = (certificate: OwnDomainView['certificate']): boolean =>
  certificate !== null && certificate.not_after !== null;

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'public_url'>;

/** Returns the custom domain used by a tunnel. An exact name takes precedence over a wildcard that covers the name. */
export const domainOf = (entry: Addressed, list: readonly OwnDomainView[]): OwnDomainView | undefined => {
  const { protocol, label, public_url: url = '' } = entry;
  if (protocol !== 'http' && protocol !== 'tcp') return undefined;
  // A subdomain's label is not a complete host name. Only the URL contains the complete host.
  const host = url === '' ? label : url.replace(/^[a-z0-9]+:\/\//, '').replace(/[:/].*$/, '');
  return list.find(({ name }) => name === host) ?? list.find(({ name }) => name === host.replace(/^[^.]+/, '*'));
};

/** Returns the client's command arguments that open a tunnel on the domain. */
export const domainWords = (name: string): string => `http 3000 --domain ${name.startsWith('*') ? `'${name}'` : name}`;

/**
 * Returns the text about used and included domains. Domains above the limit keep working after a plan change. A `limit` of null means no
 * limit.
 */
export const domainLimitText = (count: number, plan: string, limit: number | null): string => {
  if (limit === null) return `${count} used. Your ${plan} plan has no limit.`;
  if (count > limit)
    return `${count} used; your ${plan} plan includes ${limit}. Existing domains keep working until you remove them.`;
  const text = `${count} of ${limit} used on your ${plan} plan.`;
  return count === limit ? `${text} Remove a domain to add another.` : text;
};
