// The rows of the tunnel list: live and ended tunnels that pass the filter, grouped by address, and older ones when the end comes near.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { type AddressRow, groupByAddress } from './address-rows.ts';
import { departed, rowsOf, withEntry } from './ended-log.ts';
import { changeEnded, endedTunnelsQuery, liveTunnelsQuery, loadOlder } from './queries.ts';
import { askedProtocol, filterTunnels, readFilter, type TunnelFilter } from './tunnel-filter.ts';

export interface TunnelRows {
  /** undefined: on their way. */
  readonly rows: readonly AddressRow[] | undefined;
  /** Live tunnels among the rows. */
  readonly liveCount: number;
  /** Tunnels of the log that were looked through, whether they passed the filter or not. */
  readonly readCount: number;
  readonly isWhole: boolean;
  /** Older tunnels are loaded when the end of the list comes near. false: many brought no new row; the reader decides. */
  readonly isEager: boolean;
  /** Why there are no rows, or no older ones. */
  readonly error: unknown;
  readonly retry: () => void;
  /** For the end of the list. Does nothing while `isEager` is false. */
  readonly loadMore: () => void;
  /** For a reader who wants more. */
  readonly loadOlder: () => void;
}

const NONE: readonly TunnelLogEntry[] = [];
const NO_MORE = (): void => {};

export const useTunnelRows = (filter: TunnelFilter): TunnelRows => {
  const api = useApi();
  const protocol = askedProtocol(filter.protocol);
  const withLive = filter.state !== 'closed';
  const withEnded = filter.state !== 'active';
  const live = useQuery({ ...liveTunnelsQuery(api, protocol), enabled: withLive });
  const ended = useQuery({ ...endedTunnelsQuery(api, protocol), enabled: withEnded });
  const older = useOlder(protocol);
  useDeparted(protocol, live.data);
  const isHere = (!withLive || live.data !== undefined) && (!withEnded || ended.data !== undefined);
  const liveEntries = withLive ? (live.data ?? NONE) : NONE;
  const endedEntries = withEnded ? (ended.data?.entries ?? NONE) : NONE;
  const found = useFound(filter, liveEntries, endedEntries);
  const eager = useEagerness(found.rows.length, endedEntries.length);
  return {
    rows: isHere ? found.rows : undefined,
    liveCount: found.liveCount,
    readCount: liveEntries.length + endedEntries.length,
    isWhole: !withEnded || ended.data?.isWhole === true,
    isEager: eager.isEager,
    error: isHere ? older.error : ((withLive ? live.error : null) ?? (withEnded ? ended.error : null)),
    retry: () => {
      if (isHere) return older.load();
      if (withLive) void live.refetch();
      if (withEnded) void ended.refetch();
    },
    loadMore: eager.isEager ? older.loadOnce : NO_MORE,
    loadOlder: () => {
      eager.renew();
      older.load();
    },
  };
};

const useFound = (
  { protocol, q }: TunnelFilter,
  live: readonly TunnelLogEntry[],
  ended: readonly TunnelLogEntry[],
): { readonly rows: readonly AddressRow[]; readonly liveCount: number } =>
  useMemo(() => {
    const found = filterTunnels(rowsOf(live, ended), readFilter({ protocol, q }));
    const liveCount = found.filter(({ unregistered_at }) => unregistered_at === null).length;
    return { rows: groupByAddress(found), liveCount };
  }, [protocol, q, live, ended]);

/** Entries that may be loaded in a row without a new row in the list: a search must not read the whole log unasked. */
const UNSEEN_MAX = 1000;

/** Whether older tunnels are loaded without being asked for. `renew`: as if the last entries had brought a row. */
const useEagerness = (rowCount: number, entryCount: number) => {
  const [mark, setMark] = useState({ rowCount, entryCount });
  if (rowCount !== mark.rowCount || entryCount < mark.entryCount) setMark({ rowCount, entryCount });
  const isEager = entryCount - mark.entryCount < UNSEEN_MAX;
  return { isEager, renew: () => setMark({ rowCount, entryCount }) };
};

interface Older {
  readonly error: unknown;
  readonly load: () => void;
  /** As `load`, unless it failed before: a list at its end must not ask for ever. */
  readonly loadOnce: () => void;
}

const useOlder = (protocol: ShownProtocol | undefined): Older => {
  const api = useApi();
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>(null);
  const isLoading = useRef(false);
  const load = useCallback((): void => {
    if (isLoading.current) return;
    isLoading.current = true;
    setError(null);
    loadOlder(api, queries, protocol)
      .catch(setError)
      .finally(() => {
        isLoading.current = false;
      });
  }, [api, queries, protocol]);
  const loadOnce = useCallback(() => {
    if (error === null) load();
  }, [error, load]);
  return { error, load, loadOnce };
};

/** One that ended goes to its place among the others at once, wherever that is. */
const useDeparted = (protocol: ShownProtocol | undefined, live: readonly TunnelLogEntry[] | undefined): void => {
  const api = useApi();
  const queries = useQueryClient();
  const before = useRef<{ protocol: ShownProtocol | undefined; live: readonly TunnelLogEntry[] } | null>(null);
  useEffect(() => {
    if (live === undefined) return;
    const last = before.current;
    const gone = last !== null && last.protocol === protocol ? departed(last.live, live) : [];
    before.current = { protocol, live };
    for (const id of gone) {
      // The next poll asks again; what it cannot find is shown after a reload.
      api.tunnel(id).then(
        (entry) => changeEnded(queries, protocol, (log) => withEntry(log, entry)),
        () => {},
      );
    }
  }, [api, queries, protocol, live]);
};
