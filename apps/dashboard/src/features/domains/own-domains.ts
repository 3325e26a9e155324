// The own domains of the account as the pages ask for them: how often, whose tunnel uses which, and how one is used. Pure but for the queries.
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import type { OwnDomainView, PlatformClient, TunnelLogEntry } from '@tunnel/contract';
import { Fault } from '@tunnel/errors';

export const DOMAINS_KEY = ['domains'] as const;

const LIST_KEY = [...DOMAINS_KEY, 'all'] as const;
const keyOf = (id: string) => [...DOMAINS_KEY, 'one', id] as const;

/** While something is waited for, and when nothing is but tunnels that come and go. Hidden tabs do not ask. */
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

/** Asked when the page opens, and when the list has changed. */
export const domainLimitQuery = (api: PlatformClient) =>
  queryOptions({
    queryKey: [...DOMAINS_KEY, 'limit'],
    queryFn: async () => {
      const { plan, domain_limit: limit = null } = await api.usage();
      return { plan, limit };
    },
    staleTime: 60_000,
  });

/** What a call has answered with is shown before the list is asked for again. */
export const keepDomain = (queries: QueryClient, domain: OwnDomainView): Promise<void> => {
  queries.setQueryData(keyOf(domain.id), domain);
  return queries.invalidateQueries({ queryKey: DOMAINS_KEY });
};

/** The page of one that is gone asks for it no more. */
export const dropDomain = (queries: QueryClient, id: string): Promise<void> => {
  queries.setQueryData<OwnDomainView[]>(LIST_KEY, (list) => list?.filter((one) => one.id !== id));
  return queries.invalidateQueries({ queryKey: DOMAINS_KEY, predicate: ({ queryKey }) => queryKey[2] !== id });
};

export const refreshMs = (domains: readonly OwnDomainView[]): number =>
  domains.some(isWaiting) ? REFRESH_MS.waiting : REFRESH_MS.settled;

/** For its records, or for its certificate. */
export const isWaiting = ({ state, certificate }: Pick<OwnDomainView, 'state' | 'certificate'>): boolean =>
  state === 'pending' ||
  (state === 'verified' && certificate !== null && ['none', 'ordering', 'renewing'].includes(certificate.state));

/** Removed, or never this account's: asked again it is not there either. */
export const isGone = (error: unknown): boolean => error instanceof Fault && error.code === 'DOMAIN_UNKNOWN';

/** The seconds that a refusal says to wait; null: it names none. */
export const secondsToWait = (error: unknown): number | null => {
  const seconds = error instanceof Fault ? error.values['seconds'] : undefined;
  return typeof seconds === 'number' && seconds > 0 ? seconds : null;
};

/** People paste what the browser shows: `https://Shop.example.com/cart` is `shop.example.com`. What is no name the platform tells. */
export const typedName = (text: string): string =>
  text
    .trim()
    .replace(/^https?:\/\//i, '')
    .replace(/[/?#].*$/, '')
    .replace(/\.$/, '')
    .toLowerCase();

/** For a browser; null: a pattern, or nobody would be answered. */
export const hrefOf = ({ name, wildcard, state, certificate }: OwnDomainView): string | null =>
  wildcard || state !== 'verified' ? null : `${hasCertificate(certificate) ? 'https' : 'http'}://${name}`;

/** One is there and in use, whatever becomes of its renewal. */
export const hasCertificate = (certificate: OwnDomainView['certificate']): boolean =>
  certificate !== null && certificate.not_after !== null;

type Addressed = Pick<TunnelLogEntry, 'protocol' | 'label' | 'public_url'>;

/** The domain that a tunnel is at. A name of its own goes before the wildcard that covers it. */
export const domainOf = (entry: Addressed, list: readonly OwnDomainView[]): OwnDomainView | undefined => {
  const { protocol, label, public_url: url = '' } = entry;
  if (protocol !== 'http' && protocol !== 'tcp') return undefined;
  // Of a subdomain the label is no host: what stands behind it is in the URL alone.
  const host = url === '' ? label : url.replace(/^[a-z0-9]+:\/\//, '').replace(/[:/].*$/, '');
  return list.find(({ name }) => name === host) ?? list.find(({ name }) => name === host.replace(/^[^.]+/, '*'));
};

/** The words of the client that use it. */
export const domainWords = (name: string): string => `http 3000 --domain ${name.startsWith('*') ? `'${name}'` : name}`;

/** What is over the limit after a change of plan stays. `limit` null: none. */
export const domainLimitText = (count: number, plan: string, limit: number | null): string => {
  if (limit === null) return `${count} used. Your ${plan} plan has no limit.`;
  if (count > limit)
    return `${count} used; your ${plan} plan includes ${limit}. Existing domains keep working until you remove them.`;
  const text = `${count} of ${limit} used on your ${plan} plan.`;
  return count === limit ? `${text} Remove a domain to add another.` : text;
};
