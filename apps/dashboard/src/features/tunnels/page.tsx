// The tunnels of the account, those that live first.
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { httpTunnelCommand } from '../../app/client-commands.ts';
import { PanelBoundary } from '../../app/panel-boundary.tsx';
import { protocolText } from '../../app/tunnel-address.ts';
import { Card, Skeleton } from '../../ui/card.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { countText, plural } from '../../ui/format.ts';
import { PageHead } from '../../ui/page-head.tsx';
import { Problem } from '../../ui/problem.tsx';
import { KindHelp, NewTunnelButton } from './new-tunnel-help.tsx';
import { changeFilter, PROTOCOL_CHOICES, readFilter, STATE_CHOICES, type TunnelFilter } from './queries.ts';
import { TunnelList } from './tunnel-list.tsx';
import { TunnelHead } from './tunnel-row.tsx';
import { type TunnelRows, useTunnelRows } from './use-tunnel-rows.ts';

export const TunnelsPage = () => {
  const filter = readFilter(useSearch({ from: '/shell/tunnels' }));
  return (
    <>
      <PageHead title="Tunnels" actions={<NewTunnelButton />} />
      <TunnelFilters filter={filter} />
      <PanelBoundary title="Couldn't load your tunnels">
        <Tunnels key={`${filter.protocol} ${filter.state}`} filter={filter} />
      </PanelBoundary>
    </>
  );
};

const Tunnels = ({ filter }: { readonly filter: TunnelFilter }) => {
  const found = useTunnelRows(filter);
  const { rows, isWhole, error, retry, loadMore } = found;
  if (rows === undefined) {
    return error === null ? <Pending /> : <Problem title="Couldn't load your tunnels" {...{ error }} onRetry={retry} />;
  }
  if (rows.length === 0) return <NoTunnels filter={filter} />;
  return (
    <>
      <Card padded={false}>
        <TunnelList rows={rows} isWhole={isWhole} onEndNear={loadMore} />
      </Card>
      <ListFooter found={found} />
    </>
  );
};

const ListFooter = ({ found: { rows = [], liveCount, isWhole, error, retry } }: { readonly found: TunnelRows }) => {
  if (error !== null) {
    return (
      <div className="mt-4">
        <Problem title="Couldn't load older tunnels" error={error} onRetry={retry} />
      </div>
    );
  }
  const text = isWhole ? `${plural(rows.length, 'tunnel')}, ${countText(liveCount)} live` : 'Loading older tunnels';
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
  const isFiltered = filter.state !== undefined || filter.protocol !== undefined;
  const command = httpTunnelCommand(3000);
  if (isFiltered) {
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
        {filter.protocol !== undefined && (
          <div className="mx-auto max-w-2xl px-4 pb-10 sm:px-5">
            <KindHelp protocol={filter.protocol} />
          </div>
        )}
      </Card>
    );
  }
  return (
    <Card padded={false}>
      <Empty icon="tunnels" title="No tunnels yet" command={command}>
        <p>Put port 3000 of your machine online. The tunnel shows up here at once.</p>
      </Empty>
    </Card>
  );
};

const filterText = ({ protocol, state }: TunnelFilter): string => {
  const kind = protocol === undefined ? 'tunnel' : `${protocolText(protocol)} tunnel`;
  if (state === 'active') return `No ${kind} is live right now.`;
  return state === 'closed' ? `No ${kind} has ended yet.` : `No ${kind} yet.`;
};

/** Kept in the address of the page. */
const TunnelFilters = ({ filter }: { readonly filter: TunnelFilter }) => {
  const navigate = useNavigate();
  const go = (chosen: Parameters<typeof changeFilter>[1]): void =>
    void navigate({ to: '/tunnels', search: changeFilter(filter, chosen), replace: true, resetScroll: true });
  return (
    <div className="mb-4 flex flex-wrap gap-x-6 gap-y-3">
      <Choice label="State" value={filter.state ?? 'all'} options={STATE_CHOICES} onChange={(state) => go({ state })} />
      <Choice
        label="Protocol"
        value={filter.protocol ?? 'all'}
        options={PROTOCOL_CHOICES}
        onChange={(protocol) => go({ protocol })}
      />
    </div>
  );
};
