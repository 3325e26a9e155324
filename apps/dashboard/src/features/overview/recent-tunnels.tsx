// The tunnels that began last.
import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { httpTunnelCommand } from '../../app/client-commands.ts';
import { Loaded } from '../../app/panel-boundary.tsx';
import { useServer } from '../../app/use-server.ts';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { SkeletonLines } from '../../ui/skeleton.tsx';
import { TunnelHead, TunnelRow } from '../tunnels/tunnel-row.tsx';

export const RecentTunnels = ({ query }: { readonly query: UseQueryResult<TunnelLogEntry[]> }) => (
  <Card
    title="Recent tunnels"
    description="The five that began last"
    padded={false}
    actions={
      <Link to="/tunnels" className="rounded-sm text-accent text-sm underline-offset-2 hover:underline">
        All tunnels
      </Link>
    }
  >
    <Loaded
      query={query}
      title="The tunnels cannot be shown"
      pending={<Pending />}
      errorClass="px-4 pb-4 sm:px-5 sm:pb-5"
    >
      {(rows) => (rows.length === 0 ? <NoTunnels /> : <Rows rows={rows} />)}
    </Loaded>
  </Card>
);

const Rows = ({ rows }: { readonly rows: readonly TunnelLogEntry[] }) => (
  <div role="table" aria-label="The tunnels that began last" className="border-line border-t">
    <TunnelHead />
    <div role="rowgroup" className="[&>:last-child]:border-b-0">
      {rows.map((entry, index) => (
        <TunnelRow key={entry.id} {...{ entry, index }} />
      ))}
    </div>
  </div>
);

const Pending = () => (
  <div className="h-[380px] px-4 sm:px-5 md:h-[277px]">
    <SkeletonLines count={5} />
  </div>
);

const NoTunnels = () => {
  const server = useServer();
  return (
    <Empty icon="tunnels" title="No tunnels yet" command={server === null ? null : httpTunnelCommand(3000, server)}>
      <p>Publish the service on port 3000 of your machine.</p>
    </Empty>
  );
};
