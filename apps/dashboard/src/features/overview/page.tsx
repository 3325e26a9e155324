// How the account is doing, at one look; for an account that never had a tunnel, how to begin.
import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { TunnelLogEntry } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { httpTunnelCommand } from '../../app/client-commands.ts';
import { Loaded, PanelBoundary } from '../../app/panel-boundary.tsx';
import { useServer } from '../../app/queries.ts';
import { Notice } from '../../ui/badge.tsx';
import { Card, SkeletonLines } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { billingQuery, billingUsageQuery } from '../billing/queries.ts';
import { TunnelHead, TunnelRow } from '../tunnels/tunnel-row.tsx';
import { FirstRunPage } from './first-run-page.tsx';
import { OverviewTiles } from './overview-tiles.tsx';
import { firstRunQuery, poolStatesQuery, recentTunnelsQuery, usageQuery } from './queries.ts';
import { UsageCharts } from './usage-charts.tsx';
import { warningsOf } from './warnings.ts';

export const OverviewPage = () => {
  const api = useApi();
  const recent = useQuery(recentTunnelsQuery(api));
  // Who comes back from a first run that has seen a tunnel is new no more, whatever an older answer says.
  const firstTunnel = useQueryClient().getQueryData(firstRunQuery(api).queryKey)?.tunnel;
  // It stays while its steps turn green, until it is left.
  const [isNew, setIsNew] = useState<boolean | null>(null);
  if (isNew === null && recent.data !== undefined) setIsNew(recent.data.length === 0 && firstTunnel === undefined);
  if (isNew === true) return <FirstRunPage onLeave={() => setIsNew(false)} />;
  return (
    <>
      <PageHead title="Overview" description="Your tunnels now, and what they carried in the last 30 days." />
      <div className="space-y-6">
        <PanelBoundary>
          <Warnings />
        </PanelBoundary>
        <OverviewTiles />
        <UsageCharts />
        <RecentTunnels query={recent} />
      </div>
    </>
  );
};

/** What should be known first, above everything else. What cannot be asked for is not warned of: its own panel tells. */
const Warnings = () => {
  const api = useApi();
  const usage = useQuery(usageQuery(api)).data;
  const pools = useQuery(poolStatesQuery(api)).data;
  const cost = useQuery(billingQuery(api)).data;
  const used = useQuery(billingUsageQuery(api)).data;
  const warnings = warningsOf({ usage, pools, cost, used });
  if (warnings.length === 0) return null;
  return (
    <div className="space-y-3">
      {warnings.map(({ key, tone, text, to, link }) => (
        <Notice key={key} tone={tone} live>
          {text}{' '}
          <Link to={to} className="whitespace-nowrap rounded-sm underline underline-offset-2">
            {link}
          </Link>
        </Notice>
      ))}
    </div>
  );
};

const RecentTunnels = ({ query }: { readonly query: UseQueryResult<TunnelLogEntry[]> }) => (
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
