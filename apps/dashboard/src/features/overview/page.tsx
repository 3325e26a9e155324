// How the account is doing, at one look; for an account that never had a visitor, how to begin.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { PlatformClient, TunnelLogEntry } from '@tunnel/contract';
import { useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { meQuery, useIsBillingShown } from '../../api/queries.ts';
import { PanelBoundary } from '../../shared/panel-boundary.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { PageHead } from '../../ui/page-head.tsx';
import { billingQuery, billingUsageQuery } from '../billing/queries.ts';
import { isNewAccount, readFirstRun } from './first-run.ts';
import { FirstRunPage } from './first-run-page.tsx';
import { LiveTunnelsCard } from './live-tunnels-card.tsx';
import { OverviewTiles } from './overview-tiles.tsx';
import { firstRunQuery, poolStatesQuery, recentTunnelsQuery, usageQuery } from './queries.ts';
import { UsageChart } from './usage-chart.tsx';
import { warningsOf } from './warnings.ts';

export const OverviewPage = () => {
  const recent = useQuery(recentTunnelsQuery(useApi()));
  const firstRun = useFirstRun(recent.data);
  if (firstRun.isShown) return <FirstRunPage onLeave={firstRun.leave} />;
  return (
    <>
      <PageHead title="Overview" />
      <div className="space-y-6">
        <PanelBoundary>
          <Warnings />
        </PanelBoundary>
        {recent.data?.length === 0 && firstRun.isDecided ? (
          <NoTunnels onBegin={firstRun.begin} />
        ) : (
          <>
            <LiveTunnelsCard recent={recent.data} />
            <OverviewTiles />
            <UsageChart />
          </>
        )}
      </div>
    </>
  );
};

/** It stays until the first request or until it is left, also when the page is loaded again. */
const useFirstRun = (recent: readonly TunnelLogEntry[] | undefined) => {
  const api = useApi();
  const accountId = useQuery(meQuery(api)).data?.id;
  const hasVisit = useHasFirstVisit(api);
  const [isShown, setIsShown] = useState<boolean | null>(null);
  if (isShown === null && recent !== undefined && accountId !== undefined) {
    setIsShown(isNewAccount(recent) && !hasVisit && readSkipped() !== accountId);
  }
  return {
    isShown: isShown === true,
    /** Before that nobody is told that there is nothing. */
    isDecided: isShown !== null,
    leave: () => {
      setIsShown(false);
      writeSkipped(accountId ?? '');
    },
    begin: () => setIsShown(true),
  };
};

/** Who comes back from a first run that has seen a request is new no more, whatever an older answer says. */
const useHasFirstVisit = (api: PlatformClient): boolean => {
  const seen = useQueryClient().getQueryData(firstRunQuery(api).queryKey);
  return seen !== undefined && readFirstRun(seen, 0).visit !== 'none';
};

const SKIPPED_KEY = 'first-run-skipped';

/** The account that left it last in this browser; null: none, or storage is off. */
const readSkipped = (): string | null => {
  try {
    return localStorage.getItem(SKIPPED_KEY);
  } catch {
    return null;
  }
};

const writeSkipped = (accountId: string): void => {
  try {
    localStorage.setItem(SKIPPED_KEY, accountId);
  } catch {
    // Storage is off: it comes back when the page is loaded again.
  }
};

/** What should be known first, above everything else. What cannot be asked for is not warned of: its own panel tells. */
const Warnings = () => {
  const api = useApi();
  const usage = useQuery(usageQuery(api)).data;
  const pools = useQuery(poolStatesQuery(api)).data;
  const cost = useQuery(billingQuery(api)).data;
  const used = useQuery(billingUsageQuery(api)).data;
  const isBillingShown = useIsBillingShown();
  const warnings = warningsOf({ usage, pools, cost: isBillingShown === true ? cost : undefined, used });
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

/** One word for the whole page: numbers and charts of nothing say no more. */
const NoTunnels = ({ onBegin }: { readonly onBegin: () => void }) => (
  <Card>
    <Empty
      icon="tunnels"
      title="No tunnels yet"
      action={
        <Button kind="primary" onClick={onBegin}>
          Get started
        </Button>
      }
    >
      Start a tunnel to see its traffic here.
    </Empty>
  </Card>
);
