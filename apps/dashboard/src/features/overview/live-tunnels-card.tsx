// First card of the overview: live tunnels with URLs to copy. Without live tunnels, the card lists recent tunnels.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useMemo } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { type AddressRow, groupByAddress, listRows } from '../tunnels/address-rows.ts';
import { cellsOf, TunnelHead, TunnelRow } from '../tunnels/tunnel-row.tsx';
import { useStop } from '../tunnels/use-stop.tsx';
import { newestLiveQuery } from './queries.ts';

/** Number of public addresses shown on the overview. The Tunnels page lists all addresses. */
const ROWS_MAX = 5;

/** Card with live or recent tunnels. `recent` contains the newest tunnels, live or ended; undefined while loading. */
export const LiveTunnelsCard = ({ recent = [] }: { readonly recent: readonly TunnelLogEntry[] | undefined }) => {
  const live = useQuery(newestLiveQuery(useApi()));
  const isQuiet = live.data?.length === 0;
  return (
    <LoadedCard
      title={isQuiet ? 'Recent tunnels' : 'Live tunnels'}
      {...(isQuiet ? { description: 'No live tunnels.' } : {})}
      actions={
        <Link to="/tunnels" className="rounded-sm text-accent text-sm underline-offset-2 hover:underline">
          All tunnels
        </Link>
      }
      query={live}
      problem="Couldn't load your tunnels"
      pending={<Pending />}
    >
      {(entries) => <Rows entries={entries.length === 0 ? recent : entries} />}
    </LoadedCard>
  );
};

const Rows = ({ entries }: { readonly entries: readonly TunnelLogEntry[] }) => {
  const rows: readonly AddressRow[] = useMemo(() => groupByAddress(entries), [entries]);
  const { onStop, dialog } = useStop(rows);
  return (
    <>
      <div role="table" aria-label="Tunnels, newest first" className="border-line border-t">
        <TunnelHead />
        <div role="rowgroup" className="[&>:last-child]:border-b-0">
          {listRows(rows.slice(0, ROWS_MAX), undefined).map((row, index) => (
            <TunnelRow key={row.key} {...cellsOf(row)} {...{ index, onStop }} isOpen={false} />
          ))}
        </div>
      </div>
      {dialog}
    </>
  );
};

const Pending = () => (
  <div className="h-44 px-4 sm:px-5 md:h-24">
    <SkeletonLines count={2} />
  </div>
);
