// Page with the account's tunnels, grouped by address, live tunnels first.
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { useCallback, useEffect, useMemo } from 'react';
import { httpTunnelCommand } from '../../shared/client-commands.ts';
import { PanelBoundary } from '../../shared/panel-boundary.tsx';
import { protocolText } from '../../shared/tunnel-address.ts';
import { Button } from '../../ui/button.tsx';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { countText, plural } from '../../ui/format.ts';
import { PageHead } from '../../ui/page-head.tsx';
import { Problem } from '../../ui/problem.tsx';
import { listRows } from './address-rows.ts';
import { KindHelp, NewTunnelButton } from './new-tunnel-help.tsx';
import { isFiltered, readFilter, type TunnelFilter } from './tunnel-filter.ts';
import { TunnelFilters } from './tunnel-filters.tsx';
import { TunnelList } from './tunnel-list.tsx';
import { TunnelHead } from './tunnel-row.tsx';
import { useStop } from './use-stop.tsx';
import { type TunnelRows, useTunnelRows } from './use-tunnel-rows.ts';

export const TunnelsPage = () => {
  const { address, ...fields } = useSearch({ from: '/shell/tunnels' });
  const filter = readFilter(fields);
  return (
    <>
      <PageHead title="Tunnels" actions={<NewTunnelButton />} />
      <TunnelFilters filter={filter} />
      <PanelBoundary title="Couldn't load your tunnels">
        <Tunnels key={`${filter.protocol} ${filter.state}`} filter={filter} open={address} />
      </PanelBoundary>
    </>
  );
};

interface TunnelsProps {
  readonly filter: TunnelFilter;
  /** Key of the expanded address. Undefined if no address is expanded. */
  readonly open: string | undefined;
}

const Tunnels = ({ filter, open }: TunnelsProps) => {
  const found = useTunnelRows(filter);
  const { rows, isWhole, isEager, readCount, error, retry, loadMore } = found;
  const lines = useMemo(() => listRows(rows ?? [], open), [rows, open]);
  const onToggle = useToggle(filter, open);
  const { onStop, dialog } = useStop(rows);
  if (rows === undefined) {
    return error === null ? <Pending /> : <Problem title="Couldn't load your tunnels" {...{ error }} onRetry={retry} />;
  }
  if (rows.length === 0) {
    if (isWhole) return <NoTunnels filter={filter} />;
    return isEager && error === null ? <Searching key={readCount} onStart={loadMore} /> : <ListFooter found={found} />;
  }
  return (
    <>
      <Card padded={false}>
        <TunnelList rows={lines} {...{ isWhole, readCount, open, onStop, onToggle }} onEndNear={loadMore} />
      </Card>
      <ListFooter found={found} />
      {dialog}
    </>
  );
};

/** Placeholder that loads older tunnels as long as no loaded tunnel matches the filter. */
const Searching = ({ onStart }: { readonly onStart: () => void }) => {
  useEffect(onStart, [onStart]);
  return <Pending />;
};

/** Returns a function that expands or collapses an address. The URL contains the expanded address. */
const useToggle = (filter: TunnelFilter, open: string | undefined): ((key: string) => void) => {
  const navigate = useNavigate();
  const { state, protocol, q } = filter;
  return useCallback(
    (key) => {
      const search = { ...readFilter({ state, protocol, q }), ...(key === open ? {} : { address: key }) };
      void navigate({ to: '/tunnels', search, replace: true, resetScroll: false });
    },
    [navigate, state, protocol, q, open],
  );
};

const ListFooter = ({ found }: { readonly found: TunnelRows }) => {
  const { rows = [], liveCount, readCount, isWhole, isEager, error, retry, loadOlder } = found;
  if (error !== null) {
    return (
      <div className="mt-4">
        <Problem title="Couldn't load older tunnels" error={error} onRetry={retry} />
      </div>
    );
  }
  if (!isWhole && !isEager) {
    return (
      <div className="mt-4 flex flex-wrap items-center justify-center gap-3 text-muted text-sm">
        <p role="status">
          {plural(rows.length, 'address', 'addresses')} in the newest {countText(readCount)} tunnels
        </p>
        <Button size="small" onClick={loadOlder}>
          Load older
        </Button>
      </div>
    );
  }
  const text = isWhole
    ? `${plural(rows.length, 'address', 'addresses')}, ${countText(liveCount)} live`
    : 'Loading older tunnels';
  return (
    <p role="status" className="mt-4 text-center text-muted text-sm">
      {text}
      <span className="ml-3 hidden sm:inline">
        <kbd className="font-mono">j</kbd> <kbd className="font-mono">k</kbd> move,{' '}
        <kbd className="font-mono">Enter</kbd> opens
      </span>
    </p>
  );
};

const PENDING_ROWS = 8;

const Pending = () => (
  <Card padded={false}>
    <div role="table" aria-label="Tunnels" aria-busy="true">
      <TunnelHead />
      <div role="rowgroup">
        {Array.from({ length: PENDING_ROWS }, (_, index) => (
          <div key={index} role="row" className="flex h-[92px] items-center border-line border-b px-4 md:h-15 md:px-5">
            <span role="cell" className="w-full">
              <Skeleton className="h-5 w-full" />
              <span className="sr-only">Loading</span>
            </span>
          </div>
        ))}
      </div>
    </div>
  </Card>
);

const NoTunnels = ({ filter }: { readonly filter: TunnelFilter }) => {
  if (isFiltered(filter)) {
    return (
      <Card padded={false}>
        <Empty
          icon="tunnels"
          title="No matching tunnels"
          action={
            <Link to="/tunnels" search={{}} className="rounded-sm text-accent underline underline-offset-2">
              Show all tunnels
            </Link>
          }
        >
          <p>{filterText(filter)}</p>
        </Empty>
        {filter.protocol !== undefined && filter.q === undefined && (
          <div className="mx-auto max-w-2xl px-4 pb-10 sm:px-5">
            <KindHelp kind={filter.protocol} />
          </div>
        )}
      </Card>
    );
  }
  return (
    <Card padded={false}>
      <Empty icon="tunnels" title="No tunnels yet" command={httpTunnelCommand(3000)}>
        <p>Run this command to publish port 3000 of your computer. The tunnel appears here immediately.</p>
      </Empty>
    </Card>
  );
};

const filterText = ({ protocol, state, q }: TunnelFilter): string => {
  const kind = protocol === undefined ? 'tunnels' : `${protocolText(protocol)} tunnels`;
  if (q !== undefined) return `No ${state === 'active' ? `live ${kind}` : kind} match “${q}”.`;
  if (state === 'active') return `No live ${kind}.`;
  return state === 'closed' ? `No ended ${kind} yet.` : `No ${kind} yet.`;
};
