// Panel with the history of a tunnel's health, with reasons, newest first.
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { HealthEvent, TunnelLogEntry } from '@tunnel/contract';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { Notice } from '../../ui/badge.tsx';
import { SkeletonLines } from '../../ui/card.tsx';
import { classNames } from '../../ui/class-names.ts';
import { problemText } from '../../ui/problem-text.ts';
import { Time } from '../../ui/values.tsx';
import { healthQuery } from './queries.ts';

export const HealthPanel = ({ entry }: { readonly entry: TunnelLogEntry }) => {
  const health = useQuery(healthQuery(useApi(), entry));
  return (
    <LoadedCard
      title="Health check history"
      description="The last 50 changes"
      query={health}
      problem="Couldn't load the health checks"
      pending={<Pending />}
    >
      {(events) => (
        <div className="px-4 pb-4 sm:px-5 sm:pb-5">
          <StaleNotice query={health} />
          {events.length === 0 ? <NoEvents isLive={entry.unregistered_at === null} /> : <Timeline events={events} />}
        </div>
      )}
    </LoadedCard>
  );
};

const Pending = () => (
  <div className="px-4 pb-4 sm:px-5 sm:pb-5">
    <SkeletonLines count={2} />
  </div>
);

const NoEvents = ({ isLive }: { readonly isLive: boolean }) => (
  <p className="text-muted">
    {isLive ? (
      <>
        No changes yet. Add a health check with <code className="whitespace-nowrap font-mono">--health tcp</code> or{' '}
        <code className="whitespace-nowrap font-mono">--health http:/path</code>.
      </>
    ) : (
      'The history is kept while the tunnel is live.'
    )}
  </p>
);

const Timeline = ({ events }: { readonly events: readonly HealthEvent[] }) => (
  <ol className="max-h-96 overflow-y-auto">
    {events.toReversed().map(({ at, healthy, reason }, index) => (
      <li key={`${at} ${index}`} className="relative flex gap-3 pb-4 pl-0.5 last:pb-0">
        {index < events.length - 1 && (
          <span aria-hidden="true" className="absolute top-4 bottom-0 left-[6.5px] w-px bg-line" />
        )}
        <span
          aria-hidden="true"
          className={classNames('mt-1.5 size-2.5 shrink-0 rounded-full', healthy ? 'bg-good' : 'bg-bad')}
        />
        <div className="flex min-w-0 flex-1 flex-wrap justify-between gap-x-4">
          <p className="min-w-0 break-words">
            <span className={classNames('font-medium', healthy ? 'text-good' : 'text-bad')}>
              {healthy ? 'Healthy' : 'Unhealthy'}
            </span>{' '}
            <span className="text-muted">{reason}</span>
          </p>
          <span className="text-muted text-sm">
            <Time at={at} />
          </span>
        </div>
      </li>
    ))}
  </ol>
);

/** Notice that the region no longer responds and the shown data is from an earlier response. */
export const StaleNotice = ({ query }: { readonly query: Pick<UseQueryResult, 'isError' | 'error' | 'data'> }) =>
  query.isError && query.data !== undefined ? (
    <div className="mb-4">
      <Notice tone="warn" live>
        {problemText(query.error)} The last known state is shown.
      </Notice>
    </div>
  ) : null;
