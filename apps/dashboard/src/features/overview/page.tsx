// How the account is doing, at one look; for an account that never had a tunnel, how to begin.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
import { PanelBoundary } from '../../app/panel-boundary.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { FirstRunPage } from './first-run-page.tsx';
import { OverviewTiles } from './overview-tiles.tsx';
import { firstRunQuery, recentTunnelsQuery } from './queries.ts';
import { RecentTunnels } from './recent-tunnels.tsx';
import { UsageCharts } from './usage-charts.tsx';
import { Warnings } from './warnings-list.tsx';

export const OverviewPage = () => {
  const api = useApi();
  const recent = useQuery(recentTunnelsQuery(api));
  // Who comes back from a first run that has seen a tunnel is new no more, whatever an older answer says.
  const seen = useQueryClient().getQueryData(firstRunQuery(api).queryKey)?.tunnel;
  // It stays while its steps turn green, until it is left.
  const [isNew, setIsNew] = useState<boolean | null>(null);
  if (isNew === null && recent.data !== undefined) setIsNew(recent.data.length === 0 && seen === undefined);
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
