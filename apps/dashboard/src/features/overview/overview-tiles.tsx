// Figures on the overview: live tunnels, requests and bytes of the last 30 days, and the cost of the month.
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { UsageSummary } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { useIsBillingShown } from '../../api/queries.ts';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { countText, percentText, plural } from '../../ui/format.ts';
import { Bar, Bytes, Count, Money, Stat } from '../../ui/values.tsx';
import { viewCost } from '../billing/cost.ts';
import { billingQuery, billingUsageQuery } from '../billing/queries.ts';
import { usageQuery } from './queries.ts';

export const OverviewTiles = () => {
  const usage = useQuery(usageQuery(useApi()));
  const isBillingShown = useIsBillingShown();
  return (
    // Every row has the height of a tile with two lines and a bar (three lines on phones), so that the page below does not move when data
    // arrives.
    <div className="grid auto-rows-[minmax(9.25rem,auto)] grid-cols-2 gap-3 sm:gap-4 lg:auto-rows-[minmax(9.875rem,auto)] lg:grid-cols-[repeat(auto-fit,minmax(12rem,1fr))]">
      <UsageTiles usage={usage} />
      {isBillingShown === true && <CostTile />}
    </div>
  );
};

const Pending = () => <Skeleton className="w-full" />;

const UsageTiles = ({ usage }: { readonly usage: UseQueryResult<UsageSummary> }) => (
  <Loaded
    query={usage}
    title="Couldn't load your usage"
    errorClass="col-span-2 lg:col-span-3"
    pending={
      <>
        <Pending />
        <Pending />
        <Pending />
      </>
    }
  >
    {(summary) => (
      <>
        <ActiveTile summary={summary} />
        <Stat
          label="Requests, 30 days"
          value={<Count value={summary.total_requests_30d} />}
          note="Includes TCP and UDP"
        />
        <Stat label="Data, 30 days" value={<Bytes value={summary.total_bytes_30d} />} note="In and out" />
      </>
    )}
  </Loaded>
);

const ActiveTile = ({ summary: { active_tunnels: active, tunnel_limit: limit, plan } }: { summary: UsageSummary }) => (
  <Stat
    label="Tunnels in use"
    value={<Count value={active} />}
    note={limit === null ? `No limit on the ${plan} plan` : `Up to ${countText(limit)} on the ${plan} plan`}
  >
    {limit !== null && (
      <Bar
        className="mt-3"
        share={limit === 0 ? 1 : active / limit}
        tone={active >= limit ? 'warn' : 'accent'}
        label={`${countText(active)} of ${plural(limit, 'tunnel')} in use`}
      />
    )}
  </Stat>
);

/** Tile with the cost of the month. Hidden for accounts on the free plan. */
const CostTile = () => {
  const api = useApi();
  const cost = useQuery(billingQuery(api));
  const used = useQuery(billingUsageQuery(api)).data;
  if (cost.data?.billing_model === 'free') return null;
  return (
    <Loaded query={cost} title="Couldn't load the cost" pending={<Pending />} errorClass="max-lg:col-span-2">
      {(status) => {
        const { note, share, tone } = viewCost(status, used);
        return (
          <Stat label="Cost, this month" value={<Money cents={status.estimated_mtd_cents} />} note={note}>
            {share !== null && (
              <Bar className="mt-3" share={share} tone={tone} label={`${percentText(share)} of the spend limit`} />
            )}
          </Stat>
        );
      }}
    </Loaded>
  );
};
