// The rows of the list of tunnels: what lives, what has ended, and more of that when its end comes near.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { departed, rowsOf, withEntry } from './ended-log.ts';
import { changeEnded, endedTunnelsQuery, liveTunnelsQuery, loadOlder, type TunnelFilter } from './queries.ts';

export interface TunnelRows {
  /** undefined: on their way. */
  readonly rows: readonly TunnelLogEntry[] | undefined;
  readonly liveCount: number;
  /** There are no more than these. */
  readonly isWhole: boolean;
  /** Why there is nothing, or no more. */
  readonly error: unknown;
  readonly retry: () => void;
  readonly loadMore: () => void;
}

const NONE: readonly TunnelLogEntry[] = [];

export const useTunnelRows = ({ protocol, state }: TunnelFilter): TunnelRows => {
  const api = useApi();
  const withLive = state !== 'closed';
  const withEnded = state !== 'active';
  const live = useQuery({ ...liveTunnelsQuery(api, protocol), enabled: withLive });
  const ended = useQuery({ ...endedTunnelsQuery(api, protocol), enabled: withEnded });
  const older = useOlder(protocol);
  useDeparted(protocol, live.data);
  const isHere = (!withLive || live.data !== undefined) && (!withEnded || ended.data !== undefined);
  const liveRows = withLive ? (live.data ?? NONE) : NONE;
  const endedRows = withEnded ? (ended.data?.entries ?? NONE) : NONE;
  const rows = useMemo(() => (isHere ? rowsOf(liveRows, endedRows) : undefined), [isHere, liveRows, endedRows]);
  return {
    rows,
    liveCount: liveRows.length,
    isWhole: !withEnded || ended.data?.isWhole === true,
    error: isHere ? older.error : ((withLive ? live.error : null) ?? (withEnded ? ended.error : null)),
    retry: () => {
      if (isHere) return older.load();
      if (withLive) void live.refetch();
      if (withEnded) void ended.refetch();
    },
    loadMore: older.loadOnce,
  };
};

interface Older {
  readonly error: unknown;
  readonly load: () => void;
  /** As `load`, unless it failed before: a list at its end must not ask for ever. */
  readonly loadOnce: () => void;
}

const useOlder = (protocol: TunnelFilter['protocol']): Older => {
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
const useDeparted = (protocol: TunnelFilter['protocol'], live: readonly TunnelLogEntry[] | undefined): void => {
  const api = useApi();
  const queries = useQueryClient();
  const before = useRef<{ protocol: TunnelFilter['protocol']; live: readonly TunnelLogEntry[] } | null>(null);
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
