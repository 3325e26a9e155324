// The tunnels that began last.
import type { UseQueryResult } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Bytes, Count } from '../../ui/amount.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { Duration, Time } from '../../ui/time.tsx';
import { TunnelState } from '../tunnels/tunnel-cells.tsx';

const COLUMNS: readonly Column<TunnelLogEntry>[] = [
  {
    key: 'label',
    header: 'Label',
    isHead: true,
    cell: ({ id, label, tunnel_id }) => (
      <Link
        to="/tunnels/$id"
        params={{ id }}
        className="block max-w-48 truncate rounded-sm hover:underline sm:max-w-72"
      >
        {label === '' ? tunnel_id : label}
      </Link>
    ),
  },
  { key: 'state', header: 'State', cell: (entry) => <TunnelState entry={entry} /> },
  {
    key: 'protocol',
    header: 'Protocol',
    cell: ({ protocol }) => <span className="font-mono text-sm">{protocol}</span>,
  },
  { key: 'started', header: 'Started', cell: ({ registered_at }) => <Time at={registered_at} /> },
  {
    key: 'duration',
    header: 'Duration',
    cell: ({ registered_at, unregistered_at }) => <Duration from={registered_at} until={unregistered_at} />,
  },
  { key: 'requests', header: 'Requests', align: 'end', cell: ({ request_count }) => <Count value={request_count} /> },
  { key: 'data', header: 'Data', align: 'end', cell: ({ bytes_proxied }) => <Bytes value={bytes_proxied} /> },
];

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
    <Loaded query={query} title="The tunnels cannot be shown" pending={<Rows rows={undefined} />}>
      {(rows) => <Rows rows={rows} />}
    </Loaded>
  </Card>
);

const Rows = ({ rows }: { readonly rows: readonly TunnelLogEntry[] | undefined }) => (
  <Table
    caption="The tunnels that began last"
    columns={COLUMNS}
    rows={rows}
    rowKey={({ id }) => id}
    skeletonRows={5}
    empty={
      <Empty icon="tunnels" title="No tunnels yet" command="npx tunnel http 3000">
        <p>Publish the service on port 3000 of your machine.</p>
      </Empty>
    }
  />
);
