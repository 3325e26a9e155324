// The numbers of the overview: tunnels now, requests and bytes of 30 days, the cost of the month.
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { UsageSummary } from '@tunnel/contract';
import { useApi } from '../../app/app-context.tsx';
import { Loaded } from '../../app/panel-boundary.tsx';
import { Skeleton } from '../../ui/card.tsx';
import { countText, percentText, plural } from '../../ui/format.ts';
import { Bar, Bytes, Count, Money, Stat } from '../../ui/values.tsx';
import { viewCost } from '../billing/cost.ts';
import { billingQuery, billingUsageQuery } from '../billing/queries.ts';
import { usageQuery } from './queries.ts';

export const OverviewTiles = () => {
  const usage = useQuery(usageQuery(useApi()));
  return (
    // A row is as high as a tile with two lines and a bar, on a phone with three lines: what is below does not move.
    <div className="grid auto-rows-[minmax(9.25rem,auto)] grid-cols-2 gap-3 sm:gap-4 lg:auto-rows-[minmax(9.875rem,auto)] lg:grid-cols-4">
      <UsageTiles usage={usage} />
      <CostTile />
    </div>
  );
};

const Pending = () => <Skeleton className="w-full" />;

const UsageTiles = ({ usage }: { readonly usage: UseQueryResult<UsageSummary> }) => (
  <Loaded
    query={usage}
    title="Your usage cannot be shown"
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
          note={`On ${plural(summary.total_tunnels_30d, 'tunnel')}; connections and flows too`}
        />
        <Stat
          label="Data, 30 days"
          value={<Bytes value={summary.total_bytes_30d} />}
          note="Both ways; direct traffic is not billed"
        />
      </>
    )}
  </Loaded>
);

const ActiveTile = ({ summary: { active_tunnels: active, tunnel_limit: limit, plan } }: { summary: UsageSummary }) => (
  <Stat
    label="Live tunnels, now"
    value={<Count value={active} />}
    note={limit === null ? `Plan ${plan}: no limit` : `Plan ${plan}: up to ${plural(limit, 'tunnel')} at once`}
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

const CostTile = () => {
  const api = useApi();
  const cost = useQuery(billingQuery(api));
  const used = useQuery(billingUsageQuery(api)).data;
  return (
    <Loaded query={cost} title="The cost cannot be shown" pending={<Pending />} errorClass="max-lg:col-span-2">
      {(status) => {
        const { note, share, tone } = viewCost(status, used);
        return (
          <Stat label="Cost, this month" value={<Money cents={status.estimated_mtd_cents} />} note={note}>
            {share !== null && (
              <Bar className="mt-3" share={share} tone={tone} label={`${percentText(share)} of the spend cap`} />
            )}
          </Stat>
        );
      }}
    </Loaded>
  );
};
