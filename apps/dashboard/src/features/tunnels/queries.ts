// Queries of the tunnel pages and their refresh intervals.
import { type QueryClient, queryOptions } from '@tanstack/react-query';
import {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  type EdgePeers,
  type PlatformClient,
  type ShownProtocol,
  type TunnelLogEntry,
  type TunnelPolicy,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import { LIVE_MS } from '../../api/queries.ts';
import { type EndedLog, PAGE_SIZE, withNewest, withOlder } from './ended-log.ts';
import { type RequestLog, withNewestRequests, withOlderRequests, withRequest } from './request-log.ts';

/** Maximum pages of live tunnels to load. An account can have any number of tunnels; the list shows no live tunnels beyond the limit. */
const LIVE_PAGES_MAX = 10;
/** Number of captured requests per page. */
const REQUESTS_SHOWN = CAPTURE_LIST_LIMIT.max;
/** Refresh interval of data that changes with every visit: requests, flows and peers. */
const VISITS_EVERY_MS = 2000;

export const TUNNELS_KEY = ['tunnels'] as const;
const TUNNEL_KEY = ['tunnel'] as const;

type Protocol = ShownProtocol | undefined;
const endedKey = (protocol: Protocol) => [...TUNNELS_KEY, 'ended', protocol ?? 'all'] as const;
const ofProtocol = (protocol: Protocol) => (protocol === undefined ? {} : { protocol });

export const liveTunnelsQuery = (api: PlatformClient, protocol: Protocol) =>
  queryOptions({
    queryKey: [...TUNNELS_KEY, 'live', protocol ?? 'all'],
    queryFn: async () => {
      const live: TunnelLogEntry[] = [];
      for (let page = 0; page < LIVE_PAGES_MAX; page += 1) {
        const query = { ...ofProtocol(protocol), state: 'active', limit: PAGE_SIZE, offset: page * PAGE_SIZE } as const;
        const entries = await api.tunnels(query);
        live.push(...entries);
        if (entries.length < PAGE_SIZE) break;
      }
      return live;
    },
    refetchInterval: LIVE_MS.tunnels,
  });

export const endedTunnelsQuery = (api: PlatformClient, protocol: Protocol) =>
  queryOptions({
    queryKey: endedKey(protocol),
    queryFn: async ({ client, queryKey }): Promise<EndedLog> => {
      const page = await api.tunnels({ ...ofProtocol(protocol), state: 'closed', limit: PAGE_SIZE });
      return withNewest(client.getQueryData<EndedLog>(queryKey), page);
    },
    // Structural sharing of the query library is off: the log already keeps unchanged entries, and comparing a long log would be slow.
    structuralSharing: false,
    refetchInterval: LIVE_MS.tunnels,
  });

/** Loads the next page of older tunnels. Tunnels that end between two pages make the pages overlap, but never cause a gap. */
export const loadOlder = async (api: PlatformClient, queries: QueryClient, protocol: Protocol): Promise<void> => {
  const key = endedKey(protocol);
  const offset = queries.getQueryData<EndedLog>(key)?.entries.length ?? 0;
  const page = await api.tunnels({ ...ofProtocol(protocol), state: 'closed', limit: PAGE_SIZE, offset });
  changeEnded(queries, protocol, (log) => withOlder(log, page));
};

export const changeEnded = (queries: QueryClient, protocol: Protocol, change: (log: EndedLog) => EndedLog): void => {
  queries.setQueryData<EndedLog>(endedKey(protocol), (log) => (log === undefined ? undefined : change(log)));
};

export const tunnelQuery = (api: PlatformClient, id: string) =>
  queryOptions({
    queryKey: [...TUNNEL_KEY, id],
    queryFn: () => api.tunnel(id),
    // An unknown tunnel will not appear later, so refreshing stops after an error.
    refetchInterval: ({ state }) => (state.data === undefined && state.error !== null ? false : LIVE_MS.tunnels),
  });

export const healthQuery = (api: PlatformClient, { id, unregistered_at }: TunnelLogEntry) =>
  queryOptions({
    queryKey: [...TUNNEL_KEY, id, 'health', unregistered_at === null],
    queryFn: () => api.healthEvents(id),
    refetchInterval: unregistered_at === null ? LIVE_MS.tunnels : false,
  });

/**
 * Query for the captured requests of a tunnel. With `answered`, only requests answered by a rule, which may be missing among the newest
 * requests.
 */
export const requestsQuery = (api: PlatformClient, { id, unregistered_at }: TunnelLogEntry, answered: boolean) =>
  queryOptions({
    queryKey: requestsKey(id, answered),
    queryFn: async ({ client, queryKey }): Promise<RequestLog> => {
      const page = await api.requests(id, pageOf(answered));
      return withNewestRequests(client.getQueryData<RequestLog>(queryKey), page);
    },
    refetchInterval: unregistered_at === null ? VISITS_EVERY_MS : false,
    staleTime: 0,
  });

/** Loads the next page of older requests and adds the page to the log. */
export const loadOlderRequests = async (
  api: PlatformClient,
  queries: QueryClient,
  { id }: Pick<TunnelLogEntry, 'id'>,
  answered: boolean,
): Promise<void> => {
  const key = requestsKey(id, answered);
  const cursor = queries.getQueryData<RequestLog>(key)?.cursor;
  if (cursor == null) return;
  const page = await api.requests(id, { ...pageOf(answered), cursor });
  queries.setQueryData<RequestLog>(key, (log) => (log === undefined ? undefined : withOlderRequests(log, page)));
};

const pageOf = (answered: boolean) => ({ limit: REQUESTS_SHOWN, ...(answered ? { answered } : {}) });

/** How long to wait until a stopped tunnel appears as ended in the log: number of lookups and interval. */
const ENDED_WITHIN = { tries: 20, everyMs: 150 } as const;

/** Stops live tunnels, and waits until the log shows their end. A tunnel that has already ended causes no error. */
export const stopTunnels = async (
  api: PlatformClient,
  queries: QueryClient,
  entries: readonly Pick<TunnelLogEntry, 'id'>[],
): Promise<void> => {
  try {
    for (const { id } of entries) {
      await api.closeTunnel(id).catch((error: unknown) => {
        if (!(error instanceof Fault && error.code === 'TUNNEL_UNKNOWN')) throw error;
      });
      await untilEnded(api, id);
    }
  } finally {
    for (const queryKey of [TUNNELS_KEY, TUNNEL_KEY, ['usage'], ['pools']])
      void queries.invalidateQueries({ queryKey });
  }
};

const untilEnded = async (api: PlatformClient, id: string): Promise<void> => {
  for (let tries = 0; tries < ENDED_WITHIN.tries; tries += 1) {
    const entry = await api.tunnel(id);
    if (entry.unregistered_at !== null) return;
    await new Promise((resolve) => setTimeout(resolve, ENDED_WITHIN.everyMs));
  }
};

const NOT_FOUND = 404;

/**
 * Query for the rules of a live tunnel. Null if the tunnel has no rules. Disabled for ended tunnels, because the edge drops the rules
 * when the tunnel closes.
 */
export const policyQuery = (api: PlatformClient, { id, unregistered_at }: TunnelLogEntry) =>
  queryOptions({
    queryKey: [...TUNNEL_KEY, id, 'policy'],
    queryFn: async (): Promise<TunnelPolicy | null> => {
      try {
        return await api.policy(id);
      } catch (error) {
        if (error instanceof Fault && error.status === NOT_FOUND) return null;
        throw error;
      }
    },
    enabled: unregistered_at === null,
    refetchInterval: LIVE_MS.tunnels,
  });

export const flowsQuery = (api: PlatformClient, { id, unregistered_at }: TunnelLogEntry) =>
  queryOptions({
    queryKey: [...TUNNEL_KEY, id, 'flows', unregistered_at === null],
    queryFn: () => api.flows(id),
    refetchInterval: unregistered_at === null ? VISITS_EVERY_MS : false,
    staleTime: 0,
  });

export const peersQuery = (api: PlatformClient, { id, unregistered_at }: TunnelLogEntry) =>
  queryOptions({
    queryKey: [...peersKey(id), unregistered_at === null],
    queryFn: () => api.peers(id),
    refetchInterval: unregistered_at === null ? VISITS_EVERY_MS : false,
    staleTime: 0,
  });

/** Removes a disconnected peer from the cached list immediately, then refreshes the list. */
export const forgetPeer = (queries: QueryClient, id: string, peerId: string): Promise<void> => {
  queries.setQueriesData<EdgePeers>({ queryKey: peersKey(id) }, (list) => {
    const peers = list?.peers.filter(({ peer_id }) => peer_id !== peerId);
    if (list === undefined || peers === undefined || peers.length === list.peers.length) return list;
    return { peers, total: list.total - 1 };
  });
  return queries.invalidateQueries({ queryKey: peersKey(id) });
};

const peersKey = (id: string) => [...TUNNEL_KEY, id, 'peers'] as const;

/** Adds a replayed request to the cached list immediately. */
export const addRequest = (queries: QueryClient, id: string, request: CapturedRequest): void => {
  queries.setQueryData<RequestLog>(requestsKey(id, false), (log) =>
    log === undefined ? undefined : withRequest(log, request),
  );
};

const requestsKey = (id: string, answered: boolean) =>
  [...TUNNEL_KEY, id, 'requests', answered ? 'answered' : 'all'] as const;
