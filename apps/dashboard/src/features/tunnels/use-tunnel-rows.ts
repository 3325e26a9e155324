// Hook with the rows of the tunnel list: filtered live and ended tunnels, grouped by address. Loads older tunnels when the end of the
// list is near.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { ShownProtocol, TunnelLogEntry } from '@tunnel/contract';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { type AddressRow, groupByAddress } from './address-rows.ts';
import { departed, rowsOf, withEntry } from './ended-log.ts';
import { changeEnded, endedTunnelsQuery, liveTunnelsQuery, loadOlder } from './queries.ts';
import { askedProtocol, filterTunnels, readFilter, type TunnelFilter } from './tunnel-filter.ts';

export interface TunnelRows {
  /** Rows of the list. Undefined while loading. */
  readonly rows: readonly AddressRow[] | undefined;
  /** Number of live tunnels in the rows. */
  readonly liveCount: number;
  /** Number of tunnels loaded from the log, whether or not they match the filter. */
  readonly readCount: number;
  readonly isWhole: boolean;
  /**
   * Whether older tunnels are loaded automatically when the end of the list is near. False after many loaded tunnels without a new row;
   * then the user decides with a button.
   */
  readonly isEager: boolean;
  /** Error of loading the rows, or of loading older rows. */
  readonly error: unknown;
  readonly retry: () => void;
  /** Loads older tunnels when the end of the list is near. Does nothing while `isEager` is false. */
  readonly loadMore: () => void;
  /** Loads older tunnels at the user's request. */
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

/** Maximum tunnels loaded automatically without a new row in the list, so that a search does not read the whole log. */
const UNSEEN_MAX = 1000;

/** Returns whether older tunnels are loaded automatically. `renew` restarts the count of tunnels without a new row. */
const useEagerness = (rowCount: number, entryCount: number) => {
  const [mark, setMark] = useState({ rowCount, entryCount });
  if (rowCount !== mark.rowCount || entryCount < mark.entryCount) setMark({ rowCount, entryCount });
  const isEager = entryCount - mark.entryCount < UNSEEN_MAX;
  return { isEager, renew: () => setMark({ rowCount, entryCount }) };
};

interface Older {
  readonly error: unknown;
  readonly load: () => void;
  /** Loads older tunnels, unless the previous attempt failed, so that a list at its end does not retry forever. */
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

/** Moves a tunnel that has ended to its place among the ended tunnels immediately. */
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
      // If the lookup of an ended tunnel fails, the next refresh of the log finds recent tunnels. Older tunnels appear after a page reload.
      api.tunnel(id).then(
        (entry) => changeEnded(queries, protocol, (log) => withEntry(log, entry)),
        () => {},
      );
    }
  }, [api, queries, protocol, live]);
};
