// Panel with the flows of a UDP tunnel: current visitors, the path of datagrams between edge and client, and dropped datagrams with
// reasons.
import { useQuery } from '@tanstack/react-query';
import type { EdgeFlow, EdgeFlows, TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { addressOf } from '../../shared/tunnel-address.ts';
import { Badge } from '../../ui/badge.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { countText, durationText, plural } from '../../ui/format.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Bytes, Count, Time } from '../../ui/values.tsx';
import { StaleNotice } from './health-panel.tsx';
import { datagramWay, dropsOf } from './path-text.ts';
import { flowsQuery } from './queries.ts';

export const FlowsPanel = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const flows = useQuery(flowsQuery(useApi(), entry));
  const isLive = entry.unregistered_at === null;
  return (
    <LoadedCard
      title="Flows"
      description="A flow is a visitor’s address and port. The 200 most recently active flows are shown."
      query={flows}
      problem="Couldn't load the flows"
      pending={
        <div className="px-4 pb-4 sm:px-5">
          <Skeleton className="h-56 w-full" />
        </div>
      }
    >
      {(list) => (
        <>
          <div className="space-y-4 px-4 pb-4 sm:px-5">
            <StaleNotice query={flows} />
            {isLive && <Way flows={list} />}
            {isLive && <Drops flows={list} />}
          </div>
          {list.flows.length === 0 ? <NoFlows entry={entry} /> : <FlowTable list={list} />}
        </>
      )}
    </LoadedCard>
  );
};

const Way = ({ flows }: { readonly flows: EdgeFlows }) => {
  const { badge, tone, text } = datagramWay(flows);
  return (
    <p className="flex flex-wrap items-baseline gap-x-2.5 gap-y-1">
      <span className="text-muted">Path</span>
      <Badge tone={tone}>{badge}</Badge>
      <span className="min-w-0">{text}</span>
    </p>
  );
};

const Drops = ({ flows }: { readonly flows: EdgeFlows }) => {
  const drops = dropsOf(flows.dropped);
  if (drops.length === 0) return <p className="text-muted">No datagrams were dropped.</p>;
  return (
    <div>
      <h3 className="mb-1 font-medium">Dropped datagrams</h3>
      <ul aria-label="Dropped datagrams by reason" className="divide-y divide-line">
        {drops.map(({ reason, count, text }) => (
          <li key={reason} className="flex justify-between gap-4 py-1.5">
            <span className="min-w-0">
              {text} <code className="whitespace-nowrap font-mono text-muted text-sm">{reason}</code>
            </span>
            <Count value={count} />
          </li>
        ))}
      </ul>
    </div>
  );
};

const COLUMNS: readonly Column<EdgeFlow>[] = [
  {
    key: 'visitor',
    header: 'Visitor',
    isHead: true,
    cell: ({ visitor }) => <span className="break-all font-mono text-sm">{visitor}</span>,
  },
  {
    key: 'state',
    header: 'State',
    cell: ({ confirmed }) =>
      confirmed ? (
        <Badge tone="good" title="The visitor has replied, so responses reach the visitor.">
          confirmed
        </Badge>
      ) : (
        <Badge title="No proof yet that responses reach the visitor. Responses are limited until then.">
          unconfirmed
        </Badge>
      ),
  },
  { key: 'since', header: 'Started', cell: ({ since }) => <Time at={since} /> },
  { key: 'idle', header: 'Idle for', cell: ({ idle_ms }) => durationText(idle_ms) },
  {
    key: 'in',
    header: 'From visitor',
    align: 'end',
    cell: (flow) => <Sum count={flow.datagrams_in} bytes={flow.bytes_in} />,
  },
  {
    key: 'out',
    header: 'To visitor',
    align: 'end',
    cell: (flow) => <Sum count={flow.datagrams_out} bytes={flow.bytes_out} />,
  },
  { key: 'dropped', header: 'Dropped', align: 'end', cell: ({ dropped }) => <Count value={dropped} /> },
];

const Sum = ({ count, bytes }: { readonly count: number; readonly bytes: number }) => (
  <span className="inline-block">
    <Bytes value={bytes} />
    <span className="block text-muted text-sm">{plural(count, 'datagram')}</span>
  </span>
);

const FlowTable = ({ list }: { readonly list: EdgeFlows }) => (
  <>
    <Table
      caption="Current flows"
      columns={COLUMNS}
      rows={list.flows}
      // The start time is part of the key, because two successive flows can have the same address.
      rowKey={({ visitor, since }) => `${visitor} ${since}`}
    />
    <p role="status" className="border-line border-t px-4 py-2 text-muted text-sm sm:px-5">
      {plural(list.total, 'flow')} now
      {list.total > list.flows.length && `, the ${countText(list.flows.length)} most recent are shown`}
    </p>
  </>
);

const NoFlows = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  if (entry.unregistered_at !== null) {
    return <p className="px-4 pb-4 text-muted sm:px-5 sm:pb-5">Flows are shown while the tunnel is live.</p>;
  }
  const [host, port] = addressOf(entry).text.split(/:(?=\d+$)/);
  return (
    <Empty title="No flows" {...(port === undefined ? {} : { command: `nc -u ${host} ${port}` })}>
      <p>Send a datagram to see a flow here.</p>
    </Empty>
  );
};
