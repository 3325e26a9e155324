// Overview of the account: warnings, live tunnels and usage. An account that has never had a visitor sees the getting-started page
// instead.
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

/**
 * Decides whether to show the getting-started page. The page stays until the user leaves it or the first request arrives, even after a
 * reload.
 */
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
    /** False until the account's data is loaded. Until then, the overview must not claim that there are no tunnels. */
    isDecided: isShown !== null,
    leave: () => {
      setIsShown(false);
      writeSkipped(accountId ?? '');
    },
    begin: () => setIsShown(true),
  };
};

/**
 * Returns whether the getting-started page has seen a visit. If so, the account is no longer new, even if an older cached response of the
 * tunnel list disagrees.
 */
const useHasFirstVisit = (api: PlatformClient): boolean => {
  const seen = useQueryClient().getQueryData(firstRunQuery(api).queryKey);
  return seen !== undefined && readFirstRun(seen, 0).visit !== 'none';
};

const SKIPPED_KEY = 'first-run-skipped';

/**
 * Returns the ID of the account that last skipped the getting-started page in this browser. Null if no account did, or if storage is
 * disabled.
 */
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
    // Storage is disabled in this browser, so the getting-started page returns after a reload.
  }
};

/** Warnings at the top of the overview. Data that failed to load causes no warning, because its own panel shows the error. */
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

/** Replaces the whole overview for an account without tunnels, because figures and charts would be empty. */
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
